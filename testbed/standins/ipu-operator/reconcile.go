package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
	"time"

	"ipu.fabric/standins/internal/ipu"
	"ipu.fabric/standins/internal/kube"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

const finalizer = "ipu.finalizers.graphcore.ai"

type operator struct {
	client   dynamic.Interface
	settings settings
	http     *http.Client
}

func (o *operator) reconcile(ctx context.Context) error {
	list, err := o.client.Resource(jobs).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var first error
	for i := range list.Items {
		if err := o.reconcileJob(ctx, &list.Items[i]); err != nil && !apierrors.IsConflict(err) && first == nil {
			first = fmt.Errorf("%s/%s: %w", list.Items[i].GetNamespace(), list.Items[i].GetName(), err)
		}
	}
	return first
}

func (o *operator) reconcileJob(ctx context.Context, obj *kube.Object) error {
	j, err := parseJob(obj)
	if err != nil {
		return err
	}
	pods, err := o.podsOf(ctx, obj)
	if err != nil {
		return err
	}
	if obj.GetDeletionTimestamp() != nil {
		return o.finalize(ctx, obj, pods)
	}
	if !slices.Contains(obj.GetFinalizers(), finalizer) {
		obj.SetFinalizers(append(obj.GetFinalizers(), finalizer))
		_, err := o.client.Resource(jobs).Namespace(obj.GetNamespace()).Update(ctx, obj, metav1.UpdateOptions{})
		return err // its event brings us back
	}
	if j.Status.CompletionTime != "" {
		return o.clean(ctx, obj, j, pods)
	}
	message := "Successfully reconciled IPUJob"
	if err := o.ensurePods(ctx, obj, j, pods); err != nil {
		var left *unscaled
		if errors.As(err, &left) {
			return err
		}
		message = err.Error()
	}
	state, exitCode := progress(obj, j, pods)
	if (state == "Completed" || state == "Failed") && j.restarts(exitCode) {
		j.Status.RestartCount++
		state = "Pending"
		if err := o.deletePods(ctx, pods); err != nil {
			return err
		}
	}
	if state == "Failed" {
		message = fmt.Sprintf("IPUJob failed with exit code %d", exitCode)
	}
	return o.setStatus(ctx, obj, j, pods, state, message)
}

func (o *operator) podsOf(ctx context.Context, obj *kube.Object) (map[string]*kube.Object, error) {
	list, err := o.client.Resource(kube.Pods).Namespace(obj.GetNamespace()).List(ctx,
		metav1.ListOptions{LabelSelector: jobLabel + "=" + obj.GetName()})
	if err != nil {
		return nil, err
	}
	pods := map[string]*kube.Object{}
	for i := range list.Items {
		pods[list.Items[i].GetName()] = &list.Items[i]
	}
	return pods, nil
}

// ensurePods asks for partitions, makes the pods that are missing and removes those that a smaller scale no longer wants.
func (o *operator) ensurePods(ctx context.Context, obj *kube.Object, j *job, pods map[string]*kube.Object) error {
	if len(obj.GetName()) > maxNameLength {
		return fmt.Errorf("the name %s is longer than %d characters", obj.GetName(), maxNameLength)
	}
	per := j.workersPerInstance()
	var waiting string
	for instance := range int(j.Spec.JobInstances) {
		partition, err := o.partition(ctx, obj, j, instance)
		if err != nil {
			waiting += strings.TrimSpace(err.Error()) + "!"
			continue
		}
		if j.hasLauncher() {
			if err := o.ensureMPI(ctx, obj, j); err != nil {
				return err
			}
		}
		for n := instance * per; n < (instance+1)*per; n++ {
			if err := o.ensurePod(ctx, pods, worker(obj, j, n, partition, o.settings)); err != nil {
				return err
			}
		}
		if j.hasLauncher() && allRunning(obj, pods, per) {
			if err := o.ensurePod(ctx, pods, launcher(obj, j, partition, o.settings)); err != nil {
				return err
			}
		}
	}
	if err := o.scaleDown(ctx, obj, j, pods); err != nil {
		return err
	}
	if waiting != "" {
		return fmt.Errorf("%s", waiting)
	}
	return nil
}

