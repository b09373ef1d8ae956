package member

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/argosy-io/argosy/internal/core/membership"
)

// load is a member's nodes and what its pods ask of them; of a pod only that is kept.
type load struct {
	mu     sync.Mutex
	nodes  map[string]membership.Node
	pods   map[string]membership.Pod
	sums   membership.Load
	listed struct{ nodes, pods bool }
	synced chan struct{} // closed when both were listed
}

// Load is the member's nodes, sorted by name, and what its pods ask of them. The first call starts to follow both;
// until they have been listed, synced is false and the channel, which is closed then, tells when to ask again.
func (m *Member) Load() (nodes []membership.Node, sums membership.Load, synced bool, listed <-chan struct{}) {
	l := m.load.Load()
	if l == nil {
		l = m.followLoad()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.listed.nodes || !l.listed.pods {
		return nil, nil, false, l.synced
	}
	sums = make(membership.Load, len(l.sums))
	for node, sum := range l.sums {
		sums[node] = sum.DeepCopy()
	}
	nodes = slices.SortedFunc(maps.Values(l.nodes), func(a, b membership.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes, sums, true, l.synced
}

func (m *Member) followLoad() *load {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.load.Load(); l != nil {
		return l
	}
	l := &load{
		nodes:  map[string]membership.Node{},
		pods:   map[string]membership.Pod{},
		sums:   membership.Load{},
		synced: make(chan struct{}),
	}
	m.load.Store(l)
	go m.follow("nodes in cluster "+m.Name, &corev1.Node{}, nodes{l}, func(c *connection) cache.ListWatch {
		return cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return c.core.Nodes().List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return c.core.Nodes().Watch(ctx, o)
			},
		}
	})
	// A pod that has ended leaves the selection, which the watch tells as a deletion.
	live := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))).String()
	go m.follow("pods in cluster "+m.Name, &corev1.Pod{}, pods{l}, func(c *connection) cache.ListWatch {
		return cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.FieldSelector = live
				return c.core.Pods("").List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.FieldSelector = live
				return c.core.Pods("").Watch(ctx, o)
			},
		}
	})
	return l
}

// ready is called with the lock held, after a list.
func (l *load) ready(was bool) {
	if !was && l.listed.nodes && l.listed.pods {
		close(l.synced)
	}
}

func (l *load) both() bool { return l.listed.nodes && l.listed.pods }

// count replaces what is known of a pod; an ended one counts for nothing. It is called with the lock held.
func (l *load) count(p *corev1.Pod) {
	key := p.Namespace + "/" + p.Name
	l.discount(key)
	if pod, live := membership.PodOf(p); live {
		l.pods[key] = pod
		l.sums.Add(pod)
	}
}

func (l *load) discount(key string) {
	if old, ok := l.pods[key]; ok {
		l.sums.Remove(old)
		delete(l.pods, key)
	}
}

// nodes is the store of the watch of nodes.
type nodes struct{ *load }

func (s nodes) Add(obj any) error { return s.Update(obj) }
func (s nodes) Resync() error     { return nil }

func (s nodes) Update(obj any) error {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return fmt.Errorf("unexpected %T", obj)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[n.Name] = membership.NodeOf(n)
	return nil
}

func (s nodes) Delete(obj any) error {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return fmt.Errorf("unexpected %T", obj)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, n.Name)
	return nil
}

func (s nodes) Replace(list []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.both()
	clear(s.nodes)
	for _, obj := range list {
		n, ok := obj.(*corev1.Node)
		if !ok {
			return fmt.Errorf("unexpected %T", obj)
		}
		s.nodes[n.Name] = membership.NodeOf(n)
	}
	s.listed.nodes = true
	s.ready(was)
	return nil
}

// pods is the store of the watch of pods.
type pods struct{ *load }

func (s pods) Add(obj any) error { return s.Update(obj) }
func (s pods) Resync() error     { return nil }

func (s pods) Update(obj any) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("unexpected %T", obj)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(p)
	return nil
}

func (s pods) Delete(obj any) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("unexpected %T", obj)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discount(p.Namespace + "/" + p.Name)
	return nil
}

func (s pods) Replace(list []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.both()
	clear(s.pods)
	clear(s.sums)
	for _, obj := range list {
		p, ok := obj.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("unexpected %T", obj)
		}
		s.count(p)
	}
	s.listed.pods = true
	s.ready(was)
	return nil
}
