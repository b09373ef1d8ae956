package klusterlet

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
)

// labelled returns a ManagedCluster with labels.
func labelled(labels map[string]string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", Labels: labels}}
}

// set returns a set with a selector, and with namespaces.
func set(name string, kind setv1beta2.SelectorType, selector *metav1.LabelSelector,
	namespaces ...string) setv1beta2.ManagedClusterSet {
	s := setv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: setv1beta2.ManagedClusterSetSpec{
		ClusterSelector: setv1beta2.ManagedClusterSelector{SelectorType: kind, LabelSelector: selector}}}
	for _, namespace := range namespaces {
		s.Spec.ManagedNamespaces = append(s.Spec.ManagedNamespaces, setv1beta2.ManagedNamespace{Name: namespace})
	}
	return s
}

// invalid is a selector that no API server accepts in another place.
var invalid = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Has"}}}

func TestSetsSelectClusters(t *testing.T) {
	const byLabel, bySelector = setv1beta2.ExclusiveClusterSetLabel, setv1beta2.LabelSelector
	in := map[string]string{clusterv1.ClusterSetLabel: "prod", "region": "eu"}
	region := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"region": value}}
	}
	for story, tc := range map[string]struct {
		set    setv1beta2.ManagedClusterSet
		labels map[string]string
		want   bool
		failed string
	}{
		"the name in the label":           {set("prod", byLabel, nil), in, true, ""},
		"another name in the label":       {set("test", byLabel, nil), in, false, ""},
		"no label":                        {set("prod", byLabel, nil), nil, false, ""},
		"the default type":                {set("prod", "", nil), in, true, ""},
		"a selector that does not count":  {set("prod", byLabel, region("us")), in, true, ""},
		"a selector that selects":         {set("test", bySelector, region("eu")), in, true, ""},
		"a selector that does not select": {set("prod", bySelector, region("us")), in, false, ""},
		"no selector selects nothing":     {set("prod", bySelector, nil), in, false, ""},
		"an empty one selects all":        {set("test", bySelector, &metav1.LabelSelector{}), nil, true, ""},
		"an invalid selector":             {set("test", bySelector, invalid), in, false, `ManagedClusterSet "test"`},
		"an unknown type":                 {set("test", "Region", nil), in, false, `unknown selector type "Region"`},
	} {
		got, err := Selects(&tc.set, labelled(tc.labels))
		if got != tc.want || (err == nil) != (tc.failed == "") || err != nil && !strings.Contains(err.Error(), tc.failed) {
			t.Errorf("%s: %t, %v, want %t, %q", story, got, err, tc.want, tc.failed)
		}
	}
}

func TestConditionsOfSetsAndTheirBindings(t *testing.T) {
	for n, want := range map[int]string{
		0: "ClusterSetEmpty True NoClusterMatched: No ManagedCluster selected",
		1: "ClusterSetEmpty False ClustersSelected: 1 ManagedClusters selected", // as Open Cluster Management writes it
		7: "ClusterSetEmpty False ClustersSelected: 7 ManagedClusters selected",
	} {
		if got := line(SetCondition(n, now)); got != want {
			t.Errorf("%d clusters: %s, want %s", n, got, want)
		}
	}
	for exists, want := range map[bool]string{
		true:  "Bound True ClusterSetBound: ",
		false: "Bound False ClusterSetNotFound: the ManagedClusterSet does not exist: create it",
	} {
		if got := line(Bound(exists, now)); !strings.HasPrefix(got, want) {
			t.Errorf("exists %t: %s, want %s", exists, got, want)
		}
	}
}

func line(c metav1.Condition) string {
	return fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
}

func TestKeptSetsSelectTheirClusters(t *testing.T) {
	sets := KeptSets()
	for i, want := range map[int]struct {
		name    string
		without bool
	}{0: {"default", false}, 1: {"global", true}} {
		with, err := Selects(&sets[i], labelled(map[string]string{clusterv1.ClusterSetLabel: "default"}))
		without, err2 := Selects(&sets[i], labelled(nil))
		if sets[i].Name != want.name || !with || without != want.without || err != nil || err2 != nil {
			t.Errorf("%s: with the label %t, without it %t, %v, %v", sets[i].Name, with, without, err, err2)
		}
	}
}

func TestSetsRequireNamespaces(t *testing.T) {
	const byLabel, bySelector = setv1beta2.ExclusiveClusterSetLabel, setv1beta2.LabelSelector
	all := &metav1.LabelSelector{}
	reported := []metav1.Condition{{Type: "NamespaceAvailable", Status: metav1.ConditionTrue}}
	known := func(set, name string) clusterv1.ClusterSetManagedNamespace {
		return clusterv1.ClusterSetManagedNamespace{ClusterSet: set, Name: name, Conditions: reported}
	}
	leaving := set("c", bySelector, all, "x")
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	for story, tc := range map[string]struct {
		sets   []setv1beta2.ManagedClusterSet
		status []clusterv1.ClusterSetManagedNamespace
		want   string // "set/name", with * if the conditions are kept
	}{
		"no sets": {nil, nil, ""},
		"sorted by set, then name": {[]setv1beta2.ManagedClusterSet{set("b", bySelector, all, "y", "x"),
			set("a", byLabel, nil, "z")}, nil, "a/z b/x b/y"},
		"a set of other clusters": {[]setv1beta2.ManagedClusterSet{set("b", byLabel, nil, "x")}, nil, ""},
		"conditions are kept": {[]setv1beta2.ManagedClusterSet{set("a", byLabel, nil, "x", "y")},
			[]clusterv1.ClusterSetManagedNamespace{known("a", "y")}, "a/x a/y*"},
		"conditions of the same name in another set": {[]setv1beta2.ManagedClusterSet{set("a", byLabel, nil, "x"),
			set("b", bySelector, all, "x")}, []clusterv1.ClusterSetManagedNamespace{known("b", "x")}, "a/x b/x*"},
		"a namespace is no longer required": {[]setv1beta2.ManagedClusterSet{set("a", byLabel, nil, "x")},
			[]clusterv1.ClusterSetManagedNamespace{known("a", "x"), known("a", "y")}, "a/x*"},
		"the cluster left the set": {[]setv1beta2.ManagedClusterSet{set("b", byLabel, nil, "x")},
			[]clusterv1.ClusterSetManagedNamespace{known("b", "x")}, ""},
		"the set is gone":          {nil, []clusterv1.ClusterSetManagedNamespace{known("b", "x")}, ""},
		"the set is being deleted": {[]setv1beta2.ManagedClusterSet{leaving}, nil, ""},
		"a set that cannot be read": {[]setv1beta2.ManagedClusterSet{set("b", bySelector, invalid, "x", "y")},
			[]clusterv1.ClusterSetManagedNamespace{known("b", "x")}, "b/x*"},
	} {
		mc := labelled(map[string]string{clusterv1.ClusterSetLabel: "a"})
		mc.Status.ManagedNamespaces = tc.status
		var got []string
		for _, n := range ManagedNamespaces(mc, tc.sets) {
			text := n.ClusterSet + "/" + n.Name
			if equality.Semantic.DeepEqual(n.Conditions, reported) {
				text += "*"
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %q, want %q", story, got, tc.want)
		}
	}
}
