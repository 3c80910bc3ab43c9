// Package host is what the stand-ins share that install a CNI plugin on a node: the pod copies its own program into
// the host's directory of CNI plugins and keeps a kubeconfig with its service account's token beside the configuration.
package host

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"

// IsPlugin says whether the program runs as a CNI plugin, that is, was started by a runtime or by multus.
func IsPlugin() bool { return os.Getenv("CNI_COMMAND") != "" }

// InstallSelf copies the running program to a path, atomically, since a plugin may be running from there.
func InstallSelf(path string) error {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	return Write(path, program, 0o755)
}

// Write replaces a file atomically, making its directory; it leaves a file alone that says the same already.
func Write(path string, content []byte, mode os.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// Kubeconfig is the text of a kubeconfig that acts as the pod's service account, with a default namespace.
func Kubeconfig(namespace string) ([]byte, error) {
	token, err := os.ReadFile(serviceAccount + "token")
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(serviceAccount + "ca.crt")
	if err != nil {
		return nil, err
	}
	server := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: local
  cluster: {server: "https://%s", certificate-authority-data: %q}
users:
- name: plugin
  user: {token: %q}
contexts:
- name: plugin
  context: {cluster: local, user: plugin, namespace: %q}
current-context: plugin
`, server, base64.StdEncoding.EncodeToString(ca), token, namespace), nil
}

// Keep calls refresh at the start and after every interval (tokens rotate) until the pod is told to stop, then clean.
func Keep(interval time.Duration, refresh func() error, clean func()) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	for {
		if err := refresh(); err != nil {
			log.Printf("refresh: %v", err)
		}
		select {
		case <-stop:
			clean()
			return
		case <-time.After(interval):
		}
	}
}
