// rdma-shared-dp stands for the RDMA shared device plugin on hosts without RDMA hardware: it reads its configuration,
// says what it was asked to serve, and stops with an error when the host has no RDMA subsystem, so that its pod
// crash-loops as the real one's does.
//
// It does not: register with the kubelet. No node gets an extended resource from it.
package main

import (
	"encoding/json"
	"log"
	"os"
	"time"

	"ipu.fabric/standins/internal/host"
)

func main() {
	raw, err := os.ReadFile("/k8s-rdma-shared-dev-plugin/config.json")
	if err != nil {
		log.Fatal(err)
	}
	var config struct {
		List []struct {
			Resource string `json:"resourceName"`
			Prefix   string `json:"resourcePrefix"`
		} `json:"configList"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		log.Fatalf("config.json: %v", err)
	}
	for _, resource := range config.List {
		if resource.Prefix == "" {
			resource.Prefix = "rdma"
		}
		log.Printf("resource %s/%s", resource.Prefix, resource.Resource)
	}
	if links, err := os.ReadDir("/sys/class/infiniband"); err != nil || len(links) == 0 {
		log.Fatal("can not get RDMA subsystem network namespace mode: no RDMA link on this host")
	}
	host.Keep(time.Hour, func() error { return nil }, func() {})
}
