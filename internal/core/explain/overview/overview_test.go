package overview_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

var noon = metav1.NewTime(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))

func cluster(name string, ready metav1.ConditionStatus,
	change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if ready != "" {
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready,
			Reason: "ClusterNotReachable", Message: "no route", LastTransitionTime: noon}}
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func TestVerdictOnACluster(t *testing.T) {
	for want, c := range map[overview.ClusterState]*clusterv1alpha1.Cluster{
		overview.Ready:      cluster("a", metav1.ConditionTrue),
		overview.NotReady:   cluster("a", metav1.ConditionFalse),
		overview.NotSeenYet: cluster("a", ""),
		overview.Leaving: cluster("a", metav1.ConditionFalse, func(c *clusterv1alpha1.Cluster) {
			c.DeletionTimestamp = &noon
		}),
		overview.WorksKept: cluster("a", metav1.ConditionTrue, func(c *clusterv1alpha1.Cluster) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Status: metav1.ConditionTrue,
				Type: clusterv1alpha1.ClusterConditionWorksKept, Reason: "TooMany"})
		}),
	} {
		v := overview.Judge(c)
		if v.State != want || v.OK() != (want == overview.Ready) || (v.What == "") != v.OK() || (v.Next == "") != v.OK() {
			t.Errorf("%s: %+v", want, v)
		}
	}
}

func TestRowOfClusterCountsRequests(t *testing.T) {
	c := cluster("a", metav1.ConditionTrue, func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule},
			{Key: "y", Effect: corev1.TaintEffectPreferNoSchedule}}
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4")},
			Allocated:   corev1.ResourceList{"cpu": resource.MustParse("500m")},
			Allocating:  corev1.ResourceList{"cpu": resource.MustParse("1")}}
	})
	row := overview.RowOfCluster(c)
	if row.CPU == nil || *row.CPU != (overview.Amount{Used: 1500, All: 4000}) || row.Memory != nil {
		t.Errorf("cpu %v, memory %v", row.CPU, row.Memory)
	}
	if !slices.Equal(row.Taints, []string{"x:NoSchedule"}) || row.Since != noon.Unix() {
		t.Errorf("taints %v, since %d", row.Taints, row.Since)
	}
}

// deployment returns the binding of the Deployment shop/web with three replicas, and one in each cluster.
func deployment(items ...workv1alpha2.AggregatedStatusItem) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	b.Spec.Replicas = 3
	for _, item := range items {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: item.ClusterName, Replicas: 1})
	}
	b.Status.AggregatedStatus = items
	return b
}

func item(name string, applied bool, message string, health workv1alpha1.ResourceHealth,
	status string) workv1alpha2.AggregatedStatusItem {
	i := workv1alpha2.AggregatedStatusItem{ClusterName: name, Applied: applied, AppliedMessage: message, Health: health}
	if status != "" {
		i.Status = &runtime.RawExtension{Raw: []byte(status)}
	}
	return i
}

func TestRowOfWorkloadHasTheWorstStateFirst(t *testing.T) {
	b := deployment(
		item("a", true, "", workv1alpha1.ResourceHealthy, `{"readyReplicas": 2}`),
		item("b", true, "", workv1alpha1.ResourceUnhealthy, `{"readyReplicas": 1}`),
		item("c", false, "quota exceeded", "", "not JSON"),
		item("d", false, "", "", ""))
	row := overview.RowOfWorkload(b, state.Facts{})
	if row.String() != "Deployment.apps shop/web" || row.State != state.Failed || row.Ready != 3 || row.Wanted != 4 {
		t.Errorf("row %+v", row)
	}
	var places []string
	for _, p := range row.Places {
		places = append(places, p.Cluster+" "+string(p.State))
	}
	if got := strings.Join(places, ", "); got != "c Failed, b Unhealthy, d Progressing, a Healthy" {
		t.Errorf("places %s", got)
	}
	if got := row.Sentence(0); got != "not applied in c: quota exceeded" {
		t.Errorf("sentence %q", got)
	}
}

