package ocm

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	ocmworkv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// answered returns w with a result of its member. A failure has the reason and the text that the controller adds.
func answered(w *workv1alpha1.Work, status metav1.ConditionStatus, message string) *workv1alpha1.Work {
	if status == metav1.ConditionFalse {
		w = answeredBefore(w, "Failed to apply all manifests (0/1): "+message)
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkFailure, Status: "True",
			Reason: workv1alpha1.ReasonRejected, Message: message, ObservedGeneration: w.Generation})
		return w
	}
	w = w.DeepCopy()
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: "Applied", Status: status, Reason: "r",
		Message: message, ObservedGeneration: w.Generation})
	return w
}

// answeredBefore returns w after an earlier version of the hub recorded a failure.
func answeredBefore(w *workv1alpha1.Work, message string) *workv1alpha1.Work {
	w = w.DeepCopy()
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: "Applied", Status: "False", Reason: "r",
		Message: message, ObservedGeneration: w.Generation})
	return w
}

func show(c *metav1.Condition) string {
	if c == nil {
		return ""
	}
	return strings.TrimSpace(string(c.Status) + " " + c.Reason + ": " + c.Message)
}

func TestStatusMatchesOpenClusterManagement(t *testing.T) {
	there := object(t, config)
	foreign := there.DeepCopy()
	foreign.SetLabels(map[string]string{"karmada.io/managed": "true"})
	foreign.SetAnnotations(map[string]string{"work.karmada.io/namespace": "karmada-es-eu",
		"work.karmada.io/name": "other"})
	differs := foreign.DeepCopy()
	differs.Object["data"] = map[string]any{"k": "w"}
	const refused = "no (really): not"
	for name, c := range map[string]struct {
		seen               func(*workv1alpha1.Work) Seen
		applied, available string // of the manifest
		all, allAvailable  string
	}{
		"applied and there": {
			func(w *workv1alpha1.Work) Seen { return Seen{Work: answered(w, "True", ""), Object: there} },
			"True AppliedManifestComplete: Apply manifest complete", "True ResourceAvailable: Resource is available",
			"True AppliedManifestWorkComplete: Apply manifest work complete",
			"True ResourcesAvailable: All resources are available",
		},
		"not made yet":     {func(*workv1alpha1.Work) Seen { return Seen{} }, "", "", "", ""},
		"not answered yet": {func(w *workv1alpha1.Work) Seen { return Seen{Work: w} }, "", "", "", ""},
		"answered of an earlier manifest": {func(w *workv1alpha1.Work) Seen {
			w = answered(w, "True", "")
			w.Generation++
			return Seen{Work: w, Object: there}
		}, "", "", "", ""},
		"refused": {
			func(w *workv1alpha1.Work) Seen { return Seen{Work: answered(w, "False", refused)} },
			"False AppliedManifestFailed: Failed to apply manifest: no (really): not",
			"False ResourceNotAvailable: Resource is not available",
			"False AppliedManifestWorkFailed: Failed to apply manifest work",
			"False ResourcesNotAvailable: 1 of 1 resources are not available",
		},
		"refused for its namespace": {
			func(w *workv1alpha1.Work) Seen {
				w = answered(w, "False", refused)
				meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkFailure).Reason = workv1alpha1.ReasonNamespaceMissing
				return Seen{Work: w}
			},
			"False AppliedManifestFailed: Failed to apply manifest: no (really): not; create namespace shop in the cluster, " +
				"or add it to the manifests",
			"False ResourceNotAvailable: Resource is not available",
			"False AppliedManifestWorkFailed: Failed to apply manifest work",
			"False ResourcesNotAvailable: 1 of 1 resources are not available",
		},
		"refused, as an earlier version recorded it": {
			func(w *workv1alpha1.Work) Seen {
				return Seen{Work: answeredBefore(w, "Failed to apply all manifests (0/1): no")}
			},
			"False AppliedManifestFailed: Failed to apply manifest: Failed to apply all manifests (0/1): no",
			"False ResourceNotAvailable: Resource is not available",
			"False AppliedManifestWorkFailed: Failed to apply manifest work",
			"False ResourcesNotAvailable: 1 of 1 resources are not available",
		},
		"unreadable": {
			func(w *workv1alpha1.Work) Seen {
				return Seen{Work: answered(w, "True", ""), Unread: errors.New("silence")}
			},
			"True AppliedManifestComplete: Apply manifest complete",
			"Unknown FetchingResourceFailed: Failed to fetch resource: silence",
			"True AppliedManifestWorkComplete: Apply manifest work complete",
			"Unknown ResourcesStatusUnknown: 1 of 1 resources have unknown status",
		},
		"no work can be made": {
			func(*workv1alpha1.Work) Seen { return Seen{Err: errors.New("lossy")} },
			"False AppliedManifestFailed: Failed to apply manifest: lossy",
			"False ResourceNotAvailable: Resource is not available",
			"False AppliedManifestWorkFailed: Failed to apply manifest work",
			"False ResourcesNotAvailable: 1 of 1 resources are not available",
		},
		"kept by another work, as it should be": {
			func(w *workv1alpha1.Work) Seen { return Seen{Work: answered(w, "False", refused), Object: foreign} },
			"True AppliedManifestComplete: Apply manifest complete: the object matches the manifest, and is managed by the work other",
			"True ResourceAvailable: Resource is available",
			"True AppliedManifestWorkComplete: Apply manifest work complete",
			"True ResourcesAvailable: All resources are available",
		},
		"kept by another work, as another": {
			func(w *workv1alpha1.Work) Seen { return Seen{Work: answered(w, "False", refused), Object: differs} },
			"False AppliedManifestFailed: Failed to apply manifest: no (really): not",
			"True ResourceAvailable: Resource is available",
			"False AppliedManifestWorkFailed: Failed to apply manifest work",
			"True ResourcesAvailable: All resources are available",
		},
	} {
		t.Run(name, func(t *testing.T) {
			mw := manifestWork(t, `workload: {manifests: [`+config+`]}`)
			work := decide(mw).Works[0]
			work.Generation = 1
			status := Status(mw, Items(mw, eu()), []Seen{c.seen(work)}, nil, now)
			m := status.ResourceStatus.Manifests[0]
			for _, is := range []struct {
				of         []metav1.Condition
				kind, want string
			}{{m.Conditions, "Applied", c.applied}, {m.Conditions, "Available", c.available},
				{status.Conditions, "Applied", c.all}, {status.Conditions, "Available", c.allAvailable}} {
				if got := show(meta.FindStatusCondition(is.of, is.kind)); got != is.want {
					t.Errorf("%s is %q, want %q", is.kind, got, is.want)
				}
			}
			for _, cond := range slices.Concat(status.Conditions, m.Conditions) {
				if cond.ObservedGeneration != mw.Generation || !cond.LastTransitionTime.Time.Equal(now) {
					t.Errorf("%s is of generation %d at %v", cond.Type, cond.ObservedGeneration, cond.LastTransitionTime)
				}
			}
			if raw, err := json.Marshal(m); err != nil || !strings.Contains(string(raw), `"conditions":[`) {
				t.Errorf("the schema wants a list of conditions: %s, %v", raw, err)
			}
			// Said again, it is the same: what does not change is not written.
			mw.Status = status
			if again := Status(mw, Items(mw, eu()), []Seen{c.seen(work)}, nil, now.Add(time.Hour)); len(again.Conditions) > 0 &&
				!again.Conditions[0].LastTransitionTime.Time.Equal(now) {
				t.Error("it turned though nothing happened")
			}
		})
	}
}

