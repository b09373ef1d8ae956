package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
	"github.com/argosy-io/argosy/internal/core/dependency"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
)

// Pods are injected into when they are made: a workload that came to a cluster before its sidecars would run there without.
func TestAWorkloadWaitsForItsSidecarsWhereItIsNotYet(t *testing.T) {
	t.Parallel()
	w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.SidecarSet}
	for _, cluster := range []string{"m1", "m2", "m3"} {
		w.Join(cluster, controllertest.Deployment, controllertest.SidecarSet)
	}
	template := func(kind, namespace string, spec map[string]any) {
		w.template = &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		w.template.SetGroupVersionKind(w.kind.GroupVersionKind)
		w.template.SetNamespace(namespace)
		w.template.SetName("c")
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}}
		propagate.Claim(w.template, p)
		w.Make(w.template)
	}
	template("SidecarSet", "", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "containers": []any{map[string]any{"name": "logs"}}})
	w.run()
	w.bind("sidecars", "m1", "m2")
	sidecars := map[string]*workv1alpha1.Work{}
	for _, cluster := range []string{"m1", "m2"} {
		w.Eventually("the SidecarSet is sent to "+cluster, func() string {
			if sidecars[cluster] = w.work(cluster); sidecars[cluster] == nil {
				return "it is not"
			}
			return ""
		})
	}
	inForce := func(cluster string) {
		t.Helper()
		work := sidecars[cluster]
		work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: "r", LastTransitionTime: metav1.Now()}}
		work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(`{"observedGeneration":1}`)}}}
		if err := w.Status().Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
	}
	inForce("m2")

	w.kind = controllertest.Deployment
	template("Deployment", "shop", map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}}})
	w.bind("workload", "m1", "m2", "m3")
	sent := func(when, want string) {
		t.Helper()
		w.Eventually(when, func() string {
			var got []string
			for _, cluster := range []string{"m1", "m2", "m3"} {
				if w.work(cluster) != nil {
					got = append(got, cluster)
				}
			}
			if strings.Join(got, " ") != want {
				return fmt.Sprintf("it is sent to %v, want %s", got, want)
			}
			return ""
		})
		w.Quiet() // and stays so
		if want != "m1 m2 m3" && w.work("m1") != nil {
			t.Errorf("%s: it is sent before its sidecars", when)
		}
	}
	sent("where they are in force, and where they do not go", "m2 m3")

	// In time that passes by hand: a reconciler that has seen nothing yet.
	r := &reconciler{Options: w.options, client: w.Client}
	due := time.Now()
	hold := func(when string, at time.Duration, send int, again time.Duration, says string) {
		t.Helper()
		b, err := scope.Bindings.Get(t.Context(), w.Client, w.key())
		if err != nil {
			t.Fatal(err)
		}
		b, results, after, err := r.hold(t.Context(), b, dispatch.Input{Template: w.template, Now: due.Add(at)}, []dispatch.Result{{Cluster: "m1", Work: &workv1alpha1.Work{}}})
		if err != nil || len(results) != send || after != again {
			t.Errorf("%s: %d are sent and it is looked at again after %s, want %d and %s (%v)", when, len(results), after, send, again, err)
		}
		said := ""
		if c := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.SidecarsInForce); c != nil {
			said = string(c.Status) + " " + c.Message
		}
		if !strings.HasPrefix(said, says) || says == "" && said != "" {
			t.Errorf("%s: the condition is %q, want %q", when, said, says)
		}
	}
	hold("at first", 0, 0, sidecarSilence, "")
	hold("after a while", sidecarSilence, 0, sidecarWait-sidecarSilence, `False cluster "m1": SidecarSet c, which injects into its pods, is not applied there yet; the workload is sent when it is in force, or 15s after it was due`)
	hold("at last", sidecarWait, 1, 0, "True")

	inForce("m1")
	sent("when they are in force", "m1 m2 m3")
}

// What a policy has claimed and nobody has placed yet may go anywhere, also where the workload is placed already.
func TestAWorkloadWaitsForSidecarsThatAreAboutToBePlaced(t *testing.T) {
	t.Parallel()
	w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.SidecarSet}
	for _, cluster := range []string{"m1", "m2"} {
		w.Join(cluster, controllertest.Deployment, controllertest.SidecarSet)
	}
	template := func(namespace string, spec map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetGroupVersionKind(w.kind.GroupVersionKind)
		u.SetNamespace(namespace)
		u.SetName("c")
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}}
		propagate.Claim(u, p)
		w.Make(u)
		return u
	}
	sidecars := template("", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "containers": []any{map[string]any{"name": "logs"}}})
	w.run()
	w.options.Templates.Want(dependency.SidecarSetKind) // as a policy does
	w.Eventually("the SidecarSet is known", func() string {
		if len(w.options.Templates.SidecarSets()) == 0 {
			return "it is not"
		}
		return ""
	})
	w.kind = controllertest.Deployment
	workload := template("shop", map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}}})
	w.template = workload
	w.bind("workload", "m1", "m2")
	w.Quiet()
	for _, cluster := range []string{"m1", "m2"} {
		if w.work(cluster) != nil {
			t.Errorf("it is sent to %s before anybody knows where its sidecars go", cluster)
		}
	}

	w.kind, w.template = controllertest.SidecarSet, sidecars
	w.bind("sidecars", "m1")
	w.kind, w.template = controllertest.Deployment, workload
	w.Eventually("it is sent where they do not go", func() string {
		if w.work("m2") == nil {
			return "it is not"
		}
		return ""
	})
	w.Quiet()
	if w.work("m1") != nil {
		t.Error("it is sent before its sidecars")
	}
}
