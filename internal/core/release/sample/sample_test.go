package sample_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release/sample"
)

// vector is the answer of a Prometheus with numbers.
func vector(numbers ...string) sample.Answer {
	var elements []string
	for _, n := range numbers {
		elements = append(elements, `{"metric":{},"value":[1700000000.1,"`+n+`"]}`)
	}
	return sample.Answer{Code: 200, Body: []byte(`{"status":"success","data":{"resultType":"vector","result":[` +
		strings.Join(elements, ",") + `]}}`)}
}

func condition(t *testing.T, text string, control bool) *sample.Condition {
	t.Helper()
	c, err := sample.NewCondition(text, control)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnAnswerOfAPrometheusIsJudged(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  sample.Answer
		want    sample.Outcome
		value   string
		message string
	}{
		{"good", vector("0.99"), sample.Pass, "0.99", ""},
		{"bad", vector("0.97"), sample.Fail, "0.97", "the condition is false: result > 0.98"},
		{"one of two is bad", vector("0.99", "0.5"), sample.Fail, "0.5", "condition"},
		{"nothing", vector(), sample.NoData, "", "no data"},
		{"not a number", vector("NaN"), sample.NoData, "", "not a number"},
		{"one is not a number", vector("0.99", "NaN"), sample.NoData, "0.99", "not a number"},
		{"one is bad, one is not a number", vector("NaN", "0.5"), sample.Fail, "0.5", "condition"},
		{"infinite", vector("+Inf"), sample.Pass, "+Inf", ""},
		{"a scalar", sample.Answer{Code: 200,
			Body: []byte(`{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`)}, sample.Pass, "1", ""},
		{"a range", sample.Answer{Code: 200,
			Body: []byte(`{"status":"success","data":{"resultType":"matrix","result":[]}}`)}, sample.Error, "", "is a matrix"},
		{"refused", sample.Answer{Code: 400, Body: []byte(`{"status":"error","error":"parse error"}`)}, sample.Error, "",
			"the query is refused: parse error"},
		{"broken", sample.Answer{Code: 500, Body: []byte(`internal secret`)}, sample.Error, "",
			"the server answers 500 Internal Server Error"},
		{"another server", sample.Answer{Code: 200, Body: []byte(`<html>secret</html>`)}, sample.Error, "",
			"not one of a Prometheus"},
		{"a redirect", sample.Answer{Code: 302}, sample.Error, "", "302"},
		{"no answer", sample.Answer{Err: errors.New("connection refused")}, sample.Error, "", "connection refused"},
	} {
		got := sample.OfPrometheus(condition(t, "result > 0.98", false), c.answer, nil, "m1")
		if got.Outcome != c.want || got.Value != c.value || !strings.Contains(got.Message, c.message) {
			t.Errorf("%s: %+v, want %s, %s and %q", c.name, got, c.want, c.value, c.message)
		}
		if strings.Contains(got.Message, "secret") {
			t.Errorf("%s: the message has the body of another server: %s", c.name, got.Message)
		}
	}
}

// Both are bad at the same time, so the new revision is not the reason.
func TestAControlThatIsAsBadPasses(t *testing.T) {
	against := condition(t, "result <= control * 1.5", true)
	for _, c := range []struct {
		query, control sample.Answer
		want           sample.Outcome
	}{
		{vector("0.2"), vector("0.4"), sample.Pass},
		{vector("0.7"), vector("0.4"), sample.Fail},
		{vector("0.2"), vector(), sample.NoData},
		{vector("0.2"), vector("NaN"), sample.NoData},
		{vector("0.2"), vector("0.4", "0.5"), sample.Error},
		{vector("0.2"), sample.Answer{Code: 503}, sample.Error},
		{vector(), vector("0.4"), sample.NoData},
	} {
		if got := sample.OfPrometheus(against, c.query, &c.control, "m1"); got.Outcome != c.want {
			t.Errorf("%s with control %s: %+v, want %s", c.query.Body, c.control.Body, got, c.want)
		}
	}
}

func TestConditionsThatCannotDecideAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"result > 1": "", "result == 0.0 || cluster == 'm1'": "",
		"result":                    "must be true or false",
		"true":                      "does not use result",
		"result > control":          "uses control",
		"result > latency":          "undeclared reference",
		"[1, 2].all(x, result > x)": "undeclared reference",
		"result >":                  "Syntax error",
		"result == 0":               "write numbers as 2.0",
	} {
		_, err := sample.NewCondition(text, false)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: the error is %v, want %q", text, err, want)
		}
	}
}

