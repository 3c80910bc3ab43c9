// tigera-operator stands for Calico's operator 1.40.0, as far as this project uses it: it fills the Installation with
// defaults and writes them back into its spec (ipPools, an atomic list, among them), creates the address pools, runs the
// real calico-typha, calico-node and calico-kube-controllers in calico-system under their real names, with TLS between
// node and typha, and reports in the TigeraStatus `calico` and `ippools` and in the Installation's conditions. It runs
// with the rights that the real release's manifest gives.
//
// It does not: run BGP (there is no bird here), eBPF, nftables, Windows, OpenShift or cloud networking, the CSI and flex
// volume drivers, Calico's API server, whisker, goldmane; renew certificates, migrate from other networks, manage CRDs, check
// the Installation, or take away what an Installation no longer asks for. Of the overrides for its workloads it knows a pod's nodeSelector, tolerations,
// affinity and the resources of containers.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"ipu.fabric/standins/internal/kube"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	manager   = "operator"
	namespace = "calico-system"
)

var (
	installations = schema.GroupVersionResource{Group: "operator.tigera.io", Version: "v1", Resource: "installations"}
	ipPools       = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ippools"}
	daemonSets    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	deployments   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

type operator struct{ client dynamic.Interface }

func main() {
	client, err := kube.Client(os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log.Print("Tigera operator stand-in")
	o := &operator{client}
	kube.Run(ctx, client, o.reconcile, installations, daemonSets, deployments, ipPools, kube.Nodes)
}

func (o *operator) reconcile(ctx context.Context) error {
	installation, err := o.client.Resource(installations).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	if installation.GetDeletionTimestamp() != nil {
		return nil // owner references remove the components
	}
	before := installation.DeepCopy()
	fill(installation.Object, map[string]any{"spec": map[string]any{}})
	fillDefaults(installation.Object["spec"].(map[string]any))
	if !equality.Semantic.DeepEqual(before.Object, installation.Object) {
		log.Print("filled the Installation's spec with defaults")
		options := metav1.UpdateOptions{FieldManager: manager}
		installation, err = o.client.Resource(installations).Update(ctx, installation, options)
		if err != nil {
			return err
		}
	}
	problem, err := o.reconcilePools(ctx, installation)
	if err != nil {
		return err
	}
	if err := o.report(ctx, "ippools", nil, problem); err != nil {
		return err
	}
	waiting, err := o.deploy(ctx, installation)
	problem = ""
	if err != nil {
		problem = err.Error()
	}
	if err := o.report(ctx, "calico", waiting, problem); err != nil {
		return err
	}
	return o.setStatus(ctx, installation, map[string]any{"calicoVersion": "v" + release, "variant": "Calico"},
		conditions("Ready", waiting, problem))
}

// reconcilePools makes the first pools. Like the real one, it changes none later without Calico's API server.
func (o *operator) reconcilePools(ctx context.Context, installation *kube.Object) (string, error) {
	there, err := o.client.Resource(ipPools).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	specs := map[string]any{}
	for _, pool := range there.Items {
		specs[pool.GetName()] = pool.Object["spec"]
	}
	for _, obj := range pools(installation) {
		switch spec, is := specs[obj.GetName()]; {
		case len(specs) == 0:
			if _, err := kube.Apply(ctx, o.client, manager, obj); err != nil {
				return "", err
			}
		case !is || !equality.Semantic.DeepEqual(spec, obj.Object["spec"]):
			return "Unable to modify IP pools while Calico API server is unavailable", nil
		}
	}
	return "", nil
}

// deploy brings every object to the cluster, and says which workloads are not as they should be.
func (o *operator) deploy(ctx context.Context, installation *kube.Object) ([]string, error) {
	nodes, err := o.client.Resource(kube.Nodes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	objects, err := render(installation, len(nodes.Items))
	if err != nil {
		return nil, err
	}
	var waiting []string
	for _, obj := range objects {
		own(obj, installation)
		if !mayPatch[obj.GroupVersionKind().Group] {
			if err := o.ensure(ctx, obj); err != nil {
				return nil, err
			}
			continue
		}
		if obj.GetName() == "calico-typha" {
			if err := o.certificates(ctx, installation); err != nil {
				return nil, err
			}
		}
		now, err := kube.Apply(ctx, o.client, manager, obj)
		if err != nil {
			return nil, err
		}
		if text := missing(now); text != "" {
			waiting = append(waiting, text)
		}
	}
	return waiting, nil
}

func own(obj, installation *kube.Object) {
	obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(installation, installation.GroupVersionKind())})
}

// The groups whose objects the release's manifest lets the operator patch. Others it may create and update.
var mayPatch = map[string]bool{"apps": true, "crd.projectcalico.org": true}

const appliedAs = "stand-in/hash"

// ensure creates an object, or replaces one that was made from another text.
func (o *operator) ensure(ctx context.Context, obj *kube.Object) error {
	obj.SetAnnotations(map[string]string{appliedAs: hash(obj.Object)})
	there, err := kube.Of(o.client, obj).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = kube.Of(o.client, obj).Create(ctx, obj, metav1.CreateOptions{FieldManager: manager})
		return err
	}
	if err != nil || there.GetAnnotations()[appliedAs] == obj.GetAnnotations()[appliedAs] {
		return err
	}
	obj.SetResourceVersion(there.GetResourceVersion())
	_, err = kube.Of(o.client, obj).Update(ctx, obj, metav1.UpdateOptions{FieldManager: manager})
	return err
}

