package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/why"
)

// gatedRelease returns a release of a stage that waits at the gate sign.
func gatedRelease() *releasev1alpha1.Release {
	r := waitingRelease("shop")
	r.UID = "u1"
	r.Spec.CreatedBy = &releasev1alpha1.ReleaseUser{User: "bob"}
	r.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}}
	r.Status.Revision = "rev"
	r.Status.Strategy = &releasev1alpha1.ReleaseStrategySpec{Stages: []releasev1alpha1.ReleaseStage{{Name: "one",
		Before: []releasev1alpha1.ReleaseGate{{Name: "sign", Approval: &releasev1alpha1.ReleaseApprovalRule{Count: 2,
			NotAuthor: true}}}}}}
	r.Status.Stages = []releasev1alpha1.ReleaseStageStatus{{Name: "one", Attempt: 3, Phase: releasev1alpha1.StageGated,
		Gates: []releasev1alpha1.ReleaseGateStatus{{Name: "sign", Position: releasev1alpha1.GateBefore,
			Phase: releasev1alpha1.GateWaiting, By: []string{"carol"}}}}}
	return r
}

// describe returns what alice sees of the release with rights.
func describe(t *testing.T, g grants, r *releasev1alpha1.Release) *releaseAnswer {
	t.Helper()
	a := newTestAPI(t, g)
	reader := fake.NewClientBuilder().WithScheme(why.Scheme()).WithObjects(r).Build()
	key := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
	answer, err := a.describeRelease(t.Context(), reader, reader.RESTMapper(), alice, key)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestReleaseOffersWhatItTakesNow(t *testing.T) {
	all := grants{}
	for _, verb := range []string{"patch", "approve", "pause", "resume", "abort", "rollback", "skip", "retry"} {
		all[verb+" releases shop"] = true
	}
	all["create releaseapprovals shop"] = true
	gated := gatedRelease()
	paused := gatedRelease()
	paused.Spec.State, paused.Status.Phase = releasev1alpha1.StatePause, releasev1alpha1.ReleasePaused
	paused.Status.Stages[0].Phase = releasev1alpha1.StageFailed
	over := gatedRelease()
	over.Status.Phase, over.Status.Stages[0].EndedAt = releasev1alpha1.ReleaseSucceeded, &metav1.Time{Time: time.Now()}
	over.Status.Stages[0].StartedAt = over.Status.Stages[0].EndedAt
	gone := over.DeepCopy()
	gone.Status.Targets = []releasev1alpha1.ReleaseTargetStatus{{Name: "web", From: "a", To: "b"}}
	for name, c := range map[string]struct {
		release *releasev1alpha1.Release
		want    []string
	}{
		"at a gate":                          {gated, []string{"approve", "reject", "pause", "skip", "rollback", "abort"}},
		"paused":                             {paused, []string{"resume", "retry", "skip", "rollback", "abort"}},
		"ended":                              {over, []string{"rollback"}},
		"ended, and the workload is deleted": {gone, nil},
	} {
		var got []string
		for _, action := range describe(t, all, c.release).Actions {
			got = append(got, action.Verb)
			if action.Missing != nil || action.Refused != "" {
				t.Errorf("%s: %s lacks %v %s", name, action.Verb, action.Missing, action.Refused)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the actions are %q, want %q", name, got, c.want)
		}
	}
	answer := describe(t, all, gated)
	raw, _ := json.Marshal(answer.Actions[0].Writes)
	for _, part := range []string{`"path":"apis/release.argosy.io/v1alpha1/namespaces/shop/releaseapprovals"`,
		`"releaseUID":"u1"`, `"attempt":3`, `"revision":"rev"`, `"gate":"sign"`, `"verdict":"Approve"`} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("the approval lacks %s: %s", part, raw)
		}
	}
	if g := answer.Stages[0].Gates[0]; g.Need != 2 || !slices.Equal(g.By, []string{"carol"}) || !g.NotAuthor {
		t.Errorf("the gate is %+v", g)
	}
}

