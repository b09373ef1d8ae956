package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

const clones = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web, namespace: shop, uid: u-3, generation: 1}
spec:
  replicas: 9
  template: {spec: {containers: [{name: main, image: "nginx:1"}]}}
`

const threeEach = `
resource: {kind: CloneSet}
replicas: 9
placement: {clusterAffinity: {clusterNames: [eu, us, ap]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}
clusters: [{name: eu, replicas: 3}, {name: us, replicas: 3}, {name: ap, replicas: 3}]
`

// story is a template in its clusters, whose Works stand.
type story struct {
	t  *testing.T
	in dispatch.Input
	// writes counts the Works written.
	writes   int
	messages []fleet.Condition
}

func begin(t *testing.T, template, spec string) *story {
	s := &story{t: t, in: input(t, template, spec)}
	s.in.Existing = map[string]*workv1alpha1.Work{}
	return s
}

// look decides, and writes the Works that differ.
func (s *story) look() {
	s.t.Helper()
	d := dispatch.Decide(context.Background(), s.in, interpret.New(builtin.Tier()))
	if d.Err != nil {
		s.t.Fatal(d.Err)
	}
	s.messages = d.Conditions
	s.in.Binding.SetAnnotations(map[string]string{wellknown.OrdinalsAnnotation: d.Record,
		wellknown.ApprovedStageAnnotation: d.Approved})
	for _, r := range d.Results {
		if r.Err != nil {
			s.t.Fatal(r.Err)
		}
		was := s.in.Existing[r.Cluster]
		switch {
		case was == nil:
			r.Work.Generation = 1
			s.in.Existing[r.Cluster] = r.Work
			s.writes++
		case dispatch.Differs(was, r.Work):
			is := dispatch.Onto(was, r.Work)
			if string(is.Spec.Workload.Manifests[0].Raw) != string(was.Spec.Workload.Manifests[0].Raw) {
				is.Generation++
			}
			s.in.Existing[r.Cluster] = is
			s.writes++
		}
	}
}

// edit changes the template as a user does.
func (s *story) edit(value any, path ...string) {
	s.t.Helper()
	s.in.Template = s.in.Template.DeepCopy()
	if value == nil {
		unstructured.RemoveNestedField(s.in.Template.Object, path...)
	} else if err := unstructured.SetNestedField(s.in.Template.Object, value, path...); err != nil {
		s.t.Fatal(err)
	}
	s.in.Template.SetGeneration(s.in.Template.GetGeneration() + 1)
}

func (s *story) image(image string) {
	s.edit([]any{map[string]any{"name": "main", "image": image}}, "spec", "template", "spec", "containers")
}

// report is a cluster's word that it does what its Work says: so many pods are of the new template and available.
func (s *story) report(cluster string, updated, available int64) {
	s.t.Helper()
	w := s.in.Existing[cluster].DeepCopy()
	m := manifest(s.t, w)
	replicas := number(s.t, m, "spec", "replicas")
	var made int64
	if _, err := fmt.Sscan(m.GetAnnotations()["resourcetemplate.karmada.io/generation"], &made); err != nil {
		s.t.Fatal(err)
	}
	status := map[string]any{"generation": w.Generation, "observedGeneration": w.Generation,
		"resourceTemplateGeneration": made,
		"replicas":                   replicas, "readyReplicas": available, "availableReplicas": available,
		"updatedReplicas":      updated,
		"updatedReadyReplicas": updated, "updatedAvailableReplicas": min(updated, available)}
	raw, err := json.Marshal(status)
	if err != nil {
		s.t.Fatal(err)
	}
	w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
		ObservedGeneration: w.Generation}}
	w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy,
		Status: &runtime.RawExtension{Raw: raw}}}
	if moved := dispatch.Moved(s.in.Existing[cluster], w); !moved && dispatch.Follows(w) &&
		len(s.in.Existing[cluster].Status.ManifestStatuses) == 0 {
		s.t.Error("a first report decides nothing")
	}
	s.in.Existing[cluster] = w
}

func number(t testing.TB, u *unstructured.Unstructured, path ...string) int64 {
	t.Helper()
	n, _, err := unstructured.NestedInt64(u.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fieldValues returns a field of the manifests in the Works, by cluster.
func (s *story) fieldValues(path ...string) string {
	s.t.Helper()
	var all []string
	for _, cluster := range []string{"eu", "us", "ap"} {
		if w := s.in.Existing[cluster]; w != nil {
			v, _, err := unstructured.NestedFieldNoCopy(manifest(s.t, w).Object, path...)
			if err != nil {
				s.t.Fatal(err)
			}
			all = append(all, fmt.Sprint(v))
		}
	}
	return strings.Join(all, " ")
}

func (s *story) expect(when, partitions, budgets string) {
	s.t.Helper()
	if p := s.fieldValues("spec", "updateStrategy", "partition"); p != partitions {
		s.t.Errorf("%s, partitions are %s, want %s", when, p, partitions)
	}
	if m := s.fieldValues("spec", "updateStrategy", "maxUnavailable"); budgets != "" && m != budgets {
		s.t.Errorf("%s, maxUnavailable is %s, want %s", when, m, budgets)
	}
	before := s.writes
	if s.look(); s.writes != before {
		s.t.Errorf("%s, looking again writes %d Works", when, s.writes-before)
	}
}

func TestCanaryPercentageCountsPodsOfAllClusters(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.look()
	s.expect("at first", "0 0 0", "1 1 1")
	for _, c := range []string{"eu", "us", "ap"} {
		s.report(c, 3, 3)
	}
	s.expect("when all run", "0 0 0", "1 1 1")
	if s.writes != 3 {
		t.Errorf("it took %d writes to bring it to three clusters", s.writes)
	}

	// A canary: one pod, in the first cluster. The others know of the new template and keep all of their pods.
	s.image("nginx:2")
	s.edit("90%", "spec", "updateStrategy", "partition")
	s.look()
	s.expect("as a canary", "2 3 3", "")
	s.report("eu", 1, 2)
	s.report("us", 0, 3)
	s.report("ap", 0, 3)
	s.expect("while the canary starts", "2 3 3", "")
	s.report("eu", 1, 3)
	s.writes = 0
	s.expect("when the canary runs", "2 3 3", "")

	// All: two pods at once, as 20% of nine are two.
	s.edit(nil, "spec", "updateStrategy", "partition")
	s.look()
	s.expect("when all are let go", "0 0 3", "1 1 1")
	s.report("eu", 2, 2)
	s.report("us", 1, 2)
	s.report("ap", 0, 3)
	s.expect("on the way", "0 0 3", "1 1 1")
	s.report("eu", 3, 3)
	s.look()
	s.expect("when the first is done", "0 0 0", "1 1 1")
	s.report("us", 3, 3)
	s.look()
	s.report("ap", 1, 2)
	s.look()
	s.expect("when only the last is left", "0 0 0", "1 1 2")
	s.report("ap", 3, 3)
	s.expect("at the end", "0 0 0", "1 1 2")
}

func TestALostClusterStopsARolloutUnlessItIsIgnored(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.look()
	for _, c := range []string{"eu", "us", "ap"} {
		s.report(c, 3, 3)
	}
	lost := s.in.Clusters["ap"].DeepCopy()
	lost.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady,
		Status: metav1.ConditionUnknown}}
	if !dispatch.Reachability(s.in.Clusters["ap"], lost) {
		t.Error("that a cluster is lost decides nothing")
	}
	s.in.Clusters["ap"] = lost
	s.image("nginx:2")
	s.look()
	s.expect("without ap", "3 3 3", "")
	s.edit("Ignore", "metadata", "annotations", wellknown.UnreachableClustersAnnotation)
	s.look()
	s.expect("regardless of ap", "0 0 3", "1 1 1")
}

func TestOverriddenFieldsAreNotDivided(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.edit(int64(4), "spec", "updateStrategy", "partition")
	s.edit(int64(5), "spec", "updateStrategy", "maxUnavailable")
	s.in.Overrides = []policyv1alpha1.Override{clusterOverride(t, `
overrideRules:
- targetCluster: {clusterNames: [us]}
  overriders: {plaintext: [{path: /spec/updateStrategy/partition, operator: replace, value: 3}]}
`)}
	s.look()
	// us keeps its three, so that one of the six others stays old.
	s.expect("with a partition of its own in us", "0 3 1", "")

	// A budget of its own is taken off the fleet's, and its cluster waits for no turn.
	s = begin(t, clones, threeEach)
	s.edit(int64(2), "spec", "updateStrategy", "maxUnavailable")
	s.in.Overrides = []policyv1alpha1.Override{clusterOverride(t, `
overrideRules:
- targetCluster: {clusterNames: [ap]}
  overriders: {plaintext: [{path: /spec/updateStrategy/maxUnavailable, operator: replace, value: 1}]}
`)}
	s.look()
	for _, c := range []string{"eu", "us", "ap"} {
		s.report(c, 3, 3)
	}
	s.image("nginx:2")
	s.look()
	s.expect("with a budget of its own in ap", "0 3 0", "1 1 1")
}

func TestSuspendedClusterTakesNoTurn(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.edit(int64(1), "spec", "updateStrategy", "maxUnavailable")
	s.look()
	for _, c := range []string{"eu", "us", "ap"} {
		s.report(c, 3, 3)
	}
	s.in.Binding.BindingSpec().Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{
		DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"eu"}}}}
	s.image("nginx:2")
	s.look()
	s.expect("while eu is suspended", "3 0 3", "")
}

func TestAnAnnotationGoesBackToCopying(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.edit("90%", "spec", "updateStrategy", "partition")
	s.look()
	s.expect("for the fleet", "2 3 3", "1 1 1")
	s.edit("Cluster", "metadata", "annotations", wellknown.RolloutScopeAnnotation)
	s.look()
	s.expect("for each cluster", "90% 90% 90%", "<nil> <nil> <nil>")
	if w := s.in.Existing["eu"]; dispatch.Follows(w) {
		t.Error("the note of the fleet stays on its Work")
	}
}

func TestIndivisibleTemplateIsNotSent(t *testing.T) {
	for annotation, value := range map[string]string{
		wellknown.RolloutScopeAnnotation:  "Galaxy",
		wellknown.RolloutOrderAnnotation:  "Random",
		wellknown.RolloutStagesAnnotation: "[",
	} {
		in := input(t, clones, threeEach)
		in.Template.SetAnnotations(map[string]string{annotation: value, wellknown.RolloutOrderAnnotation: "Stages"})
		if annotation == wellknown.RolloutOrderAnnotation {
			in.Template.SetAnnotations(map[string]string{annotation: value})
		}
		d := dispatch.Decide(context.Background(), in, interpret.New(builtin.Tier()))
		if d.Err == nil || !strings.Contains(d.Err.Error(), annotation) || len(d.Results) > 0 {
			t.Errorf("%s: %s gives %v and %d Works", annotation, value, d.Err, len(d.Results))
		}
		for _, r := range dispatch.Works(context.Background(), in, interpret.New(builtin.Tier())) {
			if r.Err == nil {
				t.Errorf("%s: %s gives a Work in %s", annotation, value, r.Cluster)
			}
		}
	}
}

func TestSingleClusterAndDuplicatedWorkloadKeepUserValues(t *testing.T) {
	for name, spec := range map[string]string{
		"one cluster": strings.ReplaceAll(threeEach,
			"{name: eu, replicas: 3}, {name: us, replicas: 3}, {name: ap, replicas: 3}", "{name: eu, replicas: 9}"),
		"copied": "replicas: 9\nclusters: [{name: eu}, {name: us}, {name: ap}]",
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, clones, spec)
			s.edit("90%", "spec", "updateStrategy", "partition")
			s.look()
			for _, cluster := range slices.Sorted(maps.Keys(s.in.Existing)) {
				w := s.in.Existing[cluster]
				if p, _, _ := unstructured.NestedString(manifest(t, w).Object, "spec", "updateStrategy", "partition"); p != "90%" ||
					dispatch.Follows(w) {
					t.Errorf("%s has partition %s, and is followed: %v", cluster, p, dispatch.Follows(w))
				}
			}
		})
	}
}

const database = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: db, namespace: shop, uid: u-4, generation: 1, annotations: {argosy.io/unique-ordinals: "true"}}
spec:
  replicas: 5
  podManagementPolicy: Parallel
  ordinals: {start: 0}
  template: {spec: {containers: [{name: main, image: "db:1"}]}}
  volumeClaimTemplates: [{metadata: {name: data}}]
`

const threeAndTwo = `
resource: {kind: StatefulSet}
replicas: 5
placement: {clusterAffinity: {clusterNames: [eu, us]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}
clusters: [{name: eu, replicas: 3}, {name: us, replicas: 2}]
`

func (s *story) partitions() string {
	return s.fieldValues("spec", "updateStrategy", "rollingUpdate", "partition")
}

func TestOrdinalsOfAStatefulSetAreUniqueAcrossClusters(t *testing.T) {
	s := begin(t, database, threeAndTwo)
	s.look()
	sets := func(when, replicas, reserved string) {
		t.Helper()
		if got := s.fieldValues("spec", "replicas"); got != replicas {
			t.Errorf("%s, replicas are %s, want %s", when, got, replicas)
		}
		if got := s.fieldValues("spec", "reserveOrdinals"); got != reserved {
			t.Errorf("%s, reserved are %s, want %s", when, got, reserved)
		}
	}
	sets("at first", "3 2", "[] [0 1 2]")
	if got := s.fieldValues("spec", "ordinals"); got != "<nil> <nil>" {
		t.Errorf("ordinals are sent as %s", got)
	}
	s.report("eu", 3, 3)
	s.report("us", 2, 2)

	// The highest ordinals are new first: both are in us.
	s.image("db:2")
	s.edit(int64(3), "spec", "updateStrategy", "rollingUpdate", "partition")
	s.look()
	if got := s.partitions(); got != "3 0" {
		t.Errorf("partitions are %s, want that only us begins", got)
	}
	s.report("eu", 0, 3)
	s.report("us", 2, 2)
	s.look()
	if got := s.partitions(); got != "3 0" {
		t.Errorf("then partitions are %s", got)
	}

	// One replica moves: us waits until the pod is gone from eu.
	s.in.Binding.BindingSpec().Clusters[0].Replicas, s.in.Binding.BindingSpec().Clusters[1].Replicas = 2, 3
	s.look()
	sets("while ordinal 2 leaves eu", "2 2", "[] [0 1 2]")
	s.report("eu", 0, 2)
	s.look()
	sets("when it has left", "2 3", "[] [0 1]")
	if len(s.messages) != 1 || s.messages[0].Type != fleet.StaleVolume ||
		!strings.Contains(s.messages[0].Message, "2 runs in us and ran in eu before") {
		t.Errorf("reported: %v", s.messages)
	}

	// eu is lost, and us gets all replicas: the volumes of 0 and 1 are in eu, so no other cluster gets 0 or 1.
	delete(s.in.Existing, "eu")
	s.in.Binding.BindingSpec().Clusters = s.in.Binding.BindingSpec().Clusters[1:]
	s.in.Binding.BindingSpec().Clusters[0].Replicas = 5
	s.report("us", 3, 3)
	s.look()
	sets("without eu", "3", "[0 1]")
	if !slices.ContainsFunc(s.messages, func(c fleet.Condition) bool { return c.Type == fleet.OrdinalsUnassigned }) {
		t.Errorf("reported: %v", s.messages)
	}
	s.edit("Always", "metadata", "annotations", wellknown.OrdinalMobilityAnnotation)
	s.look()
	sets("when they may move", "5", "[]")
}

const united = `
apiVersion: apps.kruise.io/v1beta1
kind: UnitedDeployment
metadata: {name: ud, namespace: shop, uid: u-5, generation: 1}
spec:
  replicas: 5
  template: {cloneSetTemplate: {spec: {template: {spec: {containers: [{name: main, image: "nginx:1"}]}}}}}
  topology: {subsets: [{name: a, replicas: "50%"}, {name: b, replicas: "50%"}]}
`

const threeAndTwoOfUnited = `
resource: {kind: UnitedDeployment}
replicas: 5
placement: {clusterAffinity: {clusterNames: [eu, us]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}
clusters: [{name: eu, replicas: 3}, {name: us, replicas: 2}]
`

func TestUnitedDeploymentSubsetsAddUp(t *testing.T) {
	subset := func(name string, fields map[string]any) any {
		fields["name"] = name
		return fields
	}
	for _, c := range []struct {
		name    string
		subsets []any
		want    string
		refused string
	}{
		{name: "halves of an odd number", want: "a:2 b:1 | a:1 b:1",
			subsets: []any{subset("a", map[string]any{"replicas": "50%"}), subset("b", map[string]any{"replicas": "50%"})}},
		{name: "numbers", want: "a:1 b:2 | a:1 b:1",
			subsets: []any{subset("a", map[string]any{"replicas": int64(2)}),
				subset("b", map[string]any{"replicas": int64(3)})}},
		{name: "one without a number", want: "a:1 b:- | a:1 b:-",
			subsets: []any{subset("a", map[string]any{"replicas": int64(2)}), subset("b", map[string]any{})}},
		{name: "numbers that do not add up", refused: "add up to 4",
			subsets: []any{subset("a", map[string]any{"replicas": int64(2)}),
				subset("b", map[string]any{"replicas": int64(2)})}},
		{name: "nonsense", refused: `subset "a"`,
			subsets: []any{subset("a", map[string]any{"replicas": "half"})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, united, threeAndTwoOfUnited)
			s.edit(c.subsets, "spec", "topology", "subsets")
			if c.refused != "" {
				d := dispatch.Decide(context.Background(), s.in, interpret.New(builtin.Tier()))
				if d.Err == nil || !strings.Contains(d.Err.Error(), c.refused) {
					t.Errorf("it says %v, want %q in it", d.Err, c.refused)
				}
				return
			}
			s.look()
			var clusters []string
			for _, cluster := range []string{"eu", "us"} {
				var all []string
				subsets, _, err := unstructured.NestedSlice(manifest(t, s.in.Existing[cluster]).Object, "spec", "topology",
					"subsets")
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range subsets {
					n, ok := v.(map[string]any)["replicas"]
					if !ok {
						n = "-"
					}
					all = append(all, fmt.Sprintf("%v:%v", v.(map[string]any)["name"], n))
				}
				clusters = append(clusters, strings.Join(all, " "))
			}
			if got := strings.Join(clusters, " | "); got != c.want {
				t.Errorf("subsets are %s, want %s", got, c.want)
			}
		})
	}
}

