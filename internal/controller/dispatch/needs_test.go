package dispatch

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// A Workflow whose first pod is refused, for want of its ServiceAccount say, has failed for good.
func TestWorkflowWaitsForDependencies(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.Deployment}
		w.Join("m1", controllertest.Deployment)
		w.run()
		due := time.Now()
		workflow := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "argoproj.io/v1alpha1",
			"kind":     "Workflow",
			"metadata": map[string]any{"namespace": "shop", "name": "w"},
			"spec":     map[string]any{"artifactRepositoryRef": map[string]any{"configMap": "repository"}}}}
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "w-workflow"}}
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
		r := &reconciler{Options: w.options, client: w.Client}
		key := client.ObjectKeyFromObject(b)
		expectState := func(when string, at time.Duration, sent bool) {
			t.Helper()
			if at == 0 {
				r.waiting.forget(key)
			}
			results, _, after, err := r.awaitNeeds(t.Context(), b, dispatch.Input{Template: workflow, Now: due.Add(at)},
				[]dispatch.Result{{Cluster: "m1", Work: &workv1alpha1.Work{}}})
			if err != nil || (len(results) == 1) != sent || after != map[bool]time.Duration{false: needsRetry}[sent] {
				t.Errorf("%s: %d are sent, and it is looked at again after %s, %v", when, len(results), after, err)
			}
		}
		eventually := func(when string, sent bool) {
			t.Helper()
			w.Eventually(when, func() string {
				if lacks, err := r.unmet(t.Context(), b, workflow, "m1"); err != nil || (lacks == "") != sent {
					return fmt.Sprintf("it lacks %q, %v", lacks, err)
				}
				return ""
			})
			expectState(when, 0, sent)
		}

		expectState("nothing follows it by its policy", 0, true)
		b.Spec.PropagateDeps = true
		expectState("what it needs is not on the hub", 0, true)
		w.Make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repository"}})
		eventually("it is on the hub alone", false)
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace("m1"),
			Name: names.Work("ConfigMap", "repository", "shop")}}
		w.Make(work)
		expectState("it is on its way", 0, false)
		expectState("it does not come", sidecarWait, true)
		applied := func(status metav1.ConditionStatus) {
			t.Helper()
			work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: status, Reason: "r",
				LastTransitionTime: metav1.Now()}}
			if err := w.Status().Update(t.Context(), work); err != nil {
				t.Fatal(err)
			}
		}
		applied(metav1.ConditionTrue)
		expectState("its roles are not known yet", 0, false)
		recorded := dependency.Record(b,
			[]configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop",
				Name: "repository"}})
		b = recorded.(*workv1alpha2.ResourceBinding)
		expectState("all is there", 0, true)
		applied(metav1.ConditionFalse)
		expectState("the member refuses it", 0, true)
		work.Status.Conditions = nil
		if err := w.Status().Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		expectState("it goes again", 0, false)
		workflow.SetKind("CronWorkflow")
		expectState("what runs later does not wait", 0, true)
	})
}