// A failed read hides the actions that need it, not the release. A missing right hides them silently.
func TestFailedReadLeavesTheReleaseOnItsPage(t *testing.T) {
	over := gatedRelease()
	over.Status.Phase = releasev1alpha1.ReleaseSucceeded
	over.Status.Stages[0].StartedAt, over.Status.Stages[0].EndedAt = &metav1.Time{Time: time.Now()}, &metav1.Time{
		Time: time.Now()}
	slow := errors.New("the store is slow")
	for name, c := range map[string]struct {
		release *releasev1alpha1.Release
		err     error
		want    []string
		unread  string
	}{
		"a read that fails":     {over, slow, nil, "the store is slow"},
		"a read that times out": {over, context.DeadlineExceeded, nil, "deadline"},
		"a read that is forbidden": {over, apierrors.NewForbidden(schema.GroupResource{Resource: "releases"}, "", slow), nil,
			""},
		"no read": {gatedRelease(), slow, []string{"approve", "reject", "pause", "skip", "rollback", "abort"}, ""},
	} {
		hub := fake.NewClientBuilder().WithScheme(why.Scheme()).WithObjects(c.release).Build()
		broken := interceptor.NewClient(hub, interceptor.Funcs{List: func(context.Context, client.WithWatch,
			client.ObjectList, ...client.ListOption) error {
			return c.err
		}})
		answer, err := newTestAPI(t, grants{}).describeRelease(t.Context(), broken, hub.RESTMapper(), alice,
			client.ObjectKeyFromObject(c.release))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, action := range answer.Actions {
			got = append(got, action.Verb)
		}
		unread := strings.Join(answer.Unread, "; ")
		if !slices.Equal(got, c.want) || !strings.Contains(unread, c.unread) || (c.unread == "") != (unread == "") {
			t.Errorf("%s: the actions are %q, unread %q", name, got, unread)
		}
	}
}

// Without one right, exactly the actions that need it name it.
func TestActionNamesTheVerbThatIsMissing(t *testing.T) {
	rights := []string{"patch", "approve", "pause", "abort", "rollback", "skip"}
	for _, lost := range rights {
		g := grants{"create releaseapprovals shop": true}
		for _, verb := range rights {
			g[verb+" releases shop"] = verb != lost
		}
		for _, action := range describe(t, g, gatedRelease()).Actions {
			needs := action.Verb == lost || lost == "patch" && action.Verb != "approve" && action.Verb != "reject" ||
				lost == "approve" && action.Verb == "reject"
			if got := action.Missing; needs != (got != nil) || got != nil && (got.Verb != lost || got.Namespace != "shop") {
				t.Errorf("without %s, %s lacks %v", lost, action.Verb, got)
			}
		}
	}
	g := grants{"approve releases shop": true}
	if got := describe(t, g, gatedRelease()).Actions[0].Missing; got == nil || got.Resource != "releaseapprovals" {
		t.Errorf("without the right to create approvals, %v is missing", got)
	}
}

