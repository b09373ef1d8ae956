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
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// Pods are injected into when they are made: a workload that came to a cluster before its sidecars would run there
// without.
func TestWorkloadWaitsForSidecarsInNewClusters(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.SidecarSet}
		for _, cluster := range []string{"m1", "m2", "m3"} {
			w.Join(cluster, controllertest.Deployment, controllertest.SidecarSet)
		}
		template := func(kind, namespace string, spec map[string]any) {
			w.template = &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			w.template.SetGroupVersionKind(w.kind.GroupVersionKind)
			w.template.SetNamespace(namespace)
			w.template.SetName("c")
			p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p",
				Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}}
			propagate.Claim(w.template, p)
			w.Make(w.template)
		}
		template("SidecarSet", "", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"containers": []any{map[string]any{"name": "logs"}}})
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
			work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
				Reason: "r", LastTransitionTime: metav1.Now()}}
			work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(
				`{"observedGeneration":1}`)}}}
			if err := w.Status().Update(t.Context(), work); err != nil {
				t.Fatal(err)
			}
		}
		inForce("m2")

		w.kind = controllertest.Deployment
		template("Deployment", "shop", podsOfWeb())
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
		var conditions []metav1.Condition
		expectState := func(when string, at time.Duration, send int, again time.Duration, message string) {
			t.Helper()
			b, err := scope.Bindings.Get(t.Context(), w.Client, w.key())
			if err != nil {
				t.Fatal(err)
			}
			results, waiting, after, err := r.awaitNeeds(t.Context(), b, dispatch.Input{Template: w.template, Now: due.Add(at)},
				[]dispatch.Result{{Cluster: "m1", Work: &workv1alpha1.Work{}}})
			if err != nil || len(results) != send || after != again {
				t.Errorf("%s: %d are sent and it is looked at again after %s, want %d and %s (%v)", when, len(results), after, send,
					again, err)
			}
			output := ""
			conditions = dispatch.Decision{}.Report(conditions, waiting, nil, metav1.NewTime(due.Add(at)))
			if c := meta.FindStatusCondition(conditions, workv1alpha2.SidecarsInForce); c != nil {
				output = string(c.Status) + " " + c.Message
			}
			if !strings.HasPrefix(output, message) || message == "" && output != "" {
				t.Errorf("%s: the condition is %q, want %q", when, output, message)
			}
		}
		expectState("at first", 0, 0, sidecarSilence, "")
		expectState("after a while", sidecarSilence, 0, sidecarWait-sidecarSilence,
			`False cluster "m1": SidecarSet c, which injects into its pods, has not been applied there yet; the workload is dispatched when it is in effect, or 15s after it was due`)
		expectState("at last", sidecarWait, 1, 0, "True")
		expectState("after the Work could not be written", sidecarWait+time.Second, 1, 0, "True")

		r.waiting.forget(w.key())
		expectState("another workload, later", 2*sidecarWait, 0, sidecarSilence, "True")
		r.waiting.forget(w.key())

		inForce("m1")
		sent("when they are in force", "m1 m2 m3")
	})
}

// A template of a Lazy policy may come at any time, or never: no workload waits for it.
func TestWorkloadDoesNotWaitForALazyPolicysSidecars(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.SidecarSet}
		w.Join("m1", controllertest.Deployment, controllertest.SidecarSet)
		lazy := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p",
			Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}}
		lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
		template := func(namespace string, spec map[string]any) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			u.SetGroupVersionKind(w.kind.GroupVersionKind)
			u.SetNamespace(namespace)
			u.SetName("c")
			propagate.Claim(u, lazy)
			propagate.Await(u, lazy)
			w.Make(u)
			return u
		}
		template("", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"containers": []any{map[string]any{"name": "logs"}}})
		w.run()
		w.options.Templates.Want(dependency.SidecarSetKind)
		w.Eventually("the SidecarSet is known", func() string {
			if len(w.options.Templates.SidecarSets()) == 0 {
				return "it is not"
			}
			return ""
		})
		w.kind = controllertest.Deployment
		w.template = template("shop", podsOfWeb())
		r := &reconciler{Options: w.options, client: w.Client}
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c-deployment"}}
		results, _, after, err := r.awaitNeeds(t.Context(), b, dispatch.Input{Template: w.template, Now: time.Now()},
			[]dispatch.Result{{Cluster: "m1", Work: &workv1alpha1.Work{}}})
		if err != nil || len(results) != 1 || after != 0 {
			t.Errorf("%d are sent, and it is looked at again after %s, %v", len(results), after, err)
		}
	})
}

// While the SidecarSets are unknown, as at a start, the workload waits, but not for ever.
func TestAWorkloadWaitsUntilTheSidecarSetsAreRead(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.Deployment}
		store := template.New(nil, nil) // which reads nothing before it is started
		store.Want(dependency.SidecarSetKind)
		r := &reconciler{Options: Options{Templates: store}, client: w.Client}
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c-daemonset"}}
		w.Make(b)
		due := time.Now()
		expectState := func(when string, obj *unstructured.Unstructured, at time.Duration, send int, again time.Duration) {
			t.Helper()
			results, _, after, err := r.awaitNeeds(t.Context(), b, dispatch.Input{Template: obj, Now: due.Add(at)},
				[]dispatch.Result{{Cluster: "m1", Work: &workv1alpha1.Work{}}})
			if err != nil || len(results) != send || after != again {
				t.Errorf("%s: %d are sent and it is looked at again after %s, want %d and %s (%v)", when, len(results), after, send,
					again, err)
			}
		}
		workload := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet",
			"metadata": map[string]any{"namespace": "shop", "name": "c"},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
		settings := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"namespace": "shop", "name": "c"}}}
		expectState("what has no pods", settings, 0, 1, 0)
		expectState("a workload", workload, 0, 0, unreadRetry)
		expectState("a workload at last", workload, sidecarWait, 1, 0)
	})
}

// A claimed SidecarSet that is not placed yet may go to any cluster, also where the workload is placed already.
func TestWorkloadWaitsForUnplacedSidecars(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.SidecarSet}
		for _, cluster := range []string{"m1", "m2"} {
			w.Join(cluster, controllertest.Deployment, controllertest.SidecarSet)
		}
		template := func(namespace string, spec map[string]any) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			u.SetGroupVersionKind(w.kind.GroupVersionKind)
			u.SetNamespace(namespace)
			u.SetName("c")
			p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p",
				Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}}
			propagate.Claim(u, p)
			w.Make(u)
			return u
		}
		sidecars := template("", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"containers": []any{map[string]any{"name": "logs"}}})
		w.run()
		w.options.Templates.Want(dependency.SidecarSetKind) // as a policy does
		w.Eventually("the SidecarSet is known", func() string {
			if len(w.options.Templates.SidecarSets()) == 0 {
				return "it is not"
			}
			return ""
		})
		w.kind = controllertest.Deployment
		workload := template("shop", podsOfWeb())
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
	})
}

// podsOfWeb returns the spec of a workload with pods that have the label app=web.
func podsOfWeb() map[string]any {
	labels := map[string]any{"app": "web"}
	return map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": labels}}}
}
