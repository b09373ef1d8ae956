package propagate_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

func TestBindingListsVersionsOfTemplate(t *testing.T) {
	cloneSet := func(updateType string) *unstructured.Unstructured {
		u := template("shop", "web")
		u.SetAPIVersion("apps.kruise.io/v1beta1")
		u.SetKind("CloneSet")
		u.Object["spec"] = map[string]any{
			"replicas": int64(2),
			"selector": map[string]any{"matchLabels": map[string]any{"app": "a"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}},
			"updateStrategy": map[string]any{"type": updateType},
		}
		return u
	}
	p := policy("shop", "p", 0)
	for _, step := range []struct {
		what     string
		template *unstructured.Unstructured
		want     string
	}{
		{"what both versions have", cloneSet("RollingUpdate"), ""},
		{"what only the newer one has", cloneSet("OnDelete"), "v1beta1"},
	} {
		b, err := propagate.Binding(step.template, p, propagate.Meaning{Replicas: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.GetAnnotations()[wellknown.TemplateVersionsAnnotation]; got != step.want {
			t.Errorf("%s: the binding says %q, want %q", step.what, got, step.want)
		}
		b, err = propagate.Binding(cloneSet("RollingUpdate"), p, propagate.Meaning{Replicas: 2}, b)
		if err != nil {
			t.Fatal(err)
		}
		if got, there := b.GetAnnotations()[wellknown.TemplateVersionsAnnotation]; there {
			t.Errorf("%s, and then no longer: the binding still says %q", step.what, got)
		}
	}
}