func TestTheBoundsAndPartitionsOfSubsetsAreDividedToo(t *testing.T) {
	s := begin(t, united, threeAndTwoOfUnited)
	s.edit([]any{
		map[string]any{"name": "a", "minReplicas": int64(2), "maxReplicas": int64(3)},
		map[string]any{"name": "b"},
	}, "spec", "topology", "subsets")
	s.edit(map[string]any{"a": int64(1), "b": int64(2)}, "spec", "updateStrategy", "manualUpdate", "partitions")
	s.look()
	if got := s.fieldValues("spec", "topology",
		"subsets"); got != "[map[maxReplicas:2 minReplicas:1 name:a] map[name:b]] [map[maxReplicas:1 minReplicas:1 name:a] map[name:b]]" {
		t.Errorf("subsets are %s", got)
	}
	// Of three and two pods, one of a and two of b stay old.
	var a, b int64
	for _, cluster := range []string{"eu", "us"} {
		m := manifest(t, s.in.Existing[cluster])
		a += number(t, m, "spec", "updateStrategy", "manualUpdate", "partitions", "a")
		b += number(t, m, "spec", "updateStrategy", "manualUpdate", "partitions", "b")
	}
	if a != 1 || b != 2 {
		t.Errorf("%d of a and %d of b stay old", a, b)
	}
}

