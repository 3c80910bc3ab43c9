// node-feature-discovery stands for NFD's worker: it labels its node with feature.node.kubernetes.io/pci-15b3.present
// while the node has a network card of that PCI vendor.
//
// It does not: look for any other feature, read NodeFeatureRules, publish NodeFeatures, or need a master.
package main

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ipu.fabric/standins/internal/host"
	"ipu.fabric/standins/internal/kube"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func main() {
	client, err := kube.Client(os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	host.Keep(10*time.Second, func() error {
		value := "null"
		if hasVendor("/sys/bus/pci/devices", "0x15b3", "0x0200", "0x0207") {
			value = `"true"`
		}
		patch := `{"metadata":{"labels":{"feature.node.kubernetes.io/pci-15b3.present":` + value + `}}}`
		_, err := client.Resource(kube.Nodes).Patch(context.Background(), os.Getenv("NODE_NAME"), types.MergePatchType,
			[]byte(patch), metav1.PatchOptions{})
		return err
	}, func() {})
}

func hasVendor(devices, vendor string, classes ...string) bool {
	found, _ := filepath.Glob(devices + "/*")
	for _, device := range found {
		id, _ := os.ReadFile(device + "/vendor")
		class, _ := os.ReadFile(device + "/class")
		for _, wanted := range classes {
			if strings.TrimSpace(string(id)) == vendor && strings.HasPrefix(string(class), wanted) {
				return true
			}
		}
	}
	return false
}
