package execute_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

// reported sets the status that the Work reports of its object.
func reported(t *testing.T, status string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		m, err := execute.Manifest(w)
		if err != nil {
			t.Fatal(err)
		}
		gvk := m.GroupVersionKind()
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{
			Identifier: workv1alpha1.ResourceIdentifier{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind,
				Name: m.GetName()},
			Status: &runtime.RawExtension{Raw: []byte(status)},
		}}
	}
}

func TestFinishedDeletedJobDoesNotRunAgain(t *testing.T) {
	for _, c := range []struct{ name, kind, status string }{
		{"a Job that completed", "batch/v1, kind: Job", `{"conditions":[{"type":"Complete","status":"True"}]}`},
		{"a Job that failed", "batch/v1, kind: Job",
			`{"conditions":[{"type":"FailureTarget","status":"True"},{"type":"Failed","status":"True"}]}`},
		{"a BroadcastJob by its phase", "apps.kruise.io/v1alpha1, kind: BroadcastJob", `{"phase":"completed"}`},
		{"a BroadcastJob by its condition", "apps.kruise.io/v1beta1, kind: BroadcastJob",
			`{"phase":"running","conditions":[{"type":"Failed","status":"True"}]}`},
		{"an ImagePullJob", "apps.kruise.io/v1beta1, kind: ImagePullJob",
			`{"desired":3,"completionTime":"2026-01-01T00:00:00Z"}`},
		{"an ImageListPullJob", "apps.kruise.io/v1beta1, kind: ImageListPullJob",
			`{"completionTime":"2026-01-01T00:00:00Z"}`},
		{"a ContainerRecreateRequest", "apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest", `{"phase":"Completed"}`},
		{"an EphemeralJob", "apps.kruise.io/v1alpha1, kind: EphemeralJob", `{"phase":"Succeeded"}`},
		{"an EphemeralJob, which its member deletes in the end, whatever was seen of it",
			"apps.kruise.io/v1alpha1, kind: EphemeralJob", `{"phase":"Running","deletedWhenFinished":true}`},
		{"a Workflow that succeeded", "argoproj.io/v1alpha1, kind: Workflow", `{"phase":"Succeeded"}`},
		{"a Workflow in error", "argoproj.io/v1alpha1, kind: Workflow", `{"phase":"Error"}`},
		{"a RayJob", "ray.io/v1, kind: RayJob", `{"jobDeploymentStatus":"Complete"}`},
		{"a TFJob", "kubeflow.org/v1, kind: TFJob", `{"conditions":[{"type":"Succeeded","status":"True"}]}`},
		{"a SparkApplication", "sparkoperator.k8s.io/v1beta2, kind: SparkApplication",
			`{"applicationState":{"state":"COMPLETED"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifest := `{apiVersion: ` + c.kind + `, metadata: {name: once, namespace: shop}}`
			for name, change := range map[string]func(*workv1alpha1.Work){"as it was": func(*workv1alpha1.Work) {},
				"changed": changed} {
				w := work(t, manifest, reported(t, c.status), change)
				if got := execute.Plan(w, desired(t, w, nil), nil); got.Kind != execute.Nothing ||
					!strings.Contains(got.Reason, "not run again") {
					t.Errorf("a work %s: plan = %s (%s)", name, got.Kind, got.Reason)
				}
			}
			w := work(t, manifest, reported(t, c.status), deleting)
			if got := execute.Plan(w, nil, nil); got.Kind != execute.Nothing {
				t.Errorf("a work that is deleted may go: plan = %s (%s)", got.Kind, got.Reason)
			}
			w = work(t, manifest)
			if got := execute.Plan(w, desired(t, w, nil), nil); got.Kind != execute.Create {
				t.Errorf("a work without a report runs it: plan = %s (%s)", got.Kind, got.Reason)
			}
		})
	}
}

func TestRecreatedTemplateRunsAlthoughTheOldWorkExists(t *testing.T) {
	const manifest = `{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: shop, annotations: {resourcetemplate.karmada.io/uid: new}}}`
	for of, want := range map[string]execute.Kind{"old": execute.Create, "new": execute.Nothing} {
		w := work(t, manifest, reported(t, `{"runOf":"`+of+`","conditions":[{"type":"Complete","status":"True"}]}`))
		if got := execute.Plan(w, desired(t, w, nil), nil); got.Kind != want {
			t.Errorf("after a run of the %s template: plan = %s (%s)", of, got.Kind, got.Reason)
		}
	}
}

func TestUnfinishedDeletedJobIsRecreated(t *testing.T) {
	for _, c := range []struct{ name, kind, status string }{
		{"a Job under way", "batch/v1, kind: Job", `{"active":1,"conditions":[{"type":"Complete","status":"False"}]}`},
		{"a Workflow under way", "argoproj.io/v1alpha1, kind: Workflow", `{"phase":"Running"}`},
		{"an ImagePullJob under way", "apps.kruise.io/v1beta1, kind: ImagePullJob", `{"desired":3,"active":1}`},
		{"a Deployment that looks like a Workflow", "apps/v1, kind: Deployment", `{"phase":"Succeeded"}`},
		{"a report that is no object", "batch/v1, kind: Job", `[]`},
	} {
		w := work(t, `{apiVersion: `+c.kind+`, metadata: {name: once, namespace: shop}}`, reported(t, c.status))
		if got := execute.Plan(w, desired(t, w, nil), nil); got.Kind != execute.Create {
			t.Errorf("%s: plan = %s (%s)", c.name, got.Kind, got.Reason)
		}
	}
}

// side is a member with a Workflow: what we send lands there as an apply does, and its controller and users write too.
type side struct {
	t      *testing.T
	object *unstructured.Unstructured
	sends  int
}

// settle carries the Work out until there is nothing to do; a fight would never get there.
func (s *side) settle(w *workv1alpha1.Work) {
	s.t.Helper()
	interpreter := interpret.New(builtin.Tier())
	for range 5 {
		d, err := execute.Desired(w, s.object, func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured,
			error) {
			return interpreter.Retain(s.t.Context(), desired, observed)
		})
		if err != nil {
			s.t.Fatal(err)
		}
		if _, ok := d.Object["status"]; ok {
			s.t.Fatal("a status was sent")
		}
		action := execute.Plan(w, d, s.object)
		switch action.Kind {
		case execute.Nothing:
			return
		case execute.Create:
			s.object = action.Object.DeepCopy()
		case execute.Apply:
			// An apply takes away what an earlier one had set and this one does not.
			applied := strings.Split(s.object.GetAnnotations()[workv1alpha2.ManagedAnnotationsAnnotation], ",")
			merge(s.object.Object, action.Object.DeepCopy().Object)
			for _, key := range applied {
				if _, ok := action.Object.GetAnnotations()[key]; !ok {
					unstructured.RemoveNestedField(s.object.Object, "metadata", "annotations", key)
				}
			}
		default:
			s.t.Fatalf("plan = %s (%s)", action.Kind, action.Reason)
		}
		s.sends++
		w.Status.Conditions[0].ObservedGeneration = w.Generation
		s.object.SetGeneration(s.object.GetGeneration() + 1)
	}
	s.t.Fatalf("it never settles; the member has %v", s.object.Object)
}

func merge(into, from map[string]any) {
	for key, value := range from {
		below, ok := value.(map[string]any)
		have, both := into[key].(map[string]any)
		if ok && both {
			merge(have, below)
		} else {
			into[key] = value
		}
	}
}

func (s *side) set(value any, path ...string) {
	s.t.Helper()
	if value == nil {
		unstructured.RemoveNestedField(s.object.Object, path...)
	} else if err := unstructured.SetNestedField(s.object.Object, value, path...); err != nil {
		s.t.Fatal(err)
	}
	s.object.SetGeneration(s.object.GetGeneration() + 1) // without a status subresource every write counts
}

func (s *side) suspended() bool {
	b, _, _ := unstructured.NestedBool(s.object.Object, "spec", "suspend")
	return b
}

func workflow(t *testing.T, spec string) *workv1alpha1.Work {
	return work(t, `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: build, namespace: ci}, spec: `+
		spec+`}`)
}

func TestWorkflowStatusIsWrittenByMemberOnly(t *testing.T) {
	m, w := &side{t: t}, workflow(t, `{entrypoint: main}`)
	m.settle(w)
	for _, phase := range []string{"Pending", "Running", "Succeeded"} {
		m.set(map[string]any{"phase": phase, "nodes": map[string]any{"n": map[string]any{"phase": phase}}}, "status")
		m.set(phase, "metadata", "labels", "workflows.argoproj.io/phase")
		m.set([]any{"workflows.argoproj.io/artifact-gc"}, "metadata", "finalizers")
		m.settle(w)
	}
	if m.sends != 1 {
		t.Errorf("sent %d times, want its creation alone", m.sends)
	}
	w.Generation++ // something else about it changed on the hub
	m.settle(w)
	want := map[string]any{"phase": "Succeeded", "nodes": map[string]any{"n": map[string]any{"phase": "Succeeded"}}}
	if diff := cmp.Diff(want, m.object.Object["status"]); diff != "" || m.sends != 2 {
		t.Errorf("after %d sends the status differs: %s", m.sends, diff)
	}
}

func TestLastSuspendOfWorkflowWins(t *testing.T) {
	const running, pause = `{entrypoint: main}`, `{entrypoint: main, suspend: true}`
	m := &side{t: t}
	hub := func(spec string, generation int64) {
		w := workflow(t, spec)
		w.Generation = generation
		m.settle(w)
	}
	is := func(want bool, after string) {
		t.Helper()
		if m.suspended() != want {
			t.Errorf("%s: suspended = %v", after, m.suspended())
		}
	}

	hub(pause, 3)
	is(true, "created suspended")
	m.set(nil, "spec", "suspend")
	hub(pause, 3)
	is(false, "resumed in the member")
	hub(pause, 4)
	is(false, "then changed otherwise on the hub")
	hub(running, 5)
	is(false, "then resumed on the hub as well")
	hub(pause, 6)
	is(true, "suspended on the hub")
	hub(running, 7)
	is(false, "resumed on the hub")
	m.set(true, "spec", "suspend")
	hub(running, 7)
	is(true, "suspended in the member")
	hub(`{entrypoint: main, suspend: false}`, 8)
	is(true, "that it is not suspended is nothing new on the hub")
	hub(pause, 9)
	hub(running, 10)
	is(false, "suspended and resumed on the hub")
	hub(running, 11)
	is(false, "and still")
}

func TestAStopInTheMemberStays(t *testing.T) {
	m := &side{t: t}
	m.settle(workflow(t, `{entrypoint: main}`))
	m.set("Stop", "spec", "shutdown")
	m.settle(workflow(t, `{entrypoint: main, parallelism: 2}`))
	if got, _, _ := unstructured.NestedString(m.object.Object, "spec", "shutdown"); got != "Stop" {
		t.Errorf("shutdown = %q", got)
	}
	m.settle(workflow(t, `{entrypoint: main, parallelism: 2, shutdown: Terminate}`))
	if got, _, _ := unstructured.NestedString(m.object.Object, "spec", "shutdown"); got != "Terminate" {
		t.Errorf("the template's word: shutdown = %q", got)
	}
}
