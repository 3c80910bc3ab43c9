package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ipu.fabric/standins/internal/kube"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const stateDir = "/var/lib/cni/multus"

type config struct {
	CNIVersion    string            `json:"cniVersion"`
	Kubeconfig    string            `json:"kubeconfig"`
	Delegates     []json.RawMessage `json:"delegates"`
	RuntimeConfig map[string]any    `json:"runtimeConfig"`
}

// attached is one network of a pod; the list of them is kept on disk, since DEL must undo what ADD did.
type attached struct {
	Name         string          `json:"name"`
	Interface    string          `json:"interface"`
	Config       json.RawMessage `json:"config"`
	Capabilities map[string]any  `json:"capabilities,omitempty"`
}

// status is an element of the annotation k8s.v1.cni.cncf.io/network-status.
type status struct {
	Name      string    `json:"name"`
	Interface string    `json:"interface"`
	IPs       []string  `json:"ips,omitempty"`
	MAC       string    `json:"mac,omitempty"`
	Default   bool      `json:"default,omitempty"`
	DNS       types.DNS `json:"dns"`
	Gateway   []string  `json:"gateway,omitempty"`
}

func add(args *skel.CmdArgs) error {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	conf, err := parseConfig(args)
	if err != nil {
		return err
	}
	client, err := kube.Client(conf.Kubeconfig)
	if err != nil {
		return err
	}
	pod, err := getPod(ctx, client, args.Args)
	if err != nil {
		return err
	}
	networks, err := networksOf(ctx, client, pod)
	if err != nil {
		return err
	}
	all := append([]attached{clusterAttachment(conf, args)}, networks...)
	if err := saveState(args.ContainerID, all); err != nil {
		return err
	}
	var first types.Result
	var statuses []status
	for i, network := range all {
		result, err := run(ctx, args, network)
		if err != nil {
			return errors.Join(fmt.Errorf("network %q: %w", network.Name, err), undo(ctx, args, all[:i+1]))
		}
		if i == 0 {
			first = result
		}
		entry, err := statusOf(network, result, i == 0)
		if err != nil {
			return err
		}
		statuses = append(statuses, entry)
	}
	if err := annotate(ctx, client, pod, statuses); err != nil {
		return err
	}
	return types.PrintResult(first, conf.CNIVersion) // as the real one: the cluster network's result alone
}

