package main

import (
	"context"
	"fmt"
	"strings"

	"ipu.fabric/standins/internal/kube"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The way from a launcher to its workers. That there are a script, a list of hosts, a role and a service account is
// documented; their names are those of the MPI operator before its release 0.4, which Graphcore's does not publish.
const (
	mpiPath  = "/etc/mpi"
	kubePath = "/opt/kube"
	// mpirun calls it as ssh: a host, which is a pod, and a command. The launcher may exec by POST alone, not by GET.
	kubexec = `#!/bin/sh
pod=$1
shift
export KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false
exec ` + kubePath + `/kubectl exec "$pod" --container %s -- /bin/sh -c "$*"
`
)

func configName(owner *kube.Object) string { return owner.GetName() + "-config" }

// mpiObjects are what a launcher and its workers need besides their pods. They go with the job, by their owner.
func mpiObjects(owner *kube.Object, j *job) []*kube.Object {
	var hosts strings.Builder
	for n := range j.workersPerInstance() {
		fmt.Fprintf(&hosts, "%s slots=1\n", workerName(owner, n))
	}
	main, _ := containersOf(j.Spec.Workers.Template)[0].(map[string]any)
	const rbac = "rbac.authorization.k8s.io"
	name, namespace := launcherName(owner), owner.GetNamespace()
	rule := func(resource string, verbs ...any) any {
		return map[string]any{"apiGroups": []any{""}, "resources": []any{resource}, "verbs": verbs}
	}
	objects := []*kube.Object{
		newObject(configName(owner), "v1", "ConfigMap", map[string]any{"data": map[string]any{
			"kubexec.sh": fmt.Sprintf(kubexec, main["name"]), "hostfile": hosts.String()}}),
		newObject(name, "v1", "ServiceAccount", nil),
		newObject(name, rbac+"/v1", "Role", map[string]any{"rules": []any{
			rule("pods", "get", "list", "watch"), rule("pods/exec", "create")}}),
		newObject(name, rbac+"/v1", "RoleBinding", map[string]any{
			"roleRef":  map[string]any{"apiGroup": rbac, "kind": "Role", "name": name},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": name, "namespace": namespace}}}),
	}
	for _, made := range objects {
		made.SetNamespace(namespace)
		made.SetLabels(map[string]string{jobLabel: owner.GetName()})
		made.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	return objects
}

func newObject(name, version, kind string, content map[string]any) *kube.Object {
	made := &kube.Object{Object: map[string]any{"apiVersion": version, "kind": kind}}
	for key, value := range content {
		made.Object[key] = value
	}
	made.SetName(name)
	return made
}

// giveWay lets the launcher's main container reach the workers: what it runs by mpirun finds script and hosts by itself.
func giveWay(owner *kube.Object, spec, main map[string]any, s settings) {
	variable := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	kubectl := map[string]any{"name": "ipu-kubectl", "mountPath": kubePath}
	appendTo(main, "env", variable("OMPI_MCA_plm_rsh_agent", mpiPath+"/kubexec.sh"),
		variable("OMPI_MCA_orte_default_hostfile", mpiPath+"/hostfile"))
	appendTo(main, "volumeMounts", kubectl)
	appendTo(spec, "volumes", map[string]any{"name": "ipu-kubectl", "emptyDir": map[string]any{}})
	mountWay(owner, spec, main)
	spec["serviceAccountName"] = launcherName(owner)
	spec["initContainers"] = []any{map[string]any{"name": "launcher-init", "image": s.launcherImage,
		"imagePullPolicy": s.launcherPull, "volumeMounts": []any{kubectl}}}
}

// mountWay gives containers the script and the hosts. mpirun passes their paths on to its daemons in the workers, which
// end with a segmentation fault where there is no such script.
func mountWay(owner *kube.Object, spec map[string]any, containers ...any) {
	for _, c := range containers {
		appendTo(c.(map[string]any), "volumeMounts", map[string]any{"name": "ipu-mpi", "mountPath": mpiPath})
	}
	file := func(name string, mode int64) any { return map[string]any{"key": name, "path": name, "mode": mode} }
	appendTo(spec, "volumes", map[string]any{"name": "ipu-mpi", "configMap": map[string]any{
		"name": configName(owner), "items": []any{file("kubexec.sh", 0o555), file("hostfile", 0o444)}}})
}

func appendTo(parent map[string]any, key string, items ...any) {
	before, _ := parent[key].([]any)
	parent[key] = append(before, items...)
}

// ensureMPI makes what the pods need for MPI. What a former job of this name has left becomes this job's.
func (o *operator) ensureMPI(ctx context.Context, owner *kube.Object, j *job) error {
	for _, made := range mpiObjects(owner, j) {
		client := kube.Of(o.client, made)
		_, err := client.Create(ctx, made, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			if err != nil {
				return err
			}
			continue
		}
		found, err := client.Get(ctx, made.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if metav1.IsControlledBy(found, owner) {
			continue
		}
		made.SetResourceVersion(found.GetResourceVersion())
		if _, err := client.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
