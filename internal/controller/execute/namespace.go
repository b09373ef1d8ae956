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
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/member"
)

const (
	// contentsCheck is the first delay before another check of a namespace whose objects must be deleted first,
	// contentsCheckMost the longest. A paused object may block the namespace for days.
	contentsCheck, contentsCheckMost = 500 * time.Millisecond, 30 * time.Second
	// eventNamespaceReleased: a namespace that the hub created stays in the cluster, because of what is in it.
	//
	//reference:event Normal on Cluster
	eventNamespaceReleased = "NamespaceReleased"
	// eventDefinitionReleased: a definition that the hub created stays in the cluster, because objects of its kind exist.
	//
	//reference:event Normal on Cluster
	eventDefinitionReleased = "DefinitionReleased"
)

// keepsContents reports whether a namespace or a definition of a member is released instead of deleted because of the
// objects that would be deleted with it. A positive after is the delay after which to ask again.
func (d *deletions) keepsContents(ctx context.Context, m *member.Member, cluster *clusterv1alpha1.Cluster,
	work *workv1alpha1.Work, observed *unstructured.Unstructured) (keeps bool, after time.Duration, err error) {
	now, isDefinition := d.clock.Now(), execute.IsDefinition(observed)
	var waited time.Duration
	var awaited types.NamespacedName
	d.memory.update(client.ObjectKeyFromObject(work), func(r *workRecord) {
		if r.blockedSince.IsZero() {
			r.blockedSince = now
		}
		waited, awaited = now.Sub(r.blockedSince), r.awaited
	})
	after = max(contentsCheck, min(contentsCheckMost, waited/4))
	awaits := execute.AwaitsWorks(work, observed, now)
	if awaited.Name != "" && awaits && cluster.DeletionTimestamp == nil {
		if state, err := d.workState(ctx, awaited); err != nil || state == execute.WorkStands {
			return false, after, err // Do not list the contents again.
		}
	}
	awaited = types.NamespacedName{}
	var failed error
	stateOf := func(key types.NamespacedName) execute.WorkState {
		state, err := d.workState(ctx, key)
		failed = errors.Join(failed, err)
		leaves := cluster.DeletionTimestamp != nil && key.Namespace == names.ExecutionSpace(cluster.Name)
		if state == execute.WorkStands && (awaits || leaves) {
			awaited = key
			return execute.WorkGoes // The Work will probably be deleted too.
		}
		return state
	}
	event, decide := eventNamespaceReleased, func() (execute.Fate, string, error) {
		contents, err := m.Contents(ctx, observed.GetName())
		fate, reason := execute.EndNamespace(observed, contents, stateOf)
		return fate, reason, err
	}
	if isDefinition {
		event, decide = eventDefinitionReleased, func() (execute.Fate, string, error) {
			objects, more, err := m.Instances(ctx, observed)
			fate, reason := execute.EndDefinition(observed, objects, more, stateOf)
			return fate, reason, err
		}
	}
	fate, why, unknown := decide()
	if unknown == nil && fate == execute.FateReleased {
		// Decide twice: an object and its Work may disappear between the reads of the two.
		fate, why, unknown = decide()
	}
	switch {
	case errors.Is(unknown, member.ErrContentsUnknown), errors.Is(unknown, member.ErrInstancesUnknown):
		if waited < d.contentsTimeout {
			return false, after, nil
		}
		why = unknown.Error() // Contents that stay unknown count as objects that stay.
	case unknown != nil:
		return false, 0, unknown
	case failed != nil:
		return false, 0, failed
	case fate == execute.FateWaits:
		d.memory.update(client.ObjectKeyFromObject(work), func(r *workRecord) { r.awaited = awaited })
		return false, after, nil
	case fate == execute.FateDeleted:
		return false, 0, nil
	}
	kind := observed.GetKind()
	d.events.Event(cluster, corev1.EventTypeNormal, event,
		fmt.Sprintf("%s %s stays in the cluster and is no longer managed by the hub: %s", kind, observed.GetName(), why))
	log.Info("released", "cluster", cluster.Name, "kind", kind, "name", observed.GetName(), "why", why)
	return true, 0, nil
}

func (d *deletions) workState(ctx context.Context, key types.NamespacedName) (execute.WorkState, error) {
	w := &workv1alpha1.Work{}
	err := d.client.Get(ctx, key, w, client.UnsafeDisableDeepCopy)
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
