// soft-roce starts the real RDMA shared device plugin on hosts whose NIC has a software device (rdma_rxe) for an RDMA
// device. The plugin looks below the NIC's PCI device, where a real RDMA device is and a software device is not. So the
// plugin gets a view of /sys in which it is there, in this container's mount namespace only. On any other host the plugin
// runs as it is.
//
// On a real NIC all pods share one RDMA device. rdma_rxe serves one network namespace, so each pod has a device of its own
// (cni-plugins makes it), later than the plugin is asked for its files. So pods get the device files of all of them:
// /dev/infiniband/uverbsN and umadN, which the host makes beforehand.
//
// It does not: follow changes. What the NIC has when the container starts is what the plugin sees until it starts again.
package main

import (
	"log"
	"os"
	"path/filepath"
	"syscall"
)

const (
	plugin   = "/usr/local/bin/k8s-rdma-shared-dp"
	pciNames = "/usr/share/hwdata/pci.ids" // the plugin wants it, for the names in its log; empty will do
	place    = "/run/soft-roce"
)

func main() {
	if err := prepare("/sys", "/dev/infiniband"); err != nil {
		log.Fatalf("soft-roce: %v", err)
	}
	err := syscall.Exec(plugin, append([]string{plugin}, os.Args[1:]...), os.Environ())
	log.Fatalf("soft-roce: %s: %v", plugin, err)
}

func prepare(sys, dev string) error {
	if err := write(pciNames, ""); err != nil {
		return err
	}
	found := nics(sys)
	if len(found) == 0 {
		return nil
	}
	if err := os.MkdirAll(place, 0o755); err != nil {
		return err
	}
	// Upper layers of an overlay can't lie on the container's own overlay.
	if err := syscall.Mount("tmpfs", place, "tmpfs", 0, ""); err != nil {
		return &os.PathError{Op: "mount tmpfs", Path: place, Err: err}
	}
	for name, content := range tree(sys, dev, found) {
		if err := write(filepath.Join(place, name), content); err != nil {
			return err
		}
	}
	for _, class := range []string{verbs, mad} {
		own := filepath.Join(place, class)
		if _, err := os.Stat(own); err != nil {
			continue
		}
		if err := syscall.Mount(own, filepath.Join(sys, "class", class), "", syscall.MS_BIND, ""); err != nil {
			return &os.PathError{Op: "mount", Path: class, Err: err}
		}
	}
	for address, device := range found {
		log.Printf("soft-roce: %s gets the RDMA device %s", address, device)
		if err := cover(filepath.Join(sys, "bus/pci/devices", address), filepath.Join(place, "pci")); err != nil {
			return err
		}
	}
	return nil
}

// cover mounts a directory over a PCI device's, which shows through.
func cover(device, over string) error {
	target, err := filepath.EvalSymlinks(device)
	if err != nil {
		return err
	}
	below, err := os.MkdirTemp(place, "below") // a name without colons, which part the layers of an overlay
	if err != nil {
		return err
	}
	if err := syscall.Mount(target, below, "", syscall.MS_BIND, ""); err != nil {
		return &os.PathError{Op: "mount", Path: target, Err: err}
	}
	if err := syscall.Mount("overlay", target, "overlay", syscall.MS_RDONLY, "lowerdir="+over+":"+below); err != nil {
		return &os.PathError{Op: "mount overlay", Path: target, Err: err}
	}
	return nil
}

func write(file, content string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(content), 0o644)
}
