package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// world is a hub with the clusters m1 and m2 that keeps Works. Nobody carries them out, but who would lets them go.
type world struct {
	*controllertest.Hub
	t       *testing.T
	options Options
	stop    func()
	// template and its binding, of the scope of the test.
	template *unstructured.Unstructured
	kind     membertest.Kind
	// pods that are found in members.
	pods Pods
	// forbidsOverwrite is the setting.
	forbidsOverwrite bool
}

// forBothScopes runs a test for a template in a namespace and for a cluster-scoped one.
func forBothScopes(t *testing.T, test func(*world)) {
	t.Parallel()
	for name, s := range map[string]struct {
		kind      membertest.Kind
		namespace string
	}{
		"namespaced":     {membertest.ConfigMap, "shop"},
		"cluster-scoped": {controllertest.ClusterRole, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := &world{Hub: controllertest.New(t), t: t, kind: s.kind}
				for _, cluster := range []string{"m1", "m2"} {
					w.Join(cluster, controllertest.ClusterRole)
				}
				w.template = &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"value": "1"}}}
				w.template.SetGroupVersionKind(s.kind.GroupVersionKind)
				w.template.SetNamespace(s.namespace)
				w.template.SetName("c")
				w.Make(w.template)
				w.run()
				w.letWorksGo()
				test(w)
			})
		})
	}
}

func (w *world) run() {
	w.stop = w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		templates := template.New(dynamic.NewForConfigOrDie(w.Config), discovery.NewDiscoveryClientForConfigOrDie(w.Config))
		if err := mgr.Add(templates); err != nil {
			return err
		}
		if err := scope.IndexWorks(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
		if err := template.IndexRevisions(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
		w.options = Options{Templates: templates, Interpreter: interpret.New(builtin.Tier()), Pods: w.pods,
			ForbidOverwrite: w.forbidsOverwrite, Concurrency: 2}
		return Setup(ctx, mgr, w.options)
	})
}

// letWorksGo takes the finalizer off Works that are being deleted, as the execute controller does.
func (w *world) letWorksGo() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	w.t.Cleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			var works workv1alpha1.WorkList
			_ = w.List(ctx, &works)
			for i := range works.Items {
				if works.Items[i].DeletionTimestamp != nil {
					works.Items[i].Finalizers = nil
					_ = w.Update(ctx, &works.Items[i])
				}
			}
		}
	}()
}

// key is that of the binding.
func (w *world) key() client.ObjectKey {
	return client.ObjectKey{Namespace: w.template.GetNamespace(), Name: names.Binding(w.kind.Kind, "c")}
}

// bind makes the binding of the template, for the clusters.
func (w *world) bind(id string, clusters ...string) workv1alpha2.Binding {
	w.t.Helper()
	b := scope.Bindings.New(w.template.GetNamespace())
	b.SetName(w.key().Name)
	label, finalizer := workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.BindingFinalizer
	if b.GetNamespace() == "" {
		label, finalizer = workv1alpha2.ClusterResourceBindingPermanentIDLabel, workv1alpha2.ClusterBindingFinalizer
	}
	b.SetLabels(map[string]string{label: id})
	b.SetFinalizers([]string{finalizer})
	b.BindingSpec().Resource = workv1alpha2.ObjectReference{APIVersion: w.template.GetAPIVersion(),
		Kind:      w.template.GetKind(),
		Namespace: w.template.GetNamespace(), Name: "c", UID: w.template.GetUID(),
		ResourceVersion: w.template.GetResourceVersion()}
	b.BindingSpec().Clusters = targets(clusters)
	w.Make(b)
	return b
}

func targets(clusters []string) (out []workv1alpha2.TargetCluster) {
	for _, c := range clusters {
		out = append(out, workv1alpha2.TargetCluster{Name: c})
	}
	return out
}

func (w *world) change(change func(workv1alpha2.Binding)) {
	w.t.Helper()
	b := scope.Bindings.New(w.key().Namespace)
	b.SetName(w.key().Name)
	controllertest.Change(w.Hub, b, change)
}

// work returns the one for the cluster; nil if there is none.
func (w *world) work(cluster string) *workv1alpha1.Work {
	w.t.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(cluster),
		Name: names.Work(w.kind.Kind, "c", w.template.GetNamespace())}}
	if !w.HasObject(work) {
		return nil
	}
	return work
}

