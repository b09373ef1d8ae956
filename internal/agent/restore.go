package agent

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coreexecute "github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// pendingRestore returns a function that identifies the restore of the hub from a backup that no user has accepted;
// empty for none. A hub of Karmada does not record it, and lets no agent ask.
func pendingRestore(hub client.Reader) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		mark := &corev1.ConfigMap{}
		err := hub.Get(ctx, types.NamespacedName{Namespace: names.System, Name: coreexecute.RestoreMark}, mark)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return "", nil
		}
		// A backup of a restored hub has the ConfigMap of that restore: it gets another time.
		return string(mark.UID) + " " + mark.Data["restored"], err
	}
}

// restored returns a function that reports whether a restore of the hub is pending.
func restored(hub client.Reader) func(context.Context) (bool, error) {
	pending := pendingRestore(hub)
	return func(ctx context.Context) (bool, error) {
		restore, err := pending(ctx)
		return err == nil && restore != "", err
	}
}

// errRestored means that the agent must start again, because the controllers read only at their start whether the hub
// was restored.
var errRestored = errors.New("the hub was restored from a backup: the agent ends, and its next start keeps what " +
	"differs from the backup until the restore is accepted")

// restoreGuard withholds the Works of a restored hub from controllers that started before the restore. It checks each
// response to a list or watch of Works: a restore ends all watches, and a hub serves agents only after it has its mark.
type restoreGuard struct {
	pending func(context.Context) (string, error)
	began   chan struct{} // closed when a restore began

	mu    sync.Mutex
	known bool
	first string // the restore that was pending at the first check
}

func newRestoreGuard(pending func(context.Context) (string, error)) *restoreGuard {
	return &restoreGuard{pending: pending, began: make(chan struct{})}
}

// wrap returns a transport that has the guard check the responses of another.
func (g *restoreGuard) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/works") {
			return response, err
		}
		if err := g.check(r.Context()); err != nil {
			_ = response.Body.Close() // The response is not used.
			return nil, err
		}
		return response, nil
	})
}

// check returns an error if a restore began since the first check, or if that is unknown.
func (g *restoreGuard) check(ctx context.Context) error {
	restore, err := g.pending(ctx)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.known {
		g.known, g.first = true, restore
	}
	if restore == "" || restore == g.first {
		return nil
	}
	select {
	case <-g.began:
	default:
		close(g.began)
	}
	return errRestored
}

// Start implements manager.Runnable: it ends with an error when a restore begins.
func (g *restoreGuard) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-g.began:
		return errRestored
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: an agent that waits to act must start again, too.
func (g *restoreGuard) NeedLeaderElection() bool { return false }

// roundTripper is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
