package definition

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/crds"
)

func TestNamesOfDefinitionsAreThoseOfTheirKinds(t *testing.T) {
	all, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, crd := range all {
		there[crd.Name] = true
		if got := NameOf(schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}); got != crd.Name {
			t.Errorf("%s of %s: %s", crd.Spec.Names.Kind, crd.Spec.Group, got)
		}
	}
	for _, name := range []string{Works, ResourceBindings, ClusterResourceBindings, Clusters, ManifestWorks,
		EnclosedManifests, FederatedHPAs, MultiClusterServices, ServiceExports, ServiceImports} {
		if !there[name] {
			t.Errorf("no definition is called %s", name)
		}
	}
}

func TestObjectDeletedWithItsDefinitionIsFoundByTime(t *testing.T) {
	now := time.Now()
	at := func(ago time.Duration) time.Time { return now.Add(-ago).Truncate(time.Second) }
	over := &Watch{went: map[string]period{Works: {from: now.Add(-time.Minute), to: now.Add(-50 * time.Second)}}}
	lasts := &Watch{went: map[string]period{Works: {from: now.Add(-time.Minute)}}}
	for _, tc := range []struct {
		story            string
		watch            *Watch
		name             string
		created, deleted time.Duration // ago
		want             bool
	}{
		{"it was deleted meanwhile", over, Works, time.Hour, 55 * time.Second, true},
		{"in the second in which that began", over, Works, time.Hour, time.Minute, true},
		{"just after", over, Works, time.Hour, 45 * time.Second, true},
		{"long after", over, Works, time.Hour, 30 * time.Second, false},
		{"before", over, Works, time.Hour, 70 * time.Second, false},
		{"it was made since", over, Works, 49 * time.Second, 45 * time.Second, false},
		{"it is missing still", lasts, Works, time.Hour, 0, true},
		{"another is", lasts, Clusters, time.Hour, 0, false},
		{"nobody looks", nil, Works, time.Hour, 0, false},
	} {
		deleted := metav1.NewTime(at(tc.deleted))
		obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(tc.created)),
			DeletionTimestamp: &deleted}}
		if got := tc.watch.Went(tc.name, obj); got != tc.want {
			t.Errorf("%s: %v", tc.story, got)
		}
	}
}

func TestDeletedOrRecreatedDefinitionIsNoticed(t *testing.T) {
	names := []string{Works}
	crd := func(going bool) *metav1.PartialObjectMetadata {
		d := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: Works}}
		if going {
			d.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		return d
	}
	deleted := metav1.Now()
	work := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(
		deleted.Add(-time.Hour)), DeletionTimestamp: &deleted}}
	for story, tc := range map[string]struct {
		happens func(*Watch)
		want    bool
	}{
		"it was there at the start": {func(w *Watch) { w.seen(names, crd(false), true, true) }, false},
		"it was going at the start": {func(w *Watch) { w.seen(names, crd(true), true, true) }, true},
		"it is made since":          {func(w *Watch) { w.seen(names, crd(false), true, false) }, true},
		"it is deleted": {func(w *Watch) {
			w.seen(names, crd(false), true, true)
			w.seen(names, crd(true),
				true, false)
		}, true},
		"it is gone": {func(w *Watch) {
			w.seen(names, crd(false), true, true)
			w.seen(names, crd(true),
				false, false)
		}, true},
		"it is gone and back": {func(w *Watch) {
			w.seen(names, crd(true), true, true)
			w.seen(names, crd(false),
				true, false)
		}, true},
		"it is changed and never was going": {func(w *Watch) {
			w.seen(names, crd(false), true, true)
			w.seen(names,
				crd(false), true, false)
		}, false},
	} {
		w := &Watch{broken: map[string]bool{Works: true}, went: map[string]period{}}
		tc.happens(w)
		if got := w.Went(Works, work); got != tc.want {
			t.Errorf("%s: %v", story, got)
		}
	}
}
