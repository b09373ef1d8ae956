package why

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// refusing is a reader that refuses to get objects of a kind, and to list those of a kind.
type refusing struct {
	client.Reader
	get, list string
}

func forbidden(kind string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no"))
}

func (r refusing) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; r.get != "" && kind == r.get {
		return forbidden(kind)
	}
	return r.Reader.Get(ctx, key, obj, opts...)
}

func (r refusing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if r.list != "" && strings.HasSuffix(fmt.Sprintf("%T", list), "."+r.list+"List") {
		return forbidden(strings.ToLower(r.list) + "s")
	}
	return r.Reader.List(ctx, list, opts...)
}

// A user is offered a rollback if and only if the hub would start it, as far as the user may read what decides it.
func TestRollbackIsOfferedByWhatTheHubDecidesBy(t *testing.T) {
	ref := releasev1alpha1.ReleaseObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	web := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: objectMeta("shop", "web")}
	web.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", names.Binding("Deployment", "web")),
		Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1",
			Kind: "Deployment", Namespace: "shop", Name: "web"}}}
	binding.Annotations = map[string]string{fleet.EffectiveRevisionAnnotation: "new"}
	old := &releasev1alpha1.ReleaseRevision{ObjectMeta: objectMeta("shop", "old")}
	old.Spec.Target = ref
	old.Spec.Config = []releasev1alpha1.RevisionConfig{{Kind: "ConfigMap", Name: "settings", Hash: "abc"}}
	version := &corev1.ConfigMap{ObjectMeta: objectMeta("shop", release.Versions(old)[0])}
	ended := metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	rel := &releasev1alpha1.Release{ObjectMeta: objectMeta("shop", "r1")}
	rel.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: ref}}
	rel.Status = releasev1alpha1.ReleaseStatus{Phase: releasev1alpha1.ReleaseSucceeded, EndedAt: &ended,
		Strategy: &releasev1alpha1.ReleaseStrategySpec{Config: releasev1alpha1.ConfigVersioned},
		Stages:   []releasev1alpha1.ReleaseStageStatus{{Name: "all", StartedAt: &ended}},
		Targets:  []releasev1alpha1.ReleaseTargetStatus{{Name: "web", From: "old", To: "new"}}}
	later := metav1.NewTime(ended.Add(time.Hour))
	next := rel.DeepCopy()
	next.Name, next.Status.StartedAt = "r2", &later
	leaving := next.DeepCopy()
	leaving.DeletionTimestamp, leaving.Finalizers = &later, []string{"argosy.io/history"}
	other := binding.DeepCopy()
	other.Annotations[fleet.EffectiveRevisionAnnotation] = "third"
	all := []client.Object{web, binding, old, version}
	without := func(gone client.Object) []client.Object {
		return slices.DeleteFunc(slices.Clone(all), func(o client.Object) bool { return o == gone })
	}
	for name, c := range map[string]struct {
		objects   []client.Object
		get, list string
		refused   string
	}{
		"clusters have it":                         {all, "", "", ""},
		"another release has followed":             {append(slices.Clone(all), next), "", "", "release r2 of Deployment web"},
		"the other release is being deleted":       {append(slices.Clone(all), leaving), "", "", ""},
		"clusters have another revision":           {append(without(binding), other), "", "", "another revision"},
		"a version of a ConfigMap was deleted":     {without(version), "", "", "was deleted"},
		"the user may not read ConfigMaps":         {without(version), "ConfigMap", "", ""},
		"the user may not list revisions":          {without(version), "", "ReleaseRevision", ""},
		"the workload was deleted":                 {without(web), "", "", "does not exist"},
		"the user may not read a deleted workload": {without(web), "Deployment", "", ""},
	} {
		r, mapper := hub(c.objects...)
		reader := &ReleaseReader{Client: refusing{r, c.get, c.list}, Mapper: mapper, Namespace: "shop", Now: time.Now}
		in, err := reader.RequestInput(t.Context(), rel, releasev1alpha1.VerbRollback)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err = release.RequestFor(in, releasev1alpha1.VerbRollback)
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: refused: %v, want %q", name, err, c.refused)
		}
	}
}
