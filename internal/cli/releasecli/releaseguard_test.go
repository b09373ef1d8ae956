package releasecli

import (
	"strings"
	"testing"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/test/kit/clitest"
)

// frozenGuard is closed at the time of a releaseHub.
const frozenGuard = `
metadata: {name: fair}
spec:
  approvals: {count: 2}
  limits: {clusters: 1}
  windows: [{kind: Deny, from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z", reason: a fair}]
`

// frozen is the status of a release that waits for frozenGuard before its second stage.
const frozen = `
phase: Running
reason: Frozen
stage: two
guard: {name: fair, until: "2026-01-02T00:00:00Z"}
conditions:
- type: Progressing
  status: "False"
  reason: Frozen
  message: "ReleaseGuard fair is closed until 2026-01-02T00:00:00Z: a fair"
  lastTransitionTime: "2026-01-01T11:00:00Z"
stages:
- {name: one, phase: Done, attempt: 1, clusterNames: [eu, us], endedAt: "2026-01-01T11:30:00Z"}
- {name: two, phase: Gated, attempt: 2, sameClusters: true}
- {name: seven, phase: Pending, attempt: 0, sameClusters: true}
`

func guardedHub(t *testing.T) *releaseHub {
	guard := &releasev1alpha1.ReleaseGuard{}
	decode(t, frozenGuard, guard)
	return newReleaseHub(t, guard)
}

func TestReleasePlanShowsGuards(t *testing.T) {
	h := guardedHub(t)
	plan, err := h.reader().Plan(t.Context(), h.drafted(&draft{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := printPlan(h.shown, plan); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Before it starts: release-guard (2 approvals)\n" +
			"It would wait now: ReleaseGuard fair is closed until 2026-01-02T00:00:00Z: a fair\n",
		"Before it starts: sign, release-guard (2 approvals)\n",
	} {
		if !strings.Contains(h.shown.String(), want) {
			t.Errorf("the plan lacks %q:\n%s", want, h.shown)
		}
	}
	h = guardedHub(t)
	h.denied = "releaseguards"
	if plan, err = h.reader().Plan(t.Context(), h.drafted(&draft{})); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(plan.Notes, "\n"), "you may not list ReleaseGuards") {
		t.Errorf("the notes are %q", plan.Notes)
	}
}

func TestReleaseStatusNamesTheBlockingGuard(t *testing.T) {
	h := guardedHub(t)
	if err := printRelease(h.shown, clitest.Started(frozen), h.now()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Release shop/r1: Running (Frozen)",
		"It waits: ReleaseGuard fair is closed until 2026-01-02T00:00:00Z: a fair.",
		"Next: wait, or as an emergency `argosy release break-glass r1 -n shop --reason TEXT`"} {
		if !strings.Contains(h.shown.String(), want) {
			t.Errorf("the status lacks %q:\n%s", want, h.shown)
		}
	}
}

func TestReleaseBreakGlassStartsTheWaitingStage(t *testing.T) {
	h := guardedHub(t)
	h.create(clitest.Started(frozen))
	err := h.stage(t.Context(), "r1", releasev1alpha1.VerbBreakGlass, " ")
	if err == nil || !strings.Contains(err.Error(), "name the reason") {
		t.Errorf("without a reason: %v", err)
	}
	if err := h.stage(t.Context(), "r1", releasev1alpha1.VerbBreakGlass, "checkout is down"); err != nil {
		t.Fatal(err)
	}
	if want := "release r1: stage two (attempt 2) will be started in spite of ReleaseGuard fair\n"; h.shown.String() != want {
		t.Errorf("it prints %q, want %q", h.shown, want)
	}
	rel, err := h.get(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	if rel.Annotations[releasev1alpha1.BreakGlassAnnotation] != "two@2" ||
		rel.Annotations[releasev1alpha1.ReleaseReasonAnnotation] != "checkout is down" {
		t.Errorf("the annotations are %v", rel.Annotations)
	}

	h = guardedHub(t)
	h.create(clitest.Started(clitest.Gated))
	const want = "release r1 does not wait for a ReleaseGuard: it waits for approval"
	err = h.stage(t.Context(), "r1", releasev1alpha1.VerbBreakGlass, "checkout is down")
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("at a gate: %v, want %q", err, want)
	}
}
