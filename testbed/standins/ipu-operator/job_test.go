package main

import (
	"fmt"
	"testing"

	"ipu.fabric/standins/internal/ipu"
	"ipu.fabric/standins/internal/kube"
)

func object(t *testing.T, spec string) *kube.Object {
	t.Helper()
	obj := &kube.Object{}
	text := `{"apiVersion":"graphcore.ai/v1alpha1","kind":"IPUJob","metadata":{"name":"mnist","namespace":"jobs"},"spec":` + spec + `}`
	if err := obj.UnmarshalJSON([]byte(text)); err != nil {
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
		{`{"type":"ExitCode","exitCodes":"0-255"}`, 0, false},
		{`{"type":"Always"},"cleanPodPolicy":"All"`, 1, false},
		{`{"type":"Always"},"cleanPodPolicy":"Workers"`, 1, true},
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

func TestRestartsEnd(t *testing.T) {
	for _, c := range []struct {
		policy string
		count  int64
		want   bool
	}{
		{`{"type":"Always"}`, 2, true},
		{`{"type":"Always"}`, 3, false},
		{`{"type":"OnFailure","backOffLimit":5}`, 4, true},
		{`{"type":"OnFailure","backOffLimit":5}`, 5, false},
	} {
		j, err := parseJob(object(t, `{"restartPolicy":`+c.policy+`}`))
		if err != nil {
			t.Fatal(err)
		}
		j.Status.RestartCount = c.count
		if j.restarts(1) != c.want {
			t.Errorf("%s after %d restarts: want %v", c.policy, c.count, c.want)
		}
	}
}

// podIn makes a pod with this phase, and with one container that ended with the exit code if that is not 0.
func podIn(phase, statuses string, code int64) *kube.Object {
	status := map[string]any{"phase": phase}
	if code != 0 {
		ended := map[string]any{"terminated": map[string]any{"exitCode": code}}
		status[statuses] = []any{map[string]any{"state": ended}}
	}
	return &kube.Object{Object: map[string]any{"status": status}}
}

func TestProgress(t *testing.T) {
	const two = `{"jobInstances":2,` + workers + `}`
	const launched = `{"jobInstances":1,"launcher":{"command":["x"]},` + workers + `}`
	const interactive = `{"jobInstances":1,"interactive":{"ttl":60},` + workers + `}`
	running, done := podIn("Running", "", 0), podIn("Succeeded", "", 0)
	failed := podIn("Failed", "containerStatuses", 7)
	unready := podIn("Failed", "initContainerStatuses", 9)
	leaving := podIn("Failed", "containerStatuses", 7)
	leaving.Object["metadata"] = map[string]any{"deletionTimestamp": "2026-11-21T10:00:00Z"}
	type pods = map[string]*kube.Object
	for name, c := range map[string]struct {
		spec string
		pods pods
		want string
		code int64
	}{
		"no pod":              {two, pods{}, "Pending", 0},
		"one of two":          {two, pods{"mnist-worker-0": running}, "Pending", 0},
		"both":                {two, pods{"mnist-worker-0": running, "mnist-worker-1": running}, "Running", 0},
		"one has ended":       {two, pods{"mnist-worker-0": done, "mnist-worker-1": running}, "Running", 0},
		"both have ended":     {two, pods{"mnist-worker-0": done, "mnist-worker-1": done}, "Completed", 0},
		"one has failed":      {two, pods{"mnist-worker-0": failed, "mnist-worker-1": running}, "Failed", 7},
		"a restart has begun": {two, pods{"mnist-worker-0": leaving, "mnist-worker-1": running}, "Pending", 0},
		"workers sleep":       {launched, pods{"mnist-worker-0": running}, "Pending", 0},
		"launcher runs":       {launched, pods{"mnist-worker-0": running, "mnist-launcher": running}, "Running", 0},
		"launcher has ended":  {launched, pods{"mnist-worker-0": running, "mnist-launcher": done}, "Completed", 0},
		"launcher has failed": {launched, pods{"mnist-worker-0": running, "mnist-launcher": failed}, "Failed", 7},
		"init has failed":     {launched, pods{"mnist-launcher": unready}, "Failed", 9},
		"session":             {interactive, pods{"mnist-launcher": running}, "Running", 0},
		"session is over":     {interactive, pods{"mnist-launcher": done}, "Completed", 0},
	} {
		obj := object(t, c.spec)
		j, err := parseJob(obj)
		if err != nil {
			t.Fatal(err)
		}
		if state, code := progress(obj, j, c.pods); state != c.want || code != c.code {
			t.Errorf("%s: %s, exit code %d", name, state, code)
		}
	}
}

func TestInteractiveLauncherLivesForItsTTL(t *testing.T) {
	obj := object(t, `{"jobInstances":1,"ipusPerJobInstance":"2","interactive":{"ttl":90},`+workers+`}`)
	j, err := parseJob(obj)
	if err != nil {
		t.Fatal(err)
	}
	command := containersOf(launcher(obj, j, ipu.Partition{}, settings{}).Object)[0].(map[string]any)["command"]
	if fmt.Sprint(command) != "[sleep 90]" {
		t.Errorf("%v", command)
	}
}
