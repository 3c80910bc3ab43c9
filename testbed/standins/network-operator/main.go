// network-operator stands for NVIDIA's Network Operator, as far as this project uses it: it deploys the components that
// the NicClusterPolicy names (multus, CNI plugins, IPAM, RDMA device plugin) under their real names, and turns every
// MacvlanNetwork into a NetworkAttachmentDefinition. Faults of the real one that a role must cope with are kept: it
// acts on one policy name only, creates nv-ipam's CRD seconds late, replaces a MacvlanNetwork's annotations at its first
// reconcile, calls a network ready whatever its IPAM text says, and never repairs what it has rendered once: it notes a
// revision on each object, and skips one that has the same.
//
// From 26.4 on it has NicNodePolicies, for the RDMA device plugin alone: it follows none of them while two select one node.
//
// It does not: drive OFED, SR-IOV, InfiniBand, host device networks, NIC features or firmware, drain or upgrade nodes,
// run webhooks or elect leaders. It labels nodes as if every driver were loaded at once. IPPool's perNodeExclusions and CIDRPool are not there. Since 25.10
// it leaves whereabouts alone, but does not take its name off whereabouts' objects: they go with the policy.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"ipu.fabric/standins/internal/kube"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	manager    = "network-operator"
	policyName = "nic-cluster-policy"
	crdDelay   = 3 * time.Second // the real one took up to 11 s

	nodePolicies = 26.04 // the first release with NicNodePolicies

	mellanoxNIC = "feature.node.kubernetes.io/pci-15b3.present"
	waitDriver  = "network.nvidia.com/operator.mofed.wait"
	waitNIC     = "network.nvidia.com/operator.nic-configuration.wait" // since 25.10
)