func TestStatefulSetWithoutReplicasRemembersItsVolumes(t *testing.T) {
	s := begin(t, database, threeAndTwo)
	s.look()
	record := s.in.Binding.GetAnnotations()[wellknown.OrdinalsAnnotation]
	if record != `{"eu":["0-2"],"us":["3-4"]}` {
		t.Errorf("the record is %s", record)
	}
	s.in.Binding.BindingSpec().Replicas, s.in.Binding.BindingSpec().Clusters = 0, nil
	s.look()
	if now := s.in.Binding.GetAnnotations()[wellknown.OrdinalsAnnotation]; now != record {
		t.Errorf("without replicas the record is %s", now)
	}
}

func TestNothingIsDividedIfMembersOwnReplicas(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.edit("true", "metadata", "labels", policyv1alpha1.RetainReplicasLabel)
	s.edit("90%", "spec", "updateStrategy", "partition")
	s.look()
	s.expect("by an autoscaler", "90% 90% 90%", "")
}

func TestConfigMapStatusHasNoEffect(t *testing.T) {
	in := input(t, configMap, "clusters: [{name: eu}]")
	w := works(t, in)["eu"]
	is := w.DeepCopy()
	is.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	if dispatch.Moved(w, is) || dispatch.Follows(w) {
		t.Error("its binding is looked at again")
	}
}

