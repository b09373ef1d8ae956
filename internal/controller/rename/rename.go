// Package rename gives Works their present names, once, before the loops run. Members see nothing of it: no object
// there is written. Which name a Work has now is decided by core/execute.
package rename

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

const (
	present = "2"

	// page is how many Works are read at once, parallel how many are renamed at once.
	page, parallel = 500, 16
	// attempts and retry are how often and how soon Works are tried that could not be renamed.
	attempts = 3
	retry    = time.Second
)

var log = ctrl.Log.WithName("rename")

// Works renames all Works that have former names. No loop of a hub on this store may run meanwhile. live reads past
// caches.
//
// Whenever it is interrupted, the next call continues: a copy with the status is there before the original loses its
// finalizer, and a Work without finalizer takes nothing along. A Work that cannot be renamed keeps its name until the
// next start, and its object stays.
func Works(ctx context.Context, live client.Reader, c client.Client) error {
	for attempt := 1; ; attempt++ {
		failed, err := try(ctx, live, c)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case failed == nil && err == nil:
			return nil
		case attempt == attempts && err != nil:
			return fmt.Errorf("rename works: %w", err)
		case attempt == attempts:
			log.Error(failed, "some Works keep their former names until the next start")
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// try renames all Works, unless that is done. failed has the Works that could not be renamed.
func try(ctx context.Context, live client.Reader, c client.Client) (failed, err error) {
	system := &corev1.Namespace{}
	if err := live.Get(ctx, types.NamespacedName{Name: names.System}, system); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get namespace %s: %w", names.System, err)
	}
	if system.Annotations[wellknown.WorkNamesAnnotation] == present {
		return nil, nil
	}
	renamed, failed, err := renameWorks(ctx, live, c)
	if renamed > 0 {
		log.Info("renamed Works", "works", renamed)
	}
	if failed != nil || err != nil {
		return failed, err
	}
	return nil, markDone(ctx, c)
}

func markDone(ctx context.Context, c client.Client) error {
	system := &corev1.Namespace{}
	system.Name = names.System
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, wellknown.WorkNamesAnnotation, present)
	if err := c.Patch(ctx, system, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("record that works are renamed in namespace %s: %w", names.System, err)
	}
	return nil
}

// renameWorks renames all Works. failed joins the errors of those that could not be renamed.
func renameWorks(ctx context.Context, live client.Reader, c client.Client) (renamed int, failed, err error) {
	next := ""
	for {
		var works workv1alpha1.WorkList
		err := live.List(ctx, &works, client.Limit(page), client.Continue(next))
		if apierrors.IsResourceExpired(err) {
			next = "" // what was renamed before is passed over
			continue
		}
		if err != nil {
			return renamed, failed, fmt.Errorf("list works: %w", err)
		}
		var mu sync.Mutex
		var running sync.WaitGroup
		gate := make(chan struct{}, parallel)
		for i := range works.Items {
			gate <- struct{}{}
			running.Go(func() {
				defer func() { <-gate }()
				done, err := one(ctx, live, c, &works.Items[i])
				mu.Lock()
				defer mu.Unlock()
				if done {
					renamed++
				}
				if err != nil {
					failed = errors.Join(failed, err)
				}
			})
		}
		running.Wait()
		if ctx.Err() != nil {
			return renamed, failed, ctx.Err()
		}
		if next = works.Continue; next == "" {
			return renamed, failed, nil
		}
	}
}

// one renames a Work if it has a former name, and reports whether it did. A Work that is being deleted keeps its name.
func one(ctx context.Context, live client.Reader, c client.Client, work *workv1alpha1.Work) (bool, error) {
	if _, err := names.ClusterOf(work.Namespace); err != nil || work.DeletionTimestamp != nil {
		return false, nil
	}
	manifest, err := execute.Manifest(work)
	if err != nil {
		return false, nil // nothing was ever applied of it
	}
	name, former := execute.FormerName(work, manifest)
	if !former {
		return false, nil
	}
	want, err := execute.Renamed(work, name)
	if err != nil {
		return false, err
	}

	// 1. The copy.
	made := want.DeepCopy()
	err = c.Create(ctx, made)
	switch {
	case commit.NamespaceMissing(err):
		return false, nil // its cluster leaves
	case apierrors.IsAlreadyExists(err):
		if err := live.Get(ctx, client.ObjectKeyFromObject(want), made); err != nil {
			return false, fmt.Errorf("get work %s/%s: %w", want.Namespace, want.Name, err)
		}
		if m, err := execute.Manifest(made); err != nil || identity.FromManifest(m) != identity.FromManifest(manifest) {
			return false, fmt.Errorf("work %s/%s cannot be renamed to %s: that is the work of another object", work.Namespace,
				work.Name, name)
		}
	case err != nil:
		return false, fmt.Errorf("create work %s/%s in place of %s: %w", want.Namespace, want.Name, work.Name, err)
	}

	// 2. Its status, unless it has had one since.
	const id = workv1alpha2.WorkPermanentIDLabel
	if reflect.DeepEqual(made.Status, workv1alpha1.WorkStatus{}) && made.Labels[id] == work.Labels[id] {
		updated := made.DeepCopy()
		updated.Status = want.Status
		if _, err := commit.Status(ctx, c, made, updated); err != nil {
			return false, err
		}
	}

	// 3. Delete the original. Without its finalizer, no controller acts on its deletion.
	if err := commit.RemoveFinalizer(ctx, c, work, workv1alpha2.ExecutionFinalizer); err != nil {
		return false, err
	}
	uid := work.UID
	if err := c.Delete(ctx, work, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete work %s/%s, which is now %s: %w", work.Namespace, work.Name, name, err)
	}
	return true, nil
}
