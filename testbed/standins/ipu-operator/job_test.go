package main

import (
	"encoding/json"
	"testing"

	"ipu.fabric/standins/internal/ipu"
	"ipu.fabric/standins/internal/kube"
)

func object(t *testing.T, spec string) *kube.Object {
	t.Helper()
	obj := &kube.Object{}
	text := `{"apiVersion":"graphcore.ai/v1alpha1","kind":"IPUJob","metadata":{"name":"mnist","namespace":"jobs"},"spec":` + spec + `}`
	if err := json.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

const workers = `"workers":{"template":{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"rdma-net"}},` +
	`"spec":{"containers":[{"name":"c","image":"i","command":["train"]}]}}}`

func TestValidate(t *testing.T) {
	for spec, valid := range map[string]bool{
		`{"jobInstances":1,"ipusPerJobInstance":"1",` + workers + `}`:                                                      true,
		`{"jobInstances":4,"ipusPerJobInstance":"64","workersPerJobInstance":"2",` + workers + `}`:                         true,
		`{"jobInstances":1,"ipusPerJobInstance":"3",` + workers + `}`:                                                      false,
		`{"jobInstances":1,"ipusPerJobInstance":"128",` + workers + `}`:                                                    false,
		`{"jobInstances":1,"ipusPerJobInstance":"many",` + workers + `}`:                                                   false,
		`{"jobInstances":0,"ipusPerJobInstance":"1",` + workers + `}`:                                                      false,
		`{"jobInstances":1,"ipusPerJobInstance":"1","workers":{"template":{}}}`:                                            false,
		`{"jobInstances":2,"ipusPerJobInstance":"1","launcher":{"command":["x"]},` + workers + `}`:                         false,
		`{"jobInstances":1,"ipusPerJobInstance":"1","launcher":{"command":["x"]},"interactive":{"ttl":9},` + workers + `}`: false,
	} {
		j, err := parseJob(object(t, spec))
		if err != nil {
			t.Fatal(err)
		}
		if err := j.validate(); (err == nil) != valid {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestRestarts(t *testing.T) {
	for _, c := range []struct {
		policy string
		code   int64
		want   bool
	}{
		{`{"type":"Never"}`, 1, false},
		{`{"type":"Always"}`, 0, true},
		{`{"type":"OnFailure"}`, 0, false},
		{`{"type":"OnFailure"}`, 1, true},
		{`{"type":"OnFailure","backOffLimit":0}`, 1, false},
		{`{"type":"ExitCode","exitCodes":"5,128-255"}`, 137, true},
		{`{"type":"ExitCode","exitCodes":"5,128-255"}`, 5, true},
		{`{"type":"ExitCode","exitCodes":"5,128-255"}`, 6, false},
	} {
		j, err := parseJob(object(t, `{"restartPolicy":`+c.policy+`}`))
		if err != nil || j.restarts(c.code) != c.want {
			t.Errorf("%s, exit code %d: want %v (%v)", c.policy, c.code, c.want, err)
		}
	}
}

func TestPods(t *testing.T) {
	obj := object(t, `{"jobInstances":1,"ipusPerJobInstance":"2","launcher":{"command":["mpirun"]},`+workers+`}`)
	j, err := parseJob(obj)
	if err != nil {
		t.Fatal(err)
	}
	partition := ipu.Partition{Name: "p-mnist-jobs-0", Host: "10.5.0.20", Port: "8090", Label: "ipunode", Value: "true"}
	w := worker(obj, j, 0, partition, settings{})
	l := launcher(obj, j, partition, settings{})
	for _, c := range []struct {
		pod           *kube.Object
		name, command string
	}{{w, "mnist-worker-0", "sleep"}, {l, "mnist-launcher", "mpirun"}} {
		command := containersOf(c.pod.Object)[0].(map[string]any)["command"].([]any)[0]
		if c.pod.GetName() != c.name || command != c.command ||
			c.pod.GetAnnotations()["k8s.v1.cni.cncf.io/networks"] != "rdma-net" || c.pod.GetLabels()[jobLabel] != "mnist" {
			t.Errorf("%v", c.pod.Object)
		}
		if spec := c.pod.Object["spec"].(map[string]any); spec["hostNetwork"] != nil {
			t.Errorf("host network: %v", spec)
		}
	}
}
