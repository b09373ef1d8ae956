package propagate

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/template"
)

// sidecarTimeout is the time for which workloads wait until the SidecarSets of the hub are in the cache. That takes
// milliseconds unless they are broken. After that, workloads are counted without them, and earlier counts stay.
const sidecarTimeout = 10 * time.Second

// errSidecarsUnread requeues a workload shortly.
var errSidecarsUnread = errors.New("the SidecarSets of the hub have not been loaded yet")

// sidecars is since when workloads wait for SidecarSets. These are templates: their kind is watched since a policy
// selects it, or a binding is one's, and not at all otherwise.
type sidecars struct {
	mu      sync.Mutex
	waiting time.Time
}

// waited returns how long workloads have waited so far.
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

// count adds what SidecarSets inject into the pods of a workload to its requirements. While the hub does not serve
// SidecarSets yet, as in the first moments of a start, earlier counts stay.
func (r *reconciler) count(ctx context.Context, workload *unstructured.Unstructured, m *propagate.Meaning) error {
	if m.Replicas == 0 && m.Requirements == nil {
		return nil // no replicas need capacity
	}
	if workload.GetNamespace() == "" || len(interpret.PodTemplates(workload)) == 0 ||
		!r.Templates.Wanted(dependency.SidecarSetKind) {
		return nil
	}
	if !r.Templates.Synced(dependency.SidecarSetKind) {
		if r.sidecars.waited(time.Now()) < sidecarTimeout {
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
	sets, err := r.Templates.Injecting(ctx, r.client, workload)
	if err != nil {
		return err
	}
	return dependency.Count(m, workload, sets)
}

// sidecarsChanged adds the workloads that a SidecarSet injects into, or did, if the injected containers changed.
func (r *reconciler) sidecarsChanged(ctx context.Context, add func(key)) template.Handler {
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
		var after dependency.Sidecars
		counts := false
		if is != nil {
			after, counts, _ = dependency.SidecarsOf(is)
		}
		if counted == counts && before.Alike(after) {
			return
		}
		injects := func(s dependency.Sidecars, workload *unstructured.Unstructured) bool {
			if !s.Selects(workload) {
				return false
			}
			labels, known, err := template.NamespaceLabels(ctx, r.client, workload.GetNamespace())
			return err != nil || !known || s.SelectsNamespace(workload.GetNamespace(), labels)
		}
		r.workloads("", func(workload *unstructured.Unstructured) {
			if counted && injects(before, workload) || counts && injects(after, workload) {
				add(keyOf(workload))
			}
		})
	}
}

// workloads visits the claimed templates with pods, in one namespace or in all.
func (r *reconciler) workloads(namespace string, visit func(*unstructured.Unstructured)) {
	for _, gk := range r.Templates.Kinds() {
		if len(interpret.PodTemplatePaths(gk)) == 0 {
			continue
		}
		for _, obj := range r.Templates.List(gk, namespace, nil) {
			if _, claimed := propagate.Claimed(obj); claimed {
				visit(obj)
			}
		}
	}
}

// namespaceChanged adds the workloads of a namespace if the namespace selector of a SidecarSet starts or stops to match
// its labels.
func (r *reconciler) namespaceChanged() handler.TypedFuncs[*corev1.Namespace, key] {
	type queue = workqueue.TypedRateLimitingInterface[key]
	changed := func(name string, was, is map[string]string, q queue) {
		if maps.Equal(was, is) {
			return
		}
		for _, s := range r.Templates.SidecarSets() {
			if s.SelectsNamespace(name, was) == s.SelectsNamespace(name, is) {
				continue
			}
			r.workloads(name, func(workload *unstructured.Unstructured) {
				if s.Selects(workload) {
					q.Add(keyOf(workload))
				}
			})
		}
	}
	return handler.TypedFuncs[*corev1.Namespace, key]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Namespace], q queue) {
			changed(e.Object.Name, nil, e.Object.Labels, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Namespace], q queue) {
			changed(e.ObjectNew.Name, e.ObjectOld.Labels, e.ObjectNew.Labels, q)
		},
	}
}
