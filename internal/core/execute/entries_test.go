package execute

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// A ServiceAccount through its life: OpenShift adds its pull secret, the hub adds, replaces and removes its own.
func TestEntriesAddedByAMemberStay(t *testing.T) {
	retain := func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return interpret.RetainEntries(desired, observed), nil
	}
	var observed *unstructured.Unstructured
	for _, c := range []struct {
		when, manifest string
		want           []string
	}{
		{"at first", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"},"imagePullSecrets":[{"name":"hub"}]}`, []string{"hub"}},
		{"with a label", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a","labels":{"x":"y"}},"imagePullSecrets":[{"name":"hub"}]}`, []string{"hub", "own"}},
		{"with another secret", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"},"imagePullSecrets":[{"name":"new"}]}`, []string{"new", "own"}},
		{"without secrets", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"}}`, []string{"own"}},
		{"with a label again", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a","labels":{"x":"y"}}}`,
			[]string{"own"}},
		{"with a secret again", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"},"imagePullSecrets":[{"name":"hub"}]}`, []string{"hub", "own"}},
	} {
		w := &workv1alpha1.Work{}
		w.Name, w.Namespace = "a", "karmada-es-m1"
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(c.manifest)}}}
		desired, err := Desired(w, observed, retain)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		entries, _ := desired.Object["imagePullSecrets"].([]any)
		for _, e := range entries {
			got = append(got, e.(map[string]any)["name"].(string))
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s the secrets are %v, want %v", c.when, got, c.want)
		}
		first := observed == nil
		observed = desired.DeepCopy()
		if first {
			observed.Object["imagePullSecrets"] = append(entries, map[string]any{"name": "own"})
		}
		if again, err := Desired(w, observed, retain); err != nil {
			t.Fatal(err)
		} else if path, differs := difference(again, observed); differs {
			t.Errorf("%s %s is written again and again", c.when, path)
		}
	}
}
