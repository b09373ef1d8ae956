package validate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestReleaseCheck(t *testing.T) {
	prometheus := func(fields string) string {
		return `{prometheus: {query: up, condition: result > 0, ` + fields + `}}`
	}
	job := func(more string) string {
		return `{job: {spec: {template: {spec: {restartPolicy: Never,
			containers: [{name: smoke, image: "smoke:1"}]}}` + more + `}}}`
	}
	slo := func(fields string) string {
		return `{slo: {url: "https://a.example.com", objective: "99.9", ` + fields + `}}`
	}
	for _, c := range []refusal{
		{"a Prometheus", prometheus(`url: "https://prometheus.example.com:9090/x"`), nil},
		{"a Service in members", prometheus(`member: {namespace: monitoring, service: prometheus, port: "9090"}`), nil},
		{"a webhook", `{webhook: {url: "https://judge.example.com/v1?team=shop", timeout: 30s}}`, nil},
		{"a Job", job(""), nil},
		{"another scheme", prometheus(`url: "file:///etc/passwd"`),
			[]string{"spec.prometheus.url", "must begin with https:// or http://"}},
		{"no host", prometheus(`url: "https:///x"`), []string{"spec.prometheus.url", "must have a host"}},
		{"a query", prometheus(`url: "https://a.example.com?x=y"`), []string{"spec.prometheus.url", "must not have a query"}},
		{"a password", `{webhook: {url: "https://ann:secret@a.example.com"}}`,
			[]string{"spec.webhook.url", "ann:xxxxx@", "name a Secret in secretRef"}},
		{"a fragment", `{webhook: {url: "https://a.example.com#x"}}`, []string{"must not have a fragment"}},
		{"a Secret for members",
			prometheus(`secretRef: {name: s}, member: {namespace: monitoring, service: prometheus, port: "9090"}`),
			[]string{"spec.prometheus.secretRef", "a Service in a member gets no credentials"}},
		{"an unknown variable",
			`{prometheus: {url: "https://a.example.com", query: 'up{pod="{{pod}}"}', condition: result > 0}}`,
			[]string{"spec.prometheus.query", "{{pod}}", `"clusters"`}},
		{"a condition without result", `{prometheus: {url: "https://a.example.com", query: up, condition: "true"}}`,
			[]string{"spec.prometheus.condition", "does not use result"}},
		{"a condition with a control that is not there",
			`{prometheus: {url: "https://a.example.com", query: up, condition: result > control}}`,
			[]string{"spec.prometheus.condition", "the check has no query for it"}},
		{"an argument", `{prometheus: {url: "https://a.example.com", query: 'up{job="{{args.job}}"}', condition: result > 0}}`,
			nil},
		{"an argument outside quotes",
			`{prometheus: {url: "https://a.example.com", query: 'rate(up[{{args.range}}])', condition: result > 0}}`, nil},
		{"another variable outside quotes",
			`{prometheus: {url: "https://a.example.com", query: 'sum({{name}}_errors)', condition: result > 0}}`,
			[]string{"spec.prometheus.query", "has {{name}} outside quotes"}},
		{"an SLO", slo(`good: 'ok[{{window}}]', total: 'all[{{window}}]', maxBurnRate: "14.4"`), nil},
		{"several samples of an SLO",
			`{count: 3, failureLimit: 1, ` + slo(`good: 'a[{{window}}]', total: 'b[{{window}}]'`)[1:], nil},
		{"an SLO without a window", slo(`good: 'ok[1h]', total: 'all[{{window}}]'`),
			[]string{"spec.slo.good", "must have {{window}}"}},
		{"an unknown variable of an SLO", slo(`good: 'ok[{{window}}]', total: 'all{pod="{{pod}}"}[{{window}}]'`),
			[]string{"spec.slo.total", "{{pod}}", `"window"`}},
		{"an SLO with a variable outside quotes", slo(`good: '{{name}}[{{window}}]', total: 'all[{{window}}]'`),
			[]string{"spec.slo.good", "has {{name}} outside quotes"}},
		{"no error budget", strings.Replace(slo(`good: 'a[{{window}}]', total: 'b[{{window}}]'`), "99.9", "0", 1),
			[]string{"spec.slo.objective", "between 0 and 100"}},
		{"the window of an SLO elsewhere",
			`{prometheus: {url: "https://a.example.com", query: 'rate(up[{{window}}])', condition: result > 0}}`,
			[]string{"spec.prometheus.query", "{{window}}"}},
		{"enough samples", prometheus(`url: "https://a.example.com", minSamples: {query: requests, number: 100}`), nil},
		{"an unknown variable in minSamples",
			prometheus(`url: "https://a.example.com", minSamples: {query: "requests{pod='{{pod}}'}", number: 100}`),
			[]string{"spec.prometheus.minSamples.query", "{{pod}}", `"args.NAME"`}},
		{"samples of one cluster for all",
			prometheus(`url: "https://a.example.com", minSamples: {query: 'requests{cluster="{{cluster}}"}', number: 100}`),
			[]string{"spec.prometheus.minSamples.query", "use {{clusters}}"}},
		{"a delay", `{initialDelay: 5m, webhook: {url: "https://a.example.com"}}`, nil},
		{"a delay before it", `{initialDelay: -5m, webhook: {url: "https://a.example.com"}}`,
			[]string{"spec.initialDelay", "must not be negative"}},
		{"a Job with a delay", `{initialDelay: 5m, ` + job("")[1:],
			[]string{"spec.initialDelay", "a Job can wait by itself"}},
		{"a short interval", `{interval: 10ms, webhook: {url: "https://a.example.com"}}`,
			[]string{"spec.interval", "must be at least 1s"}},
		{"a long timeout", `{webhook: {url: "https://a.example.com", timeout: 5m}}`,
			[]string{"spec.webhook.timeout", "at most 30s"}},
		{"several answers of a webhook", `{count: 3, webhook: {url: "https://a.example.com"}}`,
			[]string{"spec.count", "is for prometheus"}},
		{"failures of a Job", `{failureLimit: 1, ` + job("")[1:], []string{"spec.failureLimit", "is for prometheus"}},
		{"a Job without containers", `{job: {spec: {template: {spec: {restartPolicy: Never}}}}}`,
			[]string{"spec.job.spec.template.spec.containers", "a Job runs a container"}},
		{"a Job that never ends", `{job: {spec: {template: {spec: {containers: [{name: a}]}}}}}`,
			[]string{"spec.job.spec.template.spec.restartPolicy", `"Never", "OnFailure"`}},
		{"a Job that deletes itself", job(", ttlSecondsAfterFinished: 10"),
			[]string{"spec.job.spec.ttlSecondsAfterFinished", "the hub would run it again"}},
		{"a selector", job(", manualSelector: true"), []string{"spec.job.spec.selector"}},
		{"no Job", job(", replicas: 3"), []string{"spec.job.spec", `unknown field "replicas"`}},
	} {
		s := &releasev1alpha1.ReleaseCheckSpec{}
		parse(t, c.spec, s)
		check(t, c.name, ReleaseCheck(s, field.NewPath("spec")), c.want)
	}
}

func TestTypeOfAGateDecidesItsFields(t *testing.T) {
	for _, c := range []refusal{
		{"a check", `{name: a, type: Check, checkRef: {name: c}, onInconclusive: Pause}`, nil},
		{"an approval", `{name: a, type: Approval, approval: {count: 2}}`, nil},
		{"a check without a name", `{name: a, type: Check}`, []string{"checkRef", "names a ReleaseCheck"}},
		{"a check with an approval", `{name: a, type: Check, checkRef: {name: c}, approval: {count: 2}}`,
			[]string{"approval", "use a gate for each"}},
		{"an approval with a check", `{name: a, checkRef: {name: c}}`, []string{"checkRef", "is for a gate of type Check"}},
		{"an approval that is inconclusive", `{name: a, onInconclusive: Pass}`,
			[]string{"onInconclusive", "is for a gate of type Check"}},
	} {
		s := &releasev1alpha1.ReleaseStrategySpec{}
		parse(t, `{stages: [{name: one, before: [`+c.spec+`]}]}`, s)
		check(t, c.name, ReleaseStrategy(s, field.NewPath("spec")), c.want)
	}
}