func TestAuthorSeesWhyTheVerdictDoesNotCount(t *testing.T) {
	r := gatedRelease()
	r.Spec.CreatedBy.User = "alice"
	const want = "alice created the release: another user must approve it"
	if got := describe(t, grants{}, r).Actions[0].Refused; got != want {
		t.Errorf("the reason is %q", got)
	}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// openHistory opens an empty history for an API.
func openHistory(t *testing.T, a *API) *history.Store {
	t.Helper()
	dir := t.TempDir()
	a.History = history.NewSource(func(ctx context.Context) (*history.Store, error) {
		return history.OpenSQLite(ctx, dir)
	})
	store, _, err := a.History.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.History.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// joined returns the event that a cluster joined.
func joined(name string) history.FleetEvent {
	return history.FleetEvent{UID: name, Type: history.Joined, At: time.Now(), Workload: history.Workload{Kind: "Cluster",
		Name: name}}
}

// Rights come first: without any of them, the database is not even opened.
func TestTimelineReadsNothingForAUserWithoutRights(t *testing.T) {
	a := newTestAPI(t, grants{"list releases deleted": true}, namespace("shop"))
	a.History = history.NewSource(func(context.Context) (*history.Store, error) {
		t.Error("the history is opened")
		return nil, errors.New("it is not there")
	})
	w := a.request(t, alice, "GET", timelinePath, "")
	var answer timelineAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK ||
		len(answer.Entries) > 0 || len(answer.Missing) != 3 || answer.Version != "" {
		t.Errorf("the answer is %d %s", w.Code, w.Body)
	}
}

// A tab with the current version gets no entries until something happens, or until rights are checked again.
func TestTabThatIsUpToDateGetsNoEntries(t *testing.T) {
	a := newTestAPI(t, grants{"list clusters *": true})
	store := openHistory(t, a)
	now := time.Unix(1_800_000_000, 0)
	a.version.now = func() time.Time { return now }
	ask := func(version string) timelineAnswer {
		t.Helper()
		answer, err := a.timelineSince(t.Context(), alice, history.TimelineFilter{}, version)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	record := func(name string) {
		t.Helper()
		if err := store.RecordFleet(t.Context(), []history.FleetEvent{joined(name)}); err != nil {
			t.Fatal(err)
		}
	}
	record("eu")
	first := ask("")
	if first.Same || len(first.Entries) != 1 {
		t.Fatalf("the first answer is %+v", first)
	}
	if again := ask(first.Version); !again.Same || len(again.Entries) > 0 || again.Version != first.Version {
		t.Errorf("without a change, the answer is %+v", again)
	}
	record("us")
	now = now.Add(freshHistory)
	second := ask(first.Version)
	if second.Same || len(second.Entries) != 2 || second.Version == first.Version {
		t.Errorf("after a change, the answer is %+v", second)
	}
	now = now.Add(rightsAge)
	if later := ask(second.Version); later.Same {
		t.Error("rights are not checked again")
	}
}

// undecided is an authorizer that cannot decide.
type undecided struct{}

func (undecided) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", errors.New("the webhook does not answer")
}

// An answer without entries would say that the user has no rights, for as long as rights are cached.
func TestTimeLineWaitsForTheAuthorizer(t *testing.T) {
	g := grants{"list deployments shop": true, "list resourcebindings shop": true}
	a := newTestAPI(t, g, namespace("shop"))
	openHistory(t, a)
	for _, c := range []struct {
		authorizer authorizer.Authorizer
		want       string
	}{{nil, "the API server starts"}, {undecided{}, "the webhook does not answer"}} {
		a.rights.authorizer = func() authorizer.Authorizer { return c.authorizer }
		answer, err := a.timelineSince(t.Context(), alice, history.TimelineFilter{}, "")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the answer is %+v, %v, want the error %q", answer, err, c.want)
		}
	}
	a.rights.authorizer = func() authorizer.Authorizer { return g }
	if answer, err := a.timelineSince(t.Context(), alice, history.TimelineFilter{}, ""); err != nil ||
		answer.Version == "" {
		t.Errorf("the answer without a version, for no namespaces, is %+v, %v", answer, err)
	}
}

// counting counts the questions to an authorizer.
type counting struct {
	authorizer.Authorizer
	asked int
}

func (c *counting) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	c.asked++
	return c.Authorizer.Authorize(ctx, a)
}

