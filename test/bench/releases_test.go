package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Each stage but the first has a delay, since the last report about its own workload.
func TestADelayIsTakenForEachStageAfterAReport(t *testing.T) {
	d := newStageDelays()
	report := func(workload string, available int64) {
		u := object(workv1alpha1.GroupVersion.WithResource("works"), "Work", workload,
			map[string]any{"status": map[string]any{"available": available}})
		u.SetAnnotations(map[string]string{workv1alpha2.ResourceBindingNameAnnotation: workload + "-cloneset"})
		d.noteWork(u)
	}
	begin := func(name string, stages int) {
		all := make([]any, 3)
		for i := range all {
			all[i] = map[string]any{}
			if i < stages {
				all[i] = map[string]any{"startedAt": "2026-01-01T12:00:00Z"}
			}
		}
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"stages": all}}}
		u.SetName(name)
		d.noteRelease(u)
	}
	report("a", 0)
	begin("a", 1)
	if len(d.all) > 0 {
		t.Errorf("the first stage has a delay: %v", d.all)
	}
	report("a", 1)
	report("b", 0)
	reported := d.reported["a-cloneset"]
	report("a", 1)
	if reported.IsZero() || d.reported["a-cloneset"] != reported || !d.reported["b-cloneset"].IsZero() {
		t.Errorf("the reports are at %v", d.reported)
	}
	begin("a", 2)
	begin("a", 2)
	begin("a", 3)
	if _, err := d.take(3); err == nil {
		t.Error("a delay is missing, and that is no error")
	}
	begin("c", 3)
	if all, err := d.take(2); err != nil || len(d.all) > 0 {
		t.Errorf("the delays are %v, %v", all, err)
	}
}