func TestDuplicatedWorkloadWantsItsReplicasInEachCluster(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{Replicas: 2,
		Clusters: []workv1alpha2.TargetCluster{{Name: "eu", Replicas: 2}, {Name: "us", Replicas: 2}}}}
	if row := overview.RowOfWorkload(b, state.Facts{}); row.Wanted != 4 {
		t.Errorf("it wants %d replicas", row.Wanted)
	}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "eu", Replicas: 1}}
	if row := overview.RowOfWorkload(b, state.Facts{}); row.Wanted != 2 {
		t.Errorf("with a replica that has no cluster it wants %d", row.Wanted)
	}
}

// What a workload requires is where the workload is, without a scheduler. A finished run has no pods that should be
// ready.
func TestRowsOfAttachedObjectsAndOfFinishedRuns(t *testing.T) {
	b := deployment(item("a", true, "", workv1alpha1.ResourceHealthy, ""))
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: "shop",
		Name: "web"}
	b.Spec.Replicas, b.Spec.RequiredBy = 0, []workv1alpha2.BindingSnapshot{{Name: "web", Clusters: b.Spec.Clusters}}
	b.Spec.Clusters = nil
	if row := overview.RowOfWorkload(b, state.Facts{}); row.State != state.Healthy || len(row.Places) != 1 {
		t.Errorf("an attached object is %+v", row)
	}
	run := deployment(item("a", true, "", workv1alpha1.ResourceHealthy, `{"phase": "Succeeded"}`))
	run.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow",
		Namespace: "shop", Name: "load"}
	run.Spec.Replicas = 1
	if row := overview.RowOfWorkload(run, state.Facts{}); row.State != state.Healthy || row.Ready != 0 || row.Wanted != 0 {
		t.Errorf("a finished run is %+v", row)
	}
	over := []metav1.Condition{{Type: workv1alpha2.WorksWritten, Status: metav1.ConditionTrue,
		Reason: workv1alpha2.ReasonRunFinished}, {Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse,
		Reason: workv1alpha2.ReasonNoClusterFit, Message: "0/1 clusters are available"}}
	for name, clusters := range map[string][]workv1alpha2.TargetCluster{"no cluster": nil, "another": {{Name: "b"}}} {
		left := run.DeepCopy()
		left.Spec.Clusters, left.Status.AggregatedStatus, left.Status.Conditions = clusters, nil, over
		row := overview.RowOfWorkload(left, state.Facts{})
		if row.Bad || row.State != state.Ended || row.What != workv1alpha2.MessageRunFinished {
			t.Errorf("a finished run that is in %s is %+v", name, row)
		}
		if items, _ := overview.Attention(overview.Facts{Workloads: []*overview.WorkloadRow{&row}}, 9); len(items) > 0 {
			t.Errorf("a finished run that is in %s needs attention: %+v", name, items)
		}
		left.Status.Conditions = slices.Clone(over)
		left.Status.Conditions[0].Reason = workv1alpha2.ReasonRunFailed
		row = overview.RowOfWorkload(left, state.Facts{})
		if !row.Bad || row.State != state.Unhealthy || row.What != workv1alpha2.MessageRunFailed {
			t.Errorf("a failed run that is in %s is %+v", name, row)
		}
		if items, _ := overview.Attention(overview.Facts{Workloads: []*overview.WorkloadRow{&row}}, 9); len(items) != 1 ||
			items[0].What != "not healthy: "+workv1alpha2.MessageRunFailed {
			t.Errorf("of a failed run that is in %s, this needs attention: %+v", name, items)
		}
		left.Status.Conditions = over[1:]
		if row := overview.RowOfWorkload(left, state.Facts{}); !row.Bad {
			t.Errorf("a run in %s that is not placed is %+v", name, row)
		}
	}
}

