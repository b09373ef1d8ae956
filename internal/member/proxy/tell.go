package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/member/acting"
)

const (
	// pauseAfterFailure is how long a member that could not be told is not told again: callers would wait for it.
	pauseAfterFailure = 10 * time.Second
	// toldFor is how long it counts that a member was told of somebody: others may have been told of since in his place,
	// or its role be gone.
	toldFor = time.Minute
	// mostTold is of how many users and groups it is remembered.
	mostTold = 1000
)

// told is as whom a member lets the hub act, as far as is known.
type told struct {
	// allowed are those whom the hub let in then, and since when each was told of.
	allowed string
	since   map[string]time.Time
	// pause is until when nothing is told.
	pause time.Time
}

// lacks says whether the member is to be told of id, who is among those allowed now.
func (t *told) lacks(allowed string, id access.Identity, now time.Time) bool {
	if now.Before(t.pause) {
		return false
	}
	if t.allowed != allowed {
		return true
	}
	return slices.ContainsFunc(subjects(id), func(s string) bool {
		since, known := t.since[s]
		return !known || now.Sub(since) >= toldFor
	})
}

// note takes down that the member was told of id.
func (t *told) note(allowed string, id access.Identity, now time.Time) {
	maps.DeleteFunc(t.since, func(_ string, since time.Time) bool { return now.Sub(since) >= toldFor })
	if all := subjects(id); t.since == nil || t.allowed != allowed || len(t.since)+len(all) > mostTold {
		t.allowed, t.since = allowed, map[string]time.Time{}
	}
	for _, s := range subjects(id) {
		t.since[s] = now
	}
}

func subjects(id access.Identity) []string {
	out := []string{"user " + id.User}
	for _, group := range id.Groups {
		out = append(out, "group "+group)
	}
	return out
}

// tell has the member let the hub act as id, if it is not known to do so. The status loop tells members of all whom
// roles name; who is let in by a group is known when he calls, and a role that just changed may be ahead of that loop.
// What cannot be told is not held against the caller: the member answers him.
func (p *proxy) tell(ctx context.Context, w *way, allowed access.Allowed, id access.Identity, token string) {
	now := allowed.String()
	lacks := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.lacks(now, id, time.Now())
	}
	if !lacks() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case w.telling <- struct{}{}:
		defer func() { <-w.telling }()
	case <-ctx.Done():
		return
	}
	if !lacks() {
		return
	}
	hub, err := p.identity(ctx)
	wrote := false
	if err == nil {
		wrote, err = acting.Keep(ctx, w.hub, hub, allowed, id)
	}
	if wrote {
		w.awaitRight(ctx, id, token)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil, errors.Is(err, acting.ErrTheirs), apierrors.IsForbidden(err):
		w.note(now, id, time.Now())
	case !errors.Is(ctx.Err(), context.Canceled): // who called waits no more, which says nothing of the member
		w.pause = time.Now().Add(pauseAfterFailure)
	}
}

// awaitRight waits until the member has seen the role that was just written, or does not say.
func (w *way) awaitRight(ctx context.Context, id access.Identity, token string) {
	const often = 20 * time.Millisecond
	for tick := time.NewTicker(often); ; {
		if w.may(ctx, id, token) {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return
		}
	}
}

// may asks the member whether the account of the token may act as the user; a member that does not answer that is not
// waited for.
func (w *way) may(ctx context.Context, id access.Identity, token string) bool {
	review := authorizationv1.SelfSubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1",
		Kind: "SelfSubjectAccessReview"}}
	about := &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: id.User}
	if namespace, name, is := access.ServiceAccount(id.User); is {
		about.Resource, about.Namespace, about.Name = "serviceaccounts", namespace, name
	}
	review.Spec.ResourceAttributes = about
	body, err := json.Marshal(review)
	if err != nil {
		return true
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		w.base.JoinPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").String(), bytes.NewReader(body))
	if err != nil {
		return true
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := w.bare.plain.RoundTrip(req)
	if err != nil {
		return true
	}
	defer resp.Body.Close()
	const most = 64 << 10
	if resp.StatusCode != http.StatusCreated || json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(&review) != nil {
		return true
	}
	return review.Status.Allowed
}
