// cni-plugins stands for the image of the containernetworking plugins that the network operator deploys: it copies the
// real plugins of the image's /plugins into the host's directory of CNI plugins and then waits.
//
// On hosts with Soft-RoCE (rdma_rxe is loaded) it is also the plugin `macvlan`, around the real one: a software device
// serves one network namespace only, so each macvlan interface of a NIC with such a device gets one too, where it is. It
// goes with its interface.
//
// It does not: build them (the testbed does, from their Go module), or replace one that the host has from elsewhere by
// an older one with care: like the real image it overwrites.
package main

import (
	"log"
	"os"
	"path/filepath"
	"time"

	"ipu.fabric/standins/internal/host"
)

const target = "/host/opt/cni/bin"

func main() {
	if host.IsPlugin() {
		macvlan()
		return
	}
	plugins, err := filepath.Glob("/plugins/*")
	if err != nil || len(plugins) == 0 {
		log.Fatalf("no plugins in /plugins: %v", err)
	}
	_, err = os.Stat("/sys/module/rdma_rxe")
	wrap := err == nil
	for _, plugin := range plugins {
		program, err := os.ReadFile(plugin)
		if err != nil {
			log.Fatal(err)
		}
		path := filepath.Join(target, filepath.Base(plugin))
		if wrap && filepath.Base(plugin) == "macvlan" {
			path += real
		}
		if err := host.Write(path, program, 0o755); err != nil {
			log.Fatal(err)
		}
	}
	if wrap {
		if err := host.InstallSelf(filepath.Join(target, "macvlan")); err != nil {
			log.Fatal(err)
		}
	}
	log.Printf("%d plugins are in %s", len(plugins), target)
	host.Keep(time.Hour, func() error { return nil }, func() {})
}
