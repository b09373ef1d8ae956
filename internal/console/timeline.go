package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/history"
)

const timelinePath = apiPrefix + "timeline"

const (
	// maxEntries is how many entries an answer has, and maxScanned how many are read for it.
	maxEntries = 200
	maxScanned = 4000
)

// timelineAnswer is the answer at timelinePath.
type timelineAnswer struct {
	Entries []history.Entry `json:"entries"`
	// Older is the time from which an older page continues; empty if there is none.
	Older string `json:"older,omitempty"`
	// Notes are what the reader must know of the history.
	Notes []string `json:"notes,omitempty"`
	// Missing are rights that keep entries from the user.
	Missing []*Missing `json:"missing,omitempty"`
	// Off is true if the hub keeps no history.
	Off bool `json:"off,omitempty"`
}

// serveTimeline returns what happened, the newest first: class, cluster, text and before select the entries.
func (a *API) serveTimeline(w http.ResponseWriter, r *http.Request, u user.Info) {
	v := r.URL.Query()
	f := history.TimelineFilter{Class: v.Get("class"), Cluster: v.Get("cluster"), Text: v.Get("text")}
	if f.Class != "" && !slices.Contains(history.Classes, f.Class) {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "there is no class of this name")
		return
	}
	if text := v.Get("before"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "before is not a time")
			return
		}
		f.Before = at
	}
	if a.History == nil {
		respond(w, timelineAnswer{Entries: []history.Entry{}, Off: true})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), whyTimeout)
	defer cancel()
	store, _, err := a.History.Store(ctx)
	var answer timelineAnswer
	if err == nil {
		answer, err = a.timeline(ctx, store, u, f)
	}
	if err == nil {
		answer.Notes, err = store.Gaps(ctx)
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error())
		return
	}
	if a.History.Note != "" {
		answer.Notes = append(answer.Notes, a.History.Note)
	}
	respond(w, answer)
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
		if next.Equal(f.Before) { // more happened within a second than was read
			if limit *= 2; limit <= maxScanned {
				continue
			}
			next = next.Add(-time.Second)
		}
		f.Before = next
		if len(answer.Entries) >= maxEntries || scanned >= maxScanned {
			answer.Older = next.UTC().Format(time.RFC3339)
			break
		}
	}
	for _, want := range []right{listReleases, listClusters, listBindings} {
		if !a.rights.allows(ctx, u, want) && len(answer.Entries) == 0 {
			answer.Missing = append(answer.Missing, want.missing())
		}
	}
	return answer, nil
}

// policies are the resources of the kinds whose changes are recorded.
var policies = map[string]string{"PropagationPolicy": "propagationpolicies",
	"ClusterPropagationPolicy": "clusterpropagationpolicies", "OverridePolicy": "overridepolicies",
	"ClusterOverridePolicy": "clusteroverridepolicies"}

// seesEntry returns a function that reports whether a user may see an entry: who may list the object. A workload needs
// the right to list its binding too.
func (a *API) seesEntry(ctx context.Context, u user.Info) func(history.Entry) bool {
	workloads, known := a.sees(ctx, u), map[right]bool{}
	lists := func(want right) bool {
		allowed, found := known[want]
		if !found {
			allowed = a.lists(ctx, u, want)
			known[want] = allowed
		}
		return allowed
	}
	return func(e history.Entry) bool {
		switch e.Class {
		case history.ClassReleases:
			want := listReleases
			want.namespace = e.Namespace
			return lists(want)
		case history.ClassClusters:
			return lists(listClusters)
		case history.ClassChanges:
			resource, found := policies[e.Kind]
			return found && lists(right{verb: "list", group: policyv1alpha1.GroupVersion.Group, resource: resource,
				namespace: e.Namespace})
		}
		return workloads(overview.Object{Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name})
	}
}
