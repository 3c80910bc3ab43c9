// nv-ipam stands for NVIDIA's nv-ipam: `nv-ipam controller` allocates every node a block of each IPPool into its status,
// `nv-ipam node` installs the CNI plugin on a node, and the plugin gives pods addresses of the node's block round robin.
// Its faults are kept: blocks start one after the network address and are not aligned, a block that is excluded in part
// is still allocated (before 26.1 even one that is wholly excluded), overlapping exclusions make every ADD fail.
//
// It does not: run a daemon between plugin and API server (the plugin asks the API server itself), elect leaders, send
// events, know CIDRPools, perNodeExclusions, static address requests or matchFields, or clean up after dead pods.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"os/signal"
	"sort"
	"syscall"
	"time"

	"ipu.fabric/standins/internal/host"
	"ipu.fabric/standins/internal/kube"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	hostConfig = "/etc/cni/net.d/nv-ipam.d/" // as the plugin sees it
	podConfig  = "/host" + hostConfig        // as the installer does
)

var pools = schema.GroupVersionResource{Group: "nv-ipam.nvidia.com", Version: "v1alpha1", Resource: "ippools"}

func main() {
	if host.IsPlugin() {
		skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: func(*skel.CmdArgs) error { return nil }},
			version.All, "nv-ipam stand-in")
		return
	}
	skipExcluded := flag.NewFlagSet("controller", flag.ExitOnError)
	skip := skipExcluded.Bool("skip-excluded-blocks", true, "allocate no block that is wholly excluded (since 26.1)")
	switch {
	case len(os.Args) > 1 && os.Args[1] == "node":
		node()
	case len(os.Args) > 1 && os.Args[1] == "controller":
		_ = skipExcluded.Parse(os.Args[2:])
		controller(*skip)
	default:
		log.Fatal("usage: nv-ipam controller|node")
	}
}

func node() {
	if err := host.InstallSelf("/host/opt/cni/bin/nv-ipam"); err != nil {
		log.Fatal(err)
	}
	settings, err := json.Marshal(pluginConfig{Node: os.Getenv("NODE_NAME"), Namespace: os.Getenv("POD_NAMESPACE"),
		Kubeconfig: hostConfig + "nv-ipam.kubeconfig"})
	if err != nil {
		log.Fatal(err)
	}
	host.Keep(10*time.Second, func() error {
		text, err := host.Kubeconfig(os.Getenv("POD_NAMESPACE"))
		if err != nil {
			return err
		}
		if err := host.Write(podConfig+"nv-ipam.kubeconfig", text, 0o600); err != nil {
			return err
		}
		return host.Write(podConfig+"nv-ipam.conf", settings, 0o644)
	}, func() {})
}

func controller(skipExcluded bool) {
	client, err := kube.Client(os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	kube.Run(ctx, client, func(ctx context.Context) error {
		return reconcile(ctx, client, os.Getenv("POD_NAMESPACE"), skipExcluded)
	}, pools, kube.Nodes)
}

func reconcile(ctx context.Context, client dynamic.Interface, namespace string, skipExcluded bool) error {
	nodes, err := client.Resource(kube.Nodes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	list, err := client.Resource(pools).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		obj := &list.Items[i]
		var pool ipPool
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &pool); err != nil {
			return err
		}
		var names []string
		for _, n := range nodes.Items {
			if pool.Spec.NodeSelector.matches(n.GetLabels()) {
				names = append(names, n.GetName())
			}
		}
		sort.Strings(names)
		allocated, err := allocateBlocks(pool.Spec, pool.Status.Allocations, names, skipExcluded)
		if err != nil {
			log.Printf("pool %s: %v", obj.GetName(), err) // the status is cleared
		}
		if sameAllocations(pool.Status.Allocations, allocated) && obj.Object["status"] != nil {
			continue
		}
		allocations := []any{}
		for _, a := range allocated {
			allocations = append(allocations, map[string]any{"nodeName": a.NodeName, "startIP": a.StartIP, "endIP": a.EndIP})
		}
		obj.Object["status"] = map[string]any{"allocations": allocations}
		_, err = client.Resource(pools).Namespace(namespace).UpdateStatus(ctx, obj, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func sameAllocations(a, b []allocation) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
