package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ipu.fabric/standins/internal/host"
	"ipu.fabric/standins/internal/kube"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	stateDir = "/var/lib/cni/nv-ipam"
	logFile  = "/var/log/nv-ipam-cni.log"
)

// pluginConfig is what the installer tells the plugin of its node.
type pluginConfig struct {
	Node       string `json:"nodeName"`
	Namespace  string `json:"poolsNamespace"`
	Kubeconfig string `json:"kubeconfig"`
}

type network struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	IPAM       struct {
		PoolName string `json:"poolName"`
		PoolType string `json:"poolType"`
	} `json:"ipam"`
}

// store is the state on disk: of each pool, the address given last and who has which.
type store map[string]*poolState

type poolState struct {
	Last    netip.Addr            `json:"lastReservedIP"`
	Entries map[string]netip.Addr `json:"entries"`
}

func add(args *skel.CmdArgs) error {
	conf, err := parseNetwork(args)
	if err != nil {
		return err
	}
	if out, err := os.OpenFile(logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
		fmt.Fprintf(out, "%s ADD %s %s\n", time.Now().UTC().Format(time.RFC3339), args.ContainerID, conf.IPAM.PoolName)
		_ = out.Close()
	}
	result := &types100.Result{CNIVersion: conf.CNIVersion}
	for _, name := range strings.Split(conf.IPAM.PoolName, ",") { // two for dual stack
		spec, own, err := poolOfNode(name)
		if err != nil {
			return err
		}
		if err := allocate(args, name, spec, own, result); err != nil {
			return fmt.Errorf("pool %q: %w", name, err)
		}
	}
	return types.PrintResult(result, conf.CNIVersion)
}

func del(args *skel.CmdArgs) error {
	return withStore(func(s store) error {
		for _, state := range s {
			delete(state.Entries, owner(args))
		}
		return nil
	})
}

func parseNetwork(args *skel.CmdArgs) (*network, error) {
	conf := &network{}
	if err := json.Unmarshal(args.StdinData, conf); err != nil {
		return nil, err
	}
	if conf.IPAM.PoolType != "" && conf.IPAM.PoolType != "ippool" {
		return nil, fmt.Errorf("poolType %q is not one that this stand-in has", conf.IPAM.PoolType)
	}
	if conf.IPAM.PoolName == "" {
		conf.IPAM.PoolName = conf.Name
	}
	return conf, nil
}

// poolOfNode asks the API server for the pool and finds this node's block in its status.
func poolOfNode(name string) (poolSpec, block, error) {
	var settings pluginConfig
	raw, err := os.ReadFile(hostConfig + "nv-ipam.conf")
	if err != nil {
		return poolSpec{}, block{}, err
	}
	if err := json.Unmarshal(raw, &settings); err != nil {
		return poolSpec{}, block{}, err
	}
	client, err := kube.Client(settings.Kubeconfig)
	if err != nil {
		return poolSpec{}, block{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	obj, err := client.Resource(pools).Namespace(settings.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return poolSpec{}, block{}, err
	}
	var pool ipPool
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &pool); err != nil {
		return poolSpec{}, block{}, err
	}
	for _, a := range pool.Status.Allocations {
		if a.NodeName == settings.Node {
			own, err := spans([]span{{a.StartIP, a.EndIP}})
			if err != nil {
				return poolSpec{}, block{}, err
			}
			return pool.Spec, own[0], nil
		}
	}
	return poolSpec{}, block{}, fmt.Errorf("configuration for pool %q, poolType \"ippool\" not found", name)
}

func allocate(args *skel.CmdArgs, pool string, spec poolSpec, own block, result *types100.Result) error {
	subnet, err := netip.ParsePrefix(spec.Subnet)
	if err != nil {
		return err
	}
	gateway, err := optionalAddr(spec.Gateway)
	if err != nil {
		return err
	}
	exclusions, err := spans(spec.Exclusions)
	if err != nil {
		return err
	}
	var address netip.Addr
	err = withStore(func(s store) error {
		state := s[pool]
		if state == nil {
			state = &poolState{Entries: map[string]netip.Addr{}}
			s[pool] = state
		}
		taken := map[netip.Addr]bool{}
		for _, a := range state.Entries {
			taken[a] = true
		}
		if address, err = pick(own, state.Last, gateway, exclusions, taken); err != nil {
			return err
		}
		state.Last, state.Entries[owner(args)] = address, address
		return nil
	})
	if err != nil {
		return err
	}
	mask := net.CIDRMask(subnet.Bits(), address.BitLen())
	ip := &types100.IPConfig{Address: net.IPNet{IP: address.AsSlice(), Mask: mask}}
	if gateway.IsValid() {
		ip.Gateway = gateway.AsSlice()
	}
	result.IPs = append(result.IPs, ip)
	destinations := spec.Routes
	if spec.DefaultGateway {
		any := map[bool]string{true: "0.0.0.0/0", false: "::/0"}[address.Is4()]
		destinations = append(destinations, route{any})
	}
	for _, r := range destinations {
		_, dst, err := net.ParseCIDR(r.Dst)
		if err != nil {
			return err
		}
		result.Routes = append(result.Routes, &types.Route{Dst: *dst, GW: ip.Gateway})
	}
	return nil
}

func owner(args *skel.CmdArgs) string { return args.ContainerID + "_" + args.IfName }

// withStore changes the state on disk under a lock, since plugins run side by side.
func withStore(change func(store) error) error {
	if err := os.MkdirAll(stateDir, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(stateDir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	path := filepath.Join(stateDir, "store")
	s := store{}
	if raw, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
	}
	if err := change(s); err != nil {
		return err
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return host.Write(path, raw, 0o600)
}
