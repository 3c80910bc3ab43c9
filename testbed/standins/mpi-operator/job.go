package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ipu.fabric/standins/internal/kube"

	"k8s.io/apimachinery/pkg/util/validation"
)

type mpiJob struct {
	Spec struct {
		SlotsPerWorker         int64                   `json:"slotsPerWorker"`
		MPIImplementation      string                  `json:"mpiImplementation"`
		LauncherCreationPolicy string                  `json:"launcherCreationPolicy"`
		SSHAuthMountPath       string                  `json:"sshAuthMountPath"`
		RunPolicy              runPolicy               `json:"runPolicy"`
		Replicas               map[string]*replicaSpec `json:"mpiReplicaSpecs"`
	} `json:"spec"`
	Status status `json:"status"`
}

type runPolicy struct {
	CleanPodPolicy string `json:"cleanPodPolicy"`
	Suspend        bool   `json:"suspend"`
	// As the Job API has them.
	BackoffLimit            *int64 `json:"backoffLimit"`
	TTLSecondsAfterFinished *int64 `json:"ttlSecondsAfterFinished"`
	ActiveDeadlineSeconds   *int64 `json:"activeDeadlineSeconds"`
}

type replicaSpec struct {
	Replicas      *int64         `json:"replicas"`
	RestartPolicy string         `json:"restartPolicy"`
	Template      map[string]any `json:"template"`
}

type status struct {
	Conditions      []kube.Condition         `json:"conditions,omitempty"`
	ReplicaStatuses map[string]replicaStatus `json:"replicaStatuses,omitempty"`
	StartTime       string                   `json:"startTime,omitempty"`
	CompletionTime  string                   `json:"completionTime,omitempty"`
}

type replicaStatus struct {
	Active    int64 `json:"active,omitempty"`
	Succeeded int64 `json:"succeeded,omitempty"`
	Failed    int64 `json:"failed,omitempty"`
}

// parse reads a job and fills in the operator's defaults.
func parse(obj *kube.Object) (*mpiJob, error) {
	j := &mpiJob{}
	j.Spec.SlotsPerWorker, j.Spec.MPIImplementation = 1, "OpenMPI"
	j.Spec.LauncherCreationPolicy, j.Spec.SSHAuthMountPath = "AtStartup", "/root/.ssh"
	j.Spec.RunPolicy.CleanPodPolicy = "None"
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, j); err != nil {
		return nil, err
	}
	for role, spec := range j.Spec.Replicas {
		if spec.Replicas == nil {
			spec.Replicas = new(int64)
			if role == "Launcher" {
				*spec.Replicas = 1
			}
		}
		if spec.RestartPolicy == "" {
			spec.RestartPolicy = map[string]string{"Launcher": "OnFailure", "Worker": "Never"}[role]
		}
	}
	return j, nil
}

func (j *mpiJob) workers() int {
	if spec := j.Spec.Replicas["Worker"]; spec != nil {
		return int(*spec.Replicas)
	}
	return 0
}

func workerName(job string, n int) string { return fmt.Sprintf("%s-worker-%d", job, n) }

// faults are what the operator refuses, and says in an event only.
func (j *mpiJob) faults(name string) []string {
	var found []string
	last := workerName(name, max(j.workers()-1, 0))
	if problems := validation.IsDNS1035Label(last); len(problems) > 0 {
		found = append(found, fmt.Sprintf("metadata.name: Invalid value: %q: will not able to create pod and service with "+
			"invalid DNS label %q: %s", name, last, strings.Join(problems, ", ")))
	}
	one := func(path, value string, known ...string) {
		if !slices.Contains(known, value) {
			found = append(found, fmt.Sprintf("%s: Unsupported value: %q: supported values: %q", path, value, known))
		}
	}
	one("spec.runPolicy.cleanPodPolicy", j.Spec.RunPolicy.CleanPodPolicy, "All", "None", "Running")
	one("spec.mpiImplementation", j.Spec.MPIImplementation, "OpenMPI")
	if j.Spec.Replicas["Launcher"] == nil {
		return append(found, "spec.mpiReplicaSpecs[Launcher]: Required value: must have Launcher replica spec")
	}
	for role, spec := range j.Spec.Replicas {
		path := fmt.Sprintf("spec.mpiReplicaSpecs[%s]", role)
		one(path+".restartPolicy", spec.RestartPolicy, "Never", "OnFailure")
		if role == "Worker" && *spec.Replicas <= 0 || role == "Launcher" && *spec.Replicas != 1 {
			found = append(found, fmt.Sprintf("%s.replicas: Invalid value: %d", path, *spec.Replicas))
		}
	}
	return found
}

// set writes a condition and says whether it changed; of Running, Succeeded and Failed only the newest is true.
func (s *status) set(kind, value, reason, message string, now time.Time) {
	stamp := now.UTC().Format(time.RFC3339)
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if c.Type == kind {
			if c.Status == value && c.Reason == reason {
				return
			}
			*c = kube.NewCondition(kind, value, reason, message, stamp)
			return
		}
	}
	s.Conditions = append(s.Conditions, kube.NewCondition(kind, value, reason, message, stamp))
	if kind == "Succeeded" || kind == "Failed" {
		for i := range s.Conditions {
			if c := &s.Conditions[i]; c.Type == "Running" && c.Status == "True" {
				c.Status, c.LastTransitionTime, c.LastUpdateTime = "False", stamp, stamp
			}
		}
	}
}

func (s *status) has(kind string) bool {
	return slices.ContainsFunc(s.Conditions, func(c kube.Condition) bool { return c.Type == kind && c.Status == "True" })
}
