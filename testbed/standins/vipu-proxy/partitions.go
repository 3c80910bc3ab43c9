package main

import (
	"errors"

	"ipu.fabric/standins/internal/ipu"
)

const ipusPerController = 32

var errNoRoom = errors.New("partition not ready yet")

type counts struct {
	Used      int `json:"used"`
	Available int `json:"available"`
}

// usage is the answer of /stats: a count for every namespace that has partitions, and the total.
func usage(list []ipu.Partition, controllers int) map[string]counts {
	all := map[string]counts{}
	used := 0
	for _, p := range list {
		used += p.Size
		all[p.Namespace] = counts{Used: all[p.Namespace].Used + p.Size}
	}
	all["default"] = counts{Used: all["default"].Used}
	for namespace, c := range all {
		all[namespace] = counts{Used: c.Used, Available: controllers*ipusPerController - used}
	}
	all["total"] = counts{Used: used, Available: controllers*ipusPerController - used}
	return all
}

func freeIPUs(list []ipu.Partition, controller ipu.Partition) int {
	free := ipusPerController
	for _, p := range list {
		if p.Host == controller.Host && p.Port == controller.Port {
			free -= p.Size
		}
	}
	return free
}

// place adds the partition at the first controller with room for it.
func place(list, controllers []ipu.Partition, wanted ipu.Partition) ([]ipu.Partition, error) {
	for _, c := range controllers {
		if freeIPUs(list, c) >= wanted.Size {
			c.Name, c.Namespace, c.Size = wanted.Name, wanted.Namespace, wanted.Size
			return append(list[:len(list):len(list)], c), nil
		}
	}
	return list, errNoRoom
}
