package aggregate

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// down returns a cluster that has not been ready since noon.
func down(name string, status metav1.ConditionStatus, reason string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{
			{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: reason, LastTransitionTime: noon}}}}
}

func TestOutagesOf(t *testing.T) {
	fleet := map[string]*clusterv1alpha1.Cluster{
		"ready":    down("ready", metav1.ConditionTrue, "ClusterReady"),
		"dead":     down("dead", metav1.ConditionFalse, "ClusterNotReachable"),
		"silent":   down("silent", metav1.ConditionUnknown, "ClusterStatusUnknown"),
		"new":      {ObjectMeta: metav1.ObjectMeta{Name: "new"}},
		"another":  down("another", metav1.ConditionFalse, "ClusterNotReachable"),
		"excluded": down("excluded", metav1.ConditionFalse, "ClusterNotReachable"),
	}
	got := OutagesOf(binding("ready", "dead", "silent", "new", "unjoined"), func(name string) *clusterv1alpha1.Cluster {
		return fleet[name]
	})
	want := Outages{"dead": {Since: noon, Reason: "ClusterNotReachable"},
		"silent": {Since: noon, Reason: "ClusterStatusUnknown"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReportBeforeOutageIsStale(t *testing.T) {
	works := []workv1alpha1.Work{applied("m1"), applied("m2")}
	b := binding("m1", "m2")
	b.Status = Binding(b, works, nil, noon)
	if meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.StatusCurrent) != nil {
		t.Error("the condition exists although all clusters are ready")
	}

	outages := Outages{"m2": {Since: noon, Reason: "ClusterNotReachable"}}
	b.Status = Binding(b, works, outages, later)
	if got, want := describe(b.Status.AggregatedStatus),
		`m1 applied {"replicas":1} Healthy; m2 applied {"replicas":1} Unknown`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.StatusCurrent)
	const message = `cluster "m2" has not been ready since 2026-01-01T12:00:00Z (ClusterNotReachable): the last reported status is used, and its pods are not counted as ready`
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "ClusterNotReady" || c.LastTransitionTime != later ||
		c.Message != message {
		t.Errorf("got %+v, want %q", c, message)
	}
	if !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied) {
		t.Error("what was applied counts as not applied")
	}
	if again := Binding(b, works, outages, noon); !reflect.DeepEqual(again, b.Status) {
		t.Errorf("a second time gives\n%+v\nnot\n%+v", again, b.Status)
	}

	b.Status = Binding(b, works, nil, later)
	if got, want := describe(b.Status.AggregatedStatus),
		`m1 applied {"replicas":1} Healthy; m2 applied {"replicas":1} Healthy`; got != want {
		t.Errorf("after the outage got  %s\nwant %s", got, want)
	}
	if c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.StatusCurrent); c != nil {
		t.Errorf("after the outage there is %+v", c)
	}
}

func TestUnhealthySinceIsKeptWhileItLasts(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute)) }
	out := Outages{"m1": {Since: noon, Reason: "R"}}
	type report struct {
		health workv1alpha1.ResourceHealth
		outage Outages
		// refused: the member did not accept the object, so its report is about an older one.
		refused bool
		// want is the minute since which it is Unhealthy; -1 if it is not.
		want int
	}
	const healthy, ill = workv1alpha1.ResourceHealthy, workv1alpha1.ResourceUnhealthy
	for name, reports := range map[string][]report{
		"it stays so":              {{healthy, nil, false, -1}, {ill, nil, false, 1}, {ill, nil, false, 1}},
		"from the start":           {{ill, nil, false, 0}, {ill, nil, false, 0}},
		"recovered, and ill again": {{ill, nil, false, 0}, {healthy, nil, false, -1}, {ill, nil, false, 2}},
		"a rollout in between":     {{ill, nil, false, 0}, {"Unknown", nil, false, -1}, {ill, nil, false, 2}},
		"an outage in between":     {{ill, nil, false, 0}, {ill, out, false, -1}, {ill, out, false, -1}, {ill, nil, false, 3}},
		"an outage of another":     {{ill, nil, false, 0}, {ill, Outages{"m2": out["m1"]}, false, 0}},
		"refused in between":       {{ill, nil, false, 0}, {ill, nil, true, -1}, {ill, nil, false, 2}},
	} {
		for scope, b := range map[string]workv1alpha2.Binding{
			"ResourceBinding":        binding("m1", "m2"),
			"ClusterResourceBinding": &workv1alpha2.ClusterResourceBinding{Spec: binding("m1", "m2").Spec}} {
			t.Run(name+"/"+scope, func(t *testing.T) {
				for minute, r := range reports {
					w := applied("m1")
					if r.refused {
						w = work("m1", metav1.ConditionFalse, "refused", `{"replicas":1}`)
					}
					w.Status.ManifestStatuses[0].Health = r.health
					*b.BindingStatus() = Binding(b, []workv1alpha1.Work{w, applied("m2")}, r.outage, at(minute))
					items := b.BindingStatus().AggregatedStatus
					if items[1].UnhealthySince != nil {
						t.Errorf("minute %d: m2 is Unhealthy since %s", minute, items[1].UnhealthySince)
					}
					var want *metav1.Time
					if r.want >= 0 {
						want = new(at(r.want))
					}
					if got := items[0].UnhealthySince; !got.Equal(want) {
						t.Errorf("minute %d: %s since %v, want %v", minute, items[0].Health, got, want)
					}
				}
			})
		}
	}
}

