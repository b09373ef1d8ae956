package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/history"
)

const timelinePath = apiPrefix + "timeline"

const (
	// maxEntries is the number of entries of a page, and maxScanned the number of rows that are read for it.
	maxEntries = 200
	maxScanned = 4000
	// maxNamespaces bounds the namespaces in a query, because databases limit its parameters. With more of them, the query
	// has no condition on namespaces.
	maxNamespaces = 1000
	// freshHistory is the time for which all tabs use the same version of the history.
	freshHistory = 2 * time.Second
)

type timelineAnswer struct {
	Entries []history.Entry `json:"entries"`
	// Version of the answer. A tab sends it with its next request.
	Version string `json:"version,omitempty"`
	// Same is true if the tab has this version already. The answer has no entries then.
	Same bool `json:"same,omitempty"`
	// Older is the time from which an older page continues; empty for the last page.
	Older string `json:"older,omitempty"`
	// Notes warn about gaps in the history.
	Notes []string `json:"notes,omitempty"`
	// Missing has the rights that keep entries from the user.
	Missing []*Missing `json:"missing,omitempty"`
	// Off is true if the hub keeps no history.
	Off bool `json:"off,omitempty"`
}

// ranges are the ranges of the time line that end now.
var ranges = map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour}

// timelineFilter returns the filter of a query. The parameters class, cluster, text and by select the entries; range is
// one of ranges, or between, with the times from and to. before is the time from which an older page continues.
func timelineFilter(v url.Values, now time.Time) (history.TimelineFilter, error) {
	f := history.TimelineFilter{Class: v.Get("class"), Cluster: v.Get("cluster"), Text: v.Get("text"), By: v.Get("by")}
	if f.Class != "" && !slices.Contains(history.Classes, f.Class) {
		return f, errors.New("there is no class of this name")
	}
	if f.By != "" && f.By != history.ByPeople && f.By != history.ByHub {
		return f, errors.New("by is neither people nor hub")
	}
	var to time.Time
	for name, at := range map[string]*time.Time{"before": &f.Before, "from": &f.Since, "to": &to} {
		if text := v.Get(name); text != "" {
			var err error
			if *at, err = time.Parse(time.RFC3339, text); err != nil {
				return f, fmt.Errorf("%s is not a time, such as %s", name, now.UTC().Format(time.RFC3339))
			}
		}
	}
	of := v.Get("range")
	last, known := ranges[of]
	switch {
	case known:
		f.Since, to = now.Add(-last), time.Time{}
	case of == "":
		f.Since, to = time.Time{}, time.Time{}
	case of != "between":
		return f, errors.New("range is not hour, day, week or between")
	}
	if !to.IsZero() && to.Before(f.Since) {
		return f, errors.New("the range ends before it begins")
	}
	if f.Before.IsZero() || !to.IsZero() && to.Before(f.Before) {
		f.Before = to
	}
	return f, nil
}

// entries returns events of the fleet, the newest first: see timelineFilter. The parameter version is that of the last
// answer.
func (a *API) entries(r *http.Request, u user.Info) (any, error) {
	v := r.URL.Query()
	f, err := timelineFilter(v, time.Now())
	if err != nil {
		return nil, badRequest("%v", err)
	}
	if a.History == nil {
		return timelineAnswer{Entries: []history.Entry{}, Off: true}, nil
	}
	answer, err := a.timelineSince(r.Context(), u, f, v.Get("version"))
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	return answer, nil
}

// timelineSince returns a page, without entries if the tab has the current version. It checks the rights of the user
// before it reads the database.
func (a *API) timelineSince(ctx context.Context, u user.Info, f history.TimelineFilter,
	version string) (answer timelineAnswer, err error) {
	known, found := a.namespaces.Get(identity(u))
	if !found {
		if known, err = a.timelineNamespaces(ctx, u); err != nil {
			return answer, err
		}
		a.namespaces.Add(identity(u), known, rightsAge)
	}
	f.Namespaces, _ = known.([]string)
	if f.Namespaces != nil && len(f.Namespaces) == 0 {
		return timelineAnswer{Entries: []history.Entry{}, Missing: a.missingTimeline(ctx, u)}, nil
	}
	store, _, err := a.History.Store(ctx)
	if err != nil {
		return answer, err
	}
	now, err := a.version.current(ctx, store)
	if err != nil {
		return answer, err
	}
	if now == version {
		return timelineAnswer{Entries: []history.Entry{}, Version: now, Same: true}, nil
	}
	if answer, err = a.timeline(ctx, store, u, f); err != nil {
		return answer, err
	}
	answer.Version = now
	if answer.Notes, err = store.Gaps(ctx); err != nil {
		return answer, err
	}
	if a.History.Note != "" {
		answer.Notes = append(answer.Notes, a.History.Note)
	}
	return answer, nil
}

// maxUsers bounds the users in a cache. Whoever may impersonate can name any number.
const maxUsers = 1000

// historyVersion is the version of the history for all tabs. It changes with the newest entries.
type historyVersion struct {
	now func() time.Time

	mu   sync.Mutex
	read time.Time
	sum  uint64
}