// A cluster whose fault pods do not explain is listed beside one whose fault they do.
func TestAttentionNamesTheClusterThatIsNotExplained(t *testing.T) {
	b := deployment(item("a", true, "", workv1alpha1.ResourceUnhealthy, ""),
		item("b", true, "", workv1alpha1.ResourceUnhealthy, `{"readyReplicas": 1}`))
	b.Status.AggregatedStatus[1].UnhealthySince = &noon
	row := overview.RowOfWorkload(b, state.Facts{})
	items, _ := overview.Attention(overview.Facts{Workloads: []*overview.WorkloadRow{&row},
		Troubled: []pods.Workload{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
			Report: pods.Report{Cluster: "a", Pods: 2, Troubles: []pods.Group{{Pods: 1, Reason: "ImagePullBackOff"}}}}}}, 9)
	if len(items) != 2 || items[1].Cluster != "b" || items[1].Since != noon.Unix() ||
		items[1].What != "not healthy in b and 1 more: readyReplicas 1" {
		t.Errorf("the items are %+v", items)
	}
}

func TestWorkloadScaledToZeroIsHealthy(t *testing.T) {
	b := deployment()
	b.Spec.Replicas, b.Spec.ReplicaRequirements = 0, &workv1alpha2.ReplicaRequirements{}
	b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue}}
	if row := overview.RowOfWorkload(b, state.Facts{}); row.State != state.Healthy || row.Bad {
		t.Errorf("it is %+v", row)
	}
}

// Each is a fault that `argosy status` lists.
func TestAttentionListsEachFault(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, Message: message, LastTransitionTime: noon}}
	}
	healthy := func() *workv1alpha2.ResourceBinding {
		return deployment(item("a", true, "", workv1alpha1.ResourceHealthy, ""))
	}
	unplaced, override := healthy(), healthy()
	unplaced.Status.Conditions = condition(workv1alpha2.Scheduled, metav1.ConditionFalse, "0/2 clusters are available")
	override.Status.Conditions = condition(workv1alpha2.WorksWritten, metav1.ConditionFalse, "override o: no such path")
	row := func(b *workv1alpha2.ResourceBinding) overview.Facts {
		row := overview.RowOfWorkload(b, state.Facts{})
		return overview.Facts{Workloads: []*overview.WorkloadRow{&row}}
	}
	works := []ocmv1.ManifestWork{{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "web"}}, {}}
	works[0].Status.Conditions = condition(ocmv1.Applied, metav1.ConditionFalse, "Failed to apply manifest work")
	works[1].Status.Conditions = condition(ocmv1.Applied, metav1.ConditionTrue, "")
	var faulty []overview.Item
	for i := range works {
		if item, is := overview.ItemOfManifestWork(&works[i]); is {
			faulty = append(faulty, item)
		}
	}
	member := why.ExplainMember(why.MemberFacts{Cluster: cluster("eu", metav1.ConditionTrue), ManifestWorks: works})
	if f := member.Findings; len(f) != 1 || f[0].Severity != why.Problem || f[0].Next == "" ||
		f[0].What != "1 ManifestWork not applied, such as web" {
		t.Errorf("why cluster lists %+v", f)
	}
	for name, c := range map[string]struct {
		facts overview.Facts
		want  string
	}{
		"not scheduled":     {row(unplaced), "not placed: 0/2 clusters are available"},
		"a failed override": {row(override), "not applied: WorksWritten: override o: no such path"},
		"a conflict": {row(deployment(item("a", false, "the object exists and the hub does not manage it", "", ""))),
			"not applied in a: the object exists and the hub does not manage it"},
		"a ManifestWork": {overview.Facts{Others: faulty}, "not applied: Failed to apply manifest work"},
	} {
		items, more := overview.Attention(c.facts, 9)
		if len(items) != 1 || more > 0 || items[0].What != c.want || items[0].Severity != why.Problem ||
			items[0].Next == "" {
			t.Errorf("%s: %+v", name, items)
		}
	}
}

func TestStateOfWorkloadWithoutClusters(t *testing.T) {
	b := deployment()
	if row := overview.RowOfWorkload(b, state.Facts{}); row.State != state.Progressing {
		t.Errorf("a new one is %s", row.State)
	}
	b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse,
		Message: "0/2 clusters are available", LastTransitionTime: noon}}
	if row := overview.RowOfWorkload(b, state.Facts{}); row.State != overview.Unplaced || row.Since != noon.Unix() ||
		row.Sentence(-1) != "not placed: 0/2 clusters are available" {
		t.Errorf("%+v", row)
	}
	b.DeletionTimestamp = &noon
	if row := overview.RowOfWorkload(b, state.Facts{}); row.State != overview.Deleting {
		t.Errorf("a deleted one is %s", row.State)
	}
}

