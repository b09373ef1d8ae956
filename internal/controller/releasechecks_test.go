package controller

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// judge is a server that a check asks.
type judge struct {
	*httptest.Server
	mu       sync.Mutex
	requests []judged
	// answer of the next request.
	code int
	body string
}

// judged is a request that a judge got.
type judged struct {
	path, query, body string
	header            http.Header
}

func newJudge(t *testing.T) *judge {
	j := &judge{code: 200}
	j.Server = membertest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.requests = append(j.requests, judged{r.URL.Path, r.URL.Query().Get("query"), string(body), r.Header})
		w.WriteHeader(j.code)
		_, _ = io.WriteString(w, j.body)
	}))
	t.Cleanup(j.Close)
	return j
}

// answerWith sets the answer.
func (j *judge) answerWith(code int, body string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.code, j.body = code, body
}

// number is the answer of a Prometheus with one number, or with none.
func number(values ...string) string {
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprintf(`{"metric":{},"value":[1,%q]}`, v))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(all, ",") + `]}}`
}

// got returns the requests so far, and forgets them.
func (j *judge) got() []judged {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := j.requests
	j.requests = nil
	return all
}

// check creates a ReleaseCheck in YAML.
func (w *releaseWorld) check(name, spec string) {
	w.t.Helper()
	c := &releasev1alpha1.ReleaseCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &c.Spec); err != nil {
		w.t.Fatal(err)
	}
	w.Make(c)
	w.Advance(time.Second)
}

// gate returns the state of the first gate of a stage.
func (w *releaseWorld) gate(r *releasev1alpha1.Release, stage int) releasev1alpha1.ReleaseGateStatus {
	w.t.Helper()
	w.HasObject(r)
	if len(r.Status.Stages) <= stage || len(r.Status.Stages[stage].Gates) == 0 {
		w.t.Fatalf("stage %d has no gate: %+v", stage, r.Status)
	}
	return r.Status.Stages[stage].Gates[0]
}

const checkedStages = `
stages:
- {name: canary, to: {percent: 10}, after: [{name: errors, type: Check, checkRef: {name: c}}]}
- {name: rest}
`

// Scenario 8 of releases: no data and errors move nothing.
func TestAReleaseWaitsForTheNumbersOfAPrometheus(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w, j := newReleaseWorld(t), newJudge(t)
		w.Make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"},
			Data: map[string][]byte{"token": []byte("t-1\n")}})
		w.check("c", `{interval: 10s, failureLimit: 2, prometheus: {url: "`+j.URL+`/prom/", secretRef: {name: key},
			query: 'ok{cluster=~"{{clusters}}",stage="{{stage}}"}', condition: result > 0.98}}`)
		j.answerWith(200, number())
		w.Quiet()
		r := w.release("r1", checkedStages)
		w.pass(30 * time.Second)
		w.pods("at the gate", "web:2", 1, 1, 1)
		w.expect("at the gate", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking)
		if g := w.gate(r, 0); g.Check.Key == "" || g.Check.Attempt != 1 {
			t.Errorf("the check is %+v", g.Check)
		}
		j.answerWith(200, number("NaN"))
		w.pass(30 * time.Second)
		w.expect("without data", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonCheckInconclusive)
		j.answerWith(500, "")
		w.pass(20 * time.Second)
		w.expect("without an answer", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonCheckUnavailable)
		w.pods("without an answer", "web:2", 1, 1, 1)
		j.answerWith(200, number("0.97"))
		w.pass(10 * time.Second)
		w.expect("after a failure", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking)
		j.answerWith(200, number("0.99"))
		w.pass(40 * time.Second)
		w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		if g := w.gate(r, 0); g.Phase != releasev1alpha1.GatePassed || g.Check.Value != "0.99" || g.Check.Failed == 0 {
			t.Errorf("the gate is %+v, %+v", g, g.Check)
		}
		for _, q := range j.got() {
			if q.path != "/prom/api/v1/query" || q.query != `ok{cluster=~"m1|m2|m3",stage="canary"}` ||
				q.header.Get("Authorization") != "Bearer t-1" {
				t.Fatalf("the request was %+v", q)
			}
		}
		// Two stages, the gate, and four changes of what is known of it.
		if n := count(w.Quiet())["update releases/status"]; n > 2+3*2+1+4 {
			t.Errorf("the status was written %d times, want at most 13", n)
		}
		w.pass(time.Minute)
		if asked, wrote := j.got(), w.Quiet(); len(asked)+len(wrote) > 0 {
			t.Errorf("after the release, %d requests were sent, and %q written", len(asked), wrote)
		}
	})
}

