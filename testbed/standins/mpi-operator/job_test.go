package main

import (
	"strings"
	"testing"
	"time"

	"ipu.fabric/standins/internal/kube"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const example = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: ring, namespace: lab, uid: 1-2}
spec:
  slotsPerWorker: 2
  runPolicy: {backoffLimit: 0}
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {containers: [{name: launcher, image: x, command: [mpirun]}]}}}
    Worker:
      replicas: 3
      template:
        metadata: {annotations: {k8s.v1.cni.cncf.io/networks: rdma-net}}
        spec: {containers: [{name: worker, image: x}]}
`

func read(t *testing.T, change func(spec map[string]any)) (*kube.Object, *mpiJob) {
	t.Helper()
	obj := &kube.Object{}
	if err := yaml.Unmarshal([]byte(example), &obj.Object); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(obj.Object["spec"].(map[string]any))
	}
	j, err := parse(obj)
	if err != nil {
		t.Fatal(err)
	}
	return obj, j
}

func TestFaults(t *testing.T) {
	table := []struct {
		name   string
		change func(spec map[string]any)
		want   string
	}{
		{"ring", nil, ""},
		{strings.Repeat("r", 60), nil, "invalid DNS label"},
		{"ring", func(s map[string]any) { s["mpiImplementation"] = "Intel" }, "mpiImplementation"},
		{"ring", func(s map[string]any) { s["runPolicy"] = map[string]any{"cleanPodPolicy": "Workers"} }, "cleanPodPolicy"},
		{"ring", func(s map[string]any) { delete(s["mpiReplicaSpecs"].(map[string]any), "Launcher") }, "Launcher"},
	}
	for _, row := range table {
		_, j := read(t, row.change)
		got := strings.Join(j.faults(row.name), "; ")
		if (row.want == "") != (got == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: want %q in %q", row.name, row.want, got)
		}
	}
}

func TestHostFile(t *testing.T) {
	got, _, _ := unstructured.NestedString(hostFile(read(t, nil)).Object, "data", "hostfile")
	if want := "ring-worker-0.ring.lab.svc slots=2\n"; !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 3 {
		t.Errorf("got %q", got)
	}
}

func TestWorker(t *testing.T) {
	obj, j := read(t, nil)
	pod := worker(obj, j, 2)
	container := pod.Object["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	command := container["command"].([]any)
	if pod.GetName() != "ring-worker-2" || command[0] != "/usr/sbin/sshd" || pod.GetLabels()[roleLabel] != "worker" {
		t.Errorf("%s runs %v with %v", pod.GetName(), command, pod.GetLabels())
	}
	if pod.GetAnnotations()["k8s.v1.cni.cncf.io/networks"] != "rdma-net" {
		t.Errorf("annotations: %v", pod.GetAnnotations())
	}
}

func TestLauncher(t *testing.T) {
	job := launcher(read(t, nil))
	limit, found, _ := unstructured.NestedInt64(job.Object, "spec", "backoffLimit")
	policy, _, _ := unstructured.NestedString(job.Object, "spec", "template", "spec", "restartPolicy")
	if !found || limit != 0 || policy != "OnFailure" {
		t.Errorf("backoffLimit %d (%v), restartPolicy %s", limit, found, policy)
	}
}

func TestRunningEndsWithTheJob(t *testing.T) {
	var s status
	s.set("Running", "True", "MPIJobRunning", "", time.Now())
	s.set("Failed", "True", "BackoffLimitExceeded/", "", time.Now())
	if s.has("Running") || !s.has("Failed") {
		t.Errorf("%+v", s.Conditions)
	}
}

// A job was deleted and created again, and the garbage collector has not removed what the first one had.
func TestObjectsOfAPredecessor(t *testing.T) {
	first, j := read(t, nil)
	second, _ := read(t, nil)
	second.SetUID("3-4")
	if err := managed(first, launcher(first, j)); err != nil {
		t.Errorf("the job's own launcher: %v", err)
	}
	if err := managed(second, launcher(first, j)); err == nil || !strings.Contains(err.Error(), "ring-launcher") {
		t.Errorf("want an error that names the launcher, got %v", err)
	}
	pods := controlled(second, []kube.Object{*worker(first, j, 0), *worker(second, j, 1)})
	if len(pods) != 1 || pods[0].GetName() != "ring-worker-1" {
		t.Errorf("want ring-worker-1 alone, got %d pods", len(pods))
	}
	if pods := controlled(nil, []kube.Object{*worker(first, j, 0)}); len(pods) != 0 {
		t.Error("without a launcher there are pods of a launcher")
	}
}