// missing says what a workload still waits for, in the real one's words; nothing when it is as it should be.
func missing(obj *kube.Object) string {
	number := func(path ...string) int64 {
		value, _, _ := unstructured.NestedInt64(obj.Object, path...)
		return value
	}
	name := fmt.Sprintf("%q", obj.GetNamespace()+"/"+obj.GetName())
	seen := number("status", "observedGeneration") >= obj.GetGeneration()
	switch obj.GetKind() {
	case "DaemonSet":
		wanted, updated := number("status", "desiredNumberScheduled"), number("status", "updatedNumberScheduled")
		switch {
		case !seen || wanted == 0:
			return "DaemonSet " + name + " is not yet scheduled on any nodes"
		case updated < wanted:
			return fmt.Sprintf("DaemonSet %s update is rolling out (%d out of %d updated)", name, updated, wanted)
		case number("status", "numberAvailable") < wanted:
			return fmt.Sprintf("DaemonSet %s is not available (awaiting %d nodes)", name, number("status", "numberUnavailable"))
		}
	case "Deployment":
		unavailable := max(number("status", "unavailableReplicas"), number("spec", "replicas")-number("status", "availableReplicas"))
		switch {
		case !seen:
			return "Deployment " + name + " is not yet scheduled on any nodes"
		case unavailable > 0:
			return fmt.Sprintf("Deployment %s is not available (awaiting %d replicas)", name, unavailable)
		}
	}
	return ""
}

// report writes a TigeraStatus.
func (o *operator) report(ctx context.Context, name string, waiting []string, problem string) error {
	status := &kube.Object{Object: map[string]any{"apiVersion": "operator.tigera.io/v1", "kind": "TigeraStatus",
		"spec": map[string]any{}}}
	status.SetName(name)
	now, err := kube.Apply(ctx, o.client, manager, status)
	if err != nil {
		return err
	}
	return o.setStatus(ctx, now, map[string]any{}, conditions("Available", waiting, problem))
}

// setStatus writes a status, and keeps the times of the conditions that have not changed.
func (o *operator) setStatus(ctx context.Context, obj *kube.Object, status map[string]any, conditions []kube.Condition) error {
	old, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var list []any
	for _, condition := range conditions {
		fields := map[string]any{"type": condition.Type, "status": condition.Status, "reason": condition.Reason,
			"message": condition.Message, "observedGeneration": obj.GetGeneration(), "lastTransitionTime": condition.LastTransitionTime}
		for _, o := range old {
			if was := o.(map[string]any); was["type"] == condition.Type && was["status"] == condition.Status {
				fields["lastTransitionTime"] = was["lastTransitionTime"]
			}
		}
		list = append(list, fields)
	}
	status["conditions"] = list
	if before, _ := obj.Object["status"].(map[string]any); equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	for _, condition := range conditions {
		log.Printf("%s %s: %s=%s %s", obj.GetKind(), obj.GetName(), condition.Type, condition.Status, condition.Message)
	}
	obj.Object["status"] = status
	gvr := installations
	if obj.GetKind() != "Installation" {
		gvr.Resource = "tigerastatuses"
	}
	_, err := o.client.Resource(gvr).UpdateStatus(ctx, obj, metav1.UpdateOptions{FieldManager: manager})
	return err
}

// conditions are the three of every status. The first is called Available, or Ready.
func conditions(first string, waiting []string, problem string) []kube.Condition {
	now := time.Now().UTC().Format(time.RFC3339)
	state := func(kind string, is bool, reason, message string) kube.Condition {
		if is {
			return kube.NewCondition(kind, "True", reason, message, now)
		}
		return kube.NewCondition(kind, "False", "Unknown", "", now)
	}
	waits := ""
	if len(waiting) > 0 {
		waits = waiting[0]
	}
	return []kube.Condition{
		state(first, waits == "" && problem == "", "AllObjectsAvailable", "All objects available"),
		state("Progressing", waits != "", "ResourceNotReady", waits),
		state("Degraded", problem != "", "ResourceUpdateError", problem),
	}
}