func TestAFailedCheckRollsTheReleaseBack(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w, j := newReleaseWorld(t), newJudge(t)
		w.check("c", `{prometheus: {url: "`+j.URL+`", query: errors, control: former, condition: result <= control * 1.5}}`)
		j.answerWith(200, number("-1"))
		r := w.release("r1", checkedStages)
		w.pass(30 * time.Second)
		// -1 is more than -1.5: the canary is worse than the control.
		w.expect("after the failure", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack)
		w.pods("after the failure", "web:1", 10, 10, 10)
		if g := w.gate(r, 0); g.Phase != releasev1alpha1.GateFailed || g.Check.Control != "-1" {
			t.Errorf("the gate is %+v, %+v", g, g.Check)
		}
		if !slices.ContainsFunc(w.Events(), func(e string) bool {
			return strings.Contains(e, "Stage canary: CheckFailed") && strings.Contains(e, "-1, control -1")
		}) {
			t.Error("no event has the evidence")
		}
	})
}

// The hub is stopped again and again while a webhook judges. Each call of an attempt has the same key.
func TestAWebhookGetsOneKeyPerAttemptOverRestarts(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w, j := newReleaseWorld(t), newJudge(t)
		w.Make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"},
			Data: map[string][]byte{"hmac-key": []byte("s3cret")}})
		w.check("c", `{webhook: {url: "`+j.URL+`/judge", secretRef: {name: key}}}`)
		j.answerWith(200, `{"verdict":"Wait","retryAfter":"5s"}`)
		r := w.release("r1", checkedStages+"failure: {action: Pause}\n")
		w.pass(20 * time.Second)
		for range 3 {
			w.stop()
			w.start()
			w.pass(7 * time.Second)
		}
		first := w.gate(r, 0).Check
		requests := j.got()
		if len(requests) < 5 {
			t.Errorf("%d requests in 40 seconds and three restarts, want at least 5", len(requests))
		}
		for _, q := range requests {
			mac := hmac.New(sha256.New, []byte("s3cret"))
			mac.Write([]byte(q.body))
			var body struct{ Key, Release, Stage, Gate, Revision string }
			if err := json.Unmarshal([]byte(q.body), &body); err != nil {
				t.Fatal(err)
			}
			if q.header.Get("Idempotency-Key") != first.Key || body.Key != first.Key || body.Release != "r1" ||
				body.Stage != "canary" || body.Gate != "errors" || body.Revision != r.Status.Revision ||
				q.header.Get("X-Argosy-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
				t.Fatalf("with the key %s, the request is %+v", first.Key, q)
			}
		}
		w.pods("while the webhook waits", "web:2", 1, 1, 1)

		j.answerWith(200, `{"verdict":"Fail","message":"too slow"}`)
		w.pass(10 * time.Second)
		w.expect("after the failure", r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure)
		j.got()
		j.answerWith(204, "")
		controllertest.Change(w.Hub, r, func(r *releasev1alpha1.Release) {
			r.Annotations = map[string]string{releasev1alpha1.RetryAnnotation: "canary@1"}
		})
		w.pass(time.Minute)
		w.expect("after the retry", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		requests = j.got()
		if second := w.gate(r, 0).Check; len(requests) != 1 || second.Attempt != 2 || second.Key == first.Key ||
			requests[0].header.Get("Idempotency-Key") != second.Key {
			t.Errorf("the second attempt is %+v with the requests %+v", second, requests)
		}
	})
}

