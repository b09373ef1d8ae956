package companion

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	cloneSet    = "{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web, namespace: shop}, spec: {template: {metadata: {labels: {app: web, tier: front}}}}}"
	statefulSet = "{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: web, namespace: shop, annotations: {kruise.io/auto-generate-persistent-pod-state: '%s'}}}"
)

func TestPointerOf(t *testing.T) {
	const apps, policy, rollouts = "apps.kruise.io/v1alpha1", "policy.kruise.io/v1alpha1", "rollouts.kruise.io/v1beta1"
	for _, tt := range []struct {
		name, apiVersion, kind, spec string
		workload                     string // default: the CloneSet
		want                         bool
		pointer                      string // "" if it refers to nothing
	}{
		{"a WorkloadSpread by name", apps, "WorkloadSpread",
			"targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}", "", true, "CloneSet web"},
		{"in another version", apps, "WorkloadSpread",
			"targetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}", "", true, "CloneSet web"},
		{"of another name", apps, "WorkloadSpread",
			"targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: db}", "", false, "CloneSet db"},
		{"of another group", apps, "WorkloadSpread", "targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}",
			fmt.Sprintf(statefulSet, ""), false, "StatefulSet web"},
		{"of a kind that the hub knows nothing of", apps, "WorkloadSpread",
			"targetRef: {apiVersion: game.kruise.io/v1alpha1, kind: GameServerSet, name: web}",
			"{apiVersion: game.kruise.io/v1alpha1, kind: GameServerSet, metadata: {name: web, namespace: shop}}", true,
			"GameServerSet web"},
		{"nothing", apps, "WorkloadSpread", "subsets: []", "", false, ""},
		{"a WorkloadSpread does not select", apps, "WorkloadSpread", "selector: {matchLabels: {app: web}}", "", false, ""},
		{"a PersistentPodState", apps, "PersistentPodState",
			"targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: web}", fmt.Sprintf(statefulSet, ""), true,
			"StatefulSet web"},
		{"a budget by name", policy, "PodUnavailableBudget",
			"targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}", "", true, "CloneSet web"},
		{"a budget by labels", policy, "PodUnavailableBudget", "selector: {matchLabels: {app: web}}", "", true,
			"pods with app=web"},
		{"by other labels", policy, "PodUnavailableBudget", "selector: {matchLabels: {app: web, tier: back}}", "", false,
			"pods with app=web,tier=back"},
		{"by one of several values", policy, "PodUnavailableBudget",
			"selector: {matchExpressions: [{key: app, operator: In, values: [db, web]}]}", "", true,
			"pods with app in (db,web)"},
		{"by what is not there", policy, "PodUnavailableBudget",
			"selector: {matchExpressions: [{key: app, operator: NotIn, values: [db]}]}", "", true, "pods with app notin (db)"},
		{"a name comes before labels", policy, "PodUnavailableBudget",
			"targetRef: {apiVersion: apps/v1, kind: Deployment, name: db}, selector: {matchLabels: {app: web}}", "", false,
			"Deployment db"},
		{"a budget of OpenKruise that selects nothing", policy, "PodUnavailableBudget", "selector: {}", "", false, ""},
		{"a budget of Kubernetes", "policy/v1", "PodDisruptionBudget", "selector: {matchLabels: {tier: front}}", "", true,
			"pods with tier=front"},
		{"of all pods", "policy/v1", "PodDisruptionBudget", "selector: {}", "", true, "all pods"},
		{"of all pods, and what has none", "policy/v1", "PodDisruptionBudget", "selector: {}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}}", false, "all pods"},
		{"a budget of none", "policy/v1", "PodDisruptionBudget", "minAvailable: 1", "", false, ""},
		{"a probe", apps, "PodProbeMarker", "selector: {matchLabels: {app: web}}", "", true, "pods with app=web"},
		{"a probe that selects nothing", apps, "PodProbeMarker", "selector: {}", "", false, ""},
		{"a Rollout", rollouts, "Rollout", "workloadRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}",
			"", true, "CloneSet web"},
		{"a Rollout as it was", "rollouts.kruise.io/v1alpha1", "Rollout",
			"objectRef: {workloadRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}}", "", true,
			"CloneSet web"},
		{"a Rollout of Argo is a workload", "argoproj.io/v1alpha1", "Rollout",
			"workloadRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}", "", false, ""},
		{"a BatchRelease is the member's", "rollouts.kruise.io/v1beta1", "BatchRelease",
			"workloadRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}", "", false, ""},
		{"an autoscaler", "autoscaling/v2", "HorizontalPodAutoscaler",
			"scaleTargetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}", "", false, ""},
	} {
		companion := parsed(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: c, namespace: shop}, spec: {%s}}",
			tt.apiVersion, tt.kind, tt.spec))
		if tt.workload == "" {
			tt.workload = cloneSet
		}
		workload := parsed(t, tt.workload)
		p, ok, err := PointerOf(companion)
		if err != nil || ok != (tt.pointer != "") || ok && p.String() != tt.pointer {
			t.Errorf("%s: PointerOf = %q, %t, %v; want %q", tt.name, p, ok, err, tt.pointer)
		}
		follow, _ := Find(workload, []*unstructured.Unstructured{companion, companion})
		if got := len(follow) == 1; got != tt.want || len(follow) > 1 {
			t.Errorf("%s: %v follow, want it to: %t", tt.name, follow, tt.want)
		}
		if got := meet(companion, workload); tt.want && !got {
			t.Errorf("%s: it is not found: %v and %v", tt.name, Reaches(companion), ReachedBy(workload))
		}
		elsewhere := workload.DeepCopy()
		elsewhere.SetNamespace("other")
		if follow, _ := Find(elsewhere, []*unstructured.Unstructured{companion}); len(follow) > 0 ||
			meet(companion, elsewhere) {
			t.Errorf("%s: it points into another namespace", tt.name)
		}
	}
}

