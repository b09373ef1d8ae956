package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

func oneJob(ns, spec string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: %s}, spec: {%s template: {spec: {restartPolicy: Never, containers: [{name: c, image: "example.com/x:1"}]}}}}`, ns, spec)
}

// ended returns what is wrong unless the template's status is Completed.
func ended(t *testing.T, ns string) func() string {
	return func() string {
		if c := fmt.Sprint(kit.Field(fleet.Hub.Find(t, "batch/v1", "Job", ns, "x"), "status",
			"conditions")); !strings.Contains(c, "type:Complete") {
			return "its conditions are " + c
		}
		return ""
	}
}

// A member deletes finished Jobs by a rule of its own, as an admission policy there may have it. They ran, and run no
// more.
func TestJobCleanedUpByItsMemberRunsOnce(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "batch/v1", "Job", placedOn("m1")))
	fleet.Hub.Apply(t, oneJob(ns, "suspend: true,"))
	kit.Eventually(t, "m1 holds it", func() string { return lacks(t, "batch/v1", "Job", ns, "x", "m1") })
	fleet.Members["m1"].Change(t, "batch/v1", "Job", ns, "x", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(0), "spec", "ttlSecondsAfterFinished")
	})
	fleet.Hub.Change(t, "batch/v1", "Job", ns, "x", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, false, "spec", "suspend")
	})
	kit.Eventually(t, "the template says that it completed", ended(t, ns))
	gone := func() string { return lacks(t, "batch/v1", "Job", ns, "x") }
	kit.Eventually(t, "m1 has cleaned it up", gone)

	fleet.Hub.Change(t, "batch/v1", "Job", ns, "x",
		func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"changed": "yes"}) })
	kit.Stays(t, "it does not run again", 3*time.Second, func() string {
		if wrong := gone(); wrong != "" {
			return wrong
		}
		return ended(t, ns)()
	})

	uid := fleet.Hub.Find(t, "batch/v1", "Job", ns, "x").GetUID()
	fleet.Hub.Remove(t, "batch/v1", "Job", ns, "x")
	kit.Eventually(t, "the template is gone", func() string {
		if fleet.Hub.Find(t, "batch/v1", "Job", ns, "x") != nil {
			return "it is there"
		}
		return ""
	})
	fleet.Hub.Apply(t, oneJob(ns, ""))
	kit.Eventually(t, "the next one of its name runs", func() string {
		next := fleet.Hub.Find(t, "batch/v1", "Job", ns, "x")
		if next == nil || next.GetUID() == uid {
			return "it is not there"
		}
		return ended(t, ns)()
	})
	kit.Eventually(t, "and stays, as nobody said that it should go", func() string {
		return lacks(t, "batch/v1", "Job", ns, "x", "m1")
	})
}

const argoWorkflow = "argoproj.io/v1alpha1"

// oneWorkflow is one that goes where the test, in the part of the member's controller, takes it.
func oneWorkflow(ns, name, more string) string {
	return fmt.Sprintf(`{apiVersion: %s, kind: Workflow, metadata: {name: %s, namespace: %s%s}, spec: {entrypoint: main, suspend: true,
		ttlStrategy: {secondsAfterCompletion: 0}, templates: [{name: main, container: {image: "example.com/x:1", resources: {requests: {cpu: 10m}}}}]}}`, argoWorkflow, name, ns, more)
}

// inOne is the member that holds a Workflow, empty unless exactly one does.
func inOne(t *testing.T, ns, name string) string {
	in := ""
	for m, c := range fleet.Members {
		if c.Find(t, argoWorkflow, "Workflow", ns, name) == nil {
			continue
		}
		if in != "" {
			t.Fatalf("%s and %s hold the Workflow %s", in, m, name)
		}
		in = m
	}
	return in
}

// serveWorkflows has every member serve Workflows, by the definition that the hub has, if it does not already.
func serveWorkflows(t *testing.T) {
	t.Helper()
	const api, kind, name = "apiextensions.k8s.io/v1", "CustomResourceDefinition", "workflows.argoproj.io"
	var crd *unstructured.Unstructured
	kit.Eventually(t, "the hub defines Workflows", func() string { // some seconds after it is ready
		if crd = fleet.Hub.Find(t, api, kind, "", name); crd == nil {
			return "it does not"
		}
		return ""
	})
	for _, c := range fleet.Members {
		if c.Find(t, api, kind, "", name) != nil {
			continue
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": crd.DeepCopy().Object["spec"]}}
		u.SetAPIVersion(api)
		u.SetKind(kind)
		u.SetName(name)
		unstructured.RemoveNestedField(u.Object, "spec", "conversion")
		if err := c.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
}

// A Workflow runs in one member and is resumed from the hub, without a write conflict.
func TestAWorkflowRunsOnceInOneMemberAndIsResumedFromTheHub(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	serveWorkflows(t)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", argoWorkflow, "Workflow", placedOn("m1", "m2", "m3")))
	fleet.Hub.Apply(t, oneWorkflow(ns, "w", ""))
	fleet.Hub.Apply(t, oneWorkflow(ns, "everywhere", `, annotations: {argosy.io/run-per-cluster: "true"}`))
	kit.Eventually(t, "one member holds it", func() string {
		if inOne(t, ns, "w") == "" {
			return fmt.Sprintf("none does; the binding is %+v", binding(t, ns, "w-workflow"))
		}
		return ""
	})
	kit.Eventually(t, "unless its owner asks for all", func() string {
		return lacks(t, argoWorkflow, "Workflow", ns, "everywhere", "m1", "m2", "m3")
	})
	m := inOne(t, ns, "w")
	kit.Eventually(t, "its owner gets an event", func() string {
		if messages := fleet.Hub.Messages(t, "Workflow", ns, "w",
			"ApplyPolicyAdvised"); !strings.Contains(strings.Join(messages, "\n"),
			"argosy.io/run-per-cluster") {
			return fmt.Sprintf("reported: %q", messages)
		}
		return ""
	})

	fleet.Hub.Change(t, argoWorkflow, "Workflow", ns, "w", func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "suspend")
	})
	kit.Eventually(t, "it is resumed", func() string {
		if paused := inMember(t, m, argoWorkflow, "Workflow", ns, "w", "spec", "suspend"); paused == true {
			return "it is suspended"
		}
		return ""
	})
	// The part of its controller, if no other plays it: each status it writes is one of the whole object.
	act := func(phase string) {
		t.Helper()
		fleet.Members[m].Change(t, argoWorkflow, "Workflow", ns, "w", func(u *unstructured.Unstructured) {
			if p := kit.Field(u, "status", "phase"); p == "Succeeded" {
				return
			}
			now := time.Now().UTC().Format(time.RFC3339)
			u.Object["status"] = map[string]any{"phase": phase, "progress": "1/1", "startedAt": now, "finishedAt": now,
				"nodes": map[string]any{"w": map[string]any{"phase": phase}}}
			u.SetLabels(over(u.GetLabels(), "workflows.argoproj.io/phase", phase))
		})
	}
	// Without a time to live yet, to see it rest.
	lasting := fleet.Hub.Change(t, argoWorkflow, "Workflow", ns, "w", func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "ttlStrategy")
	})
	kit.Eventually(t, "the member has heard of that", func() string {
		// A status makes a generation of its own, the kind having no status subresource: the template may be ahead, and the
		// member with it.
		got := inMember(t, m, argoWorkflow, "Workflow", ns, "w", "metadata", "annotations",
			workv1alpha2.TemplateGenerationAnnotation)
		if seen, err := strconv.ParseInt(fmt.Sprint(got), 10, 64); err != nil || seen < lasting.GetGeneration() {
			return fmt.Sprintf("it has generation %v of %d", got, lasting.GetGeneration())
		}
		return ""
	})
	act("Succeeded")
	kit.Eventually(t, "the template says that it succeeded", func() string {
		if phase := kit.Field(fleet.Hub.Find(t, argoWorkflow, "Workflow", ns, "w"), "status", "phase"); phase != "Succeeded" {
			return fmt.Sprint("its phase is ", phase)
		}
		return ""
	})
	if phase := inMember(t, m, argoWorkflow, "Workflow", ns, "w", "status", "phase"); phase != "Succeeded" {
		t.Errorf("its status in the member is %v", phase)
	}

	// The member forgets it; it does not run again, here or elsewhere. At the end of its time the template goes as well.
	fleet.Members[m].Remove(t, argoWorkflow, "Workflow", ns, "w")
	kit.Stays(t, "it does not run again", 3*time.Second, func() string {
		if in := inOne(t, ns, "w"); in != "" &&
			fleet.Members[in].Find(t, argoWorkflow, "Workflow", ns, "w").GetDeletionTimestamp() == nil {
			return in + " holds it"
		}
		return ""
	})
	fleet.Hub.Change(t, argoWorkflow, "Workflow", ns, "w", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(0), "spec", "ttlStrategy", "secondsAfterCompletion")
	})
	kit.Eventually(t, "the template goes in its time", func() string {
		if fleet.Hub.Find(t, argoWorkflow, "Workflow", ns, "w") != nil {
			return "it is there"
		}
		return ""
	})
}

// over is a map with one value more.
func over(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}
