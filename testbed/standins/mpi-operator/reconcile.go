package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"slices"
	"strings"
	"time"

	"ipu.fabric/standins/internal/kube"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

type operator struct {
	client dynamic.Interface
	said   map[string]string // what an event has said already, by the job's uid
}

func (o *operator) reconcile(ctx context.Context) error {
	list, err := o.client.Resource(mpiJobs).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var first error
	for i := range list.Items {
		obj := &list.Items[i]
		if err := o.reconcileJob(ctx, obj); err != nil && !apierrors.IsConflict(err) && first == nil {
			first = fmt.Errorf("%s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
		}
	}
	return first
}

func (o *operator) reconcileJob(ctx context.Context, obj *kube.Object) error {
	j, err := parse(obj)
	if err != nil || obj.GetDeletionTimestamp() != nil {
		return err
	}
	if faults := j.faults(obj.GetName()); len(faults) > 0 {
		return o.warn(ctx, obj, "ValidationError", fmt.Sprintf("Found validation errors: %v", faults))
	}
	before, _ := json.Marshal(j.Status)
	if j.Status.CompletionTime != "" {
		return o.clean(ctx, obj, j)
	}
	launcherJob, err := o.get(ctx, obj, obj.GetName()+"-launcher")
	if err != nil {
		return err
	}
	if launcherJob == nil || finished(launcherJob) == nil {
		if launcherJob, err = o.ensure(ctx, obj, j, launcherJob); err != nil {
			return err
		}
	}
	if j.Spec.RunPolicy.Suspend {
		if err := o.clean(ctx, obj, j); err != nil {
			return err
		}
	}
	if err := o.observe(ctx, obj, j, launcherJob); err != nil {
		return err
	}
	if after, _ := json.Marshal(j.Status); string(after) != string(before) {
		return o.writeStatus(ctx, obj, j.Status)
	}
	return nil
}

// ensure makes what is missing, the launcher when it is its turn, and returns the launcher's Job.
func (o *operator) ensure(ctx context.Context, obj *kube.Object, j *mpiJob, launcherJob *kube.Object) (*kube.Object, error) {
	secret, err := sshSecret(obj)
	if err != nil {
		return nil, err
	}
	wanted := []*kube.Object{service(obj), hostFile(obj, j), secret}
	if !j.Spec.RunPolicy.Suspend {
		for n := range j.workers() {
			wanted = append(wanted, worker(obj, j, n))
		}
	}
	for _, object := range wanted {
		if err := o.create(ctx, obj, object); err != nil {
			return nil, err
		}
	}
	if launcherJob != nil {
		return launcherJob, o.align(ctx, j, launcherJob)
	}
	pods, err := o.pods(ctx, obj, obj, "worker")
	if err != nil {
		return nil, err
	}
	ready := 0
	for i := range pods {
		if isTrue(&pods[i], "Ready") {
			ready++
		}
	}
	if j.Spec.LauncherCreationPolicy != "AtStartup" && ready < j.workers() && !j.Spec.RunPolicy.Suspend {
		return nil, nil
	}
	launcherJob = launcher(obj, j)
	return launcherJob, o.create(ctx, obj, launcherJob)
}

// align suspends the launcher with the job and lets it go on again.
func (o *operator) align(ctx context.Context, j *mpiJob, launcherJob *kube.Object) error {
	if suspended, _, _ := unstructured.NestedBool(launcherJob.Object, "spec", "suspend"); suspended == j.Spec.RunPolicy.Suspend {
		return nil
	}
	if err := unstructured.SetNestedField(launcherJob.Object, j.Spec.RunPolicy.Suspend, "spec", "suspend"); err != nil {
		return err
	}
	_, err := kube.Of(o.client, launcherJob).Update(ctx, launcherJob, metav1.UpdateOptions{})
	return err
}

// observe brings the job's status up to what its launcher and its workers are doing.
func (o *operator) observe(ctx context.Context, obj *kube.Object, j *mpiJob, launcherJob *kube.Object) error {
	now, name := time.Now(), obj.GetNamespace()+"/"+obj.GetName()
	s := &j.Status
	if len(s.Conditions) == 0 {
		s.set("Created", "True", "MPIJobCreated", "MPIJob "+name+" is created.", now)
	}
	if j.Spec.RunPolicy.Suspend {
		s.set("Suspended", "True", "MPIJobSuspended", "MPIJob suspended", now)
		s.set("Running", "False", "MPIJobSuspended", "MPIJob "+name+" is suspended.", now)
	} else {
		if s.StartTime == "" || s.has("Suspended") {
			s.StartTime = now.UTC().Format(time.RFC3339)
		}
		if s.has("Suspended") {
			s.set("Suspended", "False", "MPIJobResumed", "MPIJob resumed", now)
		}
	}
	workers, err := o.pods(ctx, obj, obj, "worker")
	if err != nil {
		return err
	}
	launchers, err := o.pods(ctx, obj, launcherJob, "launcher")
	if err != nil {
		return err
	}
	counts := map[string]replicaStatus{"Worker": count(workers)}
	if launcherJob != nil {
		counts["Launcher"] = count(launchers)
	}
	s.ReplicaStatuses = counts
	switch end := finished(launcherJob); {
	case end != nil && end["type"] == "Complete":
		s.CompletionTime, _, _ = unstructured.NestedString(launcherJob.Object, "status", "completionTime")
		s.set("Succeeded", "True", "MPIJobSucceeded", "MPIJob "+name+" successfully completed.", now)
	case end != nil:
		reason, message := fmt.Sprint(end["reason"]), fmt.Sprint(end["message"])
		if reason == "BackoffLimitExceeded" {
			reason, message = reason+"/", message+": "
		}
		s.CompletionTime = now.UTC().Format(time.RFC3339)
		s.set("Failed", "True", reason, message, now)
	case counts["Launcher"].Active > 0 && counts["Worker"].Active == int64(j.workers()) && !j.Spec.RunPolicy.Suspend:
		s.set("Running", "True", "MPIJobRunning", "MPIJob "+name+" is running.", now)
	}
	return nil
}

// clean removes the workers of a job that is over or suspended; by default, and under None, they stay.
func (o *operator) clean(ctx context.Context, obj *kube.Object, j *mpiJob) error {
	policy := j.Spec.RunPolicy.CleanPodPolicy
	if policy == "None" && !j.Spec.RunPolicy.Suspend {
		return nil
	}
	pods, err := o.pods(ctx, obj, obj, "worker")
	if err != nil {
		return err
	}
	for i := range pods {
		going := slices.Contains([]string{"Running", "Pending"}, phase(&pods[i]))
		if pods[i].GetDeletionTimestamp() != nil || policy == "Running" && !going {
			continue
		}
		err := kube.Of(o.client, &pods[i]).Delete(ctx, pods[i].GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (o *operator) get(ctx context.Context, obj *kube.Object, name string) (*kube.Object, error) {
	found, err := o.client.Resource(jobs).Namespace(obj.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return found, managed(obj, found)
}

// create makes what is missing. What has this name already must be the owner's.
func (o *operator) create(ctx context.Context, owner, obj *kube.Object) error {
	_, err := kube.Of(o.client, obj).Create(ctx, obj, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := kube.Of(o.client, obj).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	return managed(owner, found)
}

// pods are those of a role that the owner controls: of the MPIJob its workers, of the launcher's Job its pods.
func (o *operator) pods(ctx context.Context, obj, owner *kube.Object, role string) ([]kube.Object, error) {
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels(obj.GetName(), role)})
	list, err := o.client.Resource(kube.Pods).Namespace(obj.GetNamespace()).List(ctx,
		metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return controlled(owner, list.Items), nil
}

// managed refuses an object of another owner, as of a deleted job with this name: it is on its way out.
func managed(owner, found *kube.Object) error {
	if metav1.IsControlledBy(found, owner) {
		return nil
	}
	return fmt.Errorf("%s %q already exists and is not managed by %s", found.GetKind(), found.GetName(), owner.GetKind())
}

func controlled(owner *kube.Object, pods []kube.Object) []kube.Object {
	return slices.DeleteFunc(pods, func(pod kube.Object) bool {
		return owner == nil || !metav1.IsControlledBy(&pod, owner)
	})
}

func (o *operator) writeStatus(ctx context.Context, obj *kube.Object, s status) error {
	last := s.Conditions[len(s.Conditions)-1]
	log.Printf("%s/%s: %s %s, %s", obj.GetNamespace(), obj.GetName(), last.Type, last.Status, last.Message)
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	obj.Object["status"] = fields
	_, err = o.client.Resource(mpiJobs).Namespace(obj.GetNamespace()).UpdateStatus(ctx, obj, metav1.UpdateOptions{})
	return err
}

// warn writes an event, once for each thing that there is to say.
func (o *operator) warn(ctx context.Context, obj *kube.Object, reason, message string) error {
	if o.said[string(obj.GetUID())] == message {
		return nil
	}
	o.said[string(obj.GetUID())] = message
	now := time.Now().UTC().Format(time.RFC3339)
	about := map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "name": obj.GetName(),
		"namespace": obj.GetNamespace(), "uid": string(obj.GetUID())}
	name := fmt.Sprintf("%s.%x", obj.GetName(), time.Now().UnixNano())
	event := owned(obj, "v1", "Event", name, map[string]any{"involvedObject": about, "type": "Warning", "reason": reason,
		"message": message, "firstTimestamp": now, "lastTimestamp": now, "count": int64(1),
		"source": map[string]any{"component": "mpi-job-controller"}})
	log.Printf("%s/%s: %s", obj.GetNamespace(), obj.GetName(), message)
	return o.create(ctx, obj, event)
}

// finished is the condition with which a Job ended, if it has.
func finished(job *kube.Object) map[string]any {
	if job == nil {
		return nil
	}
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, c := range conditions {
		found := c.(map[string]any)
		if found["status"] == "True" && (found["type"] == "Complete" || found["type"] == "Failed") {
			return found
		}
	}
	return nil
}

func isTrue(obj *kube.Object, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		found := c.(map[string]any)
		return found["type"] == kind && found["status"] == "True"
	})
}

func phase(pod *kube.Object) string {
	text, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	return text
}

func count(pods []kube.Object) replicaStatus {
	var s replicaStatus
	for i := range pods {
		switch strings.ToLower(phase(&pods[i])) {
		case "running":
			s.Active++
		case "succeeded":
			s.Succeeded++
		case "failed":
			s.Failed++
		}
	}
	return s
}