func TestACheckAsksTheServicesOfMembers(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		var mu sync.Mutex
		asked := map[string]bool{}
		for _, m := range w.members {
			m.server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/proxy") {
					return false
				}
				mu.Lock()
				defer mu.Unlock()
				asked[m.name+" "+r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("query")] = true
				_, _ = io.WriteString(rw, number("1"))
				return true
			})
		}
		const spec = `{prometheus: {query: 'ok{cluster="{{cluster}}"}', condition: result > 0,
			member: {namespace: monitoring, service: prometheus, port: web, scheme: https, clusters: [m1, m2]}}}`
		w.check("c", spec)
		r := w.release("r1", checkedStages)
		w.pass(3 * time.Minute)
		w.expect("where a cluster is not permitted", r, releasev1alpha1.ReleaseRunning,
			releasev1alpha1.ReasonCheckUnavailable)
		if message := w.gate(r, 0).Check.Message; message !=
			"cluster m3: member.clusters of the ReleaseCheck does not list m3: add it there" {
			t.Errorf("the message is %q", message)
		}
		c := &releasev1alpha1.ReleaseCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c"}}
		controllertest.Change(w.Hub, c, func(c *releasev1alpha1.ReleaseCheck) { c.Spec.Prometheus.Member.Clusters = nil })
		w.pass(time.Minute)
		w.expect("where all are", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		for _, m := range w.members {
			want := m.name + " GET /api/v1/namespaces/monitoring/services/https:prometheus:web/proxy/api/v1/query " +
				`ok{cluster="` + m.name + `"}`
			if !asked[want] {
				t.Errorf("%q is not among %v", want, asked)
			}
		}
		if len(asked) != len(w.members) {
			t.Errorf("the members were asked for %v", asked)
		}
	})
}

// jobs returns the members in which the Job of a check runs.
func (w *releaseWorld) jobs(r *releasev1alpha1.Release) (members []string) {
	w.t.Helper()
	name := "c-" + w.gate(r, 0).Check.Key[:12]
	for _, m := range w.members {
		if m.server.Object(controllertest.Job, "shop", name) != nil {
			members = append(members, m.name)
		}
	}
	return members
}

// jobEnds ends the Job of a check in a member.
func (w *releaseWorld) jobEnds(r *releasev1alpha1.Release, member, condition string) {
	w.t.Helper()
	for _, m := range w.members {
		if m.name != member {
			continue
		}
		job := m.server.Object(controllertest.Job, "shop", "c-"+w.gate(r, 0).Check.Key[:12])
		if job == nil {
			w.t.Fatalf("there is no Job in %s", member)
		}
		job.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True",
			"message": "exit code 1"}}}
		m.server.Put(job)
	}
	w.pass(5 * time.Second)
}

// newJobWorld is newReleaseWorld whose members run Jobs.
func newJobWorld(t *testing.T) *releaseWorld {
	w := newReleaseWorld(t)
	for _, m := range w.members {
		m.server.Serve(controllertest.Job)
	}
	return w
}

const jobOf = `{job: {where: %s, spec: {template: {spec: {restartPolicy: Never,
	containers: [{name: smoke, image: "smoke:1"}]}}}}}`

func TestAJobRunsInEachClusterOfTheStage(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newJobWorld(t)
		w.check("c", fmt.Sprintf(jobOf, "EachCluster"))
		r := w.release("r1", checkedStages)
		w.pass(20 * time.Second)
		if got := fmt.Sprint(w.jobs(r)); got != "[m1 m2 m3]" {
			t.Fatalf("the Job runs in %s", got)
		}
		w.Quiet()
		w.stop()
		w.start()
		w.pass(10 * time.Second)
		if wrote := count(w.Quiet()); wrote["create works"]+wrote["update releases/status"] > 0 {
			t.Errorf("after a restart, the hub writes %v", wrote)
		}
		w.jobEnds(r, "m1", "Complete")
		w.jobEnds(r, "m2", "Complete")
		w.expect("with two Jobs", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonChecking)
		w.jobEnds(r, "m3", "Complete")
		w.pass(20 * time.Second)
		w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		if left := w.jobs(r); len(left) > 0 {
			t.Errorf("Jobs are left in %q", left)
		}
	})
}

