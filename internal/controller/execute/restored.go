package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/names"
)

// restored is what is known since the hub was restored from a backup.
type restored struct {
	// pending says that nobody has accepted yet what follows from it.
	pending atomic.Bool
	// looked are the Works whose objects were looked at since, true for those that were not held: what happens to these
	// from then on is news.
	looked sync.Map // of types.NamespacedName and bool
	// told is how many were told last that are unseen, by cluster: nil before that.
	told map[string]int
}

func (s *restored) unsettled(work types.NamespacedName) bool {
	settled, _ := s.looked.Load(work)
	return s.pending.Load() && settled != true
}

func (s *restored) unseen(work types.NamespacedName) bool {
	_, seen := s.looked.Load(work)
	return s.pending.Load() && !seen
}

// see takes note that it is known what became of the object of a Work, though something else is in the way of what is
// to be done with it.
func (s *restored) see(work types.NamespacedName) {
	if s.pending.Load() {
		s.looked.LoadOrStore(work, false)
	}
}

func (s *restored) settle(work types.NamespacedName) {
	if s.pending.Load() {
		s.looked.Store(work, true)
	}
}

func (s *restored) forget(work types.NamespacedName) { s.looked.Delete(work) }

// heldError says that what is to be done is not done since the hub was restored.
type heldError struct{ why string }

func (e *heldError) Error() string { return e.why }

// restoreMark asks the hub whether a restore stands.
func restoreMark(hub client.Reader) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := hub.Get(ctx, types.NamespacedName{Namespace: names.System, Name: execute.RestoreMark}, &corev1.ConfigMap{})
		return err == nil, client.IgnoreNotFound(err)
	}
}

// markUnseen writes into what says that a restore stands how many Works were not looked at since. Where it is gone,
// nothing is made.
func markUnseen(hub client.Client) func(context.Context, map[string]int) error {
	return func(ctx context.Context, unseen map[string]int) error {
		count, err := json.Marshal(unseen)
		if err != nil {
			return err
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, execute.UnseenAnnotation, count)
		mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: names.System, Name: execute.RestoreMark}}
		return client.IgnoreNotFound(hub.Patch(ctx, mark, client.RawPatch(types.MergePatchType, patch)))
	}
}

// tellUnseen has it written how many Works of each cluster were not looked at since the restore, if that changed.
func (r *reconciler) tellUnseen(ctx context.Context) {
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.UnsafeDisableDeepCopy); err != nil {
		log.Error(err, "list works")
		return
	}
	unseen := map[string]int{}
	for i := range works.Items {
		work := &works.Items[i]
		cluster, err := names.ClusterOf(work.Namespace)
		if err != nil || !execute.Unseen(work, r.restored.unseen(client.ObjectKeyFromObject(work))) {
			continue
		}
		if err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1alpha1.Cluster{},
			client.UnsafeDisableDeepCopy); err == nil {
			unseen[cluster]++
		}
	}
	if r.restored.told != nil && maps.Equal(r.restored.told, unseen) {
		return
	}
	if err := r.TellUnseen(ctx, unseen); err != nil {
		log.Error(err, "list the works that have not been checked since the hub was restored")
		return
	}
	r.restored.told = unseen
}

// followRestore returns when it is known whether the hub was restored, and follows that until somebody accepts it.
func (r *reconciler) followRestore(ctx context.Context) error {
	if r.Restored == nil {
		return nil
	}
	pending, err := r.Restored(ctx)
	for err != nil {
		log.Error(err, "check whether the hub was restored")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		pending, err = r.Restored(ctx)
	}
	r.restored.pending.Store(pending)
	if !pending {
		return nil
	}
	log.Info("the hub was restored: objects in members that differ from the backup stay until the restore is accepted")
	r.tellUnseen(ctx) // what a leader before has told was of its own looks
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(r.RestoreCheck):
			}
			if pending, err := r.Restored(ctx); err != nil || pending {
				r.tellUnseen(ctx)
				continue
			}
			r.restored.pending.Store(false)
			r.restored.looked.Clear()
			log.Info("the restore of the hub was accepted")
			return
		}
	}()
	return nil
}

// held says why what is planned for a Work is not carried out since the hub was restored; empty if it may be.
func (r *reconciler) held(work *workv1alpha1.Work, action execute.Action, desired,
	observed *unstructured.Unstructured) string {
	return execute.Held(work, action, desired, observed, r.restored.unsettled(client.ObjectKeyFromObject(work)))
}

// counted are the objects that members have of this hub without a Work, by cluster, of the kinds that are followed
// there, and the Works that are held since the hub was restored: by what is in memory.
func (r *reconciler) counted() (orphans map[string]int, held int) {
	if !r.lanes.running() {
		return nil, 0
	}
	ctx := context.Background()
	var clusters clusterv1alpha1.ClusterList
	if err := r.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		log.Error(err, "list clusters")
		return nil, 0
	}
	orphans = map[string]int{}
	for i := range clusters.Items {
		m := r.Members.Known(clusters.Items[i].Name)
		if m == nil || clusters.Items[i].DeletionTimestamp != nil {
			continue
		}
		n := 0
		m.EachManaged(func(u *unstructured.Unstructured) {
			key, ok := execute.WorkOf(u, m.Name)
			if ok && apierrors.IsNotFound(r.client.Get(ctx, key, &workv1alpha1.Work{}, client.UnsafeDisableDeepCopy)) {
				n++
			}
		})
		if n > 0 {
			orphans[m.Name] = n
		}
	}
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.UnsafeDisableDeepCopy); err != nil {
		log.Error(err, "list works")
		return orphans, 0
	}
	for i := range works.Items {
		if meta.IsStatusConditionTrue(works.Items[i].Status.Conditions, workv1alpha1.WorkHeldAfterRestore) {
			held++
		}
	}
	return orphans, held
}
