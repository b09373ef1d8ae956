package fleet

import (
	"strings"
	"testing"

	"github.com/argosy-io/argosy/api/wellknown"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// staged returns a CloneSet at rest that is rolled out in these stages, with these replicas.
func staged(t *testing.T, stages string, replicas ...int64) *hub {
	t.Helper()
	h := newHub(t, plainCloneSet, replicas...)
	h.edit("Stages", "metadata", "annotations", wellknown.RolloutOrderAnnotation)
	h.edit(stages, "metadata", "annotations", wellknown.RolloutStagesAnnotation)
	h.look()
	h.allNew()
	h.look()
	return h
}

// allNew has every member report that all of its pods are new and available.
func (h *hub) allNew() {
	h.t.Helper()
	reports := make([]string, len(h.in.Members))
	for i, m := range h.in.Members {
		reports[i] = up(m.Replicas, m.Replicas)
	}
	h.report(reports...)
}

// annotate sets an annotation of the template, which does not change its generation.
func (h *hub) annotate(key, value string) {
	h.t.Helper()
	generation := h.in.Template.GetGeneration()
	h.edit(value, "metadata", "annotations", key)
	h.in.Template.SetGeneration(generation)
}

// revision is that of the template.
func (h *hub) revision() string {
	h.t.Helper()
	return RevisionOf(h.in.Template)
}

const threePauses = `[{"percent": 10, "pause": true}, {"percent": 30, "pause": true}, {"percent": 60, "pause": true}, {"percent": 100}]`

func TestApprovedStagesApplyToOneRevision(t *testing.T) {
	for name, approval := range map[string]func(h *hub) string{
		"a number":                  func(*hub) string { return "3" },
		"a number and its revision": func(h *hub) string { return Approval{3, h.revision()}.String() },
	} {
		t.Run(name, func(t *testing.T) {
			h := staged(t, threePauses, 5, 5)
			h.edit(int64(2), "spec", "template", "a")
			h.look()
			h.report(up(5, 1), up(5, 0))
			h.expect("without an approval", partitions+"4 5")

			h.annotate(wellknown.RolloutStageAnnotation, approval(h))
			h.expect("approved up to the third stage", partitions+"3 4")
			h.report(up(5, 2), up(5, 1))
			h.expect("the third stage", partitions+"2 2")
			h.report(up(5, 3), up(5, 3))
			h.expect("the last stage", partitions+"0 0")
			h.allNew()
			h.look()

			h.edit(int64(3), "spec", "template", "a")
			h.look()
			h.report(up(5, 1), up(5, 0))
			h.expect("the next revision waits after the first stage", partitions+"4 5")
			h.edit(int64(2), "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
			h.look()
			h.report(up(5, 1), up(5, 0))
			h.expect("and after another change of the template", partitions+"4 5")

			h.annotate(wellknown.RolloutStageAnnotation, Approval{1, h.revision()}.String())
			h.expect("its own approval", partitions+"3 4")
		})
	}
}

func TestApprovalOfAStageIsCheckedAsWritten(t *testing.T) {
	h := staged(t, threePauses, 5, 5)
	for value, want := range map[string]string{
		"-1":                              "neither the number of a stage",
		"two":                             "neither the number of a stage",
		`{"stage": 2}`:                    `"revision" is missing`,
		`{"stage": 2, "revsion": "a"}`:    "neither the number of a stage",
		`{"stage": -2, "revision": "a"}`:  "neither the number of a stage",
		`{"stage": "2", "revision": "a"}`: "neither the number of a stage",
	} {
		h.annotate(wellknown.RolloutStageAnnotation, value)
		if _, err := Shares(h.in); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), wellknown.RolloutStageAnnotation) {
			t.Errorf("%s gives %v, want %q", value, err, want)
		}
	}
}

func TestApprovalWithoutRevisionIsForgottenWithTheAnnotation(t *testing.T) {
	h := staged(t, threePauses, 5, 5)
	h.annotate(wellknown.RolloutStageAnnotation, "1")
	h.edit(int64(2), "spec", "template", "a")
	h.look()
	if h.in.Approved == "" {
		t.Fatal("the hub does not record the revision that the number counts for")
	}
	nowhere := h.in
	nowhere.Members = nil
	if result, err := Shares(nowhere); err != nil || result.Approved != h.in.Approved {
		t.Errorf("while the workload is in no cluster, the record becomes %q (%v)", result.Approved, err)
	}
	annotations := h.in.Template.GetAnnotations()
	delete(annotations, wellknown.RolloutStageAnnotation)
	h.in.Template = h.in.Template.DeepCopy()
	h.in.Template.SetAnnotations(annotations)
	h.look()
	if h.in.Approved != "" {
		t.Errorf("the record %s stays without the annotation", h.in.Approved)
	}
	h.annotate(wellknown.RolloutStageAnnotation, "1")
	h.report(up(5, 1), up(5, 0))
	h.expect("the same number, written again", partitions+"3 4")
}