// paths returns a rule for the value a at a path.
func paths(path string) []ocmv1.FeedbackRule {
	return []ocmv1.FeedbackRule{{Type: "JSONPaths", JsonPaths: []ocmv1.JsonPath{{Name: "a", Path: path}}}}
}

func TestFeedback(t *testing.T) {
	u := object(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: w}, spec: {paused: true, template: {spec: {containers: [{name: a, image: i}]}}},
		status: {replicas: 3, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 1, updatedReadyReplicas: 1, load: 0.5,
			conditions: [{type: Failed, status: "False"}, {type: Ready, status: "True"}]}}`)
	for name, c := range map[string]struct {
		rules     []ocmv1.FeedbackRule
		kind      string
		want, err string
	}{
		"of a kind of OpenKruise": {rules: []ocmv1.FeedbackRule{{Type: "WellKnownStatus"}},
			want: "ReadyReplicas=2 Replicas=3 AvailableReplicas=2 UpdatedReplicas=1 UpdatedReadyReplicas=1"},
		"an unknown kind": {rules: []ocmv1.FeedbackRule{{Type: "WellKnownStatus"}}, kind: "Goose",
			err: "cannot find the wellknown statuses for resource with gvk apps.kruise.io/v1alpha1, Kind=Goose"},
		"by paths": {rules: []ocmv1.FeedbackRule{{Type: "JSONPaths",
			JsonPaths: []ocmv1.JsonPath{{Name: "paused", Path: ".spec.paused"},
				{Name: "ready", Path: `.status.conditions[?(@.type=="Ready")].status`},
				{Name: "image", Path: ".spec.template.spec.containers[0].image"}, {Name: "absent", Path: ".status.x.y"}}}},
			want: `paused=true ready="True" image="i"`},
		"of another version": {rules: []ocmv1.FeedbackRule{{Type: "JSONPaths",
			JsonPaths: []ocmv1.JsonPath{{Name: "a", Path: ".status.replicas", Version: "v1beta1"},
				{Name: "b", Path: ".status.replicas", Version: "v1alpha1"}}}},
			want: "b=3", err: "version set in the path a is not matched for the related resource"},
		"what is no value": {rules: []ocmv1.FeedbackRule{{Type: "JSONPaths",
			JsonPaths: []ocmv1.JsonPath{{Name: "all", Path: ".status"}, {Name: "load", Path: ".status.load"},
				{Name: "b", Path: ".status.replicas"}}}},
			want: "b=3", err: "the value of all at .status is a object"},
		"a name twice": {rules: []ocmv1.FeedbackRule{{Type: "JSONPaths",
			JsonPaths: []ocmv1.JsonPath{{Name: "Replicas", Path: ".status.readyReplicas"}}}, {Type: "WellKnownStatus"}},
			want: "Replicas=2 ReadyReplicas=2 AvailableReplicas=2 UpdatedReplicas=1 UpdatedReadyReplicas=1"},
		"a text that is no value": {rules: paths(".metadata.annotations.long"),
			err: "the value of a at .metadata.annotations.long has 1025 bytes, more than 1024"},
		"a path that calls its parser too often": {rules: paths(strings.Repeat("@", 1025)),
			err: "the path of a has 1025 bytes, more than 1024"},
		"a loop": {rules: paths(".status}{range .spec.template.spec.containers}{[0]}{end"),
			err: "must be one expression without braces"},
		"all below all":  {rules: paths("..conditions..type"), err: ".. may occur only once"},
		"lists of lists": {rules: paths(strings.Repeat("[0,0]", 9)), err: "more than 8 commas"},
		"a path that is none": {rules: []ocmv1.FeedbackRule{{Type: "JSONPaths",
			JsonPaths: []ocmv1.JsonPath{{Name: "a", Path: ".status["}}}}, err: "parse the path .status[ of a"},
	} {
		t.Run(name, func(t *testing.T) {
			u := u.DeepCopy()
			u.SetAnnotations(map[string]string{"long": strings.Repeat("a", 1025)})
			if c.kind != "" {
				u.SetKind(c.kind)
			}
			values, err := Feedback(c.rules, u)
			var got []string
			for _, v := range values {
				raw, _ := json.Marshal(v.Value)
				text := string(raw)
				got = append(got, v.Name+"="+strings.TrimSuffix(text[strings.LastIndex(text, ":")+1:], "}"))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("fed back: %v, want %s", got, c.want)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

func TestWellKnownStatusMatchesOpenClusterManagement(t *testing.T) {
	all := []ocmv1.FeedbackRule{{Type: "WellKnownStatus"}}
	for text, want := range map[string]string{
		`{apiVersion: apps/v1, kind: Deployment, status: {readyReplicas: 1, replicas: 2, availableReplicas: 3}}`:                              "ReadyReplicas Replicas AvailableReplicas",
		`{apiVersion: apps/v1, kind: DaemonSet, status: {numberReady: 1, desiredNumberScheduled: 2, numberAvailable: 3}}`:                     "NumberReady DesiredNumberScheduled NumberAvailable",
		`{apiVersion: batch/v1, kind: Job, status: {succeeded: 1, conditions: [{type: Complete, status: "True"}]}}`:                           "JobSucceeded JobComplete",
		`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "False"}]}}`:                                 "PodPhase PodReady",
		`{apiVersion: apps/v1, kind: Deployment, status: {readyReplicas: 1}}`:                                                                 "ReadyReplicas",
		`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, status: {phase: Running, progress: 1/2}}`:                                         "Phase Progress",
		`{apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob, status: {desired: 3, active: 1, succeeded: 2, failed: 0, phase: running}}`: "Desired Active Succeeded Failed Phase",
	} {
		values, err := Feedback(all, object(t, text))
		var got []string
		for _, v := range values {
			got = append(got, v.Name)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: fed back %v, %v, want %s", text, got, err, want)
		}
	}
}

func TestConditionRules(t *testing.T) {
	job := `{apiVersion: batch/v1, kind: Job, metadata: {name: j, labels: {tier: web}}, status: {succeeded: 2, conditions: [{type: Failed, status: "True"}]}}`
	cel := func(of string, expressions ...string) ocmv1.ConditionRule {
		return ocmv1.ConditionRule{Condition: of, Type: ocmv1.RuleCEL, CelExpressions: expressions}
	}
	worded := func(r ocmv1.ConditionRule, message, expression string) ocmv1.ConditionRule {
		r.Message, r.MessageExpression = message, expression
		return r
	}
	for name, c := range map[string]struct {
		rule ocmv1.ConditionRule
		of   string
		want string
	}{
		"a job that failed is complete": {ocmv1.ConditionRule{Condition: "Complete", Type: "WellKnownConditions"}, job,
			"True ConditionRuleEvaluated: Job is finished"},
		"a pod that runs is not": {ocmv1.ConditionRule{Condition: "Complete", Type: "WellKnownConditions"},
			`{apiVersion: v1, kind: Pod, status: {phase: Running}}`, "False ConditionRuleEvaluated: Pod is in phase Running"},
		"no other condition is known": {ocmv1.ConditionRule{Condition: "Degraded", Type: "WellKnownConditions"}, job, ""},
		"no other kind is known": {ocmv1.ConditionRule{Condition: "Complete", Type: "WellKnownConditions"}, config,
			""},
		"all expressions hold": {cel("Fine", "object.status.succeeded > 1", "object.metadata.labels.tier == 'web'"),
			job, "True ConditionRuleEvaluated: Manifest is Fine"},
		"one does not": {cel("Fine", "object.status.succeeded > 1", "object.metadata.labels.tier == 'db'"),
			job, "False ConditionRuleEvaluated: Manifest is not Fine"},
		"with a message": {worded(cel("Fine", "true"), "said", ""), job, "True ConditionRuleEvaluated: said"},
		"with a message by expression": {worded(cel("Fine", "true"), "said", "'result is ' + string(result)"), job,
			"True ConditionRuleEvaluated: result is true"},
		"with an empty one": {worded(cel("Fine", "true"), "said", "''"), job,
			"True ConditionRuleEvaluated: said"},
		"what has conditions": {cel("Fine", "hasConditions(object.status)", "!hasConditions(object)"), job,
			"True ConditionRuleEvaluated: Manifest is Fine"},
		"the libraries": {cel("Fine",
			"object.?status.?nothing.orValue(5) == 5 && quantity('1Gi').isGreaterThan(quantity('1Mi')) && ['a'].indexOf('a') == 0 && isURL('https://a.b') && 'a-b'.replace('-', '') == 'ab' && isIP('10.0.0.1') && cidr('10.0.0.0/8').containsIP('10.1.1.1') && isSemver('1.2.3') && 'abc'.find('b') == 'b'"), job, "True ConditionRuleEvaluated: Manifest is Fine"},
		"what is no expression": {cel("Fine", "object.("), job, "False ConditionRuleInvalid: ERROR"},
		"none at all": {cel("Fine"), job,
			"False ConditionRuleInvalid: the rule of Fine has no celExpressions"},
		"a text for a truth": {cel("Fine", "object.metadata.name"), job,
			`False ConditionRuleExpressionError: "object.metadata.name" returns j, not true or false`},
		"what is not there": {cel("Fine", "object.spec.replicas > 1"), job,
			`False ConditionRuleExpressionError: "object.spec.replicas > 1": no such key: spec`},
		"one that never ends": {cel("Fine",
			"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))"), job, "False ConditionRuleExpressionError"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := &Programs{}
			kept.Evaluate(c.rule, object(t, c.of), new(uint64))
			if again, got := show(kept.Evaluate(c.rule, object(t, c.of), new(uint64))),
				show((*Programs)(nil).Evaluate(c.rule, object(t, c.of), new(uint64))); again != got {
				t.Errorf("asked again it is %q, not %q", again, got)
			}
			got := show(kept.Evaluate(c.rule, object(t, c.of), new(uint64)))
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// What an expression makes of the texts of an object is bounded, whatever the cost of the functions counts.
func TestExpressionsMakeNoLongTexts(t *testing.T) {
	long := object(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"x": "`+
		strings.Repeat("a", 20_000)+`", "y": "`+strings.Repeat("a", 1000)+`"}}`)
	for expression, want := range map[string]string{
		"object.data.x.replace('', object.data.x) != ''":       "replace makes a text of more than 1048576 bytes",
		"object.data.x.replace('a', object.data.x, 100) != ''": "replace makes a text of more than 1048576 bytes",
		"object.data.x.replace('a', object.data.x, 10) != ''":  "True",
		"[1,2,3,4,5,6,7,8,9].map(i, object.data.x).map(x, [x,x,x,x,x,x,x].join(x)).join('') != ''": "" +
			"join makes a text of more than 1048576 bytes",
		"'%s'.format([[1,2,3,4,5,6,7,8,9].map(i, [1,2,3,4,5,6,7,8,9].map(j, object.data.x))]) != ''": "" +
			"format makes a text of more than 1048576 bytes",
		"object.data.x.replace('a', '') == '' && ['a', 'b'].join('-') == 'a-b' && ['a', 'b'].join() == 'ab'": "True",
		"'a.b.c'.replace('.', '-', 1) == 'a-b.c' && '%d'.format([1]) == '1' && 'a,b'.split(',')[1] == 'b'":   "True",
		"object.data.x.split('').map(i, object.data.y.replace('', object.data.y)).size() > 0":                "actual cost limit exceeded",
		"'%.65535e'.format([1.0]) != ''":                                                                        "format makes a text of more than 1048576 bytes",
		"'%.99999999999999999999e'.format([1.0]) != ''":                                                         "format makes a text of more than 1048576 bytes",
		"'%.2f'.format([1.0]) == '1.00' && '%x'.format(['ab']) == '6162'":                                       "True",
		"'aBc'.lowerAscii().substring(1) == 'bc' && 'abc'.charAt(1) == 'b' && ' a '.trim().upperAscii() == 'A'": "True",
	} {
		rule := ocmv1.ConditionRule{Condition: "Fine", Type: ocmv1.RuleCEL, CelExpressions: []string{expression}}
		var spent uint64
		if got := show((&Programs{}).Evaluate(rule, long, &spent)); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}

