package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// request is one network that a pod asks for by its annotation.
type request struct {
	Name      string   `json:"name"`
	Namespace string   `json:"namespace"`
	Interface string   `json:"interface"`
	IPs       []string `json:"ips"`
	MAC       string   `json:"mac"`
}

func (r request) capabilities() map[string]any {
	asked := map[string]any{}
	if len(r.IPs) > 0 {
		asked["ips"] = r.IPs
	}
	if r.MAC != "" {
		asked["mac"] = r.MAC
	}
	return asked
}

// parseNetworks reads the annotation: a JSON list, or `[namespace/]name[@interface]` separated by commas.
func parseNetworks(annotation, namespace string) ([]request, error) {
	annotation = strings.TrimSpace(annotation)
	var requests []request
	switch {
	case annotation == "":
		return nil, nil
	case strings.HasPrefix(annotation, "["):
		if err := json.Unmarshal([]byte(annotation), &requests); err != nil {
			return nil, fmt.Errorf("annotation k8s.v1.cni.cncf.io/networks: %w", err)
		}
	default:
		for _, item := range strings.Split(annotation, ",") {
			requests = append(requests, shortForm(strings.TrimSpace(item)))
		}
	}
	for i := range requests {
		if requests[i].Name == "" {
			return nil, fmt.Errorf("annotation k8s.v1.cni.cncf.io/networks: a network without a name in %q", annotation)
		}
		if requests[i].Namespace == "" {
			requests[i].Namespace = namespace
		}
	}
	return requests, nil
}

func shortForm(item string) request {
	var r request
	item, r.Interface, _ = strings.Cut(item, "@")
	if before, after, found := strings.Cut(item, "/"); found {
		r.Namespace, r.Name = before, after
	} else {
		r.Name = item
	}
	return r
}

// runtimeArgs splits CNI_ARGS, `K=V;K=V`.
func runtimeArgs(text string) [][2]string {
	var pairs [][2]string
	for _, item := range strings.Split(text, ";") {
		if key, value, found := strings.Cut(item, "="); found {
			pairs = append(pairs, [2]string{key, value})
		}
	}
	return pairs
}
