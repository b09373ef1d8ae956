package dispatch

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// unseen are the Works that were created, and those of a fleet that were changed, and that the cache does not show so
// yet. While it lacks one of a binding's, nothing is decided for that binding: a Work that is not seen would be made
// again, or be left behind when its cluster or its binding goes; and what it was granted would be granted to another
// one.
type unseen struct {
	clock clock.PassiveClock

	mu sync.Mutex
	of map[types.NamespacedName][]made // by binding
}

type made struct {
	work types.NamespacedName
	// version that the cache has to show, or a later one.
	version string
	at      time.Time
}

// patience is how long a cache may lack a Work: one that it lacks longer was deleted before the cache could show it.
const patience = 10 * time.Second

func (u *unseen) add(binding types.NamespacedName, work *workv1alpha1.Work) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[types.NamespacedName][]made{}
	}
	u.of[binding] = append(u.of[binding], made{client.ObjectKeyFromObject(work), work.ResourceVersion, u.clock.Now()})
}

func (u *unseen) forget(binding types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.of, binding)
}

// missing says whether the cache lacks a Work of the binding. A binding is looked at by one goroutine at a time.
func (u *unseen) missing(ctx context.Context, cache client.Reader, binding types.NamespacedName) (bool, error) {
	u.mu.Lock()
	all := u.of[binding]
	u.mu.Unlock()
	for _, m := range all {
		work := &workv1alpha1.Work{}
		err := cache.Get(ctx, m.work, work, client.UnsafeDisableDeepCopy)
		old := apierrors.IsNotFound(err) || err == nil && older(work.ResourceVersion, m.version)
		if old && u.clock.Since(m.at) < patience {
			return true, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("get work %s: %w", m.work, err)
		}
	}
	if all != nil {
		u.forget(binding)
	}
	return false, nil
}

// older says whether one version of an object is older than another one; what cannot be compared is not.
func older(version, than string) bool {
	v, err1 := strconv.ParseUint(version, 10, 64)
	t, err2 := strconv.ParseUint(than, 10, 64)
	return err1 == nil && err2 == nil && v < t
}
