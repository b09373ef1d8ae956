package propagate

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

func TestEveryTemplateGetsABindingOfItsOwn(t *testing.T) {
	apps, kruise := schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"}
	karmadas, apart := names.Binding("StatefulSet", "db"), names.BindingApart(kruise, "db")
	binding := func(name, apiVersion string) *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{}
		b.Namespace, b.Name = "shop", name
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: "StatefulSet", Namespace: "shop",
			Name: "db"}
		return b
	}
	for name, c := range map[string]struct {
		gk          schema.GroupKind
		there       []*workv1alpha2.ResourceBinding
		found, free string
	}{
		"the first has Karmada's name": {apps, nil, "", karmadas},
		"the second has one apart": {kruise,
			[]*workv1alpha2.ResourceBinding{binding(karmadas, "apps/v1")}, "", apart},
		"the first is found": {apps, []*workv1alpha2.ResourceBinding{binding(karmadas, "apps/v1"),
			binding(apart, "apps.kruise.io/v1beta1")}, karmadas, ""},
		"the second is found": {kruise,
			[]*workv1alpha2.ResourceBinding{binding(karmadas, "apps/v1"), binding(apart, "apps.kruise.io/v1beta1")}, apart, ""},
		"the second keeps its name when the first goes": {kruise,
			[]*workv1alpha2.ResourceBinding{binding(apart, "apps.kruise.io/v1beta1")}, apart, ""},
		"the first made anew has Karmada's name again": {apps,
			[]*workv1alpha2.ResourceBinding{binding(apart, "apps.kruise.io/v1beta1")}, "", karmadas},
		"others have both names": {kruise,
			[]*workv1alpha2.ResourceBinding{binding(karmadas, "apps/v1"), binding(apart, "example.com/v1")}, "", ""},
	} {
		b, free, err := Find(c.gk, "shop", "db", func(key types.NamespacedName) (workv1alpha2.Binding, error) {
			for _, b := range c.there {
				if b.Name == key.Name && b.Namespace == key.Namespace {
					return b, nil
				}
			}
			return nil, nil
		})
		found := ""
		if b != nil {
			found = b.GetName()
		}
		if found != c.found || free != c.free || err != nil {
			t.Errorf("%s: found %q, free is %q, %v; want %q and %q", name, found, free, err, c.found, c.free)
		}
	}
	failed := errors.New("no answer")
	if _, _, err := Find(apps, "shop", "db", func(types.NamespacedName) (workv1alpha2.Binding, error) {
		return nil, failed
	}); !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
}
