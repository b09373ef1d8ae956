package aggregate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

var (
	noon  = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	later = metav1.NewTime(noon.Add(time.Hour))
)

// binding returns a binding scheduled to these clusters.
func binding(clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{}
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
	}
	return b
}

// work returns the Work in a cluster with the status of Applied ("" for none) and of its object.
func work(cluster string, applied metav1.ConditionStatus, message, status string) workv1alpha1.Work {
	w := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: names.ExecutionSpace(cluster)}}
	if applied != "" {
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: applied, Message: message}}
	}
	if status != "" {
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(status)},
			Health: workv1alpha1.ResourceHealthy}}
	}
	return w
}

func applied(cluster string) workv1alpha1.Work {
	return work(cluster, metav1.ConditionTrue, "", `{"replicas":1}`)
}

// describe returns an item in one line.
func describe(items []workv1alpha2.AggregatedStatusItem) string {
	var out []string
	for _, i := range items {
		s := i.ClusterName
		if i.Applied {
			s += " applied"
		}
		if i.AppliedMessage != "" {
			s += fmt.Sprintf(" %q", i.AppliedMessage)
		}
		if i.Status != nil {
			s += " " + string(i.Status.Raw)
		}
		out = append(out, s+" "+string(i.Health))
	}
	return strings.Join(out, "; ")
}

func TestBindingStatusFromWorks(t *testing.T) {
	required := binding("m1")
	required.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "x",
		Clusters: []workv1alpha2.TargetCluster{{Name: "m2"}, {Name: "m1"}}}}
	leaving := binding("m1")
	leaving.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
		{FromCluster: "m2", PurgeMode: policyv1alpha1.PurgeModeGracefully},
		{FromCluster: "m3", PurgeMode: policyv1alpha1.PurgeModeDirectly},
	}
	for _, c := range []struct {
		name  string
		b     *workv1alpha2.ResourceBinding
		works []workv1alpha1.Work
		want  string
		fully metav1.ConditionStatus
	}{
		{"all are applied", binding("m2", "m1"), []workv1alpha1.Work{applied("m2"), applied("m1")},
			`m1 applied {"replicas":1} Healthy; m2 applied {"replicas":1} Healthy`, "True"},
		{"one is not, and its health is not known any more", binding("m1", "m2"),
			[]workv1alpha1.Work{applied("m1"), work("m2", "False", "no such kind", `{"old":1}`)},
			`m1 applied {"replicas":1} Healthy; m2 "no such kind" {"old":1} Unknown`, "False"},
		{"one has not answered", binding("m1"), []workv1alpha1.Work{work("m1", "", "", "")}, `m1 Unknown`, "False"},
		{"one is applied and has no status yet", binding("m1"), []workv1alpha1.Work{work("m1", "True", "", "")},
			`m1 applied Unknown`, "True"},
		{"one has no Work yet", binding("m1", "m2"), []workv1alpha1.Work{applied("m1")}, `m1 applied {"replicas":1} Healthy`,
			"False"},
		{"one is left over in a cluster that the binding has left", binding("m1"),
			[]workv1alpha1.Work{applied("m1"), applied("m9")}, `m1 applied {"replicas":1} Healthy`, "True"},
		{"clusters of those who require it count", required, []workv1alpha1.Work{applied("m1"), applied("m2")},
			`m1 applied {"replicas":1} Healthy; m2 applied {"replicas":1} Healthy`, "True"},
		{"a cluster left in good order counts, one left at once does not", leaving,
			[]workv1alpha1.Work{applied("m1"), applied("m2"), applied("m3")},
			`m1 applied {"replicas":1} Healthy; m2 applied {"replicas":1} Healthy`, "True"},
		{"a Work outside of an execution namespace is ignored", binding("m1"),
			[]workv1alpha1.Work{applied("m1"), {ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}},
			`m1 applied {"replicas":1} Healthy`, "True"},
		{"nothing is scheduled yet, so nothing is said", binding(), nil, ``, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Binding(c.b, c.works, nil, noon)
			if s := describe(got.AggregatedStatus); s != c.want {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
			condition := meta.FindStatusCondition(got.Conditions, workv1alpha2.FullyApplied)
			switch {
			case condition == nil:
				if c.fully != "" {
					t.Errorf("got no condition, want %s", c.fully)
				}
			case condition.Status != c.fully || condition.LastTransitionTime != noon:
				t.Errorf("got %+v, want %s at noon", condition, c.fully)
			case c.fully == "True" && (condition.Reason != "FullyAppliedSuccess" ||
				condition.Message != "All works have been successfully applied"),
				c.fully == "False" && (condition.Reason != "FullyAppliedFailed" ||
					condition.Message != "Failed to apply all works, see status.aggregatedStatus for details"):
				t.Errorf("got %+v", condition)
			}
		})
	}
}

