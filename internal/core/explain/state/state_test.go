package state_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

// member returns the cluster m1.
func member(ready metav1.ConditionStatus) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready,
		Reason: "ClusterNotReachable"}}
	return c
}

const (
	finished = `{"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}`
	failed   = `{"failed": 1, "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}`
)

// runFinished is what dispatch reports of a binding whose run has finished in another cluster.
func runFinished(b *workv1alpha2.ResourceBinding) {
	b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: workv1alpha2.WorksWritten,
		Status: metav1.ConditionTrue, Reason: workv1alpha2.ReasonRunFinished})
}

func TestStateOfATemplateInACluster(t *testing.T) {
	leaving := member(metav1.ConditionTrue)
	leaving.DeletionTimestamp = new(metav1.Now())
	suspend := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Suspension = &workv1alpha2.Suspension{}
		b.Spec.Suspension.Dispatching = new(true)
	}
	refuse := func(b *workv1alpha2.ResourceBinding) {
		b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.WorksWritten, Status: metav1.ConditionFalse,
			Reason: workv1alpha2.ReasonTemplateRefused, Message: `"bad" is not one of Fleet, Cluster`}}
	}
	for name, c := range map[string]struct {
		kind     string
		replicas int32
		// report is nil before the first report.
		report        *workv1alpha2.AggregatedStatusItem
		status        string
		cluster       *clusterv1alpha1.Cluster
		gone, ailing  bool
		change        func(*workv1alpha2.ResourceBinding)
		want          state.State
		ready, wanted int64
		what          string
	}{
		"a finished run whose cluster left the fleet": {kind: "Job", report: applied(workv1alpha1.ResourceHealthy),
			status: finished, gone: true, want: state.Healthy},
		"a run that was in a cluster which left the fleet": {kind: "Job", report: applied(workv1alpha1.ResourceHealthy),
			status: `{"active": 1}`, gone: true, want: state.Failed, what: "the cluster is not in the fleet"},
		"a run that finished elsewhere": {kind: "Job", change: runFinished, want: state.Ended,
			what: workv1alpha2.MessageRunFinished},
		"a run that finished elsewhere, and the cluster is not in the fleet": {kind: "Job", change: runFinished, gone: true,
			want: state.Ended, what: workv1alpha2.MessageRunFinished},
		"a run that failed elsewhere": {kind: "Job", change: func(b *workv1alpha2.ResourceBinding) {
			runFinished(b)
			b.Status.Conditions[len(b.Status.Conditions)-1].Reason = workv1alpha2.ReasonRunFailed
		}, want: state.Ended, what: workv1alpha2.MessageRunFailed},
		"a failed run that is reported": {kind: "Job", change: runFinished, report: applied(workv1alpha1.ResourceUnhealthy),
			status: failed, want: state.Unhealthy, what: "failed 1; BackoffLimitExceeded"},
		"no report yet": {kind: "Deployment", replicas: 3, want: state.Progressing, wanted: 3},
		"not applied yet": {kind: "Deployment", replicas: 3, report: &workv1alpha2.AggregatedStatusItem{},
			want: state.Progressing, wanted: 3},
		"refused": {kind: "Deployment", replicas: 3, report: &workv1alpha2.AggregatedStatusItem{AppliedMessage: "denied"},
			want: state.Failed, wanted: 3, what: "denied"},
		"healthy": {kind: "Deployment", replicas: 3, report: applied(workv1alpha1.ResourceHealthy),
			status: `{"replicas": 3, "readyReplicas": 3}`, want: state.Healthy, ready: 3, wanted: 3},
		"health not known": {kind: "Deployment", replicas: 3, report: applied(workv1alpha1.ResourceUnknown),
			status: `{"replicas": 3}`, want: state.Progressing, wanted: 3},
		"health not reported": {kind: "Deployment", replicas: 3, report: applied(""), want: state.Progressing, wanted: 3},
		"unhealthy": {kind: "Deployment", replicas: 3, report: applied(workv1alpha1.ResourceUnhealthy),
			status: `{"replicas": 3, "readyReplicas": 1}`, want: state.Unhealthy, ready: 1, wanted: 3,
			what: "replicas 3, readyReplicas 1"},
		"pods that do not run, health not known": {kind: "CloneSet", replicas: 2, ailing: true,
			report: applied(workv1alpha1.ResourceUnknown), status: `{"replicas": 2, "updatedReplicas": 2}`,
			want: state.Unhealthy, wanted: 2, what: "replicas 2, updatedReplicas 2"},
		"pods that do not run beside a canary's others": {kind: "CloneSet", replicas: 6, ailing: true,
			report: applied(workv1alpha1.ResourceHealthy), status: `{"readyReplicas": 4, "updatedReplicas": 2}`,
			want: state.Unhealthy, ready: 4, wanted: 6, what: "readyReplicas 4, updatedReplicas 2"},
		"a pod too many that does not run": {kind: "Deployment", replicas: 3, ailing: true,
			report: applied(workv1alpha1.ResourceHealthy), status: `{"replicas": 4, "readyReplicas": 3}`,
			want: state.Healthy, ready: 3, wanted: 3},
		"a lost cluster": {kind: "Deployment", replicas: 3, cluster: member(metav1.ConditionFalse),
			report: applied(workv1alpha1.ResourceUnknown), status: `{"replicas": 3, "readyReplicas": 3}`,
			want: state.Lost, wanted: 3},
		"a lost cluster, health as last reported": {kind: "Deployment", replicas: 3, cluster: member(metav1.ConditionUnknown),
			report: applied(workv1alpha1.ResourceHealthy), status: `{"replicas": 3, "readyReplicas": 3}`,
			want: state.Lost, wanted: 3},
		"a lost cluster that never reported": {kind: "Deployment", replicas: 3, cluster: member(metav1.ConditionFalse),
			want: state.Lost, wanted: 3},
		"a lost cluster, and pods that did not run": {kind: "Deployment", replicas: 3, ailing: true,
			cluster: member(metav1.ConditionFalse), report: applied(workv1alpha1.ResourceUnhealthy), want: state.Lost,
			wanted: 3},
		"a run that ended in a lost cluster": {kind: "Job", replicas: 1, cluster: member(metav1.ConditionFalse),
			report: applied(workv1alpha1.ResourceHealthy), status: finished, want: state.Healthy},
		"a run that ended": {kind: "Job", replicas: 1, report: applied(workv1alpha1.ResourceHealthy), status: finished,
			want: state.Healthy},
		"a run that ended, with a pod that failed": {kind: "Job", replicas: 1, ailing: true,
			report: applied(workv1alpha1.ResourceHealthy), status: finished, want: state.Healthy},
		"a run that failed": {kind: "Job", replicas: 1, report: applied(workv1alpha1.ResourceUnhealthy), status: failed,
			want: state.Unhealthy, what: "failed 1; BackoffLimitExceeded"},
		"a run under way": {kind: "Job", replicas: 1, report: applied(workv1alpha1.ResourceUnknown), status: `{"active": 1}`,
			want: state.Progressing},
		"a run whose pods do not run": {kind: "Job", replicas: 1, ailing: true, status: `{"active": 1}`,
			report: applied(workv1alpha1.ResourceUnknown), want: state.Unhealthy, what: "active 1"},
		"pods that the controller cannot create": {kind: "Deployment", replicas: 3,
			report: applied(workv1alpha1.ResourceUnknown), status: `{"readyReplicas": 1, "replicas": 1, "conditions": [` +
				`{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: tenant"}]}`,
			want: state.Unhealthy, ready: 1, wanted: 3, what: "replicas 1, readyReplicas 1; exceeded quota: tenant"},
		"pods that the controller of OpenKruise cannot create": {kind: "CloneSet", replicas: 3,
			report: applied(workv1alpha1.ResourceUnknown), status: `{"replicas": 1, "updatedReplicas": 1, "conditions": [` +
				`{"type": "FailedScale", "status": "True", "message": "exceeded quota: tenant"}]}`,
			want: state.Unhealthy, wanted: 3, what: "replicas 1, updatedReplicas 1; exceeded quota: tenant"},
		"an error of OpenKruise that is over": {kind: "CloneSet", replicas: 3,
			report: applied(workv1alpha1.ResourceUnknown), status: `{"replicas": 3, "updatedReplicas": 1, "conditions": [` +
				`{"type": "FailedScale", "status": "True", "message": "exceeded quota: tenant"}]}`,
			want: state.Progressing, wanted: 3},
		"daemons": {kind: "DaemonSet", report: applied(workv1alpha1.ResourceUnknown),
			status: `{"desiredNumberScheduled": 5, "currentNumberScheduled": 5, "numberReady": 4}`, want: state.Progressing,
			ready: 4, wanted: 5},
		"daemons without pods": {kind: "DaemonSet", report: applied(workv1alpha1.ResourceUnknown),
			status: `{"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 4}`, want: state.Progressing,
			ready: 4, wanted: 5, what: "not created yet: 1 pod"},
		"a run without pods": {kind: "Job", replicas: 2, report: applied(workv1alpha1.ResourceUnknown),
			status: `{"startTime": "2026-01-01T00:00:00Z"}`, want: state.Progressing, what: "not created yet: 2 pods"},
		"a run whose pods end": {kind: "Job", replicas: 2, report: applied(workv1alpha1.ResourceUnknown),
			status: `{"active": 1, "succeeded": 1}`, want: state.Progressing},
		"a run whose pod failed": {kind: "Job", replicas: 1, report: applied(workv1alpha1.ResourceUnknown),
			status: `{"failed": 1}`, want: state.Progressing},
		"a suspended run": {kind: "Job", replicas: 1, change: suspend, report: applied(workv1alpha1.ResourceUnknown),
			status: `{"active": 0}`, want: state.Suspended},
		"a set without pods": {kind: "StatefulSet", replicas: 3, report: applied(workv1alpha1.ResourceUnknown),
			status: `{"replicas": 1, "readyReplicas": 1}`, want: state.Progressing, ready: 1, wanted: 3,
			what: "not created yet: 2 pods"},
		"a set that an autoscaler of the member scales": {kind: "StatefulSet", replicas: 3,
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Annotations = map[string]string{wellknown.ScaledByAnnotation: "HorizontalPodAutoscaler web"}
			}, report: applied(workv1alpha1.ResourceUnknown), status: `{"replicas": 1, "readyReplicas": 1}`,
			want: state.Progressing, ready: 1, wanted: 3},
		"no replicas": {kind: "ConfigMap", report: applied(workv1alpha1.ResourceHealthy), want: state.Healthy},
		"suspended":   {kind: "Deployment", replicas: 3, change: suspend, want: state.Suspended, wanted: 3},
		"suspended, and healthy": {kind: "Deployment", replicas: 3, change: suspend,
			report: applied(workv1alpha1.ResourceHealthy), status: `{"readyReplicas": 3, "updatedReplicas": 3}`,
			want: state.Suspended, ready: 3, wanted: 3},
		"suspended, and unhealthy": {kind: "Deployment", replicas: 3, change: suspend,
			report: applied(workv1alpha1.ResourceUnhealthy), status: `{"readyReplicas": 1}`, want: state.Unhealthy, ready: 1,
			wanted: 3, what: "readyReplicas 1"},
		"suspended in a lost cluster": {kind: "Deployment", replicas: 3, change: suspend,
			cluster: member(metav1.ConditionFalse), report: applied(workv1alpha1.ResourceUnknown), want: state.Lost,
			wanted: 3},
		"a kind that does not count pods": {kind: "Pod", replicas: 1, report: applied(workv1alpha1.ResourceHealthy),
			status: `{"phase": "Running"}`, ailing: true, want: state.Healthy},
		"a cluster that leaves": {kind: "Deployment", replicas: 3, cluster: leaving, want: state.Leaving, wanted: 3},
		"a cluster that leaves and has it": {kind: "Deployment", replicas: 3, cluster: leaving,
			report: applied(workv1alpha1.ResourceHealthy), want: state.Healthy, wanted: 3},
		"no such cluster": {kind: "Deployment", replicas: 3, gone: true, want: state.Failed, wanted: 3,
			what: "the cluster is not in the fleet"},
		"a Work that cannot be written": {kind: "Deployment", replicas: 3, report: applied(workv1alpha1.ResourceHealthy),
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.WorksWritten, Status: metav1.ConditionFalse,
					Message: "cluster \"m0\": another\ncluster \"m1\": override policy o: no such path\ncluster \"m2\": another"}}
			}, want: state.Failed, wanted: 3, what: `cluster "m1": override policy o: no such path`},
		"a Work that cannot be written elsewhere": {kind: "ConfigMap", report: applied(workv1alpha1.ResourceHealthy),
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.WorksWritten, Status: metav1.ConditionFalse,
					Message: `cluster "m2": override policy o: no such path`}}
			}, want: state.Healthy},
		"no Work can be written": {kind: "Deployment", replicas: 3, report: applied(workv1alpha1.ResourceHealthy),
			change: refuse, want: state.Failed, wanted: 3, what: `WorksWritten: "bad" is not one of Fleet, Cluster`},
		"no Work can be written, and there is none": {kind: "Deployment", replicas: 3, change: refuse, want: state.Failed,
			wanted: 3, what: `WorksWritten: "bad" is not one of Fleet, Cluster`},
		"required by another": {kind: "ConfigMap", report: applied(workv1alpha1.ResourceHealthy),
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "web", Clusters: b.Spec.Clusters}}
				b.Spec.Clusters = nil
			}, want: state.Healthy},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{}
			versions := map[string]string{"CloneSet": "apps.kruise.io/v1beta1", "Job": "batch/v1", "ConfigMap": "v1",
				"Pod": "v1"}
			version := versions[c.kind]
			if version == "" {
				version = "apps/v1"
			}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: version, Kind: c.kind, Namespace: "shop", Name: "web"}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: c.replicas}}
			if c.report != nil {
				c.report.ClusterName = "m1"
				if c.status != "" {
					c.report.Status = &runtime.RawExtension{Raw: []byte(c.status)}
				}
				b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{*c.report}
			}
			if c.change != nil {
				c.change(b)
			}
			cluster := c.cluster
			if cluster == nil && !c.gone {
				cluster = member(metav1.ConditionTrue)
			}
			facts := state.Facts{Cluster: func(string) *clusterv1alpha1.Cluster { return cluster }}
			if c.ailing {
				facts.Troubled = state.TroubledOf([]pods.Workload{{APIVersion: version, Kind: c.kind, Namespace: "shop",
					Name: "web", Report: pods.Report{Cluster: "m1", Pods: 2, Troubles: []pods.Group{{Pods: 1}}}}})
			}
			got := state.Places(b, facts)
			if len(got) != 1 {
				t.Fatalf("it is in %d places", len(got))
			}
			if p := got[0]; p.State != c.want || p.Ready != c.ready || p.Wanted != c.wanted || p.What != c.what {
				t.Errorf("it is %s, %d/%d, %q; want %s, %d/%d, %q", p.State, p.Ready, p.Wanted, p.What, c.want, c.ready, c.wanted,
					c.what)
			}
			if cluster != nil {
				if p, placed := state.PlaceIn(b, cluster, facts.Troubled); !placed || p != got[0] {
					t.Errorf("in the cluster it is %+v, among all %+v", p, got[0])
				}
			}
		})
	}
}

