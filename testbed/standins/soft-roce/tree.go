package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The classes that say which device file belongs to which RDMA device.
const (
	verbs = "infiniband_verbs"
	mad   = "infiniband_mad"
)

var prefixes = map[string]string{verbs: "uverbs", mad: "umad"}

// nics are the PCI addresses of NICs that carry a software device and have no RDMA device of their own, and which it is.
func nics(sys string) map[string]string {
	found := map[string]string{}
	parents, _ := filepath.Glob(filepath.Join(sys, "class/infiniband/*/parent"))
	for _, parent := range parents {
		homes, _ := filepath.Glob(filepath.Join(sys, "bus/pci/devices/*/net", text(parent)))
		for _, home := range homes {
			pci := filepath.Dir(filepath.Dir(home))
			if _, err := os.Stat(filepath.Join(pci, "infiniband")); err != nil {
				found[filepath.Base(pci)] = filepath.Base(filepath.Dir(parent))
			}
		}
	}
	return found
}

// tree is what the plugin sees: below pci/infiniband a device for each device file that the host has, and the file's class
// where the NIC's own device is in it (so a module that is not loaded is missed as it would be).
func tree(sys, dev string, nics map[string]string) map[string]string {
	files := map[string]string{}
	for class, prefix := range prefixes {
		if !serves(filepath.Join(sys, "class", class), nics) {
			continue
		}
		nodes, _ := filepath.Glob(filepath.Join(dev, prefix+"*"))
		for _, node := range nodes {
			device := "soft" + strings.TrimPrefix(filepath.Base(node), prefix)
			files[filepath.Join(class, filepath.Base(node), "ibdev")] = device + "\n"
		}
	}
	nodes, _ := filepath.Glob(filepath.Join(dev, "uverbs*"))
	for _, node := range nodes {
		number := strings.TrimPrefix(filepath.Base(node), "uverbs")
		files[fmt.Sprintf("pci/infiniband/soft%s/stands_for", number)] = node + "\n"
	}
	return files
}

// serves says whether one of the NICs' devices is in a class.
func serves(class string, nics map[string]string) bool {
	entries, _ := filepath.Glob(filepath.Join(class, "*/ibdev"))
	for _, entry := range entries {
		for _, device := range nics {
			if text(entry) == device {
				return true
			}
		}
	}
	return false
}

func text(file string) string {
	content, _ := os.ReadFile(file)
	return strings.TrimSpace(string(content))
}
