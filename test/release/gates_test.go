package release

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/test/kit"
)

// prometheus answers each query with its current answer.
type prometheus struct {
	mu   sync.Mutex
	code int
	body string
}

func (p *prometheus) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.WriteHeader(p.code)
	_, _ = io.WriteString(w, p.body)
}

// answers sets the answer: some numbers, or an error without any code of success.
func (p *prometheus) answers(code int, numbers ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.code, p.body = code, vector(numbers...)
}

// vector is the answer of a Prometheus with numbers.
func vector(numbers ...string) string {
	var all []string
	for _, n := range numbers {
		all = append(all, fmt.Sprintf(`{"metric":{},"value":[1,%q]}`, n))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(all, ",") + `]}}`
}

// checkBy creates a ReleaseCheck.
func (s *story) checkBy(name, spec string) {
	s.t.Helper()
	s.creates(fmt.Sprintf(`{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseCheck,
		metadata: {name: %s, namespace: %s}, spec: %s}`, name, s.ns, spec))
}

func checkedByPrometheus(t *testing.T) {
	s := newStory(t, "m1", "m2")
	s.shop(10, "100%")
	s.sets(image(2))
	p := &prometheus{}
	server := httptest.NewServer(p)
	defer server.Close()
	spec := `{interval: 1s, inconclusiveLimit: 1, failureLimit: %d, prometheus: {url: "` + server.URL + `",
		query: ok, condition: result > 0.98}}`
	s.checkBy("lenient", fmt.Sprintf(spec, 1))
	s.checkBy("strict", fmt.Sprintf(spec, 0))
	strategy := func(check string) string {
		return `{stages: [{name: canary, to: {percent: 20}, after: [{name: errors, type: Check, checkRef: {name: ` +
			check + `}}]}, {name: rest}]}`
	}
	s.stages("first", "shop", image(2), []string{"canary", "rest"}, []int{2, 10})
	is := func(reason string) {
		t.Helper()
		s.becomes("first", running, reason)
		s.read(func() {
			if n := s.count("shop", image(2)); n != 2 {
				t.Errorf("%d pods are new with %s, want 2", n, reason)
			}
		})
	}
	p.answers(http.StatusOK)
	s.starts("first", strategy("lenient"))
	is(releasev1alpha1.ReasonCheckInconclusive)
	p.answers(http.StatusInternalServerError)
	is(releasev1alpha1.ReasonCheckUnavailable)
	p.answers(http.StatusOK, "NaN")
	is(releasev1alpha1.ReasonCheckInconclusive)
	p.answers(http.StatusOK, "0.99")
	r := s.becomes("first", succeeded, completed)
	if c := r.Status.Stages[0].Gates[0].Check; c.Verdict != releasev1alpha1.CheckPass || c.Value != "0.99" {
		t.Errorf("the check has passed as %+v", c)
	}
	s.runs("shop", image(2), 10)

	s.sets(image(3))
	p.answers(http.StatusOK, "0.97")
	s.stages("second", "shop", image(3), []string{"canary", "rest"}, []int{2, 10})
	s.starts("second", strategy("strict"))
	s.becomes("second", rolledBack, releasev1alpha1.ReasonRolledBack)
	s.runs("shop", image(2), 10)
}

// killedWhileJudged kills the hub after a webhook was asked and before it has answered.
func killedWhileJudged(t *testing.T) {
	const kills = 5
	asked, killed := make(chan string), make(chan struct{}) // killed is closed after the last kill
	var mu sync.Mutex
	passed := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices that the client has gone when it has read all
		key := r.Header.Get("Idempotency-Key")
		select {
		case asked <- key:
			<-r.Context().Done()
		case <-r.Context().Done():
		case <-killed:
			mu.Lock()
			defer mu.Unlock()
			passed++
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer server.Close()
	restarts(t, func() {})
	s := newStory(t, "m1", "m2")
	s.shop(4, "100%")
	s.sets(image(2))
	s.checkBy("judge", `{interval: 1s, inconclusiveLimit: 100, webhook: {url: "`+server.URL+`", timeout: 30s}}`)
	s.stages("judged", "shop", image(2), []string{"canary", "rest"}, []int{1, 4})
	s.starts("judged", `{stages: [{name: canary, to: {pods: 1},
		after: [{name: judge, type: Check, checkRef: {name: judge}}]}, {name: rest}]}`)
	var keys []string
	for range kills {
		select {
		case key := <-asked:
			keys = append(keys, key)
		case <-time.After(startTimeout):
			t.Fatalf("the webhook was asked %d times", len(keys))
		}
		restarts(t, func() {})
	}
	close(killed)
	r := s.becomes("judged", succeeded, completed)
	if slices.Sort(keys); keys[0] == "" || len(slices.Compact(keys)) != 1 {
		t.Errorf("the requests of one attempt have the keys %q", keys)
	}
	for _, stage := range r.Status.Stages {
		if stage.StartedAt == nil || stage.Phase != releasev1alpha1.StageDone || stage.Attempt != 1 {
			t.Errorf("stage %s is %s at attempt %d", stage.Name, stage.Phase, stage.Attempt)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if passed != 1 {
		t.Errorf("the webhook has answered %d times, want once", passed)
	}
	s.runs("shop", image(2), 4)
}

// guards creates or changes a ReleaseGuard for the namespaces of stories.
func guards(t *testing.T, spec string, stories ...*story) {
	t.Helper()
	var namespaces []string
	for _, s := range stories {
		namespaces = append(namespaces, s.ns)
	}
	guard := fmt.Sprintf(`{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseGuard, metadata: {name: %s},
		spec: {selector: {namespaces: [%s]}, %s}}`, stories[0].ns, strings.Join(namespaces, ", "), spec)
	fleet.Hub.RemoveAtEnd(t, fleet.Hub.Apply(t, guard)[0])
}

func frozen(t *testing.T) {
	s := newStory(t, "m1", "m2")
	s.shop(10, 1)
	s.sets(image(2))
	s.stages("gray", "shop", image(2), []string{"one", "two", "rest"}, []int{4, 6, 10})
	s.starts("gray", `{stages: [{name: one, to: {percent: 40}}, {name: two, to: {percent: 60}, before: [{name: go}]},
		{name: rest}]}`)
	s.waits("a pod is new", func() bool { return s.count("shop", image(2)) > 0 })
	guards(t, fmt.Sprintf(`windows: [{kind: Deny, from: "%s", to: "%s", reason: a fair}]`,
		time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)), s)
	s.approves("gray", "two")
	r := s.becomes("gray", running, releasev1alpha1.ReasonFrozen)
	s.waits("the stage that was under way has ended", func() bool { return s.count("shop", image(2)) == 4 })
	if r.Status.Guard == nil || r.Status.Guard.Name != s.ns || r.Status.Guard.Until == nil {
		t.Errorf("the release waits for %+v", r.Status.Guard)
	}

	// An administrator of the namespace has all other verbs.
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding,
		metadata: {name: a, namespace: %[1]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole,
		name: admin}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: a-%[1]s}]}`, s.ns))
	a := person(t, "a-"+s.ns, "none")
	patch := func(body string) error {
		obj := &releasev1alpha1.Release{}
		obj.Namespace, obj.Name = s.ns, "gray"
		return a.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body)))
	}
	kit.Eventually(t, "the administrator may pause", func() string {
		if err := patch(`{"spec":{"state":"Pause"}}`); err != nil {
			return err.Error()
		}
		return ""
	})
	s.becomes("gray", releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByUser)
	s.does("resume", "gray", "--yes")
	s.becomes("gray", running, releasev1alpha1.ReasonFrozen)
	if err := patch(`{"metadata":{"annotations":{"` + releasev1alpha1.BreakGlassAnnotation + `":"two@1","` +
		releasev1alpha1.ReleaseReasonAnnotation + `":"down"}}}`); !apierrors.IsForbidden(err) {
		t.Errorf("break-glass without the verb: %v, want it forbidden", err)
	}
	s.does("break-glass", "gray", "--reason", "checkout is down")
	s.waits("6 pods are new", func() bool { return s.count("shop", image(2)) == 6 })
	s.waits("the last stage waits for the window, too", func() bool {
		r = s.releases["gray"]
		return r.Status.Stage == "rest" && r.Status.Reason == releasev1alpha1.ReasonFrozen
	})
	if !slices.ContainsFunc(r.Status.Journal, func(e releasev1alpha1.ReleaseJournalEntry) bool {
		return e.Type == releasev1alpha1.JournalVerb && e.Stage == "two" && e.Actor != "" &&
			strings.Contains(e.Message, "checkout is down")
	}) {
		t.Errorf("the journal lacks the emergency: %+v", r.Status.Journal)
	}
	s.does("rollback", "gray", "--yes")
	s.becomes("gray", rolledBack, releasev1alpha1.ReasonRolledBack)
	s.runs("shop", image(1), 10)
}

// inFlight counts the clusters with new pods of shop that are not available, over all stories. confirm, if set, asks
// the clusters again: their events may arrive in another order than they happened. The caller has the lock.
func inFlight(stories []*story, confirm func(*story, map[string][]string) map[string][]string) (n int) {
	for _, s := range stories {
		down := s.down("shop", image(2))
		if confirm != nil {
			down = confirm(s, down)
		}
		n += len(down)
	}
	return n
}

func limitedByGuard(t *testing.T) {
	var stories []*story
	for range 5 {
		stories = append(stories, newStory(t, "m1", "m2", "m3"))
	}
	guards(t, "limits: {releases: 2, clusters: 3}", stories...)
	const strategy = `{stages: [{name: first, clusters: {clusterNames: [m1]}}, {name: rest}]}`
	var most struct{ releases, clusters int }
	waited := false
	var plans []plan
	for _, s := range stories {
		s.shop(3, 1)
		s.sets(image(2))
		plans = append(plans, s.plans(strategy))
		s.check(func(event) {
			releases, clusters := 0, 0
			for _, other := range stories {
				r := other.releases["gray"]
				if r == nil || !r.Status.Phase.UnderWay() {
					continue
				}
				releases++
				waited = waited || r.Status.Reason == releasev1alpha1.ReasonLimitReached
				for _, stage := range r.Status.Stages {
					if stage.StartedAt != nil && stage.EndedAt == nil {
						clusters += len(stage.ClusterNames)
					}
				}
			}
			most.releases, most.clusters = max(most.releases, releases), max(most.clusters, clusters)
			if releases > 2 || clusters > 3 {
				s.violated("%d releases with %d clusters are under way where 2 with 3 may be", releases, clusters)
			}
		})
		s.check(func(e event) {
			if _, isPod := e.obj.(*corev1.Pod); isPod && inFlight(stories, nil) > 3 {
				if n := inFlight(stories, (*story).stillDown); n > 3 {
					s.violated("pods are in flight in %d clusters where 3 may be", n)
				}
			}
		})
	}
	for _, s := range stories {
		s.starts("gray", strategy)
	}
	for i, s := range stories {
		s.becomes("gray", succeeded, completed)
		s.runs("shop", image(2), 3)
		s.planned(plans[i], "gray", image(2))
	}
	stories[0].read(func() {
		if most.releases != 2 || most.clusters < 2 {
			t.Errorf("at most %d releases with %d clusters were under way", most.releases, most.clusters)
		}
		t.Logf("at most %d clusters; a stage has waited for the limit: %t", most.clusters, waited)
	})
}

// events is a Prometheus that has counted 10000 events, of which some were good; empty for no data.
type events struct {
	mu   sync.Mutex
	good string
}

func (e *events) set(good string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.good = good
}

func (e *events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	body := vector()
	switch query := r.URL.Query().Get("query"); {
	case e.good == "":
	case query == "good[30d]":
		body = vector(e.good)
	case query == "all[30d]":
		body = vector("10000")
	}
	_, _ = io.WriteString(w, body)
}

// Of 10000 events, 100 may be bad. 80 may be before the guard closes.
func waitsForErrorBudget(t *testing.T) {
	s := newStory(t, "m1", "m2")
	s.shop(10, "100%")
	s.sets(image(2))
	slo := &events{}
	server := httptest.NewServer(slo)
	defer server.Close()
	s.checkBy("checkout", `{interval: 1s, inconclusiveLimit: 1, slo: {url: "`+server.URL+`", objective: "99", window: 30d,
		good: "good[{{window}}]", total: "all[{{window}}]"}}`)
	guards(t, "limits: {minErrorBudget: {percent: 20, checkRef: {namespace: "+s.ns+", name: checkout}}}", s)
	is := func(phase releasev1alpha1.ReleasePhase, reason string, pods int) {
		t.Helper()
		r := s.becomes("gray", phase, reason)
		if r.Status.Guard == nil || r.Status.Guard.Name != s.ns ||
			r.Status.Guard.Limit != releasev1alpha1.LimitErrorBudget {
			t.Errorf("with %s, the release waits for %+v", reason, r.Status.Guard)
		}
		s.read(func() {
			if n := s.count("shop", image(2)); n != pods {
				t.Errorf("%d pods are new with %s, want %d", n, reason, pods)
			}
		})
	}
	s.stages("gray", "shop", image(2), []string{"canary", "rest"}, []int{2, 10})
	s.starts("gray", `{stages: [{name: canary, to: {percent: 20}}, {name: rest, before: [{name: go}]}]}`)
	is(releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonErrorBudgetUnknown, 0)
	slo.set("9910")
	is(releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonErrorBudgetSpent, 0)
	for _, want := range []string{"20% of the error budget must be left", "argosy release break-glass gray"} {
		if out := s.does("status", "gray"); !strings.Contains(out, want) {
			t.Errorf("the status lacks %q: %s", want, out)
		}
	}
	slo.set("9990")
	s.awaits("gray", "rest")
	s.waits("2 pods are new", func() bool { return s.count("shop", image(2)) == 2 })

	slo.set("9910")
	kit.Eventually(t, "the guard shows that the budget is spent", func() string {
		g := fleet.Hub.Find(t, "release.argosy.io/v1alpha1", "ReleaseGuard", "", s.ns)
		if state := kit.Field(g, "status", "errorBudget", "state"); state != "Spent" {
			return fmt.Sprintf("it shows %v", state)
		}
		return ""
	})
	s.approves("gray", "rest")
	is(running, releasev1alpha1.ReasonErrorBudgetSpent, 2)
	slo.set("")
	is(running, releasev1alpha1.ReasonErrorBudgetUnknown, 2)
	slo.set("9990")
	s.becomes("gray", succeeded, completed)
	s.runs("shop", image(2), 10)
}

// A guard records changes that wait for no release, and a stricter one refuses them.
func directChangesAreRecorded(t *testing.T) {
	s := newStory(t, "m1", "m2")
	guards(t, "require: Record", s)
	s.cloneSet(6, "100%", "")
	kit.Eventually(t, "the revision before the first change is stored", func() string {
		var list releasev1alpha1.ReleaseRevisionList
		if err := fleet.Hub.List(t.Context(), &list, client.InNamespace(s.ns)); err != nil || len(list.Items) != 1 {
			return fmt.Sprintf("%d revisions are, %v", len(list.Items), err)
		}
		return ""
	})
	s.check(func(event) {
		if b := s.bindings["shop-cloneset"]; b != nil && b.Annotations[wellknown.ReleasePlanAnnotation] != "" {
			s.violated("a record paces the workload: %v", b.Annotations)
		}
	})
	known := map[string]bool{}
	recorded := func() string {
		t.Helper()
		return s.created(known, releasev1alpha1.TriggerDirect)
	}
	s.sets(image(2))
	first := recorded()
	s.becomes(first, succeeded, completed)
	s.runs("shop", image(2), 6)
	s.sets(image("bad"))
	failing := recorded()
	s.becomes(failing, running, releasev1alpha1.ReasonStageUpdating)

	// What a record observes cannot be paused or undone by it.
	if out, code := s.argosy("rollback", failing, "--yes"); code == 0 || !strings.Contains(out, "revert the template") {
		t.Errorf("argosy release rollback of a record exits with %d: %s", code, out)
	}
	patch := func(by kit.Cluster, obj client.Object, body string, options ...client.PatchOption) error {
		return by.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body)), options...)
	}
	record := &releasev1alpha1.Release{}
	record.Namespace, record.Name = s.ns, failing
	if err := patch(fleet.Hub, record, `{"spec":{"state":"Pause"}}`); err == nil ||
		!strings.Contains(err.Error(), "revert the template") {
		t.Errorf("the pause of a record: %v", err)
	}
	s.sets(image(3))
	s.becomes(failing, releasev1alpha1.ReleaseSuperseded, releasev1alpha1.ReasonSuperseded)
	s.becomes(recorded(), succeeded, completed)
	s.runs("shop", image(3), 6)

	// An administrator of the namespace can neither change the guard nor pass a stricter one.
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding,
		metadata: {name: a, namespace: %[1]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole,
		name: admin}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: a-%[1]s}]}`, s.ns))
	a := person(t, "a-"+s.ns, "none")
	guard := &releasev1alpha1.ReleaseGuard{}
	guard.Name = s.ns
	if err := patch(a, guard, `{"spec":{"require":null}}`); !apierrors.IsForbidden(err) {
		t.Errorf("a change of the guard: %v, want it forbidden", err)
	}
	guards(t, "require: Enforce", s)
	kit.Eventually(t, "a direct change is refused", func() string {
		shop := kit.Object(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: shop, namespace: "+
			s.ns+"}}")
		err := patch(a, shop, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"`+image(4)+`"}]}}}}`,
			client.DryRunAll) // the guard and the role may take a moment until they count
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ReleaseGuard "+s.ns+" requires releases") {
			return fmt.Sprintf("the answer is %v", err)
		}
		return ""
	})
	s.rounds()
	s.runs("shop", image(3), 6)
}
