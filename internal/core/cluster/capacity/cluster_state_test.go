package capacity

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestReplicaFitsOnOneNode(t *testing.T) {
	anywhere := &workv1alpha2.NodeClaim{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}
	affinity := func(terms ...corev1.NodeSelectorTerm) *workv1alpha2.NodeClaim {
		return &workv1alpha2.NodeClaim{HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	zone := func(operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: operator,
			Values: values}}}
	}
	named := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name",
		Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}}
	two := []any{aNode("a", "cpu 2, memory 8Gi, pods 10", labelled("zone", "1")),
		aNode("b", "cpu 2, memory 8Gi, pods 10", labelled("zone", "2"))}
	for _, c := range []struct {
		name string
		have []any
		need *Requirement
		want int32
	}{
		{"as often as it divides what is free", two, needs("cpu 500m", nil), 8},
		{"not where only the sum of nodes would do", two, needs("cpu 3", nil), 0},
		{"by its scarcest resource, node by node",
			[]any{aNode("a", "cpu 8, memory 1Gi, pods 10"), aNode("b", "cpu 1, memory 8Gi, pods 10")},
			needs("cpu 1, memory 1Gi", nil), 2},
		{"one slot for a pod each", []any{aNode("a", "cpu 8, pods 3")}, needs("", nil), 3},
		{"none where the kubelet takes no pods", []any{aNode("a", "cpu 8")}, needs("", nil), 0},
		{"beside the pods that are there", append(two, aPod("p", "a", "cpu 1500m")), needs("cpu 1", nil), 2},
		{"also beside those that are being deleted",
			append(two, aPod("p", "a", "cpu 1500m", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })),
			needs("cpu 1", nil), 2},
		{"where ended pods were", append(two,
			aPod("p", "a", "cpu 2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })), needs("cpu 1", nil), 4},
		{"where one runs over, none, and it does not eat the others' room", append(two, aPod("p", "a", "cpu 9")),
			needs("cpu 1", nil), 2},
		{"not beside a pod that waits and would fit", append(two, aPod("p", "", "cpu 2")), needs("cpu 1", nil), 2},
		{"beside a pod that waits and fits nowhere", append(two, aPod("p", "", "cpu 3")), needs("cpu 1", nil), 4},
		{"not on a node that is not ready", []any{aNode("a", "cpu 2, pods 9", notReady), aNode("b", "cpu 2, pods 9")},
			needs("cpu 1", nil), 2},
		{"not on a cordoned node", []any{aNode("a", "cpu 2, pods 9", cordon)}, needs("cpu 1", nil), 0},
		{"on a cordoned node that it tolerates", []any{aNode("a", "cpu 2, pods 9", cordon)}, needs("cpu 1", anywhere), 2},
		{"not on a tainted node", []any{aNode("a", "cpu 2, pods 9", tainted("gpu", corev1.TaintEffectNoSchedule)),
			aNode("b", "cpu 2, pods 9", tainted("gone", corev1.TaintEffectNoExecute))}, needs("cpu 1", nil), 0},
		{"on a tainted node that it tolerates",
			[]any{aNode("a", "cpu 2, pods 9", tainted("gpu", corev1.TaintEffectNoSchedule)),
				aNode("b", "cpu 2, pods 9", tainted("gone", corev1.TaintEffectNoExecute))},
			needs("cpu 1", &workv1alpha2.NodeClaim{Tolerations: []corev1.Toleration{{Key: "gpu",
				Operator: corev1.TolerationOpExists}}}), 2},
		{"on a node that would rather not",
			[]any{aNode("a", "cpu 2, pods 9", tainted("old", corev1.TaintEffectPreferNoSchedule))}, needs("cpu 1", nil), 2},
		{"where the selector says", two, needs("cpu 1",
			&workv1alpha2.NodeClaim{NodeSelector: map[string]string{"zone": "2"}}), 2},
		{"where one term of the affinity says", two,
			needs("cpu 1", affinity(zone(corev1.NodeSelectorOpIn, "1"), zone(corev1.NodeSelectorOpIn, "7"))), 2},
		{"not where the affinity says not", two, needs("cpu 1", affinity(zone(corev1.NodeSelectorOpNotIn, "1", "2"))), 0},
		{"on the node that is named", two, needs("cpu 1", affinity(named)), 2},
		{"nowhere by an affinity that cannot be read", two, needs("cpu 1", affinity(zone("Near", "1"))), 0},
		{"of extended resources, where there are any",
			[]any{aNode("a", "cpu 9, pods 9, nvidia.com/gpu 3"), aNode("b", "cpu 9, pods 9")},
			needs("cpu 1, nvidia.com/gpu 1", nil), 3},
		{"of ephemeral storage", []any{aNode("a", "cpu 9, pods 9, ephemeral-storage 10Gi"),
			aPod("p", "a", "ephemeral-storage 4Gi")}, needs("ephemeral-storage 5Gi", nil), 1},
		{"of CPU in thousandths, and memory in bytes that are no whole units", []any{aNode("a", "cpu 1, memory 1G, pods 9")},
			needs("cpu 333m, memory 333M", nil), 3},
		{"up to what a number holds", []any{aNode("a", "pods 9000000000"), aNode("b", "pods 9000000000")}, needs("", nil),
			math.MaxInt32},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := NewClusterState().set(c.have...).Replicas(c.need); got != c.want {
				t.Errorf("there is room for %d, want %d", got, c.want)
			}
		})
	}
}

