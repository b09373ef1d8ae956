package execute

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/scope"
)

// What makes a Work be looked at: itself, its object in the member, and its cluster.

// workChanged has a Work looked at that is new or was changed; our own status writes come back here and change nothing
// that is to be done.
func (r *reconciler) workChanged(old, obj any) {
	w := obj.(*workv1alpha1.Work)
	cluster, err := names.ClusterOf(w.Namespace)
	if err != nil {
		return
	}
	r.written.seen(w)
	r.others.add(w, r.Clock.Now(), old == nil)
	if was, ok := old.(*workv1alpha1.Work); ok && was.Generation == w.Generation &&
		was.DeletionTimestamp.Equal(w.DeletionTimestamp) &&
		maps.Equal(was.Labels, w.Labels) && maps.Equal(was.Annotations, w.Annotations) {
		return
	}
	if !execute.Applied(w) {
		r.lanes.touch()
	}
	r.lanes.retry(cluster, client.ObjectKeyFromObject(w))
}

// workGone forgets a Work.
func (r *reconciler) workGone(obj any) {
	w, ok := last(obj).(*workv1alpha1.Work)
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(w)
	r.written.forget(key)
	r.others.leave(w.UID)
	r.progress.Told(key)
	r.restless.forget(key)
	r.applied.forget(key)
	r.waiting.forget(key)
	r.ended.forget(key)
	r.missed.Delete(key)
	r.waitsSince.Delete(key)
	r.restored.forget(key)
	r.contests.forget(key)
	r.told.ForgetAll(func(s subject) bool { return s.work == key })
}

// kindsChanged has those Works looked at whose kind means something else than before.
func (r *reconciler) kindsChanged(concerns interpreter.Concerns) {
	if !r.lanes.running() {
		return // at the start all Works are looked at
	}
	for _, b := range interpreter.Bindings(r.client, concerns) {
		works, err := scope.WorksOf(context.Background(), r.client, client.ObjectKeyFromObject(b))
		if err != nil {
			log.Error(err, "list the works of a kind whose interpretation changed")
		}
		for i := range works {
			if cluster, err := names.ClusterOf(works[i].Namespace); err == nil {
				r.lanes.retry(cluster, client.ObjectKeyFromObject(&works[i]))
			}
		}
	}
}

// clusterJoined opens the lane of a cluster.
func (r *reconciler) clusterJoined(obj any) {
	name := obj.(*clusterv1alpha1.Cluster).Name
	r.lanes.register(name)
	r.wakeAll(name)
}

// clusterChanged has the Works of a cluster looked at when it becomes ready, or another hub's, which they say, serves
// other kinds than before, or leaves: that is what could mend those that failed, and those that wait for it are not
// tried meanwhile.
func (r *reconciler) clusterChanged(old, obj any) {
	was, is := old.(*clusterv1alpha1.Cluster), obj.(*clusterv1alpha1.Cluster)
	if !membership.IsReady(was) && membership.IsReady(is) ||
		membership.HeldByAnother(was) != membership.HeldByAnother(is) || !looked(was) && looked(is) ||
		!was.DeletionTimestamp.Equal(is.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(was.Status.APIEnablements, is.Status.APIEnablements) {
		r.wakeAll(is.Name)
	}
}

// looked says whether the status of a cluster was ever collected.
func looked(c *clusterv1alpha1.Cluster) bool {
	return membership.Readiness(c) != nil
}

// clusterGone closes the lane of a cluster. Works that are left are strays.
func (r *reconciler) clusterGone(obj any) {
	c, ok := last(obj).(*clusterv1alpha1.Cluster)
	if !ok {
		return
	}
	r.reached.Delete(c.Name)
	r.lanes.close(c.Name)
	r.wakeAll(c.Name)
}

// wakeAll has all Works of a cluster looked at.
func (r *reconciler) wakeAll(cluster string) {
	r.lanes.retry(cluster, r.worksIn(cluster)...)
}

// memberAnswers has those Works looked at that failed while the member was silent.
func (r *reconciler) memberAnswers(cluster string) {
	r.lanes.retryFailed(cluster, r.worksIn(cluster)...)
}

// worksIn are the Works of a cluster, by what is in memory.
func (r *reconciler) worksIn(cluster string) []types.NamespacedName {
	if !r.lanes.running() {
		return nil // at the start all Works are looked at
	}
	var works workv1alpha1.WorkList
	if err := r.client.List(context.Background(), &works, client.InNamespace(names.ExecutionSpace(cluster)),
		client.UnsafeDisableDeepCopy); err != nil {
		log.Error(err, "list the works of a cluster", "cluster", cluster)
	}
	keys := make([]types.NamespacedName, len(works.Items))
	for i := range works.Items {
		keys[i] = client.ObjectKeyFromObject(&works.Items[i])
	}
	return keys
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// memberEvent tells of an object of ours that changed in a member; nil is absent.
func (r *reconciler) memberEvent(cluster string, gvr schema.GroupVersionResource, old, obj *unstructured.Unstructured) {
	// Somebody may have taken our marks off: then the object as it was says whose it is.
	for _, o := range []*unstructured.Unstructured{old, obj} {
		if o == nil {
			continue
		}
		key := execute.MarkedWork(o)
		if key.Namespace == names.ExecutionSpace(cluster) && key.Name != "" {
			if obj == nil {
				r.ended.put(key, old)
			}
			r.lanes.add(cluster, key)
		}
	}
	if gvr == namespaces && obj != nil && obj.GetDeletionTimestamp() == nil {
		r.namespaceIsThere(cluster, obj.GetName())
	}
}

// namespaceIsThere has the Works tried again that wait for a namespace of the member.
func (r *reconciler) namespaceIsThere(cluster, namespace string) {
	if keys := r.waiting.take(space{cluster, namespace}); len(keys) > 0 {
		r.lanes.retry(cluster, keys...)
	}
}

// scalerChanged has the Work of a workload looked at that another autoscaler in the member scales than before, or none.
func (r *reconciler) scalerChanged(cluster string, workload execute.Target) {
	for _, name := range names.Works(workload.GroupKind, workload.Name, workload.Namespace) {
		r.lanes.add(cluster, types.NamespacedName{Namespace: names.ExecutionSpace(cluster), Name: name})
	}
}

// last is the object of an event, the last known state where its deletion was missed.
func last(obj any) any {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return obj
}
