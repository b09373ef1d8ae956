package search

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/member"
)

// listTimeout is how long a request waits for caches that start.
const listTimeout = 10 * time.Second

// view is what a user may read at a time.
type view struct {
	// set has the clusters that the user may read and whose caches are up to date, with their generations.
	set map[string]uint64
	// left has the reasons for which other clusters are left out that the user may send requests to.
	left map[string]string
	// unselected is the number of those of which no registry selects the namespace.
	unselected int
	// partial are clusters in the set of which registries select only some namespaces.
	partial []string
	hash    string
}

// look returns what the user may read of the resource with a verb. It starts the caches of a search. The error is an
// API error.
func (q *query) look(ctx context.Context, verb string) (*view, error) {
	e := q.engine
	names, silent, err := e.clusters(ctx)
	if err != nil {
		return nil, err
	}
	if only := q.in.URL.Query().Get(ParamClusters); only != "" {
		asked := strings.Split(only, ",")
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(asked, name) })
	}
	var states map[string]sourceState
	if q.global {
		states, _ = q.store.states()
		names = slices.DeleteFunc(names, func(name string) bool { return !states[name].registered })
	}
	verdicts := e.rights.decide(ctx, q.user, names, silent, q.attributes(verb))
	v := &view{set: map[string]uint64{}, left: map[string]string{}}
	var readable []string
	for name, verdict := range verdicts {
		switch verdict {
		case allowed:
			readable = append(readable, name)
		case unknown:
			v.left[name] = "it does not respond"
		}
	}
	if len(readable) == 0 && len(v.left) == 0 && !(len(names) == 0 && e.rights.mayProxy(ctx, q.user, "get", "")) {
		return nil, refusal(verb, q.gvr.GroupResource(), q.info.Namespace)
	}
	if !q.global && (len(readable) > 0 || len(v.left) == 0) {
		slices.Sort(readable)
		if q.store, err = e.searchedStore(ctx, q.user.GetName(), q.gvr, readable); err != nil {
			return nil, err
		}
		q.wait(ctx, readable)
		states, _ = q.store.states()
	}
	v.use(states, readable, q.namespace)
	if len(v.set) == 0 && len(v.left) > v.unselected {
		return nil, apistatus.Error(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"no cluster that you may read can be shown: "+strings.Join(v.reasons(), "; "))
	}
	return v, nil
}

// use adds the clusters that the user may read.
func (v *view) use(states map[string]sourceState, readable []string, namespace string) {
	for _, name := range readable {
		state, cached := states[name]
		switch {
		case !cached:
			v.left[name] = reason(errNotListed)
		case state.err != nil:
			v.left[name] = reason(state.err)
		case namespace != "" && state.namespaces != nil && !state.namespaces[namespace]:
			v.left[name] = fmt.Sprintf("no ResourceRegistry selects namespace %s", namespace)
			v.unselected++
		default:
			v.set[name] = state.generation
			if namespace == "" && state.namespaces != nil {
				v.partial = append(v.partial, name)
			}
		}
	}
	v.sum()
}

// reason returns why a cache is not up to date, in one sentence.
func reason(err error) string {
	switch {
	case errors.Is(err, member.ErrLimit), errors.Is(err, errNotListed), errors.Is(err, member.ErrNotWatchable):
		return err.Error()
	case member.Unreachable(err):
		return "it does not respond"
	}
	return fmt.Sprintf("its objects cannot be read (%.200v)", err)
}

// sum computes the hash of the set.
func (v *view) sum() {
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(v.set)) {
		fmt.Fprintf(h, "%s %d\n", name, v.set[name])
	}
	v.hash = strconv.FormatUint(h.Sum64(), 16)
}

// fewNames is the number of names that a message has.
const fewNames = 10

// reasons names the clusters that are left out.
func (v *view) reasons() (all []string) {
	by := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(v.left)) {
		by[v.left[name]] = append(by[v.left[name]], name)
	}
	for _, why := range slices.Sorted(maps.Keys(by)) {
		all = append(all, fmt.Sprintf("left out: cluster %s: %s", text.Names(by[why], fewNames), why))
	}
	return all
}

// warn names the clusters that are left out or incomplete.
func (q *query) warn(v *view) {
	for _, warning := range v.reasons() {
		q.addWarning(warning)
	}
	if len(v.partial) > 0 {
		slices.Sort(v.partial)
		q.addWarning("only the namespaces that ResourceRegistries select are shown of cluster " +
			text.Names(v.partial, fewNames))
	}
}

// addWarning adds a warning, which clients print.
func (q *query) addWarning(warning string) {
	if text, err := utilnet.NewWarningHeader(299, "-", warning); err == nil {
		q.w.Header().Add("Warning", text)
	}
}

// version is the resource version of a list or of a watch event: a number of the log of a store, and the clusters that
// the user could read.
type version struct {
	epoch string
	seq   uint64
	hash  string
}

func (v version) String() string { return v.epoch + "." + strconv.FormatUint(v.seq, 10) + "." + v.hash }

// object returns the version of an object in an event. Its end is the version in the member, for writes.
func (v version) object(e *entry) string { return v.String() + "." + e.version }

// parseVersion returns what String or object returned; ok is false for versions of members and of other programs.
func parseVersion(text string) (v version, ok bool) {
	parts := strings.SplitN(text, ".", 4)
	if len(parts) < 3 {
		return v, false
	}
	seq, err := strconv.ParseUint(parts[1], 10, 64)
	return version{parts[0], seq, parts[2]}, err == nil
}

// expired is the answer to a version that a watch or a list cannot continue from: the client lists again.
func expired(why string) error {
	return apierrors.NewResourceExpired("the list is too old: " + why + "; list again")
}

// page is where the next page of a list begins.
type page struct {
	Version   string `json:"v"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"n"`
	Cluster   string `json:"c"`
}

func (p page) token() string {
	raw, _ := json.Marshal(p) // texts always encode
	return base64.RawURLEncoding.EncodeToString(raw)
}

// pageOf returns the page of a token, with the version of the first page.
func (q *query) pageOf(token string, v *view) (after *entry, first version, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	var p page
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return nil, first, apierrors.NewBadRequest("continue is not a token of this list")
	}
	first, ok := parseVersion(p.Version)
	switch {
	case !ok || first.epoch != q.store.epoch:
		return nil, first, expired("another process made it")
	case first.hash != v.hash:
		return nil, first, expired("the clusters have changed that can be read")
	}
	return &entry{namespace: p.Namespace, name: p.Name, cluster: p.Cluster}, first, nil
}
