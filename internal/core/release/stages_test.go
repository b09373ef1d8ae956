package release_test

import (
	"testing"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestWeightsOfOneSelectionCountTogether(t *testing.T) {
	const gate = "before: [{name: go}]"
	for name, strategy := range map[string]string{
		"the last stage has an unassigned cluster": `
stages:
- {name: one, clusters: {labelSelector: {matchLabels: {env: prod}}}, to: {weight: 1}}
- {name: two, clusters: {labelSelector: {matchLabels: {env: prod}}}, to: {weight: 2}, ` + gate + `}
- {name: rest, clusters: {labelSelector: {matchLabels: {env: prod}}}, to: {weight: 7}, ` + gate + `}
unassigned: LastStage
`,
		"a stage has an order of its own": `
stages:
- {name: one, to: {weight: 1}}
- {name: two, to: {weight: 2}, order: "label:zone", ` + gate + `}
- {name: rest, to: {weight: 7}, ` + gate + `}
`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cloneSet, 10)
			w.join("p1", 10, map[string]string{"env": "prod", "zone": "b"})
			w.join("p2", 10, map[string]string{"env": "prod", "zone": "a"})
			own := []string{"p1", "p2"}
			if name == "a stage has an order of its own" {
				own = []string{"c1", "p1", "p2"}
			}
			w.edit("50%", "spec", "updateStrategy", "maxUnavailable")
			w.template.SetAnnotations(nil)
			w.edit([]any{map[string]any{"name": "main", "image": "web:1"}}, "spec", "template", "spec", "containers")
			w.rest()
			w.image("web:2")
			r := w.release("r1", strategy+"rollback: {order: Reverse}\n")
			expect := func(when string, percent int) {
				t.Helper()
				w.pass(time.Hour)
				w.expect(when, r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2",
					len(own)*percent/10)
				if n := w.count("web:2", own...); n != w.count("web:2") {
					t.Errorf("%s, %d pods are new in the stage, and %d in all", when, n, w.count("web:2"))
				}
			}
			expect("after the first stage", 10)
			w.approve(r, "two", "go", "ann")
			expect("after the second stage", 30)
			w.approve(r, "rest", "go", "ann")
			w.pass(time.Hour)
			w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 30)
			r.Spec.State = releasev1alpha1.StateRollback
			w.pass(time.Hour)
			w.expect("after the rollback", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
		})
	}
}