func TestTheAnswerOfAWebhookIsJudged(t *testing.T) {
	for _, c := range []struct {
		code    int
		body    string
		want    sample.Outcome
		message string
		after   time.Duration
	}{
		{200, `{"verdict":"Pass","message":"fine"}`, sample.Pass, "fine", 0},
		{200, `{"verdict":"Fail"}`, sample.Fail, "", 0},
		{200, `{"verdict":"Inconclusive"}`, sample.NoData, "", 0},
		{200, `{"verdict":"Wait","retryAfter":"2m"}`, sample.Wait, "", 2 * time.Minute},
		{200, `{"verdict":"Wait","retryAfter":"1ns"}`, sample.Wait, "", time.Second},
		{200, `{"verdict":"Wait","retryAfter":"9000h"}`, sample.Wait, "", time.Hour},
		{200, `{"verdict":"Maybe"}`, sample.Error, "Maybe", 0},
		{204, ``, sample.Pass, "", 0},
		{404, `not here`, sample.Fail, "404", 0},
		{302, ``, sample.Error, "302", 0},
		{500, ``, sample.Error, "500", 0},
	} {
		got := sample.OfWebhook(sample.Answer{Code: c.code, Body: []byte(c.body)})
		if got.Outcome != c.want || !strings.Contains(got.Message, c.message) || got.After != c.after {
			t.Errorf("%d %s: %+v, want %s, %q and %s", c.code, c.body, got, c.want, c.message, c.after)
		}
	}
	if got := sample.OfWebhook(sample.Answer{Err: errors.New("no answer within 10s")}); got.Outcome != sample.Error {
		t.Errorf("without an answer: %+v", got)
	}
}

func TestAJobIsJudgedByItsConditions(t *testing.T) {
	work := func(status string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(status)}}}
		return w
	}
	refused := &workv1alpha1.Work{}
	refused.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: "False", Message: "quota"}}
	for _, c := range []struct {
		work *workv1alpha1.Work
		want sample.Outcome
	}{
		{nil, sample.Wait}, {&workv1alpha1.Work{}, sample.Wait}, {work(`{"active":1}`), sample.Wait},
		{work(`{"conditions":[{"type":"Complete","status":"True"}]}`), sample.Pass},
		{work(`{"conditions":[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}]}`), sample.Fail},
		{work(`{"conditions":[{"type":"Failed","status":"False"}]}`), sample.Wait}, {refused, sample.Error},
	} {
		if got := sample.OfJob(c.work); got.Outcome != c.want {
			t.Errorf("%+v: %+v, want %s", c.work, got, c.want)
		}
	}
}

func TestTheWorstClusterDecides(t *testing.T) {
	of := func(outcomes ...sample.Outcome) sample.Sample {
		var samples []sample.Sample
		for _, o := range outcomes {
			samples = append(samples, sample.Sample{Outcome: o})
		}
		return sample.OfClusters([]string{"m1", "m2", "m3"}[:len(samples)], samples)
	}
	for _, c := range []struct {
		got  sample.Sample
		want sample.Outcome
	}{
		{of(), sample.NoData}, {of(sample.Pass, sample.Pass), sample.Pass}, {of(sample.Pass, sample.Wait), sample.Wait},
		{of(sample.Pass, sample.NoData), sample.NoData}, {of(sample.NoData, sample.Error), sample.Error},
		{of(sample.Error, sample.Fail, sample.Pass), sample.Fail},
	} {
		if c.got.Outcome != c.want {
			t.Errorf("%+v, want %s", c.got, c.want)
		}
	}
	if got := of(sample.Pass, sample.Fail); got.Message != "cluster m2" {
		t.Errorf("the message is %q", got.Message)
	}
}

// A query is written by one user, and the values of its variables by another.
func TestValuesCannotChangeAQuery(t *testing.T) {
	v := sample.Variables{"environment": "prod\"} or vector(1) #\n", "cluster": "m1"}
	got, err := v.Fill(`errors{env="{{environment}}", cluster="{{ cluster }}", pod="{{pod}}"}`)
	if err != nil || got != `errors{env="prod__ or vector(1) #_", cluster="m1", pod="{{pod}}"}` {
		t.Errorf("the query is %s, %v", got, err)
	}
	if unknown := sample.Unknown("{{cluster}} {{pod}}", sample.VariableNames); unknown != "pod" {
		t.Errorf("the unknown variable is %q", unknown)
	}
	if !sample.PerCluster("up", "up{cluster='{{cluster}}'}") || sample.PerCluster("up{cluster=~'{{clusters}}'}") {
		t.Error("only a query with the variable cluster is asked once for each cluster")
	}
}

func TestValuesOutsideQuotesAreNumbersOrDurations(t *testing.T) {
	for _, c := range []struct{ query, value, want string }{ // want is empty for an error
		{`up > {{args.a}}`, "0.5", "up > 0.5"},
		{`up > {{args.a}}`, "1e3", "up > 1e3"},
		{`rate(up[{{args.a}}])`, "1h30m", "rate(up[1h30m])"},
		{`up{job="it's"} > {{args.a}}`, "5", `up{job="it's"} > 5`},
		{`up{job="a\"b{{args.a}}"}`, "or x", `up{job="a\"bor x"}`},
		{"up{job=`a\\`} > {{args.a}}", "5", "up{job=`a\\`} > 5"},
		{"up # it's {{args.a}}\n > 1", "or x", "up # it's or x\n > 1"},
		{`up > {{args.a}}`, "0.5 or vector(1)", ""},
		{`up > {{args.a}}`, "down", ""},
		{`up {{args.a}}`, "-1", ""},
		{`up > {{args.a}}`, "", ""},
		{`up > {{args.a}}`, "5m\n", ""},
		{`up{job="x"} > {{args.a}}`, "or", ""},
		{`up{job="a\\"} > {{args.a}}`, "or", ""},
		{"up{job=`a\\`} > {{args.a}}", "or", ""},
		{"up # \"\n > {{args.a}}", "or", ""},
	} {
		got, err := sample.Variables{"args.a": c.value}.Fill(c.query)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s with %q is %q, %v, want %q", c.query, c.value, got, err, c.want)
		}
	}
	if name := sample.Unquoted(`up{job="{{name}}"} > {{args.most}} * {{environment}}`); name != "environment" {
		t.Errorf("the variable outside quotes is %q", name)
	}
}