func del(args *skel.CmdArgs) error {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	conf, err := parseConfig(args)
	if err != nil {
		return err
	}
	all := []attached{clusterAttachment(conf, args)}
	if raw, err := os.ReadFile(statePath(args.ContainerID)); err == nil {
		if err := json.Unmarshal(raw, &all); err != nil {
			return err
		}
	}
	if err := undo(ctx, args, all); err != nil {
		return err
	}
	if err := os.Remove(statePath(args.ContainerID)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

func parseConfig(args *skel.CmdArgs) (*config, error) {
	conf := &config{}
	if err := json.Unmarshal(args.StdinData, conf); err != nil {
		return nil, err
	}
	if len(conf.Delegates) == 0 {
		return nil, errors.New("no cluster network among the delegates")
	}
	return conf, nil
}

func clusterAttachment(conf *config, args *skel.CmdArgs) attached {
	var named struct{ Name string }
	_ = json.Unmarshal(conf.Delegates[0], &named)
	return attached{Name: named.Name, Interface: args.IfName, Config: conf.Delegates[0],
		Capabilities: conf.RuntimeConfig}
}

func getPod(ctx context.Context, client dynamic.Interface, cniArgs string) (*kube.Object, error) {
	values := map[string]string{}
	for _, pair := range runtimeArgs(cniArgs) {
		values[pair[0]] = pair[1]
	}
	pods := client.Resource(kube.Pods).Namespace(values["K8S_POD_NAMESPACE"])
	return pods.Get(ctx, values["K8S_POD_NAME"], metav1.GetOptions{})
}

func networksOf(ctx context.Context, client dynamic.Interface, pod *kube.Object) ([]attached, error) {
	requests, err := parseNetworks(pod.GetAnnotations()["k8s.v1.cni.cncf.io/networks"], pod.GetNamespace())
	if err != nil {
		return nil, err
	}
	var networks []attached
	for i, request := range requests {
		nad, err := client.Resource(kube.NADs).Namespace(request.Namespace).Get(ctx, request.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("cannot find a network-attachment-definition (%s) in namespace (%s): %w",
				request.Name, request.Namespace, err)
		}
		spec, _ := nad.Object["spec"].(map[string]any)
		text, _ := spec["config"].(string)
		network := attached{Name: request.Namespace + "/" + request.Name, Interface: request.Interface,
			Config: json.RawMessage(text), Capabilities: request.capabilities()}
		if !json.Valid(network.Config) {
			return nil, fmt.Errorf("network-attachment-definition %s: its config is no JSON: %s", network.Name, text)
		}
		if network.Interface == "" {
			network.Interface = fmt.Sprintf("net%d", i+1)
		}
		networks = append(networks, network)
	}
	return networks, nil
}

// runtime prepares the real plugins' call for a network: its list of plugins and what it is told about the container.
func runtime(args *skel.CmdArgs, network attached) (*libcni.CNIConfig, *libcni.NetworkConfigList,
	*libcni.RuntimeConf, error) {
	plugins := libcni.NewCNIConfigWithCacheDir(filepath.SplitList(args.Path), stateDir, nil)
	var fields map[string]any
	if err := json.Unmarshal(network.Config, &fields); err != nil {
		return nil, nil, nil, err
	}
	if fields["name"] == nil {
		fields["name"] = network.Name[strings.Index(network.Name, "/")+1:]
	}
	if fields["plugins"] == nil { // a single plugin: make it a list of one
		fields = map[string]any{"cniVersion": fields["cniVersion"], "name": fields["name"], "plugins": []any{fields}}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, nil, nil, err
	}
	list, err := libcni.ConfListFromBytes(raw)
	if err != nil {
		return nil, nil, nil, err
	}
	return plugins, list, &libcni.RuntimeConf{ContainerID: args.ContainerID, NetNS: args.Netns,
		IfName: network.Interface, Args: runtimeArgs(args.Args), CapabilityArgs: network.Capabilities}, nil
}

func run(ctx context.Context, args *skel.CmdArgs, network attached) (types.Result, error) {
	plugins, list, container, err := runtime(args, network)
	if err != nil {
		return nil, err
	}
	return plugins.AddNetworkList(ctx, list, container)
}

// undo detaches networks, the last first, all of them even when one fails.
func undo(ctx context.Context, args *skel.CmdArgs, networks []attached) error {
	var failures []error
	for i := len(networks) - 1; i >= 0; i-- {
		plugins, list, container, err := runtime(args, networks[i])
		if err == nil {
			err = plugins.DelNetworkList(ctx, list, container)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("network %q: %w", networks[i].Name, err))
		}
	}
	return errors.Join(failures...)
}

func statusOf(network attached, result types.Result, isDefault bool) (status, error) {
	entry := status{Name: network.Name, Interface: network.Interface, Default: isDefault}
	r, err := types100.NewResultFromResult(result)
	if err != nil {
		return entry, err
	}
	entry.DNS = r.DNS
	for i, link := range r.Interfaces {
		if link.Sandbox == "" {
			continue
		}
		entry.MAC = link.Mac
		for _, ip := range r.IPs {
			if ip.Interface == nil || *ip.Interface == i {
				entry.IPs = append(entry.IPs, ip.Address.IP.String())
				if isDefault && ip.Gateway != nil && !ip.Gateway.Equal(net.IPv4zero) {
					entry.Gateway = append(entry.Gateway, ip.Gateway.String())
				}
			}
		}
	}
	return entry, nil
}

func annotate(ctx context.Context, client dynamic.Interface, pod *kube.Object, statuses []status) error {
	text, err := json.MarshalIndent(statuses, "", "    ")
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{"k8s.v1.cni.cncf.io/network-status": string(text)}}})
	if err != nil {
		return err
	}
	pods := client.Resource(kube.Pods).Namespace(pod.GetNamespace())
	_, err = pods.Patch(ctx, pod.GetName(), ktypes.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func statePath(container string) string { return filepath.Join(stateDir, container+".json") }

func saveState(container string, networks []attached) error {
	raw, err := json.Marshal(networks)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(statePath(container), raw, 0o600)
}