func TestExpressionsOfManifestWorkShareBudget(t *testing.T) {
	long := "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5].all(e, a+b+c+d+e > 0)))))"
	rule, p := ocmv1.ConditionRule{Condition: "Fine", Type: ocmv1.RuleCEL, CelExpressions: []string{long}}, &Programs{}
	var spent uint64
	if got := show(p.Evaluate(rule, object(t, config), &spent)); !strings.HasPrefix(got, "True") || spent == 0 {
		t.Fatalf("one alone gives %q and costs %d", got, spent)
	}
	spent = 10_000_001
	if got := show(p.Evaluate(rule, object(t, config), &spent)); !strings.Contains(got, "ConditionRuleExpressionError") ||
		!strings.Contains(got, "the total cost of the expressions exceeds 10000000") {
		t.Errorf("over the budget it gives %q", got)
	}

	// All objects of a ManifestWork share it.
	var objects []string
	for i := range 60 {
		objects = append(objects, strings.Replace(config, "name: a", fmt.Sprintf("name: a%d", i), 1))
	}
	mw := manifestWork(t, `{workload: {manifests: [`+strings.Join(objects, ", ")+`]}, manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: "*", namespace: shop},
		conditionRules: [{condition: Fine, type: CEL, celExpressions: ["`+long+`"]}]}]}`)
	var seen []Seen
	for _, w := range decide(mw).Works {
		seen = append(seen, Seen{Work: answered(w, "True", ""), Object: object(t, config)})
	}
	manifests := Status(mw, Items(mw, eu()), seen, p, now).ResourceStatus.Manifests
	first, last := meta.FindStatusCondition(manifests[0].Conditions, "Fine"),
		meta.FindStatusCondition(manifests[59].Conditions, "Fine")
	if first.Status != metav1.ConditionTrue || last.Reason != ocmv1.ReasonRuleExpressionError {
		t.Errorf("the first is %q, the last %q", show(first), show(last))
	}
}

