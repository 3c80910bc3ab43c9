// Package kube is what the stand-in controllers share: a dynamic client, server-side apply of rendered manifests, and
// a loop that reconciles whenever something that it watches has changed.
package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// Object is any Kubernetes object.
type Object = unstructured.Unstructured

// Condition is one entry of a job's status.conditions.
type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
	LastUpdateTime     string `json:"lastUpdateTime"`
}

// NewCondition is one that begins now.
func NewCondition(kind, status, reason, message, now string) Condition {
	return Condition{kind, status, reason, message, now, now}
}

// Fields are those of the condition as an Object keeps them.
func (c Condition) Fields() map[string]any {
	return map[string]any{"type": c.Type, "status": c.Status, "reason": c.Reason, "message": c.Message,
		"lastTransitionTime": c.LastTransitionTime, "lastUpdateTime": c.LastUpdateTime}
}

// Kinds that more than one stand-in uses.
var (
	Nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	Pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	ConfigMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	NADs       = schema.GroupVersionResource{
		Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions"}
)

// Client connects with the kubeconfig file, or with the pod's own service account when the path is empty.
func Client(kubeconfig string) (dynamic.Interface, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	return dynamic.NewForConfig(config)
}

// Of gives the client for an object's kind, in the object's namespace if it has one.
func Of(client dynamic.Interface, obj *Object) dynamic.ResourceInterface {
	gvr, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	if obj.GetKind() == "NetworkAttachmentDefinition" {
		gvr = NADs
	}
	if obj.GetNamespace() == "" {
		return client.Resource(gvr)
	}
	return client.Resource(gvr).Namespace(obj.GetNamespace())
}

// Apply creates or changes the object by server-side apply.
func Apply(ctx context.Context, client dynamic.Interface, manager string, obj *Object) (*Object, error) {
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	return Of(client, obj).Apply(ctx, obj.GetName(), obj, options)
}

// Render fills a template of YAML documents; its function `json` writes any value as (JSON, thus also YAML) text.
func Render(text string, data any) ([]*Object, error) {
	functions := template.FuncMap{"json": func(v any) (string, error) {
		raw, err := json.Marshal(v)
		return string(raw), err
	}}
	parsed, err := template.New("manifest").Funcs(functions).Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		return nil, err
	}
	var objects []*Object
	for _, document := range strings.Split(out.String(), "\n---\n") {
		obj := &Object{}
		if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
			return nil, fmt.Errorf("%w in:\n%s", err, document)
		}
		if len(obj.Object) > 0 {
			objects = append(objects, obj)
		}
	}
	return objects, nil
}

// Run calls reconcile at the start, after every change of a watched resource, and every 30 seconds, until ctx ends.
func Run(ctx context.Context, client dynamic.Interface, reconcile func(context.Context) error,
	watched ...schema.GroupVersionResource) {
	changed := make(chan struct{}, 1)
	poke := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, gvr := range watched {
		go watch(ctx, client, gvr, poke)
	}
	for ctx.Err() == nil {
		if err := reconcile(ctx); err != nil {
			log.Printf("reconcile: %v", err)
			time.AfterFunc(2*time.Second, poke)
		}
		select {
		case <-changed:
			time.Sleep(100 * time.Millisecond) // changes come in bursts
		case <-time.After(30 * time.Second):
		case <-ctx.Done():
		}
	}
}

func watch(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource, poke func()) {
	for ctx.Err() == nil {
		watcher, err := client.Resource(gvr).Watch(ctx, metav1.ListOptions{})
		if err != nil { // also while its CRD is not there yet
			time.Sleep(time.Second)
			continue
		}
		for range watcher.ResultChan() {
			poke()
		}
		poke() // something may have happened between this watch and the next
	}
}