func TestBindingWithoutClustersIsNotFullyApplied(t *testing.T) {
	b := binding("m1")
	b.Status = Binding(b, []workv1alpha1.Work{applied("m1")}, nil, noon)
	b.Spec.Clusters = nil
	got := Binding(b, []workv1alpha1.Work{applied("m1")}, nil, later)
	if c := meta.FindStatusCondition(got.Conditions, workv1alpha2.FullyApplied); len(got.AggregatedStatus) != 0 ||
		c.Status != "False" || c.LastTransitionTime != later {
		t.Errorf("got %+v", got)
	}
}

func TestEarlierTemplateMeansNotFullyApplied(t *testing.T) {
	works := []workv1alpha1.Work{applied("m1"), applied("m2")}
	for _, kind := range []string{"ReviseReplica", "WorksWritten", "VersionServed"} {
		b := binding("m1", "m2")
		b.Status = Binding(b, works, nil, noon)
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "R",
			Message: `cluster "m2": no such field`})
		b.Status = Binding(b, works, nil, later)
		c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied)
		if want := "Failed to apply all works, see status.aggregatedStatus for details; " + kind +
			`: cluster "m2": no such field`; c.Status != "False" || c.Reason != "FullyAppliedFailed" ||
			c.Message != want || c.LastTransitionTime != later {
			t.Errorf("%s: %+v, want False: %s", kind, c, want)
		}
		if again := Binding(b, works, nil, noon); !reflect.DeepEqual(again, b.Status) {
			t.Errorf("%s: a second time gives\n%+v\nnot\n%+v", kind, again, b.Status)
		}
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "R"})
		if b.Status = Binding(b, works, nil, later); !meta.IsStatusConditionTrue(b.Status.Conditions,
			workv1alpha2.FullyApplied) {
			t.Errorf("%s: when all is well, %+v", kind, b.Status.Conditions)
		}
	}
}

func TestOnlyRoutedClustersCount(t *testing.T) {
	b := binding("m1", "m2", "m3")
	b.Annotations = map[string]string{"argosy.io/routed-to": "m2"}
	b.Status = Binding(b, []workv1alpha1.Work{applied("m2")}, nil, noon)
	if !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied) {
		t.Errorf("got %+v", b.Status.Conditions)
	}
	if got := describe(Items(b, nil)); got != `m2 applied {"replicas":1} Healthy` {
		t.Errorf("folded are %s", got)
	}
}

func TestForeignStatusFieldsAreKept(t *testing.T) {
	b := binding("m1")
	b.Status = workv1alpha2.ResourceBindingStatus{
		SchedulerObservedGeneration: 3, SchedulerObservedAffinityName: "a", LastScheduledTime: &noon,
		Conditions: []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: "True", LastTransitionTime: noon}},
	}
	before := b.DeepCopy()
	got := Binding(b, []workv1alpha1.Work{applied("m1")}, nil, later)
	if !reflect.DeepEqual(b, before) {
		t.Error("the binding was changed")
	}
	if got.SchedulerObservedGeneration != 3 || got.SchedulerObservedAffinityName != "a" ||
		!got.LastScheduledTime.Equal(&noon) ||
		!reflect.DeepEqual(got.Conditions[0], before.Status.Conditions[0]) || len(got.Conditions) != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestEqualStatusInOtherEncodingChangesNothing(t *testing.T) {
	b := binding("m1", "m2")
	b.Status = Binding(b, []workv1alpha1.Work{work("m1", "True", "", `{"a":1,"b":{"c":[2]}}`),
		work("m2", "False", "no", "")}, nil, noon)
	got := Binding(b, []workv1alpha1.Work{work("m2", "False", "no", ""),
		work("m1", "True", "", `{ "b": {"c": [2]}, "a": 1 }`)}, nil, later)
	if !reflect.DeepEqual(got, b.Status) {
		t.Errorf("got\n%s\n%+v\nwant\n%s\n%+v", describe(got.AggregatedStatus), got.Conditions,
			describe(b.Status.AggregatedStatus),
			b.Status.Conditions)
	}
}

