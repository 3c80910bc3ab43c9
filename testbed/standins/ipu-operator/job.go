package main

import (
	"fmt"
	"strconv"

	"ipu.fabric/standins/internal/kube"

	"k8s.io/apimachinery/pkg/runtime"
)

const maxNameLength = 36 // of a job, for the names and labels derived from it

// job is the part of an IPUJob that the stand-in reads.
type job struct {
	Spec jobSpec `json:"spec"`
	// Status is kept as it is, but for what is read here.
	Status struct {
		Conditions     []kube.Condition `json:"conditions"`
		LauncherStatus string           `json:"launcherStatus"`
		// Instances of the last reconciliation.
		DesiredReplicas int64  `json:"desiredReplicas"`
		RestartCount    int64  `json:"restartCount"`
		StartTime       string `json:"startTime"`
		CompletionTime  string `json:"completionTime"`
	} `json:"status"`
}

type jobSpec struct {
	JobInstances          int64  `json:"jobInstances"`
	IPUsPerJobInstance    string `json:"ipusPerJobInstance"`
	WorkersPerJobInstance string `json:"workersPerJobInstance"`
	ModelReplicas         string `json:"modelReplicasPerWorker"`
	CleanPodPolicy        string `json:"cleanPodPolicy"`
	RestartPolicy         struct {
		Type         string `json:"type"`
		BackOffLimit *int64 `json:"backOffLimit"`
		ExitCodes    string `json:"exitCodes"`
	} `json:"restartPolicy"`
	Interactive *struct {
		TTL int64 `json:"ttl"`
	} `json:"interactive"`
	Launcher *struct {
		Command []any `json:"command"`
		Env     []any `json:"env"`
	} `json:"launcher"`
	Workers struct {
		Template map[string]any `json:"template"`
	} `json:"workers"`
}

func parseJob(obj *kube.Object) (*job, error) {
	j := &job{}
	return j, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, j)
}

// count reads one of the numbers that an IPUJob keeps as strings; empty means 1.
func count(text string) int {
	n, err := strconv.Atoi(text)
	if text == "" || err != nil {
		return 1
	}
	return n
}

func (j *job) workersPerInstance() int { return count(j.Spec.WorkersPerJobInstance) }

func (j *job) hasLauncher() bool { return j.Spec.Launcher != nil || j.Spec.Interactive != nil }

// validate is what the validating webhook refuses.
func (j *job) validate() error {
	for _, field := range []struct{ name, value string }{
		{"ipusPerJobInstance", j.Spec.IPUsPerJobInstance},
		{"workersPerJobInstance", j.Spec.WorkersPerJobInstance},
		{"modelReplicasPerWorker", j.Spec.ModelReplicas},
	} {
		if n, err := strconv.Atoi(field.value); field.value != "" && (err != nil || n < 1) {
			return fmt.Errorf("spec.%s: %q is not a positive number", field.name, field.value)
		}
	}
	ipus := count(j.Spec.IPUsPerJobInstance)
	if ipus > 64 || ipus&(ipus-1) != 0 {
		return fmt.Errorf("spec.ipusPerJobInstance: %d is not a power of two up to 64", ipus)
	}
	if j.Spec.JobInstances < 1 {
		return fmt.Errorf("spec.jobInstances: %d is less than 1", j.Spec.JobInstances)
	}
	if j.Spec.Launcher != nil && j.Spec.Interactive != nil {
		return fmt.Errorf("spec: launcher and interactive exclude each other")
	}
	if j.hasLauncher() && j.Spec.JobInstances > 1 {
		return fmt.Errorf("spec.jobInstances: a job with a launcher has one instance")
	}
	if containers := containersOf(j.Spec.Workers.Template); len(containers) == 0 {
		return fmt.Errorf("spec.workers.template: no container")
	}
	return nil
}

func containersOf(template map[string]any) []any {
	spec, _ := template["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	return containers
}
