package facts_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/facts"
)

// refusal is a kind that a user may not read, in all namespaces if everywhere is set.
type refusal struct {
	kind       string
	everywhere bool
}

func (r refusal) err(kind, namespace string) error {
	if r.kind != kind || r.everywhere && namespace != "" {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kind)}, "", errors.New("no"))
}

// releases reads a release of Deployment web in namespace shop, with the rights of a user.
func releases(t *testing.T, refused refusal) facts.Releases {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1alpha1.AddToScheme, policyv1alpha1.AddToScheme,
		releasev1alpha1.AddToScheme, workv1alpha2.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: meta}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	guard := &releasev1alpha1.ReleaseGuard{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	guard.Spec.Limits = &releasev1alpha1.ReleaseLimits{PodsPercent: new(int32(10))}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(b, guard).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			in := client.ListOptions{}
			in.ApplyOptions(opts)
			if err := refused.err(strings.TrimSuffix(gvk.Kind, "List"), in.Namespace); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "u"},
		"spec": map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "c", "image": "x",
				"envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "settings"}}}}}}}}}}
	old := releasev1alpha1.ReleaseRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old"}}
	old.Spec.Target = releasev1alpha1.ReleaseObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	old.Spec.Config = []releasev1alpha1.RevisionConfig{{Name: "settings", Hash: "h"}}
	return facts.Releases{Reader: c,
		Object: func(_ context.Context, gk schema.GroupKind, namespace, _ string) (*unstructured.Unstructured, bool, error) {
			if gk == release.ConfigMapKind {
				return nil, false, refused.err("ConfigMap", namespace)
			}
			return web, true, nil
		},
		Version: func(_ context.Context, namespace, _ string) (*unstructured.Unstructured, bool, error) {
			return nil, true, refused.err("Version", namespace)
		},
		Approvals: func(context.Context, *releasev1alpha1.Release) ([]releasev1alpha1.ReleaseApproval, error) {
			return nil, nil
		},
		Revisions: func(context.Context, string,
			releasev1alpha1.ReleaseObjectReference) ([]releasev1alpha1.ReleaseRevision, error) {
			return []releasev1alpha1.ReleaseRevision{old}, nil
		},
		Works: func(context.Context, workv1alpha2.Binding, *unstructured.Unstructured) ([]workv1alpha1.Work, error) {
			return nil, refused.err("Work", "")
		},
		Pacers: func(_ context.Context, kind schema.GroupKind, namespace string) ([]*unstructured.Unstructured, error) {
			return nil, refused.err(kind.String(), namespace)
		},
		Checks: func(types.NamespacedName) map[string]releasev1alpha1.ReleaseCheckStatus { return nil },
		Budget: func(*releasev1alpha1.ReleaseGuard) *releasev1alpha1.ReleaseGuardBudget { return nil },
	}
}

// For the hub each missing right is an error. A user's plan does without, and says what is not known.
func TestAPlanSaysWhatItLacks(t *testing.T) {
	for name, c := range map[string]struct {
		refused refusal
		// accepted is true for a release that was accepted.
		accepted bool
		lacks    string
	}{
		"nothing":                    {},
		"override policies":          {refusal{kind: "OverridePolicy"}, false, "changes of overrides are not seen"},
		"cluster override policies":  {refusal{kind: "ClusterOverridePolicy"}, false, "changes of overrides are not seen"},
		"guards":                     {refusal{kind: "ReleaseGuard"}, false, "their windows, limits and approvals are not in the plan"},
		"bindings of all namespaces": {refusal{"ResourceBinding", true}, false, "limits of pods are not in the plan"},
		"bindings of all namespaces, of an accepted release": {refusal{"ResourceBinding", true}, true, ""},
		"releases of all namespaces":                         {refusal{"Release", true}, false, "what they use of the limits"},
		"checks":                                             {refusal{kind: "ReleaseCheck"}, false, "whether those of the strategy exist is not known"},
		"Works":                                              {refusal{kind: "Work"}, false, "progress in clusters is not known"},
		"ConfigMaps of the pods":                             {refusal{kind: "ConfigMap"}, false, "changes of them are not seen"},
		"versions of ConfigMaps":                             {refusal{kind: "Version"}, false, "whether versions of them were deleted is not known"},
		"Rollouts of OpenKruise": {refusal{kind: "Rollout.rollouts.kruise.io"}, false,
			"kind Rollout.rollouts.kruise.io: whether one of them paces the workload is not known"},
		"Rollouts of Argo": {refusal{kind: "Rollout.argoproj.io"}, false,
			"kind Rollout.argoproj.io: whether one of them paces the workload is not known"},
	} {
		rel := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r"}}
		rel.Spec.Strategy = &releasev1alpha1.ReleaseStrategySpec{Config: releasev1alpha1.ConfigVersioned}
		rel.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
			APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}}
		rel.Spec.Targets[0].To.Revision = "old"
		if c.accepted {
			rel.Status.Targets = []releasev1alpha1.ReleaseTargetStatus{{Name: "web"}}
		}
		read := releases(t, c.refused)
		_, err := read.Input(t.Context(), rel, time.Now())
		if refused := c.refused.kind != ""; apierrors.IsForbidden(err) != refused {
			t.Errorf("%s: the hub gets %v", name, err)
		}
		var lacks []string
		read.Lacks = func(what string) { lacks = append(lacks, what) }
		if _, err := read.Input(t.Context(), rel, time.Now()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		lacks = slices.Compact(lacks)
		if c.lacks == "" && len(lacks) > 0 || c.lacks != "" && (len(lacks) != 1 || !strings.Contains(lacks[0], c.lacks) ||
			!strings.HasPrefix(lacks[0], "you may not ")) {
			t.Errorf("%s: it lacks %q, want %q", name, lacks, c.lacks)
		}
	}
}
