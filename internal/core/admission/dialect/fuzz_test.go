package dialect

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/object/identity"
)

// Whatever is written, it is refused, or stored as the same object, whose text written again is left alone.
func FuzzNormaliseKeepsTheObject(f *testing.F) {
	for _, c := range cases {
		raw, err := json.Marshal(parse(f, c.head, c.spec).Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, text := range []string{`{"apiVersion":"policy.karmada.io/v1alpha1","kind":"OverridePolicy","metadata":{"annotations":{"argosy.io/submitted-fields":"{}"}},"spec":{"overrideRules":[1]}}`,
		`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"SidecarSet","metadata":{"name":"s","namespace":"shop","annotations":5},"spec":{"containers":{}}}`,
		`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"UnitedDeployment","metadata":{"name":"u","annotations":{"argosy.io/subset-workload":"Deployment"}},"spec":{"topology":{"subsets":[null]}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON(raw) != nil {
			return
		}
		if _, isObject := u.Object["metadata"].(map[string]any); !isObject {
			return // an API server refuses it before
		}
		before := identity.FromManifest(u)
		_, _, err := Normalise(u)
		Advise(u)
		if err != nil {
			return
		}
		// A SidecarSet's namespace is a spelling of its selector.
		if after := identity.FromManifest(u); after != before && (before.Kind != "SidecarSet" || after.Kind != before.Kind ||
			after.Group != before.Group || after.Name != before.Name) {
			t.Fatalf("%s is stored as %s", before, after)
		}
		stored := u.DeepCopy()
		if _, _, err := Normalise(u); err != nil {
			t.Fatalf("what is stored is refused: %v\n%v", err, stored.Object)
		}
		if diff := cmp.Diff(stored.Object, u.Object); diff != "" {
			t.Fatalf("what is stored is rewritten again (-stored +again):\n%s", diff)
		}
	})
}