func (o *operator) ensurePod(ctx context.Context, pods map[string]*kube.Object, pod *kube.Object) error {
	if pods[pod.GetName()] != nil {
		return nil
	}
	made, err := o.client.Resource(kube.Pods).Namespace(pod.GetNamespace()).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		pods[pod.GetName()] = made
	}
	return err
}

// scaleDown removes the pods above the wanted number, and then the partitions of their instances. Those that were wanted
// before are known by the status, so that none stays behind when this was interrupted.
func (o *operator) scaleDown(ctx context.Context, obj *kube.Object, j *job, pods map[string]*kube.Object) error {
	surplus, per := map[string]*kube.Object{}, j.workersPerInstance()
	wanted, before := int(j.Spec.JobInstances), int(j.Status.DesiredReplicas)
	for name, pod := range pods {
		if n := workerNumber(obj, name); n >= wanted*per {
			surplus[name] = pod
			before = max(before, n/per+1)
			delete(pods, name)
		}
	}
	if err := o.deletePods(ctx, surplus); err != nil {
		return err
	}
	for instance := wanted; instance < before; instance++ {
		if err := o.release(ctx, partitionName(obj, instance)); err != nil {
			return &unscaled{err}
		}
	}
	return nil
}

// unscaled is a scale that has to be tried again before the status says that it is done.
type unscaled struct{ error }

func allRunning(obj *kube.Object, pods map[string]*kube.Object, workers int) bool {
	for n := range workers {
		if phase(pods[workerName(obj, n)]) != "Running" {
			return false
		}
	}
	return true
}

// phase of a pod; one that is missing or on its way out has none.
func phase(pod *kube.Object) string {
	if pod == nil || pod.GetDeletionTimestamp() != nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	return text
}

// progress is the job's state, and the exit code once it has ended: the launcher's, or the first of a failed worker.
func progress(obj *kube.Object, j *job, pods map[string]*kube.Object) (string, int64) {
	deciding := []*kube.Object{pods[launcherName(obj)]}
	if !j.hasLauncher() {
		deciding = nil
		for n := range int(j.Spec.JobInstances) * j.workersPerInstance() {
			deciding = append(deciding, pods[workerName(obj, n)])
		}
	}
	seen := map[string]int{}
	for _, pod := range deciding {
		if phase(pod) == "Failed" {
			return "Failed", exitCode(pod)
		}
		seen[phase(pod)]++
	}
	switch {
	case seen["Succeeded"] == len(deciding):
		return "Completed", 0
	case seen["Running"]+seen["Succeeded"] == len(deciding):
		return "Running", 0
	}
	return "Pending", 0
}

// exitCode of a failed pod: that of the first container that ended badly, init containers before the others.
func exitCode(pod *kube.Object) int64 {
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", field)
		for _, s := range statuses {
			code, found, _ := unstructured.NestedInt64(s.(map[string]any), "state", "terminated", "exitCode")
			if found && code != 0 {
				return code
			}
		}
	}
	return 1
}

func (o *operator) setStatus(ctx context.Context, obj *kube.Object, j *job, pods map[string]*kube.Object,
	state, message string) error {
	now := time.Now().UTC().Format(time.RFC3339)
	if j.Status.StartTime == "" {
		j.Status.StartTime = now
	}
	workers := map[string]any{}
	var active, succeeded, failed, current int64
	for name, pod := range pods {
		if name == launcherName(obj) {
			continue
		}
		current++
		switch phase(pod) {
		case "Running":
			active++
		case "Succeeded":
			succeeded++
		case "Failed":
			failed++
		}
	}
	workers["active"], workers["succeeded"], workers["failed"] = active, succeeded, failed
	status := map[string]any{
		"launcherStatus": state, "lastMessage": message, "startTime": j.Status.StartTime,
		"desiredReplicas": j.Spec.JobInstances, "currentReplicas": current / int64(j.workersPerInstance()),
		"restartCount": j.Status.RestartCount, "iPUPartitionCreated": len(pods) > 0, "workersStatus": workers,
		"conditions": conditions(obj, j.Status.Conditions, state, now),
	}
	if state == "Completed" || state == "Failed" {
		status["completionTime"] = now
	}
	if before, _ := json.Marshal(obj.Object["status"]); string(before) == marshal(status) {
		return nil
	}
	log.Printf("%s/%s: %s, %s", obj.GetNamespace(), obj.GetName(), state, message)
	obj.Object["status"] = status
	_, err := o.client.Resource(jobs).Namespace(obj.GetNamespace()).UpdateStatus(ctx, obj, metav1.UpdateOptions{})
	return err
}

