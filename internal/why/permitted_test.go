package why

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// limited is the reader of a user who may not read the resources in refused, and nothing outside of the namespace.
type limited struct {
	client.Reader
	namespace string
	refused   []string
	allowed   string // what is readable everywhere
}

func (l limited) forbids(obj runtime.Object, namespace string) error {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return err
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk.GroupVersion().WithKind(strings.TrimSuffix(gvk.Kind, "List")))
	if l.namespace != "" && namespace != l.namespace && plural.Resource != l.allowed ||
		slices.Contains(l.refused, plural.Resource) {
		return apierrors.NewForbidden(plural.GroupResource(), "", errors.New("no"))
	}
	return nil
}

func (l limited) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := l.forbids(obj, key.Namespace); err != nil {
		return err
	}
	return l.Reader.Get(ctx, key, obj, opts...)
}

func (l limited) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	in := client.ListOptions{}
	in.ApplyOptions(opts)
	if err := l.forbids(list, in.Namespace); err != nil {
		return err
	}
	return l.Reader.List(ctx, list, opts...)
}

// All rights that are missing are named in one answer, with the role that has them, and the answer invents no problem.
func TestMissingRightsAreNamedTogether(t *testing.T) {
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", names.Binding("Deployment", "web")),
		Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1",
			Kind: "Deployment", Namespace: "shop", Name: "web"}, Clusters: []workv1alpha2.TargetCluster{{Name: "eu"}}},
		Status: workv1alpha2.ResourceBindingStatus{AggregatedStatus: []workv1alpha2.AggregatedStatusItem{{
			ClusterName: "eu", Applied: true, Health: workv1alpha1.ResourceHealthy}}}}
	r, mapper := hub(binding, &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{
			policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}, Annotations: map[string]string{
			policyv1alpha1.ClusterPropagationPolicyNameAnnotation: "all"}}},
		&policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all", Labels: map[string]string{
			policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}},
		&policyv1alpha1.PropagationPolicy{ObjectMeta: objectMeta("shop", "ours")},
		policyOf("secret", "Secret"), policyOf("both", "Secret", "ConfigMap"),
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "key", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "both"},
			Annotations: map[string]string{policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop",
				policyv1alpha1.PropagationPolicyNameAnnotation: "both"}}},
		&clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "eu")})
	const fleet = "a ClusterRoleBinding to the ClusterRole argosy:fleet permits it"
	for name, c := range map[string]struct {
		limited
		kind, object string
		want         []string // in the text
	}{
		"the role view in the namespace": {limited{namespace: "shop"}, "deployment", "web", []string{
			"you may not list clusterpropagationpolicies.policy.karmada.io, clusteroverridepolicies.policy.karmada.io, " +
				"clusters.cluster.karmada.io; " + fleet, "claimed by ClusterPropagationPolicy all",
			"healthy in 1 of 1 cluster"}},
		"no clusters": {limited{refused: []string{"clusters", "works"}}, "deployment", "web", []string{
			"Not shown: you may not list clusters.cluster.karmada.io; " + fleet + ".\n",
			"healthy in 1 of 1 cluster"}},
		"no bindings": {limited{refused: []string{"resourcebindings"}}, "deployment", "web", []string{
			"Not shown: you may not get resourcebindings.work.karmada.io in namespace shop; a RoleBinding to the ClusterRole " +
				"view permits it.\n", "claimed by ClusterPropagationPolicy all"}},
		"neither releases nor events": {limited{refused: []string{"releases", "events", "works"}}, "deployment", "web",
			[]string{
				"you may not list releases.release.argosy.io, events in namespace shop; a RoleBinding to the ClusterRole view " +
					"permits it.\n"}},
		"no Works, which the binding repeats": {limited{refused: []string{"works"}}, "deployment", "web", []string{
			"healthy in 1 of 1 cluster"}},
		"a policy, with the role view": {limited{namespace: "shop"}, "propagationpolicy", "ours", []string{
			"you may not list clusterpropagationpolicies.policy.karmada.io, clusters.cluster.karmada.io; " +
				fleet}},
		"a policy of kinds that the role view does not read": {limited{namespace: "shop", refused: []string{"secrets"}},
			"propagationpolicy", "secret", []string{"not known which templates it claims",
				"you may not list secrets in namespace shop; only administrators may by default",
				"Secret key  ?        unknown: you may not list each Secret"}},
		"a policy of two kinds, of which the user reads one": {limited{refused: []string{"secrets"}}, "propagationpolicy",
			"both", []string{"claims at least 1 template", "unknown: you may not list each Secret"}},
		"a workload, without override policies": {limited{refused: []string{"clusteroverridepolicies", "works"}},
			"deployment", "web", []string{"OVERRIDES: not known (?) without clusteroverridepolicies", "  ?  "}},
		"a workload, without clusters, in the table": {limited{refused: []string{"clusters", "works"}}, "deployment", "web",
			[]string{"SCORE and CAPACITY: not known (?) without clusters.",
				"OVERRIDES: not known (?) without clusters", "?         ?"}},
		"a cluster, without its templates": {limited{refused: []string{"resourcebindings"}}, "cluster", "eu", []string{
			"not known which templates are placed here", "you may not list resourcebindings.work.karmada.io in all " +
				"namespaces; a ClusterRoleBinding to the ClusterRole argosy:view permits it"}},
	} {
		c.limited.Reader = r
		answer, err := Explain(t.Context(), c.limited, mapper, Query{Kind: c.kind, Namespace: "shop", Name: c.object})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var text bytes.Buffer
		if err := answer.Write(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: it does not say %q:\n%s", name, want, &text)
			}
		}
		if a, ok := answer.(why.Answer); ok && slices.ContainsFunc(a.Findings, func(f why.Finding) bool {
			return f.Severity == why.Problem || strings.Contains(f.What, "about to be created")
		}) {
			t.Errorf("%s: it invents %+v", name, a.Findings)
		}
	}

	_, err := Explain(t.Context(), limited{Reader: r, namespace: "shop"}, mapper, Query{Kind: "deployment",
		Namespace: "bank", Name: "web"})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a workload of another namespace gives %v", err)
	}
	_, err = Explain(t.Context(), limited{Reader: r, namespace: "shop"}, mapper, Query{Kind: "cluster", Name: "eu"})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), fleet) {
		t.Errorf("a cluster gives %v", err)
	}
	_, err = Explain(t.Context(), limited{Reader: r, namespace: "shop"}, mapper, Query{Kind: "deployment",
		Namespace: "shop", Name: "web", Cluster: "us"})
	if err == nil || !strings.Contains(err.Error(), fleet) {
		t.Errorf("a cluster without the workload gives %v", err)
	}
}