func TestBrakesNeedAttention(t *testing.T) {
	row := new(overview.RowOfCluster(cluster("a", metav1.ConditionTrue, func(c *clusterv1alpha1.Cluster) {
		c.Status.Brakes = []string{"kube-system", "shop"}
	})))
	if !slices.Equal(row.Brakes, []string{"kube-system", "shop"}) {
		t.Errorf("the row has the brakes %q", row.Brakes)
	}
	items, _ := overview.Attention(overview.Facts{Clusters: []*overview.ClusterRow{row}}, 9)
	var got []string
	for _, i := range items {
		got = append(got, fmt.Sprint(i.Key, " ", i.Severity, " ", i.Cluster, ": ", i.What, ": ", i.Next))
	}
	if want := []string{"brake/a/kube-system Attention a: brake on a: the hub writes and deletes nothing in the cluster: " +
		"`argosy brake off -C a` lets the hub continue"}; !slices.Equal(got, want) {
		t.Errorf("the items are %q, want %q", got, want)
	}
}

// The clusters are one item: in an outage, they have the same reason.
func TestAttentionListsPausedFailoverOnce(t *testing.T) {
	var rows []*overview.ClusterRow
	for _, name := range []string{"a", "b", "c", "d", "ready"} {
		rows = append(rows, new(overview.RowOfCluster(cluster(name, metav1.ConditionTrue, func(c *clusterv1alpha1.Cluster) {
			if name != "ready" {
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Status: metav1.ConditionTrue,
					Type: clusterv1alpha1.ClusterConditionFailoverPaused, Message: "4 of 5 clusters were lost"})
			}
		}))))
	}
	items, _ := overview.Attention(overview.Facts{Clusters: rows}, 9)
	if len(items) != 1 || items[0].Severity != why.Problem || items[0].Part != "failover" || items[0].Next == "" ||
		items[0].What != "paused for a, b, c, d: 4 of 5 clusters were lost" {
		t.Errorf("the items are %+v", items)
	}
	if items, _ := overview.Attention(overview.Facts{Clusters: rows[4:]}, 9); len(items) > 0 {
		t.Errorf("without a pause, the items are %+v", items)
	}
}

func TestAttentionHasTheWorstFirst(t *testing.T) {
	early := metav1.NewTime(noon.Add(-time.Hour))
	facts := overview.Facts{
		Hub: []upkeep.Finding{{Name: "store", Message: "it is full", Next: "defragment it"}},
		Clusters: []*overview.ClusterRow{
			new(overview.RowOfCluster(cluster("well", metav1.ConditionTrue))),
			new(overview.RowOfCluster(cluster("new", ""))),
			new(overview.RowOfCluster(cluster("tainted", metav1.ConditionTrue, func(c *clusterv1alpha1.Cluster) {
				c.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
			}))),
			new(overview.RowOfCluster(cluster("lost", metav1.ConditionFalse))),
			new(overview.RowOfCluster(cluster("lost-first", metav1.ConditionFalse, func(c *clusterv1alpha1.Cluster) {
				c.Status.Conditions[0].LastTransitionTime = early
			}))),
		},
		Workloads: []*overview.WorkloadRow{
			new(overview.RowOfWorkload(deployment(item("a", true, "", workv1alpha1.ResourceUnhealthy, "")), state.Facts{})),
		},
	}
	var got []string
	items, more := overview.Attention(facts, 6)
	for _, i := range items {
		got = append(got, i.Key)
		if i.What == "" {
			t.Errorf("%s has no sentence", i.Key)
		}
	}
	want := []string{"hub/store", "cluster/lost-first", "cluster/lost", "workload/Deployment.apps shop/web",
		"cluster/tainted", "cluster/new"}
	if !slices.Equal(got, want) || more != 0 {
		t.Errorf("the items are %q and %d more, want %q", got, more, want)
	}
	if first, more := overview.Attention(facts, 4); !reflect.DeepEqual(first, items[:4]) || more != 2 {
		t.Errorf("the first four are %+v and %d more", first, more)
	}

	// The reasons of pods replace the health of their workload.
	facts.Troubled = []pods.Workload{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
		Report: pods.Report{Cluster: "a", Pods: 2, Troubles: []pods.Group{{Pods: 1, Reason: "ImagePullBackOff"}}}}}
	items, _ = overview.Attention(facts, 6)
	i := slices.IndexFunc(items, func(i overview.Item) bool { return i.About == "workload" })
	if item := items[i]; item.Key != "pods/Deployment.apps shop/web/a" || item.Cluster != "a" ||
		item.What != "1 of 2 pods: ImagePullBackOff" || item.Next != "`argosy why deployment web -n shop`" {
		t.Errorf("the item is %+v", item)
	}
	if len(items) != len(want) {
		t.Errorf("%d items, want %d", len(items), len(want))
	}
}

