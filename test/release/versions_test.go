package release

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/test/kit"
)

// keepsVersion checks that administrators cannot take away the version of a ConfigMap that the pods of shop mount, nor
// their revision, but delete the namespace of the story.
func (s *story) keepsVersion(name string) {
	s.t.Helper()
	ctx := s.t.Context()
	refused := func(what string, err error, want string) {
		s.t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			s.t.Errorf("%s: %v, want Forbidden: %s", what, err, want)
		}
	}
	version := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	const read = "pods of CloneSet shop read ConfigMap"
	refused("deletion of a version", fleet.Hub.Delete(ctx, version), read)
	for patch, want := range map[string]string{
		`{"metadata":{"ownerReferences":null}}`:                          read,
		`{"metadata":{"annotations":{"argosy.io/version-of":null}}}`:     "only the hub removes the annotation",
		`{"metadata":{"annotations":{"argosy.io/version-of":"others"}}}`: "only the hub sets the annotation",
	} {
		refused(patch, fleet.Hub.Patch(ctx, version.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))), want)
	}
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "mine",
		Annotations: map[string]string{wellknown.VersionOfAnnotation: "settings"}}}
	refused("a version of a user", fleet.Hub.Create(ctx, mine), "only the hub sets the annotation")
	revision := &releasev1alpha1.ReleaseRevision{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns}}
	s.read(func() {
		revision.Name = s.bindings["shop-cloneset"].Annotations[wellknown.EffectiveRevisionAnnotation]
	})
	refused("deletion of a revision", fleet.Hub.Delete(ctx, revision), "clusters have pods of CloneSet shop from it")

	if err := fleet.Hub.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}); err != nil {
		s.t.Fatal(err)
	}
	kit.Eventually(s.t, "the namespace is deleted", func() string {
		if fleet.Hub.Find(s.t, "v1", "Namespace", "", s.ns) != nil {
			return "it exists"
		}
		return ""
	})
}
