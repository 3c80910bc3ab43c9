package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestIsSoft(t *testing.T) {
	sys := t.TempDir()
	for device, parent := range map[string]string{"rxe0": "ens3\n", "soft0": "net1\n"} {
		file := filepath.Join(sys, "class/infiniband", device, "parent")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(parent), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for config, want := range map[string]bool{
		`{"type": "macvlan", "master": "ens3"}`: true,
		`{"type": "macvlan", "master": "ens4"}`: false,
		`{"type": "macvlan"}`:                   false,
		`{`:                                     false,
	} {
		if got := isSoft(sys, []byte(config)); got != want {
			t.Errorf("%s: %v", config, got)
		}
	}
}
