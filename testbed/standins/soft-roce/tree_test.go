package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const pci = "/sys/bus/pci/devices/"

// host is a directory with the files of a host, by their contents.
func host(t *testing.T, files ...string) string {
	root := t.TempDir()
	contents := map[string]string{
		"/sys/class/infiniband/rxe0/parent":         "ens3\n",
		"/sys/class/infiniband/soft0/parent":        "net1\n", // a pod's
		"/sys/class/infiniband_verbs/uverbs0/ibdev": "rxe0\n",
		"/sys/class/infiniband_verbs/uverbs1/ibdev": "soft0\n",
		pci + "0000:00:03.0/net/ens3/mtu":           "1500\n",
		pci + "0000:00:04.0/virtio0/net/ens4/mtu":   "1500\n",
		"/dev/infiniband/uverbs0":                   "",
		"/dev/infiniband/uverbs12":                  "",
		"/dev/infiniband/umad0":                     "",
		"/dev/infiniband/rdma_cm":                   "",
	}
	for _, name := range files {
		contents[name] = "rxe0\n"
	}
	for name, content := range contents {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestNICs(t *testing.T) {
	for own, want := range map[string]map[string]string{
		"/dev/null0": {"0000:00:03.0": "rxe0"},
		pci + "0000:00:03.0/infiniband/mlx5_0/node": {}, // has a real one
	} {
		if got := nics(filepath.Join(host(t, own), "sys")); !reflect.DeepEqual(got, want) {
			t.Errorf("with %s: %v, want %v", own, got, want)
		}
	}
}

func TestTree(t *testing.T) {
	want := []string{ // no module ib_umad: no umad
		"infiniband_verbs/uverbs0/ibdev=soft0\n",
		"infiniband_verbs/uverbs12/ibdev=soft12\n",
		"pci/infiniband/soft0/stands_for",
		"pci/infiniband/soft12/stands_for",
	}
	check := func(files []string, want ...string) {
		t.Helper()
		root := host(t, files...)
		got := tree(filepath.Join(root, "sys"), filepath.Join(root, "dev/infiniband"), map[string]string{"0000:00:03.0": "rxe0"})
		for _, name := range want {
			name, content, exact := strings.Cut(name, "=")
			if found, ok := got[name]; !ok || exact && found != content {
				t.Errorf("%s is %q, want %q", name, found, content)
			}
		}
		if len(got) != len(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	check(nil, want...)
	check([]string{"/sys/class/infiniband_mad/umad0/ibdev"}, append(want, "infiniband_mad/umad0/ibdev=soft0\n")...)
}
