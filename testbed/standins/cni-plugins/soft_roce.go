package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

const (
	real    = ".real" // what the real plugin is called on a host where this one has its name
	devices = 15      // in a host's pods: it has device files for them, and for the NIC's own
)

// macvlan runs the real plugin, and gives an RDMA device to the interface that it made.
func macvlan() {
	program, err := os.Executable()
	if err != nil {
		fail(err)
	}
	config, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	command := os.Getenv("CNI_COMMAND")
	result, err := run(program+real, command, config)
	if err == nil && command == "ADD" && isSoft("/sys", config) {
		if err = addDevice(os.Getenv("CNI_NETNS"), os.Getenv("CNI_IFNAME")); err != nil {
			_, _ = run(program+real, "DEL", config)
			fail(err)
		}
	}
	_, _ = os.Stdout.Write(result) // the real plugin's error too
	if err != nil {
		os.Exit(1)
	}
}

func run(program, command string, config []byte) ([]byte, error) {
	process := exec.Command(program)
	process.Env = append(os.Environ(), "CNI_COMMAND="+command)
	process.Stdin, process.Stderr = bytes.NewReader(config), os.Stderr
	return process.Output()
}

func fail(err error) {
	_ = types.NewError(types.ErrInternal, "soft-roce: "+err.Error(), "").Print()
	os.Exit(1)
}

// isSoft says whether the configuration's master carries a software device.
func isSoft(sys string, config []byte) bool {
	var network struct{ Master string }
	if json.Unmarshal(config, &network) != nil || network.Master == "" {
		return false
	}
	parents, _ := filepath.Glob(filepath.Join(sys, "class/infiniband/*/parent"))
	for _, file := range parents {
		if parent, _ := os.ReadFile(file); strings.TrimSpace(string(parent)) == network.Master {
			return true
		}
	}
	return false
}

// addDevice makes an RDMA device on an interface of a network namespace. Names are the host's, so the first free one is taken.
func addDevice(namespace, netdev string) error {
	runtime.LockOSThread() // and stay there: this process ends soon
	handle, err := netns.GetFromPath(namespace)
	if err != nil {
		return err
	}
	if err := netns.Set(handle); err != nil {
		return err
	}
	for number := range devices {
		err := netlink.RdmaLinkAdd(fmt.Sprintf("soft%d", number), "rxe", netdev)
		if !errors.Is(err, syscall.EEXIST) && !errors.Is(err, syscall.ENFILE) {
			return err
		}
	}
	return fmt.Errorf("all %d RDMA devices for pods are in use", devices)
}
