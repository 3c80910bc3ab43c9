package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ipu.fabric/standins/internal/ipu"
	"ipu.fabric/standins/internal/kube"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const mpiSpec = `{"jobInstances":1,"ipusPerJobInstance":"2","workersPerJobInstance":"2",` +
	`"launcher":{"command":["mpirun","train"],"env":[{"name":"A","value":"b"}]},` + workers + `}`

func parsed(t *testing.T, spec string) (*kube.Object, *job) {
	t.Helper()
	obj := object(t, spec)
	obj.SetUID("1-2")
	j, err := parseJob(obj)
	if err != nil {
		t.Fatal(err)
	}
	return obj, j
}

func TestMPIObjects(t *testing.T) {
	obj, j := parsed(t, mpiSpec)
	kinds := map[string]*kube.Object{}
	for _, made := range mpiObjects(obj, j) {
		kinds[made.GetKind()] = made
		if made.GetNamespace() != "jobs" || made.GetOwnerReferences()[0].UID != "1-2" {
			t.Errorf("%v", made.Object["metadata"])
		}
	}
	hosts, _, _ := unstructured.NestedString(kinds["ConfigMap"].Object, "data", "hostfile")
	if hosts != "mnist-worker-0 slots=1\nmnist-worker-1 slots=1\n" {
		t.Errorf("hosts: %q", hosts)
	}
	rules, _, _ := unstructured.NestedSlice(kinds["Role"].Object, "rules")
	if text := fmt.Sprint(rules); !strings.Contains(text, "resources:[pods/exec] verbs:[create]") {
		t.Errorf("rules: %s", text)
	}
	if kinds["ServiceAccount"] == nil || kinds["RoleBinding"] == nil {
		t.Errorf("%v", kinds)
	}
}

// The script gets a host and words, as mpirun gives them to ssh.
func TestKubexecRunsInTheWorkersContainer(t *testing.T) {
	folder := t.TempDir()
	kubectl := filepath.Join(folder, "kubectl")
	if err := os.WriteFile(kubectl, []byte("#!/bin/sh\nfor word; do echo \"[$word]\"; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := strings.ReplaceAll(fmt.Sprintf(kubexec, "c"), kubePath, folder)
	said, err := exec.Command("sh", "-c", script, "kubexec.sh", "mnist-worker-1", "orted", "-mca", "ess \"env\"").Output()
	want := "[exec]\n[mnist-worker-1]\n[--container]\n[c]\n[--]\n[/bin/sh]\n[-c]\n[orted -mca ess \"env\"]\n"
	if err != nil || string(said) != want {
		t.Errorf("%v: %q", err, said)
	}
}

func TestLauncherHasAWayToItsWorkers(t *testing.T) {
	obj, j := parsed(t, mpiSpec)
	pod := launcher(obj, j, ipu.Partition{}, settings{launcherImage: "l:1", launcherPull: "Always"})
	spec := pod.Object["spec"].(map[string]any)
	main := containersOf(pod.Object)[0].(map[string]any)
	env := map[string]any{}
	for _, v := range main["env"].([]any) {
		env[v.(map[string]any)["name"].(string)] = v.(map[string]any)["value"]
	}
	if env["OMPI_MCA_plm_rsh_agent"] != "/etc/mpi/kubexec.sh" || env["OMPI_MCA_orte_default_hostfile"] != "/etc/mpi/hostfile" ||
		env["A"] != "b" || spec["serviceAccountName"] != "mnist-launcher" || len(spec["volumes"].([]any)) != 2 {
		t.Errorf("%v", spec)
	}
	init := spec["initContainers"].([]any)[0].(map[string]any)
	if init["image"] != "l:1" || fmt.Sprint(init["volumeMounts"]) != "[map[mountPath:/opt/kube name:ipu-kubectl]]" {
		t.Errorf("%v", init)
	}
	of := worker(obj, j, 0, ipu.Partition{}, settings{}).Object
	if _, found := of["spec"].(map[string]any)["serviceAccountName"]; found {
		t.Error("a worker has the launcher's rights")
	}
	// mpirun's daemon looks for the script of the launcher.
	mounts := fmt.Sprint(containersOf(of)[0].(map[string]any)["volumeMounts"])
	if mounts != "[map[mountPath:/etc/mpi name:ipu-mpi]]" {
		t.Errorf("a worker has %s", mounts)
	}
}

// A job with more pods and instances than it wants gives back the partitions of the others, and tries again if it can't.
func TestScaleDown(t *testing.T) {
	o, obj, cluster, asked := ended(t, "None")
	obj.Object["spec"].(map[string]any)["jobInstances"] = int64(1)
	obj.Object["status"] = map[string]any{"desiredReplicas": int64(4)}
	delete(obj.Object["spec"].(map[string]any), "launcher")
	cluster.pods = []string{"mnist-worker-0", "mnist-worker-2"}
	j, err := parseJob(obj)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := o.podsOf(context.Background(), obj)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.scaleDown(context.Background(), obj, j, pods); err != nil {
		t.Fatal(err)
	}
	want := []string{"DELETE /partition/p-mnist-jobs-1", "DELETE /partition/p-mnist-jobs-2", "DELETE /partition/p-mnist-jobs-3"}
	if !slices.Equal(cluster.deleted, []string{"mnist-worker-2"}) || !slices.Equal(*asked, want) || pods["mnist-worker-2"] != nil {
		t.Errorf("deleted %v, asked %v, left %v", cluster.deleted, *asked, pods)
	}
	o.settings.proxy = "127.0.0.1:9"
	if err := o.reconcileJob(context.Background(), obj); err == nil {
		t.Error("a partition that could not be given back is forgotten")
	}
}