// sent returns the values that Works say, as "m1:1 m2:1".
func (w *world) sent() string {
	w.t.Helper()
	var out []string
	for _, cluster := range []string{"m1", "m2"} {
		work := w.work(cluster)
		if work == nil {
			continue
		}
		var u unstructured.Unstructured
		if err := json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &u.Object); err != nil {
			w.t.Fatal(err)
		}
		value, _, _ := unstructured.NestedString(u.Object, "data", "value")
		out = append(out, cluster+":"+value)
	}
	return strings.Join(out, " ")
}

func (w *world) becomes(want string) {
	w.t.Helper()
	w.Eventually("works are "+want, func() string {
		if got := w.sent(); got != want {
			return "they are " + got
		}
		return ""
	})
}

// eventsWith returns the messages of events with a reason.
func (w *world) eventsWith(reason string) (messages []string) {
	w.t.Helper()
	for _, e := range w.Events() {
		if strings.Contains(e, reason) {
			messages = append(messages, e)
		}
	}
	return messages
}

// written returns what is wrong with the binding's condition of that name.
func (w *world) written(want metav1.ConditionStatus, message string) func() string {
	return func() string {
		b, err := scope.Bindings.Get(w.t.Context(), w.Client, w.key())
		if err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.WorksWritten)
		if c != nil && c.Status == want && strings.Contains(c.Message, message) {
			return ""
		}
		return fmt.Sprintf("the condition is %+v", c)
	}
}

// override returns a policy of the template's scope that sets its value, where the target says.
func (w *world) override(target *policyv1alpha1.ClusterAffinity, path, value string) policyv1alpha1.Override {
	p := scope.Overrides.New(w.template.GetNamespace())
	p.SetName("o")
	p.OverrideSpec().ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: w.template.GetAPIVersion(),
		Kind: w.kind.Kind, Name: "c"}}
	raw, err := json.Marshal(value)
	if err != nil {
		w.t.Fatal(err)
	}
	rule := policyv1alpha1.RuleWithCluster{TargetCluster: target}
	rule.Overriders.Plaintext = []policyv1alpha1.PlaintextOverrider{{Path: path,
		Operator: policyv1alpha1.OverriderOpReplace}}
	rule.Overriders.Plaintext[0].Value.Raw = raw
	p.OverrideSpec().OverrideRules = []policyv1alpha1.RuleWithCluster{rule}
	return p
}

func TestABindingCostsOneWritePerCluster(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.Quiet()
		w.bind("id", "m1", "m2")
		w.becomes("m1:1 m2:1")
		got := slices.DeleteFunc(w.Quiet(), func(s string) bool { return strings.Contains(s, "bindings") })
		if len(got) != 2 {
			w.t.Errorf("written: %v, want two works", got)
		}
		if work := w.work("m1"); work.Labels[workv1alpha2.WorkPermanentIDLabel] == "" ||
			!slices.Contains(work.Finalizers, workv1alpha2.ExecutionFinalizer) {
			w.t.Errorf("the work has labels %v and finalizers %v", work.Labels, work.Finalizers)
		}

		w.stop()
		w.run()
		if got := w.Quiet(); len(got) != 0 {
			w.t.Errorf("a restart wrote %v", got)
		}
		w.change(func(b workv1alpha2.Binding) { b.BindingSpec().Clusters = targets([]string{"m2"}) })
		w.becomes("m2:1")
	})
}

func TestBindingDeletedAtOnceLeavesNoWork(t *testing.T) {
	forBothScopes(t, func(w *world) {
		for i := range 8 {
			b := w.bind("id", "m1")
			w.Advance(time.Duration(i%4) * 2 * time.Millisecond)
			if i%2 == 0 {
				w.change(func(b workv1alpha2.Binding) { b.BindingSpec().Clusters = targets([]string{"m2"}) })
				w.becomes("m2:1")
			}
			w.Gone(b)
			w.Eventually("the binding and its works are gone", func() string {
				if left := w.sent(); left != "" || w.HasObject(b) {
					return "there is " + left
				}
				return ""
			})
		}
		w.Quiet()
		if left := w.sent(); left != "" {
			w.t.Errorf("works came late and stayed: %s", left)
		}
	})
}

