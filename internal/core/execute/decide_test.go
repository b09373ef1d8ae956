package execute_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
)

// Each row is about an object as the Work has it, unless differs or gone says otherwise.
func TestADecisionIsAPlanThatMayBeCarriedOut(t *testing.T) {
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: shop}}`
	last := object(t, job)
	gone := func(*unstructured.Unstructured) *unstructured.Unstructured { return nil }
	differs := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		ports := []any{map[string]any{"port": int64(81)}}
		if err := unstructured.SetNestedSlice(u.Object, ports, "spec", "ports"); err != nil {
			t.Fatal(err)
		}
		return u
	}
	handsOff := func(u *unstructured.Unstructured) *unstructured.Unstructured { return braked(differs(u), "true") }
	foreign := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u.SetLabels(nil)
		u.SetAnnotations(nil)
		return u
	}
	going := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u.SetDeletionTimestamp(new(metav1.Unix(1, 0)))
		return u
	}
	over := reported(t, `{"conditions":[{"type":"Complete","status":"True"}]}`)
	type known = execute.Situation
	underBrake, oftenRepaired := known{Brake: "shop"}, known{RepairAfter: 1}
	type works = []func(*workv1alpha1.Work)
	for name, c := range map[string]struct {
		manifest  string
		work      works
		member    func(*unstructured.Unstructured) *unstructured.Unstructured
		situation known
		want      execute.Kind
		reason    string
	}{
		"as desired":                    {service, nil, nil, known{}, execute.Nothing, ""},
		"as desired, under a brake":     {service, nil, nil, underBrake, execute.Nothing, ""},
		"as desired, after a restore":   {service, nil, nil, known{Unsettled: true}, execute.Nothing, ""},
		"another":                       {service, nil, differs, known{}, execute.Apply, ""},
		"another, changed often":        {service, nil, differs, oftenRepaired, execute.Postpone, "spec.ports"},
		"another, of a new manifest":    {service, works{changed}, differs, known{RepairAfter: time.Hour}, execute.Apply, ""},
		"another, under a brake":        {service, nil, differs, underBrake, execute.Leave, "namespace shop"},
		"another, with hands-off":       {service, nil, handsOff, underBrake, execute.Leave, "object in the member"},
		"another, after a restore":      {service, nil, differs, known{Unsettled: true}, execute.Pause, "spec.ports"},
		"a restore before many changes": {service, nil, differs, known{Unsettled: true, RepairAfter: 1}, execute.Pause, ""},
		"a brake before a restore":      {service, nil, differs, known{Brake: "shop", Unsettled: true}, execute.Leave, ""},
		"missing":                       {service, nil, gone, known{}, execute.Create, ""},
		"missing, deleted often":        {service, nil, gone, oftenRepaired, execute.Postpone, ""},
		"missing, under a brake":        {service, nil, gone, known{Brake: "kube-system"}, execute.Leave, "kube-system"},
		"missing, after a restore":      {service, nil, gone, known{Unsettled: true}, execute.Pause, "does not exist there"},

		"a Job that is missing":                  {job, nil, gone, known{}, execute.Recheck, ""},
		"a Job that was missing before":          {job, nil, gone, known{Missed: true}, execute.Create, ""},
		"a Job that never ran":                   {job, works{unapplied}, gone, known{}, execute.Create, ""},
		"a Job that is over":                     {job, works{over}, gone, known{}, execute.Nothing, "not run again"},
		"a suspended Job that is missing":        {job, works{suspended}, gone, known{}, execute.Nothing, ""},
		"a Job with a last state":                {job, nil, gone, known{Finished: last}, execute.Finish, ""},
		"a Job with a last state, under a brake": {job, nil, gone, known{Finished: last, Brake: "shop"}, execute.Finish, ""},
		"a suspended Job with a last state":      {job, works{suspended}, gone, known{Finished: last}, execute.Nothing, ""},
		"a Job that runs, with a last state":     {job, nil, nil, known{Finished: last}, execute.Nothing, ""},

		"deleted":                       {service, works{deleting}, nil, known{}, execute.Delete, ""},
		"deleted, preserved":            {service, works{deleting, preserving}, nil, known{}, execute.Release, ""},
		"deleted, under a brake":        {service, works{deleting}, nil, underBrake, execute.Leave, "namespace shop"},
		"deleted, with hands-off":       {service, works{deleting}, handsOff, known{}, execute.Leave, ""},
		"deleted, gone":                 {job, works{deleting}, gone, known{Brake: "shop", Finished: last}, execute.Nothing, ""},
		"deleted, of another":           {service, works{deleting}, foreign, underBrake, execute.Nothing, "is kept"},
		"deleted, going":                {service, works{deleting}, going, known{}, execute.Wait, ""},
		"deleted, going, under a brake": {service, works{deleting}, going, underBrake, execute.Leave, ""},
		"deleted, changed often":        {service, works{deleting}, differs, oftenRepaired, execute.Delete, ""},
	} {
		w := work(t, c.manifest, c.work...)
		sent := w.DeepCopy()
		sent.DeletionTimestamp = nil
		observed := desired(t, sent, nil)
		if c.member != nil {
			observed = c.member(observed)
		}
		var d *unstructured.Unstructured
		if w.DeletionTimestamp == nil {
			d = desired(t, w, observed)
		}
		got := execute.HubID("").Decide(w, d, observed, c.situation)
		if got.Kind != c.want || !strings.Contains(got.Reason, c.reason) || got.Reason == "" {
			t.Errorf("%s: %s (%s), want %s (%s)", name, got.Kind, got.Reason, c.want, c.reason)
		}
		if (got.Object == last) != (c.want == execute.Finish) {
			t.Errorf("%s: the action has the object %v", name, got.Object)
		}
	}
}
