package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"ipu.fabric/standins/internal/certs"
	"ipu.fabric/standins/internal/kube"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// release is that of the images, as the real operator has it compiled in.
const release = "3.31.0"

//go:embed manifests
var manifests embed.FS

// view is what the manifests' templates see.
type view struct {
	spec                                           map[string]any
	TyphaReplicas                                  int
	CNIConfig, CNIConfigHash, CNIBinDir, CNINetDir string
	NodeEnv, PullSecrets, TolerateAll              []any
	UpdateStrategy                                 any
}

// Image is the name of a component's image, with the registry and the path that the Installation chooses.
func (v view) Image(name string) string {
	field := func(key, otherwise string) string {
		if value, _ := v.spec[key].(string); value != "" && value != "UseDefault" {
			return value
		}
		return otherwise
	}
	registry := strings.TrimSuffix(field("registry", "quay.io/"), "/")
	return fmt.Sprintf("%s/%s/%s%s:v%s", registry, field("imagePath", "calico"), field("imagePrefix", ""), name, release)
}

// render gives every object, in the order in which they need each other.
func render(installation *kube.Object, nodes int) ([]*kube.Object, error) {
	spec := installation.Object["spec"].(map[string]any)
	config := cniConfig(spec)
	v := view{spec: spec, TyphaReplicas: typhas(nodes), CNIConfig: config, CNIConfigHash: hash(config), NodeEnv: nodeEnv(spec),
		TolerateAll:    []any{map[string]any{"key": "CriticalAddonsOnly", "operator": "Exists"}, map[string]any{"effect": "NoSchedule", "operator": "Exists"}, map[string]any{"effect": "NoExecute", "operator": "Exists"}},
		UpdateStrategy: spec["nodeUpdateStrategy"]}
	v.CNIBinDir, _, _ = unstructured.NestedString(spec, "cni", "binDir")
	v.CNINetDir, _, _ = unstructured.NestedString(spec, "cni", "confDir")
	v.PullSecrets = []any{}
	if secrets, is := spec["imagePullSecrets"].([]any); is {
		v.PullSecrets = secrets
	}
	var all []*kube.Object
	for _, name := range []string{"base", "typha", "node", "kube-controllers"} {
		text, err := manifests.ReadFile("manifests/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		objects, err := kube.Render(string(text), v)
		if err != nil {
			return nil, err
		}
		for _, obj := range objects {
			if obj.GetAPIVersion() == "apps/v1" {
				override(obj, spec)
			}
		}
		all = append(all, objects...)
	}
	return all, nil
}

// typhas is how many the real operator runs for so many nodes.
func typhas(nodes int) int {
	switch {
	case nodes <= 2:
		return 1
	case nodes <= 4:
		return 2
	}
	return max(3, nodes/200+2)
}

// override puts what the Installation says of a workload's pods into it.
func override(obj *kube.Object, spec map[string]any) {
	field := map[string]string{"calico-node": "calicoNodeDaemonSet", "calico-typha": "typhaDeployment",
		"calico-kube-controllers": "calicoKubeControllersDeployment"}[obj.GetName()]
	wanted, there, _ := unstructured.NestedMap(spec, field, "spec", "template", "spec")
	if !there {
		return
	}
	pod := obj.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	for _, key := range []string{"tolerations", "affinity"} {
		if value, is := wanted[key]; is {
			pod[key] = value
		}
	}
	if selector, is := wanted["nodeSelector"].(map[string]any); is {
		for key, value := range selector {
			pod["nodeSelector"].(map[string]any)[key] = value
		}
	}
	for _, list := range []string{"containers", "initContainers"} {
		given, _ := wanted[list].([]any)
		have, _ := pod[list].([]any)
		for _, g := range given {
			for _, h := range have {
				from, to := g.(map[string]any), h.(map[string]any)
				if from["name"] == to["name"] && from["resources"] != nil {
					to["resources"] = from["resources"]
				}
			}
		}
	}
}

// cniConfig is what calico-node's init container writes on the node.
func cniConfig(spec map[string]any) string {
	network := spec["calicoNetwork"].(map[string]any)
	mtu, _ := network["mtu"].(int64)
	assign := map[bool]string{}
	for _, pool := range network["ipPools"].([]any) {
		assign[isIPv6(pool.(map[string]any))] = "true"
	}
	logging := spec["logging"].(map[string]any)["cni"].(map[string]any)
	calico := map[string]any{
		"type": "calico", "datastore_type": "kubernetes", "mtu": mtu, "nodename_file_optional": false,
		"log_level": logging["logSeverity"], "log_file_path": "/var/log/calico/cni/cni.log",
		"log_file_max_count": logging["logFileMaxCount"], "log_file_max_age": logging["logFileMaxAgeDays"],
		"ipam":                         map[string]any{"type": "calico-ipam", "assign_ipv4": word(assign[false]), "assign_ipv6": word(assign[true])},
		"container_settings":           map[string]any{"allow_ip_forwarding": network["containerIPForwarding"] == "Enabled"},
		"policy":                       map[string]any{"type": "k8s"},
		"policy_setup_timeout_seconds": network["linuxPolicySetupTimeoutSeconds"],
		"endpoint_status_dir":          "/var/run/calico/endpoint-status",
		"kubernetes":                   map[string]any{"kubeconfig": "__KUBECONFIG_FILEPATH__"},
	}
	plugins := []any{calico}
	if network["hostPorts"] == "Enabled" {
		plugins = append(plugins, map[string]any{"type": "portmap", "snat": true, "capabilities": map[string]any{"portMappings": true}})
	}
	raw, _ := json.MarshalIndent(map[string]any{"name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": plugins}, "", "  ")
	return string(raw)
}

func word(assigned string) string {
	if assigned == "" {
		return "false"
	}
	return assigned
}

// nodeEnv is the environment of calico-node.
func nodeEnv(spec map[string]any) []any {
	var env []any
	set := func(name, value string) { env = append(env, map[string]any{"name": name, "value": value}) }
	from := func(name, path string) {
		env = append(env, map[string]any{"name": name, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": path}}})
	}
	network := spec["calicoNetwork"].(map[string]any)
	from("NODENAME", "spec.nodeName")
	from("NAMESPACE", "metadata.namespace")
	for _, pair := range [][2]string{
		{"DATASTORE_TYPE", "kubernetes"},
		{"WAIT_FOR_DATASTORE", "true"},
		{"CLUSTER_TYPE", "k8s,operator"},
		{"CALICO_DISABLE_FILE_LOGGING", "true"},
		{"CALICO_MANAGE_CNI", "true"},
		{"CALICO_NETWORKING_BACKEND", "vxlan"},
		{"NO_DEFAULT_POOLS", "true"},
		{"FELIX_DEFAULTENDPOINTTOHOSTACTION", "ACCEPT"},
		{"FELIX_HEALTHENABLED", "true"},
		{"FELIX_HEALTHPORT", "9099"},
		{"FELIX_TYPHAK8SNAMESPACE", namespace},
		{"FELIX_TYPHAK8SSERVICENAME", "calico-typha"},
		{"FELIX_TYPHACAFILE", "/etc/pki/tls/certs/tigera-ca-bundle.crt"},
		{"FELIX_TYPHACERTFILE", "/node-certs/tls.crt"},
		{"FELIX_TYPHAKEYFILE", "/node-certs/tls.key"},
		{"FELIX_TYPHACN", typhaName},
		// The program here is built without C, and so without what would clean up after eBPF.
		{"FELIX_DebugSkipCTLBCleanup", "true"},
	} {
		set(pair[0], pair[1])
	}
	if mtu, is := network["mtu"].(int64); is {
		set("FELIX_VXLANMTU", fmt.Sprint(mtu))
		set("FELIX_VXLANMTUV6", fmt.Sprint(mtu))
	}
	method := detection(network["nodeAddressAutodetectionV4"])
	set("IP", onlyIf(method, "autodetect", "none"))
	if method != "" {
		set("IP_AUTODETECTION_METHOD", method)
	}
	method = detection(network["nodeAddressAutodetectionV6"])
	set("IP6", onlyIf(method, "autodetect", "none"))
	set("FELIX_IPV6SUPPORT", onlyIf(method, "true", "false"))
	if method != "" {
		set("IP6_AUTODETECTION_METHOD", method)
	}
	return env
}

func onlyIf(condition, then, otherwise string) string {
	if condition != "" {
		return then
	}
	return otherwise
}

// detection is how calico-node finds the node's address. The order is the real one's: firstFound beats kubernetes.
func detection(spec any) string {
	given, _ := spec.(map[string]any)
	text := func(key string) string { value, _ := given[key].(string); return value }
	list, _ := given["cidrs"].([]any)
	switch {
	case text("interface") != "":
		return "interface=" + text("interface")
	case text("skipInterface") != "":
		return "skip-interface=" + text("skipInterface")
	case text("canReach") != "":
		return "can-reach=" + text("canReach")
	case given["firstFound"] == true:
		return "first-found"
	case len(list) > 0:
		var cidrs []string
		for _, cidr := range list {
			cidrs = append(cidrs, cidr.(string))
		}
		return "cidr=" + strings.Join(cidrs, ",")
	case text("kubernetes") == "NodeInternalIP":
		return "kubernetes-internal-ip"
	}
	return ""
}

// The common names by which node and typha know each other.
const typhaName, nodeName = "typha-server", "typha-client"

// certificates has those of node and typha in the cluster, all of one authority.
func (o *operator) certificates(ctx context.Context, installation *kube.Object) error {
	secrets := o.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	complete := true
	for _, name := range []string{"typha-certs", "node-certs"} {
		_, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		complete = complete && err == nil
	}
	if complete {
		return nil
	}
	authority, pairs, err := certs.Make(map[string][]string{typhaName: {"calico-typha.calico-system.svc"}, nodeName: nil})
	if err != nil {
		return err
	}
	bundle := &kube.Object{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "tigera-ca-bundle", "namespace": namespace},
		"data":     map[string]any{"tigera-ca-bundle.crt": string(authority)}}}
	objects := []*kube.Object{bundle}
	for name, common := range map[string]string{"typha-certs": typhaName, "node-certs": nodeName} {
		objects = append(objects, &kube.Object{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
			"metadata":   map[string]any{"name": name, "namespace": namespace},
			"stringData": map[string]any{"tls.crt": string(pairs[common].Cert), "tls.key": string(pairs[common].Key)}}})
	}
	for _, obj := range objects {
		own(obj, installation)
		if err := o.ensure(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// hash is a short name for any value.
func hash(value any) string {
	raw, _ := json.Marshal(value)
	return fmt.Sprintf("%x", sha256.Sum256(raw))[:12]
}
