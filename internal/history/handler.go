package history

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/argosy-io/argosy/internal/apistatus"
)

// Paths of the history, answered with GET as JSON. An error is a metav1.Status.
//
// All take namespace, several times for several namespaces. The user needs the right to list releases in each of them;
// without a namespace, in all. Times are RFC 3339. A warning header names periods of which releases may be missing.
const (
	// ReleasesPath lists releases: release, kind and name of a workload, author, cluster, outcome, trigger,
	// since, until, limit.
	ReleasesPath = "/argosy/releases"
	// EventsPath lists the journal of one release: namespace and uid.
	EventsPath = "/argosy/releases/events"
	// DeploymentsPath lists what ran at a time, or runs now: at, cluster, kind, name, image, limit.
	DeploymentsPath = "/argosy/deployments"
	// DORAPath computes figures: since, until, environment.
	DORAPath = "/argosy/dora"
	// UsagePath lists what workloads requested at a time, by namespace and cluster: at, cluster. It is null if the
	// history does not know.
	UsagePath = "/argosy/usage"
)

// maxNamespaces bounds the namespaces of a request. Each is authorized, so one request must not ask for thousands.
const maxNamespaces = 20

// doraWindow is the default period of the figures.
const doraWindow = 30 * 24 * time.Hour

// Authorize returns an error unless the user of a request may list releases in a namespace; empty for all namespaces.
type Authorize func(r *http.Request, namespace string) error

// Handler answers questions about the history.
func Handler(source *Source, authorize Authorize, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, notes, err := respond(source, authorize, now, r)
		if err != nil {
			apistatus.Write(w, err)
			return
		}
		for _, note := range notes {
			if text, err := utilnet.NewWarningHeader(warningCode, "-", note); err == nil {
				w.Header().Add("Warning", text)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the client is gone if it fails
	})
}

var Paths = []string{ReleasesPath, EventsPath, DeploymentsPath, DORAPath, UsagePath}

// warningCode is the code of the warnings that Kubernetes' clients print.
const warningCode = 299

// respond returns the answer to a request, and notes about the history for its reader.
func respond(source *Source, authorize Authorize, now func() time.Time, r *http.Request) (answer any, notes []string,
	err error) {
	if r.Method != http.MethodGet {
		return nil, nil, apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, r.Method, Resource, "", "use GET", 0,
			false)
	}
	v := r.URL.Query()
	f, at, err := filterOf(v)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	asked := f.Namespaces
	if asked == nil {
		asked = []string{""}
	}
	for _, namespace := range asked {
		if err := authorize(r, namespace); err != nil {
			return nil, nil, err
		}
	}
	if source == nil {
		return nil, nil, apierrors.NewServiceUnavailable(
			"this hub keeps no release history: its administrator can set --history or --history-dsn")
	}
	store, _, err := source.Store(r.Context())
	if err != nil {
		return nil, nil, apierrors.NewServiceUnavailable(err.Error())
	}
	if notes, err = store.Gaps(r.Context()); err != nil {
		return nil, nil, apierrors.NewServiceUnavailable(err.Error())
	}
	if source.Note != "" {
		notes = append(notes, source.Note)
	}
	answer, err = query(r.Context(), store, r.URL.Path, f, at, v.Get("uid"), now)
	return answer, notes, err
}

func query(ctx context.Context, store *Store, path string, f Filter, at time.Time, uid string,
	now func() time.Time) (any, error) {
	switch path {
	case ReleasesPath:
		return store.Releases(ctx, f)
	case EventsPath:
		return eventsOf(ctx, store, f, uid)
	case DeploymentsPath:
		return store.Deployments(ctx, f, at)
	case DORAPath:
		if f.Until.IsZero() {
			f.Until = now()
		}
		if f.Since.IsZero() {
			f.Since = f.Until.Add(-doraWindow)
		}
		return store.DORA(ctx, f)
	case UsagePath:
		if at.IsZero() {
			at = now()
		}
		return store.UsageAt(ctx, f, at)
	}
	return nil, apierrors.NewNotFound(Resource, path)
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
	f = Filter{Release: v.Get("release"), Kind: v.Get("kind"), Name: v.Get("name"), Author: v.Get("author"),
		Cluster: v.Get("cluster"), Image: v.Get("image"), Outcome: v.Get("outcome"), Trigger: v.Get("trigger"),
		Environment: v.Get("environment")}
	f.Namespaces = slices.DeleteFunc(slices.Clone(v["namespace"]), func(ns string) bool { return ns == "" })
	switch n := len(f.Namespaces); {
	case n == 0:
		f.Namespaces = nil
	case n > maxNamespaces:
		return Filter{}, at, fmt.Errorf("%d namespaces are too many: give at most %d", n, maxNamespaces)
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
