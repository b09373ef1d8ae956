package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/member"
)

const (
	// contentsCheck is how soon a namespace is looked at again in which something is about to go first, contentsCheckMost
	// how soon one that has waited for long: for what is held until a user accepts it, that may be days.
	contentsCheck, contentsCheckMost = 500 * time.Millisecond, 30 * time.Second
	// eventNamespaceReleased: a namespace that the hub created stays in the cluster, because of what is in it.
	//
	//reference:event Normal on Cluster
	eventNamespaceReleased = "NamespaceReleased"
)

// endNamespace says whether a namespace of a member is released instead of deleted, for what is in it; or when to ask
// again.
func (r *reconciler) endNamespace(ctx context.Context, m *member.Member, cluster *clusterv1alpha1.Cluster,
	work *workv1alpha1.Work, observed *unstructured.Unstructured) (stays bool, after time.Duration, err error) {
	return r.endOf(ctx, cluster, work, observed, eventNamespaceReleased, false,
		func(workOf worksOf) (execute.Fate, string, error) {
			contents, err := m.Contents(ctx, observed.GetName())
			if err != nil {
				return "", "", err
			}
			fate, reason := execute.EndNamespace(observed, contents, workOf)
			return fate, reason, nil
		})
}

// worksOf says how the Work is that an object in a member names.
type worksOf func(types.NamespacedName) execute.WorkState

// endOf acts on what is decided of an object that takes others along: it stays, goes, or is looked at again after a
// while. decide looks at those others anew each time; event tells that it stays, and settles says that Works which
// stand may be about to go, too.
func (r *reconciler) endOf(ctx context.Context, cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work,
	observed *unstructured.Unstructured, event string, settles bool,
	decide func(worksOf) (execute.Fate, string, error)) (stays bool, after time.Duration, err error) {
	now := r.Clock.Now()
	first, _ := r.waitsSince.LoadOrStore(client.ObjectKeyFromObject(work), now)
	waited := now.Sub(first.(time.Time))
	after = max(contentsCheck, min(contentsCheckMost, waited/4))
	var failed error
	workOf := func(key types.NamespacedName) execute.WorkState {
		state, err := r.stateOf(ctx, key)
		failed = errors.Join(failed, err)
		if state == execute.WorkStands &&
			(settles || cluster.DeletionTimestamp != nil && key.Namespace == names.ExecutionSpace(cluster.Name)) {
			return execute.WorkGoes // a cluster that leaves loses all of its Works
		}
		return state
	}
	fate, why, unseen := decide(workOf)
	if unseen == nil && fate == execute.FateReleased {
		// An object may go, and its Work after it, between the look at the one and at the other: what stays is there in
		// another look, too.
		fate, why, unseen = decide(workOf)
	}
	switch {
	case errors.Is(unseen, member.ErrContentsUnknown), errors.Is(unseen, member.ErrInstancesUnknown):
		if waited < r.UnseenSettle {
			return false, after, nil
		}
		why = unseen.Error() // what cannot be seen is taken for something that stays: nobody may ever see it
	case unseen != nil:
		return false, 0, unseen
	case failed != nil:
		return false, 0, failed
	case fate == execute.FateWaits:
		return false, after, nil
	case fate == execute.FateDeleted:
		return false, 0, nil
	}
	kind := observed.GetKind()
	r.events.Event(cluster, corev1.EventTypeNormal, event,
		fmt.Sprintf("%s %s stays in the cluster and is no longer managed by the hub: %s", kind, observed.GetName(), why))
	log.Info("released", "cluster", cluster.Name, "kind", kind, "name", observed.GetName(), "why", why)
	return true, 0, nil
}

// stateOf is how a Work is that an object in a member names.
func (r *reconciler) stateOf(ctx context.Context, key types.NamespacedName) (execute.WorkState, error) {
	w := &workv1alpha1.Work{}
	err := r.client.Get(ctx, key, w, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return execute.WorkAbsent, nil
	case err != nil:
		return execute.WorkAbsent, fmt.Errorf("get work %s: %w", key, err)
	case w.DeletionTimestamp != nil:
		return execute.WorkGoes, nil
	}
	return execute.WorkStands, nil
}
