package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Paths of the history, answered with GET as JSON. An error is a metav1.Status.
//
// All take namespace; without it, the user needs the right to list releases in all namespaces. Times are RFC 3339.
const (
	// ReleasesPath lists releases: kind, name, author, cluster, outcome, since, until, limit.
	ReleasesPath = "/argosy/releases"
	// EventsPath lists the journal of one release: namespace and uid.
	EventsPath = "/argosy/releases/events"
	// DeploymentsPath lists what ran at a time, or runs now: at, cluster, kind, name, image, limit.
	DeploymentsPath = "/argosy/deployments"
	// DORAPath computes figures: since, until, environment.
	DORAPath = "/argosy/dora"
)

// doraWindow is what the figures cover if a request does not say.
const doraWindow = 30 * 24 * time.Hour

// Authorize returns an error unless the user of a request may list releases in a namespace; empty for all namespaces.
type Authorize func(r *http.Request, namespace string) error

// Handler answers questions about the history.
func Handler(source *Source, authorize Authorize, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := respond(source, authorize, now, r)
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the client is gone if it fails
	})
}

func respond(source *Source, authorize Authorize, now func() time.Time, r *http.Request) (any, error) {
	if r.Method != http.MethodGet {
		return nil, apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, r.Method, Resource, "", "use GET", 0, false)
	}
	v := r.URL.Query()
	namespace := v.Get("namespace")
	if err := authorize(r, namespace); err != nil {
		return nil, err
	}
	f, at, err := filterOf(v)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	store, err := source.Store(r.Context())
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	switch r.URL.Path {
	case ReleasesPath:
		found, err := store.Releases(r.Context(), f)
		if found == nil {
			found = []Release{}
		}
		return found, err
	case EventsPath:
		return eventsOf(r.Context(), store, f, v.Get("uid"))
	case DeploymentsPath:
		return store.Deployments(r.Context(), f, at)
	case DORAPath:
		if f.Until.IsZero() {
			f.Until = now()
		}
		if f.Since.IsZero() {
			f.Since = f.Until.Add(-doraWindow)
		}
		return store.DORA(r.Context(), f)
	}
	return nil, apierrors.NewNotFound(Resource, r.URL.Path)
}

// eventsOf returns the journal of a release that is in one of the namespaces of the filter.
func eventsOf(ctx context.Context, store *Store, f Filter, uid string) ([]Event, error) {
	found, err := store.Releases(ctx, Filter{UID: uid, Namespaces: f.Namespaces})
	if err != nil {
		return nil, err
	}
	if uid == "" || len(found) == 0 {
		return nil, apierrors.NewNotFound(Resource, uid)
	}
	return store.Events(ctx, uid)
}

// filterOf reads the query of a request.
func filterOf(v url.Values) (f Filter, at time.Time, err error) {
	f = Filter{Kind: v.Get("kind"), Name: v.Get("name"), Author: v.Get("author"), Cluster: v.Get("cluster"),
		Image: v.Get("image"), Outcome: v.Get("outcome"), Environment: v.Get("environment")}
	if namespace := v.Get("namespace"); namespace != "" {
		f.Namespaces = []string{namespace}
	}
	for _, t := range []struct {
		key  string
		into *time.Time
	}{{"since", &f.Since}, {"until", &f.Until}, {"at", &at}} {
		text := v.Get(t.key)
		if text == "" {
			continue
		}
		if *t.into, err = time.Parse(time.RFC3339, text); err != nil {
			return Filter{}, at, fmt.Errorf("%s=%q is not a time; write it as 2026-01-02T15:04:05Z", t.key, text)
		}
	}
	if text := v.Get("limit"); text != "" {
		if f.Limit, err = strconv.Atoi(text); err != nil || f.Limit < 1 || f.Limit > MaxLimit {
			return Filter{}, at, fmt.Errorf("limit=%q is not a number from 1 to %d", text, MaxLimit)
		}
	}
	return f, at, nil
}

// refuse answers with an error as the API server does.
func refuse(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err).Status()
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		status = api.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}
