package placement

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func read[T any](t *testing.T, text string) (obj T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &obj); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return obj
}

// fleet is four clusters in the set prod, and one in the set test.
func fleet(t *testing.T) []clusterv1.ManagedCluster {
	var all []clusterv1.ManagedCluster
	for _, c := range []string{
		"c1, {env: a, cluster.open-cluster-management.io/clusterset: prod}, '4', '8', [{name: region, value: eu}]",
		"c2, {env: a, cluster.open-cluster-management.io/clusterset: prod}, '8', '8', [{name: region, value: us}]",
		"c3, {env: b, cluster.open-cluster-management.io/clusterset: prod}, '16', '8', []",
		"c4, {env: b, cluster.open-cluster-management.io/clusterset: prod}, '6', '8', [{name: region, value: eu}]",
		"t1, {env: a, cluster.open-cluster-management.io/clusterset: test}, '1', '1', []",
	} {
		part := strings.SplitN(c, ", {", 2)
		rest := strings.SplitN(part[1], "}, ", 2)
		of := strings.SplitN(rest[1], ", ", 3)
		all = append(all, read[clusterv1.ManagedCluster](t, fmt.Sprintf(`{metadata: {name: %s, labels: {%s}},
			status: {allocatable: {cpu: %s}, capacity: {cpu: %s}, clusterClaims: %s}}`, part[0], rest[0], of[0], of[1], of[2])))
	}
	return all
}

func sets(names ...string) (all []setv1beta2.ManagedClusterSet) {
	for _, name := range names {
		all = append(all, setv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return all
}

// show is "c1 c2: Reason: message", with the message of a misconfiguration after a bar.
func show(c Choice) string {
	names := c.Groups[0].Clusters
	for _, g := range c.Groups[1:] {
		names = append(append(names, "/"), g.Clusters...)
	}
	is := meta.FindStatusCondition(c.Conditions, placementv1beta1.PlacementSatisfied)
	out := fmt.Sprintf("%s: %s %s: %s", strings.Join(names, " "), is.Status, is.Reason, is.Message)
	if m := meta.FindStatusCondition(c.Conditions,
		placementv1beta1.PlacementMisconfigured); m.Status == metav1.ConditionTrue {
		out += " | " + m.Message
	} else if m.Reason != "Succeedconfigured" || m.Message != "Placement configurations check pass" {
		out += " | wrong condition: " + m.Reason + m.Message
	}
	return out
}

// decided are PlacementDecisions of a group each, such as "c1 c2/c3".
func decided(groups string) (all []placementv1beta1.PlacementDecision) {
	for i, group := range strings.Split(groups, "/") {
		d := placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			placementv1beta1.DecisionGroupIndexLabel: fmt.Sprint(i), placementv1beta1.DecisionGroupNameLabel: fmt.Sprint("g",
				i)}}}
		for _, name := range strings.Fields(group) {
			d.Status.Decisions = append(d.Status.Decisions, placementv1beta1.ClusterDecision{ClusterName: name})
		}
		all = append(all, d)
	}
	return all
}

func countsOf(n map[string]int) func() map[string]int { return func() map[string]int { return n } }

func noScore(string, string) *scorev1alpha1.AddOnPlacementScore { return nil }

// choose fills in what the input lacks.
func choose(t *testing.T, in Input) Choice {
	t.Helper()
	if in.Now = now; in.Scores == nil {
		in.Scores = noScore
	}
	if in.Others == nil {
		in.Others = countsOf(nil)
	}
	programs, err := NewPrograms(in.Scores)
	if err != nil {
		t.Fatal(err)
	}
	in.Programs = programs
	return Choose(in)
}

// expressing is a predicate of expressions.
func expressing(expressions ...string) string {
	text, _ := json.Marshal(expressions)
	return "{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: " + string(text) + "}}}]}"
}

// more adds clusters like the first.
func more(n int) func(*Input) {
	return func(in *Input) {
		for i := range n {
			mc := in.Clusters[0].DeepCopy()
			mc.Name = fmt.Sprint("x", i)
			in.Clusters = append(in.Clusters, *mc)
		}
	}
}

