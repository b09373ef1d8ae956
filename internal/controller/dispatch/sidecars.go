package dispatch

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
)

const (
	// sidecarWait is the longest time that a workload waits, in a new cluster, for the SidecarSets of its pods. It
	// exceeds the delay of their statuses in a burst.
	sidecarWait = 15 * time.Second
	// sidecarSilence is the time before a condition reports the wait.
	sidecarSilence = 3 * time.Second
	// unreadRetry is the delay before the next check of a workload while the hub's SidecarSets are being read.
	unreadRetry = 500 * time.Millisecond
)

// since records when something started for a binding in a cluster. A restart starts again.
type since struct {
	mu    sync.Mutex
	began map[types.NamespacedName]map[string]time.Time
}

// startIn returns the time from which a binding is in a cluster; the first call records now.
func (s *since) startIn(binding types.NamespacedName, cluster string, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began == nil {
		s.began = map[types.NamespacedName]map[string]time.Time{}
	}
	if s.began[binding] == nil {
		s.began[binding] = map[string]time.Time{}
	}
	if _, known := s.began[binding][cluster]; !known {
		s.began[binding][cluster] = now
	}
	return s.began[binding][cluster]
}

func (s *since) forget(binding types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.began, binding)
}

// requests returns the bindings that have an entry in any cluster.
func (s *since) requests() (out []reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for binding := range s.began {
		out = append(out, reconcile.Request{NamespacedName: binding})
	}
	return out
}

// awaitNeeds returns the results to write now. It leaves out Works that would bring a workload to a cluster for the
// first time, until the SidecarSets that inject into its pods are in force there, and until the needs of a Workflow are
// there. A Work waits for sidecarWait at most. waiting has a line for each cluster that waits for long, and after is
// when to reconcile again; 0 is never.
func (r *reconciler) awaitNeeds(ctx context.Context, b workv1alpha2.Binding, in dispatch.Input,
	results []dispatch.Result) (send []dispatch.Result, waiting []string, after time.Duration, err error) {
	key := client.ObjectKeyFromObject(b)
	first := func(res dispatch.Result) bool { return res.Err == nil && in.Existing[res.Cluster] == nil }
	var sets []dependency.Sidecars
	unread := false
	if slices.ContainsFunc(results, first) {
		unread = in.Template.GetNamespace() != "" && len(interpret.PodTemplates(in.Template)) > 0 &&
			r.Templates.Wanted(dependency.SidecarSetKind) && !r.Templates.Synced(dependency.SidecarSetKind)
		var err error
		if sets, err = r.Templates.Injecting(ctx, r.client, in.Template); err != nil {
			return nil, nil, 0, err
		}
	}
	fleet := sync.OnceValue(func() schedule.Snapshot {
		return r.Scheduler.Snapshot(slices.Collect(maps.Values(in.Clusters)))
	})
	for _, res := range results {
		lacking, soon := "", false // soon is worth no word
		if first(res) && unread {
			lacking = "the SidecarSets that may inject into its pods have not been read yet"
		} else if first(res) {
			var err error
			if lacking, err = r.lacking(ctx, b, sets, res.Cluster, in.Now, fleet); err == nil && lacking == "" {
				lacking, err = r.unmet(ctx, b, in.Template, res.Cluster)
				soon = lacking != ""
			}
			if err != nil {
				return nil, nil, 0, err
			}
		}
		if lacking == "" {
			send = append(send, res)
			continue
		}
		waited := in.Now.Sub(r.waiting.startIn(key, res.Cluster, in.Now))
		if waited >= sidecarWait {
			send = append(send, res)
			continue
		}
		next := sidecarWait - waited
		if soon {
			next = needsRetry
		} else if waited < sidecarSilence {
			next = sidecarSilence - waited
		} else {
			waiting = append(waiting, dispatch.Awaited(res.Cluster, lacking, sidecarWait))
		}
		if unread {
			next = unreadRetry
		}
		if after == 0 || next < after {
			after = next
		}
	}
	if len(send) == len(results) && !slices.ContainsFunc(results, first) { // a Work that cannot be written waits no more
		r.waiting.forget(key)
	}
	return send, waiting, after, nil
}

// lacking returns what a workload's first SidecarSet lacks that goes to a cluster and does not inject there yet; empty
// if all do.
func (r *reconciler) lacking(ctx context.Context, workload workv1alpha2.Binding, sets []dependency.Sidecars,
	cluster string, now time.Time, fleet func() schedule.Snapshot) (string, error) {
	for _, set := range sets {
		name := set.Name
		b, _, err := scope.BindingFor(ctx, r.client, dependency.SidecarSetKind, "", name)
		if err != nil {
			return "", err
		}
		if b == nil {
			if template, found, err := r.Templates.Get(ctx, dependency.SidecarSetKind, "", name); err == nil && found &&
				propagate.Waiting(template) {
				continue // its policy is Lazy, so the time of the change is unknown
			}
		}
		if !dispatch.Coming(b, workload, cluster, fleet(), r.Scheduler.Scheduler()) {
			continue
		}
		work, err := r.work(ctx, cluster,
			identity.Object{Group: dependency.SidecarSetKind.Group, Kind: dependency.SidecarSetKind.Kind, Name: name})
		if err != nil {
			return "", err
		}
		if lacks := dispatch.Lacking(work, now, sidecarWait); lacks != "" {
			return "SidecarSet " + name + ", which injects into its pods, " + lacks, nil
		}
	}
	return "", nil
}

// work returns the cached Work of a template in a cluster, which must not be changed; nil if there is none.
func (r *reconciler) work(ctx context.Context, cluster string, template identity.Object) (*workv1alpha1.Work, error) {
	gk := template.GroupKind()
	for _, name := range []string{names.Work(gk.Kind, template.Name, template.Namespace),
		names.WorkApart(gk, template.Name, template.Namespace)} {
		work, err := scope.WorkOf(ctx, r.client, cluster, name, template, client.UnsafeDisableDeepCopy)
		if work != nil || err != nil {
			return work, err
		}
	}
	return nil, nil
}

// sidecarsMoved selects Works of SidecarSets whose state has changed.
var sidecarsMoved = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(e event.DeleteEvent) bool { return ofSidecars(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return ofSidecars(e.ObjectNew) && !equality.Semantic.DeepEqual(e.ObjectOld.(*workv1alpha1.Work).Status,
			e.ObjectNew.(*workv1alpha1.Work).Status)
	},
}

// sidecarsPlaced selects bindings of SidecarSets that were created, deleted or placed.
var sidecarsPlaced = predicate.And[client.Object](predicate.NewPredicateFuncs(func(b client.Object) bool {
	return bindsSidecars(client.ObjectKeyFromObject(b))
}), filter.AfterStart)

// ofSidecars reports whether a Work is of a SidecarSet, by the name of its binding.
func ofSidecars(work client.Object) bool {
	key, ok := scope.BindingOf(work)
	return ok && bindsSidecars(key)
}

// bindsSidecars reports whether a binding is of a SidecarSet, by its name.
func bindsSidecars(binding types.NamespacedName) bool {
	return binding.Namespace == "" && strings.HasSuffix(binding.Name, names.Binding(dependency.SidecarSetKind.Kind, ""))
}
