package main

import (
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"ipu.fabric/standins/internal/kube"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

//go:embed manifests
var manifests embed.FS

// component is a part of the policy: where its spec is, the manifest that deploys it, and its name in appliedStates.
type component struct {
	state, manifest, daemonSet string
	path                       []string
	late                       bool
	until                      float64 // the first release without it
}

var devicePlugin = component{state: "state-RDMA-device-plugin", manifest: "rdma-shared-dp", daemonSet: "rdma-shared-dp-ds",
	path: []string{"spec", "rdmaSharedDevicePlugin"}}

var components = []component{
	{state: "state-multus-cni", manifest: "multus", daemonSet: "kube-multus-ds",
		path: []string{"spec", "secondaryNetwork", "multus"}},
	{state: "state-container-networking-plugins", manifest: "cni-plugins", daemonSet: "cni-plugins-ds",
		path: []string{"spec", "secondaryNetwork", "cniPlugins"}},
	{state: "state-whereabouts-cni", manifest: "whereabouts", daemonSet: "whereabouts",
		path: []string{"spec", "secondaryNetwork", "ipamPlugin"}, until: 25.10},
	devicePlugin,
	{state: "state-nv-ipam-cni", manifest: "nv-ipam", daemonSet: "nv-ipam-node",
		path: []string{"spec", "nvIpam"}, late: true},
}

type options struct {
	namespace, cniBin, cniConfig string
	release                      float64 // 26.4.2 -> 26.04, so that releases compare
}

func optionsFromEnvironment() options {
	return options{
		namespace: os.Getenv("POD_NAMESPACE"),
		cniBin:    fallback(os.Getenv("CNI_BIN_DIR"), "/opt/cni/bin"),
		cniConfig: fallback(os.Getenv("CNI_NETWORK_DIR"), "/etc/cni/net.d"),
		release:   parseRelease(os.Getenv("OPERATOR_RELEASE")),
	}
}

func parseRelease(version string) float64 {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 {
		return 0
	}
	major, _ := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1])
	return float64(major) + float64(minor)/100
}

