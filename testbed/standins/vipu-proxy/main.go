// vipu-proxy stands for the IPU operator's V-IPU proxy: it reads the list of V-IPU controllers, checks that their TCP
// ports answer, counts partitions of 32 IPUs per controller in the ConfigMap ipu-partitions-tracker (which outlives it,
// as the real one does), and answers GET /health, GET /stats and POST /query as the real one documents them.
//
// It does not: create partitions anywhere but in that ConfigMap, speak to V-IPU, or reset IPUs. Its own requests
// (POST and DELETE /partition) are known to the stand-in of the controller only.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"ipu.fabric/standins/internal/ipu"
	"ipu.fabric/standins/internal/kube"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

const (
	controllersFile = "/etc/controllers-config/controllers.yaml"
	trackerName     = "ipu-partitions-tracker"
)

type proxy struct {
	client    dynamic.ResourceInterface
	namespace string
	lock      sync.Mutex // one change of the tracker at a time
}

func main() {
	client, err := kube.Client(os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	namespace := os.Getenv("PROXY_NAMESPACE")
	p := &proxy{client: client.Resource(kube.ConfigMaps).Namespace(namespace), namespace: namespace}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", p.health)
	mux.HandleFunc("GET /stats", p.stats)
	mux.HandleFunc("POST /query", p.query)
	mux.HandleFunc("POST /partition", p.create)
	mux.HandleFunc("DELETE /partition/{name}", p.remove)
	server := &http.Server{Addr: ":" + os.Getenv("PROXY_PORT"), Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Printf("V-IPU proxy stand-in on %s", server.Addr)
	log.Fatal(server.ListenAndServe())
}

// controllers reads the list each time: the kubelet brings a changed ConfigMap within about a minute.
func controllers() ([]ipu.Partition, error) {
	raw, err := os.ReadFile(controllersFile)
	if err != nil {
		return nil, err
	}
	return parseControllers(string(raw))
}

func (p *proxy) health(w http.ResponseWriter, _ *http.Request) {
	list, err := controllers()
	for _, c := range list {
		connection, dialError := net.DialTimeout("tcp", net.JoinHostPort(c.Host, c.Port), 3*time.Second)
		if dialError != nil {
			err = dialError
			continue
		}
		connection.Close()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "OK")
}

func (p *proxy) stats(w http.ResponseWriter, r *http.Request) {
	list, _, err := p.load(r.Context())
	known, err2 := controllers()
	if err != nil || err2 != nil {
		http.Error(w, fmt.Sprint(err, err2), http.StatusInternalServerError)
		return
	}
	answer(w, usage(list, len(known)))
}

func (p *proxy) query(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Size int }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Size < 1 {
		http.Error(w, "size must be a positive number", http.StatusBadRequest)
		return
	}
	list, _, err := p.load(r.Context())
	known, err2 := controllers()
	if err != nil || err2 != nil {
		http.Error(w, fmt.Sprint(err, err2), http.StatusInternalServerError)
		return
	}
	possible := 0
	for _, c := range known {
		possible += freeIPUs(list, c) / asked.Size
	}
	// The real one says available:true with no partition left, too.
	answer(w, map[string]any{"available": true, "numOfPartitions": possible, "message": ""})
}

func (p *proxy) create(w http.ResponseWriter, r *http.Request) {
	var wanted ipu.Partition
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	known, err := controllers()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	err = p.change(r.Context(), func(list []ipu.Partition) ([]ipu.Partition, error) {
		for _, old := range list {
			if old.Name == wanted.Name {
				wanted = old
				return list, nil
			}
		}
		list, err := place(list, known, wanted)
		if err == nil {
			wanted = list[len(list)-1]
		}
		return list, err
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	answer(w, wanted)
}

func (p *proxy) remove(w http.ResponseWriter, r *http.Request) {
	err := p.change(r.Context(), func(list []ipu.Partition) ([]ipu.Partition, error) {
		var rest []ipu.Partition
		for _, partition := range list {
			if partition.Name != r.PathValue("name") {
				rest = append(rest, partition)
			}
		}
		return rest, nil
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, map[string]any{})
}

func (p *proxy) load(ctx context.Context) ([]ipu.Partition, *kube.Object, error) {
	tracker, err := p.client.Get(ctx, trackerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		tracker = &kube.Object{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{}}}
		tracker.SetName(trackerName)
		tracker.SetNamespace(p.namespace)
		tracker, err = p.client.Create(ctx, tracker, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, nil, err
	}
	data, _ := tracker.Object["data"].(map[string]any)
	text, _ := data["partitions"].(string)
	var list []ipu.Partition
	if text != "" {
		err = json.Unmarshal([]byte(text), &list)
	}
	return list, tracker, err
}

func (p *proxy) change(ctx context.Context, edit func([]ipu.Partition) ([]ipu.Partition, error)) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	list, tracker, err := p.load(ctx)
	if err != nil {
		return err
	}
	list, err = edit(list)
	if err != nil {
		return err
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	tracker.Object["data"] = map[string]any{"partitions": string(text)}
	_, err = p.client.Update(ctx, tracker, metav1.UpdateOptions{})
	return err
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		log.Print(err)
	}
}

// parseControllers reads host:port:label=value, separated by commas; an IPv6 host is in brackets.
func parseControllers(text string) ([]ipu.Partition, error) {
	var list []ipu.Partition
	for _, item := range strings.Split(strings.TrimSpace(text), ",") {
		address, pair, found := cutLast(item, ":")
		label, value, equals := strings.Cut(pair, "=")
		host, port, err := net.SplitHostPort(address)
		if !found || !equals || err != nil {
			return nil, fmt.Errorf("controllers.yaml: %q is not host:port:label=value", item)
		}
		list = append(list, ipu.Partition{Host: host, Port: port, Label: label, Value: value})
	}
	return list, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}
