package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParseNetworks(t *testing.T) {
	for annotation, want := range map[string][]request{
		"":                      nil,
		"rdma-net":              {{Name: "rdma-net", Namespace: "jobs"}},
		"a, other/b@eth5":       {{Name: "a", Namespace: "jobs"}, {Name: "b", Namespace: "other", Interface: "eth5"}},
		`[{"name":"rdma-net"}]`: {{Name: "rdma-net", Namespace: "jobs"}},
		`[{"name":"x","namespace":"y","interface":"z","ips":["10.0.0.9/24"],"mac":"02:00:00:00:00:01"}]`: {
			{Name: "x", Namespace: "y", Interface: "z", IPs: []string{"10.0.0.9/24"}, MAC: "02:00:00:00:00:01"}},
	} {
		got, err := parseNetworks(annotation, "jobs")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v; want %+v", annotation, got, err, want)
		}
	}
	for _, bad := range []string{"a,,b", "[{]", `[{"namespace":"x"}]`} {
		if got, err := parseNetworks(bad, "jobs"); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, got)
		}
	}
}

func TestWriteConfigWrapsTheFirstNetwork(t *testing.T) {
	dir := t.TempDir()
	if there, err := writeConfig(dir); there || err != nil {
		t.Fatalf("empty directory: %v, %v", there, err)
	}
	for name, text := range map[string]string{
		"10-flannel.conflist": `{"name":"cbr0","plugins":[{"type":"flannel"},{"type":"portmap","capabilities":{"portMappings":true}}]}`,
		"99-loopback.conf":    `{"type":"loopback"}`,
		"README":              "no configuration",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time 00-multus.conf is there and must not wrap itself
		if there, err := writeConfig(dir); !there || err != nil {
			t.Fatalf("%v, %v", there, err)
		}
		raw, _ := os.ReadFile(filepath.Join(dir, configName))
		for _, want := range []string{`"portMappings": true`, `"name": "cbr0"`} {
			if strings.Count(string(raw), want) == 0 {
				t.Errorf("no %s in %s", want, raw)
			}
		}
	}
}