func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("'", i, "'"))
	}
	return all
}

// The facts are those of Open Cluster Management's placement controller.
func TestPlacementChoosesClusters(t *testing.T) {
	const all = ": True AllDecisionsScheduled: All cluster decisions scheduled"
	taint := func(effect string, age time.Duration) clusterv1.Taint {
		return clusterv1.Taint{Key: "k", Value: "v", Effect: clusterv1.TaintEffect(effect),
			TimeAdded: metav1.NewTime(now.Add(-age))}
	}
	score := func(value int32, until time.Time) *scorev1alpha1.AddOnPlacementScore {
		return &scorev1alpha1.AddOnPlacementScore{Status: scorev1alpha1.AddOnPlacementScoreStatus{
			Scores:     []scorev1alpha1.AddOnPlacementScoreItem{{Name: "gpu", Value: value}},
			ValidUntil: &metav1.Time{Time: until}}}
	}
	for _, c := range []struct {
		name, spec string
		change     func(*Input)
		want       string
	}{
		{"all clusters of all sets", `{}`, nil, "c1 c2 c3 c4 t1" + all},
		{"a set", `{clusterSets: [test]}`, nil, "t1" + all},
		{"no binding", `{}`, func(in *Input) { in.Sets = nil },
			": False NoManagedClusterSetBindings: No valid ManagedClusterSetBindings found in placement namespace"},
		{"no set in common", `{clusterSets: [a, b]}`, nil,
			": False NoIntersection: None of ManagedClusterSets [a,b] is bound to placement namespace"},
		{"empty sets", `{}`, func(in *Input) { in.Sets = sets("y", "x") },
			": False AllManagedClusterSetsEmpty: All ManagedClusterSets [x,y] have no member ManagedCluster"},
		{"a cluster that is being deleted", `{clusterSets: [test]}`,
			func(in *Input) { in.Clusters[4].DeletionTimestamp = &metav1.Time{Time: now} },
			": False AllManagedClusterSetsEmpty: All ManagedClusterSets [test] have no member ManagedCluster"},
		{"a number", `{numberOfClusters: 2}`, nil, "c1 c2" + all},
		{"none", `{numberOfClusters: 0}`, nil, ": False NoManagedClusterMatched: No ManagedCluster matches any of the cluster predicate"},
		{"more than there are", `{numberOfClusters: 7}`, nil,
			"c1 c2 c3 c4 t1: False NotAllDecisionsScheduled: 2 cluster decisions unscheduled"},

		{"labels", `{predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {env: b}}}}]}`, nil, "c3 c4" + all},
		{"claims", `{predicates: [{requiredClusterSelector: {claimSelector: {matchExpressions: [
			{key: region, operator: In, values: [eu]}]}}}]}`, nil, "c1 c4" + all},
		{"one of two predicates", `{predicates: [
			{requiredClusterSelector: {labelSelector: {matchLabels: {env: b}}, claimSelector: {matchExpressions: [
				{key: region, operator: Exists}]}}},
			{requiredClusterSelector: {claimSelector: {matchExpressions: [{key: region, operator: In, values: [us]}]}}}]}`,
			nil, "c2 c4" + all},
		{"no match", `{predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {env: z}}}}]}`, nil,
			": False NoManagedClusterMatched: No ManagedCluster matches any of the cluster predicate"},
		{"expressions", `{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
			"managedCluster.metadata.labels['env'] == 'a'", "managedCluster.status.clusterClaims.exists(c, c.value == 'us')"]}}}]}`,
			nil, "c2" + all},
		{"an expression about a missing field", `{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
			"managedCluster.metadata.annotations['x'] == 'a'"]}}}]}`,
			nil, ": False NoManagedClusterMatched: No ManagedCluster matches any of the cluster predicate"},
		{"scores in an expression", `{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
			"managedCluster.scores('usage').filter(s, s.name == 'gpu').all(s, s.value > 3)"]}}}]}`, func(in *Input) {
			in.Scores = func(cluster, name string) *scorev1alpha1.AddOnPlacementScore {
				return map[string]*scorev1alpha1.AddOnPlacementScore{"c1/usage": score(3, now), "c2/usage": score(4,
					now)}[cluster+"/"+name]
			}
		}, "c2" + all},
		{"JSON in an expression", `{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
			"'{\"a\": [1]}'.parseJSON().a[0] == 1"]}}}], numberOfClusters: 1}`, nil, "c1" + all},
		{"an invalid selector", `{predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [
			{key: env, operator: Near}]}}}]}`, nil,
			`: False NoManagedClusterMatched: No ManagedCluster matches any of the cluster predicate | Predicate:"Near" is not a valid label selector operator`},
		{"an invalid expression", `{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["1 +"]}}}]}`, nil,
			"| Predicate:compilation failed: ERROR: <input>:1:4: Syntax error"},
		{"an expression that is no condition", `{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["1"]}}}]}`,
			nil, `| Predicate:compilation failed: "1" returns a int, not a bool`},

		{"a taint", `{}`, func(in *Input) { in.Clusters[0].Spec.Taints = []clusterv1.Taint{taint("NoSelect", 0)} },
			"c2 c3 c4 t1" + all},
		{"a preference", `{}`, func(in *Input) { in.Clusters[0].Spec.Taints = []clusterv1.Taint{taint("PreferNoSelect", 0)} },
			"c1 c2 c3 c4 t1" + all},
		{"a taint for new clusters", `{}`, func(in *Input) {
			for i := range 2 {
				in.Clusters[i].Spec.Taints = []clusterv1.Taint{taint("NoSelectIfNew", 0)}
			}
			in.Current = decided("c2")
		}, "c2 c3 c4 t1" + all},
		{"a tolerated taint", `{tolerations: [{key: k, value: v, operator: Equal}]}`,
			func(in *Input) { in.Clusters[0].Spec.Taints = []clusterv1.Taint{taint("NoSelect", 0)} }, "c1 c2 c3 c4 t1" + all},
		{"tolerated by all keys", `{tolerations: [{operator: Exists, effect: NoSelect}]}`,
			func(in *Input) { in.Clusters[0].Spec.Taints = []clusterv1.Taint{taint("NoSelect", 0)} }, "c1 c2 c3 c4 t1" + all},
		{"another value, effect, key", `{tolerations: [{key: k, value: w}, {key: k, operator: Exists, effect: NoSelectIfNew},
			{key: l, operator: Exists}]}`,
			func(in *Input) { in.Clusters[0].Spec.Taints = []clusterv1.Taint{taint("NoSelect", 0)} }, "c2 c3 c4 t1" + all},
		{"a toleration that has ended", `{tolerations: [{key: k, operator: Exists, tolerationSeconds: 10}]}`,
			func(in *Input) {
				in.Clusters[0].Spec.Taints = []clusterv1.Taint{taint("NoSelect", 10*time.Second)}
				in.Clusters[1].Spec.Taints = []clusterv1.Taint{taint("NoSelect", 9*time.Second)}
			}, "c2 c3 c4 t1" + all},
		{"an empty key", `{tolerations: [{operator: Equal}]}`, nil,
			"| TaintToleration:If the key is empty, operator must be Exists."},
		{"a value of Exists", `{tolerations: [{key: k, operator: Exists, value: v}]}`, nil,
			"| TaintToleration:If the operator is Exists, the value should be empty."},

		{"a cluster with decisions of others", `{numberOfClusters: 3}`,
			func(in *Input) { in.Others = countsOf(map[string]int{"c1": 1, "c2": 2, "z": 4}) }, "c3 c4 t1" + all},
		{"a chosen cluster stays", `{numberOfClusters: 1}`, func(in *Input) { in.Current = decided("c4") }, "c4" + all},
		{"the balance outweighs", `{numberOfClusters: 1}`, func(in *Input) {
			in.Current, in.Others = decided("c4"), countsOf(map[string]int{"c4": 3})
		}, "c1" + all},
		{"the most CPU", `{numberOfClusters: 2, clusterSets: [prod], prioritizerPolicy: {mode: Exact, configurations: [
			{scoreCoordinate: {type: BuiltIn, builtIn: ResourceAllocatableCPU}, weight: 2}]}}`, nil, "c2 c3" + all},
		{"the least CPU", `{numberOfClusters: 2, clusterSets: [prod], prioritizerPolicy: {mode: Exact, configurations: [
			{scoreCoordinate: {builtIn: ResourceAllocatableCPU}, weight: -1}]}}`, nil, "c1 c4" + all},
		{"a weight of 0", `{numberOfClusters: 1, prioritizerPolicy: {configurations: [
			{scoreCoordinate: {builtIn: Steady}, weight: 0}]}}`,
			func(in *Input) { in.Current = decided("c4") }, "c1" + all},
		{"scores of an add-on", `{numberOfClusters: 3, prioritizerPolicy: {mode: Exact, configurations: [
			{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: gpu}}, weight: 1}]}}`, func(in *Input) {
			in.Scores = func(cluster, name string) *scorev1alpha1.AddOnPlacementScore {
				return map[string]*scorev1alpha1.AddOnPlacementScore{"c2/usage": score(7, now.Add(time.Hour)),
					"c3/usage": score(90, now.Add(-time.Second)), "c1/usage": score(-7, now.Add(time.Hour))}[cluster+"/"+name]
			}
		}, "c2 c3 c4" + all},
		{"an unknown score", `{prioritizerPolicy: {configurations: [{scoreCoordinate: {builtIn: Spread}, weight: 1}]}}`, nil,
			"| :incorrect builtin prioritizer: Spread"},
		{"an unknown mode", `{prioritizerPolicy: {mode: Some}}`, nil, "| :incorrect prioritizer policy mode: Some"},
		{"no score", `{prioritizerPolicy: {configurations: [{scoreCoordinate: null, weight: 1}]}}`, nil,
			"| :scoreCoordinate field is required"},
		{"no add-on", `{prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn}, weight: 1}]}}`, nil,
			"| :addOn should not be empty"},

		{"a mistake keeps the clusters", `{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["1"]}}}]}`,
			func(in *Input) { in.Current = decided("c2 t1 gone") },
			`c2 t1: False NotAllDecisionsScheduled: Predicate:compilation failed: "1" returns a int, not a bool: the clusters that were chosen ` +
				`before stay | Predicate:compilation failed: "1" returns a int, not a bool`},
		{"a mistake keeps no cluster without a binding",
			`{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["1"]}}}]}`, func(in *Input) {
				in.Current, in.Sets = decided("c2 t1"), sets("prod")
			}, `c2: False NotAllDecisionsScheduled: …`},
		{"an unreadable set keeps the clusters", `{}`, func(in *Input) {
			in.Current = decided("c2")
			in.Sets = sets("prod")
			in.Sets[0].Spec.ClusterSelector.SelectorType = "Other"
		}, `c2: False NotAllDecisionsScheduled: …`},
		{"expensive expressions", expressing("[1,2,3,4,5,6,7,8,9,0].all(a, [1,2,3,4,5,6,7,8,9,0].all(b, [1,2,3,4,5,6,7,8,9,0].all(c, " +
			"[1,2,3,4,5,6,7,8,9,0].all(d, a+b+c+d > -1))))"), more(100),
			"| Predicate:the choice costs more than 2050000:"},
		{"JSON of one cluster is expensive", expressing("managedCluster.metadata.annotations['x'].parseJSON().size() > 3",
			"true"),
			func(in *Input) {
				for _, i := range []int{1, 2} {
					in.Clusters[i].Annotations = map[string]string{"x": "[" + strings.Repeat("{},", 80_000) + "{}]"}
				}
				in.Clusters[3].Annotations = map[string]string{"x": "[1, 2, 3, 4]"}
				in.Current = decided("c3")
			}, "c3 c4" + all},
		{"JSON costs", expressing("managedCluster.metadata.annotations['x'].parseJSON().size() > 3"), func(in *Input) {
			in.Clusters[0].Annotations = map[string]string{"x": "[" + strings.Repeat("{},", 80_000) + "{}]"}
			more(100)(in)
		}, "| Predicate:the choice costs more than 2050000:"},
		{"many predicates", "{predicates: [" + strings.Repeat(
			"{requiredClusterSelector: {labelSelector: {matchLabels: {no: no}}}}, ", 30_000) + "]}",
			nil, "| Predicate:the choice costs more than 1050000:"},
		{"many values", "{predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: env, operator: NotIn, values: [" +
			strings.Join(numbers(20_000), ",") + "]}]}}}]}", more(100),
			"| Predicate:the choice costs more than 2050000:"},
		{"many groups", "{decisionStrategy: {groupStrategy: {decisionGroups: [" +
			strings.Repeat("{groupName: aa, groupClusterSelector: {labelSelector: {matchLabels: {no: no}}}}, ", 30_000) + "]}}}",
			nil, "the choice costs more than 1050000:"},
		{"many tolerations", "{tolerations: [" + strings.Repeat("{key: a, operator: Exists}, ", 2_000) + "]}",
			func(in *Input) {
				for range 1_000 {
					in.Clusters[0].Spec.Taints = append(in.Clusters[0].Spec.Taints, taint("NoSelect", 0))
				}
			}, "| TaintToleration:the choice costs more than 1050000:"},
		{"many scores", `{prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage,
			scoreName: NAME}}, weight: 1}]}}`, func(in *Input) {
			in.Scores = func(string, string) *scorev1alpha1.AddOnPlacementScore {
				return &scorev1alpha1.AddOnPlacementScore{Status: scorev1alpha1.AddOnPlacementScoreStatus{
					Scores: make([]scorev1alpha1.AddOnPlacementScoreItem, 300_000)}}
			}
		}, "| :the choice costs more than 1050000:"},
		{"a list that doubles", expressing("[[1]]" + strings.Repeat(".map(a, a+a)", 30) + ".size() == 1"), nil,
			"| Predicate:compilation failed: the expression can make a list or a map with more than 1000 elements: simplify it"},
		{"a list that nests", expressing("[0]" + strings.Repeat(".map(a, [a, a])", 30) + ".all(a, a == a)"), nil,
			"| Predicate:compilation failed: the expression can make a list or a map with more than 1000 elements: simplify it"},
		{"a map that nests", expressing("[0]" + strings.Repeat(".map(a, {1: a, 2: a})", 30) + ".all(a, a == a)"), nil,
			"| Predicate:compilation failed: the expression can make a list or a map with more than 1000 elements: simplify it"},
		{"a text of nested lists", expressing("'%s'.format([[[]]" + strings.Repeat(".map(a, [a, a])", 30) + "]) == ''"), nil,
			"| Predicate:compilation failed: the expression can make a list or a map with more than 1000 elements: simplify it"},
		{"lists of some length", expressing("managedCluster.metadata.name in ['c1', 'c2'] + ['c3'] && [1, 2].filter(a, a > 1)" +
			".map(a, [a]).filter(a, a.size() == 1 && a[0] > 0).size() == 1"), nil, "c1 c2 c3" + all},
		{"a long text is read often", expressing("[1,2,3,4,5,6,7,8,9,0].all(a, [1,2,3,4,5,6,7,8,9,0].all(b, '" +
			strings.Repeat("x", 50_000) + "'.reverse() != ''))"), func(in *Input) { in.Current = decided("c3") }, "c3" + all},
		{"a toleration for ever", `{tolerations: [{key: k, operator: Exists, tolerationSeconds: 9223372036854775807}]}`,
			func(in *Input) { in.Clusters[0].Spec.Taints = []clusterv1.Taint{taint("NoSelect", 0)} }, "c1 c2 c3 c4 t1" + all},
		{"a value that is no condition in a cluster", expressing("managedCluster.metadata.labels['env']"),
			func(in *Input) { in.Current = decided("c3") }, "c3" + all},
		{"many expressions", expressing(slices.Repeat([]string{"true"}, 101)...), nil,
			"| Predicate:the predicates have 101 expressions with 404 bytes: use at most 100 with 65536"},
		{"long expressions", expressing(strings.Repeat(" ", 65_536) + "true"), nil,
			"| Predicate:the predicates have 1 expressions with 65540 bytes: use at most 100 with 65536"},
		{"a mistake of a selector without clusters", expressing("1 +"), func(in *Input) { in.Sets = sets("x") },
			": False AllManagedClusterSetsEmpty: All ManagedClusterSets [x] have no member ManagedCluster"},
		{"scores of another cluster", expressing(`'{"metadata": {"name": "c1"}}'.parseJSON().scores('usage').size() == 1`),
			func(in *Input) {
				in.Scores = func(string, string) *scorev1alpha1.AddOnPlacementScore { return score(3, now) }
			}, ": False NoManagedClusterMatched: No ManagedCluster matches any of the cluster predicate"},
		{"an operator that does not exist", `{tolerations: [{key: k, value: v, operator: Near}]}`,
			func(in *Input) { in.Clusters[0].Spec.Taints = []clusterv1.Taint{taint("NoSelect", 0)} }, "c2 c3 c4 t1" + all},
		{"a negative weight of Steady", `{numberOfClusters: 1, prioritizerPolicy: {configurations: [
			{scoreCoordinate: {builtIn: Steady}, weight: -1}]}}`, func(in *Input) { in.Current = decided("c1") },
			"| :the weight of Steady is negative, so each choice would replace the clusters: set 0 or more"},
		{"a mistake while a cluster is in two objects", expressing("1 +"),
			func(in *Input) { in.Current = decided("c2 c1/c3 c1") },
			"c1 c2 / c3: False NotAllDecisionsScheduled: …"},
		{"string functions of later versions and mixed lists", `{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
			"managedCluster.metadata.name.reverse() == '1c'", "[1, 'a'].size() == 2"]}}}]}`, nil, "c1" + all},
		{"a long name", `{} `, func(in *Input) { in.Placement.Name = strings.Repeat("a", 64) },
			": False NoManagedClusterMatched: No ManagedCluster matches any of the cluster predicate | :the name is longer than 63 " +
				"characters, the limit of a label value: create the Placement under a shorter name"},
		{"a mistake in a group keeps the groups", `{decisionStrategy: {groupStrategy: {decisionGroups: [
			{groupName: a, groupClusterSelector: {labelSelector: {matchExpressions: [{key: a, operator: Near}]}}}]}}}`,
			func(in *Input) { in.Current, in.Sets = decided("c2 c1/c3/t1"), sets("prod") },
			`c1 c2 / c3: False NotAllDecisionsScheduled: :the selector of group "a": "Near" is not a valid label selector operator` +
				`: the clusters that were chosen before stay | :the selector of group "a": "Near" is not a valid label selector operator`},
		{"two weights of a score of an add-on add up", `{numberOfClusters: 1, clusterSets: [prod], prioritizerPolicy: {mode: Exact,
			configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: gpu}}, weight: -2},
			{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: gpu}}, weight: 3}]}}`, func(in *Input) {
			in.Scores = func(cluster, name string) *scorev1alpha1.AddOnPlacementScore {
				return map[string]*scorev1alpha1.AddOnPlacementScore{"c2": score(7, now.Add(time.Hour))}[cluster]
			}
		}, "c2" + all},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := read[placementv1beta1.Placement](t, "{metadata: {name: p, namespace: n}, spec: "+c.spec+"}")
			in := Input{Placement: &p, Sets: sets("prod", "test"), Clusters: fleet(t)}
			if c.change != nil {
				c.change(&in)
			}
			got, begin, ok := show(choose(t, in)), "", false
			if begin, ok = strings.CutSuffix(c.want, "…"); ok {
				ok = strings.HasPrefix(got, begin)
			} else if ok = got == c.want; !ok && !strings.Contains(c.want, " False ") && !strings.Contains(c.want, all) {
				ok = strings.Contains(got, c.want) // a message only
			}
			if !ok {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestScoresAreThoseOfOpenClusterManagement(t *testing.T) {
	clusters := fleet(t)
	in := Input{Placement: &placementv1beta1.Placement{}, Sets: sets("prod"), Clusters: clusters,
		Current: decided("c2"), Others: countsOf(map[string]int{"c1": 1, "c2": 3, "z": 4})}
	in.Placement.Spec.PrioritizerPolicy.Configurations = []placementv1beta1.PrioritizerConfig{
		{ScoreCoordinate: &placementv1beta1.ScoreCoordinate{BuiltIn: placementv1beta1.ResourceAllocatableCPU}, Weight: 1}}
	// Balance 50 -50 100 100, Steady 0 100 0 0, CPU of 4 8 16 6: -100 -33 100 -66.
	if got, want := choose(t, in).Sums, map[string]int64{"c3": 200, "c4": 34, "c2": 17, "c1": -50}; !maps.Equal(got,
		want) {
		t.Errorf("%v, want %v", got, want)
	}
	delete(clusters[2].Status.Capacity, "cpu")
	if got := allocatable("cpu", []*clusterv1.ManagedCluster{&clusters[0], &clusters[2]}); len(got) != 1 ||
		got["c1"] != 100 {
		t.Errorf("without a capacity: %v", got)
	}
}

func TestTolerationEndsAtItsTime(t *testing.T) {
	clusters := fleet(t)
	clusters[0].Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: clusterv1.NoSelect,
		TimeAdded: metav1.NewTime(now.Add(-time.Second))}}
	clusters[1].Spec.Taints = []clusterv1.Taint{{Key: "l", Effect: clusterv1.NoSelect, TimeAdded: metav1.NewTime(now)}}
	p := read[placementv1beta1.Placement](t, `{spec: {tolerations: [{key: k, operator: Exists, tolerationSeconds: 9},
		{key: k, operator: Exists, tolerationSeconds: 7}, {key: l, operator: Exists, tolerationSeconds: 20}]}}`)
	c := choose(t, Input{Placement: &p, Sets: sets("prod"), Clusters: clusters})
	if c.After != 8*time.Second || c.count() != 4 {
		t.Errorf("%s, again after %v", show(c), c.After)
	}
}

func TestExpiredScoresAreNamed(t *testing.T) {
	p := read[placementv1beta1.Placement](t, `{spec: {prioritizerPolicy: {configurations: [
		{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: gpu}}, weight: 1}]}}}`)
	c := choose(t, Input{Placement: &p, Sets: sets("prod"), Clusters: fleet(t),
		Scores: func(cluster, _ string) *scorev1alpha1.AddOnPlacementScore {
			ends := map[string]time.Duration{"c1": -1, "c2": -1, "c3": time.Hour, "c4": time.Minute}[cluster]
			return &scorev1alpha1.AddOnPlacementScore{Status: scorev1alpha1.AddOnPlacementScoreStatus{
				ValidUntil: &metav1.Time{Time: now.Add(ends)}}}
		}})
	if want := []string{"c1/usage", "c2/usage"}; !slices.Equal(c.Expired, want) {
		t.Errorf("%v, want %v", c.Expired, want)
	}
	if want := time.Minute + 1; c.After != want {
		t.Errorf("the next one expires after %v, want %v", c.After, want)
	}
}

func TestChosenClustersAreGrouped(t *testing.T) {
	for _, c := range []struct{ name, strategy, want string }{
		{"one group", `{}`, "0[] c1,c2,c3,c4,t1 p-decision-1"},
		{"by number", `{clustersPerDecisionGroup: 2}`,
			"0[] c1,c2 p-decision-1; 1[] c3,c4 p-decision-2; 2[] t1 p-decision-3"},
		{"by share", `{clustersPerDecisionGroup: 50%}`, "0[] c1,c2,c3 p-decision-1; 1[] c4,t1 p-decision-2"},
		{"more than there are", `{clustersPerDecisionGroup: 9}`, "0[] c1,c2,c3,c4,t1 p-decision-1"},
		{"named", `{decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {env: b}}}},
			{groupName: eu, groupClusterSelector: {claimSelector: {matchExpressions: [{key: region, operator: In, values: [eu]}]}}},
			{groupName: none, groupClusterSelector: {labelSelector: {matchLabels: {env: z}}}}]}`,
			"0[canary] c3,c4 p-decision-1; 1[eu] c1 p-decision-2; 2[] c2,t1 p-decision-3"},
		{"named and long", `{clustersPerDecisionGroup: 1, decisionGroups: [
			{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {env: b}}}}]}`,
			"0[canary] c3 p-decision-1; 1[canary] c4 p-decision-2; 2[] c1 p-decision-3; 3[] c2 p-decision-4; 4[] t1 p-decision-5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := read[placementv1beta1.Placement](t, "{metadata: {name: p, namespace: n, uid: u}, spec: {decisionStrategy: {groupStrategy: "+
				c.strategy+"}}}")
			choice := choose(t, Input{Placement: &p, Sets: sets("prod", "test"), Clusters: fleet(t)})
			made := decisions(&p, choice.Groups)
			var got []string
			for i, g := range choice.Status(made).DecisionGroups {
				if int(g.DecisionGroupIndex) != i || int(g.ClustersCount) != len(choice.Groups[i].Clusters) {
					t.Errorf("group %d is %+v", i, g)
				}
				got = append(got, fmt.Sprintf("%d[%s] %s %s", i, g.DecisionGroupName, strings.Join(choice.Groups[i].Clusters, ","),
					strings.Join(g.Decisions, ",")))
			}
			if out := strings.Join(got, "; "); out != c.want {
				t.Errorf("%s\nwant %s", out, c.want)
			}
		})
	}
	if _, err := groupLength(read[placementv1beta1.GroupStrategy](t,
		`{clustersPerDecisionGroup: "x"}`).ClustersPerDecisionGroup, 3); err == nil {
		t.Error("a share without % is accepted")
	}
}

func decisions(p *placementv1beta1.Placement, groups []Group) []placementv1beta1.PlacementDecision {
	return Decisions(types.NamespacedName{Namespace: p.Namespace, Name: p.Name},
		*metav1.NewControllerRef(p, placementv1beta1.GroupVersion.WithKind("Placement")), groups)
}

func TestDecisionsHaveAtMostAHundredClusters(t *testing.T) {
	p := read[placementv1beta1.Placement](t, `{metadata: {name: p, namespace: n, uid: u}}`)
	for n, want := range map[int]string{0: "0", 100: "100", 101: "100 1", 250: "100 100 50"} {
		g := Group{Name: "g"}
		for i := range n {
			g.Clusters = append(g.Clusters, fmt.Sprintf("c%03d", i))
		}
		var got []string
		for i, d := range decisions(&p, []Group{g}) {
			got = append(got, fmt.Sprint(len(d.Status.Decisions)))
			if d.Name != fmt.Sprintf("p-decision-%d", i+1) || d.Status.Decisions == nil || !metav1.IsControlledBy(&d, &p) ||
				d.Labels["cluster.open-cluster-management.io/placement"] != "p" ||
				d.Labels["cluster.open-cluster-management.io/decision-group-index"] != "0" ||
				d.Labels["cluster.open-cluster-management.io/decision-group-name"] != "g" {
				t.Errorf("%+v", d)
			}
		}
		if out := strings.Join(got, " "); out != want {
			t.Errorf("%d clusters: %s, want %s", n, out, want)
		}
	}
}