func TestPodRequestsMatchScheduler(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	container := func(requests string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(requests)}}
	}
	sidecar := func(requests string) corev1.Container {
		c := container(requests)
		c.RestartPolicy = &always
		return c
	}
	for _, c := range []struct {
		name string
		spec corev1.PodSpec
		want int64
	}{
		{"the sum of its containers", corev1.PodSpec{Containers: []corev1.Container{container("cpu 1"), container("cpu 2")}},
			3000},
		{"an init container that needs more than they", corev1.PodSpec{InitContainers: []corev1.Container{container("cpu 4")},
			Containers: []corev1.Container{container("cpu 1"), container("cpu 2")}}, 4000},
		{"init containers one after another",
			corev1.PodSpec{InitContainers: []corev1.Container{container("cpu 2"), container("cpu 2")},
				Containers: []corev1.Container{container("cpu 1")}}, 2000},
		{"a sidecar beside them", corev1.PodSpec{InitContainers: []corev1.Container{sidecar("cpu 1")},
			Containers: []corev1.Container{container("cpu 2")}}, 3000},
		{"a sidecar beside later init containers",
			corev1.PodSpec{InitContainers: []corev1.Container{sidecar("cpu 1"), container("cpu 4")},
				Containers: []corev1.Container{container("cpu 2")}}, 5000},
		{"its overhead", corev1.PodSpec{Overhead: list("cpu 250m"), Containers: []corev1.Container{container("cpu 1")}},
			1250},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := aPod("p", "a", "")
			c.spec.NodeName = "a"
			p.Spec = c.spec
			m := NewClusterState().set(aNode("a", "cpu 10, pods 9"), p)
			if got := m.byName["a"].requested[corev1.ResourceCPU]; got != c.want {
				t.Errorf("requests = %dm, want %dm", got, c.want)
			}
		})
	}
}