// current returns the version. It reads the database at most every freshHistory. The version also changes after
// rightsAge, so that open pages lose the entries that the user may no longer see.
func (v *historyVersion) current(ctx context.Context, store *history.Store) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	if now.Sub(v.read) >= freshHistory {
		entries, err := store.Timeline(ctx, history.TimelineFilter{}, maxEntries)
		if err != nil {
			return "", err
		}
		var hash maphash.Hash
		hash.SetSeed(seed)
		for _, e := range entries {
			_, _ = hash.WriteString(e.ID + "\n") // it returns no error
		}
		v.read, v.sum = now, hash.Sum64()
	}
	return fmt.Sprintf("%x-%d", v.sum, now.Unix()/int64(rightsAge.Seconds())), nil
}

// timeline reads entries until it has a page of those that the user may see.
func (a *API) timeline(ctx context.Context, store *history.Store, u user.Info,
	f history.TimelineFilter) (timelineAnswer, error) {
	answer := timelineAnswer{Entries: []history.Entry{}}
	sees, objects := a.seesEntry(ctx, u), map[string]bool{}
	for scanned, limit := 0, 2*maxEntries; ; {
		found, err := store.Timeline(ctx, f, limit)
		if err != nil {
			return answer, err
		}
		var last string
		for _, e := range found {
			last = e.At
			if objects[e.ID] {
				continue
			}
			objects[e.ID] = true
			if sees(e) {
				answer.Entries = append(answer.Entries, e)
			}
		}
		if scanned += len(found); len(found) < limit {
			break
		}
		next, err := time.Parse(time.RFC3339, last)
		if err != nil {
			return answer, err
		}
		if next.Equal(f.Before) { // the second has more entries than were read
			if limit *= 2; limit <= maxScanned {
				continue
			}
			next = next.Add(-time.Second)
		}
		f.Before, limit = next, 2*maxEntries
		if len(answer.Entries) >= maxEntries || scanned >= maxScanned {
			answer.Older = next.UTC().Format(time.RFC3339)
			break
		}
	}
	if len(answer.Entries) == 0 {
		answer.Missing = a.missingTimeline(ctx, u)
	}
	return answer, nil
}

// missingTimeline returns the rights to list all objects of the time line that the user lacks.
func (a *API) missingTimeline(ctx context.Context, u user.Info) (missing []*Missing) {
	for _, want := range []right{listReleases, listClusters, listBindings} {
		if !a.rights.allows(ctx, u, want) {
			missing = append(missing, want.missing())
		}
	}
	return missing
}

// namespacedEntries and clusterEntries have the rights of which a user needs one to see any entry of a namespaced, or
// of a cluster-scoped object.
var (
	namespacedEntries = []right{listReleases, listBindings, listPolicies("PropagationPolicy"),
		listPolicies("OverridePolicy")}
	clusterEntries = []right{listClusters, listPolicies("ClusterPropagationPolicy"),
		listPolicies("ClusterOverridePolicy"),
		{verb: "list", group: listBindings.group, resource: "clusterresourcebindings"}}
)

func listPolicies(kind string) right {
	return right{verb: "list", group: policyv1alpha1.GroupVersion.Group, resource: history.PolicyResources[kind]}
}

// timelineNamespaces returns the namespaces of which the user may see any entries, with "" for cluster-scoped objects;
// nil for all of them. Namespaces that were deleted are not among them, because no Role can be in them.
func (a *API) timelineNamespaces(ctx context.Context, u user.Info) ([]string, error) {
	var unknown error // the first question that the authorizer could not decide
	hasAny := func(rights []right, namespace string) bool {
		return slices.ContainsFunc(rights, func(want right) bool {
			want.namespace = namespace
			allowed, err := a.rights.authorized(ctx, want.attributes(u))
			unknown = cmp.Or(unknown, err)
			return allowed
		})
	}
	if hasAny(namespacedEntries, "") {
		return nil, nil
	}
	allowed := []string{}
	if hasAny(clusterEntries, "") {
		allowed = append(allowed, "")
	}
	reader, err := a.rows.reader()
	if err != nil {
		return nil, err
	}
	var namespaces corev1.NamespaceList
	if err := reader.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	for i := range namespaces.Items {
		if name := namespaces.Items[i].Name; hasAny(namespacedEntries, name) {
			allowed = append(allowed, name)
		}
	}
	if err := cmp.Or(ctx.Err(), unknown); err != nil {
		return nil, err
	}
	if len(allowed) > maxNamespaces {
		return nil, nil
	}
	return allowed, nil
}

// seesEntry returns a function that reports whether a user may see an entry: the user may list the object. A workload
// also needs the right to list its binding.
func (a *API) seesEntry(ctx context.Context, u user.Info) func(history.Entry) bool {
	workloads, lists := a.sees(ctx, u), a.lists(ctx, u)
	return func(e history.Entry) bool {
		switch e.Class {
		case history.ClassReleases:
			return lists(listReleasesIn(e.Namespace))
		case history.ClassClusters:
			return lists(listClusters)
		case history.ClassChanges:
			if _, found := history.PolicyResources[e.Kind]; !found {
				return false
			}
			want := listPolicies(e.Kind)
			want.namespace = e.Namespace
			return lists(want)
		}
		return workloads(overview.Object{Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name})
	}
}
