package migration

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/source/migrate"
)

// The hub writes labels and the status of a template while it is migrated; users change the rest.
func TestTemplateIsReadAgainOnlyIfItsContentStays(t *testing.T) {
	template := func(version, uid string, replicas int64, status any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "web", "uid": uid, "resourceVersion": version,
				"labels": map[string]any{"version": version}},
			"spec": map[string]any{"replicas": replicas}, "status": status}}
	}
	was := template("1", "a", 3, nil)
	item := &Item{hub: &onHub{template: was}, joined: migrate.Joined{Template: was}}
	for what, is := range map[string]*unstructured.Unstructured{
		"a user changed it":     template("2", "a", 4, nil),
		"a user made it afresh": template("2", "b", 3, nil),
	} {
		if item.refresh(is) || item.hub.template != was {
			t.Errorf("%s: the plan would be written over it", what)
		}
	}
	is := template("2", "a", 3, map[string]any{"replicas": int64(3)})
	if !item.refresh(is) || item.hub.template != is || item.joined.Template != is {
		t.Error("a status stops the migration")
	}
}
