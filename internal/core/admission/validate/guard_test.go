package validate

import (
	"testing"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestReleaseGuard(t *testing.T) {
	window := func(more string) string { return `{windows: [{kind: Deny, ` + more + `}]}` }
	const at = "spec.windows[0]"
	for _, c := range []refusal{
		{"nothing", `{}`, nil},
		{"a window", window(`schedule: 0 22 * * 5, duration: 8h, timeZone: Europe/Berlin`), nil},
		{"a time", window(`from: "2026-12-21T00:00:00Z", to: "2027-01-04T00:00:00Z"`), nil},
		{"no end", window(`from: "2026-12-21T00:00:00Z"`), nil},
		{"a schedule that is none", window(`schedule: at night, duration: 8h`), []string{at + ".schedule", "five fields"}},
		{"a zone in the schedule", window(`schedule: TZ=UTC 0 1 * * *, duration: 8h`),
			[]string{at + ".schedule", "timeZone"}},
		{"a zone that is none", window(`schedule: 0 1 * * *, duration: 8h, timeZone: Berlin`), []string{at + ".timeZone"}},
		{"no duration", window(`schedule: 0 1 * * *, duration: 0s`), []string{at + ".duration", "must be more than 0"}},
		{"a schedule without duration", window(`schedule: 0 1 * * *`), []string{at + ".duration", "such as 8h"}},
		{"neither a schedule nor a time", `{windows: [{kind: Deny}]}`, []string{at, "set either schedule and duration"}},
		{"a schedule and a time", window(`schedule: 0 1 * * *, duration: 1h, from: "2026-12-21T00:00:00Z"`),
			[]string{at, "set either schedule and duration, or from and to"}},
		{"a time with a duration", window(`duration: 1h, from: "2026-12-21T00:00:00Z"`),
			[]string{at, "are for schedule"}},
		{"a time with a zone", window(`timeZone: UTC, from: "2026-12-21T00:00:00Z"`), []string{at, "are for schedule"}},
		{"an error budget", `{limits: {minErrorBudget: {percent: 10, checkRef: {namespace: shop, name: slo}}}}`, nil},
		{"an end before its beginning", window(`from: "2027-01-04T00:00:00Z", to: "2026-12-21T00:00:00Z"`),
			[]string{at + ".to", "must be after from"}},
		{"an operator that is none", `{selector: {clusters: {matchExpressions: [{key: env, operator: Is}]}}}`,
			[]string{"spec.selector.clusters"}},
		{"a label", `{limits: {per: topology.kubernetes.io/region}}`, nil},
		{"a label that is none", `{limits: {per: a/b/c}}`, []string{"spec.limits.per"}},
		{"releases in namespaces", `{selector: {namespaces: [shop]}, require: Enforce}`, nil},
		{"releases in clusters", `{selector: {clusters: {matchLabels: {env: prod}}}, require: Enforce}`,
			[]string{"spec.require", "select only namespaces"}},
		{"records in namespaces", `{selector: {namespaces: [shop]}, require: Record}`, nil},
		{"records in clusters", `{selector: {clusters: {matchLabels: {env: prod}}}, require: Record}`,
			[]string{"spec.require", "select only namespaces"}},
		{"releases in environments", `{selector: {environments: [prod]}, require: Enforce}`,
			[]string{"spec.require", "select only namespaces"}},
	} {
		s := &releasev1alpha1.ReleaseGuardSpec{}
		parse(t, c.spec, s)
		check(t, c.name, ReleaseGuard(s), c.want)
	}
}