var (
	policies   = schema.GroupVersionResource{Group: "mellanox.com", Version: "v1alpha1", Resource: "nicclusterpolicies"}
	groups     = schema.GroupVersionResource{Group: "mellanox.com", Version: "v1alpha1", Resource: "nicnodepolicies"}
	macvlans   = schema.GroupVersionResource{Group: "mellanox.com", Version: "v1alpha1", Resource: "macvlannetworks"}
	daemonSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	deploys    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

type operator struct {
	client  dynamic.Interface
	options options
	applied map[string]bool // components deployed by this process, by state name and suffix
}

func main() {
	client, err := kube.Client(os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	o := &operator{client: client, options: optionsFromEnvironment(), applied: map[string]bool{}}
	log.Printf("network operator stand-in, %+v", o.options)
	watched := []schema.GroupVersionResource{policies, macvlans, daemonSets, deploys, namespaces, kube.Nodes, kube.NADs, kube.ConfigMaps}
	if o.options.release >= nodePolicies {
		watched = append(watched, groups)
	}
	kube.Run(ctx, client, o.reconcile, watched...)
}

func (o *operator) reconcile(ctx context.Context) error {
	list, err := o.client.Resource(policies).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := o.reconcilePolicy(ctx, &list.Items[i]); err != nil {
			return err
		}
	}
	if o.options.release >= nodePolicies {
		if err := o.reconcileNodePolicies(ctx); err != nil {
			return err
		}
	}
	if err := o.labelNodes(ctx); err != nil {
		return err
	}
	networks, err := o.client.Resource(macvlans).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range networks.Items {
		if err := o.reconcileMacvlan(ctx, &networks.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (o *operator) reconcilePolicy(ctx context.Context, policy *kube.Object) error {
	if policy.GetDeletionTimestamp() != nil {
		return nil // owner references remove the components
	}
	if policy.GetName() != policyName {
		reason := "Unsupported NicClusterPolicy instance. Only instance with name " + policyName + " is supported"
		return o.setStatus(ctx, policies, policy, map[string]any{"state": "ignore", "reason": reason})
	}
	overall := "ready"
	var states []any
	for _, c := range components {
		if c.until != 0 && o.options.release >= c.until {
			continue // this release does not manage it: what an earlier release deployed keeps running
		}
		state, err := o.reconcileComponent(ctx, policy, c)
		if err != nil {
			log.Printf("%s: %v", c.state, err)
			state = "error"
		}
		if state == "notReady" || state == "error" {
			overall = "notReady"
		}
		states = append(states, map[string]any{"name": c.state, "state": state})
	}
	return o.setStatus(ctx, policies, policy, map[string]any{"state": overall, "appliedStates": states})
}

// reconcileNodePolicies follows none of them where two select one node. Whether the NicClusterPolicy has the same section
// is looked at by a webhook alone, which is off.
func (o *operator) reconcileNodePolicies(ctx context.Context) error {
	list, err := o.client.Resource(groups).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	nodes, err := o.client.Resource(kube.Nodes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	reason := overlap(list.Items, nodes.Items)
	for i := range list.Items {
		policy := &list.Items[i]
		if policy.GetDeletionTimestamp() != nil {
			continue
		}
		status := map[string]any{"state": "error", "reason": reason}
		if reason == "" {
			state, err := o.reconcileComponent(ctx, policy, devicePlugin)
			if err != nil {
				log.Printf("%s %s: %v", devicePlugin.state, policy.GetName(), err)
				state = "error"
			}
			status = map[string]any{"state": state, "appliedStates": []any{map[string]any{"name": devicePlugin.state, "state": state}}}
		}
		if err := o.setStatus(ctx, groups, policy, status); err != nil {
			return err
		}
	}
	return nil
}

// labelNodes tells the device plugin's DaemonSet where it need not wait for anything. Without a policy too, as the real one.
func (o *operator) labelNodes(ctx context.Context) error {
	nodes, err := o.client.Resource(kube.Nodes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		patch := waitLabels(nodes.Items[i].GetLabels(), o.options.release)
		if patch == "" {
			continue
		}
		_, err := o.client.Resource(kube.Nodes).Patch(ctx, nodes.Items[i].GetName(), types.MergePatchType, []byte(patch),
			metav1.PatchOptions{FieldManager: manager})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// reconcileComponent deploys one component, or removes it when the policy no longer names it.
func (o *operator) reconcileComponent(ctx context.Context, policy *kube.Object, c component) (string, error) {
	spec, named, _ := unstructured.NestedMap(policy.Object, c.path...)
	key := c.state + suffix(policy)
	if !named && !o.applied[key] {
		if !o.deployed(ctx, c.daemonSet+suffix(policy)) {
			return "ignore", nil
		}
	}
	objects, err := render(c, policy, spec, o.options)
	if err != nil {
		return "", err
	}
	if !named {
		delete(o.applied, key)
		return "ignore", o.remove(ctx, objects)
	}
	if c.late && !o.applied[key] {
		if wait := crdDelay - time.Since(policy.GetCreationTimestamp().Time); wait > 0 {
			time.Sleep(wait)
		}
	}
	ready := "ready"
	for _, obj := range objects {
		obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(policy, policy.GroupVersionKind())})
		now, err := o.apply(ctx, obj)
		if err != nil {
			return "", err
		}
		if !workloadReady(now) {
			ready = "notReady"
		}
	}
	o.applied[key] = true
	return ready, nil
}

// apply writes a rendered object, unless the existing one was rendered from the same.
func (o *operator) apply(ctx context.Context, obj *kube.Object) (*kube.Object, error) {
	if err := stamp(obj); err != nil {
		return nil, err
	}
	now, err := kube.Of(o.client, obj).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err == nil && inSync(now, obj) {
		return now, nil
	}
	return kube.Apply(ctx, o.client, manager, obj)
}

// deployed says whether the component's workload is there, after a restart of the operator.
func (o *operator) deployed(ctx context.Context, daemonSet string) bool {
	_, err := o.client.Resource(daemonSets).Namespace(o.options.namespace).Get(ctx, daemonSet, metav1.GetOptions{})
	return err == nil
}

func (o *operator) remove(ctx context.Context, objects []*kube.Object) error {
	for i := len(objects) - 1; i >= 0; i-- {
		background := metav1.DeletePropagationBackground
		err := kube.Of(o.client, objects[i]).Delete(ctx, objects[i].GetName(),
			metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

const lastNamespace = "operator.macvlannetwork.mellanox.com/last-network-namespace"

func (o *operator) reconcileMacvlan(ctx context.Context, network *kube.Object) error {
	if network.GetDeletionTimestamp() != nil {
		return nil
	}
	nad := attachment(network)
	nad.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(network, network.GroupVersionKind())})
	before := network.GetAnnotations()[lastNamespace]
	if before != "" && before != nad.GetNamespace() {
		old := o.client.Resource(kube.NADs).Namespace(before)
		if err := old.Delete(ctx, nad.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	status := map[string]any{"state": "ready"}
	for _, key := range []string{"macvlanNetworkAttachmentDef", "reason"} { // the reason stays after a recovery
		if old, ok, _ := unstructured.NestedString(network.Object, "status", key); ok {
			status[key] = old
		}
	}
	if _, err := o.apply(ctx, nad); err != nil {
		status["state"], status["reason"] = "notReady", err.Error()
		return o.setStatus(ctx, macvlans, network, status)
	}
	status["macvlanNetworkAttachmentDef"] = "/apis/k8s.cni.cncf.io/v1/namespaces/" + nad.GetNamespace() +
		"/network-attachment-definitions/" + nad.GetName()
	if before != nad.GetNamespace() {
		network.SetAnnotations(map[string]string{lastNamespace: nad.GetNamespace()}) // all others are lost
		updated, err := o.client.Resource(macvlans).Update(ctx, network, metav1.UpdateOptions{FieldManager: manager})
		if err != nil {
			return err
		}
		network = updated
	}
	return o.setStatus(ctx, macvlans, network, status)
}

func (o *operator) setStatus(ctx context.Context, gvr schema.GroupVersionResource, obj *kube.Object,
	status map[string]any) error {
	if old, ok := obj.Object["status"].(map[string]any); ok && sameJSON(old, status) {
		return nil
	}
	log.Printf("%s %s: %v", strings.ToLower(obj.GetKind()), obj.GetName(), status["state"])
	obj.Object["status"] = status
	_, err := o.client.Resource(gvr).UpdateStatus(ctx, obj, metav1.UpdateOptions{FieldManager: manager})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // changed meanwhile: its event brings us back
	}
	return err
}
