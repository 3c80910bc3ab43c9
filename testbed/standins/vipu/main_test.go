package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	directory := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("address", "10.5.0.20\n")
	config := write("cli.hcl", "api-host = \"10.5.0.20\"\napi-port=8090\n")
	closed := write("closed.hcl", "api-host=\"127.0.0.1\"\napi-port=1\n")
	for _, c := range []struct {
		mode, arguments, output, failure string
		code                             int
	}{
		{"json", "", "version: 1.18.0\nhost: 10.5.0.20:8090\n", "", 0},
		{"json", "--showjson", `"host": "10.5.0.20:8090"`, "", 0},
		{"json\nhost=10.6.0.1\nport=9\nversion=1.17.3", "", "version: 1.17.3\nhost: 10.6.0.1:9\n", "", 0},
		{"json", "--showjson --config " + config, `"host": "10.5.0.20:8090"`, "", 0},
		{"json", "--config " + closed, "", "127.0.0.1:1", 1},
		{"json", "-H 127.0.0.1 --api-port 1", "", "127.0.0.1:1", 1},
		{"json", "-H 127.0.0.1:1", "", "127.0.0.1:1", 1},
		{"json", "-H [::1]:1", "", "[::1]:1", 1},
		{"json", "--config /nowhere", "", "no such file", 1},
		{"text", "--showjson", "host: 10.5.0.20:8090\n", "", 0},
		{"ipv6\nhost6=fd00::9", "--showjson", `"host": "[fd00::9]:8090"`, "", 0},
		{"hostname\nname=pod005", "--showjson", `"host": "pod005:8090"`, "", 0},
		{"localhost", "", "host: localhost:8090\n", "", 0},
		{"garbage", "--showjson", "{host: ]", "", 0},
		{"unreachable", "", "", "10.5.0.20:8090", 1},
	} {
		write("mode", c.mode+"\n")
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"--server-version"}, strings.Fields(c.arguments)...), directory, &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String(), c.output) || !strings.Contains(stderr.String(), c.failure) {
			t.Errorf("%q %q: %d, %q, %q", c.mode, c.arguments, code, stdout.String(), stderr.String())
		}
	}
}
