package controller

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

var broadcastJobs = membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io",
	Version: "v1beta1", Kind: "BroadcastJob"}, Plural: "broadcastjobs", Namespaced: true}

// A run that has ended needs no cluster: that its cluster left is no failure to report.
func TestARunThatEndedIsNotReportedAsUnscheduled(t *testing.T) {
	const (
		times    = `{startTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T00:01:00Z", `
		at       = `, status: "True", lastTransitionTime: "2026-01-01T00:01:00Z"}`
		complete = times + `succeeded: 2, conditions: [{type: SuccessCriteriaMet` + at + `, {type: Complete` + at + `]}`
		failed   = times + `failed: 2, conditions: [{type: FailureTarget` + at + `, {type: Failed` + at + `]}`
		both     = "{clusterAffinity: {clusterNames: [m1, m2]}, spreadConstraints: [{spreadByField: cluster, minGroups: 2}]"
		divided  = both + ", replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}"
		alone    = "{clusterAffinity: {clusterNames: [m1]}}"
	)
	job, broadcast := controllertest.Job, broadcastJobs
	for name, c := range map[string]struct {
		kind              membertest.Kind
		placement, status string
		// reason is that of the condition Scheduled after m1 left. again is true if the object is created again in m1, which
		// joins without it.
		reason string
		again  bool
	}{
		"a Job":              {job, alone, complete, workv1alpha2.ReasonRunFinished, true},
		"a Job that failed":  {job, alone, failed, workv1alpha2.ReasonRunFailed, true},
		"a Job that runs":    {job, alone, "{active: 1}", workv1alpha2.ReasonNoClusterFit, true},
		"a divided Job":      {job, divided, complete, workv1alpha2.ReasonRunFinished, false},
		"one that failed":    {job, divided, failed, workv1alpha2.ReasonRunFailed, false},
		"one that runs":      {job, divided, "{active: 1}", workv1alpha2.ReasonSchedulerError, true},
		"a Job for each":     {job, both + "}", complete, workv1alpha2.ReasonSchedulerError, true},
		"a Workflow":         {workflows, alone, "{phase: Succeeded}", workv1alpha2.ReasonRunFinished, false},
		"a failed Workflow":  {workflows, alone, "{phase: Failed}", workv1alpha2.ReasonRunFailed, false},
		"a Workflow at work": {workflows, alone, "{phase: Running}", workv1alpha2.ReasonNoClusterFit, true},
		"a BroadcastJob": {broadcast, alone, strings.Replace(complete, "{", "{phase: completed, ", 1),
			workv1alpha2.ReasonRunFinished, true},
		"a failed BroadcastJob": {broadcast, alone, strings.Replace(failed, "{", "{phase: failed, ", 1),
			workv1alpha2.ReasonRunFailed, true},
		"a BroadcastJob at work": {broadcast, alone, "{phase: running}", workv1alpha2.ReasonNoClusterFit, true},
	} {
		ended := c.reason == workv1alpha2.ReasonRunFinished || c.reason == workv1alpha2.ReasonRunFailed
		for _, kept := range []bool{true, false} {
			if kept && !ended {
				continue
			}
			t.Run(fmt.Sprintf("%s, kept: %t", name, kept), func(t *testing.T) {
				controllertest.Run(t, func(t *testing.T) {
					var orphans func() (map[string]int, int)
					h, members := fleetWith(t, Options{Restored: func(f func() (map[string]int, int)) { orphans = f }}, job,
						broadcast, workflows)
					for _, k := range []membertest.Kind{job, broadcast, workflows} {
						h.Server.Serve(k)
						h.Server.SeparateStatus(k)
					}
					version, _ := c.kind.ToAPIVersionAndKind()
					p := policy("shop", version, c.kind.Kind)
					read(t, c.placement, &p.PropagationSpec().Placement)
					h.Make(p)
					run := func(name string) {
						h.Server.Put(claimed(parsed(t, c.kind, name, "parallelism: 4, completions: 4, "+
							"template: {spec: {containers: [{name: c, image: x}]}}"), p))
					}
					run("run")
					h.Quiet()
					for _, name := range []string{"m1", "m2"} {
						if run := members[name].Object(c.kind, "shop", "run"); run != nil {
							status := map[string]any{}
							read(t, c.status, &status)
							run.Object["status"] = status
							members[name].Put(run)
						}
					}
					h.Quiet()
					before := members["m1"].Object(c.kind, "shop", "run")
					if before == nil {
						t.Fatal("it does not run in m1")
					}
					binding := func() workv1alpha2.Binding {
						b, err := scope.Bindings.Get(t.Context(), h, client.ObjectKey{Namespace: "shop",
							Name: names.Binding(c.kind.Kind, "run")})
						if err != nil {
							t.Fatal(err)
						}
						return b
					}

					members["m1"].Down(true)
					h.Ready("m1", metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReachable)
					forget(t, h, "m1")
					h.Quiet()
					got := meta.FindStatusCondition(binding().BindingStatus().Conditions, workv1alpha2.Scheduled)
					if got == nil || got.Reason != c.reason || (got.Status == metav1.ConditionTrue) != ended {
						t.Errorf("its condition is %+v, want the reason %s", got, c.reason)
					}
					reported := func() bool {
						return strings.Contains(strings.Join(h.Events(), "\n"), workv1alpha2.EventScheduleBindingFailed)
					}
					if reported() == ended {
						t.Errorf("it is reported: %t; its run has ended: %t", reported(), ended)
					}

					if !kept {
						members["m1"].Remove(c.kind, "shop", "run")
					}
					members["m1"].Down(false)
					h.JoinAgain("m1", members["m1"], job, broadcast, workflows, controllertest.ClusterRole)
					h.Quiet()
					after := members["m1"].Object(c.kind, "shop", "run")
					switch {
					case kept && (after == nil || after.GetUID() != before.GetUID()):
						t.Errorf("it was created again where it is: %v", after)
					case !kept && (after != nil) != c.again:
						t.Errorf("created again: %t, want %t", after != nil, c.again)
					case ended && reported():
						t.Errorf("the cluster that joined makes it fail: %v", h.Events())
					}
					run("other") // the hub counts orphans of kinds that it watches there
					h.Quiet()
					if found, _ := orphans(); len(found) > 0 {
						t.Errorf("the hub does not know it any more: %v", found)
					}
					if got := binding().BindingStatus().Conditions; !meta.IsStatusConditionTrue(got, workv1alpha2.Scheduled) {
						t.Errorf("it is not scheduled when the cluster is back: %+v", got)
					}
				})
			})
		}
	}
}

// read reads YAML into v.
func read(t *testing.T, text string, v any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
}
