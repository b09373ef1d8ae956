package execute_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
)

const hubMark = "argosy.io/hub"

func TestObjectOfAnotherHubIsNotTouchedWithoutRequest(t *testing.T) {
	applied := func(w *workv1alpha1.Work) {
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			ObservedGeneration: w.Generation}}
	}
	fresh := func(w *workv1alpha1.Work) { w.Status = workv1alpha1.WorkStatus{} }
	overwrite := func(w *workv1alpha1.Work) {
		w.Annotations = map[string]string{"work.karmada.io/conflict-resolution": "overwrite"}
	}
	deleted := func(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{} }
	for _, c := range []struct {
		story    string
		by       string
		work     []func(*workv1alpha1.Work)
		want     execute.Kind
		wantText string
	}{
		{"an object of its own is as desired", "a", []func(*workv1alpha1.Work){applied}, execute.Nothing, ""},
		{"an object from before there were marks is as desired, and not written for the mark", "",
			[]func(*workv1alpha1.Work){applied}, execute.Nothing, ""},
		{"an object from before there were marks is deleted", "", []func(*workv1alpha1.Work){applied, deleted},
			execute.Delete, ""},
		{"another hub's object is a conflict", "b", []func(*workv1alpha1.Work){fresh}, execute.Conflict, "another hub (b)"},
		{"another hub's object is overwritten by word", "b", []func(*workv1alpha1.Work){fresh, overwrite}, execute.Apply, ""},
		{"an object that it had before is taken back", "b", []func(*workv1alpha1.Work){applied}, execute.Apply,
			"another hub (b)"},
		{"another hub's object is not deleted", "b", []func(*workv1alpha1.Work){applied, deleted}, execute.Nothing,
			"so it is kept"},
		{"an object of its own is deleted", "a", []func(*workv1alpha1.Work){applied, deleted}, execute.Delete, ""},
	} {
		t.Run(c.story, func(t *testing.T) {
			w := work(t, service, c.work...)
			d := desired(t, w, nil)
			observed := d.DeepCopy()
			if c.by != "" {
				unstructured.SetNestedField(observed.Object, c.by, "metadata", "annotations", hubMark)
			}
			got := execute.HubID("a").Plan(w, d, observed)
			if got.Kind != c.want || !strings.Contains(got.Reason, c.wantText) {
				t.Errorf("got %s (%s), want %s", got.Kind, got.Reason, c.want)
			}
			if got.Object != nil && got.Object.GetAnnotations()[hubMark] != "a" {
				t.Errorf("what is sent is marked %q", got.Object.GetAnnotations()[hubMark])
			}
			if d.GetAnnotations()[hubMark] != "" {
				t.Error("the desired object was changed")
			}
		})
	}
}

// A user of the hub could else have an object that is written without end, or that no hub may delete.
func TestTemplateCannotSetOwningHub(t *testing.T) {
	w := work(t, `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, annotations: {argosy.io/hub: b}}}`)
	d := desired(t, w, nil)
	if got := d.GetAnnotations()[hubMark]; got != "" {
		t.Errorf("what is sent says it is of hub %q", got)
	}
	if list := d.GetAnnotations()["resourcetemplate.karmada.io/managed-annotations"]; strings.Contains(list, hubMark) {
		t.Errorf("the annotation is listed: %s", list)
	}
}

// A cluster that was unjoined without its kubeconfig and joined under another name has objects of its former name.
func TestObjectOfAFormerNameIsThisHubsOwn(t *testing.T) {
	for _, c := range []struct {
		story, by, space, resolution string
		want                         execute.Kind
		text                         string
	}{
		{"this hub's own names the way out", "a", "karmada-es-old", "", execute.Conflict,
			"is of this hub, from when the cluster was joined as old; to take it over, set conflictResolution: Overwrite in " +
				"the policy, or delete it with `argosy orphans delete Service web -n shop -C eu --yes`"},
		{"this hub's own is taken over by word", "a", "karmada-es-old", "overwrite", execute.Apply, "adopted"},
		{"another hub's is another hub's", "b", "karmada-es-old", "", execute.Conflict,
			"belongs to the work karmada-es-old/"},
		{"one without a hub may be Karmada's", "", "karmada-es-old", "", execute.Conflict,
			"belongs to the work karmada-es-old/"},
		{"one that was never in an execution space", "a", "shop", "", execute.Conflict, "belongs to the work shop/"},
		{"one whose mark is a path is of no cluster", "a", "karmada-es-x/../../y", "", execute.Conflict,
			"belongs to the work karmada-es-x/../../y/"},
		{"one whose mark is no name is of no cluster", "a", "karmada-es-x y", "", execute.Conflict, "belongs to the work"},
		{"one whose mark is longer than a namespace is of no cluster", "a", "karmada-es-" + strings.Repeat("x", 60), "",
			execute.Conflict, "belongs to the work"},
	} {
		t.Run(c.story, func(t *testing.T) {
			w := work(t, service, func(w *workv1alpha1.Work) {
				w.Status = workv1alpha1.WorkStatus{}
				w.Annotations = map[string]string{"work.karmada.io/conflict-resolution": c.resolution}
			})
			d := desired(t, w, nil)
			observed := d.DeepCopy()
			annotations := observed.GetAnnotations()
			annotations["work.karmada.io/namespace"] = c.space
			if annotations[hubMark] = c.by; c.by == "" {
				delete(annotations, hubMark)
			}
			observed.SetAnnotations(annotations)
			if got := execute.HubID("a").Plan(w, d, observed); got.Kind != c.want || !strings.Contains(got.Reason, c.text) {
				t.Errorf("got %s (%s), want %s (%s)", got.Kind, got.Reason, c.want, c.text)
			}
		})
	}
}

// The command that deletes an object of a former name is complete for objects of each scope, and means one kind.
func TestFormerObjectsAreDeletedWithACompleteCommand(t *testing.T) {
	for manifest, want := range map[string]string{
		service: "`argosy orphans delete Service web -n shop -C eu --yes`",
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}`: "`argosy orphans delete " +
			"Deployment.apps web -n shop -C eu --yes`",
		`{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`: "`argosy orphans delete Namespace shop -C eu --yes`",
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}}`: "`argosy orphans delete " +
			"ClusterRole.rbac.authorization.k8s.io x -C eu --yes`",
	} {
		w := work(t, manifest, func(w *workv1alpha1.Work) { w.Status = workv1alpha1.WorkStatus{} })
		d := desired(t, w, nil)
		observed := d.DeepCopy()
		for key, value := range map[string]string{"work.karmada.io/namespace": "karmada-es-old", hubMark: "a"} {
			if err := unstructured.SetNestedField(observed.Object, value, "metadata", "annotations", key); err != nil {
				t.Fatal(err)
			}
		}
		if got := execute.HubID("a").Plan(w, d, observed); !strings.Contains(got.Reason, want) {
			t.Errorf("got %s (%s), want %s", got.Kind, got.Reason, want)
		}
	}
}
