package template

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/filter"
)

// Retry intervals for a kind that is wanted but not served. A CRD causes an event, but discovery follows later, and an
// aggregated API has no CRD.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Start runs the watches until ctx ends. For each wanted kind it looks up the resource and starts an informer. It looks
// again when the CRD changes, and restarts the informer if the preferred version changed. If the kind is no longer
// served it stops the informer and retries.
func (s *Store) Start(ctx context.Context) error {
	crds := definition.Informer(s.client)
	if _, err := crds.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { s.definitionChanged(obj, false) },
		UpdateFunc: func(was, is any) { s.definitionChanged(was, false); s.definitionChanged(is, false) },
		DeleteFunc: func(obj any) { s.definitionChanged(obj, true) },
	}); err != nil {
		return fmt.Errorf("watch definitions: %w", err)
	}
	s.mu.Lock()
	s.definitions = crds
	s.mu.Unlock()
	go crds.RunWithContext(ctx)

	retry := firstRetry
	for {
		wait := (<-chan time.Time)(nil)
		if missing := s.open(ctx); missing {
			wait = time.After(retry)
			retry = min(2*retry, lastRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
			retry = firstRetry
		case <-wait:
			// Refresh discovery once for all missing kinds.
			s.mapper.Reset()
		}
	}
}

// NeedLeaderElection returns false: every replica caches templates.
func (s *Store) NeedLeaderElection() bool { return false }

// open starts an informer for each new or changed kind, and reports whether any is to be looked up again: it is not
// served, or its CRD was deleted and discovery does not show that yet.
func (s *Store) open(ctx context.Context) (missing bool) {
	s.mu.Lock()
	changed := s.changed
	s.changed = map[schema.GroupKind]bool{}
	var look []schema.GroupKind
	for gk, k := range s.kinds {
		if k.informer == nil || changed[gk] {
			look = append(look, gk)
		}
	}
	s.mu.Unlock()

	if len(changed) > 0 {
		s.mapper.Reset()
	}
	for _, gk := range look {
		m, err := s.mapper.RESTMapping(gk)
		if err != nil {
			if !meta.IsNoMatchError(err) {
				log.FromContext(ctx).Error(err, "look up a kind of templates", "kind", gk.String())
			}
			missing = true
		}
		s.reopen(ctx, gk, m, meta.IsNoMatchError(err))
		if err == nil && s.deleted(gk) {
			// Discovery follows the deletion of the CRD later: look again, to stop the informer.
			s.markChanged(gk)
			missing = true
		}
	}
	return missing
}

func (s *Store) markChanged(gk schema.GroupKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed[gk] = true
}

// reopen updates the informer of a kind to its mapping; nil stops it.
func (s *Store) reopen(ctx context.Context, gk schema.GroupKind, m *meta.RESTMapping, unserved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[gk]
	k.unserved = unserved
	if m == nil && !unserved {
		return // the lookup failed; keep the current informer
	}
	if k.informer != nil && (m == nil || m.Resource != k.resource) {
		k.stop()
		k.informer = nil
	}
	if m == nil || k.informer != nil {
		return
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(s.client, m.Resource, metav1.NamespaceAll, 0, indexers,
		nil).Informer()
	// A new informer accepts a transform.
	_ = informer.SetTransform(withoutManagedFields)
	for _, h := range s.handlers {
		listen(informer, h)
	}
	run, stop := context.WithCancel(ctx)
	k.resource, k.informer, k.stop = m.Resource, informer, stop
	log.FromContext(ctx).Info("watching a kind of templates", "resource", m.Resource.String())
	go informer.RunWithContext(run)
}

// deleted reports whether this process saw the deletion of the kind's CRD, which includes all objects. A CRD that is
// only missing may return with its objects.
func (s *Store) deleted(gk schema.GroupKind) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.deletions[gk] && !slices.ContainsFunc(s.definitions.GetStore().List(), func(obj any) bool {
		crd, ok := obj.(*unstructured.Unstructured)
		return ok && match.KindDefined(crd) == gk
	})
}

// definitionChanged triggers another look at a wanted kind, and records the deletion of a CRD.
func (s *Store) definitionChanged(obj any, gone bool) {
	crd, ok := filter.LastState(obj).(*unstructured.Unstructured)
	if !ok {
		return
	}
	gk := match.KindDefined(crd)
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone && crd.GetDeletionTimestamp() != nil {
		s.deletions[gk] = true
	} else {
		delete(s.deletions, gk)
	}
	if _, wanted := s.kinds[gk]; wanted {
		s.changed[gk] = true
		s.wakeUp()
	}
}

// missed retries a watched kind that is not served now. An aggregated API has no CRD whose change would trigger it.
func (s *Store) missed(gk schema.GroupKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[gk]; k != nil && k.informer != nil {
		s.changed[gk] = true
		s.wakeUp()
	}
}

// withoutManagedFields drops managed fields unless the kind needs them.
func withoutManagedFields(obj any) (any, error) {
	// Modify only if necessary: a fake server in tests returns the same object to several readers.
	if u, ok := obj.(*unstructured.Unstructured); ok && u.GetManagedFields() != nil &&
		!interpret.KeepsManagedFields(u.GroupVersionKind().GroupKind()) {
		u.SetManagedFields(nil)
	}
	return obj, nil
}
