package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

// What users write: a workload, where it goes, and what is different there.
const (
	shopCloneSet = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: shop, namespace: default, uid: 7c1f, generation: 1, resourceVersion: "100"}
spec:
  replicas: 8
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: web, image: "docker.io/library/nginx:1.28"}]}
`
	shopPolicy = `
metadata: {name: shop, namespace: default, labels: {propagationpolicy.karmada.io/permanent-id: p-1}}
spec:
  resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: shop}]
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [eu]}, weight: 3}
        - {targetCluster: {clusterNames: [us]}, weight: 1}
`
	everythingPolicy = `
metadata: {name: everything, namespace: default, labels: {propagationpolicy.karmada.io/permanent-id: p-2}}
spec:
  resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}]
`
	shopOverride = `
metadata: {name: registries, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: shop}]
  overrideRules:
  - targetCluster: {clusterNames: [eu]}
    overriders: {imageOverrider: [{component: Registry, operator: replace, value: registry.eu.example.com}]}
  - targetCluster: {clusterNames: [us]}
    overriders: {imageOverrider: [{component: Tag, operator: replace, value: "1.29"}]}
`
)

// One CloneSet's way through everything that is decided about it. The controllers carry out what is printed here: they
// read the arguments from the hub and the members, and write the results.
func Example_walk() {
	ctx := context.Background()
	now := metav1.NewTime(time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC))
	meaning := interpret.New(builtin.Tier())
	template, policy := parse[unstructured.Unstructured](shopCloneSet), parse[policyv1alpha1.PropagationPolicy](shopPolicy)

	// 1. Of the policies that select the template, the one that names it wins.
	claims, _ := propagate.Match(match.TemplateOf(template), []policyv1alpha1.Propagation{
		parse[policyv1alpha1.PropagationPolicy](everythingPolicy), policy,
	})
	propagate.Claim(template, claims)
	fmt.Printf("policy %s claims %s %s\n", claims.GetName(), template.GetKind(), template.GetName())

	// 2. What is it? Its kind says how many replicas it has.
	replicas, requirements, _, err := meaning.Replicas(ctx, template)
	mustSucceed(err)
	fmt.Printf("it wants %d replicas\n", replicas)

	// 3. The binding says what is to be placed. It is placed before it is written, on a snapshot of the fleet.
	fleet := map[string]*clusterv1alpha1.Cluster{"eu": ready("eu"), "us": ready("us"), "old": ready("old")}
	fleet["old"].Status.APIEnablements = nil // it does not know OpenKruise
	binding, err := propagate.Binding(template, claims, propagate.Meaning{Replicas: replicas, Requirements: requirements,
		ID: "b-1"}, nil)
	mustSucceed(err)
	snapshot := schedule.NewSnapshot([]*clusterv1alpha1.Cluster{fleet["eu"], fleet["us"], fleet["old"]})
	reason, _ := schedule.Due(binding, snapshot)
	placed, err := schedule.Schedule(binding, snapshot, snapshot.Room(binding))
	mustSucceed(err)
	binding.BindingSpec().Clusters = placed.Clusters
	fmt.Printf("%s is scheduled, as %s\n", binding.GetName(), reason)
	for _, c := range placed.Clusters {
		fmt.Printf("  %s gets %d\n", c.Name, c.Replicas)
	}
	for _, r := range placed.Rejections {
		fmt.Printf("  %s gets none: %s\n", r.Cluster, r.Text())
	}

	// 4. Each cluster gets a Work of its own: its share of the replicas, and what is overridden there.
	var works []workv1alpha1.Work
	for _, r := range dispatch.Works(ctx, dispatch.Input{
		Binding: binding, Template: template, Clusters: fleet,
		Overrides: []policyv1alpha1.Override{parse[policyv1alpha1.OverridePolicy](shopOverride)},
		NewID:     func() string { return "w-1" },
	}, meaning) {
		mustSucceed(r.Err)
		manifest, err := execute.Manifest(r.Work)
		mustSucceed(err)
		fmt.Printf("work %s/%s says %d × %s\n", r.Work.Namespace, r.Work.Name, number(manifest, "spec", "replicas"),
			image(manifest))
		works = append(works, *r.Work)
	}

	// 5. In the member, what to do follows from what is there.
	for i := range works {
		work := &works[i]
		work.Generation = 1
		desired, err := execute.Desired(work, nil, nil)
		mustSucceed(err)
		create := execute.Plan(work, desired, nil)
		fmt.Printf("%s: %s, as %s\n", work.Namespace, create.Kind, create.Reason)
		member := allRunning(create.Object) // pretend that the member's OpenKruise did its part

		// 6. What the member answers goes into the Work's status: that it was applied, how it is, and its health.
		reading := execute.Read(ctx, meaning, work, member)
		work.Status, _ = execute.Report(work, execute.Outcome{Manifest: desired, Reading: reading}, now.Time)
		after := execute.Plan(work, desired, member)
		fmt.Printf("%s: it is %s; %s, as %s\n", work.Namespace, reading.Health, after.Kind, after.Reason)

		// Whatever somebody changes there is put right, if the template says it.
		mustSucceed(unstructured.SetNestedField(member.Object, int64(99), "spec", "replicas"))
		drift := execute.Plan(work, desired, member)
		fmt.Printf("%s: %s, as %s\n", work.Namespace, drift.Kind, drift.Reason)
	}

	// 7. The answers of the members fold into the binding, whichever came first …
	*binding.BindingStatus() = aggregate.Binding(binding, works[:1], nil, now)
	fmt.Printf("eu has answered: FullyApplied is %s\n", binding.BindingStatus().Conditions[0].Status)
	*binding.BindingStatus() = aggregate.Binding(binding, works, nil, now)
	fmt.Printf("us has answered: FullyApplied is %s\n", binding.BindingStatus().Conditions[0].Status)

	// 8. … and into the template, which looks as if it ran in one cluster.
	folded, err := meaning.Aggregate(ctx, template, aggregate.Items(binding, nil))
	mustSucceed(err)
	fmt.Printf("%s %s has %d replicas, %d ready, %d updated; generation %d is observed\n", folded.GetKind(),
		folded.GetName(),
		number(folded, "status", "replicas"), number(folded, "status", "readyReplicas"),
		number(folded, "status", "updatedReplicas"),
		number(folded, "status", "observedGeneration"))

	// Output:
	// policy shop claims CloneSet shop
	// it wants 8 replicas
	// shop-cloneset is scheduled, as the binding has not been scheduled yet
	//   eu gets 6
	//   us gets 2
	//   old gets none: cluster(s) did not have the API resource
	// work karmada-es-eu/shop-56b689858c says 6 × registry.eu.example.com/library/nginx:1.28
	// work karmada-es-us/shop-56b689858c says 2 × docker.io/library/nginx:1.29
	// karmada-es-eu: Create, as the object does not exist
	// karmada-es-eu: it is Healthy; Nothing, as the object is up to date
	// karmada-es-eu: Apply, as spec.replicas differs
	// karmada-es-us: Create, as the object does not exist
	// karmada-es-us: it is Healthy; Nothing, as the object is up to date
	// karmada-es-us: Apply, as spec.replicas differs
	// eu has answered: FullyApplied is False
	// us has answered: FullyApplied is True
	// CloneSet shop has 8 replicas, 8 ready, 8 updated; generation 1 is observed
}

// parse reads what a user wrote.
func parse[T any](text string) *T {
	object := new(T)
	raw, err := yaml.YAMLToJSON([]byte(text))
	mustSucceed(err)
	mustSucceed(json.Unmarshal(raw, object))
	return object
}

// ready returns a cluster that serves OpenKruise.
func ready(name string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Conditions = []metav1.Condition{
		{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue},
		{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue},
	}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps.kruise.io/v1alpha1",
		Resources: []clusterv1alpha1.APIResource{{Name: "clonesets", Kind: "CloneSet"}}}}
	return c
}

// allRunning returns a member's object when all its replicas run.
func allRunning(sent *unstructured.Unstructured) *unstructured.Unstructured {
	object, n := sent.DeepCopy(), number(sent, "spec", "replicas")
	object.SetUID("member")
	object.SetGeneration(1)
	status := map[string]any{"observedGeneration": int64(1)}
	for _, counter := range []string{"replicas", "readyReplicas", "availableReplicas", "updatedReplicas",
		"updatedReadyReplicas", "updatedAvailableReplicas"} {
		status[counter] = n
	}
	object.Object["status"] = status
	return object
}

func number(u *unstructured.Unstructured, path ...string) int64 {
	n, _, err := unstructured.NestedInt64(u.Object, path...)
	mustSucceed(err)
	return n
}

func image(u *unstructured.Unstructured) string {
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	mustSucceed(err)
	return containers[0].(map[string]any)["image"].(string)
}

func mustSucceed(err error) {
	if err != nil {
		panic(err)
	}
}
