package builtin

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Each state in the life of kinds that run, bind or scale, as docs/kinds.md lists them.
func TestHealthInEachStateOfLife(t *testing.T) {
	const (
		H = interpret.Healthy
		P = interpret.Progressing
		S = interpret.Suspended
		D = interpret.Degraded
	)
	columns := map[interpret.Health]int{H: 1, S: 1, P: 2, D: 3} // of the table in docs/kinds.md
	page := kindsPage(t)
	for kind, cases := range map[string][]healthCase{
		"batch/v1, kind: Job": {
			{"not started", `{}`, ``, P},
			{"no pod is ready", `{}`, `{active: 2, ready: 0}`, P},
			{"running", `{}`, `{active: 2, ready: 1}`, H},
			{"running in an old cluster", `{}`, `{active: 2}`, H},
			{"between two attempts", `{}`, `{active: 0, failed: 1}`, P},
			{"running after a failed pod", `{}`, `{active: 1, ready: 1, failed: 1}`, H},
			{"suspended", `{suspend: true}`, `{conditions: [{type: Suspended, status: "True"}]}`, S},
			{"about to fail", `{}`, `{active: 1, ready: 1, conditions: [{type: FailureTarget, status: "True"}]}`, D},
			{"failed", `{}`, `{failed: 1, conditions: [{type: Failed, status: "True", reason: DeadlineExceeded}]}`, D},
			{"failed and suspended since", `{suspend: true}`, `{conditions: [{type: Failed, status: "True"}]}`, D},
			{"pods are done", `{}`, `{active: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}]}`, H},
			{"complete", `{}`, `{succeeded: 1, conditions: [{type: Complete, status: "True"}]}`, H},
		},
		"batch/v1, kind: CronJob": {
			{"never run", `{}`, ``, H},
			{"first run active", `{}`, `{active: [{name: a}], lastScheduleTime: "2026-01-01T00:00:00Z"}`, H},
			{"first run failed", `{}`, `{lastScheduleTime: "2026-01-01T00:00:00Z"}`, D},
			{"last run succeeded", `{}`, `{lastScheduleTime: "2026-01-01T00:00:00Z", lastSuccessfulTime: "2026-01-01T00:01:00Z"}`, H},
			{"last run failed", `{}`, `{lastScheduleTime: "2026-01-02T00:00:00Z", lastSuccessfulTime: "2026-01-01T00:01:00Z"}`,
				D},
			{"next run active after a failure", `{}`,
				`{active: [{name: a}], lastScheduleTime: "2026-01-03T00:00:00Z", lastSuccessfulTime: "2026-01-01T00:01:00Z"}`, H},
			{"suspended", `{suspend: true}`, `{lastScheduleTime: "2026-01-02T00:00:00Z"}`, S},
		},
		"v1, kind: PersistentVolume": {
			{"new", `{}`, ``, P},
			{"pending", `{}`, `{phase: Pending}`, P},
			{"available", `{}`, `{phase: Available}`, H},
			{"bound", `{}`, `{phase: Bound}`, H},
			{"released", `{}`, `{phase: Released}`, H},
			{"not reclaimed", `{}`, `{phase: Failed}`, D},
		},
		"v1, kind: PersistentVolumeClaim": {
			{"new", `{}`, ``, P},
		},
		"v1, kind: Pod": {
			{"new", `{}`, ``, P},
			{"without a node", `{}`, `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}`, P},
			{"evicted", `{}`, `{phase: Failed, reason: Evicted}`, D},
		},
		"v1, kind: ReplicationController": {
			{"all available", `{replicas: 2}`, `{observedGeneration: 2, replicas: 2, availableReplicas: 2}`, H},
			{"not all available", `{replicas: 2}`, `{observedGeneration: 2, replicas: 2, availableReplicas: 1}`, P},
			{"pods refused", `{replicas: 2}`, `{observedGeneration: 2, conditions: [{type: ReplicaFailure, status: "True"}]}`,
				D},
		},
		"autoscaling/v2, kind: HorizontalPodAutoscaler": {
			{"new", `{}`, ``, H},
			{"scaling", `{}`, `{conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "True"}]}`, H},
			{"at its limit", `{}`, `{conditions: [{type: ScalingLimited, status: "True"}]}`, H},
			{"without metrics", `{}`, `{conditions: [{type: ScalingActive, status: "False", reason: FailedGetResourceMetric}]}`,
				P},
			{"without its target", `{}`, `{conditions: [{type: AbleToScale, status: "False", reason: FailedGetScale}]}`, P},
			{"not allowed to scale", `{}`, `{conditions: [{type: AbleToScale, status: "False", reason: FailedUpdateScale}]}`, D},
			{"with metrics that cannot be read", `{}`,
				`{conditions: [{type: ScalingActive, status: "False", reason: InvalidMetricSourceType}]}`, D},
			{"of a target without replicas", `{}`,
				`{conditions: [{type: ScalingActive, status: "False", reason: ScalingDisabled}]}`, S},
		},
		"argoproj.io/v1alpha1, kind: Workflow": {
			{"new", `{}`, ``, P},
			{"pending", `{}`, `{phase: Pending}`, P},
			{"running", `{}`, `{phase: Running}`, P},
			{"suspended", `{suspend: true}`, `{phase: Running}`, S},
			{"waits for approval", `{}`, `{phase: Running, nodes: {a: {type: Suspend, phase: Running}}}`, S},
			{"succeeded", `{}`, `{phase: Succeeded}`, H},
			{"failed", `{}`, `{phase: Failed}`, D},
			{"in error", `{}`, `{phase: Error}`, D},
			{"with a spec that is refused", `{}`, `{conditions: [{type: SpecError, status: "True"}]}`, D},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			checkHealth(t, kind, cases)
			_, name, _ := strings.Cut(kind, "kind: ")
			row := regexp.MustCompile(`(?m)^\|[^|]*\b` + name + `\b[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$`).FindSubmatch(page)
			if row == nil {
				t.Fatalf("docs/kinds.md has no row for %s", name)
			}
			for _, c := range cases {
				if cell := row[columns[c.want]]; len(bytes.TrimSpace(cell)) == 0 {
					t.Errorf("docs/kinds.md has no state of %s for %s, which it has when %s", name, c.want, c.name)
				}
			}
		})
	}
}

func kindsPage(t *testing.T) []byte {
	t.Helper()
	page, err := os.ReadFile("../../../../../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestHealthOfEachKindIsDocumented(t *testing.T) {
	page := kindsPage(t)
	for kind := range Tier().(interpret.Kinds) {
		if !regexp.MustCompile(`(?m)^\|[^|]*\b`+kind.Kind+`\b[^|]*\|`).Match(page) &&
			len(interpret.PodTemplatePaths(kind)) == 0 {
			t.Errorf("docs/kinds.md has no row for %s", kind)
		}
	}
}
