package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// scripts measures what a call of a script costs beyond the conversion of the object, which Go would have to do as
// well: with the script compiled once, and with one that is parsed at each call.
func scripts(ctx context.Context) ([]Row, error) {
	const source = `
local kube = require("kube")
function GetReplicas(obj)
  local requirement = kube.accuratePodRequirements(obj.spec.template)
  return obj.spec.replicas or 1, requirement
end
`
	object := benchCloneSet()
	call := func(source string) error {
		p, err := script.Compile("bench", configv1alpha1.InterpreterOperationInterpretReplica, source, nil)
		if err != nil {
			return err
		}
		_, err = p.Evaluate(ctx, interpret.Inputs{Object: object})
		return err
	}
	took, err := microseconds(
		func(int) error {
			t, err := interpret.PodTemplate(object, []string{"spec", "template"})
			if err == nil {
				interpret.PodRequirements(t, object.GetNamespace())
			}
			return err
		},
		func(int) error { return call(source) },
		// No two are the same, so that none is found compiled.
		func(i int) error { return call(fmt.Sprintf("%s-- %d", source, i)) },
	)
	if err != nil {
		return nil, err
	}
	conversion, compiled, parsed := took[0], took[1], took[2]
	return []Row{
		{Work: "Lua GetReplicas of a CloneSet, beyond conversion", Unit: "µs", Value: max(0, compiled-conversion), Must: 10},
		{Work: "the same, parsed at each call as Karmada does", Unit: "µs", Value: max(0, parsed-conversion)},
	}, nil
}

// microseconds is what each call takes in the quickest of some rounds: what else the machine does only adds to that.
// The calls take turns, and each round begins without garbage, so that none pays for what ran before it.
func microseconds(calls ...func(i int) error) ([]float64, error) {
	const rounds, times = 20, 500
	best := make([]float64, len(calls))
	for round := range rounds {
		for c, call := range calls {
			runtime.GC()
			began := time.Now()
			for i := range times {
				if err := call(round*times + i); err != nil {
					return nil, err
				}
			}
			if took := float64(time.Since(began).Nanoseconds()) / 1000 / times; round == 0 || took < best[c] {
				best[c] = took
			}
		}
	}
	return best, nil
}

// benchCloneSet returns a CloneSet as they are in clusters.
func benchCloneSet() *unstructured.Unstructured {
	container := func(name string) any {
		return map[string]any{
			"name": name, "image": "registry.example/" + name + ":1",
			"env": []any{
				map[string]any{"name": "MODE", "value": "production"},
				map[string]any{"name": "PASSWORD",
					"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "web", "key": "password"}}}},
			"resources": map[string]any{
				"requests": map[string]any{"cpu": "250m", "memory": "64Mi"},
				"limits":   map[string]any{"cpu": "1", "memory": "128Mi"}},
			"volumeMounts": []any{map[string]any{"name": "config", "mountPath": "/etc/web"}},
		}
	}
	labels := func() map[string]any { return map[string]any{"app": "web"} }
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
		"metadata": map[string]any{"name": "web", "namespace": "default", "labels": labels(), "generation": int64(3)},
		"spec": map[string]any{
			"replicas": int64(5), "selector": map[string]any{"matchLabels": labels()},
			"updateStrategy": map[string]any{"type": "InPlaceIfPossible", "partition": int64(2), "maxUnavailable": "20%"},
			"template": map[string]any{"metadata": map[string]any{"labels": labels()}, "spec": map[string]any{
				"serviceAccountName": "web",
				"containers":         []any{container("web"), container("log")},
				"volumes":            []any{map[string]any{"name": "config", "configMap": map[string]any{"name": "web"}}},
			}},
		},
		"status": map[string]any{"replicas": int64(5), "readyReplicas": int64(4)},
	}}
}