// policyOf returns a policy that selects objects named key of some kinds.
func policyOf(name string, kinds ...string) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: name}}}
	for _, kind := range kinds {
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "v1",
			Kind: kind, Name: "key"})
	}
	return p
}

func TestRoleWithFewestRightsIsNamed(t *testing.T) {
	for _, c := range []struct{ verb, group, resource, namespace, role string }{
		{"list", "cluster.karmada.io", "clusters", "", roles.Fleet},
		{"patch", "cluster.karmada.io", "clusters", "", roles.Operator},
		{"list", "work.karmada.io", "resourcebindings", "", roles.View}, {"list", "apps", "deployments", "", "view"},
		{"create", "", "namespaces", "", ""}, {"list", "", "namespaces", "", "view"},
		{"list", "apiextensions.k8s.io", "customresourcedefinitions", "", roles.Operator},
		{"list", "scheduling.k8s.io", "priorityclasses", "", "argosy:operator"},
		{"list", "rbac.authorization.k8s.io", "clusterroles", "", ""},
		{"list", "rbac.authorization.k8s.io", "rolebindings", "shop", "admin"},
		{"list", "rbac.authorization.k8s.io", "rolebindings", "kube-system", ""},
		{"list", "", "secrets", "karmada-cluster", ""}, {"list", "", "secrets", "", ""},
		{"get", "coordination.k8s.io", "leases", "karmada-system", "view"},
		{"list", "work.open-cluster-management.io", "manifestworks", "", ""},
		{"create", "cluster.karmada.io", "clusters", "", ""},
		{"list", "policy.karmada.io", "propagationpolicies", "shop", "view"},
		{"update", "policy.karmada.io", "propagationpolicies", "shop", "edit"},
		{"approve", "release.argosy.io", "releases", "shop", "admin"},
		{"get", "work.karmada.io", "resourcebindings/pods", "shop", "view"},
		{"list", "work.karmada.io", "works", "", ""},
		{"list", "", "secrets", "shop", ""}, {"create", "", "secrets", "shop", ""},
		{"patch", "apps", "deployments", "karmada-x", ""}, {"patch", "apps", "deployments", "argosy-x", ""},
		{"list", "apps", "deployments", "shop", "view"},
		{"patch", "apps", "deployments", "shop", "edit"},
		{"approve", "apps", "deployments", "shop", ""},
		{"list", "", "events", "shop", "view"},
		{"delete", "", "events", "shop", "edit"},
	} {
		if got := roles.Lack(c.verb, c.group, c.resource, c.namespace).Role; got != c.role {
			t.Errorf("%s %s: %q, want %q", c.verb, c.resource, got, c.role)
		}
	}
}

// The hub answers 403 for metrics if all clusters deny them. That names no role of the hub.
func TestDenialOfClustersIsNoMissingRightOnTheHub(t *testing.T) {
	pods := corev1.Resource("pods")
	pods.Group = "metrics.k8s.io"
	denied := apierrors.NewForbidden(pods, "", errors.New("denied"))
	if MissingOf(denied, "list", "shop") == nil {
		t.Error("a denial of the hub names no right")
	}
	denied.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "cluster eu: denied"}}
	if m := MissingOf(denied, "list", "shop"); m != nil {
		t.Errorf("a denial of clusters is %v", m)
	}
}