func TestTooFewSamplesAreNoData(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  sample.Answer
		want    sample.Outcome // empty for enough
		message string
	}{
		{"enough", vector("60", "40"), "", ""},
		{"too few", vector("60", "39"), sample.NoData, "there are 99, and 100 are needed"},
		{"none", vector(), sample.NoData, "there are 0"},
		{"not a number", vector("NaN"), sample.NoData, "there are 0"},
		{"no answer", sample.Answer{Code: 500}, sample.Error, "minSamples: the server answers 500"},
	} {
		s := sample.TooFew(c.answer, 100)
		switch {
		case c.want == "" && s == nil:
		case c.want == "" || s == nil || s.Outcome != c.want || !strings.Contains(s.Message, c.message):
			t.Errorf("%s: the sample is %+v, want %s with %q", c.name, s, c.want, c.message)
		}
	}
}

func TestAnSLOIsJudgedByItsBudgetAndBurnRate(t *testing.T) {
	least := func(n int32) *int32 { return &n }
	of := func(good, total string) sample.Events { return sample.Events{Good: vector(good), Total: vector(total)} }
	none := sample.Answer{Code: 500}
	for _, c := range []struct {
		name           string
		slo            releasev1alpha1.SLOCheck
		window, recent sample.Events
		want           sample.Outcome
		value, message string
	}{
		{"half is left", releasev1alpha1.SLOCheck{}, of("9995", "10000"), sample.Events{}, sample.Pass,
			"50.0% of the error budget", ""},
		{"too little is left", releasev1alpha1.SLOCheck{MinBudgetLeft: least(60)}, of("9995", "10000"), sample.Events{},
			sample.Fail, "50.0% of the error budget", "less than 60% of the error budget is left"},
		{"more is spent than there is", releasev1alpha1.SLOCheck{}, of("9980", "10000"), sample.Events{}, sample.Fail,
			"-100.0% of the error budget", "less than 0%"},
		{"more is good than there is", releasev1alpha1.SLOCheck{}, of("10001", "10000"), sample.Events{}, sample.Pass,
			"100.0% of the error budget", ""},
		{"spent slowly", releasev1alpha1.SLOCheck{MaxBurnRate: "14.4"}, sample.Events{}, of("99", "100"), sample.Pass,
			"burn rate 10", ""},
		{"spent fast", releasev1alpha1.SLOCheck{MaxBurnRate: "14.4"}, sample.Events{}, of("98", "100"), sample.Fail,
			"burn rate 20", "the burn rate is above 14.4"},
		{"enough, and spent fast", releasev1alpha1.SLOCheck{MaxBurnRate: "2", MinBudgetLeft: least(10)},
			of("9995", "10000"), of("98", "100"), sample.Fail, "50.0% of the error budget, burn rate 20", "above 2"},
		{"no events", releasev1alpha1.SLOCheck{}, of("0", "0"), sample.Events{}, sample.NoData, "", "no events"},
		{"no data", releasev1alpha1.SLOCheck{}, sample.Events{Good: vector(), Total: vector("5")}, sample.Events{},
			sample.NoData, "", "good: the query has no data"},
		{"not a number", releasev1alpha1.SLOCheck{}, of("5", "NaN"), sample.Events{}, sample.NoData, "", "total"},
		{"no recent data", releasev1alpha1.SLOCheck{MaxBurnRate: "2", MinBudgetLeft: least(10)}, of("9995", "10000"),
			sample.Events{Good: vector(), Total: vector()}, sample.NoData, "", "good: the query has no data"},
		{"spent, and no recent answer", releasev1alpha1.SLOCheck{MaxBurnRate: "2", MinBudgetLeft: least(60)},
			of("9995", "10000"), sample.Events{Good: none, Total: none}, sample.Fail, "50.0% of the error budget", "60%"},
		{"no answer", releasev1alpha1.SLOCheck{}, sample.Events{Good: vector("5"), Total: none}, sample.Events{},
			sample.Error, "", "total: the server answers 500"},
	} {
		c.slo.Objective = "99.9"
		got := sample.OfSLO(&c.slo, c.window, c.recent)
		if got.Outcome != c.want || got.Value != c.value || !strings.Contains(got.Message, c.message) {
			t.Errorf("%s: %+v, want %s, %q and %q", c.name, got, c.want, c.value, c.message)
		}
	}
}