func TestConditionsAreAggregated(t *testing.T) {
	const rule = `[{condition: %, type: CEL, celExpressions: ["object.data.k == 'v'"]}]`
	for name, c := range map[string]struct {
		condition, first, second string
		want                     string
	}{
		"all are":    {"Fine", "v", "v", "True ConditionRulesAggregated: Aggregated from 2 manifest conditions"},
		"one is not": {"Fine", "v", "w", "False ConditionRulesAggregated: Aggregated from 2 manifest conditions"},
		"one is on its way": {"Progressing", "v", "w",
			"True ConditionRulesAggregated: Aggregated from 2 manifest conditions"},
		"none is on its way": {"Progressing", "w", "w",
			"False ConditionRulesAggregated: Aggregated from 2 manifest conditions"},
		"one alone has a state": {"Fine", "v", "", "True ConditionRulesAggregated: Manifest is Fine"},
	} {
		t.Run(name, func(t *testing.T) {
			mw := manifestWork(t, `{workload: {manifests: [`+config+`, `+other+`]}, manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: "*", namespace: shop},
				conditionRules: `+strings.ReplaceAll(rule, "%", c.condition)+`}]}`)
			works := decide(mw).Works
			seen := []Seen{{Work: answered(works[0], "True", ""), Object: object(t, config)},
				{Work: answered(works[1], "True", ""), Object: object(t, other)}}
			seen[0].Object.Object["data"] = map[string]any{"k": c.first}
			seen[1].Object.Object["data"] = map[string]any{"k": c.second}
			if c.second == "" {
				seen[1].Object = nil
			}
			mw.Status.Conditions = []metav1.Condition{{Type: "Old", Status: "True", Reason: "ConditionRulesAggregated"},
				{Type: "Foreign", Status: "True", Reason: "Mine"}}
			status := Status(mw, Items(mw, eu()), seen, nil, now)
			if got := show(meta.FindStatusCondition(status.Conditions, c.condition)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if meta.FindStatusCondition(status.Conditions, "Old") != nil ||
				meta.FindStatusCondition(status.Conditions, "Foreign") == nil {
				t.Errorf("a rule that is gone leaves its condition, or somebody else's went: %v", status.Conditions)
			}
			// Without the rule its conditions go.
			mw.Status, mw.Spec.ManifestConfigs = status, nil
			status = Status(mw, Items(mw, eu()), seen, nil, now)
			if meta.FindStatusCondition(status.Conditions, c.condition) != nil ||
				meta.FindStatusCondition(status.ResourceStatus.Manifests[0].Conditions, c.condition) != nil {
				t.Errorf("%+v", status)
			}
		})
	}
}

func TestCompleteManifestWorkIsKeptForTTL(t *testing.T) {
	mw := manifestWork(t, `{workload: {manifests: [`+config+
		`]}, deleteOption: {propagationPolicy: Foreground, ttlSecondsAfterFinished: 60}}`)
	if _, ends := Remaining(mw, now); ends {
		t.Error("it goes before it is complete")
	}
	mw.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(now), ObservedGeneration: mw.Generation}}
	if left, ends := Remaining(mw, now.Add(20*time.Second)); !ends || left != 40*time.Second {
		t.Errorf("after 20 s it has %v, %t", left, ends)
	}
	mw.Spec.DeleteOption.TTLSecondsAfterFinished = new(int64(math.MaxInt64))
	if left, ends := Remaining(mw, now); !ends || left < 100*365*24*time.Hour {
		t.Errorf("of all time it has %v, %t", left, ends)
	}
	mw.Labels = map[string]string{ocmworkv1alpha1.ReplicaSetLabel: "shop.web"}
	if _, ends := Remaining(mw, now); ends {
		t.Error("it is deleted, and its ManifestWorkReplicaSet creates it again")
	}
	mw.Labels = nil
	mw.Spec.DeleteOption.TTLSecondsAfterFinished = new(int64(60))
	mw.Generation++
	if _, ends := Remaining(mw, now); ends {
		t.Error("it goes though it is not known whether it still is complete")
	}
	mw.Generation--
	mw.Spec.DeleteOption.TTLSecondsAfterFinished = nil
	if _, ends := Remaining(mw, now); ends {
		t.Error("it is deleted without a TTL")
	}
}

