package controller

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/simulate"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// history is a hub on which users write at random.
type history struct {
	*controllertest.Hub
	t      *testing.T
	random *rand.Rand
	steps  int
}

// historyKinds are the kinds that users write, and what a simulation reads besides.
var historyKinds = []schema.GroupVersionKind{
	controllertest.Deployment.GroupVersionKind, controllertest.Service.GroupVersionKind,
	controllertest.ClusterRole.GroupVersionKind,
	policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"),
	policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy"),
	policyv1alpha1.GroupVersion.WithKind("OverridePolicy"), policyv1alpha1.GroupVersion.WithKind("ClusterOverridePolicy"),
	networkingv1alpha1.GroupVersion.WithKind("MultiClusterService"), clusterv1alpha1.GroupVersion.WithKind("Cluster"),
	configv1alpha1.GroupVersion.WithKind("ResourceInterpreterCustomization"),
	workv1alpha2.GroupVersion.WithKind("ResourceBinding"), workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"),
}

func (x *history) pick(of ...string) string { return of[x.random.IntN(len(of))] }

// next returns an object that a user writes, or deletes.
func (x *history) next() (u *unstructured.Unstructured, deletes bool) {
	namespace := x.pick("", "namespace: shop, ")
	cluster := ""
	if namespace == "" {
		cluster = "Cluster"
	}
	metadata := func(namespace string, names ...string) string {
		return fmt.Sprintf("metadata: {%sname: %s, labels: {app: %s}, annotations: {value: %q}}", namespace, x.pick(names...),
			x.pick("x", "y"), fmt.Sprint(x.random.IntN(3)))
	}
	template := []string{
		fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\n%s\nspec: {replicas: %s, selector: {}, template: {metadata: {labels: {a: b}}, spec: {containers: []}}}",
			metadata("namespace: shop, ", "a", "b"), x.pick("2", "4")),
		"apiVersion: v1\nkind: Service\n" + metadata("namespace: shop, ", "a", "b") + "\nspec: {selector: {a: b}}",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n" + metadata("", "a", "b") + "\nrules: []",
	}[x.random.IntN(3)]
	selector := x.pick("apps/v1, kind: Deployment", "v1, kind: Service", "rbac.authorization.k8s.io/v1, kind: ClusterRole")
	preemption := x.pick("Always", "Never")
	if preemption == "Always" { // which needs names
		selector += x.pick(", name: a", ", name: b")
	} else {
		selector += x.pick("", "", ", name: a", ", labelSelector: {matchLabels: {app: x}}")
	}
	divided := "replicaSchedulingType: Divided, replicaDivisionPreference: Weighted"
	policy := fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: %sPropagationPolicy\nmetadata: {%sname: %s}\n"+
		"spec: {resourceSelectors: [{apiVersion: %s}], placement: {clusterAffinity: {clusterNames: [%s]}%s}, priority: %d, preemption: %s%s%s%s}",
		cluster, namespace, x.pick("p", "q", "r"), selector, x.pick("m1", "m2", "m2, m3"),
		x.pick("", ", replicaScheduling: {"+divided+"}"), x.random.IntN(3),
		preemption, x.pick("", "", ", activationPreference: Lazy"), x.pick("", "", ", suspension: {dispatching: true}"),
		x.pick("", "", ", dependentOverrides: [o]"))
	override := fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: %sOverridePolicy\nmetadata: {%sname: o}\nspec: {overrideRules: []}", cluster, namespace)
	exposure := fmt.Sprintf("apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\nmetadata: {namespace: shop, name: %s}\n"+
		"spec: {types: [CrossCluster], providerClusters: [{name: %s}], consumerClusters: [{name: %s}]}", x.pick("a", "b"),
		x.pick("m1", "m3"), x.pick("m1", "m2"))
	texts := []string{template, template, template, template, template, policy, policy, policy, policy, policy, override,
		exposure}
	i := x.random.IntN(len(texts))
	deletes = x.random.IntN(4) == 0 && texts[i] != exposure // a record without it does not show whether it is gone
	return coretest.Object(x.t, texts[i]), deletes
}

// recorded returns the objects of the hub, without one that is deleted and its binding.
func (x *history) recorded(without *unstructured.Unstructured) (out []simulate.Object) {
	x.t.Helper()
	for _, gvk := range historyKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := x.List(x.t.Context(), list); err != nil {
			x.t.Fatal(err)
		}
		for i := range list.Items {
			u := &list.Items[i]
			u.SetGroupVersionKind(gvk)
			of, _, _ := unstructured.NestedStringMap(u.Object, "spec", "resource")
			same := without != nil && (gvk == without.GroupVersionKind() &&
				client.ObjectKeyFromObject(u) == client.ObjectKeyFromObject(without) ||
				of["kind"] == without.GetKind() && of["name"] == without.GetName() && of["namespace"] == without.GetNamespace())
			if !same {
				out = append(out, simulate.Object{Unstructured: simulate.Recorded(u), Source: "hub"})
			}
		}
	}
	return out
}