func TestQuotaLimitsReplicasOfItsNamespace(t *testing.T) {
	quota := func(namespace, hard, used string, differs ...func(*corev1.ResourceQuota)) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q" + hard + used}}
		q.Status.Hard, q.Status.Used = list(hard), list(used)
		for _, d := range differs {
			d(q)
		}
		return q
	}
	priority := func(operator corev1.ScopeSelectorOperator, values ...string) func(*corev1.ResourceQuota) {
		return func(q *corev1.ResourceQuota) {
			q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values}}}
		}
	}
	scoped := func(scope corev1.ResourceQuotaScope) func(*corev1.ResourceQuota) {
		return func(q *corev1.ResourceQuota) { q.Spec.Scopes = []corev1.ResourceQuotaScope{scope} }
	}
	for _, c := range []struct {
		name   string
		quotas []any
		need   *Requirement
		want   int32
	}{
		{"by requests", []any{quota("shop", "requests.cpu 10", "requests.cpu 7500m")}, needs("cpu 1", nil), 2},
		{"in units of its own, whatever the notation", []any{quota("shop", "cpu 2500m, memory 3G", "cpu 1, memory 1Gi")},
			needs("cpu 500m, memory 500Mi", nil), 3},
		{"by the number of pods", []any{quota("shop", "pods 5", "pods 3")}, needs("", nil), 2},
		{"by the number of pods as objects", []any{quota("shop", "count/pods 5", "count/pods 4")}, needs("", nil), 1},
		{"by extended resources", []any{quota("shop", "requests.nvidia.com/gpu 3", "requests.nvidia.com/gpu 2")},
			needs("nvidia.com/gpu 1", nil), 1},
		{"by the tightest", []any{quota("shop", "cpu 9", ""), quota("shop", "cpu 4", "")}, needs("cpu 1", nil), 4},
		{"by none of what is left when more is used than may be", []any{quota("shop", "cpu 1", "cpu 4")}, needs("cpu 1", nil),
			0},
		{"not by claims of storage", []any{quota("shop", "requests.storage 1", "")}, needs("cpu 1", nil), 20},
		{"by limits of cpu", []any{quota("shop", "limits.cpu 2", "")}, uses("cpu 10m", "limits.cpu 1", false), 2},
		{"by limits of cpu that are used in part", []any{quota("shop", "limits.cpu 2", "limits.cpu 1500m")},
			uses("cpu 10m", "limits.cpu 250m", false), 2},
		{"by limits of memory", []any{quota("shop", "limits.memory 3Gi", "limits.memory 1G")},
			uses("", "limits.memory 1Gi", false), 2},
		{"by limits of ephemeral storage", []any{quota("shop", "limits.ephemeral-storage 5Gi", "")},
			uses("", "limits.ephemeral-storage 2Gi", false), 2},
		{"by limits or requests, whichever is tighter", []any{quota("shop", "requests.cpu 3, limits.cpu 9", "")},
			uses("cpu 1", "limits.cpu 2", false), 3},
		{"not by limits that it does not have", []any{quota("shop", "limits.cpu 1", "")},
			uses("cpu 1", "limits.memory 1", false), 20},
		{"not by requests for what is limited", []any{quota("shop", "requests.cpu 1", "")},
			uses("", "limits.cpu 9", false), 200},
		{"not by those of other namespaces", []any{quota("other", "cpu 1", "")}, needs("cpu 1", nil), 20},
		{"by one for its priority class",
			[]any{quota("shop", "pods 3", "", priority(corev1.ScopeSelectorOpIn, "high", "low"))},
			newRequirement(list("cpu 1"), nil, "shop", "high"), 3},
		{"not by one for other classes", []any{quota("shop", "pods 3", "",
			priority(corev1.ScopeSelectorOpIn, "high", "low"))}, newRequirement(list("cpu 1"), nil, "shop", "mid"), 20},
		{"by one for all but other classes", []any{quota("shop", "pods 3", "", priority(corev1.ScopeSelectorOpNotIn, "low"))},
			newRequirement(list("cpu 1"), nil, "shop", "mid"), 3},
		{"not by one for any class when it has none",
			[]any{quota("shop", "pods 3", "", priority(corev1.ScopeSelectorOpExists))}, needs("cpu 1", nil), 20},
		{"by one for what requests nothing", []any{quota("shop", "pods 3", "", scoped(corev1.ResourceQuotaScopeBestEffort))},
			needs("", nil), 3},
		{"not by one for what requests nothing when it does",
			[]any{quota("shop", "pods 3", "", scoped(corev1.ResourceQuotaScopeBestEffort))}, needs("cpu 1", nil), 20},
		{"not by one for pods with a deadline",
			[]any{quota("shop", "pods 3", "", scoped(corev1.ResourceQuotaScopeTerminating))}, needs("cpu 1", nil), 20},
		{"by one for pods with a deadline when it has one",
			[]any{quota("shop", "pods 3", "", scoped(corev1.ResourceQuotaScopeTerminating))}, uses("cpu 1", "", true), 3},
		{"not by one for pods without a deadline when it has one",
			[]any{quota("shop", "pods 3", "", scoped(corev1.ResourceQuotaScopeNotTerminating))}, uses("cpu 1", "", true), 20},
		{"by one for its priority class that bounds limits",
			[]any{quota("shop", "limits.cpu 3", "", priority(corev1.ScopeSelectorOpDoesNotExist))},
			uses("cpu 1", "limits.cpu 1", false), 3},
		{"not by one for pods that request nothing when it has limits",
			[]any{quota("shop", "pods 3", "", scoped(corev1.ResourceQuotaScopeBestEffort))},
			uses("cpu 1", "limits.cpu 1", false), 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewClusterState().set(aNode("a", "cpu 20, memory 100Gi, nvidia.com/gpu 9, pods 200")).set(c.quotas...)
			if got := m.Replicas(c.need); got != c.want {
				t.Errorf("there is room for %d, want %d", got, c.want)
			}
		})
	}
}

