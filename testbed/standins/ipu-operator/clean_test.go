package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	"ipu.fabric/standins/internal/kube"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// api answers as the API server does, as far as the clean-up asks: a list of pods, deletes, and updates of the job.
type api struct {
	pods    []string
	deleted []string
	updated *kube.Object
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Success"}
	switch {
	case r.Method == http.MethodGet:
		items := []any{}
		for _, name := range a.pods {
			metadata := map[string]any{"name": name, "namespace": "jobs"}
			items = append(items, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
		}
		answer = map[string]any{"apiVersion": "v1", "kind": "PodList", "items": items}
	case r.Method == http.MethodDelete:
		a.deleted = append(a.deleted, path.Base(r.URL.Path))
	case r.Method == http.MethodPut:
		a.updated = &kube.Object{}
		if json.NewDecoder(r.Body).Decode(&a.updated.Object) == nil {
			answer = a.updated.Object
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// ended is an operator with a job that has ended, its launcher and two workers, and a proxy that notes what it is asked.
func ended(t *testing.T, policy string) (*operator, *kube.Object, *api, *[]string) {
	t.Helper()
	obj := object(t, `{"jobInstances":2,"launcher":{"command":["x"]},"cleanPodPolicy":"`+policy+`",`+workers+`}`)
	obj.SetFinalizers([]string{"other", finalizer})
	obj.Object["status"] = map[string]any{"launcherStatus": "Completed", "completionTime": "2026-11-21T10:00:00Z"}
	cluster := &api{pods: []string{"mnist-launcher", "mnist-worker-0", "mnist-worker-1"}}
	server := httptest.NewServer(cluster)
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	asked := &[]string{}
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.Path)
	}))
	t.Cleanup(proxy.Close)
	settings := settings{proxy: strings.TrimPrefix(proxy.URL, "http://")}
	return &operator{client: client, settings: settings, http: proxy.Client()}, obj, cluster, asked
}

var (
	allPods  = []string{"mnist-launcher", "mnist-worker-0", "mnist-worker-1"}
	released = []string{"DELETE /partition/p-mnist-jobs-0", "DELETE /partition/p-mnist-jobs-1"}
)

func TestCleanPodPolicy(t *testing.T) {
	for policy, c := range map[string]struct{ deleted, asked []string }{
		"None":    {nil, nil},
		"Workers": {[]string{"mnist-worker-0", "mnist-worker-1"}, nil},
		"All":     {allPods, released},
	} {
		o, obj, cluster, asked := ended(t, policy)
		if err := o.reconcileJob(context.Background(), obj); err != nil {
			t.Fatal(err)
		}
		slices.Sort(cluster.deleted)
		if !slices.Equal(cluster.deleted, c.deleted) || !slices.Equal(*asked, c.asked) || cluster.updated != nil {
			t.Errorf("%s: deleted %v, asked %v", policy, cluster.deleted, *asked)
		}
	}
}

func TestDeletedJobGivesEverythingBack(t *testing.T) {
	o, obj, cluster, asked := ended(t, "None")
	now := metav1.Now()
	obj.SetDeletionTimestamp(&now)
	if err := o.reconcileJob(context.Background(), obj); err != nil {
		t.Fatal(err)
	}
	slices.Sort(cluster.deleted)
	if !slices.Equal(cluster.deleted, allPods) || !slices.Equal(*asked, released) {
		t.Errorf("deleted %v, asked %v", cluster.deleted, *asked)
	}
	if left := cluster.updated.GetFinalizers(); !slices.Equal(left, []string{"other"}) {
		t.Errorf("finalizers: %v", left)
	}
}
