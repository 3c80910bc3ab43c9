// multus stands for the thin Multus CNI. As a pod it installs itself as a CNI plugin and wraps the cluster network's
// configuration into 00-multus.conf, which it removes when it stops (so pods made during its restart silently lack their
// further networks, as with the real one). As a plugin it runs the cluster network, then every network that the pod's
// annotation names, and writes the network-status annotation.
//
// It does not: know default-route requests, network namespaces of its own, device plugins' resources, the thick mode,
// CHECK, or network attachments that have no config. It does not watch the cluster network's configuration for changes.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"
	"time"

	"ipu.fabric/standins/internal/host"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
)

const (
	configDir  = "/host/etc/cni/net.d"
	configName = "00-multus.conf"
	kubeconfig = "multus.d/multus.kubeconfig"
)

func main() {
	if host.IsPlugin() {
		skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: func(*skel.CmdArgs) error { return nil }},
			version.PluginSupports("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"), "multus stand-in")
		return
	}
	for _, name := range []string{"multus", "passthru"} { // the second one is there and unused, as with the real installer
		if err := host.InstallSelf("/host/opt/cni/bin/" + name); err != nil {
			log.Fatal(err)
		}
	}
	configured := false
	host.Keep(time.Second, func() error {
		text, err := host.Kubeconfig("default")
		if err != nil {
			return err
		}
		if err := host.Write(filepath.Join(configDir, kubeconfig), text, 0o600); err != nil || configured {
			return err
		}
		configured, err = writeConfig(configDir) // nothing happens until there is a cluster network to wrap
		if configured {
			log.Printf("wrote %s", configName)
		}
		return err
	}, func() { _ = os.Remove(filepath.Join(configDir, configName)) })
}

// writeConfig wraps the first network configuration of the directory, and says whether there was one.
func writeConfig(dir string) (bool, error) {
	network, err := clusterNetwork(dir)
	if err != nil || network == nil {
		return false, err
	}
	wrapped, err := json.MarshalIndent(map[string]any{
		"cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus",
		"capabilities": capabilities(network),
		"kubeconfig":   "/etc/cni/net.d/" + kubeconfig,
		"delegates":    []any{network},
	}, "", "  ")
	if err != nil {
		return false, err
	}
	return true, host.Write(filepath.Join(dir, configName), wrapped, 0o600)
}

func clusterNetwork(dir string) (map[string]any, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".conf", ".conflist", ".json":
		default:
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		var network map[string]any
		if err := json.Unmarshal(raw, &network); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		if network["type"] != "multus" {
			return network, nil
		}
	}
	return nil, nil
}

// capabilities are those that any plugin of the network asks the runtime for, such as port mappings.
func capabilities(network map[string]any) map[string]any {
	all := map[string]any{}
	plugins, _ := network["plugins"].([]any)
	for _, plugin := range append(plugins, network) {
		if own, ok := plugin.(map[string]any)["capabilities"].(map[string]any); ok {
			for name, wanted := range own {
				all[name] = wanted
			}
		}
	}
	return all
}