func fallback(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// view is what the manifests' templates see.
type view struct {
	Namespace, Image, CNIBin, CNIConfig, Config string
	Suffix, Owner                               string            // of a NicNodePolicy's objects, and the label ds-owner
	NodeSelector                                map[string]string // of a NicNodePolicy
	PullSecrets                                 []map[string]string
	Affinity, DeploymentAffinity                map[string]any
	Tolerations, DeploymentTolerations          []any
	RestartOnChange                             map[string]string
	SkipExcludedBlocks                          bool
	resources                                   []any
}

// Resources are those that the policy gives a container, else the defaults of the real manifests.
func (v view) Resources(container, cpu, memory string) map[string]any {
	for _, r := range v.resources {
		if given := r.(map[string]any); given["name"] == container {
			return map[string]any{"requests": given["requests"], "limits": given["limits"]}
		}
	}
	if memory == "" {
		return map[string]any{}
	}
	return map[string]any{"requests": map[string]any{"cpu": cpu, "memory": "50Mi"},
		"limits": map[string]any{"memory": memory}}
}

func render(c component, policy *kube.Object, spec map[string]any, o options) ([]*kube.Object, error) {
	text, err := manifests.ReadFile("manifests/" + c.manifest + ".yaml")
	if err != nil {
		return nil, err
	}
	global, _, _ := unstructured.NestedMap(policy.Object, "spec", "global")
	field := func(name string) string {
		own, _ := spec[name].(string)
		common, _ := global[name].(string)
		return fallback(own, common)
	}
	v := view{
		Namespace: o.namespace, CNIBin: o.cniBin, CNIConfig: o.cniConfig,
		Image:                 fmt.Sprintf("%s/%s:%s", field("repository"), field("image"), field("version")),
		Config:                field("config"),
		Suffix:                suffix(policy),
		Owner:                 owner(policy),
		PullSecrets:           []map[string]string{},
		Affinity:              affinity(policy, "nodeAffinity"),
		DeploymentAffinity:    affinity(policy, "deploymentNodeAffinity"),
		Tolerations:           tolerations(policy, "tolerations", "nvidia.com/gpu"),
		DeploymentTolerations: tolerations(policy, "deploymentTolerations", "nvidia.com/gpu", "node-role.kubernetes.io/control-plane"),
		RestartOnChange:       map[string]string{},
		SkipExcludedBlocks:    o.release >= 26.01,
	}
	v.resources, _ = spec["containerResources"].([]any)
	v.NodeSelector, _, _ = unstructured.NestedStringMap(policy.Object, "spec", "nodeSelector")
	secrets, _, _ := unstructured.NestedStringSlice(spec, "imagePullSecrets")
	for _, name := range secrets {
		v.PullSecrets = append(v.PullSecrets, map[string]string{"name": name})
	}
	if o.release >= 26.01 { // before it, a new config needs a restart by hand
		v.RestartOnChange["checksum/config"] = fmt.Sprintf("%x", sha256.Sum256([]byte(v.Config)))
	}
	return kube.Render(string(text), v)
}

// suffix ends the names of a NicNodePolicy's objects.
func suffix(policy *kube.Object) string {
	if policy.GetKind() == "NicNodePolicy" {
		return "-" + policy.GetName()
	}
	return ""
}

// owner is what the label ds-owner says.
func owner(policy *kube.Object) string {
	if policy.GetKind() == "NicNodePolicy" {
		return "nnp-" + policy.GetName()
	}
	return policy.GetKind()
}

// overlap says which node two NicNodePolicies select. It is empty where there is none. An empty selector takes all nodes.
func overlap(policies, nodes []kube.Object) string {
	for _, node := range nodes {
		var names []string
		for _, policy := range policies {
			selector, _, _ := unstructured.NestedStringMap(policy.Object, "spec", "nodeSelector")
			if labels.SelectorFromSet(selector).Matches(labels.Set(node.GetLabels())) {
				names = append(names, policy.GetName())
			}
		}
		if len(names) > 1 {
			return fmt.Sprintf("node selector overlap detected: node %q is selected by policies: [%s]", node.GetName(), strings.Join(names, ", "))
		}
	}
	return ""
}

func affinity(policy *kube.Object, field string) map[string]any {
	given, ok, _ := unstructured.NestedMap(policy.Object, "spec", field)
	if !ok {
		return map[string]any{}
	}
	return map[string]any{"nodeAffinity": given}
}

func tolerations(policy *kube.Object, field string, always ...string) []any {
	given, _, _ := unstructured.NestedSlice(policy.Object, "spec", field)
	for _, key := range always {
		given = append(given, map[string]any{"key": key, "operator": "Exists", "effect": "NoSchedule"})
	}
	return given
}

// attachment is the NetworkAttachmentDefinition of a MacvlanNetwork. The IPAM text is pasted in without its white
// space and without a look at it.
func attachment(network *kube.Object) *kube.Object {
	text := func(name string) string {
		value, _, _ := unstructured.NestedString(network.Object, "spec", name)
		return value
	}
	config := fmt.Sprintf(`{ "cniVersion":"0.3.1", "name":%q, "type":"macvlan",`, network.GetName())
	if master := text("master"); master != "" {
		config += fmt.Sprintf(`"master": %q,`, master)
	}
	if mode := text("mode"); mode != "" {
		config += fmt.Sprintf(`"mode" : %q,`, mode)
	}
	if mtu, _, _ := unstructured.NestedInt64(network.Object, "spec", "mtu"); mtu != 0 {
		config += fmt.Sprintf(`"mtu" : %d,`, mtu)
	}
	config += fmt.Sprintf(`"ipam":%s }`, fallback(strings.Join(strings.Fields(text("ipam")), ""), "{}"))
	nad := &kube.Object{Object: map[string]any{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
		"spec": map[string]any{"config": config}}}
	nad.SetName(network.GetName())
	nad.SetNamespace(fallback(text("networkNamespace"), "default"))
	return nad
}

const revisionNote = "nvidia.network-operator.revision"

// stamp notes on a rendered object what it was rendered from.
func stamp(obj *kube.Object) error {
	raw, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	hash := fnv.New32a()
	hash.Write(raw)
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[revisionNote] = strconv.FormatUint(uint64(hash.Sum32()), 10)
	obj.SetAnnotations(annotations)
	return nil
}

// inSync is what the operator believes of an object by its note alone, whatever else the object says.
func inSync(now, rendered *kube.Object) bool {
	note := now.GetAnnotations()[revisionNote]
	return note != "" && note == rendered.GetAnnotations()[revisionNote]
}

// waitLabels is the patch that gives a node the labels which the real operator would give it: nothing has to be waited for
// on a node with a Mellanox NIC, and other nodes have no such label. It is empty when the node is as it should be.
func waitLabels(labels map[string]string, release float64) string {
	changes := map[string]any{}
	for _, name := range []string{waitDriver, waitNIC} {
		value, has := labels[name]
		switch wanted := labels[mellanoxNIC] == "true" && (name != waitNIC || release >= 25.10); {
		case wanted && value != "false":
			changes[name] = "false"
		case !wanted && has:
			changes[name] = nil
		}
	}
	if len(changes) == 0 {
		return ""
	}
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"labels": changes}})
	return string(patch)
}

// workloadReady is true for anything that has no pods. A DaemonSet that wants no pods is never ready.
func workloadReady(obj *kube.Object) bool {
	number := func(path ...string) int64 {
		value, _, _ := unstructured.NestedInt64(obj.Object, path...)
		return value
	}
	if number("status", "observedGeneration") < obj.GetGeneration() {
		return obj.GetKind() != "DaemonSet" && obj.GetKind() != "Deployment"
	}
	switch obj.GetKind() {
	case "DaemonSet":
		desired := number("status", "desiredNumberScheduled")
		return desired > 0 && number("status", "numberAvailable") == desired &&
			number("status", "updatedNumberScheduled") == desired
	case "Deployment":
		return number("status", "availableReplicas") >= number("spec", "replicas") &&
			number("status", "updatedReplicas") >= number("spec", "replicas")
	}
	return true
}

func sameJSON(a, b any) bool {
	left, _ := json.Marshal(a)
	right, _ := json.Marshal(b)
	return string(left) == string(right)
}