// meet reports whether an index finds the companion for the workload.
func meet(companion, workload *unstructured.Unstructured) bool {
	of := ReachedBy(workload)
	return slices.ContainsFunc(Reaches(companion), func(key string) bool { return slices.Contains(of, key) })
}

func TestInvalidWorkloadHasNoCompanions(t *testing.T) {
	bad := parsed(t, "{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: c, namespace: shop}, spec: {selector: {matchExpressions: [{key: app, operator: Like}]}}}")
	if _, _, err := PointerOf(bad); err == nil ||
		!strings.HasPrefix(err.Error(), "read spec.selector of PodUnavailableBudget c: ") {
		t.Errorf("error %v", err)
	}
	if follow, made := Find(parsed(t, cloneSet), []*unstructured.Unstructured{bad}); len(follow)+len(made)+
		len(Reaches(bad)) > 0 {
		t.Errorf("it points at something: %v %v %v", follow, made, Reaches(bad))
	}
}

func TestCompanionCreatedByMembersDoesNotFollow(t *testing.T) {
	state := parsed(t, "{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: s, namespace: shop}, spec: {targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: web}}}")
	spread := parsed(t, "{apiVersion: apps.kruise.io/v1beta1, kind: WorkloadSpread, metadata: {name: s, namespace: shop}, spec: {targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: web}}}")
	for annotation, want := range map[string]int{"true": 1, "false": 0, "": 0} {
		follow, made := Find(parsed(t, fmt.Sprintf(statefulSet, annotation)),
			[]*unstructured.Unstructured{state, spread})
		if len(made) != want || len(follow) != 2-want || follow[len(follow)-1].Kind != "WorkloadSpread" {
			t.Errorf("with %q, %v follow, and members make %d", annotation, follow, len(made))
		}
	}
}

// Each companion of a workload is found by the workload's keys, for any selector.
func TestKeysFindAllCompanions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	found, pointed := 0, 0
	for range 5000 {
		workload := parsed(t, cloneSet)
		of := map[string]any{}
		for range r.IntN(3) {
			of[pick("a", "b", "c")] = pick("1", "2")
		}
		_ = unstructured.SetNestedMap(workload.Object, of, "spec", "template", "metadata", "labels")
		var expressions []any
		for range r.IntN(3) {
			e := map[string]any{"key": pick("a", "b", "c"), "operator": pick("In", "NotIn", "Exists", "DoesNotExist")}
			if strings.HasSuffix(e["operator"].(string), "In") {
				e["values"] = []any{pick("1", "2"), pick("1", "3")}
			}
			expressions = append(expressions, e)
		}
		companion := parsed(t, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: c, namespace: shop}}")
		s := map[string]any{"matchExpressions": expressions}
		if r.IntN(2) == 0 {
			s["matchLabels"] = map[string]any{pick("a", "b", "c"): pick("1", "2")}
		}
		_ = unstructured.SetNestedMap(companion.Object, s, "spec", "selector")
		p, ok, err := PointerOf(companion)
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		if meet(companion, workload) {
			found++
		}
		if p.Matches(workload) {
			pointed++
			if !meet(companion, workload) {
				t.Fatalf("%s points at pods with %v: %v and %v", p, of, Reaches(companion), ReachedBy(workload))
			}
		}
	}
	if pointed < 500 || found > 4*pointed {
		t.Errorf("%d point, %d are found: too few to show anything, or an index of little use", pointed, found)
	}
}

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}
