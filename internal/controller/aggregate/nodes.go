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
	"github.com/argosy-io/argosy/internal/core/fields"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
)

// The nodes of a Workflow come past Works and bindings: from the object of its only cluster, as the watch there saw it
// last, into the one write of the template's status.

// How many bytes of nodes are written a second: each such write is one of the whole template.
const (
	nodesRate    = 64 << 10 // to one template
	hubNodesRate = 1 << 20  // to all of them
)

// pacing is how long nodes wait to be written: for more of the same, and until what was written before them is paid for
// at the two rates.
type pacing struct {
	commit.Pace[types.NamespacedName]

	mu sync.Mutex
	// paid is when all is paid for that was written or waits to be.
	paid time.Time
	of   map[types.NamespacedName]spent
}

// spent is what one template has had of the bytes.
type spent struct {
	// wrote is when its nodes were written last.
	wrote time.Time
	// waiting says that bytes are set aside for its next write, which may take place from turn on.
	waiting bool
	bytes   int
	turn    time.Time
}

// afford is how long a write of so many bytes has to wait at now.
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

// wrote notes a write of a template's nodes.
func (p *pacing) wrote(key types.NamespacedName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.of[key]; ok {
		s.wrote, s.waiting = now, false
		p.of[key] = s
	}
}

// Done records that a template has no nodes waiting to be written.
func (p *pacing) Done(key types.NamespacedName) {
	p.Pace.Done(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.of[key]; ok {
		s.waiting = false
		p.of[key] = s
	}
}

// forget takes in that a template's binding is gone.
func (p *pacing) forget(key types.NamespacedName) {
	p.Pace.Done(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, key)
}

func lasts(bytes, rate int) time.Duration {
	return time.Duration(bytes) * time.Second / time.Duration(rate)
}

// follow has the queue told of members' objects and of templates.
func (r *reconciler) follow(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.queue.Store(&q)
	r.Templates.Subscribe(r.templateChanged)
	return nil
}

// memberEvent has a binding looked at whose object in a member has other nodes than before. The member says which
// binding that is, which is looked at and no more: whose nodes count is decided by what the binding says.
func (r *reconciler) memberEvent(cluster string, _ schema.GroupVersionResource, old,
	object *unstructured.Unstructured) {
	if object == nil {
		return // its last nodes stay
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

// templateChanged has a template looked at whose nodes on the hub somebody has changed, such as Argo's CLI: they are
// the member's.
func (r *reconciler) templateChanged(was, is *unstructured.Unstructured) {
	if was == nil || is == nil || was.GetUID() != is.GetUID() {
		return // at the start, and when it is placed, its binding is looked at
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

// later queues a binding for when its nodes have waited long enough, unless it is looked at before.
func (r *reconciler) later(key types.NamespacedName) {
	if q := r.queue.Load(); q != nil { // else all bindings are looked at soon
		wait := max(0, r.nodes.Wait(key, r.NodesWindow, r.Clock.Now()))
		(*q).AddAfter(reconcile.Request{NamespacedName: key}, max(wait, r.Gather))
	}
}

// withNodes is the template with its folded status and the nodes of the only cluster that runs it.
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

// runsIn is the cluster whose nodes a template has; empty for a kind without nodes, and where several run it.
func runsIn(b workv1alpha2.Binding) string {
	ref := b.BindingSpec().Resource
	if _, has := aggregate.Nodes(propagate.GroupKind(ref.APIVersion, ref.Kind)); !has {
		return ""
	}
	return aggregate.Sole(b)
}

// waitForNodes is how long a status with nodes may still wait. One that says that the Workflow began or ended waits for
// no more nodes, and for what was written before to be paid for.
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

// tellOmitted tells users of a template that not all of its nodes are on the hub, when that is news.
func (r *reconciler) tellOmitted(b workv1alpha2.Binding, was, is *unstructured.Unstructured) {
	omitted := aggregate.Omitted(is)
	if omitted == "" || omitted == aggregate.Omitted(was) {
		return
	}
	for _, obj := range []runtime.Object{b, was} {
		r.events.Event(obj, corev1.EventTypeWarning, aggregate.NodesOmitted, omitted)
	}
}
