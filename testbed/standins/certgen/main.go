// certgen stands for kube-webhook-certgen: `create` makes a CA and a server certificate in a Secret unless it is there,
// `patch` puts the Secret's CA and a failure policy into the webhook configurations of a name.
//
// It does not: renew anything, know API services, or the original's other key names and flags.
package main

import (
	"context"
	"encoding/base64"
	"flag"
	"log"
	"os"
	"strings"

	"ipu.fabric/standins/internal/certs"
	"ipu.fabric/standins/internal/kube"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: certgen create|patch [flags]")
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	namespace := flags.String("namespace", "", "of the Secret")
	secret := flags.String("secret-name", "", "the Secret")
	hosts := flags.String("host", "", "names of the server, separated by commas")
	webhook := flags.String("webhook-name", "", "the webhook configurations")
	mutating := flags.Bool("patch-mutating", true, "patch the mutating one")
	validating := flags.Bool("patch-validating", true, "patch the validating one")
	policy := flags.String("patch-failure-policy", "", "Fail or Ignore")
	_ = flags.Parse(os.Args[2:])
	client, err := kube.Client(os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	secrets := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(*namespace)
	switch os.Args[1] {
	case "create":
		err = create(ctx, secrets, *secret, strings.Split(*hosts, ","))
	case "patch":
		for kind, wanted := range map[string]bool{"mutating": *mutating, "validating": *validating} {
			if err == nil && wanted {
				err = patch(ctx, client, secrets, kind, *webhook, *secret, *policy)
			}
		}
	default:
		log.Fatalf("unknown command %s", os.Args[1])
	}
	if err != nil {
		log.Fatal(err)
	}
}

func create(ctx context.Context, secrets dynamic.ResourceInterface, name string, hosts []string) error {
	if _, err := secrets.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err // nothing to do when it is there
	}
	data, err := certificates(hosts)
	if err != nil {
		return err
	}
	obj := &kube.Object{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data}}
	obj.SetName(name)
	_, err = secrets.Create(ctx, obj, metav1.CreateOptions{})
	return err
}

// certificates makes a CA and a certificate of it, as the data of a Secret.
func certificates(hosts []string) (map[string]any, error) {
	ca, pairs, err := certs.Make(map[string][]string{"webhook": hosts})
	encode := base64.StdEncoding.EncodeToString
	return map[string]any{"ca": encode(ca), "cert": encode(pairs["webhook"].Cert), "key": encode(pairs["webhook"].Key)}, err
}

func patch(ctx context.Context, client dynamic.Interface, secrets dynamic.ResourceInterface,
	kind, name, secret, policy string) error {
	obj, err := secrets.Get(ctx, secret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ca := obj.Object["data"].(map[string]any)["ca"]
	configurations := client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: kind + "webhookconfigurations"})
	configuration, err := configurations.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, w := range configuration.Object["webhooks"].([]any) {
		webhook := w.(map[string]any)
		webhook["clientConfig"].(map[string]any)["caBundle"] = ca
		if policy != "" {
			webhook["failurePolicy"] = policy
		}
	}
	_, err = configurations.Update(ctx, configuration, metav1.UpdateOptions{})
	return err
}
