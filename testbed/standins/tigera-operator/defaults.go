package main

import (
	"strings"

	"ipu.fabric/standins/internal/kube"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fillDefaults writes the real operator's defaults into an Installation's spec, where nothing else is said.
func fillDefaults(spec map[string]any) {
	fill(spec, map[string]any{
		"variant":                 "Calico",
		"controlPlaneReplicas":    int64(2),
		"flexVolumePath":          "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
		"kubeletVolumePluginPath": "/var/lib/kubelet",
		"nodeUpdateStrategy":      map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": int64(1)}},
		"cni": map[string]any{"type": "Calico", "ipam": map[string]any{"type": "Calico"},
			"binDir": "/opt/cni/bin", "confDir": "/etc/cni/net.d"},
		"logging": map[string]any{"cni": map[string]any{"logSeverity": "Info", "logFileMaxSize": "100Mi",
			"logFileMaxCount": int64(10), "logFileMaxAgeDays": int64(30)}},
		"calicoNetwork": map[string]any{"bgp": "Enabled", "hostPorts": "Enabled", "linuxDataplane": "Iptables",
			"linuxPolicySetupTimeoutSeconds": int64(0), "multiInterfaceMode": "None", "windowsDataplane": "Disabled",
			"ipPools": []any{map[string]any{"cidr": "192.168.0.0/16"}}},
	})
	network := spec["calicoNetwork"].(map[string]any)
	for _, p := range network["ipPools"].([]any) {
		pool := p.(map[string]any)
		// Detection of the node's address goes with the family of the pools.
		v6 := isIPv6(pool)
		detection := map[bool]string{false: "nodeAddressAutodetectionV4", true: "nodeAddressAutodetectionV6"}[v6]
		fill(network, map[string]any{detection: map[string]any{"firstFound": true}}, detection)
		fill(pool, map[string]any{"allowedUses": []any{"Workload", "Tunnel"}, "assignmentMode": "Automatic",
			"disableBGPExport": false, "disableNewAllocations": false, "nodeSelector": "all()"})
		if v6 {
			fill(pool, map[string]any{"name": "default-ipv6-ippool", "blockSize": int64(122), "encapsulation": "None", "natOutgoing": "Disabled"})
		} else {
			fill(pool, map[string]any{"name": "default-ipv4-ippool", "blockSize": int64(26), "encapsulation": "IPIP", "natOutgoing": "Enabled"})
		}
	}
}

// fill adds what is missing, also inside of maps, but for those that are whole.
func fill(into, defaults map[string]any, whole ...string) {
	for key, value := range defaults {
		present, there := into[key]
		if !there {
			into[key] = value
			continue
		}
		inner, isMap := present.(map[string]any)
		if more, both := value.(map[string]any); isMap && both && len(whole) == 0 {
			fill(inner, more)
		}
	}
}

func isIPv6(pool map[string]any) bool { return strings.Contains(pool["cidr"].(string), ":") }

// pools are the address pools as calico-node reads them.
func pools(installation *kube.Object) []*kube.Object {
	wanted, _, _ := unstructured.NestedSlice(installation.Object, "spec", "calicoNetwork", "ipPools")
	var objects []*kube.Object
	for _, p := range wanted {
		pool := p.(map[string]any)
		mode := func(tunnel string) string {
			switch pool["encapsulation"] {
			case tunnel:
				return "Always"
			case tunnel + "CrossSubnet":
				return "CrossSubnet"
			}
			return "Never"
		}
		spec := map[string]any{"ipipMode": mode("IPIP"), "vxlanMode": mode("VXLAN"),
			"natOutgoing": pool["natOutgoing"] == "Enabled", "disabled": pool["disableNewAllocations"]}
		for _, key := range []string{"cidr", "blockSize", "nodeSelector", "allowedUses", "assignmentMode", "disableBGPExport"} {
			spec[key] = pool[key]
		}
		obj := &kube.Object{Object: map[string]any{"apiVersion": "crd.projectcalico.org/v1", "kind": "IPPool", "spec": spec}}
		obj.SetName(pool["name"].(string))
		obj.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "tigera-operator"})
		objects = append(objects, obj)
	}
	return objects
}
