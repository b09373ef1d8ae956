package replicaset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/source/ocm/rollout"
)

var now = time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)

func template(data string) (spec ocmv1.ManifestWorkSpec) {
	spec.Workload.Manifests = []ocmv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"is":"` + data + `"}`)}}}
	return spec
}

type Placement = rollout.Placement

// chosen is a Placement with the clusters of PlacementDecisions, each "INDEX: CLUSTER CLUSTER". n is the number in its
// status.
func chosen(name string, n int32, decisions ...string) Placement {
	p := Placement{Placement: &placementv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		UID: "its"}}}
	p.Status.NumberOfSelectedClusters = n
	owner := types.UID("its")
	switch name {
	case "again": // there was one of its name
		owner = "former"
	case "manual":
		p.Annotations, owner = map[string]string{placementv1beta1.SchedulingDisabledAnnotation: "true"}, ""
	case "going":
		p.DeletionTimestamp = &metav1.Time{Time: now}
	case "policy":
		owner = "of a policy"
	}
	defer func() {
		if name == "half" { // it was created again, and has written one of its PlacementDecisions
			p.Status = placementv1beta1.PlacementStatus{}
		}
	}()
	for i, text := range decisions {
		index, clusters, _ := strings.Cut(text, ":")
		d := placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-decision-%d", name, i+1),
			Labels: map[string]string{placementv1beta1.DecisionGroupIndexLabel: index}}}
		if owner != "" {
			d.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: new(true)}}
		}
		for _, cluster := range strings.Fields(clusters) {
			d.Status.Decisions = append(d.Status.Decisions, placementv1beta1.ClusterDecision{ClusterName: cluster})
		}
		p.Decisions = append(p.Decisions, d)
		p.Status.DecisionGroups = append(p.Status.DecisionGroups, placementv1beta1.DecisionGroupStatus{})
	}
	return p
}

// work is a ManifestWork, "CLUSTER/PLACEMENT/DATA TYPE=STATUS@GENERATION …"; its generation is 2.
func work(text string) ocmv1.ManifestWork {
	parts := strings.Fields(text)
	of := strings.Split(parts[0], "/")
	mw := ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: of[0], Name: "web", Generation: 2,
		Labels: map[string]string{
			"team": "a", workv1alpha1.ReplicaSetLabel: "shop.web", workv1alpha1.PlacementLabel: of[1]}}, Spec: template(of[2])}
	for _, text := range parts[1:] {
		switch text {
		case "going":
			mw.DeletionTimestamp = &metav1.Time{Time: now}
			continue
		case "rendered":
			mw.Annotations = map[string]string{wellknown.WorkAnnotation: "w"}
			continue
		case "unlabelled":
			delete(mw.Labels, "team")
			continue
		}
		kind, status, _ := strings.Cut(text, "=")
		status, old, _ := strings.Cut(status, "@")
		c := metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), ObservedGeneration: 2,
			LastTransitionTime: metav1.NewTime(now)}
		if old != "" {
			c.ObservedGeneration = 1
		}
		mw.Status.Conditions = append(mw.Status.Conditions, c)
	}
	return mw
}

// Facts: ocm-hub.md section 9.
func TestReplicaSetDecides(t *testing.T) {
	const applied = " Applied=True Available=True"
	for story, tc := range map[string]struct {
		refs       []string
		placements []Placement
		works      []string
		failed     error
		// writes are "CLUSTER/PLACEMENT", with a + for a new one; deletions as well.
		writes, deletions string
		// conditions are "STATUS REASON" of PlacementVerified, PlacementRolledOut and ManifestworkApplied.
		conditions, summary string
		messages            []string
		// silentOn is a text in no message.
		silentOn string
	}{
		"new": {refs: []string{"p"}, placements: []Placement{chosen("p", 2, "0: b a")}, writes: "+a/p +b/p",
			conditions: "False PlacementDecisionEmpty, False Progressing, False PlacementDecisionEmpty",
			summary:    "p 1 (0 / 2 clusters applied): 0 0 0 0 0"},
		"silent": {refs: []string{"p"}, placements: []Placement{chosen("p", 1, "0: a")}, works: []string{"a/p/1" + applied},
			conditions: "True AsExpected, False Progressing, True AsExpected",
			summary:    "p 1 (1 / 1 clusters applied): 1 1 1 0 0",
			messages:   []string{"0 of 1 clusters succeeded; 1 do not report the condition Progressing: without a condition rule"}},
		"complete": {refs: []string{"p"}, placements: []Placement{chosen("p", 1, "0: a")},
			works:      []string{"a/p/1" + applied + " Progressing=False"},
			conditions: "True AsExpected, True Complete, True AsExpected", summary: "p 1 (1 / 1 clusters applied): 1 1 1 0 0"},
		"progressing": {refs: []string{"p"}, placements: []Placement{chosen("p", 1, "0: a")},
			works:      []string{"a/p/1" + applied + " Progressing=True"},
			conditions: "True AsExpected, False Progressing, False Processing",
			summary:    "p 1 (1 / 1 clusters applied): 1 1 1 1 0"},
		"degraded": {refs: []string{"p"}, placements: []Placement{chosen("p", 1, "0: a")},
			works:      []string{"a/p/1" + applied + " Progressing=True Degraded=True"},
			conditions: "True AsExpected, False Progressing, False NotAsExpected",
			summary:    "p 1 (1 / 1 clusters applied): 1 1 1 1 1"},
		"conditions of a former generation": {refs: []string{"p"}, placements: []Placement{chosen("p", 1, "0: a")},
			works:      []string{"a/p/1 Applied=True@old Available=True@old Progressing=False@old"},
			conditions: "True AsExpected, False Progressing, False NotAsExpected",
			summary:    "p 1 (1 / 1 clusters applied): 1 0 0 0 0",
			messages:   []string{"1 ManifestWorks are not available, such as a/web"}},
		"not available": {refs: []string{"p"}, placements: []Placement{chosen("p", 2, "0: a b")},
			works:      []string{"a/p/1" + applied + " Progressing=False", "b/p/1 Applied=False Available=False Progressing=False"},
			conditions: "True AsExpected, False Progressing, False NotAsExpected",
			summary:    "p 1 (2 / 2 clusters applied): 2 1 1 0 0",
			messages:   []string{"1 of 2 clusters succeeded", "1 ManifestWorks are not available, such as b/web"}},
		"another template": {refs: []string{"p"}, placements: []Placement{chosen("p", 2, "0: a b")},
			works: []string{"a/p/0" + applied, "b/p/1" + applied}, writes: "a/p",
			conditions: "True AsExpected, False Progressing, False NotAsExpected",
			summary:    "p 1 (1 / 2 clusters applied): 1 1 1 0 0", failed: errors.New("no"), messages: []string{"no"}},
		"a cluster that left": {refs: []string{"p"}, placements: []Placement{chosen("p", 1, "0: a")},
			works: []string{"a/p/1", "b/p/1", "c/p/0", "d/p/1 going"}, deletions: "b/p c/p",
			conditions: "True AsExpected, False Progressing, False NotAsExpected",
			summary:    "p 1 (1 / 1 clusters applied): 1 0 0 0 0"},
		"a missing decision": {refs: []string{"p"}, placements: []Placement{chosen("p", 2, "0: a")},
			works:      []string{"a/p/1", "b/p/1"},
			conditions: "True AsExpected, False Progressing, False NotAsExpected",
			summary:    "p 1 (1 / 2 clusters applied): 1 0 0 0 0"},
		"no decision": {refs: []string{"p"}, placements: []Placement{chosen("p", 1)}, works: []string{"a/p/1"},
			conditions: "False PlacementDecisionEmpty, False Progressing, False PlacementDecisionEmpty",
			summary:    "p 0 (0 / 1 clusters applied): 0 0 0 0 0"},
		"no cluster": {refs: []string{"p"}, placements: []Placement{chosen("p", 0, "0:")}, works: []string{"a/p/1"},
			deletions:  "a/p",
			conditions: "False PlacementDecisionEmpty, True Complete, False PlacementDecisionEmpty",
			summary:    "p 1 (0 / 0 clusters applied): 0 0 0 0 0"},
		"a cluster in two decisions for a moment": {refs: []string{"p"}, placements: []Placement{chosen("p", 2, "0: a b",
			"1: b")},
			works: []string{"a/p/1"}, writes: "+b/p",
			conditions: "True AsExpected, False Progressing, False NotAsExpected",
			summary:    "p 2 (1 / 2 clusters applied): 1 0 0 0 0"},
		"a cluster of two Placements": {refs: []string{"p", "q"}, placements: []Placement{chosen("p", 1, "0: a"), chosen("q",
			1, "0: a")},
			works: []string{"a/p/0"}, writes: "a/p +a/q",
			conditions: "False PlacementDecisionEmpty, False Progressing, False PlacementDecisionEmpty",
			summary:    "p 1 (0 / 1 clusters applied): 0 0 0 0 0; q 1 (0 / 1 clusters applied): 0 0 0 0 0"},
		"a Placement that is not referred to any more": {refs: []string{"q"}, placements: []Placement{chosen("q", 1, "0: a")},
			works: []string{"a/p/1", "a/q/1"}, deletions: "a/p",
			conditions: "True AsExpected, False Progressing, False NotAsExpected",
			summary:    "q 1 (1 / 1 clusters applied): 1 0 0 0 0"},
		"a Placement that is gone": {refs: []string{"p", "q"}, placements: []Placement{chosen("q", 1, "0: a")},
			works: []string{"a/p/1", "a/q/0"}, writes: "a/q",
			conditions: "False PlacementDecisionNotFound, False Progressing, False NotAsExpected",
			summary:    "q 1 (0 / 1 clusters applied): 0 0 0 0 0", messages: []string{
				"there is no Placement shop/p: create it, or remove it from spec.placementRefs"}},
		"it waits until the former one is gone": {refs: []string{"p"}, placements: []Placement{chosen("p", 1, "0: a")},
			works:      []string{"a/p/1 going"},
			conditions: "False PlacementDecisionEmpty, False Progressing, False PlacementDecisionEmpty",
			summary:    "p 1 (0 / 1 clusters applied): 0 0 0 0 0"},
		"a Placement that is new": {refs: []string{"p"}, placements: []Placement{chosen("p", 0)}, works: []string{"a/p/1"},
			conditions: "False PlacementDecisionEmpty, False Progressing, False PlacementDecisionEmpty",
			summary:    "p 0 (0 / 0 clusters applied): 0 0 0 0 0",
			messages:   []string{"no ManifestWork has the current template; 0 clusters are chosen"}},
		"a Placement that is created again": {refs: []string{"again"}, placements: []Placement{chosen("again", 0, "0: b")},
			works:      []string{"a/again/1"},
			conditions: "False PlacementDecisionEmpty, False Progressing, False PlacementDecisionEmpty",
			summary:    "again 1 (0 / 0 clusters applied): 0 0 0 0 0"},
		"a Placement that is being deleted": {refs: []string{"going"}, placements: []Placement{chosen("going", 0, "0:")},
			works:      []string{"a/going/1"},
			conditions: "False PlacementDecisionNotFound, False Progressing, False NotAsExpected"},
		"a Placement that is created again, in part": {refs: []string{"half"},
			placements: []Placement{chosen("half", 0, "0: b")}, works: []string{"a/half/1", "b/half/1"},
			conditions: "True AsExpected, False Progressing, False NotAsExpected",
			summary:    "half 0 (1 / 0 clusters applied): 1 0 0 0 0"},
		"the list of a policy": {refs: []string{"policy"}, placements: []Placement{chosen("policy", 0, "0: b")},
			works:      []string{"a/policy/1"},
			conditions: "False PlacementDecisionEmpty, False Progressing, False PlacementDecisionEmpty",
			summary:    "policy 1 (0 / 0 clusters applied): 0 0 0 0 0"},
		"another scheduler": {refs: []string{"manual"}, placements: []Placement{chosen("manual", 0, "0: b")},
			works: []string{"a/manual/1"}, writes: "+b/manual", deletions: "a/manual",
			conditions: "False PlacementDecisionEmpty, True Complete, False PlacementDecisionEmpty",
			summary:    "manual 1 (0 / 0 clusters applied): 0 0 0 0 0"},
		"another scheduler, nothing decided": {refs: []string{"manual"}, placements: []Placement{chosen("manual", 0)},
			works:      []string{"a/manual/1"},
			conditions: "False PlacementDecisionEmpty, False Progressing, False PlacementDecisionEmpty",
			summary:    "manual 0 (0 / 0 clusters applied): 0 0 0 0 0"},
		"another scheduler, a decision is missing": {refs: []string{"manual"}, placements: []Placement{chosen("manual", 2,
			"0: b")},
			works:      []string{"a/manual/1", "b/manual/1"},
			conditions: "True AsExpected, False Progressing, False NotAsExpected",
			summary:    "manual 1 (1 / 2 clusters applied): 1 0 0 0 0"},
		"a cluster that is not accepted": {refs: []string{"p"}, placements: []Placement{chosen("p", 2, "0: pending a")},
			works:      []string{"a/p/1" + applied + " Progressing=False"},
			conditions: "True AsExpected, False Progressing, True AsExpected",
			summary:    "p 1 (1 / 2 clusters applied): 1 1 1 0 0",
			messages:   []string{"1 of 2 clusters succeeded; 1 clusters are not accepted"}},
		"a cluster that is denied keeps what it has": {refs: []string{"p"}, placements: []Placement{chosen("p", 2,
			"0: pending a")},
			works:      []string{"a/p/1" + applied, "pending/p/0"},
			conditions: "True AsExpected, False Progressing, True AsExpected",
			summary:    "p 1 (1 / 2 clusters applied): 1 1 1 0 0"},
		"labels on a ManifestWork of the hub": {refs: []string{"p"}, placements: []Placement{chosen("p", 1, "0: a")},
			works: []string{"a/p/0 rendered", "b/p/1 rendered", "a/gone/1 rendered"}, writes: "+a/p",
			conditions: "False PlacementDecisionEmpty, False Progressing, False PlacementDecisionEmpty",
			summary:    "p 1 (0 / 1 clusters applied): 0 0 0 0 0"},
		"only a label": {refs: []string{"p"}, placements: []Placement{chosen("p", 1, "0: a")},
			works: []string{"a/p/1" + applied + " Progressing=False unlabelled"}, writes: "a/p",
			conditions: "True AsExpected, True Complete, True AsExpected", summary: "p 1 (1 / 1 clusters applied): 1 1 1 0 0"},
		"an apply that failed": {refs: []string{"p"}, placements: []Placement{chosen("p", 1, "0: a")},
			works:      []string{"a/p/1 Applied=False"},
			conditions: "True AsExpected, False Progressing, False NotAsExpected",
			summary:    "p 1 (1 / 1 clusters applied): 1 0 0 0 0",
			messages:   []string{"0 of 1 clusters succeeded"}, silentOn: "Progressing: without"},
		"an invalid strategy": {refs: []string{"invalid"}, placements: []Placement{chosen("invalid", 1, "0: a")},
			works:      []string{"a/invalid/0", "b/invalid/1"},
			conditions: "False NotAsExpected, False Progressing, False NotAsExpected",
			summary:    "invalid 1 (0 / 1 clusters applied): 0 0 0 0 0", messages: []string{
				`the rolloutStrategy of Placement invalid: type: unknown type "Some"`}},
	} {
		t.Run(story, func(t *testing.T) {
			set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
				Labels: map[string]string{"team": "a"}}}
			set.Spec.ManifestWorkTemplate = template("1")
			in := Input{Set: set, Placements: map[string]Placement{}, Now: now,
				Accepted: func(cluster string) bool { return cluster != "pending" }}
			for _, name := range tc.refs {
				ref := workv1alpha1.LocalPlacementReference{Name: name}
				if name == "invalid" {
					ref.RolloutStrategy = scorev1alpha1.RolloutStrategy{Type: "Some"}
				}
				set.Spec.PlacementRefs = append(set.Spec.PlacementRefs, ref)
			}
			for _, p := range tc.placements {
				in.Placements[p.Name] = p
			}
			for _, text := range tc.works {
				in.Works = append(in.Works, work(text))
			}
			d := Decide(in)
			place := func(mw *ocmv1.ManifestWork) string {
				return mw.Namespace + "/" + mw.Labels[workv1alpha1.PlacementLabel]
			}
			var writes, deletions []string
			for _, w := range d.Writes {
				text := place(w.Want)
				if w.Was == nil {
					text = "+" + text
				}
				writes = append(writes, text)
			}
			for _, mw := range d.Deletions {
				deletions = append(deletions, place(mw))
			}
			if got := strings.Join(writes, " "); got != tc.writes {
				t.Errorf("writes %q, want %q", got, tc.writes)
			}
			if got := strings.Join(deletions, " "); got != tc.deletions {
				t.Errorf("deletes %q, want %q", got, tc.deletions)
			}
			status := d.Status(in, tc.failed)
			var conditions, messages, summary []string
			for _, c := range status.Conditions {
				conditions = append(conditions, string(c.Status)+" "+c.Reason)
				messages = append(messages, c.Message)
			}
			for _, of := range status.PlacementsSummary {
				n := of.Summary
				summary = append(summary, fmt.Sprintf("%s %s: %d %d %d %d %d", of.Name, of.AvailableDecisionGroups, n.Total,
					n.Applied, n.Available, n.Progressing, n.Degraded))
			}
			if got := strings.Join(conditions, ", "); got != tc.conditions {
				t.Errorf("the conditions are %s, want %s", got, tc.conditions)
			}
			if got := strings.Join(summary, "; "); got != tc.summary {
				t.Errorf("the summary is %s, want %s", got, tc.summary)
			}
			if text := strings.Join(messages, "\n"); tc.silentOn != "" && strings.Contains(text, tc.silentOn) {
				t.Errorf("the messages are %q", text)
			}
			for _, want := range tc.messages {
				if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, want) }) {
					t.Errorf("the messages are %q, want %q", messages, want)
				}
			}
		})
	}
}

func TestNamesOfReplicaSetsAreLabels(t *testing.T) {
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
		Name: strings.Repeat("a", 59)}}
	in := Input{Set: set, Now: now}
	d := Decide(in)
	c := d.Status(in, nil).Conditions
	if len(c) != 1 || c[0].Type != workv1alpha1.ManifestworkApplied || c[0].Reason != workv1alpha1.ReasonInvalidName ||
		!strings.Contains(c[0].Message, "recreate the ManifestWorkReplicaSet with a shorter namespace and/or name so the "+
			"combined length is at most 63 characters") {
		t.Errorf("the conditions are %+v", c)
	}
	set.Labels = map[string]string{workv1alpha1.PlacementLabel: "of another", workv1alpha1.ReplicaSetLabel: "of another"}
	if got := in.labels("p", "shop.web"); got[workv1alpha1.PlacementLabel] != "p" ||
		got[workv1alpha1.ReplicaSetLabel] != "shop.web" {
		t.Errorf("the labels of a set with labels of the hub are %v", got)
	}
	set.Name = "a.b"
	value, err := OwnerLabel(set)
	if err != nil {
		t.Fatal(err)
	}
	namespace, name, owned := Owner(&ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		workv1alpha1.ReplicaSetLabel: value}}})
	if namespace != "shop" || name != "a.b" || !owned {
		t.Errorf("the owner of %s is %s/%s", value, namespace, name)
	}
}

// Without acceptance, the right to put a cluster into a set is needed for its ManifestWorks.
func TestReceives(t *testing.T) {
	for name, tc := range map[string]struct {
		accepted bool
		set      string
		was      metav1.ConditionStatus
		want     bool
	}{
		"accepted":                            {accepted: true, set: clusterv1.DefaultSet, want: true},
		"accepted again, not yet seen":        {accepted: true, set: "eu", was: metav1.ConditionFalse, want: true},
		"registered with a token":             {set: clusterv1.DefaultSet},
		"registered, without a label":         {},
		"put into a set":                      {set: "eu", want: true},
		"put into a set, then denied":         {set: "eu", was: metav1.ConditionFalse},
		"put into a set, its denial not seen": {set: "eu", was: metav1.ConditionTrue},
	} {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			clusterv1.ClusterSetLabel: tc.set}}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: tc.accepted}}
		if tc.was != "" {
			mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.HubAccepted, Status: tc.was}}
		}
		if got := Receives(mc); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
