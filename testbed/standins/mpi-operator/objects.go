package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"strings"

	"ipu.fabric/standins/internal/kube"

	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	jobLabel      = "training.kubeflow.org/job-name"
	roleLabel     = "training.kubeflow.org/job-role"
	indexLabel    = "training.kubeflow.org/replica-index"
	operatorLabel = "training.kubeflow.org/operator-name"
)

func labels(job, role string) map[string]string {
	return map[string]string{operatorLabel: "mpi-operator", jobLabel: job, roleLabel: role}
}

// owned is an object that goes with the job.
func owned(owner *kube.Object, version, kind, name string, content map[string]any) *kube.Object {
	obj := &kube.Object{Object: map[string]any{"apiVersion": version, "kind": kind}}
	maps.Copy(obj.Object, content)
	obj.SetName(name)
	obj.SetNamespace(owner.GetNamespace())
	if len(obj.GetLabels()) == 0 {
		obj.SetLabels(map[string]string{"app": owner.GetName()})
	}
	obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	return obj
}

func hostName(owner *kube.Object, pod string) string {
	return fmt.Sprintf("%s.%s.%s.svc", pod, owner.GetName(), owner.GetNamespace())
}

// service gives the pods names in the DNS.
func service(owner *kube.Object) *kube.Object {
	selector := map[string]any{operatorLabel: "mpi-operator", jobLabel: owner.GetName()}
	return owned(owner, "v1", "Service", owner.GetName(),
		map[string]any{"spec": map[string]any{"clusterIP": "None", "selector": selector}})
}

func hostFile(owner *kube.Object, j *mpiJob) *kube.Object {
	var hosts, discover strings.Builder
	discover.WriteString("#!/bin/sh\n")
	for n := range j.workers() {
		host := hostName(owner, workerName(owner.GetName(), n))
		fmt.Fprintf(&hosts, "%s slots=%d\n", host, j.Spec.SlotsPerWorker)
		fmt.Fprintf(&discover, "echo %s\n", host)
	}
	return owned(owner, "v1", "ConfigMap", owner.GetName()+"-config",
		map[string]any{"data": map[string]any{"hostfile": hosts.String(), "discover_hosts.sh": discover.String()}})
}

func sshSecret(owner *kube.Object) (*kube.Object, error) {
	key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	public, err := ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	return owned(owner, "v1", "Secret", owner.GetName()+"-ssh", map[string]any{
		"type": "kubernetes.io/ssh-auth",
		"stringData": map[string]any{
			"ssh-privatekey": string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})),
			"ssh-publickey":  string(ssh.MarshalAuthorizedKey(public)),
		}}), nil
}

// template is a copy of a role's pod template with labels, host name and ssh key, and its first container.
func template(owner *kube.Object, j *mpiJob, role, pod string) (*kube.Object, map[string]any) {
	replica := j.Spec.Replicas[role]
	made := owned(owner, "v1", "Pod", pod, runtime.DeepCopyJSON(replica.Template))
	own := labels(owner.GetName(), strings.ToLower(role))
	kept, _, _ := unstructured.NestedStringMap(replica.Template, "metadata", "labels")
	maps.Copy(own, kept)
	made.SetLabels(own)
	spec := made.Object["spec"].(map[string]any)
	spec["hostname"], spec["subdomain"], spec["restartPolicy"] = pod, owner.GetName(), replica.RestartPolicy
	main := spec["containers"].([]any)[0].(map[string]any)
	add(main, "env", map[string]any{"name": "K_MPI_JOB_ROLE", "value": strings.ToLower(role)})
	mode := int64(0o644)
	if j.Spec.SSHAuthMountPath == "/root/.ssh" {
		mode = 0o600
	}
	mount(spec, main, "ssh-auth", j.Spec.SSHAuthMountPath, map[string]any{"secret": map[string]any{
		"secretName": owner.GetName() + "-ssh", "defaultMode": mode, "items": []any{
			map[string]any{"key": "ssh-privatekey", "path": "id_rsa"},
			map[string]any{"key": "ssh-publickey", "path": "id_rsa.pub"},
			map[string]any{"key": "ssh-publickey", "path": "authorized_keys"}}}})
	return made, main
}

func add(container map[string]any, key string, items ...any) {
	before, _ := container[key].([]any)
	container[key] = append(before, items...)
}

func mount(spec, container map[string]any, name, path string, source map[string]any) {
	source["name"] = name
	add(spec, "volumes", source)
	add(container, "volumeMounts", map[string]any{"name": name, "mountPath": path})
}

func worker(owner *kube.Object, j *mpiJob, n int) *kube.Object {
	pod, main := template(owner, j, "Worker", workerName(owner.GetName(), n))
	own := pod.GetLabels()
	own[indexLabel] = fmt.Sprint(n)
	pod.SetLabels(own)
	spec := pod.Object["spec"].(map[string]any)
	spec["dnsConfig"] = map[string]any{"searches": []any{
		fmt.Sprintf("%s.%s.svc.cluster.local", owner.GetName(), owner.GetNamespace())}}
	if main["command"] == nil && main["args"] == nil {
		main["command"] = []any{"/usr/sbin/sshd", "-De"}
	}
	return pod
}

// launcher is the Job whose pod runs mpirun.
func launcher(owner *kube.Object, j *mpiJob) *kube.Object {
	pod, main := template(owner, j, "Launcher", owner.GetName()+"-launcher")
	for name, value := range map[string]string{
		"OMPI_MCA_orte_keep_fqdn_hostnames": "true", "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
		"OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10", "NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": "",
		"OMPI_MCA_orte_set_default_slots": fmt.Sprint(j.Spec.SlotsPerWorker)} {
		add(main, "env", map[string]any{"name": name, "value": value})
	}
	mount(pod.Object["spec"].(map[string]any), main, "mpi-job-config", "/etc/mpi", map[string]any{
		"configMap": map[string]any{"name": owner.GetName() + "-config", "items": []any{
			map[string]any{"key": "hostfile", "path": "hostfile", "mode": int64(0o444)},
			map[string]any{"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": int64(0o555)}}}})
	metadata := map[string]any{"labels": pod.Object["metadata"].(map[string]any)["labels"]}
	if notes := pod.GetAnnotations(); len(notes) > 0 {
		metadata["annotations"] = pod.Object["metadata"].(map[string]any)["annotations"]
	}
	spec := map[string]any{"podReplacementPolicy": "Failed", "suspend": j.Spec.RunPolicy.Suspend,
		"template": map[string]any{"metadata": metadata, "spec": pod.Object["spec"]}}
	policy := j.Spec.RunPolicy
	for name, value := range map[string]*int64{"backoffLimit": policy.BackoffLimit,
		"ttlSecondsAfterFinished": policy.TTLSecondsAfterFinished, "activeDeadlineSeconds": policy.ActiveDeadlineSeconds} {
		if value != nil {
			spec[name] = *value
		}
	}
	return owned(owner, "batch/v1", "Job", owner.GetName()+"-launcher", map[string]any{"spec": spec})
}
