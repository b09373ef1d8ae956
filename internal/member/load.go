package member

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

// load has a member's nodes, the requests and problems of its pods, and its quotas. It stores only these.
type load struct {
	grown func() // called without the lock when capacity may have been freed

	mu     sync.Mutex
	state  *capacity.ClusterState
	ailing *pods.Ledger
	listed struct{ nodes, pods bool }
	synced chan struct{} // closed when nodes and pods were listed
}

// Load starts to watch the nodes, pods and quotas of the member at its first call. The channel is closed when nodes and
// pods were listed.
func (m *Member) Load() (listed <-chan struct{}) {
	l := m.load.Load()
	if l == nil {
		l = m.followLoad()
	}
	return l.synced
}

// Capacity calls use with the capacity of the member, to read it or to change what is expected there; use must not
// block. If nodes and pods are not watched or not listed yet, it returns false without a call.
func (m *Member) Capacity(use func(*capacity.ClusterState)) bool {
	l := m.load.Load()
	if l == nil {
		return false
	}
	l.mu.Lock()
	if !l.bothListed() {
		l.mu.Unlock()
		return false
	}
	use(l.state)
	grown := l.state.TakeGrown()
	l.mu.Unlock()
	if grown {
		l.grown()
	}
	return true
}

// Troubles returns the member's pods with problems in a namespace (all if empty) at a time, in any order. It returns
// none while pods are not watched or not listed yet.
func (m *Member) Troubles(namespace string, now time.Time) []pods.Trouble {
	l := m.load.Load()
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.bothListed() {
		return nil
	}
	return l.ailing.Current(namespace, now)
}

func (m *Member) followLoad() *load {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.load.Load(); l != nil {
		return l
	}
	l := &load{state: capacity.NewClusterState(), ailing: pods.NewLedger(), synced: make(chan struct{}), grown: m.grown}
	m.load.Store(l)
	all := func(resource string, selected fields.Selector) func(*connection) cache.ListWatch {
		return func(c *connection) cache.ListWatch {
			return *cache.NewListWatchFromClient(c.core.RESTClient(), resource, metav1.NamespaceAll, selected)
		}
	}
	// A pod that has ended leaves the selection, so the watch reports it as deleted.
	live := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
	go m.follow("nodes in cluster "+m.Name, &corev1.Node{}, l.nodes(), all("nodes", fields.Everything()))
	go m.follow("pods in cluster "+m.Name, &corev1.Pod{}, l.pods(), all("pods", live))
	go m.follow("quotas in cluster "+m.Name, &corev1.ResourceQuota{}, l.quotas(),
		all("resourcequotas", fields.Everything()))
	return l
}

func (l *load) bothListed() bool { return l.listed.nodes && l.listed.pods }

// change takes in what a watch saw, and reports whether that made room.
func (l *load) change(change func(*capacity.ClusterState)) {
	l.mu.Lock()
	was := l.bothListed()
	change(l.state)
	now, grown := l.bothListed(), l.state.TakeGrown()
	if now && !was {
		close(l.synced)
	}
	l.mu.Unlock()
	if now && (grown || !was) {
		l.grown() // also after the first list
	}
}

func (l *load) nodes() *trimming[*corev1.Node, capacity.Node] {
	return &trimming[*corev1.Node, capacity.Node]{
		trim: func(n *corev1.Node) (capacity.Node, bool, error) { return capacity.NodeOf(n), true, nil },
		into: loadKeeper[capacity.Node]{load: l, setIn: (*capacity.ClusterState).SetNode,
			dropIn: func(m *capacity.ClusterState, _, name string) { m.RemoveNode(name) },
			replaceIn: func(m *capacity.ClusterState, all []capacity.Node) {
				m.ReplaceNodes(all)
				l.listed.nodes = true
			}},
	}
}

// seenPod has the requests of a pod, and its problem, if any.
type seenPod struct {
	capacity.Pod
	trouble *pods.Trouble
}

func (l *load) pods() *trimming[*corev1.Pod, seenPod] {
	set := func(p seenPod) {
		if p.trouble != nil {
			l.ailing.Set(*p.trouble)
		} else {
			l.ailing.Remove(p.Namespace, p.Name)
		}
	}
	return &trimming[*corev1.Pod, seenPod]{
		trim: func(p *corev1.Pod) (seenPod, bool, error) {
			kept, live := capacity.PodOf(p)
			if t, ok := pods.TroubleOf(p); ok && live {
				return seenPod{kept, &t}, true, nil
			}
			return seenPod{kept, nil}, live, nil
		},
		into: loadKeeper[seenPod]{load: l,
			setIn: func(m *capacity.ClusterState, p seenPod) {
				m.SetPod(p.Pod)
				set(p)
			},
			dropIn: func(m *capacity.ClusterState, namespace, name string) {
				m.RemovePod(namespace, name)
				l.ailing.Remove(namespace, name)
			},
			replaceIn: func(m *capacity.ClusterState, all []seenPod) {
				kept := make([]capacity.Pod, len(all))
				l.ailing = pods.NewLedger()
				for i, p := range all {
					kept[i] = p.Pod
					set(p)
				}
				m.ReplacePods(kept)
				l.listed.pods = true
			}},
	}
}

func (l *load) quotas() *trimming[*corev1.ResourceQuota, capacity.Quota] {
	return &trimming[*corev1.ResourceQuota, capacity.Quota]{
		trim: func(q *corev1.ResourceQuota) (capacity.Quota, bool, error) { return capacity.QuotaOf(q), true, nil },
		into: loadKeeper[capacity.Quota]{load: l, setIn: (*capacity.ClusterState).SetQuota,
			dropIn: (*capacity.ClusterState).RemoveQuota, replaceIn: (*capacity.ClusterState).ReplaceQuotas},
	}
}

// loadKeeper keeps the objects of one kind as part of the load.
type loadKeeper[K any] struct {
	load      *load
	setIn     func(*capacity.ClusterState, K)
	dropIn    func(m *capacity.ClusterState, namespace, name string)
	replaceIn func(*capacity.ClusterState, []K)
}

func (k loadKeeper[K]) set(_ types.NamespacedName, kept K) {
	k.load.change(func(m *capacity.ClusterState) { k.setIn(m, kept) })
}

func (k loadKeeper[K]) drop(object types.NamespacedName) {
	k.load.change(func(m *capacity.ClusterState) { k.dropIn(m, object.Namespace, object.Name) })
}

// known finds nothing: trim can read all nodes, pods and quotas.
func (k loadKeeper[K]) known(types.NamespacedName) (none K, stored bool) { return none, false }

func (k loadKeeper[K]) replace(all []*trimmed[K]) {
	kept := make([]K, len(all))
	for i, t := range all {
		kept[i] = t.kept
	}
	k.load.change(func(m *capacity.ClusterState) { k.replaceIn(m, kept) })
}
