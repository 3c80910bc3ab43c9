// cni-plugins stands for the image of the containernetworking plugins that the network operator deploys: it copies the
// real plugins of the image's /plugins into the host's directory of CNI plugins and then waits.
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
	plugins, err := filepath.Glob("/plugins/*")
	if err != nil || len(plugins) == 0 {
		log.Fatalf("no plugins in /plugins: %v", err)
	}
	for _, plugin := range plugins {
		program, err := os.ReadFile(plugin)
		if err != nil {
			log.Fatal(err)
		}
		if err := host.Write(filepath.Join(target, filepath.Base(plugin)), program, 0o755); err != nil {
			log.Fatal(err)
		}
	}
	log.Printf("%d plugins are in %s", len(plugins), target)
	host.Keep(time.Hour, func() error { return nil }, func() {})
}