func TestWorksFollowOverridePolicy(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.bind("id", "m1", "m2")
		w.becomes("m1:1 m2:1")
		p := w.override(&policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}, "/data/value", "2")
		w.Make(p)
		w.becomes("m1:1 m2:2")
		if notes := w.work("m2").Annotations; notes[policyv1alpha1.AppliedOverridesAnnotation]+
			notes[policyv1alpha1.AppliedClusterOverridesAnnotation] == "" {
			w.t.Errorf("the work does not say what was overridden: %v", notes)
		}

		controllertest.Change(w.Hub, p, func(p policyv1alpha1.Override) {
			p.OverrideSpec().ResourceSelectors[0].Name = "other"
		})
		w.becomes("m1:1 m2:1")
		if notes := w.work("m2").Annotations; notes[policyv1alpha1.AppliedOverridesAnnotation]+
			notes[policyv1alpha1.AppliedClusterOverridesAnnotation] != "" {
			w.t.Errorf("the work says that it is overridden: %v", notes)
		}

		controllertest.Change(w.Hub, p, func(p policyv1alpha1.Override) { p.OverrideSpec().ResourceSelectors = nil })
		w.becomes("m1:1 m2:2")
		w.Gone(p)
		w.becomes("m1:1 m2:1")
	})
}

func TestNamespacedOverrideReachesClusterScopedTemplates(t *testing.T) {
	forBothScopes(t, func(w *world) {
		if w.template.GetNamespace() != "" {
			return // the story is of the others
		}
		w.bind("id", "m1")
		w.becomes("m1:1")
		p := &policyv1alpha1.OverridePolicy{}
		p.Namespace, p.Name = "default", "o"
		p.Spec = *w.override(nil, "/data/value", "2").OverrideSpec()
		w.Make(p)
		w.becomes("m1:2")
		// With a namespace, as stored for users who may not override everywhere, the policy selects nothing.
		controllertest.Change(w.Hub, p, func(p *policyv1alpha1.OverridePolicy) {
			p.Spec.ResourceSelectors[0].Namespace = "default"
		})
		w.becomes("m1:1")
		w.Gone(p)
	})
}

func TestAnOverridePolicyFollowsTheLabelsOfClusters(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.bind("id", "m1", "m2")
		prod := &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
		w.Make(w.override(&policyv1alpha1.ClusterAffinity{LabelSelector: prod}, "/data/value", "2"))
		w.becomes("m1:1 m2:1")
		m1 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		controllertest.Change(w.Hub, m1, func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"stage": "prod"} })
		w.becomes("m1:2 m2:1")
		controllertest.Change(w.Hub, m1, func(c *clusterv1alpha1.Cluster) { c.Labels = nil })
		w.becomes("m1:1 m2:1")
	})
}

func TestFailureInOneClusterIsReportedOnceAndBlocksNoOther(t *testing.T) {
	forBothScopes(t, func(w *world) {
		p := w.override(&policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}, "/data/missing/deep", "2")
		w.Make(p)
		w.bind("id", "m1", "m2")
		w.becomes("m2:1")
		w.Advance(time.Second) // several attempts
		w.Eventually("the binding and the template have one event each", func() string {
			failed := w.eventsWith(workv1alpha2.EventSyncWorkFailed)
			overrides := w.eventsWith(workv1alpha2.EventApplyOverridePolicyFailed)
			if len(failed) != 2 || len(overrides) != 2 || !strings.Contains(overrides[0], "missing") {
				return fmt.Sprintf("reported: %v and %v", failed, overrides)
			}
			return ""
		})
		w.Eventually("the binding says so", w.written(metav1.ConditionFalse, `for cluster "m1": `))
		w.Gone(p)
		w.becomes("m1:1 m2:1")
		w.Eventually("and no longer", w.written(metav1.ConditionTrue, ""))
	})
}

func TestOverriderWithoutEffectIsReported(t *testing.T) {
	forBothScopes(t, func(w *world) {
		p := w.override(nil, "", "")
		p.OverrideSpec().OverrideRules[0].Overriders = policyv1alpha1.Overriders{
			ImageOverrider: []policyv1alpha1.ImageOverrider{{Component: policyv1alpha1.Tag,
				Operator: policyv1alpha1.OverriderOpReplace, Value: "v2"}}}
		w.Make(p)
		w.bind("id", "m1")
		w.becomes("m1:1")
		w.Eventually("it is reported", func() string {
			if got := w.eventsWith(workv1alpha2.EventApplyOverridePolicyFailed); len(got) != 2 ||
				!strings.Contains(got[0], "changed nothing") {
				return fmt.Sprintf("reported: %v", got)
			}
			return ""
		})
	})
}