func applied(health workv1alpha1.ResourceHealth) *workv1alpha2.AggregatedStatusItem {
	return &workv1alpha2.AggregatedStatusItem{Applied: true, Health: health}
}

// A reader that does not know the clusters has the outages that the binding reports.
func TestABindingTellsOfLostClusters(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m10"}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{*applied(workv1alpha1.ResourceUnknown),
		*applied(workv1alpha1.ResourceHealthy)}
	b.Status.AggregatedStatus[0].ClusterName, b.Status.AggregatedStatus[1].ClusterName = "m1", "m10"
	b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.StatusCurrent, Status: metav1.ConditionFalse,
		Message: `cluster "m1" has not been ready since 2026-01-01T00:00:00Z (ClusterNotReachable): the last reported`}}
	if p := state.Places(b, state.Facts{}); p[0].State != state.Lost || p[1].State != state.Healthy {
		t.Errorf("the places are %+v", p)
	}
}

func TestAllStatesHaveARank(t *testing.T) {
	if state.Failed.Rank() != 0 || state.Ended.Rank() != len(state.All)-1 || !slices.IsSortedFunc(state.All,
		func(a, b state.State) int { return a.Rank() - b.Rank() }) {
		t.Errorf("the states are not in order: %v", state.All)
	}
	if state.Progressing.Bad() || !state.Lost.Bad() {
		t.Error("a lost cluster is a problem, and progress is none")
	}
}

