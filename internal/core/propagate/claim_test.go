package propagate_test

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// identified gives a policy the permanent id that admission would.
func identified(p policyv1alpha1.Propagation, id string) policyv1alpha1.Propagation {
	label := policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
	if p.GetNamespace() != "" {
		label = policyv1alpha1.PropagationPolicyPermanentIDLabel
	}
	p.SetLabels(map[string]string{label: id})
	return p
}

// deployment is a template; an empty namespace makes it a ClusterRole instead, so that both scopes share a test.
func template(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}}}
	u.SetAPIVersion("apps/v1")
	u.SetKind("Deployment")
	if namespace == "" {
		u.SetAPIVersion("rbac.authorization.k8s.io/v1")
		u.SetKind("ClusterRole")
	}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	u.SetResourceVersion("100")
	u.SetGeneration(1)
	return u
}

func TestAClaimIsTheOnlyOne(t *testing.T) {
	pp, cpp := identified(policy("shop", "a", 0), "id-a"), identified(policy("", "b", 0), "id-b")
	obj := template("shop", "web")
	obj.SetLabels(map[string]string{"app": "web"})
	for _, p := range []policyv1alpha1.Propagation{pp, cpp, pp} {
		if !propagate.Claim(obj, p) {
			t.Errorf("claiming for another policy changed nothing")
		}
		if propagate.Claim(obj, p) || !propagate.ClaimedBy(obj, propagate.ClaimOf(p)) {
			t.Errorf("claiming twice changed something")
		}
		claim, ok := propagate.Claimed(obj)
		if !ok || claim != propagate.ClaimOf(p) {
			t.Errorf("claimed by %v, want %v", claim, propagate.ClaimOf(p))
		}
		if n := len(obj.GetLabels()); n != 2 {
			t.Errorf("the template carries %v, want its own label and one claim", obj.GetLabels())
		}
	}
	if !propagate.Unclaim(obj) || propagate.Unclaim(obj) {
		t.Errorf("a claim is removed once")
	}
	if want := map[string]string{"app": "web"}; !maps.Equal(obj.GetLabels(), want) || len(obj.GetAnnotations()) != 0 {
		t.Errorf("after the claim the template keeps labels %v and annotations %v", obj.GetLabels(), obj.GetAnnotations())
	}
}

func TestAClaimNeverWritesIntoSharedMaps(t *testing.T) {
	shared := map[string]string{"app": "web"}
	obj := &metav1.ObjectMeta{Labels: shared}
	propagate.Claim(obj, identified(policy("shop", "a", 0), "id-a"))
	if len(shared) != 1 {
		t.Errorf("the map of a cached object was written to: %v", shared)
	}
}

func TestHalfAClaimIsNone(t *testing.T) {
	obj := template("shop", "web")
	obj.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-a"})
	if claim, ok := propagate.Claimed(obj); ok {
		t.Errorf("a label without the annotations is a claim of %v", claim)
	}
	if !propagate.Unclaim(obj) || len(obj.GetLabels()) != 0 {
		t.Errorf("half a claim is not cleaned up: %v", obj.GetLabels())
	}
}

func TestAClaimStays(t *testing.T) {
	p := identified(policy("shop", "a", 0, deployments), "id-a")
	for name, c := range map[string]struct {
		claim  propagate.PolicyClaim
		policy policyv1alpha1.Propagation
		want   bool
	}{
		"while its policy selects the template": {propagate.ClaimOf(p), p, true},
		"not when the policy was deleted and made anew": {propagate.PolicyClaim{NamespacedName: types.NamespacedName{
			Namespace: "shop", Name: "a"}, ID: "id-old"}, p, false},
		"not when the policy's selectors let the template go": {propagate.ClaimOf(p),
			identified(policy("shop", "a", 0, named(deployments, "db")), "id-a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := propagate.StillSelects(c.policy, c.claim, web); got != c.want {
				t.Errorf("stays = %v, want %v", got, c.want)
			}
		})
	}
}

