package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCopyProgram(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "a"), filepath.Join(folder, "b")
	if err := os.WriteFile(from, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a launcher that is restarted finds it there
		if err := copyProgram(from, to); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode().Perm() != 0o755 || info.Size() != 7 {
		t.Errorf("%v, %v", info, err)
	}
}
