package main

import (
	"strings"
	"testing"

	"ipu.fabric/standins/internal/kube"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *kube.Object {
	t.Helper()
	obj := &kube.Object{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = obj.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestAttachment(t *testing.T) {
	for spec, want := range map[string]string{
		`{networkNamespace: jobs, master: eth1, mode: bridge, mtu: 1500, ipam: '{ "type": "static" }'}`: `jobs { "cniVersion":"0.3.1", "name":"rdma-net", "type":"macvlan",` +
			`"master": "eth1","mode" : "bridge","mtu" : 1500,"ipam":{"type":"static"} }`,
		`{}`:             `default { "cniVersion":"0.3.1", "name":"rdma-net", "type":"macvlan","ipam":{} }`,
		`{ipam: "{bad"}`: `default { "cniVersion":"0.3.1", "name":"rdma-net", "type":"macvlan","ipam":{bad }`,
	} {
		nad := attachment(object(t, "{apiVersion: mellanox.com/v1alpha1, kind: MacvlanNetwork, metadata: {name: rdma-net}, spec: "+spec+"}"))
		config, _, _ := unstructured.NestedString(nad.Object, "spec", "config")
		if got := nad.GetNamespace() + " " + config; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", spec, got, want)
		}
	}
}

func TestRevision(t *testing.T) {
	render := func(mtu string) *kube.Object {
		nad := attachment(object(t, "{apiVersion: mellanox.com/v1alpha1, kind: MacvlanNetwork, metadata: {name: a}, spec: {mtu: "+mtu+"}}"))
		if err := stamp(nad); err != nil {
			t.Fatal(err)
		}
		return nad
	}
	edited := render("9000")
	if err := unstructured.SetNestedField(edited.Object, "{}", "spec", "config"); err != nil {
		t.Fatal(err)
	}
	if !inSync(edited, render("9000")) || inSync(edited, render("1500")) {
		t.Error("an edit is noticed, or a new rendering is not")
	}
	edited.SetAnnotations(nil)
	if inSync(edited, render("9000")) {
		t.Error("without its note an object counts as rendered")
	}
}

func TestWorkloadReady(t *testing.T) {
	for text, want := range map[string]bool{
		`{kind: ConfigMap, apiVersion: v1}`:      true,
		`{kind: DaemonSet, apiVersion: apps/v1}`: false, // it wants no pods
		`{kind: DaemonSet, apiVersion: apps/v1, metadata: {generation: 2}, status: {observedGeneration: 1, desiredNumberScheduled: 2, numberAvailable: 2, updatedNumberScheduled: 2}}`: false,
		`{kind: DaemonSet, apiVersion: apps/v1, metadata: {generation: 2}, status: {observedGeneration: 2, desiredNumberScheduled: 2, numberAvailable: 2, updatedNumberScheduled: 2}}`: true,
		`{kind: DaemonSet, apiVersion: apps/v1, status: {desiredNumberScheduled: 2, numberAvailable: 1, updatedNumberScheduled: 2}}`:                                                   false,
		`{kind: Deployment, apiVersion: apps/v1, spec: {replicas: 1}, status: {availableReplicas: 1, updatedReplicas: 1}}`:                                                             true,
		`{kind: Deployment, apiVersion: apps/v1, spec: {replicas: 1}, status: {updatedReplicas: 1}}`:                                                                                   false,
	} {
		if got := workloadReady(object(t, text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestWaitLabels(t *testing.T) {
	nic := map[string]string{mellanoxNIC: "true"}
	both := map[string]string{mellanoxNIC: "true", waitDriver: "false", waitNIC: "false"}
	for _, c := range []struct {
		labels  map[string]string
		release float64
		want    string
	}{
		{nil, 26.04, ""},
		{nic, 26.04, `{"metadata":{"labels":{"` + waitDriver + `":"false","` + waitNIC + `":"false"}}}`},
		{nic, 25.07, `{"metadata":{"labels":{"` + waitDriver + `":"false"}}}`},
		{both, 25.10, ""},
		{map[string]string{waitDriver: "false"}, 26.04, `{"metadata":{"labels":{"` + waitDriver + `":null}}}`},
	} {
		if got := waitLabels(c.labels, c.release); got != c.want {
			t.Errorf("%v, %v: %s, want %s", c.labels, c.release, got, c.want)
		}
	}
}

func TestEveryManifestRenders(t *testing.T) {
	policy := object(t, "{apiVersion: mellanox.com/v1alpha1, kind: NicClusterPolicy, metadata: {name: nic-cluster-policy}, "+
		"spec: {global: {repository: registry.example/a, version: v1}, tolerations: [{operator: Exists}]}}")
	for _, c := range components {
		for _, spec := range []map[string]any{{"image": "x", "config": `{"a":"b"}`}, nil} {
			objects, err := render(c, policy, spec, options{namespace: "operator", release: 26.04})
			if err != nil {
				t.Errorf("%s: %v", c.manifest, err)
				continue
			}
			last := objects[len(objects)-1]
			containers, _, _ := unstructured.NestedSlice(last.Object, "spec", "template", "spec", "containers")
			image := containers[0].(map[string]any)["image"].(string)
			if last.GetName() != c.daemonSet || spec != nil && !strings.HasPrefix(image, "registry.example/a/x:v1") {
				t.Errorf("%s: last object %s with image %s", c.manifest, last.GetName(), image)
			}
		}
	}
}

func TestParseRelease(t *testing.T) {
	if !(parseRelease("25.10.0") > parseRelease("25.7.0") && parseRelease("26.1.2") >= 26.01 && parseRelease("25.10.0") < 26.01) {
		t.Error("releases do not compare")
	}
}

func TestNodePolicies(t *testing.T) {
	policy := func(name, selector string) kube.Object {
		return *object(t, "{apiVersion: mellanox.com/v1alpha1, kind: NicNodePolicy, metadata: {name: "+name+"}, spec: {nodeSelector: "+selector+"}}")
	}
	nodes := []kube.Object{
		*object(t, "{apiVersion: v1, kind: Node, metadata: {name: w1, labels: {group: a}}}"),
		*object(t, "{apiVersion: v1, kind: Node, metadata: {name: w2, labels: {group: b}}}"),
	}
	a, b := policy("a", "{group: a}"), policy("b", "{group: b}")
	if said := overlap([]kube.Object{a, b}, nodes); said != "" {
		t.Error(said)
	}
	want := `node selector overlap detected: node "w1" is selected by policies: [a, all]`
	if said := overlap([]kube.Object{a, b, policy("all", "{}")}, nodes); said != want {
		t.Error(said)
	}
	objects, err := render(devicePlugin, &a, map[string]any{"repository": "r", "image": "i", "version": "v", "config": "{}"}, options{namespace: "n", release: 26.07})
	if err != nil {
		t.Fatal(err)
	}
	selector, _, _ := unstructured.NestedStringMap(objects[1].Object, "spec", "template", "spec", "nodeSelector")
	if objects[0].GetName() != "rdma-devices-a" || objects[1].GetName() != "rdma-shared-dp-ds-a" || selector["group"] != "a" ||
		objects[1].GetLabels()["ds-owner"] != "nnp-a" {
		t.Errorf("%v %v", objects, selector)
	}
}