func TestPreempt(t *testing.T) {
	taking := func(p policyv1alpha1.Propagation) policyv1alpha1.Propagation {
		p.PropagationSpec().Preemption = policyv1alpha1.PreemptAlways
		return p
	}
	for name, c := range map[string]struct {
		claiming policyv1alpha1.Propagation
		rivals   []policyv1alpha1.Propagation
		takenBy  string
	}{
		"a higher namespaced policy takes from a lower one": {
			policy("shop", "low", 1, deployments),
			[]policyv1alpha1.Propagation{taking(policy("shop", "high", 2, named(deployments, "web")))}, "shop/high"},
		"equal priority takes nothing, however close the selector": {
			policy("shop", "low", 1, deployments),
			[]policyv1alpha1.Propagation{taking(policy("shop", "a", 1, named(deployments, "web")))}, ""},
		"a higher priority alone does not take": {
			policy("shop", "low", 1, deployments), []policyv1alpha1.Propagation{policy("shop", "high", 2, deployments)}, ""},
		"any namespaced policy takes from any cluster policy": {
			policy("", "cluster", 100, deployments),
			[]policyv1alpha1.Propagation{taking(policy("shop", "a", -1, named(deployments, "web")))}, "shop/a"},
		"no cluster policy takes from a namespaced one": {
			policy("shop", "a", 0, deployments),
			[]policyv1alpha1.Propagation{taking(policy("", "cluster", 100, named(deployments, "web")))}, ""},
		"a higher cluster policy takes from a lower one": {
			policy("", "low", 0, deployments),
			[]policyv1alpha1.Propagation{taking(policy("", "high", 1, named(deployments, "web")))}, "/high"},
		"the highest of several takes": {
			policy("shop", "low", 0, deployments), []policyv1alpha1.Propagation{
				taking(policy("shop", "b", 1, named(deployments, "web"))),
				taking(policy("shop", "c", 2, named(deployments, "web")))}, "shop/c"},
		"one that does not select the template takes nothing": {
			policy("shop", "low", 0, deployments),
			[]policyv1alpha1.Propagation{taking(policy("shop", "b", 1, named(deployments, "db")))}, ""},
		"the claiming policy does not take from itself": {
			policy("shop", "a", 5, deployments), []policyv1alpha1.Propagation{taking(policy("shop", "a", 5, deployments))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p, ok := propagate.Preempt(web, c.claiming, c.rivals); ok {
				got = p.GetNamespace() + "/" + p.GetName()
			}
			if got != c.takenBy {
				t.Errorf("taken by %q, want %q", got, c.takenBy)
			}
		})
	}
}

func TestExcluded(t *testing.T) {
	for name, c := range map[string]struct {
		t    match.Template
		want bool
	}{
		"a workload": {web, false},
		"a lease, if somebody asks for it": {match.Template{APIVersion: "coordination.k8s.io/v1", Kind: "Lease",
			Namespace: "shop", Name: "l"}, false},
		"a custom kind": {match.Template{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet",
			Namespace: "shop", Name: "l"}, false},
		"a networking kind of Karmada": {match.Template{APIVersion: "networking.karmada.io/v1alpha1",
			Kind: "MultiClusterIngress", Namespace: "shop", Name: "l"}, false},
		"a policy": {match.Template{APIVersion: "policy.karmada.io/v1alpha1",
			Kind: "OverridePolicy", Namespace: "shop", Name: "l"}, true},
		"a Remedy": {match.Template{APIVersion: "remedy.karmada.io/v1alpha1", Kind: "Remedy", Name: "l"}, true},
		"a ManagedCluster": {match.Template{APIVersion: "cluster.open-cluster-management.io/v1",
			Kind: "ManagedCluster", Name: "l"}, true},
		"a ManagedClusterAddOn": {match.Template{APIVersion: "addon.open-cluster-management.io/v1beta1",
			Kind: "ManagedClusterAddOn", Namespace: "eu", Name: "l"}, true},
		"a binding": {match.Template{APIVersion: "work.karmada.io/v1alpha2",
			Kind: "ResourceBinding", Namespace: "shop", Name: "l"}, true},
		"what a Rollout makes in a member": {match.Template{APIVersion: "rollouts.kruise.io/v1beta1",
			Kind: "BatchRelease", Namespace: "shop", Name: "l"}, true},
		"what a Workflow makes in a member": {match.Template{APIVersion: "argoproj.io/v1alpha1", Kind: "WorkflowTaskSet",
			Namespace: "shop", Name: "l"}, true},
		"an event": {match.Template{APIVersion: "v1", Kind: "Event", Namespace: "shop",
			Name: "l"}, true},
		"an event of the newer API": {match.Template{APIVersion: "events.k8s.io/v1", Kind: "Event",
			Namespace: "shop", Name: "l"}, true},
		"anything in an execution space": {match.Template{APIVersion: "v1", Kind: "Secret",
			Namespace: "karmada-es-eu", Name: "l"}, true},
		"anything in kube-system": {match.Template{APIVersion: "v1", Kind: "Secret", Namespace: "kube-system",
			Name: "l"}, true},
		"the namespace of the system": {match.Template{APIVersion: "v1", Kind: "Namespace",
			Name: "karmada-cluster"}, true},
		"a user's namespace": {match.Template{APIVersion: "v1", Kind: "Namespace", Name: "shop"}, false},
		"the root CA of a namespace": {match.Template{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop",
			Name: "kube-root-ca.crt"}, true},
		"the configuration of extensions": {match.Template{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop",
			Name: "extension-apiserver-authentication"}, true},
		"a custom kind called like an event": {match.Template{APIVersion: "sport.example/v1", Kind: "Event",
			Namespace: "shop", Name: "l"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := propagate.Excluded(c.t); got != c.want {
				t.Errorf("excluded = %v, want %v", got, c.want)
			}
		})
	}
	for kind, want := range map[string]bool{"ClusterProfile": false, "PlacementDecision": false,
		"ServiceExport": true, "ServiceImport": true} {
		if got := propagate.Propagable(schema.GroupKind{Group: "multicluster.x-k8s.io", Kind: kind}); got != want {
			t.Errorf("%s is propagable: %t", kind, got)
		}
	}
	if propagate.Propagable(schema.GroupKind{Group: "work.karmada.io", Kind: "Work"}) {
		t.Error("Works are watched as templates")
	}
}