func TestClusterHasNoWorkBeforeItsTurn(t *testing.T) {
	s := begin(t, `
apiVersion: apps.kruise.io/v1alpha1
kind: ImagePullJob
metadata: {name: web, namespace: shop, uid: u-3, generation: 1, annotations: {argosy.io/rollout-scope: Fleet}}
spec: {parallelism: 2}
`, `
resource: {kind: ImagePullJob}
placement: {clusterAffinity: {clusterNames: [eu, us, ap]}}
clusters: [{name: eu}, {name: us}, {name: ap}]
`)
	s.look()
	if got := s.fieldValues("spec", "parallelism"); got != "1 1" || s.in.Existing["ap"] != nil {
		t.Errorf("pulled is by %s, where two are allowed", got)
	}
}

// Karmada's scripts copy spec.updateStrategy.partition to each cluster, where it means another share in each.
func TestPartitionIsDividedUnlessCopyIsRequested(t *testing.T) {
	for scope, want := range map[string]string{"Fleet": "2 3 3", "Cluster": "8 8 8"} {
		s := begin(t, clones, threeEach)
		s.edit(scope, "metadata", "annotations", wellknown.RolloutScopeAnnotation)
		s.look()
		for _, cluster := range []string{"eu", "us", "ap"} {
			s.report(cluster, 3, 3)
		}
		s.edit(int64(8), "spec", "updateStrategy", "partition") // one canary of nine
		s.image("nginx:2")
		s.look()
		if got := s.fieldValues("spec", "updateStrategy", "partition"); got != want {
			t.Errorf("in the scope of the %s, a partition of 8 is %s, want %s", scope, got, want)
		}
	}
}