func TestAFailedJobIsKeptForAnHour(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newJobWorld(t)
		w.check("c", fmt.Sprintf(jobOf, "OneCluster"))
		r := w.release("r1", checkedStages)
		w.pass(20 * time.Second)
		if got := fmt.Sprint(w.jobs(r)); got != "[m1]" {
			t.Fatalf("the Job runs in %s", got)
		}
		w.jobEnds(r, "m1", "Failed")
		w.pass(20 * time.Second)
		w.expect("after the failure", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack)
		if message := w.gate(r, 0).Check.Message; message != "cluster m1: the Job has failed: exit code 1" {
			t.Errorf("the message is %q", message)
		}
		if len(w.jobs(r)) != 1 {
			t.Error("the Job is gone, so nobody can read its logs")
		}
		w.Advance(time.Hour)
		w.pass(2 * time.Second)
		if left := w.jobs(r); len(left) > 0 {
			t.Errorf("after an hour, Jobs are left in %q", left)
		}
	})
}

func TestTheJobsOfADeletedReleaseAreDeleted(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newJobWorld(t)
		w.check("c", fmt.Sprintf(jobOf, "EachCluster"))
		r := w.release("r1", checkedStages)
		w.pass(20 * time.Second)
		if got := fmt.Sprint(w.jobs(r)); got != "[m1 m2 m3]" {
			t.Fatalf("the Job runs in %s", got)
		}
		name := "c-" + w.gate(r, 0).Check.Key[:12]
		w.stop() // the hub does not see the deletion
		if err := w.Delete(t.Context(), r); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		w.start()
		w.pass(10 * time.Second)
		for _, m := range w.members {
			if m.server.Object(controllertest.Job, "shop", name) != nil {
				t.Errorf("the Job is left in %s", m.name)
			}
		}
	})
}

func TestAnArgumentThatWouldChangeAQueryIsNotSent(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w, j := newReleaseWorld(t), newJudge(t)
		w.check("c", `{interval: 10s, slo: {url: "`+j.URL+`", objective: "99", window: 30d, burnRateWindow: 5m,
			good: '{{args.at}} * sum(increase(good{stage="{{stage}}"}[{{window}}]))', total: 'sum(increase(all[{{window}}]))',
			maxBurnRate: "2"}}`)
		j.answerWith(200, number("10"))
		r := w.release("r1", strings.Replace(checkedStages, "name: c}", "name: c, args: {at: '0.5 or vector(1)'}}", 1))
		w.pass(2 * time.Minute)
		w.expect("with an argument that changes the query", r, releasev1alpha1.ReleaseRunning,
			releasev1alpha1.ReasonCheckUnavailable)
		if message := w.gate(r, 0).Check.Message; !strings.Contains(message, "must be a number") {
			t.Errorf("the message is %q", message)
		}
		for _, q := range j.got() {
			if strings.Contains(q.query, "vector") {
				t.Errorf("the query was %s", q.query)
			}
		}
	})
}

func TestAReleaseIsJudgedByABurnRate(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w, j := newReleaseWorld(t), newJudge(t)
		w.check("c", `{interval: 10s, slo: {url: "`+j.URL+`", objective: "99", burnRateWindow: 5m, maxBurnRate: "2",
			good: '{{args.share}} * sum(increase(all{stage="{{stage}}"}[{{window}}]))',
			total: 'sum(increase(all[{{window}}]))'}}`)
		j.answerWith(200, number())
		r := w.release("r1", strings.Replace(checkedStages, "name: c}", "name: c, args: {share: '0.5'}}", 1))
		w.pass(time.Minute + 30*time.Second)
		w.expect("without data", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonCheckInconclusive)
		j.answerWith(200, number("10"))
		w.pass(30 * time.Second)
		w.expect("with data", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		if value := w.gate(r, 0).Check.Value; value != "burn rate 0" {
			t.Errorf("the value is %q", value)
		}
		for _, q := range j.got() {
			if q.query != `0.5 * sum(increase(all{stage="canary"}[5m]))` && q.query != "sum(increase(all[5m]))" {
				t.Errorf("the query was %s", q.query)
			}
		}
	})
}