func TestEditedWorksAreRestored(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.bind("id", "m1")
		w.becomes("m1:1")
		before := w.work("m1")
		for name, touch := range map[string]func(*workv1alpha1.Work){
			"its manifest": func(work *workv1alpha1.Work) {
				work.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"value":"3"}}`)
			},
			"its labels":      func(work *workv1alpha1.Work) { work.Labels = nil },
			"its annotations": func(work *workv1alpha1.Work) { work.Annotations = nil },
			"its finalizer":   func(work *workv1alpha1.Work) { work.Finalizers = nil },
		} {
			controllertest.Change(w.Hub, w.work("m1"), touch)
			w.Eventually(name+" the hub corrects it", func() string {
				is := w.work("m1")
				// The permanent id, and with it the manifest, may be another.
				same := is != nil && w.sent() == "m1:1" && fmt.Sprint(is.Finalizers) == fmt.Sprint(before.Finalizers) &&
					fmt.Sprint(is.Annotations) == fmt.Sprint(before.Annotations) &&
					len(is.Labels) == len(before.Labels)
				if !same {
					return fmt.Sprintf("it is %+v", is)
				}
				return ""
			})
		}
		w.Gone(w.work("m1"))
		w.Eventually("it is made anew", func() string {
			if is := w.work("m1"); is == nil || is.UID == before.UID {
				return "not yet"
			}
			return ""
		})
	})
}

func TestSuspensionReachesTheWorks(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.bind("id", "m1", "m2")
		w.becomes("m1:1 m2:1")
		suspended := func(m1, m2 bool) {
			w.t.Helper()
			w.Eventually(fmt.Sprintf("suspended are %t, %t", m1, m2), func() string {
				is := func(cluster string) bool {
					s := w.work(cluster).Spec.SuspendDispatching
					return s != nil && *s
				}
				if is("m1") != m1 || is("m2") != m2 {
					return fmt.Sprintf("they are %t, %t", is("m1"), is("m2"))
				}
				return ""
			})
		}
		w.change(func(b workv1alpha2.Binding) {
			b.BindingSpec().Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: new(true)}}
		})
		suspended(true, true)
		w.change(func(b workv1alpha2.Binding) {
			b.BindingSpec().Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{
				DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m2"}}}}
		})
		suspended(false, true)
		w.change(func(b workv1alpha2.Binding) { b.BindingSpec().Suspension = nil })
		suspended(false, false)
	})
}

func TestRolloutContinuesIfADirectlyLeftClusterIsLost(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.bind("id", "m1", "m2")
		w.becomes("m1:1 m2:1")
		// What m1 has cannot be deleted for now.
		var stuck atomic.Bool
		stuck.Store(true)
		w.Hub.Server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			if !stuck.Load() || r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/"+names.ExecutionSpace("m1")+
				"/works/") {
				return false
			}
			http.Error(rw, "it is stuck", http.StatusInternalServerError)
			return true
		})
		w.change(func(b workv1alpha2.Binding) {
			b.BindingSpec().Clusters = targets([]string{"m2"})
			b.BindingSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
				{FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeDirectly, Reason: "TaintUntolerated",
					Producer: "TaintManager"}}
		})
		w.Eventually("the Work in m1 is being deleted", func() string {
			if work := w.work("m1"); work == nil || work.DeletionTimestamp == nil {
				return "it is not"
			}
			return ""
		})
		controllertest.Change(w.Hub, w.template, func(u *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(u.Object, "2", "data", "value"); err != nil {
				w.t.Fatal(err)
			}
		})
		w.change(func(b workv1alpha2.Binding) {
			b.BindingSpec().Resource.ResourceVersion = w.template.GetResourceVersion()
		})
		w.Quiet()
		w.becomes("m1:1 m2:1") // m1 responds, so it is about to be left

		w.Ready("m1", metav1.ConditionFalse, "ClusterNotReachable")
		w.becomes("m1:1 m2:2")
		stuck.Store(false)
		w.becomes("m2:2")
	})
}

func TestMissingExecutionSpaceIsRetried(t *testing.T) {
	forBothScopes(t, func(w *world) {
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ExecutionSpace("m2")}}
		w.Gone(space)
		w.Quiet()
		w.bind("id", "m1", "m2")
		w.becomes("m1:1")
		w.Quiet()
		if got := w.Events(); len(got) != 0 {
			w.t.Errorf("reported: %v; the space comes by itself", got)
		}
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ExecutionSpace("m2")}})
		w.becomes("m1:1 m2:1")
	})
}

func TestRecreatedTemplateKeepsOldWorks(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.bind("id", "m1")
		w.becomes("m1:1")
		w.Gone(w.template)
		again := w.template.DeepCopy()
		again.SetUID("")
		again.SetResourceVersion("")
		_ = unstructured.SetNestedField(again.Object, "2", "data", "value")
		w.Make(again)
		w.change(func(b workv1alpha2.Binding) { b.BindingSpec().PropagateDeps = true }) // any change
		w.Quiet()
		if got := w.sent(); got != "m1:1" {
			w.t.Errorf("works are %s; the binding is of the template that was", got)
		}
	})
}

func TestNewBindingAdoptsWorksOfADeletedOne(t *testing.T) {
	forBothScopes(t, func(w *world) {
		b := w.bind("id", "m1")
		w.becomes("m1:1")
		before := w.work("m1").UID
		w.change(func(b workv1alpha2.Binding) { b.SetFinalizers(nil) })
		w.Gone(b)
		w.Quiet()
		if w.sent() != "m1:1" {
			w.t.Fatalf("works are %q; what runs must not go with a binding that was torn out", w.sent())
		}

		w.bind("another", "m1")
		w.Eventually("the work is the new binding's", func() string {
			work := w.work("m1")
			if label := work.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] +
				work.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel]; label != "another" || work.UID != before {
				return fmt.Sprintf("it is %s of %s", work.UID, label)
			}
			return ""
		})
	})
}

// Readers find the lines of a cluster by its name.
func TestAnErrorOfSeveralLinesIsOneLineOfItsCluster(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.Hub.Server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			refused := r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/"+names.ExecutionSpace("m1")+"/works")
			if refused {
				apistatus.Write(rw, apierrors.NewForbidden(workv1alpha1.Resource("works"), "w",
					errors.New("denied:\n\nresource is not allowed:\n  no-latest: x")))
			}
			return refused
		})
		w.bind("id", "m1", "m2")
		w.Eventually("the line of m1 has the reason", w.written(metav1.ConditionFalse,
			"denied: resource is not allowed: no-latest: x"))
	})
}

func TestWorkOfServiceExchangeIsNotTouched(t *testing.T) {
	forBothScopes(t, func(w *world) {
		theirs := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace("m1"),
			Name:        names.Work(w.kind.Kind, "c", w.template.GetNamespace()),
			Annotations: map[string]string{wellknown.ServiceOfAnnotation: "ServiceImport/shop/web"}}}
		theirs.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
			`{"data":{"value":"theirs"}}`)}}}
		w.Make(theirs)
		w.bind("id", "m1", "m2")
		w.becomes("m1:theirs m2:1")
		w.Eventually("the binding says whose it is", w.written(metav1.ConditionFalse,
			`belongs to ServiceImport/shop/web, which dispatches an object of that name to the cluster`))
		w.Quiet()
		if got := w.sent(); got != "m1:theirs m2:1" {
			w.t.Errorf("works are %s", got)
		}
		w.Gone(theirs)
		w.becomes("m1:1 m2:1")
	})
}

// A binding may be seen before the claim that brought it.
func TestLateClaimReachesTheWorks(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.bind("id", "m1")
		w.becomes("m1:1")
		policy := scope.Propagations.New(w.template.GetNamespace())
		policy.SetNamespace(w.template.GetNamespace())
		policy.SetName("p")
		policy.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p",
			policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "p"})
		controllertest.Change(w.Hub, w.template.DeepCopy(), func(u *unstructured.Unstructured) {
			propagate.Claim(u, policy)
			_ = unstructured.SetNestedField(u.Object, "2", "data", "value")
		})
		w.becomes("m1:2")
		w.Quiet() // what was written is reconciled again
		controllertest.Change(w.Hub, w.template.DeepCopy(), func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "3", "data", "value")
		})
		w.Quiet()
		if got := w.sent(); got != "m1:2" {
			w.t.Errorf("works are %s; what users write reaches the binding first", got)
		}
	})
}
