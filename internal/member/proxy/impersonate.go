package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/member/acting"
)

const (
	// pauseAfterFailure is how long the hub waits before it writes the role of a member again after a failure, because
	// callers wait for the write.
	pauseAfterFailure = 10 * time.Second
	// knownFor is how long a written identity is trusted to be in the member's role: another hub process may have replaced
	// it, or the role may be deleted.
	knownFor = time.Minute
	// maxKnown is the maximum number of recorded users and groups. Whoever may impersonate can name any number.
	maxKnown = 1000
)

// knownRole is the recorded state of a member's role.
type knownRole struct {
	// allowed are the users that the role was written for, with the time of each write.
	allowed string
	since   map[string]time.Time
	// pause is the time until which the role is not written.
	pause time.Time
}

// lacks reports whether the member's role must be written for id, who is one of the allowed users.
func (t *knownRole) lacks(allowed string, id access.Identity, now time.Time) bool {
	if now.Before(t.pause) {
		return false
	}
	if t.allowed != allowed {
		return true
	}
	return slices.ContainsFunc(subjects(id), func(s string) bool {
		since, known := t.since[s]
		return !known || now.Sub(since) >= knownFor
	})
}

// note records that the role was written for id.
func (t *knownRole) note(allowed string, id access.Identity, now time.Time) {
	maps.DeleteFunc(t.since, func(_ string, since time.Time) bool { return now.Sub(since) >= knownFor })
	if all := subjects(id); t.since == nil || t.allowed != allowed || len(t.since)+len(all) > maxKnown {
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

// allowImpersonation adds id to the role with which the hub impersonates users in the member, if it may be missing. The
// status loop adds the users that roles name. Users that are allowed by a group are known only when they call, and the
// loop may be behind a role that just changed. After a failure the request continues, and the member decides.
func (p *Proxy) allowImpersonation(ctx context.Context, w *way, allowed access.Allowed, id access.Identity,
	token string) {
	now := allowed.String()
	lacks := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.lacks(now, id, time.Now())
	}
	if !lacks() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, roleTimeout)
	defer cancel()
	select {
	case w.writing <- struct{}{}:
		defer func() { <-w.writing }()
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
	if wrote && err == nil {
		w.awaitRight(ctx, id, token)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil, errors.Is(err, acting.ErrTheirs), apierrors.IsForbidden(err):
		w.note(now, id, time.Now())
	case !errors.Is(ctx.Err(), context.Canceled): // the caller is gone, which is no failure of the member
		w.pause = time.Now().Add(pauseAfterFailure)
	}
}

// awaitRight waits until the member uses the role that was just written. It returns at once if the member does not
// answer the question.
func (w *way) awaitRight(ctx context.Context, id access.Identity, token string) {
	const often = 20 * time.Millisecond
	for tick := time.NewTicker(often); ; {
		if w.mayImpersonate(ctx, id, token) {
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

// mayImpersonate asks the member whether the account of the token may impersonate the user. It returns true if the
// member does not answer.
func (w *way) mayImpersonate(ctx context.Context, id access.Identity, token string) bool {
	about := authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: id.User}
	if namespace, name, is := access.ServiceAccount(id.User); is {
		about.Resource, about.Namespace, about.Name = "serviceaccounts", namespace, name
	}
	allowed, err := w.review(ctx, w.bare.plain, http.Header{"Authorization": {"Bearer " + token}}, about)
	return allowed || err != nil
}

// review asks the member whether it permits a request to the account that the transport and the header identify.
func (w *way) review(ctx context.Context, by http.RoundTripper, header http.Header,
	about authorizationv1.ResourceAttributes) (allowed bool, err error) {
	review := authorizationv1.SelfSubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1",
		Kind: "SelfSubjectAccessReview"}}
	review.Spec.ResourceAttributes = &about
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		w.base.JoinPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").String(),
		bytes.NewReader([]byte(text.JSON(review))))
	if err != nil {
		return false, err
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := by.RoundTrip(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	const most = 64 << 10 // a member may answer with anything
	body := io.LimitReader(resp.Body, most)
	if resp.StatusCode != http.StatusCreated {
		return false, fmt.Errorf("the cluster answers %s to a SelfSubjectAccessReview", resp.Status)
	}
	if err := json.NewDecoder(body).Decode(&review); err != nil {
		return false, fmt.Errorf("read the SelfSubjectAccessReview of the cluster: %w", err)
	}
	return review.Status.Allowed, nil
}

// Permits asks a member whether it permits a request to a user: the member sees the user as it would see the request
// itself. A user who cannot send requests to the member at all is not permitted. The error means that the member did
// not say. The caller checks the right to clusters/proxy.
func (p *Proxy) Permits(ctx context.Context, caller user.Info, cluster string,
	about authorizationv1.ResourceAttributes) (bool, error) {
	to, err := p.route(ctx, caller, cluster)
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer to.leave()
	header := http.Header{}
	actAs(header, to.id, to.token)
	return to.way.review(ctx, to.transports().plain, header, about)
}
