package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"ipu.fabric/standins/internal/kube"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	obj := &kube.Object{}
	raw, err := yaml.YAMLToJSON([]byte("{apiVersion: operator.tigera.io/v1, kind: Installation, metadata: {name: default}, spec: " + text + "}"))
	if err == nil {
		err = obj.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj.Object
}

func filled(t *testing.T, text string) map[string]any {
	t.Helper()
	installation := parse(t, text)
	fillDefaults(installation["spec"].(map[string]any))
	return installation
}

func TestDefaultsAreWrittenOnce(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{calicoNetwork: {bgp: Disabled, ipPools: [{cidr: 10.244.0.0/16, encapsulation: VXLAN}, {cidr: "fd00::/56"}]}}`,
	} {
		once := filled(t, text)
		twice := kube.Object{Object: once}
		again := twice.DeepCopy().Object
		fillDefaults(again["spec"].(map[string]any))
		if !reflect.DeepEqual(once, again) {
			t.Errorf("%s: the second time changes %v into %v", text, once, again)
		}
	}
}

func TestDefaultsOfPools(t *testing.T) {
	spec := filled(t, `{calicoNetwork: {nodeAddressAutodetectionV4: {kubernetes: NodeInternalIP}, ipPools: [{cidr: 10.244.0.0/16, encapsulation: VXLAN}, {cidr: "fd00::/56"}]}}`)
	pools, _, _ := unstructured.NestedSlice(spec, "spec", "calicoNetwork", "ipPools")
	want := parse(t, `[
	  {name: default-ipv4-ippool, cidr: 10.244.0.0/16, encapsulation: VXLAN, blockSize: 26, natOutgoing: Enabled, nodeSelector: all(),
	   allowedUses: [Workload, Tunnel], assignmentMode: Automatic, disableBGPExport: false, disableNewAllocations: false},
	  {name: default-ipv6-ippool, cidr: "fd00::/56", encapsulation: None, blockSize: 122, natOutgoing: Disabled, nodeSelector: all(),
	   allowedUses: [Workload, Tunnel], assignmentMode: Automatic, disableBGPExport: false, disableNewAllocations: false}]`)["spec"]
	if !reflect.DeepEqual(any(pools), want) {
		t.Errorf("%v\nwant\n%v", pools, want)
	}
	for field, want := range map[string]string{"nodeAddressAutodetectionV4": "kubernetes-internal-ip", "nodeAddressAutodetectionV6": "first-found"} {
		given, _, _ := unstructured.NestedFieldNoCopy(spec, "spec", "calicoNetwork", field)
		if got := detection(given); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
}

func TestPoolsAsTheNodeReadsThem(t *testing.T) {
	installation := &kube.Object{Object: filled(t, `{calicoNetwork: {ipPools: [{cidr: 10.244.0.0/16, encapsulation: VXLANCrossSubnet}]}}`)}
	spec := pools(installation)[0].Object["spec"].(map[string]any)
	if spec["vxlanMode"] != "CrossSubnet" || spec["ipipMode"] != "Never" || spec["natOutgoing"] != true || spec["disabled"] != false {
		t.Errorf("%v", spec)
	}
}

func TestDetection(t *testing.T) {
	for text, want := range map[string]string{
		`{firstFound: true, kubernetes: NodeInternalIP}`:  "first-found",
		`{firstFound: false, kubernetes: NodeInternalIP}`: "kubernetes-internal-ip",
		`{interface: eth0, firstFound: true}`:             "interface=eth0",
		`{cidrs: [10.0.0.0/8, 192.168.0.0/16]}`:           "cidr=10.0.0.0/8,192.168.0.0/16",
		`{}`:                                              "",
	} {
		if got := detection(parse(t, text)["spec"]); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestWorkloads(t *testing.T) {
	installation := &kube.Object{Object: filled(t, `{registry: mirror.example, imagePrefix: my-,
	  typhaDeployment: {spec: {template: {spec: {nodeSelector: {a: b}, containers: [{name: calico-typha, resources: {limits: {memory: 1Gi}}}]}}}}}`)}
	objects, err := render(installation, 5)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, obj := range objects {
		if obj.GetAPIVersion() != "apps/v1" {
			continue
		}
		raw, _ := yaml.Marshal(obj.Object)
		seen[obj.GetName()] = string(raw)
	}
	for name, parts := range map[string][]string{
		"calico-node":             {"image: mirror.example/calico/my-node:v" + release, "image: mirror.example/calico/my-cni:v" + release, "value: first-found"},
		"calico-typha":            {"image: mirror.example/calico/my-typha:v" + release, "memory: 1Gi", "a: b", "kubernetes.io/os: linux", "replicas: 3"},
		"calico-kube-controllers": {"image: mirror.example/calico/my-kube-controllers:v" + release},
	} {
		for _, part := range parts {
			if !strings.Contains(seen[name], part) {
				t.Errorf("%s has no `%s`:\n%s", name, part, seen[name])
			}
		}
	}
}

func TestMissing(t *testing.T) {
	for text, want := range map[string]string{
		`kind: DaemonSet, status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}`:                       ``,
		`kind: DaemonSet, status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1, numberUnavailable: 1}`: `DaemonSet "a/b" is not available (awaiting 1 nodes)`,
		`kind: DaemonSet, status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}`:                       `DaemonSet "a/b" update is rolling out (1 out of 2 updated)`,
		`kind: DaemonSet`: `DaemonSet "a/b" is not yet scheduled on any nodes`,
		`kind: Deployment, spec: {replicas: 1}, status: {observedGeneration: 1, availableReplicas: 1}`:                                      ``,
		`kind: Deployment, spec: {replicas: 2}, status: {observedGeneration: 1, availableReplicas: 1, replicas: 2}`:                         `Deployment "a/b" is not available (awaiting 1 replicas)`,
		`kind: Deployment, spec: {replicas: 1}, status: {observedGeneration: 1, availableReplicas: 1, replicas: 2, unavailableReplicas: 1}`: `Deployment "a/b" is not available (awaiting 1 replicas)`,
		`kind: FelixConfiguration`: ``,
	} {
		obj := &kube.Object{}
		raw, err := yaml.YAMLToJSON([]byte("{apiVersion: apps/v1, metadata: {name: b, namespace: a, generation: 1}, " + text + "}"))
		if err == nil {
			err = obj.UnmarshalJSON(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := missing(obj); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestTyphas(t *testing.T) {
	for nodes, want := range map[int]int{1: 1, 2: 1, 3: 2, 5: 3, 400: 4} {
		if got := typhas(nodes); got != want {
			t.Errorf("%d nodes: %s, want %d", nodes, fmt.Sprint(got), want)
		}
	}
}
