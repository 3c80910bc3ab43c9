package main

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"ipu.fabric/standins/internal/ipu"
	"ipu.fabric/standins/internal/kube"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	jobLabel  = "graphcore.ai/ipujob"
	roleLabel = "graphcore.ai/role"
	yearLong  = "31536000" // workers sleep while a launcher drives them
)

func workerName(owner *kube.Object, n int) string {
	return fmt.Sprintf("%s-worker-%d", owner.GetName(), n)
}

// workerNumber reads the number in a worker's name; -1 for the launcher.
func workerNumber(owner *kube.Object, pod string) int {
	text, found := strings.CutPrefix(pod, owner.GetName()+"-worker-")
	n, err := strconv.Atoi(text)
	if !found || err != nil {
		return -1
	}
	return n
}

func launcherName(owner *kube.Object) string { return owner.GetName() + "-launcher" }

func partitionName(owner *kube.Object, instance int) string {
	return fmt.Sprintf("p-%s-%s-%d", owner.GetName(), owner.GetNamespace(), instance)
}

// worker is pod number n of a job, in the partition of its instance.
func worker(owner *kube.Object, j *job, n int, partition ipu.Partition, s settings) *kube.Object {
	pod := fromTemplate(owner, j, workerName(owner, n), "worker", partition, s)
	if j.hasLauncher() {
		for _, c := range containersOf(pod.Object) {
			container := c.(map[string]any)
			container["command"], container["args"] = []any{"sleep", yearLong}, []any{}
		}
		mountWay(owner, pod.Object["spec"].(map[string]any), containersOf(pod.Object)...)
	}
	return pod
}

// launcher is the pod that runs the job's command, in the image of the workers' first container.
func launcher(owner *kube.Object, j *job, partition ipu.Partition, s settings) *kube.Object {
	pod := fromTemplate(owner, j, launcherName(owner), "launcher", partition, s)
	spec := pod.Object["spec"].(map[string]any)
	main := containersOf(pod.Object)[0].(map[string]any)
	main["args"] = []any{}
	if j.Spec.Interactive != nil {
		main["command"] = []any{"sleep", strconv.FormatInt(j.Spec.Interactive.TTL, 10)}
	} else {
		main["command"] = j.Spec.Launcher.Command
		appendTo(main, "env", j.Spec.Launcher.Env...)
	}
	spec["containers"] = []any{main}
	giveWay(owner, spec, main, s)
	return pod
}

func fromTemplate(owner *kube.Object, j *job, name, role string, partition ipu.Partition, s settings) *kube.Object {
	template := runtime.DeepCopyJSON(j.Spec.Workers.Template)
	pod := &kube.Object{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}}
	if metadata, ok := template["metadata"].(map[string]any); ok {
		pod.Object["metadata"] = metadata
	}
	pod.SetName(name)
	pod.SetNamespace(owner.GetNamespace())
	labels := map[string]string{jobLabel: owner.GetName(), roleLabel: role}
	maps.Copy(labels, pod.GetLabels())
	pod.SetLabels(labels)
	pod.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})

	spec := pod.Object["spec"].(map[string]any)
	spec["restartPolicy"] = "Never" // the job has a policy of its own
	selector, _ := spec["nodeSelector"].(map[string]any)
	if selector == nil {
		selector = map[string]any{}
	}
	selector[partition.Label] = partition.Value
	spec["nodeSelector"] = selector
	if s.hostNetwork {
		spec["hostNetwork"], spec["dnsPolicy"] = true, "ClusterFirstWithHostNet"
	}
	for _, c := range containersOf(pod.Object) {
		container := c.(map[string]any)
		own, _ := container["env"].([]any)
		container["env"] = append(own,
			map[string]any{"name": "IPUOF_VIPU_API_HOST", "value": partition.Host},
			map[string]any{"name": "IPUOF_VIPU_API_PORT", "value": partition.Port},
			map[string]any{"name": "IPUOF_VIPU_API_PARTITION_ID", "value": partition.Name})
		if s.hostNetwork {
			container["securityContext"] = map[string]any{"privileged": true}
		}
	}
	return pod
}

// restarts says whether a job that ended with the exit code is to run again.
func (j *job) restarts(exitCode int64) bool {
	policy := j.Spec.RestartPolicy
	limit := int64(3)
	if policy.BackOffLimit != nil {
		limit = *policy.BackOffLimit
	}
	if j.Spec.CleanPodPolicy == "All" || j.Status.RestartCount >= limit {
		return false
	}
	switch policy.Type {
	case "Always":
		return true
	case "OnFailure":
		return exitCode != 0
	case "ExitCode":
		return exitCode != 0 && inRanges(exitCode, policy.ExitCodes)
	}
	return false
}

// inRanges reads `1,128-255`.
func inRanges(n int64, text string) bool {
	for _, item := range strings.Split(text, ",") {
		low, high, isRange := strings.Cut(item, "-")
		if !isRange {
			high = low
		}
		from, err := strconv.ParseInt(low, 10, 64)
		to, err2 := strconv.ParseInt(high, 10, 64)
		if err == nil && err2 == nil && from <= n && n <= to {
			return true
		}
	}
	return false
}
