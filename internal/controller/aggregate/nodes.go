package aggregate

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/scope"
)

// The nodes of a Workflow bypass Works and bindings. They are read from the watched object in its only cluster and
// written with the template's status.

// Rates in bytes per second for the writing of nodes. Each write contains the whole template.
const (
	nodesRate    = 64 << 10 // per template
	hubNodesRate = 1 << 20  // in total
)

// pacing delays writes of nodes: to collect more changes, and to stay within the two rates.
type pacing struct {
	commit.Pace[types.NamespacedName]

	mu sync.Mutex
	// paid is when the rate allows the next bytes after all writes so far, including delayed ones.
	paid time.Time
	of   map[types.NamespacedName]spent
}

// spent is the budget of one template.
type spent struct {
	// wrote is when its nodes were last written.
	wrote time.Time
	// waiting is true if its next write is included in the budget. It may take place from turn on.
	waiting bool
	bytes   int
	turn    time.Time
}

// afford returns how long a write of this size must be delayed.
func (p *pacing) afford(key types.NamespacedName, bytes int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[key]
	if p.paid.Before(now) {
		p.paid = now
	}
	if !s.waiting {
		s.waiting, s.bytes, s.turn = true, 0, p.paid
	}
	p.paid = p.paid.Add(lasts(max(0, bytes-s.bytes), hubNodesRate))
	s.bytes = max(s.bytes, bytes)
	if p.of == nil {
		p.of = map[types.NamespacedName]spent{}
	}
	p.of[key] = s
	return max(s.turn.Sub(now), s.wrote.Add(lasts(bytes, nodesRate)).Sub(now))
}

// wrote records a write of a template's nodes.
func (p *pacing) wrote(key types.NamespacedName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.of[key]; ok {
		s.wrote, s.waiting = now, false
		p.of[key] = s
	}
}

// Done records that a template has no delayed nodes.
func (p *pacing) Done(key types.NamespacedName) {
	p.Pace.Done(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.of[key]; ok {
		s.waiting = false
		p.of[key] = s
	}
}

// forget removes a template whose binding was deleted.
func (p *pacing) forget(key types.NamespacedName) {
	p.Pace.Done(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, key)
}

func lasts(bytes, rate int) time.Duration {
	return time.Duration(bytes) * time.Second / time.Duration(rate)
}

// follow subscribes the queue to members' objects and to templates.
func (r *reconciler) follow(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.queue.Store(&q)
	r.Templates.Subscribe(r.templateChanged)
	return nil
}

// memberEvent enqueues the binding of an object whose nodes changed in a member. The member names the binding, but the
// binding's placement decides whose nodes count.
func (r *reconciler) memberEvent(cluster string, _ schema.GroupVersionResource, old,
	object *unstructured.Unstructured) {
	if object == nil {
		return // the object was deleted; its last nodes stay
	}
	if _, has := aggregate.Nodes(object.GroupVersionKind().GroupKind()); !has || old != nil &&
		aggregate.SameNodes(old, object) {
		return
	}
	space := fields.Text(object.Object, "metadata", "annotations", workv1alpha2.WorkNamespaceAnnotation)
	if key, ok := scope.BindingOf(object); ok && space == names.ExecutionSpace(cluster) {
		r.later(key)
	}
}

// templateChanged enqueues a template whose nodes were changed on the hub, for example by Argo's CLI. The member's
// nodes are restored.
func (r *reconciler) templateChanged(was, is *unstructured.Unstructured) {
	if was == nil || is == nil || was.GetUID() != is.GetUID() {
		return // its binding is reconciled at startup and when it is placed
	}
	if _, has := aggregate.Nodes(is.GroupVersionKind().GroupKind()); has &&
		!equality.Semantic.DeepEqual(statusOf(was), statusOf(is)) {
		b, _, err := scope.BindingFor(context.Background(), r.client, is.GroupVersionKind().GroupKind(), is.GetNamespace(),
			is.GetName(), client.UnsafeDisableDeepCopy)
		if err != nil {
			ctrl.Log.WithName("aggregate").Error(err, "find the binding of a template whose nodes changed")
		} else if b != nil {
			r.later(client.ObjectKeyFromObject(b))
		}
	}
}

// later enqueues a binding for the end of its delay.
func (r *reconciler) later(key types.NamespacedName) {
	if q := r.queue.Load(); q != nil { // before the start: all bindings will be reconciled
		wait := max(0, r.nodes.Wait(key, r.NodesWindow, r.Clock.Now()))
		(*q).AddAfter(reconcile.Request{NamespacedName: key}, max(wait, r.Gather))
	}
}

// withNodes returns the template with its aggregated status and the nodes of its only cluster.
func (r *reconciler) withNodes(b workv1alpha2.Binding, read,
	folded *unstructured.Unstructured) *unstructured.Unstructured {
	cluster := runsIn(b)
	if cluster == "" {
		return folded
	}
	var seen *unstructured.Unstructured
	if m := r.Members.Known(cluster); m != nil {
		resource, _ := aggregate.Nodes(read.GroupVersionKind().GroupKind())
		seen, _ = m.Cached(resource, read.GetNamespace(), read.GetName())
	}
	return aggregate.WithNodes(read, folded, seen, cluster)
}

// runsIn returns the cluster with a template's nodes; empty for kinds without nodes and with several clusters.
func runsIn(b workv1alpha2.Binding) string {
	ref := b.BindingSpec().Resource
	if _, has := aggregate.Nodes(match.GroupKind(ref.APIVersion, ref.Kind)); !has {
		return ""
	}
	return aggregate.Sole(b)
}

// waitForNodes returns the delay of a status with nodes. The start or end of a Workflow does not wait for more nodes,
// only for the rates.
func (r *reconciler) waitForNodes(b workv1alpha2.Binding, was, want *unstructured.Unstructured) time.Duration {
	if r.NodesWindow == 0 || runsIn(b) == "" {
		return 0
	}
	key, size, now := client.ObjectKeyFromObject(b), aggregate.NodesSize(want), r.Clock.Now()
	wait := r.nodes.afford(key, size, now)
	if !aggregate.Turned(was, want) {
		wait = max(wait, r.nodes.Wait(key, r.NodesWindow+lasts(size, nodesRate), now))
	}
	return wait
}

// emitOmitted records an event if the omitted nodes of a template changed.
func (r *reconciler) emitOmitted(b workv1alpha2.Binding, was, is *unstructured.Unstructured) {
	omitted := aggregate.Omitted(is)
	if omitted == "" || omitted == aggregate.Omitted(was) {
		return
	}
	for _, obj := range []runtime.Object{b, was} {
		r.events.Event(obj, corev1.EventTypeWarning, aggregate.NodesOmitted, omitted)
	}
}