func TestAssumptionUsesQuotaOfLimits(t *testing.T) {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"}}
	q.Spec.Hard = list("limits.cpu 5")
	m := NewClusterState().set(aNode("a", "cpu 20, pods 99"), q)
	need := uses("cpu 10m", "limits.cpu 1", false)
	m.Assume(Assumption{Key: "web", Workload: Workload{"shop", "Deployment", "web"}, Parts: []Part{{need, 1}},
		Replicas: 3})
	if got := m.Replicas(need); got != 2 {
		t.Errorf("the quota leaves %d, want 2 of 5", got)
	}
	q.Spec.Hard = list("limits.cpu 7")
	m.TakeGrown()
	if m.set(q); m.Replicas(need) != 4 || !m.TakeGrown() {
		t.Errorf("a greater quota leaves %d, want 4 of 7, and counts as room that appeared", m.Replicas(need))
	}
}

func TestAssumptionUsesQuota(t *testing.T) {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"}}
	q.Spec.Hard = list("cpu 5")
	m := NewClusterState().set(aNode("a", "cpu 20, pods 99"), q)
	m.assume("web", "cpu 1", 0, 3)
	if got := m.Replicas(needs("cpu 1", nil)); got != 2 {
		t.Errorf("the quota leaves %d, want 2 of 5", got)
	}
}

func TestAssumptionReservesRoomUntilPodsExist(t *testing.T) {
	m := NewClusterState().set(aNode("a", "cpu 4, pods 99"), aNode("b", "cpu 4, pods 99"))
	one := needs("cpu 1", nil)
	room := func(when string, want int32) {
		t.Helper()
		if got := m.Replicas(one); got != want {
			t.Errorf("%s: there is room for %d, want %d", when, got, want)
		}
	}
	m.assume("web", "cpu 1", 0, 3)
	room("placed", 5)
	m.set(aPod("web-1", "", "cpu 1", madeBy("web")))
	room("its first pod waits for a node", 5)
	m.set(aPod("web-1", "b", "cpu 1", madeBy("web")))
	room("its first pod has one", 5)
	m.set(aPod("web-2", "b", "cpu 1", madeBy("web")), aPod("web-3", "b", "cpu 1", madeBy("web")))
	room("all its pods are there", 5)
	if m.Assumes("web") {
		t.Error("the assumption still exists")
	}
	m.RemovePod("shop", "web-3")
	room("one of its pods ended", 6)

	m.set(aPod("web-3", "b", "cpu 1", madeBy("web")))
	m.assume("web", "cpu 1", 3, 5)
	room("scaled up by two", 3)
	m.assume("web", "cpu 1", 3, 5)
	room("said twice", 3)
	m.assume("web", "cpu 1", 5, 4)
	room("then down by one", 4)
	m.assume("api", "cpu 1", 0, 4)
	room("another that takes the rest", 0)
	m.set(aPod("api-1", "a", "cpu 1", madeBy("api-v2")))
	room("a pod of one with a longer name", 0)
	m.TakeGrown()
	m.Release("api")
	room("given up", 3)
	if !m.TakeGrown() {
		t.Error("TakeGrown does not report the new room")
	}
}

func TestAssumptionExpires(t *testing.T) {
	m := NewClusterState().set(aNode("a", "cpu 4, pods 99"))
	now := time.Unix(0, 0)
	m.Assume(Assumption{Key: "web", Workload: Workload{"shop", "CloneSet", "web"}, Parts: []Part{{needs("cpu 1", nil), 1}},
		Replicas: 3, Until: now.Add(time.Minute)})
	m.Assume(Assumption{Key: "web", Workload: Workload{"shop", "CloneSet", "web"}, Parts: []Part{{needs("cpu 1", nil), 1}},
		Before: 3, Replicas: 3, Until: now.Add(time.Hour)})
	m.Expire(now.Add(time.Minute - 1))
	if !m.Assumes("web") {
		t.Error("the assumption expired too early")
	}
	m.Expire(now.Add(time.Minute))
	if m.Assumes("web") {
		t.Error("the same assumption again extended its expiry")
	}
}

