package execute

import (
	"context"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
)

// triggers queues Works in their lanes: on events of the Work, of its object in the member, and of its cluster.
type triggers struct {
	client  client.Client
	clock   clock.PassiveClock
	members *member.Members
	lanes   *lanes
	memory  *memory
	// noBindings is Options.NoBindings.
	noBindings bool
	others     *deletedByOthers
	// used is the member that was last used for a cluster.
	used sync.Map // cluster → *member.Member
}

// workChanged queues a Work that is new or was changed by others. Our own status writes need no action.
func (t *triggers) workChanged(old, obj any) {
	w := obj.(*workv1alpha1.Work)
	cluster, err := names.ClusterOf(w.Namespace)
	if err != nil {
		return
	}
	t.memory.pending.Seen(client.ObjectKeyFromObject(w), w)
	t.others.add(w, t.clock.Now(), old == nil)
	if was, ok := old.(*workv1alpha1.Work); ok && was.Generation == w.Generation &&
		was.DeletionTimestamp.Equal(w.DeletionTimestamp) &&
		maps.Equal(was.Labels, w.Labels) && maps.Equal(was.Annotations, w.Annotations) {
		return
	}
	if !execute.Applied(w) {
		t.lanes.touch()
	}
	t.lanes.retry(cluster, client.ObjectKeyFromObject(w))
}

func (t *triggers) workGone(obj any) {
	if w, ok := filter.LastState(obj).(*workv1alpha1.Work); ok {
		t.memory.forget(client.ObjectKeyFromObject(w))
		t.others.gone(w.UID)
	}
}

// kindsChanged queues the Works of kinds whose interpretation changed.
func (t *triggers) kindsChanged(concerns interpreter.Concerns) {
	if !t.lanes.running() {
		return // Start queues all Works.
	}
	if t.noBindings {
		t.retryKinds(concerns)
		return
	}
	for _, b := range interpreter.Bindings(t.client, concerns) {
		works, err := scope.WorksOf(context.Background(), t.client, client.ObjectKeyFromObject(b))
		if err != nil {
			log.Error(err, "list the works of a kind whose interpretation changed")
		}
		for i := range works {
			if cluster, err := names.ClusterOf(works[i].Namespace); err == nil {
				t.lanes.retry(cluster, client.ObjectKeyFromObject(&works[i]))
			}
		}
	}
}

// retryKinds queues the Works whose objects are of the kinds.
func (t *triggers) retryKinds(concerns interpreter.Concerns) {
	var works workv1alpha1.WorkList
	if err := t.client.List(context.Background(), &works, client.UnsafeDisableDeepCopy); err != nil {
		log.Error(err, "list the works of a kind whose interpretation changed")
	}
	for i := range works.Items {
		cluster, err := names.ClusterOf(works.Items[i].Namespace)
		manifest, unreadable := execute.Manifest(&works.Items[i])
		if err == nil && unreadable == nil && concerns(manifest.GroupVersionKind().GroupKind()) {
			t.lanes.retry(cluster, client.ObjectKeyFromObject(&works.Items[i]))
		}
	}
}

// clusterJoined opens the lane of a cluster, if this process acts in it.
func (t *triggers) clusterJoined(obj any) {
	c := obj.(*clusterv1alpha1.Cluster)
	t.lanes.register(c.Name, t.acts(c))
	t.retryAll(c.Name)
}

// clusterChanged queues the Works of a cluster after a change that may end their failures, or that their status
// reports: the cluster changed its mode, became ready, another hub's, or this hub's again, serves other kinds, or
// leaves.
func (t *triggers) clusterChanged(old, obj any) {
	was, is := old.(*clusterv1alpha1.Cluster), obj.(*clusterv1alpha1.Cluster)
	t.lanes.register(is.Name, t.acts(is))
	if was.Spec.SyncMode != is.Spec.SyncMode || !membership.IsReady(was) && membership.IsReady(is) ||
		membership.ManagedByAnother(was) != membership.ManagedByAnother(is) || !hasStatus(was) && hasStatus(is) ||
		!was.DeletionTimestamp.Equal(is.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(was.Status.APIEnablements, is.Status.APIEnablements) {
		t.retryAll(is.Name)
	}
}

// hasStatus reports whether the status of a cluster was ever collected.
func hasStatus(c *clusterv1alpha1.Cluster) bool { return membership.Readiness(c) != nil }

// clusterGone closes the lane of a cluster. Works that are left are strays.
func (t *triggers) clusterGone(obj any) {
	if c, ok := filter.LastState(obj).(*clusterv1alpha1.Cluster); ok {
		t.used.Delete(c.Name)
		t.lanes.close(c.Name)
		t.retryAll(c.Name)
	}
}

// memberUsed queues all Works of a cluster if its member was replaced: the new one watches a kind only once a Work of
// that kind is carried out.
func (t *triggers) memberUsed(cluster string, m *member.Member) {
	if before, known := t.used.Swap(cluster, m); known && before != m {
		t.retryAll(cluster)
	}
}

// memberAnswers queues the Works of a cluster that failed while the member did not answer.
func (t *triggers) memberAnswers(cluster string) { t.lanes.retryFailed(cluster, t.worksIn(cluster)...) }

func (t *triggers) retryAll(cluster string) { t.lanes.retry(cluster, t.worksIn(cluster)...) }

// worksIn returns the Works of a cluster from the cache; none before the start, which queues all Works.
func (t *triggers) worksIn(cluster string) []types.NamespacedName {
	if !t.lanes.running() {
		return nil
	}
	var works workv1alpha1.WorkList
	if err := t.client.List(context.Background(), &works, client.InNamespace(names.ExecutionSpace(cluster)),
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

// memberEvent queues the Work of an object that changed in a member. old or obj is nil if the object was created or
// deleted.
func (t *triggers) memberEvent(cluster string, gvr schema.GroupVersionResource, old, obj *unstructured.Unstructured) {
	for _, o := range []*unstructured.Unstructured{old, obj} { // Somebody may have removed the marks, or changed them.
		if o == nil {
			continue
		}
		key := execute.MarkedWork(o)
		if key.Namespace == names.ExecutionSpace(cluster) && key.Name != "" {
			if obj == nil {
				t.memory.keepFinished(key, old)
			}
			t.lanes.add(cluster, key)
		}
	}
	if gvr == namespaces && obj != nil && obj.GetDeletionTimestamp() == nil {
		t.namespaceExists(cluster, obj.GetName())
	}
}

// namespaceExists queues the Works that wait for a namespace of the member.
func (t *triggers) namespaceExists(cluster, namespace string) {
	t.lanes.retry(cluster, t.memory.takeWaiting(memberNamespace{cluster, namespace})...)
}

// scalerChanged queues the Work of a workload whose autoscaler in the member changed.
func (t *triggers) scalerChanged(cluster string, workload execute.Target) {
	for _, name := range names.Works(workload.GroupKind, workload.Name, workload.Namespace) {
		t.lanes.add(cluster, types.NamespacedName{Namespace: names.ExecutionSpace(cluster), Name: name})
	}
}
