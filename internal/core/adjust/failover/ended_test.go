package failover

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// A cluster without a report of its own, such as one that joined again, gets no Work of a run that has ended.
func TestARunThatEndedLeavesNoCluster(t *testing.T) {
	runs := map[string]map[string]string{
		"apiVersion: batch/v1, kind: Job": {"runs": "active: 1", "ended": `conditions: [{type: Complete, status: "True"}]`,
			"failed": `conditions: [{type: Failed, status: "True"}]`},
		"apiVersion: argoproj.io/v1alpha1, kind: Workflow": {"runs": "phase: Running", "ended": "phase: Succeeded",
			"failed": "phase: Error"},
		"apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob": {"runs": "phase: running", "ended": "phase: completed",
			"failed": "phase: failed"},
	}
	placements := map[string]policyv1alpha1.Placement{"divided": upTo(byRoom(), 1), "in each": upTo(duplicated(), 1)}
	causes := map[string]struct {
		happens   func(*world)
		want, due string
	}{
		"lost":    {func(w *world) { w.lose("a") }, "run -a: b=1", "run !a Tolerated"},
		"tainted": {func(w *world) { w.taint("a", "maintenance") }, "run -a: b=1", "run -a: b=1"},
		"alone": {func(w *world) { w.taint("a", "maintenance"); w.lose("b") }, "run !a NothingFits",
			"run !a NothingFits"},
		"paused": {func(w *world) { w.lose("a", "b", "c") }, "run !a FailoverPaused", "run !a FailoverPaused"},
	}
	for object, states := range runs {
		for state, status := range states {
			for division, placement := range placements {
				for cause, c := range causes {
					w := newWorld(t, "a", "b", "c")
					w.taint("c", "other")
					template := &unstructured.Unstructured{}
					if err := yaml.Unmarshal([]byte("{"+object+", status: {"+status+"}}"), &template.Object); err != nil {
						t.Fatal(err)
					}
					for _, cluster := range w.clusters {
						cluster.Status.APIEnablements = append(cluster.Status.APIEnablements, clusterv1alpha1.APIEnablement{
							GroupVersion: template.GetAPIVersion(), Resources: []clusterv1alpha1.APIResource{{Kind: template.GetKind()}}})
					}
					b := w.job("run", "a=1", placement)
					b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = template.GetAPIVersion(), template.GetKind()
					b.Status.AggregatedStatus = nil
					w.in.Facts = func(b workv1alpha2.Binding) (Facts, error) { return FactsOf(b, template, nil), nil }
					c.happens(w)
					due, want := c.due, c.want
					if needsNone := state != "runs" && (division == "divided" || template.GetKind() == "Workflow"); needsNone {
						due, want = "", ""
					}
					if got := planText(w.plan()); got != due {
						t.Errorf("%s, %s, %s, %s: %q, want %q", object, state, division, cause, got, due)
					}
					w.pass(5 * time.Minute)
					got := w.plan()
					if text := planText(got); text != want || want == "" && len(got.Paused) > 0 {
						t.Errorf("%s, %s, %s, %s: in the end %q, paused %v, want %q", object, state, division, cause, text,
							got.Paused, want)
					}
				}
			}
		}
	}
}

func TestARunThatEndedDoesNotFailBackAndKeepsNoConfiguration(t *testing.T) {
	for name, ended := range map[string]bool{"runs": false, "ended": true} {
		w := newWorld(t, "a", "b")
		template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
		w.in.Facts = func(b workv1alpha2.Binding) (Facts, error) {
			return FactsOf(b, template, map[string]string{wellknown.FailbackAfterAnnotation: "1m"}), nil
		}
		placement := byRoom()
		placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "primary", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}},
			{AffinityName: "backup", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}}},
		}
		run := w.job("run", "a=1", placement)
		run.Status.SchedulerObservedAffinityName = "primary"
		w.lose("a")
		w.pass(5 * time.Minute)
		w.execute(w.plans("run -a: b=1"))
		w.reportsStatus(run, "b", complete)
		w.execute(w.plans("run ~a"))
		w.reportsStatus(run, "b", `{"active":1}`)
		w.configMap("config", "b", upTo(duplicated(), 1))
		w.taint("b", "maintenance")
		config, back := "config !b WorkloadFirst; run !b NothingFits", "run -b: a=1"
		if ended {
			template.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete",
				"status": "True"}}}
			meta.SetStatusCondition(&run.Status.Conditions, metav1.Condition{Type: workv1alpha2.WorksWritten,
				Status: metav1.ConditionTrue, Reason: workv1alpha2.ReasonRunFinished})
			run.Status.AggregatedStatus = nil
			config, back = "config !b NothingFits", "run forgets"
		}
		if got := planText(w.plan()); got != config {
			t.Errorf("%s: %q, want %q", name, got, config)
		}
		w.untaint("b", "maintenance")
		w.back("a")
		w.pass(time.Minute)
		if got := planText(w.plan()); got != back {
			t.Errorf("%s, and its cluster is back: %q, want %q", name, got, back)
		}
	}
}
