package execute

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/member"
)

// restore keeps objects that differ from the hub's backup until a user accepts the restore.
type restore struct {
	client  client.Client
	members *member.Members
	memory  *memory
	// read reports whether a restore is not accepted yet. publish gets the number of Works per cluster whose objects were
	// not checked since the restore.
	read    func(context.Context) (bool, error)
	publish func(context.Context, map[string]int) error
	// interval is the time between two reads.
	interval time.Duration

	pending atomic.Bool
	// published is the last argument of publish; nil before the first call.
	published map[string]int
}

// restoreCheck is the hub's knowledge of a Work's object since a restore.
type restoreCheck int

const (
	restoreUnchecked restoreCheck = iota
	restoreChecked                // the state of the object is known, but something else prevents the next write
	restoreSettled                // the object is not paused; a later difference is a change since the restore
)

func (s *restore) checkOf(work *workv1alpha1.Work) restoreCheck {
	return s.memory.factsOf(client.ObjectKeyFromObject(work)).restore
}

// record raises the check of a Work's object while a restore is pending.
func (s *restore) record(work *workv1alpha1.Work, check restoreCheck) {
	if s.pending.Load() {
		s.memory.update(client.ObjectKeyFromObject(work), func(r *workRecord) { r.restore = max(r.restore, check) })
	}
}

// unsettled reports whether a restore is pending, and the Work's object was not settled since.
func (s *restore) unsettled(work *workv1alpha1.Work) bool {
	return s.pending.Load() && s.checkOf(work) != restoreSettled
}

// readRestoreMark returns a function that reports whether the ConfigMap of a restore exists.
func readRestoreMark(hub client.Reader) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := hub.Get(ctx, types.NamespacedName{Namespace: names.System, Name: execute.RestoreMark}, &corev1.ConfigMap{})
		return err == nil, client.IgnoreNotFound(err)
	}
}

// annotateRestoreMark returns a function that writes the number of unchecked Works into the ConfigMap of a restore, if
// it exists.
func annotateRestoreMark(hub client.Client) func(context.Context, map[string]int) error {
	return func(ctx context.Context, unchecked map[string]int) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, wellknown.RestoreUnseenAnnotation,
			text.JSON(unchecked))
		mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: names.System, Name: execute.RestoreMark}}
		return client.IgnoreNotFound(hub.Patch(ctx, mark, client.RawPatch(types.MergePatchType, patch)))
	}
}

// publishUnchecked publishes the number of unchecked Works per cluster if it changed.
func (s *restore) publishUnchecked(ctx context.Context) {
	var works workv1alpha1.WorkList
	if err := s.client.List(ctx, &works, client.UnsafeDisableDeepCopy); err != nil {
		log.Error(err, "list works")
		return
	}
	unchecked := map[string]int{}
	for i := range works.Items {
		work := &works.Items[i]
		cluster, err := names.ClusterOf(work.Namespace)
		if err != nil || !execute.Unchecked(work, s.checkOf(work) != restoreUnchecked) {
			continue
		}
		if cl, err := readCluster(ctx, s.client, cluster); err == nil && (s.members.Serves(cl) || klusterlet.Manages(cl)) {
			unchecked[cluster]++
		}
	}
	if s.published != nil && maps.Equal(s.published, unchecked) {
		return
	}
	if err := s.publish(ctx, unchecked); err != nil {
		log.Error(err, "list the works that have not been checked since the hub was restored")
		return
	}
	s.published = unchecked
}

// follow returns when it is known whether a restore is pending, and then watches until a user accepts it.
func (s *restore) follow(ctx context.Context) error {
	if s.read == nil {
		return nil
	}
	pending, err := s.read(ctx)
	for err != nil {
		log.Error(err, "check whether the hub was restored")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		pending, err = s.read(ctx)
	}
	s.pending.Store(pending)
	if !pending {
		return nil
	}
	log.Info("the hub was restored: objects in members that differ from the backup stay until the restore is accepted")
	s.publishUnchecked(ctx) // The number of an earlier leader is of its own checks.
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(s.interval):
			}
			if pending, err := s.read(ctx); err != nil || pending {
				s.publishUnchecked(ctx)
				continue
			}
			s.pending.Store(false)
			s.memory.updateAll(func(r *workRecord) { r.restore = restoreUnchecked })
			log.Info("the restore of the hub was accepted")
			return
		}
	}()
	return nil
}
