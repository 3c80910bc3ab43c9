package main

import (
	"encoding/json"
	"log"
	"net/http"

	"ipu.fabric/standins/internal/kube"
)

// review is an AdmissionReview, as far as the webhooks read and write it.
type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID    string         `json:"uid"`
	Object map[string]any `json:"object"`
}

type response struct {
	UID       string            `json:"uid"`
	Allowed   bool              `json:"allowed"`
	Result    map[string]string `json:"status,omitempty"`
	PatchType string            `json:"patchType,omitempty"`
	Patch     []byte            `json:"patch,omitempty"`
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func webhookHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mutate-graphcore-ai-v1alpha1-ipujob", answerReview(func(obj *kube.Object, r *response) error {
		patch := defaults(obj)
		if len(patch) == 0 {
			return nil
		}
		raw, err := json.Marshal(patch)
		r.PatchType, r.Patch = "JSONPatch", raw
		return err
	}))
	mux.HandleFunc("POST /validate-graphcore-ai-v1alpha1-ipujob", answerReview(func(obj *kube.Object, _ *response) error {
		if obj.GetDeletionTimestamp() != nil {
			return nil
		}
		j, err := parseJob(obj)
		if err != nil {
			return err
		}
		return j.validate()
	}))
	return mux
}

// defaults fills in what the job leaves open.
func defaults(obj *kube.Object) []operation {
	spec, _ := obj.Object["spec"].(map[string]any)
	var patch []operation
	for _, field := range []struct {
		name  string
		value any
	}{
		{"cleanPodPolicy", "None"},
		{"restartPolicy", map[string]any{"type": "Never", "backOffLimit": 3}},
		{"workersPerJobInstance", "1"},
		{"modelReplicasPerWorker", "1"},
	} {
		if _, given := spec[field.name]; !given && spec != nil {
			patch = append(patch, operation{"add", "/spec/" + field.name, field.value})
		}
	}
	return patch
}

func answerReview(admit func(*kube.Object, *response) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in review
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Request == nil {
			http.Error(w, "no AdmissionReview", http.StatusBadRequest)
			return
		}
		answer := &response{UID: in.Request.UID, Allowed: true}
		if err := admit(&kube.Object{Object: in.Request.Object}, answer); err != nil {
			answer.Allowed, answer.Result = false, map[string]string{"message": err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review{in.APIVersion, in.Kind, nil, answer}); err != nil {
			log.Print(err)
		}
	}
}
