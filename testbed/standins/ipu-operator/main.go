// ipu-operator stands for Graphcore's IPU Operator: webhooks that fill in and check IPUJobs, and a controller that asks
// the V-IPU proxy for a partition per job instance, runs worker pods and, if the job names a command or is interactive,
// a launcher pod from which mpirun reaches the workers by `kubectl exec`, and keeps the job's status, restarts, scale and
// clean-up.
//
// It does not: know poprun, give a worker more than one slot, set up IPUs, export metrics worth the name, or elect
// leaders. Which status a real job has in the seconds between two states may differ.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"ipu.fabric/standins/internal/kube"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const certificates = "/tmp/k8s-webhook-server/serving-certs"

var jobs = schema.GroupVersionResource{Group: "graphcore.ai", Version: "v1alpha1", Resource: "ipujobs"}

// settings are the flags that the chart sets and the stand-in uses.
type settings struct {
	proxy, launcherImage, launcherPull string
	hostNetwork                        bool
}

func main() {
	var s settings
	var tag string
	flag.StringVar(&s.proxy, "vipu-proxy-svc", "", "the V-IPU proxy's host name")
	flag.StringVar(&s.launcherImage, "launcher-image", "", "image of the launcher's init container")
	flag.StringVar(&tag, "launcher-image-tag", "", "its tag")
	flag.StringVar(&s.launcherPull, "launcher-image-pull-policy", "IfNotPresent", "its pull policy")
	flag.BoolVar(&s.hostNetwork, "host-network", true, "whether workers use the host's network")
	webhooks := flag.Int("webhooks-port", 9443, "port of the webhooks")
	health := flag.String("health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	metrics := flag.String("metrics-bind-address", "127.0.0.1:8080", "address of /metrics")
	flag.String("kubectl-version", "", "taken and ignored")
	flag.Bool("leader-elect", false, "taken and ignored")
	flag.Bool("zap-devel", false, "taken and ignored")
	flag.Int("zap-log-level", 0, "taken and ignored")
	flag.Int("v", 0, "taken and ignored")
	flag.Parse()
	s.launcherImage += ":" + tag

	client, err := kube.Client(os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go serve(*health, probes(), nil)
	go serve(*metrics, text("# no metrics in the stand-in\n"), nil)
	go serve(fmt.Sprintf(":%d", *webhooks), webhookHandler(), &tls.Config{GetCertificate: certificate})
	log.Printf("IPU operator stand-in, %+v", s)
	o := &operator{client: client, settings: s, http: &http.Client{Timeout: 10 * time.Second}}
	kube.Run(ctx, client, o.reconcile, jobs, kube.Pods)
}

func serve(address string, handler http.Handler, config *tls.Config) {
	server := &http.Server{Addr: address, Handler: handler, TLSConfig: config, ReadHeaderTimeout: 10 * time.Second}
	if config == nil {
		log.Fatal(server.ListenAndServe())
	}
	log.Fatal(server.ListenAndServeTLS("", ""))
}

// certificate reads the files at every handshake: the kubelet brings a renewed Secret about a minute late.
func certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"))
	return &pair, err
}

func probes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", text("ok"))
	mux.Handle("GET /readyz", text("ok"))
	return mux
}

func text(answer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
}