// An open page asks every few seconds. The hub decides about the namespaces of its user once in rightsAge. A request
// after that time does not show what the user may no longer see.
func TestLostRightEndsInTheTimeLineWithinItsAge(t *testing.T) {
	g := grants{"list deployments shop": true, "list resourcebindings shop": true}
	objs := []client.Object{namespace("shop")}
	for i := range 50 {
		objs = append(objs, namespace(fmt.Sprint("other", i)))
	}
	a := newTestAPI(t, g, objs...)
	store := openHistory(t, a)
	count := &counting{Authorizer: g}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_002, 0))
	a.Authorizer = func() authorizer.Authorizer { return count }
	a.rights.authorizer, a.rights.known = a.Authorizer, cache.NewLRUExpireCacheWithClock(100, clock)
	a.version.now, a.namespaces = clock.Now, cache.NewLRUExpireCacheWithClock(10, clock)
	if err := store.RecordFleet(t.Context(), []history.FleetEvent{{UID: "w", Type: history.Moved, At: time.Now(),
		Workload: history.Workload{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}}}); err != nil {
		t.Fatal(err)
	}
	ask := func(version string) timelineAnswer {
		t.Helper()
		answer, err := a.timelineSince(t.Context(), alice, history.TimelineFilter{}, version)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	first := ask("")
	if len(first.Entries) != 1 {
		t.Fatalf("the first answer is %+v", first)
	}
	before := count.asked
	for range 5 {
		clock.SetTime(clock.Now().Add(2 * time.Second))
		if again := ask(first.Version); !again.Same {
			t.Fatalf("without a change, the answer is %+v", again)
		}
	}
	if count.asked != before {
		t.Errorf("5 more answers asked the authorizer %d times", count.asked-before)
	}

	clear(g)
	clock.SetTime(time.Unix(1_800_000_003, 0).Add(rightsAge))
	if lost := ask(first.Version); lost.Same || len(lost.Entries) > 0 {
		t.Errorf("after the loss of the right, the answer is %+v", lost)
	}

	// Another user has an answer of its own, also within that time.
	g["list deployments shop"], g["list resourcebindings shop"] = true, true
	bob := &user.DefaultInfo{Name: "bob"}
	if answer, err := a.timelineSince(t.Context(), bob, history.TimelineFilter{}, ""); err != nil ||
		len(answer.Entries) != 1 {
		t.Errorf("bob sees %+v, %v", answer.Entries, err)
	}
}

