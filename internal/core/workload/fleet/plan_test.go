package fleet

import (
	"strings"
	"testing"
)

// planned returns a CloneSet at rest, whose next template is rolled out by a plan with these stages.
func planned(t *testing.T, replicas []int64, stages ...PlanStage) *hub {
	t.Helper()
	h := newHub(t, plainCloneSet, replicas...)
	h.edit("100%", "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
	h.look()
	h.allNew()
	h.look()
	h.in.Plan = &Plan{Release: "web-1", Revision: "new", From: "old", Stages: stages}
	h.edit(int64(2), "spec", "template", "a")
	return h
}

// begin begins a stage of the plan.
func (h *hub) begin(stage int) {
	p := *h.in.Plan
	p.At = stage
	h.in.Plan = &p
}

// templates are those of the clusters, and partitions those of CloneSets.
const templates = "spec.template.a="

// part returns a stage of a tenth and more of all pods in clusters.
func part(of, all int64, clusters ...string) PlanStage {
	return PlanStage{Clusters: clusters, Part: [2]int64{of, all}}
}

func TestPlanSkipsClusterWithoutTheWorkload(t *testing.T) {
	h := planned(t, []int64{3, 3}, part(1, 1, "c9", "c2"), part(1, 1, "c1", "c8"))
	h.begin(1)
	h.expect("the first stage", templates+"1 2")
	h.expectConditions("of both", "StageClusterNotFound: release web-1 skips c8, c9, because the workload does not run there")
	h.in.Members[0].Replicas = 5
	h.edit(int64(8), "spec", "replicas")
	h.expect("scaling goes on", "spec.replicas=5 3", templates+"1 2")
	h.report(up(5, 5), up(3, 3))
	h.begin(2)
	h.expect("the second stage", templates+"2 2", partitions+"0 0")
	p := *h.in.Plan
	p.Done, h.in.Plan = true, &p
	h.look()
	h.expectConditions("when the release has ended", "")
}

func TestPlanAppliesInSingleCluster(t *testing.T) {
	h := planned(t, []int64{10}, part(1, 10, "c1"), part(1, 1, "c1"))
	h.expect("before the first stage", templates+"1")
	h.begin(1)
	h.expect("the first stage", templates+"2", partitions+"9")
	h.report(up(10, 1))
	h.expect("the stage has ended", partitions+"9")
	h.begin(2)
	h.expect("the second stage", partitions+"0")
}

func TestPlanRollsOutDuplicatedWorkload(t *testing.T) {
	h := planned(t, []int64{3, 3}, part(1, 1, "c1"), part(1, 1, "c1", "c2"))
	h.in.Divided = false
	expectPodsKept := func(when, want string) {
		t.Helper()
		for i := range h.in.Members {
			h.in.Members[i].Base = h.in.Template
			h.in.Members[i].Local = h.in.Template
		}
		result, err := Shares(h.in)
		if got := strings.Join(result.PodsKept, " "); err != nil || got != want {
			t.Errorf("%s, %q keep their pods (%v), want %q", when, got, err, want)
		}
	}
	expectPodsKept("before the first stage", "c1 c2")
	h.begin(1)
	expectPodsKept("in the first stage", "c2")
	h.begin(2)
	expectPodsKept("in the second stage", "")
}

func TestPlanWritesPercentagesWhereMembersScale(t *testing.T) {
	h := planned(t, []int64{10, 10}, part(1, 10, "c1", "c2"), part(1, 1, "c1", "c2"))
	h.in.Members[0].Scaled = true
	h.begin(1)
	h.expect("the first stage", partitions+"90% 9")
	if n := newPods(t, "90%", 9, 20); n != 2 {
		t.Errorf("%d of 20 pods are new, want 2", n)
	}
}

func TestPlanDoesNotWaitForSkippedLostCluster(t *testing.T) {
	for name, skip := range map[string]func(h *hub){
		"skipped by the release":    func(h *hub) { h.in.Plan.Skipped = []string{"c1"} },
		"ignored by the annotation": func(h *hub) { h.annotate("argosy.io/unreachable-clusters", "Ignore") },
	} {
		t.Run(name, func(t *testing.T) {
			stage := part(1, 1, "c1", "c2", "c3")
			stage.MaxClusters = 1
			h := planned(t, []int64{3, 3, 3}, stage)
			h.begin(1)
			h.in.Members[0].Reachable = false
			h.look()
			h.report(silent, up(3, 3), up(3, 3))
			if name == "skipped by the release" {
				h.expect("a cluster is lost", templates+"2 1 1")
			}
			skip(h)
			h.expect("the next cluster", templates+"2 2 1")
			h.report(silent, up(3, 3), up(3, 3))
			h.expect("the last cluster", templates+"2 2 2")
			h.report(silent, up(3, 3), up(3, 3))
			h.in.Members[0].Reachable = true
			h.report(up(3, 0), silent, silent)
			h.look()
			h.expect("when the cluster is back", partitions+"0 0 0")
		})
	}
}

func TestPlanNamesRevisionsOfAllClusters(t *testing.T) {
	stages := []PlanStage{part(1, 10, "c1", "c2"), part(1, 1, "c1"), part(1, 1, "c2", "c3")}
	for name, c := range map[string]struct {
		plan Plan
		// want are c1, c2, c3, a cluster in no stage, and c1 and a cluster in no stage without a Work.
		want string
	}{
		"before the first stage": {Plan{}, "old old old old old old"},
		"a part":                 {Plan{At: 1}, "new+old new+old old old new+old old"},
		"one cluster":            {Plan{At: 2}, "new new+old old old new old"},
		"all":                    {Plan{At: 3, Joining: "Include"}, "new new new new new new"},
		"all of before":          {Plan{At: 3, Joining: "Defer"}, "new new new old new old"},
		"nothing yet":            {Plan{At: 2, Joining: "Hold"}, "new new+old old old new -"},
	} {
		c.plan.Revision, c.plan.From, c.plan.Stages = "new", "old", stages
		var got []string
		for _, pods := range []PlannedPods{c.plan.PodsIn("c1", true), c.plan.PodsIn("c2", true),
			c.plan.PodsIn("c3", true), c.plan.PodsIn("c9", true), c.plan.PodsIn("c1", false), c.plan.PodsIn("c9", false)} {
			text := strings.NewReplacer("revision ", "", " and ", "+").Replace(pods.Revisions)
			if text == "" {
				text = "-"
			}
			got = append(got, text)
		}
		if all := strings.Join(got, " "); all != c.want {
			t.Errorf("%s: clusters run %q, want %q", name, all, c.want)
		}
	}
	unknown := &Plan{Release: "web-1", Revision: "new", Stages: stages, At: 2}
	if got := unknown.PodsIn("c3", false).Revisions; got != "" {
		t.Errorf("a cluster gets %q, and the former revision is not known", got)
	}
	if got := unknown.PodsIn("c3", true).Revisions; got != "the revision before release web-1" {
		t.Errorf("a cluster runs %q", got)
	}
}
