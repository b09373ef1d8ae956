package propagate

import (
	"errors"
	"testing"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestABindingIsAboutATemplateOfItsOwnNamespaceAlone(t *testing.T) {
	for name, c := range map[string]struct {
		binding string // its namespace
		ref     workv1alpha2.ObjectReference
		may     bool
	}{
		"its own": {"shop", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret",
			Namespace: "shop", Name: "db"}, true},
		"a cluster-scoped one": {"", workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1",
			Kind: "ClusterRole", Name: "view"}, true},
		"a namespace": {"", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "shop"},
			true},
		"another namespace": {"shop", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret",
			Namespace: "treasury", Name: "db"}, false},
		"the tokens of members": {"shop", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret",
			Namespace: "karmada-cluster", Name: "m1"}, false},
		"the same, from there": {"karmada-cluster", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret",
			Namespace: "karmada-cluster", Name: "m1"}, false},
		"an execution space": {"karmada-es-m1", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret",
			Namespace: "karmada-es-m1", Name: "s"}, false},
		"what Kubernetes has": {"kube-system", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret",
			Namespace: "kube-system", Name: "s"}, false},
		"a namespace of the system": {"", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Namespace",
			Name: "karmada-system"}, false},
		"a namespaced one, from above": {"", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret",
			Namespace: "treasury", Name: "db"}, false},
		"a cluster-scoped one, below": {"shop", workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1",
			Kind: "ClusterRole", Name: "view"}, false},
		"what steers the hub": {"", workv1alpha2.ObjectReference{APIVersion: "cluster.karmada.io/v1alpha1",
			Kind: "Cluster", Name: "m1"}, false},
		"nothing": {"shop", workv1alpha2.ObjectReference{}, false},
		"a policy of its own namespace": {"shop", workv1alpha2.ObjectReference{APIVersion: "policy.karmada.io/v1alpha1",
			Kind: "PropagationPolicy", Namespace: "shop", Name: "p"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := empty(c.binding)
			b.BindingSpec().Resource = c.ref
			if err := Misdirected(b); (err == nil) != c.may || err != nil && !errors.Is(err, ErrReference) {
				t.Errorf("judged %v", err)
			}
		})
	}
}
