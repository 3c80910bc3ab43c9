// Package ipu is what the stand-ins of the IPU operator's controller and of its V-IPU proxy say to each other. The real
// ones have an interface of their own, which is not public.
package ipu

// Partition is a set of IPUs for one instance of a job.
type Partition struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Size      int    `json:"size"`
	// Where it is, filled in by the proxy: the V-IPU server and the label of the nodes that it serves.
	Host  string `json:"host,omitempty"`
	Port  string `json:"port,omitempty"`
	Label string `json:"label,omitempty"`
	Value string `json:"value,omitempty"`
}