func TestUnhealthySinceCountsFromTheFirstLook(t *testing.T) {
	b := binding("m1")
	w := applied("m1")
	w.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
	b.Status = Binding(b, []workv1alpha1.Work{w}, nil, noon)
	b.Status.AggregatedStatus[0].UnhealthySince = nil // an earlier version of the hub wrote it
	b.Status = Binding(b, []workv1alpha1.Work{w}, nil, later)
	if got := b.Status.AggregatedStatus[0].UnhealthySince; !got.Equal(&later) {
		t.Errorf("Unhealthy since %v, want %v", got, later)
	}
}

func TestFinishedRunIsNotStale(t *testing.T) {
	const complete = `{"succeeded":1,"completionTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Complete","status":"True"}]}`
	b := binding("m1", "m2")
	b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "Job"
	outages := Outages{"m1": {Since: noon, Reason: "R"}, "m2": {Since: noon, Reason: "R"}}
	stale := func(works ...workv1alpha1.Work) string {
		if c := meta.FindStatusCondition(Binding(b, works, outages, noon).Conditions, workv1alpha2.StatusCurrent); c != nil {
			return c.Message
		}
		return ""
	}
	done, runs := work("m1", metav1.ConditionTrue, "", complete), work("m2", metav1.ConditionTrue, "", `{"active":1}`)
	if got := stale(done, runs); strings.Contains(got, `"m1"`) || !strings.Contains(got, `"m2"`) {
		t.Errorf("for a Job that has finished in m1: %q", got)
	}
	if got := stale(done); got != "" {
		t.Errorf("for a finished Job: %q", got)
	}
}

func TestMessageAboutManyOutagesIsShort(t *testing.T) {
	b, outages := binding(), Outages{}
	var works []workv1alpha1.Work
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
		works = append(works, applied(name))
		outages[name] = &membership.Outage{Since: noon, Reason: "R"}
	}
	c := meta.FindStatusCondition(Binding(b, works, outages, noon).Conditions, workv1alpha2.StatusCurrent)
	if want := "; and 2 more: the last reported status"; c == nil || !strings.Contains(c.Message, want) ||
		!strings.Contains(c.Message, `cluster "j"`) || strings.Contains(c.Message, `cluster "k"`) {
		t.Errorf("got %+v, want %q", c, want)
	}
}

// The object and its pods probably exist, but it is unknown whether they are ready.
func TestTemplateKeepsLastKnownStatusInOutage(t *testing.T) {
	outage := &membership.Outage{Since: noon, Reason: "ClusterNotReachable"}
	const unknown = `"message":"the cluster has not been ready since 2026-01-01T12:00:00Z (ClusterNotReachable)","reason":"ClusterNotReady","status":"Unknown"`
	for name, c := range map[string]struct{ of, reported, want string }{
		"a Deployment": {"apps/v1 Deployment",
			`{"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3,"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True"}]}`,
			`{"availableReplicas":0,"conditions":[{` + unknown +
				`,"type":"Available"},{"status":"True","type":"Progressing"}],"readyReplicas":0,"replicas":3,"unavailableReplicas":3,"updatedReplicas":3}`},
		"a DaemonSet": {"apps/v1 DaemonSet",
			`{"desiredNumberScheduled":4,"numberReady":3,"numberAvailable":3,"numberUnavailable":1,"updatedNumberScheduled":4}`,
			`{"desiredNumberScheduled":4,"numberAvailable":0,"numberReady":0,"numberUnavailable":4,"updatedNumberScheduled":4}`},
		"a UnitedDeployment with its subsets": {"apps.kruise.io/v1alpha1 UnitedDeployment",
			`{"readyReplicas":2,"replicas":2,"subsetStatuses":[{"name":"a","readyReplicas":2,"replicas":2}]}`,
			`{"readyReplicas":0,"replicas":2,"subsetStatuses":[{"name":"a","readyReplicas":0,"replicas":2}]}`},
		"a budget allows no disruption": {"policy/v1 PodDisruptionBudget",
			`{"currentHealthy":3,"desiredHealthy":2,"disruptionsAllowed":1,"expectedPods":3}`,
			`{"currentHealthy":0,"desiredHealthy":2,"disruptionsAllowed":0,"expectedPods":3}`},
		"a Job under way": {"batch/v1 Job", `{"active":2,"ready":2,"succeeded":1}`, `{"active":2,"ready":0,"succeeded":1}`},
		"a Job that has ended, for ever": {"batch/v1 Job",
			`{"succeeded":1,"ready":0,"completionTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Complete","status":"True"}]}`,
			`{"succeeded":1,"ready":0,"completionTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Complete","status":"True"}]}`},
		"addresses stay, or traffic would be cut off": {"v1 Service", `{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}`,
			`{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}`},
		"nonsense stays": {"v1 ConfigMap", `[1,2]`, `[1,2]`},
	} {
		t.Run(name, func(t *testing.T) {
			b := binding("m1")
			b.Spec.Resource.APIVersion, b.Spec.Resource.Kind, _ = strings.Cut(c.of, " ")
			b.Status = Binding(b, []workv1alpha1.Work{work("m1", metav1.ConditionTrue, "", c.reported)}, Outages{"m1": outage},
				noon)
			if got := string(b.Status.AggregatedStatus[0].Status.Raw); got != c.reported {
				t.Errorf("the binding has %s, want it as reported", got)
			}
			if got := string(Items(b, Outages{"m1": outage})[0].Status.Raw); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := string(Items(b, nil)[0].Status.Raw); got != c.reported {
				t.Errorf("without an outage got %s", got)
			}
		})
	}
}
