package interpret_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

var parsed = coretest.Object

func TestExpiry(t *testing.T) {
	const job, pull, workflow = `apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob`,
		`apiVersion: apps.kruise.io/v1alpha1, kind: ImagePullJob`, `apiVersion: argoproj.io/v1alpha1, kind: Workflow`
	end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const never = time.Duration(-1)
	for _, c := range []struct {
		name, object string
		want         time.Duration // after its end
	}{
		{"a BroadcastJob", `{` + job + `, spec: {completionPolicy: {ttlSecondsAfterFinished: 30}}, status: {phase: completed, completionTime: "2026-01-01T00:00:00Z"}}`, 30 * time.Second},
		{"at once", `{` + pull + `, spec: {completionPolicy: {ttlSecondsAfterFinished: 0}}, status: {completionTime: "2026-01-01T00:00:00Z"}}`, 0},
		{"without a ttl", `{` + pull + `, spec: {}, status: {completionTime: "2026-01-01T00:00:00Z"}}`, never},
		{"before its end", `{` + job + `, spec: {completionPolicy: {ttlSecondsAfterFinished: 30}}, status: {phase: running}}`,
			never},
		{"without a time of its end", `{` + job +
			`, spec: {completionPolicy: {ttlSecondsAfterFinished: 30}}, status: {phase: failed}}`, never},
		{"a Workflow in any case", `{` + workflow +
			`, spec: {ttlStrategy: {secondsAfterCompletion: 5}}, status: {phase: Error, finishedAt: "2026-01-01T00:00:00Z"}}`,
			5 * time.Second},
		{"a Workflow that succeeded", `{` + workflow +
			`, spec: {ttlStrategy: {secondsAfterCompletion: 5, secondsAfterSuccess: 7}}, status: {phase: Succeeded, finishedAt: "2026-01-01T00:00:00Z"}}`, 7 * time.Second},
		{"a Workflow that failed", `{` + workflow +
			`, spec: {ttlStrategy: {secondsAfterFailure: 9, secondsAfterSuccess: 7}}, status: {phase: Failed, finishedAt: "2026-01-01T00:00:00Z"}}`, 9 * time.Second},
		{"a Workflow that failed, with a time for success alone", `{` + workflow +
			`, spec: {ttlStrategy: {secondsAfterSuccess: 7}}, status: {phase: Failed, finishedAt: "2026-01-01T00:00:00Z"}}`,
			never},
		{"an EphemeralJob has one by default",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob, status: {phase: Failed, completionTime: "2026-01-01T00:00:00Z"}}`, 30 * time.Minute},
		{"a Job is the API server's to clean up",
			`{apiVersion: batch/v1, kind: Job, spec: {ttlSecondsAfterFinished: 5}, status: {completionTime: "2026-01-01T00:00:00Z", conditions: [{type: Complete, status: "True"}]}}`, never},
		{"a Deployment never ends", `{apiVersion: apps/v1, kind: Deployment, spec: {ttlSecondsAfterFinished: 5}, status: {phase: completed, completionTime: "2026-01-01T00:00:00Z"}}`, never},
		{"a ttl of nonsense is none", `{` + job +
			`, spec: {completionPolicy: {ttlSecondsAfterFinished: soon}}, status: {phase: completed, completionTime: "2026-01-01T00:00:00Z"}}`, never},
	} {
		when, ok := interpret.Expiry(parsed(t, c.object))
		if ok != (c.want != never) || ok && !when.Equal(end.Add(c.want)) {
			t.Errorf("%s: %v, %v", c.name, when, ok)
		}
	}
}

func TestCleansUp(t *testing.T) {
	for _, c := range []struct {
		object string
		want   bool
	}{
		{`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {ttlStrategy: {secondsAfterCompletion: 5}}}`, true},
		{`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {}}`, false},
		{`{apiVersion: batch/v1, kind: Job, spec: {ttlSecondsAfterFinished: 0}}`, true},
		{`{apiVersion: batch/v1, kind: Job, spec: {}}`, false},
		{`{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob, spec: {}}`, true},
		{`{apiVersion: v1, kind: Pod, spec: {}}`, false},
	} {
		if got := interpret.CleansUp(parsed(t, c.object)); got != c.want {
			t.Errorf("%s: %v", c.object, got)
		}
	}
}

// A copy of a finished Workflow, as people make by saving and creating it again, runs.
func TestWorkflowIsSentWithoutRunMarksAndTTL(t *testing.T) {
	w := parsed(t, `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {labels: {app: x, workflows.argoproj.io/completed: "true", workflows.argoproj.io/phase: Succeeded, workflows.argoproj.io/creator: me, workflows.argoproj.io/completed-by: me}},
		spec: {entrypoint: main, ttlStrategy: {secondsAfterCompletion: 5}, podGC: {strategy: OnPodSuccess}}, status: {phase: Succeeded}}`)
	interpret.Prune(w)
	want := parsed(t, `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {labels: {app: x, workflows.argoproj.io/creator: me, workflows.argoproj.io/completed-by: me}}, spec: {entrypoint: main, podGC: {strategy: OnPodSuccess}}}`)
	if got, expected := marshalled(t, w), marshalled(t, want); got != expected {
		t.Errorf("got\n%swant\n%s", got, expected)
	}
}

func marshalled(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	raw, err := yaml.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