func TestStageDoesNotWaitForIgnoredLostCluster(t *testing.T) {
	for policy, want := range map[string]string{"Ignore": "0 3 0", "CountAsDown": "3 3 3"} {
		t.Run(policy, func(t *testing.T) {
			h := staged(t, `[{"clusters": ["c2"]}, {"clusters": ["c1"]}, {"percent": 100}]`, 3, 3, 3)
			h.annotate(wellknown.UnreachableClustersAnnotation, policy)
			h.in.Members[1].Reachable = false
			h.edit(int64(2), "spec", "template", "a")
			h.look()
			if policy == "Ignore" {
				h.expect("the stage of the lost cluster is skipped", partitions+"0 3 3")
				h.report(up(3, 3), silent, up(3, 0))
			}
			h.expect("then", partitions+want)

			h.in.Members[1].Reachable = true
			h.report(silent, up(3, 0), silent)
			h.look()
			h.look()
			if got := h.fieldValues("spec", "updateStrategy", "rollingUpdate", "partition"); !strings.Contains(got, " 0 ") {
				t.Errorf("when the cluster is back, the partitions are %s: it does not get the new pods", got)
			}
		})
	}
}

func TestPausesApplyIfLostClusterIsIgnored(t *testing.T) {
	h := staged(t, `[{"clusters": ["c2"], "pause": true}, {"percent": 100}]`, 3, 3)
	h.annotate(wellknown.UnreachableClustersAnnotation, "Ignore")
	h.in.Members[1].Reachable = false
	h.edit(int64(2), "spec", "template", "a")
	h.expect("the stage waits for its approval", partitions+"3 3")
	h.annotate(wellknown.RolloutStageAnnotation, "1")
	h.expect("approved", partitions+"0 3")
}

func TestStageSkipsClusterWithoutTheWorkload(t *testing.T) {
	h := staged(t, `[{"clusters": ["c9", "c2"]}, {"clusters": ["c8"], "pause": true}, {"percent": 100}]`, 3, 3)
	h.expectConditions("of both", "stage 1 skips cluster c9, stage 2 skips cluster c8, because the workload does not run there")
	h.edit(int64(2), "spec", "template", "a")
	h.expect("the first stage", partitions+"3 0")
	h.in.Members[0].Replicas = 5
	h.edit(int64(8), "spec", "replicas")
	h.expect("scaling goes on", "spec.replicas=5 3", partitions+"5 0")
	h.report(up(5, 0), up(3, 3))
	h.expect("a stage without clusters still pauses", partitions+"5 0")
	h.annotate(wellknown.RolloutStageAnnotation, "2")
	h.expect("the last stage", partitions+"0 0")
	h.annotate(wellknown.RolloutStagesAnnotation, `[{"clusters": ["c1"]}, {"percent": 100}]`)
	h.look()
	h.expectConditions("when all stages name clusters of the workload", "")
}

func TestStagesApplyInSingleCluster(t *testing.T) {
	for kind, template := range map[string]string{
		"CloneSet":    plainCloneSet,
		"StatefulSet": strings.Replace(plainCloneSet, "kind: CloneSet", "kind: StatefulSet", 1),
	} {
		t.Run(kind, func(t *testing.T) {
			h := newHub(t, template, 10)
			h.edit("Parallel", "spec", "podManagementPolicy")
			h.edit("Stages", "metadata", "annotations", wellknown.RolloutOrderAnnotation)
			h.edit(`[{"percent": 10, "pause": true}, {"percent": 100}]`, "metadata", "annotations",
				wellknown.RolloutStagesAnnotation)
			h.look()
			h.allNew()
			h.look()
			h.edit(int64(2), "spec", "template", "a")
			h.expect("the first stage", partitions+"9")
			h.report(up(10, 1))
			h.expect("it pauses", partitions+"9")
			h.annotate(wellknown.RolloutStageAnnotation, Approval{1, h.revision()}.String())
			h.expect("approved", partitions+"0")
		})
	}
	h := newHub(t, plainCloneSet, 10)
	h.edit("50%", "spec", "updateStrategy", "rollingUpdate", "partition")
	h.expect("without stages the member gets the partition of the template", partitions+"50%")
}

