package facts_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"context"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/facts"
)

// reader returns a hub with these objects. It refuses to read the kinds in refused.
func reader(t *testing.T, refused string, objects ...client.Object) client.Reader {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, networkingv1alpha1.AddToScheme,
		policyv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			gvk, err := c.GroupVersionKindFor(obj)
			if err == nil && gvk.Kind == refused {
				return apierrors.NewForbidden(networkingv1alpha1.Resource(strings.ToLower(refused)), key.Name, nil)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
}

func TestObservedIsAllThatAClaimDependsOn(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	exposing := &networkingv1alpha1.MultiClusterService{ObjectMeta: meta}
	exposing.Spec.Types = []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}
	policy := func(namespace string, overrides ...string) policyv1alpha1.Propagation {
		spec := policyv1alpha1.PropagationSpec{DependentOverrides: overrides,
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Service"}}}
		id := map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id",
			policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}
		if namespace == "" {
			return &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: id}, Spec: spec}
		}
		return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Labels: id},
			Spec: spec}
	}
	override := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"}}
	clusterOverride := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "o"}}
	for name, c := range map[string]struct {
		objects []client.Object
		refused string
		policy  policyv1alpha1.Propagation
		claims  bool
		missing int
	}{
		"a policy claims it":                        {nil, "", policy("shop"), true, 0},
		"a MultiClusterService places it":           {[]client.Object{exposing}, "", policy("shop"), false, 0},
		"one that the user may not read":            {[]client.Object{exposing}, "MultiClusterService", policy("shop"), true, 0},
		"an override policy is missing":             {nil, "", policy("shop", "o"), false, 1},
		"an override policy exists":                 {[]client.Object{override}, "", policy("shop", "o", "o"), true, 0},
		"a cluster override policy is no other":     {[]client.Object{clusterOverride}, "", policy("shop", "o"), false, 1},
		"a cluster policy has cluster overrides":    {[]client.Object{clusterOverride}, "", policy("", "o"), true, 0},
		"an override that the user may not read":    {nil, "OverridePolicy", policy("shop", "o"), true, 0},
		"a namespaced override of a cluster policy": {[]client.Object{override}, "", policy("", "o"), false, 1},
	} {
		template := &unstructured.Unstructured{}
		template.SetAPIVersion("v1")
		template.SetKind("Service")
		template.SetNamespace(meta.Namespace)
		template.SetName(meta.Name)
		o, err := facts.Observed(t.Context(), reader(t, c.refused, c.objects...), template, nil,
			[]policyv1alpha1.Propagation{c.policy})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d := propagate.Decide(o)
		if claims := d.Claimed != nil; claims != c.claims || len(d.MissingOverrides) != c.missing {
			t.Errorf("%s: claimed: %t, missing: %v", name, claims, d.MissingOverrides)
		}
		if o.OverrideExists(types.NamespacedName{Namespace: "shop", Name: "none"}) {
			t.Errorf("%s: an override policy that no policy names exists", name)
		}
	}
}
