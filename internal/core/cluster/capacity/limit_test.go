package capacity

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Replicas takes the limit into account, which counts the nodes that take no more.
func TestLimitIsWhatDecidesTheReplicas(t *testing.T) {
	quota := func(name, hard string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: corev1.ResourceQuotaSpec{Hard: list(hard)}}
	}
	two := []any{aNode("a", "cpu 2, memory 8Gi, pods 10"), aNode("b", "cpu 2, memory 8Gi, pods 10")}
	ssd := &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"disk": "ssd"}}
	spread := needs("cpu 1", nil)
	spread.setSpread(Spread{Apart: []string{corev1.LabelHostname}}, Workload{"shop", "Deployment", "web"})
	hosts := []any{aNode("a", "cpu 4, pods 10", labelled(corev1.LabelHostname, "a")),
		aNode("b", "cpu 4, pods 10", labelled(corev1.LabelHostname, "b"))}
	port := needs("cpu 1", nil)
	port.requests = withPorts(port.requests, []string{"TCP/80"})
	byQuota := func(name string, resource corev1.ResourceName) Limit { return Limit{Quota: name, Resource: resource} }
	lacking := func(nodes int, resource string) Limit {
		return Limit{Nodes: nodes, Lacking: map[string]int{resource: nodes}}
	}
	for name, c := range map[string]struct {
		have []any
		need *Requirement
		fit  int32
		want Limit
	}{
		"cpu of the nodes":    {two, needs("cpu 1, memory 1Gi", nil), 4, lacking(2, "cpu")},
		"memory of the nodes": {two, needs("cpu 1, memory 8Gi", nil), 2, lacking(2, "memory")},
		"slots for pods":      {[]any{aNode("a", "cpu 9, pods 3")}, needs("cpu 1", nil), 3, lacking(1, "pods")},
		"a resource of none":  {two, needs("example.com/gpu 1", nil), 0, lacking(2, "example.com/gpu")},
		"a quota":             {append(two, quota("team", "cpu 3")), needs("cpu 1", nil), 3, byQuota("team", "cpu")},
		"the tighter quota": {append(two, quota("a", "cpu 3"), quota("b", "requests.memory 2Gi")),
			needs("cpu 1, memory 1Gi", nil), 2, byQuota("b", "memory")},
		"a quota of limits": {append(two, quota("team", "limits.cpu 2")),
			uses("cpu 1", "limits.cpu 2", false), 1, byQuota("team", "limits.cpu")},
		"a quota of pods":      {append(two, quota("team", "count/pods 1")), needs("cpu 1", nil), 1, byQuota("team", "pods")},
		"a quota that is used": {append(two, quota("team", "cpu 0")), needs("cpu 1", nil), 0, byQuota("team", "cpu")},
		"nodes before a quota": {append(two, quota("team", "cpu 9")), needs("cpu 1", nil), 4, lacking(2, "cpu")},
		"a quota of others":    {append(two, quota("team", "limits.cpu 1")), needs("cpu 1", nil), 4, lacking(2, "cpu")},
		"a selector":           {two, needs("cpu 1", ssd), 0, Limit{Nodes: 2, Unmatched: 2, Lacking: map[string]int{}}},
		"some of each": {[]any{aNode("a", "cpu 1, pods 9", notReady), aNode("b", "cpu 1, pods 9", cordon),
			aNode("c", "cpu 1, pods 9", tainted("gpu", corev1.TaintEffectNoSchedule)), aNode("d", "cpu 1, pods 9"),
			aNode("e", "cpu 1, pods 9", labelled("disk", "ssd"))}, needs("cpu 1", ssd), 1,
			Limit{Nodes: 5, NotReady: 1, Tainted: 2, Unmatched: 1, Lacking: map[string]int{"cpu": 1}}},
		"a spread": {hosts, spread, 2, Limit{Spread: true}},
		"nodes below a spread": {[]any{aNode("a", "pods 1", labelled(corev1.LabelHostname, "a"))},
			spread, 0, lacking(1, "cpu")},
		"a host port": {hosts, port, 2, lacking(2, "host port TCP/80")},
	} {
		m := NewClusterState().set(c.have...)
		c.want.Replicas = c.fit
		got, _ := m.limit([]Part{{c.need, 1}}, false)
		if fit := m.Replicas(c.need); fit != c.fit || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %d fit, limited by %+v; want %+v", name, fit, got, c.want)
		}
	}
}

// Components share the limit of the quota. Without one, the component that fits the least limits.
func TestLimitOfComponents(t *testing.T) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"},
		Spec: corev1.ResourceQuotaSpec{Hard: list("cpu 2")}}
	nodes := []any{aNode("a", "cpu 2, pods 10"), aNode("b", "cpu 2, pods 10")}
	for name, c := range map[string]struct {
		have     []any
		workers  int32
		selector map[string]string
		want     Limit
	}{
		"a quota of the namespace": {append(nodes, quota), 2, nil, Limit{Quota: "team", Resource: "cpu"}},
		"too many workers":         {nodes, 5, nil, Limit{Component: "worker", Nodes: 2, Lacking: map[string]int{"cpu": 2}}},
		"a selector of workers": {nodes, 1, map[string]string{"disk": "ssd"}, Limit{Component: "worker", Nodes: 2,
			Unmatched: 2, Lacking: map[string]int{}}},
		"the head is alone": {nodes, 0, nil, Limit{Replicas: 4, Component: "head", Nodes: 2,
			Lacking: map[string]int{"cpu": 2}}},
	} {
		b := &workv1alpha2.ResourceBinding{}
		b.Spec.Resource.Namespace = "shop"
		requires := func(selector map[string]string) *workv1alpha2.ComponentReplicaRequirements {
			return &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: list("cpu 1"),
				NodeClaim: &workv1alpha2.NodeClaim{NodeSelector: selector}}
		}
		b.Spec.Components = []workv1alpha2.Component{{Name: "head", Replicas: 1, ReplicaRequirements: requires(nil)},
			{Name: "worker", Replicas: c.workers, ReplicaRequirements: requires(c.selector)}}
		if got := NewClusterState().set(c.have...).Limit(b); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: limited by %+v; want %+v", name, got, c.want)
		}
	}
}