func TestReleaseWaitingForApprovalNeedsAttention(t *testing.T) {
	r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-7"}}
	r.Status.Phase = releasev1alpha1.ReleaseRunning
	for reason, want := range map[string]why.Severity{
		releasev1alpha1.ReasonWaitingForApproval: why.Attention,
		releasev1alpha1.ReasonPausedByFailure:    why.Problem,
		releasev1alpha1.ReasonFleetHalted:        why.Problem,
		releasev1alpha1.ReasonCheckUnavailable:   why.Attention,
		releasev1alpha1.ReasonSoaking:            "",
	} {
		r.Status.Conditions = []metav1.Condition{{Type: releasev1alpha1.ReleaseProgressing, Reason: reason,
			Message: "gate prod", LastTransitionTime: noon}}
		row, waits := overview.ItemOfRelease(r)
		if waits != (want != "") {
			t.Errorf("%s: %t", reason, waits)
		}
		if s := overview.SummaryOfRelease(r); s.Severity != want || s.What != row.What || s.Next != row.Next {
			t.Errorf("%s: the list has %+v, and what needs attention %+v", reason, s, row)
		}
		if !waits {
			continue
		}
		items, _ := overview.Attention(overview.Facts{Others: []overview.Item{row}}, 6)
		if len(items) != 1 || items[0].Severity != want || items[0].About != "release" || items[0].Since != noon.Unix() ||
			items[0].Next == "" || items[0].What == "" {
			t.Errorf("%s: %+v", reason, items)
		}
	}
	if _, waits := overview.ItemOfRelease(&releasev1alpha1.Release{}); waits {
		t.Error("a new release waits for a person")
	}
}

func TestNothingNeedsAttention(t *testing.T) {
	items, more := overview.Attention(overview.Facts{
		Clusters: []*overview.ClusterRow{new(overview.RowOfCluster(cluster("a", metav1.ConditionTrue)))},
		Workloads: []*overview.WorkloadRow{new(overview.RowOfWorkload(deployment(item("a", true, "",
			workv1alpha1.ResourceHealthy, "")), state.Facts{}))}}, 6)
	if len(items)+more > 0 {
		t.Errorf("items %+v and %d more", items, more)
	}
}

func TestTrafficAgainstARemedyNeedsAttention(t *testing.T) {
	kept := metav1.Condition{Type: networkingv1alpha1.TrafficKept, Status: metav1.ConditionTrue, LastTransitionTime: noon,
		Message: "traffic to m1 continues"}
	item, is := overview.ItemOfTraffic("MultiClusterService", "shop", "web", []metav1.Condition{kept})
	if !is || item.What != kept.Message || item.Next != "`argosy why multiclusterservice web -n shop`" ||
		item.Severity != why.Attention || item.Since != noon.Unix() {
		t.Errorf("item %t: %+v", is, item)
	}
	kept.Status = metav1.ConditionFalse
	for name, conditions := range map[string][]metav1.Condition{"none": nil, "over": {kept}} {
		if item, is := overview.ItemOfTraffic("MultiClusterService", "shop", "web", conditions); is {
			t.Errorf("%s: %+v", name, item)
		}
	}
}
