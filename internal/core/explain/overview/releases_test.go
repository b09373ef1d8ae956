package overview_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
)

func TestReleaseDetailHasEachClusterAndGate(t *testing.T) {
	started := &metav1.Time{}
	started.Time = started.AddDate(2026, 0, 0)
	percent := int64(10)
	r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
	r.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
		APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "web"}}, {Name: "api"}}
	check := &releasev1alpha1.ReleaseCheckReference{Name: "error-rate"}
	r.Status.Strategy = &releasev1alpha1.ReleaseStrategySpec{Stages: []releasev1alpha1.ReleaseStage{
		{Name: "canary", To: &releasev1alpha1.ReleaseAmount{Percent: &percent},
			After: []releasev1alpha1.ReleaseGate{{Name: "errors", Type: "Check", CheckRef: check}}},
		{Name: "rest", Before: []releasev1alpha1.ReleaseGate{{Name: "sign", Approval: &releasev1alpha1.ReleaseApprovalRule{
			Count: 2, From: []releasev1alpha1.ReleaseSubject{{Kind: "Group", Name: "leads"}}}}}},
	}}
	r.Status.Stages = []releasev1alpha1.ReleaseStageStatus{
		{Name: "canary", Phase: releasev1alpha1.StageUpdating, Attempt: 1, ClusterNames: []string{"eu", "us"},
			StartedAt: started, Clusters: []releasev1alpha1.ReleaseClusterStatus{{Name: "us", Workload: "web", Target: 2, New: 1,
				Phase: releasev1alpha1.ClusterUpdating}}, BegunTargets: []string{"web"}},
		{Name: "rest", Phase: releasev1alpha1.StagePending, SameClusters: true},
	}
	d := overview.DetailOfRelease(r)
	var got []string
	for _, s := range d.Stages {
		for _, c := range s.Clusters {
			got = append(got, fmt.Sprintf("%s %s %s %s %d/%d", s.Name, c.Name, c.Target, c.Phase, c.New, c.Want))
		}
		for _, g := range s.Gates {
			got = append(got, fmt.Sprintf("%s %s %s%d %v %q", s.Name, g.Name, g.CheckName, g.Need, g.From, g.Phase))
		}
	}
	want := []string{"canary eu web Reached 0/0", "canary eu api Pending 0/0", "canary us web Updating 1/2",
		"canary us api Pending 0/0", `canary errors error-rate0 [] ""`, "rest eu web Pending 0/0", "rest eu api Pending 0/0",
		"rest us web Pending 0/0", "rest us api Pending 0/0", `rest sign 2 [Group leads] ""`}
	if !slices.Equal(got, want) {
		t.Errorf("the detail is\n%q, want\n%q", got, want)
	}
	// StatefulSets of two groups may have the same name.
	if d.Workloads[0] != "StatefulSet web" || d.Refs[0] != "StatefulSet.apps.kruise.io web" {
		t.Errorf("the targets are %q and %q", d.Workloads, d.Refs)
	}
	if d.Stages[0].Share != "10%" || d.Phase != releasev1alpha1.ReleasePending || d.Severity != "" {
		t.Errorf("the detail is %+v", d)
	}
}