func TestPodsAreFoundThroughCreatedWorkloads(t *testing.T) {
	for _, c := range []struct {
		kind string
		pod  func(*corev1.Pod)
		seen bool
	}{
		{"CloneSet", ownedBy("CloneSet", "web"), true},
		{"CloneSet", ownedBy("CloneSet", "web-2"), false},
		{"Deployment", madeBy("web"), true},
		{"Deployment", madeBy("web-2"), false},
		{"Rollout", func(p *corev1.Pod) {
			ownedBy("ReplicaSet", "web-77")(p)
			p.Labels = map[string]string{"rollouts-pod-template-hash": "77"}
		}, true},
		{"UnitedDeployment", ownedBy("StatefulSet", "web-east-x2x"), true},
		{"UnitedDeployment", ownedBy("StatefulSet", "webs-east"), false},
		{"CronJob", ownedBy("Job", "web-2871"), true},
		{"ReplicaSet", ownedBy("ReplicaSet", "web"), true},
		{"Deployment", func(*corev1.Pod) {}, false},
	} {
		m := NewClusterState().set(aNode("a", "cpu 4, pods 99"))
		m.Assume(Assumption{Key: "k", Workload: Workload{"shop", c.kind, "web"}, Parts: []Part{{needs("cpu 1", nil), 1}},
			Replicas: 1})
		m.set(aPod("p", "a", "cpu 1", c.pod))
		p, _ := PodOf(aPod("p", "a", "", c.pod))
		if m.Assumes("k") == c.seen {
			t.Errorf("a pod of %v is one of %s web: %t, want %t", p.workload, c.kind, !c.seen, c.seen)
		}
	}
}

func TestComponentsFitTogetherOrNotAtAll(t *testing.T) {
	m := NewClusterState().set(aNode("a", "cpu 4, memory 4Gi, pods 99"), aNode("b", "cpu 4, memory 4Gi, pods 99"))
	for _, c := range []struct {
		name  string
		parts []Part
		want  int32
	}{
		{"a leader and two workers", []Part{{needs("cpu 1", nil), 1}, {needs("cpu 1500m", nil), 2}}, 2},
		{"workers that fit no node, whatever the others", []Part{{needs("cpu 1", nil), 1}, {needs("cpu 5", nil), 1}}, 0},
		{"large ones first, so that small ones do not stand in their way",
			[]Part{{needs("cpu 1", nil), 4}, {needs("cpu 4", nil), 1}}, 1},
		{"more than would ever be asked for", []Part{{needs("cpu 1m", nil), 1}}, maxSets},
		{"a part without replicas asks for nothing", []Part{{needs("cpu 9", nil), 0}, {needs("cpu 2", nil), 1}}, 4},
	} {
		for range 2 { // asking changes nothing
			if got := m.Sets(c.parts); got != c.want {
				t.Errorf("%s: room for %d sets, want %d", c.name, got, c.want)
			}
		}
	}
}