// Whatever rights a user has, each entry of the time line is of an object that the user may list.
func TestTimelineHasOnlyWhatTheUserMayList(t *testing.T) {
	g := grants{}
	a := newTestAPI(t, g, namespace("shop"), namespace("bank"))
	store := openHistory(t, a)
	events := history.EventsOfCluster(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", UID: "c",
		CreationTimestamp: metav1.Now()}})
	namespaces, now := []string{"shop", "bank"}, time.Now()
	for i, ns := range namespaces {
		events = append(events,
			history.FleetEvent{UID: fmt.Sprint("w", i), Type: history.Moved, At: now, Workload: history.Workload{
				Group: "apps", Kind: "Deployment", Namespace: ns, Name: "web"}},
			history.FleetEvent{UID: fmt.Sprint("p", i), Type: history.Changed, At: now, Workload: history.Workload{
				Group: "policy.karmada.io", Kind: "OverridePolicy", Namespace: ns, Name: "web"}},
			history.FleetEvent{UID: fmt.Sprint("x", i), Type: history.Changed, At: now, Workload: history.Workload{
				Group: "policy.karmada.io", Kind: "Unknown", Namespace: ns, Name: "web"}})
		r := gatedRelease()
		r.Namespace, r.UID = ns, types.UID(ns)
		if err := store.RecordRelease(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.RecordFleet(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	all := []string{"list clusters *"}
	for _, resource := range []string{"deployments", "releases", "resourcebindings", "overridepolicies"} {
		for _, ns := range append([]string{"*"}, namespaces...) {
			all = append(all, "list "+resource+" "+ns)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	seen := map[string]int{}
	for range 300 {
		clear(g)
		a.rights.known.RemoveAll(func(any) bool { return true })
		a.namespaces.RemoveAll(func(any) bool { return true })
		for _, right := range all {
			g[right] = random.IntN(3) == 0
		}
		may := func(resource, ns string) bool { return g["list "+resource+" *"] || g["list "+resource+" "+ns] }
		whole, err := a.timeline(t.Context(), store, alice, history.TimelineFilter{})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := a.timelineSince(t.Context(), alice, history.TimelineFilter{}, "")
		if err != nil || !reflect.DeepEqual(answer.Entries, whole.Entries) {
			t.Fatalf("with the rights %v, the query of the user's namespaces gives %+v, %v; all namespaces give %+v", g,
				answer.Entries, err, whole.Entries)
		}
		for _, e := range answer.Entries {
			seen[e.Kind]++
			allowed := map[string]bool{"Cluster": g["list clusters *"], "Release": may("releases", e.Namespace),
				"OverridePolicy": may("overridepolicies", e.Namespace),
				"Deployment":     may("deployments", e.Namespace) && may("resourcebindings", e.Namespace)}[e.Kind]
			if !allowed {
				t.Fatalf("the time line has %+v with the rights %v", e, g)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("the kinds seen are %v", seen)
	}
}

func TestTimelineShowsThatTheHistoryIsOff(t *testing.T) {
	a := newTestAPI(t, grants{})
	w := a.request(t, alice, "GET", timelinePath, "")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"off":true`) {
		t.Errorf("the answer is %d %s", w.Code, w.Body)
	}
	for _, query := range []string{"?class=everything", "?before=yesterday", "?by=robots", "?range=year", "?from=monday",
		"?range=between&from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z"} {
		if w := a.request(t, alice, "GET", timelinePath+query, ""); w.Code != http.StatusBadRequest {
			t.Errorf("%s gave %d", query, w.Code)
		}
	}
}

// A page of the time line continues where the one before it ended, whatever the user may not see between.
func TestOlderEntriesContinueThePage(t *testing.T) {
	a := newTestAPI(t, grants{"list clusters *": true})
	store := openHistory(t, a)
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var events []history.FleetEvent
	for i := range 1500 {
		second := max(0, i-900) / 7 // the first 900 in one second
		e := history.FleetEvent{UID: fmt.Sprint(i), Type: history.Joined, At: start.Add(time.Duration(second) * time.Second),
			Workload: history.Workload{Kind: "Cluster", Name: fmt.Sprint("c", i)}}
		if i%3 == 0 {
			e.Type, e.Kind = history.Changed, "OverridePolicy" // not visible
		}
		events = append(events, e)
	}
	for batch := range slices.Chunk(events, 100) {
		if err := store.RecordFleet(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	f := history.TimelineFilter{}
	for pages := 1; ; pages++ {
		answer, err := a.timeline(t.Context(), store, alice, f)
		if err != nil || pages > 20 {
			t.Fatalf("page %d: %v", pages, err)
		}
		for _, e := range answer.Entries {
			seen[e.ID] = true
		}
		if answer.Older == "" {
			break
		}
		if f.Before, err = time.Parse(time.RFC3339, answer.Older); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 entries were seen", len(seen))
	}
}

func TestTimelineHasARange(t *testing.T) {
	now := time.Date(2026, 1, 8, 12, 0, 0, 0, time.UTC)
	at := func(day int) time.Time { return time.Date(2026, 1, day, 12, 0, 0, 0, time.UTC) }
	const between = "range=between&from=2026-01-03T12:00:00Z&to=2026-01-05T12:00:00Z"
	for query, want := range map[string]history.TimelineFilter{
		"":                                       {},
		"range=hour":                             {Since: now.Add(-time.Hour)},
		"range=day":                              {Since: at(7)},
		"range=week&by=people":                   {Since: at(1), By: history.ByPeople},
		between + "&by=hub":                      {Since: at(3), Before: at(5), By: history.ByHub},
		between + "&before=2026-01-04T12:00:00Z": {Since: at(3), Before: at(4)},
		between + "&before=2026-01-06T12:00:00Z": {Since: at(3), Before: at(5)},
		"range=between&to=2026-01-05T12:00:00Z":  {Before: at(5)},
		"range=day&to=2026-01-05T12:00:00Z":      {Since: at(7)},
	} {
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := timelineFilter(v, now); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, %v; want %+v", query, got, err, want)
		}
	}
}
