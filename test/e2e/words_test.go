package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit"
)

// propagation is a PropagationPolicy, or a cluster one without a namespace; spec is flow YAML.
func propagation(namespace, name, spec string) string {
	return ofPolicyGroup("PropagationPolicy", namespace, name, spec)
}

// override is an OverridePolicy, or a cluster one without a namespace; spec is flow YAML.
func override(namespace, name, spec string) string {
	return ofPolicyGroup("OverridePolicy", namespace, name, spec)
}

func ofPolicyGroup(kind, namespace, name, spec string) string {
	if namespace == "" {
		return fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: Cluster%s\nmetadata: {name: %s}\nspec: %s", kind,
			name, spec)
	}
	return fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec: %s",
		kind, name, namespace, spec)
}

// placedOn returns a placement on some members.
func placedOn(members ...string) string {
	return "{clusterAffinity: {clusterNames: [" + strings.Join(members, ", ") + "]}}"
}

// work of a template in a member; nil if there is none.
func work(t *testing.T, member, kind, namespace, name string) *workv1alpha1.Work {
	t.Helper()
	w := &workv1alpha1.Work{}
	key := client.ObjectKey{Namespace: names.ExecutionSpace(member), Name: names.Work(kind, name, namespace)}
	if err := fleet.Hub.Get(t.Context(), key, w); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return w
}

// applied returns what is wrong unless a binding is fully applied in exactly these members.
func applied(t *testing.T, namespace, bindingName string, members ...string) string {
	t.Helper()
	b := binding(t, namespace, bindingName)
	if b == nil {
		return "there is no binding"
	}
	var in []string
	for _, item := range b.Status.AggregatedStatus {
		in = append(in, item.ClusterName)
	}
	if !slices.Equal(in, members) || !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied) {
		return fmt.Sprintf("aggregated status %+v, conditions %+v", b.Status.AggregatedStatus, b.Status.Conditions)
	}
	return ""
}

// shares are a binding's replicas by cluster, as "m1:3 m2:2".
func shares(t *testing.T, namespace, bindingName string) string {
	t.Helper()
	b := binding(t, namespace, bindingName)
	if b == nil {
		return "no binding"
	}
	var all []string
	for _, c := range b.Spec.Clusters {
		all = append(all, fmt.Sprintf("%s:%d", c.Name, c.Replicas))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// waitFor waits until get returns want.
func waitFor[T comparable](t *testing.T, what string, want T, get func() T) {
	t.Helper()
	kit.Eventually(t, what, func() string {
		if got := get(); got != want {
			return fmt.Sprintf("got %v, want %v", got, want)
		}
		return ""
	})
}

// inMember reads a field of an object in a member.
func inMember(t *testing.T, member, apiVersion, kind, namespace, name string, path ...string) any {
	t.Helper()
	return kit.Field(fleet.Members[member].Find(t, apiVersion, kind, namespace, name), path...)
}