func TestRollbackWithoutStagesGoesBackAtOnce(t *testing.T) {
	h := staged(t, threePauses, 5, 5)
	h.edit(int64(2), "spec", "template", "a")
	h.look()
	h.report(up(5, 1), up(5, 0))
	h.expect("the canary", partitions+"4 5")
	h.edit(int64(1), "spec", "template", "a")
	h.look()
	h.report(up(5, 4), up(5, 5))
	h.expect("the stages of the rollback pause", partitions+"1 0")
	h.in.Template = h.in.Template.DeepCopy()
	unstructured.RemoveNestedField(h.in.Template.Object, "metadata", "annotations", wellknown.RolloutOrderAnnotation)
	h.expect("without stages", partitions+"0 0")
}

func TestStagesIgnoredIsReported(t *testing.T) {
	const onDelete = "updateStrategy: {type: OnDelete}, "
	for name, c := range map[string]struct {
		template string
		divided  bool
		ignored  bool
	}{
		"unknown kind":               {"apiVersion: example.io/v1, kind: App, spec: {template: {a: 1}}", true, true},
		"SidecarSet of each cluster": {"apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, spec: {}", false, true},
		"Job":                        {"apiVersion: batch/v1, kind: Job, spec: {template: {a: 1}}", false, true},
		"divided CloneSet, OnDelete": {"apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {" + onDelete +
			"template: {a: 1}}", true, true},
		"divided CloneSet": {"apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {template: {a: 1}}", true, false},
		"Deployment":       {"apiVersion: apps/v1, kind: Deployment, spec: {template: {a: 1}}", false, false},
	} {
		h := newHub(t, "{metadata: {name: x, annotations: {}}, "+c.template+"}", 3, 3)
		h.in.Divided = c.divided
		h.look()
		h.expectConditions(name+" without stages", "")
		h.edit("Stages", "metadata", "annotations", wellknown.RolloutOrderAnnotation)
		h.edit(`[{"percent": 50}, {"percent": 100}]`, "metadata", "annotations", wellknown.RolloutStagesAnnotation)
		h.look()
		want := ""
		if c.ignored {
			want = "StagesIgnored: stages do not apply to this " + h.in.Template.GetKind()
		}
		h.expectConditions(name, want)
	}
}

// atStage compares the stage that the Works show.
func (h *hub) atStage(when, want string) {
	h.t.Helper()
	s, ok := StageOf(h.in)
	if got := s.String(); !ok || got != want {
		h.t.Errorf("%s, the stage is %q (%v), want %q", when, got, ok, want)
	}
	conditions := []metav1.Condition{s.Condition(7)}
	if back, ok := ReportedStage(conditions, 7); !ok || back != s {
		h.t.Errorf("%s, the condition %+v is read as %+v (%v)", when, conditions[0], back, ok)
	}
	if _, ok := ReportedStage(conditions, 8); ok {
		h.t.Errorf("%s, the condition of generation 7 counts for generation 8", when)
	}
}

func TestStageFollowsFromWorks(t *testing.T) {
	h := staged(t, `[{"percent": 10, "pause": true}, {"clusters": ["c2"]}, {"percent": 100}]`, 5, 5)
	h.atStage("at rest", "all 3 stages are complete")
	h.edit(int64(2), "spec", "template", "a")
	h.atStage("before the Works are written", "stage 1 of 3 is in progress")
	h.look()
	h.atStage("when it begins", "stage 1 of 3 is in progress")
	h.report(up(5, 1), up(5, 0))
	h.atStage("when the stage is reached", "stage 1 of 3 is complete and waits for an approval")
	h.look()
	h.atStage("as long as nobody approves", "stage 1 of 3 is complete and waits for an approval")
	h.annotate(wellknown.RolloutStageAnnotation, "1")
	h.look()
	h.atStage("approved", "stage 2 of 3 is in progress")
	h.report(up(5, 1), up(5, 5))
	h.look()
	h.atStage("the last stage", "stage 3 of 3 is in progress")
	h.in.Members[0].Reachable = false
	h.atStage("with a lost cluster", "stage 3 of 3 is in progress")
	h.in.Members[0].Reachable = true
	h.report(up(5, 5), up(5, 5))
	h.atStage("at the end", "all 3 stages are complete")

	h.annotate(wellknown.RolloutOrderAnnotation, "Proportional")
	if s, ok := StageOf(h.in); ok {
		t.Errorf("a rollout without stages is at %s", s)
	}
}
