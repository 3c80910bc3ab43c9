package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"ipu.fabric/standins/internal/kube"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

var pools = schema.GroupVersionResource{Group: "whereabouts.cni.cncf.io", Version: "v1alpha1", Resource: "ippools"}

type network struct {
	CNIVersion string `json:"cniVersion"`
	IPAM       ipam   `json:"ipam"`
}

func add(args *skel.CmdArgs) error {
	conf, ranges, client, err := prepare(args)
	if err != nil {
		return err
	}
	var address netip.Addr
	err = change(client, ranges, func(allocations map[string]any) error {
		taken := map[netip.Addr]bool{}
		for offset, owner := range allocations {
			at, _ := ranges.at(offset)
			fields, _ := owner.(map[string]any)
			if fields["podref"] == podOf(args.Args) && fields["ifname"] == args.IfName {
				address = at // a pod keeps its address when its sandbox is recreated
				fields["id"] = args.ContainerID
				return nil
			}
			taken[at] = true
		}
		if address, err = ranges.lowest(taken); err != nil {
			return err
		}
		allocations[ranges.offset(address)] = map[string]any{"id": args.ContainerID, "ifname": args.IfName,
			"podref": podOf(args.Args)}
		return nil
	})
	if err != nil {
		return err
	}
	result := &types100.Result{CNIVersion: conf.CNIVersion, IPs: []*types100.IPConfig{{
		Address: net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(ranges.subnet.Bits(), address.BitLen())},
		Gateway: net.ParseIP(conf.IPAM.Gateway)}}}
	for _, route := range conf.IPAM.Routes {
		_, dst, err := net.ParseCIDR(route.Dst)
		if err != nil {
			return err
		}
		result.Routes = append(result.Routes, &types.Route{Dst: *dst})
	}
	return types.PrintResult(result, conf.CNIVersion)
}

func del(args *skel.CmdArgs) error {
	_, ranges, client, err := prepare(args)
	if err != nil {
		return err
	}
	return change(client, ranges, func(allocations map[string]any) error {
		for offset, owner := range allocations {
			if owns(owner, args) {
				delete(allocations, offset)
			}
		}
		return nil
	})
}

// prepare reads the network's configuration, filled up from the node's own, and connects as that says.
func prepare(args *skel.CmdArgs) (*network, addresses, dynamic.ResourceInterface, error) {
	fail := func(err error) (*network, addresses, dynamic.ResourceInterface, error) {
		return nil, addresses{}, nil, err
	}
	conf := &network{}
	if err := json.Unmarshal(args.StdinData, conf); err != nil {
		return fail(err)
	}
	if conf.IPAM.Kubernetes.Kubeconfig == "" {
		var flat ipam
		if raw, err := os.ReadFile(hostConfig + "whereabouts.conf"); err == nil {
			_ = json.Unmarshal(raw, &flat)
		}
		conf.IPAM.Kubernetes = flat.Kubernetes
	}
	ranges, err := conf.IPAM.addresses()
	if err != nil {
		return fail(err)
	}
	client, err := kube.Client(conf.IPAM.Kubernetes.Kubeconfig)
	if err != nil {
		return fail(err)
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: conf.IPAM.Kubernetes.Kubeconfig}, nil)
	namespace, _, err := loader.Namespace()
	if err != nil {
		return fail(err)
	}
	return conf, ranges, client.Resource(pools).Namespace(namespace), nil
}

// change edits the pool's allocations; when somebody else was faster it does so again on what is there then.
func change(client dynamic.ResourceInterface, ranges addresses, edit func(map[string]any) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for attempt := 0; ; attempt++ {
		err := changeOnce(ctx, client, ranges, edit)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) || attempt == 100 {
			return err
		}
		time.Sleep(time.Duration(attempt%10) * 10 * time.Millisecond)
	}
}

func changeOnce(ctx context.Context, client dynamic.ResourceInterface, ranges addresses, edit func(map[string]any) error) error {
	pool, err := client.Get(ctx, ranges.poolName(), metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if missing {
		pool = &kube.Object{Object: map[string]any{"apiVersion": pools.GroupVersion().String(), "kind": "IPPool",
			"metadata": map[string]any{"name": ranges.poolName()}}}
	} else if err != nil {
		return err
	}
	allocations, _, err := unstructured.NestedMap(pool.Object, "spec", "allocations")
	if err != nil {
		return err
	}
	if allocations == nil {
		allocations = map[string]any{}
	}
	if err := edit(allocations); err != nil {
		return err
	}
	pool.Object["spec"] = map[string]any{"range": ranges.subnet.String(), "allocations": allocations}
	if missing {
		_, err = client.Create(ctx, pool, metav1.CreateOptions{})
	} else {
		_, err = client.Update(ctx, pool, metav1.UpdateOptions{}) // refused when the pool has changed meanwhile
	}
	return err
}

func owns(owner any, args *skel.CmdArgs) bool {
	fields, _ := owner.(map[string]any)
	return fields["id"] == args.ContainerID && fields["ifname"] == args.IfName
}

func podOf(cniArgs string) string {
	values := map[string]string{}
	for _, pair := range strings.Split(cniArgs, ";") {
		key, value, _ := strings.Cut(pair, "=")
		values[key] = value
	}
	return fmt.Sprintf("%s/%s", values["K8S_POD_NAMESPACE"], values["K8S_POD_NAME"])
}