// The answer of the fake Prometheus counts for good and for all events alike: all of the budget is left.
func TestReleasesWaitForTheErrorBudgetOfAGuard(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w, j := newReleaseWorld(t), newJudge(t)
		j.answerWith(500, "")
		w.check("slo", `{interval: 10s, inconclusiveLimit: 1, slo: {url: "`+j.URL+`", objective: "99", window: 30d,
			good: 'good[{{window}}]', total: 'all[{{window}}]'}}`)
		g := w.guard("budget", `{limits: {minErrorBudget: {percent: 20, checkRef: {namespace: shop, name: slo}}}}`)
		r := w.release("r1", "stages:\n- {name: one, to: {percent: 10}, before: [{name: go}]}\n- {name: rest}\n")
		w.pass(15 * time.Second)
		w.expect("without an answer", r, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonErrorBudgetUnknown)
		j.answerWith(200, number())
		w.pass(15 * time.Second)
		w.expect("without data", r, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonErrorBudgetUnknown)
		j.got()
		j.answerWith(200, number("1000"))
		w.pass(15 * time.Second)
		w.expect("with a budget", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval)
		w.HasObject(g)
		if b := g.Status.ErrorBudget; b == nil || b.State != releasev1alpha1.ErrorBudgetEnough || b.Left != "100.0" {
			t.Errorf("the budget is %+v", b)
		}
		for _, q := range j.got() {
			if q.query != "good[30d]" && q.query != "all[30d]" {
				t.Errorf("the query was %s", q.query)
			}
		}

		// A hub that starts again writes nothing for a budget that stays, and one sample more or less writes nothing.
		w.stop()
		w.start()
		w.Quiet()
		w.pass(time.Minute)
		if n := count(w.Quiet())["update releaseguards/status"]; n != 0 {
			t.Errorf("the guard was written %d times while its budget stays", n)
		}
		if len(j.got()) == 0 {
			t.Error("after a restart, nothing is asked")
		}
		controllertest.Change(w.Hub, g, func(g *releasev1alpha1.ReleaseGuard) { g.Spec.Limits = nil })
		w.pass(15 * time.Second)
		j.got()
		w.pass(time.Minute)
		if n := len(j.got()); n != 0 {
			t.Errorf("without the limit, %d requests were sent", n)
		}
	})
}

// What was left before a restart starts no stage: the hub has to ask again. The samples without an answer would not yet
// count in a hub that has asked before.
func TestAnErrorBudgetOfAnEarlierHubStartsNothing(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w, j := newReleaseWorld(t), newJudge(t)
		j.answerWith(200, number("1000"))
		w.check("slo", `{interval: 10s, inconclusiveLimit: 100, slo: {url: "`+j.URL+`", objective: "99", window: 30d,
			good: 'good[{{window}}]', total: 'all[{{window}}]'}}`)
		g := w.guard("budget", `{limits: {minErrorBudget: {percent: 20, checkRef: {namespace: shop, name: slo}}}}`)
		w.pass(15 * time.Second)
		if w.HasObject(g); g.Status.ErrorBudget == nil || g.Status.ErrorBudget.State != releasev1alpha1.ErrorBudgetEnough {
			t.Fatalf("the budget is %+v", g.Status.ErrorBudget)
		}
		w.stop()
		j.answerWith(500, "")
		w.start()
		r := w.release("r1", "stages:\n- {name: one, to: {percent: 10}, before: [{name: go}]}\n- {name: rest}\n")
		w.pass(15 * time.Second)
		w.expect("without an answer since the restart", r, releasev1alpha1.ReleaseQueued,
			releasev1alpha1.ReasonErrorBudgetUnknown)
		j.answerWith(200, number("1000"))
		w.pass(15 * time.Second)
		w.expect("with an answer", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval)
	})
}
