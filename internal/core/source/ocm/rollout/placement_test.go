package rollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
)

// What follows from a Placement deletes only where all of its PlacementDecisions are known.
func TestClustersOfAPlacementAreWholeWhenAllIsWritten(t *testing.T) {
	for story, tc := range map[string]struct {
		n, groups int  // in the status
		disabled  bool // another scheduler writes the PlacementDecisions
		owners    []types.UID
		clusters  int
		whole     bool
	}{
		"nothing is decided":                   {},
		"one cluster for each decision":        {n: 2, groups: 1, owners: []types.UID{"its", "its"}, clusters: 2, whole: true},
		"a decision is missing":                {n: 2, groups: 1, owners: []types.UID{"its"}, clusters: 1},
		"created again, none is written":       {owners: []types.UID{"former", "former"}},
		"created again, one is written":        {owners: []types.UID{"its", "former"}, clusters: 1},
		"created again, the status is missing": {owners: []types.UID{"its", "its"}, clusters: 2},
		"another scheduler":                    {n: 1, disabled: true, owners: []types.UID{""}, clusters: 1, whole: true},
		"another scheduler, one is missing":    {n: 2, disabled: true, owners: []types.UID{""}, clusters: 1},
		"the list of a policy":                 {n: 0, groups: 1, owners: []types.UID{"a policy"}},
	} {
		p := Placement{Placement: &placementv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{UID: "its"}}}
		p.Status.NumberOfSelectedClusters = int32(tc.n)
		p.Status.DecisionGroups = make([]placementv1beta1.DecisionGroupStatus, tc.groups)
		if tc.disabled {
			p.Annotations = map[string]string{placementv1beta1.SchedulingDisabledAnnotation: "true"}
		}
		for i, owner := range tc.owners {
			d := placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}}
			if owner != "" {
				d.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: new(true)}}
			}
			d.Status.Decisions = []placementv1beta1.ClusterDecision{{ClusterName: string(rune('a' + i))}}
			p.Decisions = append(p.Decisions, d)
		}
		if clusters, whole := p.Clusters(); len(clusters) != tc.clusters || whole != tc.whole {
			t.Errorf("%s: %q, whole %t", story, clusters, whole)
		}
	}
}
