package overview_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// The row of the console, `argosy why` of the workload and of the cluster, and `argosy status` say the same.
func TestReadersShowOneState(t *testing.T) {
	unwritten := func(kind, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
	runEnd := func(reason string) []metav1.Condition {
		return []metav1.Condition{{Type: workv1alpha2.WorksWritten, Status: metav1.ConditionTrue, Reason: reason}}
	}
	const scope = `annotation argosy.io/rollout-scope: "bad" is not one of Fleet, Cluster`
	healthy := item("a", true, "", workv1alpha1.ResourceHealthy, `{"replicas": 1, "readyReplicas": 1}`)
	done := item("a", true, "", workv1alpha1.ResourceHealthy,
		`{"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}`)
	for name, c := range map[string]struct {
		version, kind string
		conditions    []metav1.Condition
		items         []workv1alpha2.AggregatedStatusItem
		// want are the states in the clusters a and b, and as a whole.
		want [3]state.State
		// why is what `argosy why cluster a` shows, if it matters.
		why string
	}{
		"a Job whose pods the cluster does not create": {version: "batch/v1", kind: "Job",
			items: []workv1alpha2.AggregatedStatusItem{item("a", true, "", workv1alpha1.ResourceUnknown,
				`{"startTime": "2026-11-26T12:00:00Z", "ready": 0}`)},
			want: [3]state.State{state.Progressing, state.Progressing, state.Progressing},
			why:  "not created yet: 1 pod; `argosy why job web -n shop` asks the cluster why"},
		"a Deployment whose status says that": {items: []workv1alpha2.AggregatedStatusItem{item("a", true, "",
			workv1alpha1.ResourceUnknown, `{"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "no quota"}]}`)},
			want: [3]state.State{state.Unhealthy, state.Progressing, state.Unhealthy}, why: "no quota"},
		"no Work can be written": {conditions: unwritten(workv1alpha2.WorksWritten, workv1alpha2.ReasonTemplateRefused,
			scope), want: [3]state.State{state.Failed, state.Failed, state.Failed}},
		"no Work can be written any more": {conditions: unwritten(workv1alpha2.WorksWritten,
			workv1alpha2.ReasonTemplateRefused, scope), items: []workv1alpha2.AggregatedStatusItem{healthy},
			want: [3]state.State{state.Failed, state.Failed, state.Failed}},
		"the Work of a cluster cannot be written": {conditions: unwritten(workv1alpha2.WorksWritten,
			workv1alpha2.ReasonWorksRefused, `cluster "b": too large`), items: []workv1alpha2.AggregatedStatusItem{healthy},
			want: [3]state.State{state.Healthy, state.Failed, state.Failed}},
		"a version is not served": {conditions: unwritten(workv1alpha2.VersionServed, workv1alpha2.ReasonFieldsNotServed,
			`cluster "b": v1 lacks fields`), items: []workv1alpha2.AggregatedStatusItem{healthy},
			want: [3]state.State{state.Healthy, state.Failed, state.Failed}},
		"replicas cannot be revised": {conditions: unwritten("ReviseReplica", "Failed", `clusters ["a" "b"]: line 3`),
			want: [3]state.State{state.Failed, state.Failed, state.Failed}},
		"all is well in one": {items: []workv1alpha2.AggregatedStatusItem{healthy},
			want: [3]state.State{state.Healthy, state.Progressing, state.Progressing}},
		"a run that ended elsewhere": {version: "batch/v1", kind: "Job", conditions: runEnd(workv1alpha2.ReasonRunFinished),
			want: [3]state.State{state.Ended, state.Ended, state.Ended}},
		"a run that failed elsewhere": {version: "batch/v1", kind: "Job", conditions: runEnd(workv1alpha2.ReasonRunFailed),
			want: [3]state.State{state.Ended, state.Ended, state.Unhealthy}},
		"a run that ended in one": {version: "batch/v1", kind: "Job", conditions: runEnd(workv1alpha2.ReasonRunFinished),
			items: []workv1alpha2.AggregatedStatusItem{done},
			want:  [3]state.State{state.Healthy, state.Ended, state.Healthy}},
	} {
		if c.kind == "" {
			c.version, c.kind = "apps/v1", "Deployment"
		}
		b := deployment()
		b.Spec.Resource.APIVersion, b.Spec.Resource.Kind, b.Spec.Replicas = c.version, c.kind, 2
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 1}, {Name: "b", Replicas: 1}}
		b.Status.AggregatedStatus, b.Status.Conditions = c.items, c.conditions
		clusters := []*clusterv1alpha1.Cluster{cluster("a", metav1.ConditionTrue), cluster("b", metav1.ConditionTrue)}
		template := &unstructured.Unstructured{}
		template.SetAPIVersion(c.version)
		template.SetKind(c.kind)
		template.SetNamespace("shop")
		template.SetName("web")
		if c.kind == "Job" { // its clusters share the run
			b.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
			ended := map[string]any{"type": "Complete", "status": "True"}
			if c.want[2] == state.Unhealthy {
				ended["type"] = "Failed"
			}
			if len(c.conditions) > 0 {
				template.Object["status"] = map[string]any{"conditions": []any{ended}}
			}
		}
		row := overview.RowOfWorkload(b, state.Facts{})
		says := why.Explain(why.Facts{Observed: propagate.Observed{Template: template, Binding: b}, Clusters: clusters,
			Works: why.WorksInStatus(b), Unseen: true})
		for i, cl := range clusters {
			there := why.ExplainMember(why.MemberFacts{Cluster: cl, Bindings: []workv1alpha2.Binding{b}}).Placed
			j := slices.IndexFunc(says.Clusters, func(s why.Cluster) bool { return s.Name == cl.Name })
			k := slices.IndexFunc(row.Places, func(p state.Place) bool { return p.Cluster == cl.Name })
			if want := c.want[i]; row.Places[k].State != want || says.Clusters[j].State != want || len(there) != 1 ||
				there[0].State != want {
				t.Errorf("%s: in %s it is %s to the console, %s to why, %+v to why cluster; want %s", name, cl.Name,
					row.Places[k].State, says.Clusters[j].State, there, want)
			} else if i == 0 && c.why != "" && there[0].Why != c.why {
				t.Errorf("%s: why cluster says %q, want %q", name, there[0].Why, c.why)
			}
		}
		if row.State != c.want[2] {
			t.Errorf("%s: as a whole it is %s, want %s", name, row.State, c.want[2])
		}
		var problems []why.Finding
		for _, f := range says.Findings {
			if f.Severity == why.Problem {
				problems = append(problems, f)
			} else if len(c.conditions) > 0 && strings.Contains(f.What, c.conditions[0].Type) {
				t.Errorf("%s: why warns of %+v", name, f)
			}
		}
		listed, _ := overview.Attention(overview.Facts{Workloads: []*overview.WorkloadRow{&row}}, 9)
		if bad := c.want[2].Bad(); len(problems) > 0 != bad || len(listed) > 0 != bad ||
			slices.ContainsFunc(problems, func(f why.Finding) bool { return f.Next == "" }) {
			t.Errorf("%s: why says %+v, and status %+v", name, says.Findings, listed)
		}
		if len(problems) > 1 && c.items != nil || len(c.conditions) > 0 && len(listed) > 1 {
			t.Errorf("%s: problems are listed twice: %+v, %+v", name, problems, listed)
		}
	}
}