// write writes u as a user does, through admission.
func (x *history) write(u *unstructured.Unstructured) {
	live := u.DeepCopy()
	if x.HasObject(live) {
		controllertest.Change(x.Hub, live, func(live *unstructured.Unstructured) {
			for field, value := range u.Object {
				if field != "metadata" {
					live.Object[field] = value
				}
			}
			live.SetLabels(joinedKeys(live.GetLabels(), u.GetLabels()))
			live.SetAnnotations(joinedKeys(live.GetAnnotations(), u.GetAnnotations()))
		})
		return
	}
	switch u.GetKind() {
	case "PropagationPolicy":
		u.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: fmt.Sprint("id-", x.steps)})
		u.SetFinalizers([]string{policyv1alpha1.PropagationPolicyFinalizer})
	case "ClusterPropagationPolicy":
		u.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: fmt.Sprint("id-", x.steps)})
		u.SetFinalizers([]string{policyv1alpha1.ClusterPropagationPolicyFinalizer})
	default:
		policies, err := scope.Propagations.List(x.t.Context(), x)
		if err != nil {
			x.t.Fatal(err)
		}
		d := propagate.Decide(propagate.Observed{Template: u, Policies: policies, Creating: true,
			OverrideExists: func(key types.NamespacedName) bool {
				o := scope.Overrides.New(key.Namespace)
				o.SetName(key.Name)
				return x.HasObject(o)
			}})
		if d.Claimed != nil {
			u = d.Claimed
		}
	}
	x.Make(u)
}

// joinedKeys returns the labels or annotations of an object after a user applied some.
func joinedKeys(live, applied map[string]string) map[string]string {
	all := maps.Clone(live)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, applied)
	return all
}

// placed is who places the templates of the hub, and where.
func (x *history) placed() map[string]string {
	x.t.Helper()
	bindings, err := scope.Bindings.List(x.t.Context(), x)
	if err != nil {
		x.t.Fatal(err)
	}
	out := map[string]string{}
	for _, b := range bindings {
		policy := ""
		if claim, claimed := propagate.Claimed(b); claimed {
			policy = claim.String()
		}
		of := b.BindingSpec().Resource
		out[of.Kind+" "+of.Namespace+"/"+of.Name] = fmt.Sprintf("%s to %v", policy, b.BindingSpec().Clusters)
	}
	return out
}

func TestASimulationPlacesAsTheHubDoes(t *testing.T) {
	seeds := uint64(4)
	if !testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				h, _ := fleet(t, controllertest.Deployment, controllertest.Service, controllertest.EndpointSlice,
					controllertest.Definition)
				x := &history{Hub: h, t: t, random: rand.New(rand.NewPCG(seed, 26))}
				var story []string
				for ; x.steps < 25; x.steps++ {
					u, deletes := x.next()
					raw, err := u.MarshalJSON()
					if err != nil {
						t.Fatal(err)
					}
					story = append(story, fmt.Sprintf("deleted: %t, %s", deletes, raw))
					change, without := simulate.Change{Objects: []simulate.Object{{Unstructured: u.DeepCopy(), Source: "user"}}},
						(*unstructured.Unstructured)(nil)
					if deletes {
						if !x.HasObject(u.DeepCopy()) {
							continue
						}
						change, without = simulate.Change{}, u
					}
					f, err := simulate.Load(x.recorded(without), "shop")
					if err != nil {
						t.Fatal(err)
					}
					report, err := simulate.Run(t.Context(), f, change)
					if err != nil {
						t.Fatalf("%v\nafter:\n%s", err, strings.Join(story, "\n"))
					}
					want := map[string]string{}
					for _, w := range report.Workloads {
						if len(w.After.Clusters) > 0 {
							want[w.Kind+" "+w.Namespace+"/"+w.Name] = fmt.Sprintf("%s to %v", w.After.Policy, w.After.Clusters)
						}
					}

					if deletes {
						x.Gone(u)
					} else {
						x.write(u)
					}
					x.Quiet()
					if diff := cmp.Diff(want, x.placed()); diff != "" {
						t.Fatalf("the hub differs (-simulation +hub):\n%s\nafter:\n%s", diff, strings.Join(story, "\n"))
					}
				}
			})
		})
	}
}