func TestManifestWorkIsCompleteIfAllObjectsAre(t *testing.T) {
	const a, b = "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop}}",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: b, namespace: shop}}"
	mw := manifestWork(t, `{workload: {manifests: [`+a+`, `+b+`, `+config+`]}, manifestConfigs: [
		{resourceIdentifier: {group: batch, resource: jobs, name: "*", namespace: shop}, conditionRules: [{condition: Complete, type: WellKnownConditions}]},
		{resourceIdentifier: {resource: configmaps, name: "*", namespace: shop}, conditionRules: [{condition: Complete, type: WellKnownConditions}]}]}`)
	works := decide(mw).Works
	byName := func(name string) *workv1alpha1.Work {
		return works[slices.IndexFunc(works, func(w *workv1alpha1.Work) bool { return w.Name == name })]
	}
	items := Items(mw, eu())
	over := object(t, a)
	over.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	seen := []Seen{{Work: answered(byName(items[0].WorkName("it", nil)), "True", ""), Object: over},
		{Work: answered(byName(items[1].WorkName("it", nil)), "False", "refused")},
		{Work: answered(byName(items[2].WorkName("it", nil)), "True", ""), Object: object(t, config)}}
	status := Status(mw, items, seen, nil, now)
	if got := show(meta.FindStatusCondition(status.Conditions,
		"Complete")); got != "False ConditionRulesAggregated: 1 of 2 manifests are complete, the status of the others is unknown" {
		t.Errorf("with a rejected object got %q", got)
	}
	seen[1].Object, seen[1].Work = over, seen[0].Work
	if got := show(meta.FindStatusCondition(Status(mw, items, seen, nil, now).Conditions, "Complete")); !strings.HasPrefix(
		got, "True") {
		t.Errorf("with all objects got %q", got)
	}
}