func TestOrderOfWorksDoesNotMatter(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 0))
		b := binding()
		var works []workv1alpha1.Work
		for i := range 1 + r.IntN(6) {
			cluster := fmt.Sprint("m", i)
			if r.IntN(5) > 0 {
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
			}
			if r.IntN(5) > 0 {
				state := []metav1.ConditionStatus{"True", "False", ""}[r.IntN(3)]
				works = append(works, work(cluster, state, "why", fmt.Sprintf(`{"replicas":%d}`, r.IntN(3))))
			}
		}
		want := Binding(b, works, nil, noon)
		for range 5 {
			r.Shuffle(len(works), func(i, j int) { works[i], works[j] = works[j], works[i] })
			r.Shuffle(len(b.Spec.Clusters), func(i, j int) {
				b.Spec.Clusters[i], b.Spec.Clusters[j] = b.Spec.Clusters[j], b.Spec.Clusters[i]
			})
			if got := Binding(b, works, nil, noon); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, describe(got.AggregatedStatus), describe(want.AggregatedStatus))
			}
		}
		b.Status = want
		if again := Binding(b, works, nil, later); !reflect.DeepEqual(again, want) {
			t.Fatalf("seed %d: a second time gives\n%+v\nnot\n%+v", seed, again, want)
		}
	}
}

func TestClusterWithoutReportIsBehindNotAbsent(t *testing.T) {
	b := binding("m2", "m1", "m3")
	b.Status = Binding(b, []workv1alpha1.Work{applied("m2")}, nil, noon)
	if got, want := describe(Items(b, nil)), `m1 Unknown; m2 applied {"replicas":1} Healthy; m3 Unknown`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := describe(b.Status.AggregatedStatus); got != `m2 applied {"replicas":1} Healthy` {
		t.Errorf("the binding's own status became %s", got)
	}
}

func TestFailedOperationsAreReportedPerCluster(t *testing.T) {
	mute := func(cluster string) workv1alpha1.Work {
		w := applied(cluster)
		w.Status.Conditions = append(w.Status.Conditions,
			metav1.Condition{Type: "InterpretHealth", Status: metav1.ConditionFalse, Message: "line 3: nil"})
		return w
	}
	b := binding("a", "b", "c", "d", "e")
	retains := applied("a")
	retains.Status.Conditions = append(retains.Status.Conditions,
		metav1.Condition{Type: "Retain", Status: metav1.ConditionFalse, Message: "line 2: nil"})
	b.Status = Binding(b, []workv1alpha1.Work{retains}, nil, noon)
	if c := meta.FindStatusCondition(b.Status.Conditions, "Retain"); c == nil || c.Message != `cluster "a": line 2: nil` {
		t.Errorf("a Retain that fails is said as %+v", c)
	}
	b.Status = Binding(b, []workv1alpha1.Work{applied("a"), mute("b"), mute("left")}, nil, noon)
	c := meta.FindStatusCondition(b.Status.Conditions, "InterpretHealth")
	if c == nil || c.Status != metav1.ConditionFalse || c.Message != `cluster "b": line 3: nil` ||
		c.LastTransitionTime != noon {
		t.Errorf("one cluster is said as %+v", c)
	}
	b.Status = Binding(b, []workv1alpha1.Work{mute("a"), mute("b"), mute("c"), mute("d"), mute("e")}, nil, later)
	c = meta.FindStatusCondition(b.Status.Conditions, "InterpretHealth")
	if c == nil || !strings.HasSuffix(c.Message, `cluster "c": line 3: nil; and 2 more`) || c.LastTransitionTime != noon {
		t.Errorf("many clusters are said as %+v", c)
	}
	b.Status = Binding(b, []workv1alpha1.Work{applied("a")}, nil, later)
	if c = meta.FindStatusCondition(b.Status.Conditions, "InterpretHealth"); c != nil {
		t.Errorf("when all is well it is said that %+v", c)
	}
}

