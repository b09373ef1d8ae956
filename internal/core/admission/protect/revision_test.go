package protect

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// boundTo is the binding of a CloneSet with annotations.
func boundTo(annotations map[string]string) []workv1alpha2.Binding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-cloneset",
		Annotations: annotations}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet",
		Namespace: "shop", Name: "web"}
	other := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api-cloneset"}}
	return []workv1alpha2.Binding{other, b}
}

// releasing are the annotations of a binding during a release from one revision to another.
func releasing(from, to string) map[string]string {
	return map[string]string{fleet.EffectiveRevisionAnnotation: to,
		fleet.PlanAnnotation: (&fleet.Plan{Release: "r", UID: "u", Revision: to, From: from}).String()}
}

func version(t *testing.T) *unstructured.Unstructured {
	return coretest.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings-1f0c9a2e, namespace: shop,
		annotations: {argosy.io/version-of: settings}, ownerReferences: [
		{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseRevision, name: web-1, uid: r-1},
		{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web-2, uid: u-1}]},
		immutable: true, data: {value: "1"}, binaryData: {more: AA==}}`)
}

func TestRevisionsAndVersionsInForceAreKept(t *testing.T) {
	attached := func(deps string) map[string]string {
		return map[string]string{workv1alpha2.DependenciesAnnotation: deps}
	}
	const dep = `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"settings-1f0c9a2e"}]`
	for name, c := range map[string]struct {
		annotations       map[string]string
		revision, version bool // that are kept
	}{
		"the effective one":                 {map[string]string{fleet.EffectiveRevisionAnnotation: "web-1"}, true, true},
		"the one before a release":          {releasing("web-1", "web-2"), true, true},
		"the one that a release brings":     {releasing("web-0", "web-1"), true, true},
		"an earlier one":                    {releasing("web-2", "web-3"), false, false},
		"one of an earlier revision's pods": {attached(dep), true, true},
		"other dependencies":                {attached(strings.ReplaceAll(dep, "ConfigMap", "Secret")), false, false},
		"a dependency of another namespace": {attached(strings.ReplaceAll(dep, "shop", "bank")), false, false},
		"dependencies that cannot be read":  {attached("-"), true, true},
		"without a release":                 {nil, false, false},
	} {
		r := &releasev1alpha1.ReleaseRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
		r.Spec.Config = []releasev1alpha1.RevisionConfig{{Kind: "ConfigMap", Name: "absent"},
			{Kind: "ConfigMap", Name: "settings", Hash: "1f0c9a2e"}}
		err := Revision(r, []*releasev1alpha1.ReleaseRevision{r}, boundTo(c.annotations))
		if kept := err != nil; kept != c.revision || kept && !strings.Contains(err.Error(),
			"ReleaseRevision web-1 cannot be deleted: clusters have pods of CloneSet web from it") {
			t.Errorf("%s: the revision: %v", name, err)
		}
		err = Version(version(t), boundTo(c.annotations))
		if kept := err != nil; kept != c.version || kept && !strings.Contains(err.Error(),
			"change ConfigMap settings and release CloneSet web") {
			t.Errorf("%s: the version: %v", name, err)
		}
	}
}

func TestARevisionCanBeDeletedIfAnotherOneKeepsItsVersions(t *testing.T) {
	revision := func(name string, hashes ...string) *releasev1alpha1.ReleaseRevision {
		r := &releasev1alpha1.ReleaseRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		for _, hash := range hashes {
			r.Spec.Config = append(r.Spec.Config,
				releasev1alpha1.RevisionConfig{Kind: "ConfigMap", Name: "settings", Hash: hash})
		}
		return r
	}
	bindings := boundTo(map[string]string{workv1alpha2.DependenciesAnnotation: `[{"apiVersion":"v1","kind":"ConfigMap",` +
		`"namespace":"shop","name":"settings-1f0c9a2e"}]`})
	one := revision("web-1", "1f0c9a2e")
	for name, c := range map[string]struct {
		other *releasev1alpha1.ReleaseRevision
		kept  bool
	}{
		"with the same version": {revision("web-2", "1f0c9a2e"), false},
		"with another version":  {revision("web-2", "00000000"), true},
		"without versions":      {revision("web-2"), true},
		"that is the revision":  {one, true},
	} {
		if err := Revision(one, []*releasev1alpha1.ReleaseRevision{one, c.other}, bindings); (err != nil) != c.kept {
			t.Errorf("beside one %s: %v", name, err)
		}
	}
}

func TestOnlyTheHubMarksVersions(t *testing.T) {
	const key = wellknown.VersionOfAnnotation
	for name, c := range map[string]struct {
		was, is map[string]string
		message string // empty: a user may write it
	}{
		"a ConfigMap":           {nil, map[string]string{"a": "b"}, ""},
		"a version as it is":    {map[string]string{key: "a"}, map[string]string{key: "a", "b": "c"}, ""},
		"a new version":         {nil, map[string]string{key: "a"}, "leave it out"},
		"a new version of none": {nil, map[string]string{key: ""}, "leave it out"},
		"another ConfigMap":     {map[string]string{key: "a"}, map[string]string{key: "b"}, "only the hub sets"},
		"an end":                {map[string]string{key: "a"}, nil, "only the hub removes the annotation " + key},
	} {
		if err := VersionAnnotation(c.was, c.is); (err != nil) != (c.message != "") ||
			err != nil && !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v, want %q", name, err, c.message)
		}
	}
}

func TestOnlyContentAndOwnersMakeAnotherVersion(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(u *unstructured.Unstructured)
		another bool
	}{
		"nothing":    {func(*unstructured.Unstructured) {}, false},
		"a label":    {func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }, false},
		"data":       {func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"value": "2"} }, true},
		"binaryData": {func(u *unstructured.Unstructured) { delete(u.Object, "binaryData") }, true},
		"immutable":  {func(u *unstructured.Unstructured) { u.Object["immutable"] = false }, true},
		"its owners": {func(u *unstructured.Unstructured) { u.SetOwnerReferences(u.GetOwnerReferences()[1:]) }, true},
	} {
		is := version(t)
		if c.change(is); ChangesVersion(version(t), is) != c.another {
			t.Errorf("a change of %s makes another version: %v", name, !c.another)
		}
	}
}
