package propagate

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/argosy-io/argosy/internal/core/dependency"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/template"
)

// sidecarPatience is for how long workloads wait for the SidecarSets of the hub to be in memory, which takes milliseconds unless
// something is wrong with them. After that they go without, and what was counted before stays.
const sidecarPatience = 10 * time.Second

// errSidecarsUnread has a workload looked at again shortly.
var errSidecarsUnread = errors.New("the SidecarSets of the hub are not in memory yet")

// sidecars are what is remembered of SidecarSets, and of the namespaces that they select by label. SidecarSets themselves are
// templates: their kind is watched since a policy selects it, or a binding is one's, and not at all otherwise.
type sidecars struct {
	mu sync.Mutex
	// read is each SidecarSet as it was read last, so that it is read once for all workloads.
	read map[types.UID]readSidecars
	// namespaces are the labels of all namespaces.
	namespaces map[string]map[string]string
	// waiting is since when workloads wait.
	waiting time.Time
}

type readSidecars struct {
	version string
	dependency.Sidecars
	counts bool
}

// of reads a SidecarSet, nil for none. One that cannot be read counts nowhere: members refuse it, and its status says so.
func (x *sidecars) of(obj *unstructured.Unstructured) (dependency.Sidecars, bool) {
	if obj == nil {
		return dependency.Sidecars{}, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if known, ok := x.read[obj.GetUID()]; ok && known.version == obj.GetResourceVersion() {
		return known.Sidecars, known.counts
	}
	now := readSidecars{version: obj.GetResourceVersion()}
	now.Sidecars, now.counts, _ = dependency.SidecarsOf(obj)
	if x.read == nil {
		x.read = map[types.UID]readSidecars{}
	}
	x.read[obj.GetUID()] = now
	return now.Sidecars, now.counts
}

func (x *sidecars) forget(obj *unstructured.Unstructured) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.read, obj.GetUID())
}

// namespace has the labels of a namespace; known is false for one that was not seen yet.
func (x *sidecars) namespace(name string) (of map[string]string, known bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of, known = x.namespaces[name]
	return of, known
}

// relabel notes the labels of a namespace, nil when it is gone, and says what they were.
func (x *sidecars) relabel(name string, is map[string]string, gone bool) (was map[string]string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	was = x.namespaces[name]
	if gone {
		delete(x.namespaces, name)
		return was
	}
	if x.namespaces == nil {
		x.namespaces = map[string]map[string]string{}
	}
	x.namespaces[name] = is
	return was
}

// waited says for how long workloads have waited by now.
func (x *sidecars) waited(now time.Time) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.waiting.IsZero() {
		x.waiting = now
	}
	return now.Sub(x.waiting)
}

func (x *sidecars) stopWaiting() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waiting = time.Time{}
}

// count adds what SidecarSets inject into the pods of a workload to what it means. While the hub does not serve SidecarSets though
// they were selected, as in the first moments of a start, nothing that was counted is taken back.
func (r *reconciler) count(workload *unstructured.Unstructured, m *propagate.Meaning) error {
	if m.Replicas == 0 && m.Requirements == nil {
		return nil // it has no replicas to find room for
	}
	if workload.GetNamespace() == "" || len(interpret.PodTemplates(workload)) == 0 || !r.Templates.Wanted(dependency.SidecarSetKind) {
		return nil
	}
	if !r.Templates.Synced(dependency.SidecarSetKind) {
		if r.sidecars.waited(time.Now()) < sidecarPatience {
			return errSidecarsUnread
		}
		m.SidecarsUnread = true
		return nil
	}
	r.sidecars.stopWaiting()
	if !r.Templates.Served(dependency.SidecarSetKind) {
		m.SidecarsUnread = true
		return nil
	}
	var sets []dependency.Sidecars
	for _, obj := range r.Templates.List(dependency.SidecarSetKind, "", nil) {
		if s, counts := r.sidecars.of(obj); counts {
			sets = append(sets, s)
		}
	}
	if len(sets) == 0 {
		return nil
	}
	namespace, _ := r.sidecars.namespace(workload.GetNamespace())
	return dependency.Count(m, workload, namespace, sets)
}

// sidecarsChanged adds the workloads into whose pods a SidecarSet injects, or did, when what it injects is another.
func (r *reconciler) sidecarsChanged(add func(key)) template.Handler {
	return func(was, is *unstructured.Unstructured) {
		obj := is
		if obj == nil {
			obj = was
		}
		if obj.GroupVersionKind().GroupKind() != dependency.SidecarSetKind {
			return
		}
		var before dependency.Sidecars
		counted := false
		if was != nil {
			before, counted, _ = dependency.SidecarsOf(was)
		}
		after, counts := r.sidecars.of(is)
		if is == nil {
			r.sidecars.forget(was)
		}
		if counted == counts && before.Alike(after) {
			return
		}
		injects := func(s dependency.Sidecars, workload *unstructured.Unstructured) bool {
			of, known := r.sidecars.namespace(workload.GetNamespace())
			return s.Selects(workload) && (!known || s.SelectsNamespace(workload.GetNamespace(), of))
		}
		r.workloads("", func(workload *unstructured.Unstructured) {
			if counted && injects(before, workload) || counts && injects(after, workload) {
				add(keyOf(workload))
			}
		})
	}
}

// workloads visits the templates with pods that a policy holds, in one namespace or in all.
func (r *reconciler) workloads(namespace string, visit func(*unstructured.Unstructured)) {
	for _, gk := range r.Templates.Kinds() {
		if len(interpret.PodTemplatePaths(gk)) == 0 {
			continue
		}
		for _, obj := range r.Templates.List(gk, namespace, nil) {
			if _, held := propagate.Claimed(obj); held {
				visit(obj)
			}
		}
	}
}

// namespaceChanged adds the workloads of a namespace that a SidecarSet selects by labels which it did not have, or has no more.
func (r *reconciler) namespaceChanged() handler.TypedFuncs[*corev1.Namespace, key] {
	type queue = workqueue.TypedRateLimitingInterface[key]
	changed := func(ns *corev1.Namespace, gone bool, q queue) {
		was := r.sidecars.relabel(ns.Name, ns.Labels, gone)
		if gone || maps.Equal(was, ns.Labels) || !r.Templates.Wanted(dependency.SidecarSetKind) {
			return
		}
		for _, obj := range r.Templates.List(dependency.SidecarSetKind, "", nil) {
			s, counts := r.sidecars.of(obj)
			if !counts || s.SelectsNamespace(ns.Name, was) == s.SelectsNamespace(ns.Name, ns.Labels) {
				continue
			}
			r.workloads(ns.Name, func(workload *unstructured.Unstructured) {
				if s.Selects(workload) {
					q.Add(keyOf(workload))
				}
			})
		}
	}
	return handler.TypedFuncs[*corev1.Namespace, key]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Namespace], q queue) {
			changed(e.Object, false, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Namespace], q queue) {
			changed(e.ObjectNew, false, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Namespace], q queue) {
			changed(e.Object, true, q)
		},
	}
}