// etcd accepts 1.5 MiB per object: large statuses of a few clusters must not block the others.
func TestLargeStatusesDoNotBlockOthers(t *testing.T) {
	var names []string
	var works []workv1alpha1.Work
	for i := range 500 {
		name := fmt.Sprintf("m%03d", i)
		names = append(names, name)
		state, message, status := metav1.ConditionTrue, "", `{"replicas":1}`
		if i%10 == 0 {
			status = fmt.Sprintf(`{"note":%q}`, strings.Repeat("x", 250<<10))
		}
		if i%2 == 1 {
			state, message, status = "False", strings.Repeat("y", 4<<10), ""
		}
		works = append(works, work(name, state, message, status))
	}
	b := binding(names...)
	got := Binding(b, works, nil, noon)
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 1200<<10 {
		t.Errorf("the status has %d bytes", len(raw))
	}
	if len(got.AggregatedStatus) != 500 {
		t.Errorf("%d clusters are in it, want 500", len(got.AggregatedStatus))
	}
	for i, item := range got.AggregatedStatus {
		small := i%2 == 0 && i%10 != 0
		if small && (item.Status == nil || string(item.Status.Raw) != `{"replicas":1}`) || i%2 == 0 && !item.Applied ||
			i%2 == 1 && !strings.HasPrefix(item.AppliedMessage, "yyy") {
			t.Fatalf("%s has %.200v", item.ClusterName, item)
		}
	}
	c := meta.FindStatusCondition(got.Conditions, "InterpretStatus")
	if c == nil || c.Status != metav1.ConditionFalse ||
		!strings.Contains(c.Message, `cluster "m000": its status has 256011 bytes`) ||
		!strings.Contains(c.Message, "; and 44 more") {
		t.Errorf("it is said that %+v", c)
	}
	b.Status = got
	if again := Binding(b, works, nil, later); !reflect.DeepEqual(again, got) {
		t.Error("a second time gives another status")
	}

	some := append([]workv1alpha1.Work{work("m000", "True", "", fmt.Sprintf(`{"note":%q}`, strings.Repeat("x", 250<<10)))},
		works[2:9:9]...)
	got = Binding(binding(names[:9]...), some, nil, noon)
	if got.AggregatedStatus[0].Status == nil || meta.FindStatusCondition(got.Conditions, "InterpretStatus") != nil {
		t.Error("one large status that fits is left out")
	}
}

func TestAFinishedRunWithoutItsClusterIsFullyApplied(t *testing.T) {
	over := []metav1.Condition{{Type: workv1alpha2.WorksWritten, Status: metav1.ConditionTrue,
		Reason: workv1alpha2.ReasonRunFinished}, {Type: workv1alpha2.FullyApplied, Status: metav1.ConditionFalse}}
	for name, c := range map[string]struct {
		clusters   []string
		works      []workv1alpha1.Work
		conditions []metav1.Condition
		status     metav1.ConditionStatus
		reason     string
	}{
		"in another cluster": {[]string{"m2"}, nil, over,
			metav1.ConditionTrue, workv1alpha2.ReasonRunFinished},
		"a failed run": {nil, nil, []metav1.Condition{{Type: workv1alpha2.WorksWritten, Status: metav1.ConditionTrue,
			Reason: workv1alpha2.ReasonRunFailed}, over[1]}, metav1.ConditionTrue, workv1alpha2.ReasonRunFailed},
		"in no cluster": {nil, nil, over,
			metav1.ConditionTrue, workv1alpha2.ReasonRunFinished},
		"in one of two clusters": {[]string{"m1", "m2"}, []workv1alpha1.Work{applied("m1")}, over,
			metav1.ConditionTrue, workv1alpha2.ReasonRunFinished},
		"a refused Work": {[]string{"m1", "m2"}, []workv1alpha1.Work{work("m1", metav1.ConditionFalse, "no", "")}, over,
			metav1.ConditionFalse, workv1alpha2.ReasonFullyAppliedFailed},
		"in its cluster": {[]string{"m1"}, []workv1alpha1.Work{applied("m1")}, over,
			metav1.ConditionTrue, workv1alpha2.ReasonFullyAppliedSuccess},
		"a run that goes on": {[]string{"m2"}, nil, over[1:], metav1.ConditionFalse, workv1alpha2.ReasonFullyAppliedFailed},
	} {
		b := binding(c.clusters...)
		b.Status.Conditions = c.conditions
		got := meta.FindStatusCondition(Binding(b, c.works, nil, noon).Conditions, workv1alpha2.FullyApplied)
		if got == nil || got.Status != c.status || got.Reason != c.reason {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
