package rollout

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

var read = coretest.Object

// rolloutAt returns a Rollout of a member at a step.
func rolloutAt(t *testing.T, approved, status string) *unstructured.Unstructured {
	u := read(t, "{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: r, namespace: n, resourceVersion: '7'}, status: "+status+"}")
	if approved != "" {
		u.SetAnnotations(map[string]string{wellknown.ApprovedStepsAnnotation: approved})
	}
	return u
}

const waiting = "{phase: Progressing, currentStepState: StepPaused, canaryStatus: {currentStepIndex: 1, currentStepState: StepPaused, canaryRevision: r2}}"

func TestApprovalIsForOneStepAndRevision(t *testing.T) {
	seen := map[string]Progress{}
	for cluster, status := range map[string]string{
		"eu": waiting,
		"us": "{phase: Progressing, canaryStatus: {currentStepIndex: 2, currentStepState: StepPaused, canaryRevision: other}}",
		"ap": "{phase: Progressing, canaryStatus: {currentStepIndex: 1, currentStepState: StepUpgrade, canaryRevision: r2}}",
	} {
		seen[cluster] = ProgressOf(rolloutAt(t, "", status).Object["status"].(map[string]any))
	}
	value, approved, err := Approve("", seen, nil)
	if err != nil || strings.Join(approved, ",") != "eu,us" {
		t.Fatalf("%v %v", approved, err)
	}
	for name, c := range map[string]struct {
		cluster, status string
		granted         string
	}{
		"the step that was seen": {"eu", waiting,
			`{"metadata":{"resourceVersion":"7"},"status":{"canaryStatus":{"currentStepState":"StepReady"},"currentStepState":"StepReady"}}`},
		"one that has gone on":        {"eu", strings.ReplaceAll(waiting, "StepPaused", "StepReady"), "null"},
		"a later step":                {"eu", strings.Replace(waiting, "Index: 1", "Index: 2", 1), "null"},
		"the next rollout":            {"eu", strings.Replace(waiting, "r2", "r3", 1), "null"},
		"a cluster that did not wait": {"ap", waiting, "null"},
		"one that it does not name":   {"new", waiting, "null"},
		"blue and green, older release": {"us",
			"{phase: Progressing, blueGreenStatus: {currentStepIndex: 2, currentStepState: StepPaused, updatedRevision: other}}",
			`{"metadata":{"resourceVersion":"7"},"status":{"blueGreenStatus":{"currentStepState":"StepReady"}}}`},
	} {
		raw, err := json.Marshal(Grant(c.cluster, rolloutAt(t, value, c.status)))
		if err != nil || string(raw) != c.granted {
			t.Errorf("%s: %s %v, want %s", name, raw, err, c.granted)
		}
	}
	if g := Grant("eu", rolloutAt(t, "{", waiting)); g != nil {
		t.Errorf("what cannot be read approves: %v", g)
	}
	if g := Grant("eu", rolloutAt(t, "", waiting)); g != nil {
		t.Errorf("nothing approves: %v", g)
	}

	// The next step, in one of them; what the other was granted stands, and what has left is forgotten.
	seen["eu"] = Progress{Step: 2, State: paused, Revision: "r2"}
	delete(seen, "ap")
	value, approved, err = Approve(strings.Replace(value, `{"eu"`, `{"gone":{"step":1,"revision":"x"},"eu"`, 1), seen,
		[]string{"eu"})
	if want := `{"eu":{"step":2,"revision":"r2"},"us":{"step":2,"revision":"other"}}`; err != nil || len(approved) != 1 ||
		value != want {
		t.Errorf("%s %v %v, want %s", value, approved, err, want)
	}
}

func TestApprovalNeedsAPausedStep(t *testing.T) {
	for want, c := range map[string]struct {
		clusters map[string]Progress
		wanted   []string
	}{
		"not waiting in any cluster": {map[string]Progress{"eu": {Step: 1, State: "StepUpgrade", Revision: "r"}}, nil},
		"is not waiting in cluster": {map[string]Progress{"eu": {Step: 1, State: paused, Revision: "r"}, "us": {}},
			[]string{"us"}},
		"does not report its revision": {map[string]Progress{"eu": {Step: 1, State: paused}}, nil},
		`not waiting in cluster "nobody"`: {map[string]Progress{"eu": {Step: 1, State: paused, Revision: "r"}},
			[]string{"nobody"}},
	} {
		if _, _, err := Approve("", c.clusters, c.wanted); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestEachKindPausesInItsOwnWay(t *testing.T) {
	for head, want := range map[string]string{
		"{apiVersion: rollouts.kruise.io/v1alpha1, kind: Rollout}":  "spec.strategy.paused",
		"{apiVersion: argoproj.io/v1alpha1, kind: Rollout}":         "spec.paused",
		"{apiVersion: apps/v1, kind: Deployment}":                   "spec.paused",
		"{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}":     "spec.updateStrategy.paused",
		"{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet}":      "spec.updateStrategy.rollingUpdate.paused",
		"{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet}":   "spec.updateStrategy.rollingUpdate.paused",
		"{apiVersion: apps/v1, kind: StatefulSet}":                  "",
		"{apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob}": "",
	} {
		if got := strings.Join(PausePath(read(t, head)), "."); got != want {
			t.Errorf("%s: %q, want %q", head, got, want)
		}
	}
}