func marshal(value any) string {
	raw, _ := json.Marshal(value)
	return string(raw)
}

var stateWords = map[string]string{"Pending": "is waiting for resources to be ready", "Running": "is running",
	"Completed": "has completed successfully", "Failed": "has failed"}

// conditions keeps one condition a state that the job has been in; the present one is True.
func conditions(obj *kube.Object, before []kube.Condition, state, now string) []any {
	found := false
	var all []any
	for _, c := range before {
		status := "False"
		if c.Type == state {
			status, found = "True", true
		}
		if c.Status != status {
			c.Status, c.LastTransitionTime, c.LastUpdateTime = status, now, now
		}
		all = append(all, c.Fields())
	}
	if !found {
		message := fmt.Sprintf("IPUJob %s/%s %s.", obj.GetNamespace(), obj.GetName(), stateWords[state])
		all = append(all, kube.NewCondition(state, "True", "IPUJob"+state, message, now).Fields())
	}
	return all
}

// clean does what cleanPodPolicy says of a job that is over.
func (o *operator) clean(ctx context.Context, obj *kube.Object, j *job, pods map[string]*kube.Object) error {
	switch j.Spec.CleanPodPolicy {
	case "Workers":
		delete(pods, launcherName(obj))
		return o.deletePods(ctx, pods)
	case "All":
		if len(pods) == 0 {
			return nil
		}
		if err := o.deletePods(ctx, pods); err != nil {
			return err
		}
		return o.releaseAll(ctx, obj)
	}
	return nil
}

func (o *operator) finalize(ctx context.Context, obj *kube.Object, pods map[string]*kube.Object) error {
	if !slices.Contains(obj.GetFinalizers(), finalizer) {
		return nil
	}
	if err := o.deletePods(ctx, pods); err != nil {
		return err
	}
	if err := o.releaseAll(ctx, obj); err != nil {
		return err
	}
	obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == finalizer }))
	_, err := o.client.Resource(jobs).Namespace(obj.GetNamespace()).Update(ctx, obj, metav1.UpdateOptions{})
	return err
}

func (o *operator) deletePods(ctx context.Context, pods map[string]*kube.Object) error {
	for name, pod := range pods {
		if pod.GetDeletionTimestamp() != nil {
			continue
		}
		err := o.client.Resource(kube.Pods).Namespace(pod.GetNamespace()).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (o *operator) partition(ctx context.Context, obj *kube.Object, j *job, instance int) (ipu.Partition, error) {
	wanted := ipu.Partition{Name: partitionName(obj, instance), Namespace: obj.GetNamespace(),
		Size: count(j.Spec.IPUsPerJobInstance)}
	var got ipu.Partition
	return got, o.ask(ctx, http.MethodPost, "/partition", wanted, &got)
}

func (o *operator) release(ctx context.Context, name string) error {
	return o.ask(ctx, http.MethodDelete, "/partition/"+name, nil, nil)
}

func (o *operator) releaseAll(ctx context.Context, obj *kube.Object) error {
	instances, _, _ := unstructured.NestedInt64(obj.Object, "spec", "jobInstances")
	before, _, _ := unstructured.NestedInt64(obj.Object, "status", "desiredReplicas") // a scale may not be done yet
	for instance := range int(max(instances, before)) {
		if err := o.release(ctx, partitionName(obj, instance)); err != nil {
			return err
		}
	}
	return nil
}

func (o *operator) ask(ctx context.Context, method, path string, body, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+o.settings.proxy+path,
		bytes.NewBufferString(marshal(body)))
	if err != nil {
		return err
	}
	response, err := o.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", strings.TrimSpace(string(raw)))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(raw, answer)
}