func TestRuleDecidesAvailable(t *testing.T) {
	mw := manifestWork(t, `{workload: {manifests: [`+config+`, `+other+`]}, manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: a, namespace: shop}, conditionRules: [
		{condition: Available, type: CEL, celExpressions: ["object.data.k == 'w'"]}, {condition: Applied, type: CEL, celExpressions: ["false"]}, {condition: is no type, type: CEL, celExpressions: ["false"]}]}]}`)
	works := decide(mw).Works
	seen := []Seen{{Work: answered(works[0], "True", ""), Object: object(t, config)},
		{Work: answered(works[1], "True", ""), Object: object(t, other)}}
	mw.Status = Status(mw, Items(mw, eu()), seen, nil, now)
	m := mw.Status.ResourceStatus.Manifests[0]
	if got := show(meta.FindStatusCondition(m.Conditions, "Available")) + ", " +
		show(meta.FindStatusCondition(mw.Status.Conditions, "Available")); got !=
		"False ConditionRuleEvaluated: Manifest is not Available, False ConditionRulesAggregated: Aggregated from 2 manifest conditions" {
		t.Errorf("got %q", got)
	}
	if !meta.IsStatusConditionTrue(m.Conditions, "Applied") ||
		meta.FindStatusCondition(m.Conditions, "is no type") != nil {
		t.Errorf("got %v", m.Conditions)
	}
	if again := Status(mw, Items(mw, eu()), seen, nil, now.Add(time.Hour)); !reflect.DeepEqual(again, mw.Status) {
		t.Errorf("the second time got %+v, want %+v", again, mw.Status)
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	mw := manifestWork(t, `workload: {manifests: [`+config+`]}`)
	status := Status(mw, Items(mw, eu()), []Seen{{Err: errors.New(strings.Repeat("ä", 20_000))}}, nil, now)
	if got := meta.FindStatusCondition(status.ResourceStatus.Manifests[0].Conditions,
		"Applied").Message; len(got) > 32768 || len(got) < 32760 || !utf8.ValidString(got) {
		t.Errorf("the message has %d bytes", len(got))
	}
}

func TestUnanswered(t *testing.T) {
	mw := manifestWork(t, `workload: {manifests: [`+config+`, `+other+`]}`)
	works := decide(mw).Works
	for want, seen := range map[bool][][]Seen{
		true: {{{}, {}}, {{Work: answered(works[0], "True", "")}, {Work: works[1]}}},
		false: {{{Work: answered(works[0], "True", "")}, {Work: answered(works[1], "True", "")}},
			{{Work: answered(works[0], "False", "x")}, {}}},
	} {
		for i, s := range seen {
			after := mw.DeepCopy()
			after.Status = Status(mw, Items(mw, eu()), s, nil, now)
			if got := Unanswered(after); got != want {
				t.Errorf("case %d: unanswered %t, want %t", i, got, want)
			}
		}
	}
}