// What a member reports is shown in each row of the console and in terminals.
func TestWhatMembersReportIsCutAndPrintable(t *testing.T) {
	long := strings.Repeat(`\u001b[2J\nfake\u009b `, 10000)
	note := `{"type":"ImmutableFieldConflict","status":"True","message":"` + long + `"}`
	for name, status := range map[string]string{
		"a phase":           `{"phase":"` + long + `","replicas":1}`,
		"a failure":         `{"conditions":[{"type":"Failed","status":"True","reason":"` + long + `","message":"m"}]}`,
		"a note":            `{"conditions":[` + note + `]}`,
		"many notes":        `{"conditions":[` + strings.Repeat(note+",", 50) + note + `]}`,
		"pods not created":  `{"conditions":[{"type":"ReplicaFailure","status":"True","message":"` + long + `"}]}`,
		"a word and a note": `{"phase":"a\u001bb","conditions":[` + note + `]}`,
	} {
		b := &workv1alpha2.ResourceBinding{}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
			Name: "web"}
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}}
		report := applied(workv1alpha1.ResourceUnhealthy)
		report.ClusterName, report.Status = "m1", &runtime.RawExtension{Raw: []byte(status)}
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{*report}
		what := state.Places(b, state.Facts{})[0].What
		texts := append(state.Notes([]byte(status)), what, state.Brief([]byte(status)))
		for _, s := range texts {
			if len(s) > 1024 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%s: %d bytes, %.80q", name, len(s), s)
			}
		}
		if len(texts) > 6 || what == "" {
			t.Errorf("%s: %d texts, %q", name, len(texts), what)
		}
	}
	if got := state.Brief([]byte(`{"phase":"` + long + `","replicas":1}`)); !strings.HasSuffix(got, ", replicas 1") {
		t.Errorf("a long phase hides what follows: %q", got)
	}
}