func TestTakeGrownReportsNewRoom(t *testing.T) {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"}}
	q.Spec.Hard = list("cpu 1")
	wider := q.DeepCopy()
	wider.Spec.Hard = list("cpu 2")
	// expected has a pod appear while one replica of web is expected, with those requests.
	expected := func(requests string, p *corev1.Pod) func(*ClusterState) {
		return func(m *ClusterState) {
			m.assume("web", requests, 0, 1)
			m.set(p)
		}
	}
	// replaced has web expect first one number of replicas, then another.
	replaced := func(first, then int64) func(*ClusterState) {
		return func(m *ClusterState) {
			m.assume("web", "cpu 1", 0, first)
			m.assume("web", "cpu 1", 0, then)
		}
	}
	for _, c := range []struct {
		name   string
		before []any
		change func(*ClusterState)
		want   bool
	}{
		{"a node comes", nil, func(m *ClusterState) { m.set(aNode("z", "cpu 1")) }, true},
		{"a node is uncordoned", []any{aNode("z", "cpu 1", cordon)}, func(m *ClusterState) { m.set(aNode("z", "cpu 1")) },
			true},
		{"a node has more", []any{aNode("z", "cpu 1")}, func(m *ClusterState) { m.set(aNode("z", "cpu 2")) }, true},
		{"a node says that it is alive", []any{aNode("z", "cpu 1")}, func(m *ClusterState) { m.set(aNode("z", "cpu 1")) },
			false},
		{"a node goes", []any{aNode("z", "cpu 1")}, func(m *ClusterState) { m.RemoveNode("z") }, false},
		{"a pod comes", nil, func(m *ClusterState) { m.set(aPod("p", "a", "cpu 1")) }, false},
		{"a pod becomes ready", []any{aPod("p", "a", "cpu 1")}, func(m *ClusterState) { m.set(aPod("p", "a", "cpu 1")) },
			false},
		{"a pod ends", []any{aPod("p", "a", "cpu 1")}, func(m *ClusterState) {
			m.set(aPod("p", "a", "cpu 1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }))
		}, true},
		{"a pod requests less", []any{aPod("p", "a", "cpu 1")}, func(m *ClusterState) { m.set(aPod("p", "a", "cpu 500m")) },
			true},
		{"a pod that waited gets its node", []any{aPod("p", "", "cpu 1")},
			func(m *ClusterState) { m.set(aPod("p", "a", "cpu 1")) },
			false},
		{"an expected pod comes", nil, expected("cpu 1", aPod("web-1", "a", "cpu 1", madeBy("web"))), false},
		{"an expected pod requests more", nil, expected("cpu 1", aPod("web-1", "a", "cpu 2", madeBy("web"))), false},
		{"an expected pod requests less", nil, expected("cpu 1", aPod("web-1", "a", "cpu 500m", madeBy("web"))), true},
		{"an expected pod requests less of one resource", nil,
			expected("cpu 1, memory 2Gi", aPod("web-1", "a", "cpu 1, memory 1Gi", madeBy("web"))), true},
		{"an expected pod requests less, and waits", nil, expected("cpu 1", aPod("web-1", "", "cpu 500m", madeBy("web"))),
			true},
		{"a pod of another workload comes", nil, expected("cpu 1", aPod("api-1", "a", "cpu 500m", madeBy("api"))), false},
		{"a pod of the smaller component comes", nil, func(m *ClusterState) {
			m.Assume(Assumption{Key: "job", Workload: Workload{"shop", "Job", "job"}, Replicas: 1,
				Parts: []Part{{needs("cpu 1", nil), 1}, {needs("cpu 500m", nil), 1}}})
			m.set(aPod("job-1", "a", "cpu 500m", ownedBy("Job", "job")))
		}, false},
		{"fewer replicas are expected", nil, replaced(3, 1), true},
		{"no more replicas are expected", nil, replaced(3, 0), true},
		{"more replicas are expected", nil, replaced(1, 3), false},
		{"as many replicas are expected", nil, replaced(1, 1), false},
		{"a quota grows", []any{q}, func(m *ClusterState) { m.set(wider) }, true},
		{"a quota shrinks", []any{wider}, func(m *ClusterState) { m.set(q) }, false},
		{"a quota goes", []any{q}, func(m *ClusterState) { m.RemoveQuota("shop", "q") }, true},
	} {
		m := NewClusterState().set(aNode("a", "cpu 4, pods 9")).set(c.before...)
		m.TakeGrown()
		if c.change(m); m.TakeGrown() != c.want {
			t.Errorf("%s: grown = %t, want %t", c.name, !c.want, c.want)
		}
	}
}

func TestUnschedulableListsPendingPods(t *testing.T) {
	since := metav1.NewTime(time.Unix(1000, 0))
	unschedulable := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, LastTransitionTime: since}}
	}
	m := NewClusterState().set(aNode("a", "cpu 4, pods 9"), aPod("b", "", "cpu 9", madeBy("web")),
		aPod("new", "", "cpu 1"),
		aPod("there", "a", "cpu 1"))
	m.set(aPod("b", "", "cpu 9", madeBy("web"), unschedulable), aPod("a", "", "cpu 9", unschedulable))
	want := []UnschedulablePod{{Namespace: "shop", Name: "a", Since: since.Time},
		{Namespace: "shop", Name: "b", Labels: map[string]string{"pod-template-hash": "5d4f"}, OwnerKind: "ReplicaSet",
			OwnerName: "web-5d4f", Since: since.Time}}
	if got := m.Unschedulable(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	m.set(aPod("b", "a", "cpu 1", madeBy("web")))
	m.RemovePod("shop", "a")
	if got := m.Unschedulable(); len(got) != 0 {
		t.Errorf("%+v is still pending", got)
	}
}

func TestUtilisationCountsSchedulableNodes(t *testing.T) {
	m := NewClusterState()
	if m.Utilisation() != nil {
		t.Error("a cluster without nodes has a utilisation")
	}
	m.set(aNode("a", "cpu 4, pods 10"), aNode("b", "cpu 4, pods 10"), aNode("c", "cpu 100, pods 10", cordon))
	m.set(aPod("p", "a", "cpu 3"), aPod("q", "b", "cpu 3"), aPod("r", "c", "cpu 90"), aPod("s", "", "cpu 1"))
	if got := fmt.Sprint(m.Utilisation()); got != "map[cpu:0.75 pods:0.1]" {
		t.Errorf("got %s", got)
	}
}
