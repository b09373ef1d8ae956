package aggregate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// world is a hub with a binding to clusters m1, m2 and m3 and their Works, without statuses yet.
type world struct {
	*controllertest.Hub
	t        *testing.T
	options  Options
	stop     func()
	binding  workv1alpha2.Binding
	template *unstructured.Unstructured
	works    []*workv1alpha1.Work
	members  *member.Members
	// joined is the server of m1.
	joined *membertest.Server
}

var clusters = []string{"m1", "m2", "m3"}

func newWorld(t *testing.T, kind membertest.Kind, namespace string, o Options) *world {
	w := &world{Hub: controllertest.New(t), t: t, options: o}
	for _, cluster := range clusters {
		w.Join(cluster)
	}
	w.template = &unstructured.Unstructured{Object: map[string]any{}}
	if kind == controllertest.Deployment {
		w.template.Object["spec"] = map[string]any{"replicas": int64(6)}
	}
	w.template.SetGroupVersionKind(kind.GroupVersionKind)
	w.template.SetNamespace(namespace)
	w.template.SetName("c")
	w.Make(w.template)

	w.run()
	w.binding = scope.Bindings.New(namespace)
	w.binding.SetName("b")
	w.binding.BindingSpec().Resource = workv1alpha2.ObjectReference{APIVersion: w.template.GetAPIVersion(),
		Kind: kind.Kind, Namespace: namespace, Name: "c", UID: w.template.GetUID()}
	notes := map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: namespace,
		workv1alpha2.ResourceBindingNameAnnotation: "b"}
	if namespace == "" {
		notes = map[string]string{workv1alpha2.ClusterResourceBindingNameAnnotation: "b"}
	}
	for _, cluster := range clusters {
		w.binding.BindingSpec().Clusters = append(w.binding.BindingSpec().Clusters,
			workv1alpha2.TargetCluster{Name: cluster, Replicas: 2})
	}
	w.Make(w.binding)
	for _, cluster := range clusters {
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(cluster), Name: "w",
			Annotations: notes}}
		w.Make(work)
		w.works = append(w.works, work)
	}
	w.Quiet()
	return w
}

func (w *world) run() {
	w.t.Helper()
	w.stop = w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		o := w.options
		o.Templates = template.New(dynamic.NewForConfigOrDie(w.Config), discovery.NewDiscoveryClientForConfigOrDie(w.Config))
		if err := mgr.Add(o.Templates); err != nil {
			return err
		}
		if o.Interpreter == nil {
			o.Interpreter = interpret.New(builtin.Tier())
		}
		w.members = member.New(member.Options{Clusters: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Dial: membertest.Dial})
		o.Members = w.members
		if err := mgr.Add(o.Members); err != nil {
			return err
		}
		o.Concurrency = 2
		if err := scope.IndexWorks(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
		return Setup(mgr, o)
	})
}

// forBothScopes runs a test for a template of each scope.
func forBothScopes(t *testing.T, o Options, test func(*world)) {
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
			controllertest.Run(t, func(t *testing.T) { test(newWorld(t, s.kind, s.namespace, o)) })
		})
	}
}

// answer sets the status of a Work: an error, or health with a status.
func (w *world) answer(at int, failure string, health workv1alpha1.ResourceHealth, status string) {
	w.t.Helper()
	work := w.works[at]
	w.HasObject(work)
	c := metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.ReasonAppliedSuccessful}
	if failure != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, workv1alpha1.ReasonAppliedFailed, failure
	} else {
		work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Identifier: workv1alpha1.ResourceIdentifier{
			Version: "v1", Kind: "K", Name: "c"}, Health: health}}
		if status != "" {
			work.Status.ManifestStatuses[0].Status = &runtime.RawExtension{Raw: []byte(status)}
		}
	}
	meta.SetStatusCondition(&work.Status.Conditions, c)
	if err := w.Status().Update(w.t.Context(), work); err != nil {
		w.t.Fatal(err)
	}
}

// folded waits until FullyApplied has the status and this many clusters are in the aggregated status.
func (w *world) folded(status metav1.ConditionStatus, items int) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("FullyApplied is %s with %d clusters", status, items), func() string {
		w.HasObject(w.binding)
		s := w.binding.BindingStatus()
		if !meta.IsStatusConditionPresentAndEqual(s.Conditions, workv1alpha2.FullyApplied, status) ||
			len(s.AggregatedStatus) != items {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
}

// statusWrites returns the status writes of binding and template since the last call.
func (w *world) statusWrites() []string {
	w.t.Helper()
	return slices.DeleteFunc(w.Quiet(), func(s string) bool {
		return !strings.Contains(s, "/status") || strings.Contains(s, "works/") || strings.Contains(s, "clusters/")
	})
}

func TestSimultaneousStatusesAreOneWrite(t *testing.T) {
	forBothScopes(t, Options{Gather: 20 * time.Millisecond, StatusWindow: 5 * time.Second}, func(w *world) {
		if got := w.statusWrites(); len(got) != 0 {
			w.t.Errorf("before any member answered, %v was written", got)
		}
		for i := range clusters {
			w.answer(i, "", workv1alpha1.ResourceHealthy, "")
			w.Advance(30 * time.Millisecond)
		}
		w.folded(metav1.ConditionTrue, 3)
		if got := w.statusWrites(); len(got) != 1 {
			w.t.Errorf("written: %v, want one status", got)
		}
		w.stop()
		w.run()
		if got := w.statusWrites(); len(got) != 0 {
			w.t.Errorf("a restart wrote %v", got)
		}
	})
}

// All members report success, and report nothing new when the writing of a Work begins to fail or succeed.
func TestUnwritableWorksMeanNotFullyApplied(t *testing.T) {
	forBothScopes(t, Options{Gather: 20 * time.Millisecond, StatusWindow: time.Hour}, func(w *world) {
		for i := range clusters {
			w.answer(i, "", workv1alpha1.ResourceHealthy, "")
		}
		w.folded(metav1.ConditionTrue, 3)
		setCondition := func(c metav1.Condition) {
			w.HasObject(w.binding)
			meta.SetStatusCondition(&w.binding.BindingStatus().Conditions, c)
			if err := w.Status().Update(w.t.Context(), w.binding); err != nil {
				w.t.Fatal(err)
			}
		}
		setCondition(metav1.Condition{Type: "ReviseReplica", Status: metav1.ConditionFalse, Reason: "InterpreterFailed",
			Message: `cluster "m2": line 3`})
		w.folded(metav1.ConditionFalse, 3)
		if c := meta.FindStatusCondition(w.binding.BindingStatus().Conditions,
			workv1alpha2.FullyApplied); !strings.Contains(c.Message, `ReviseReplica: cluster "m2": line 3`) {
			w.t.Errorf("cluster and reason are missing: %q", c.Message)
		}
		setCondition(metav1.Condition{Type: "ReviseReplica", Status: metav1.ConditionTrue, Reason: "R"})
		w.folded(metav1.ConditionTrue, 3)
	})
}

func TestFailureIsWrittenAtOnce(t *testing.T) {
	forBothScopes(t, Options{Gather: 10 * time.Millisecond, StatusWindow: time.Minute}, func(w *world) {
		w.answer(1, "Failed to apply all manifests (0/1): no", "", "")
		w.folded(metav1.ConditionFalse, 3)
		item := w.binding.BindingStatus().AggregatedStatus[1]
		if item.ClusterName != "m2" || item.Applied || item.AppliedMessage != "Failed to apply all manifests (0/1): no" ||
			item.Health != workv1alpha1.ResourceUnknown {
			w.t.Errorf("the item is %+v", item)
		}
	})
}

func TestProgressWaitsForTheWindow(t *testing.T) {
	forBothScopes(t, Options{Gather: 10 * time.Millisecond, StatusWindow: 400 * time.Millisecond}, func(w *world) {
		w.folded(metav1.ConditionFalse, 3) // no member reported in the first window
		w.statusWrites()
		w.answer(0, "", workv1alpha1.ResourceHealthy, "")
		w.Advance(100 * time.Millisecond)
		w.answer(1, "", workv1alpha1.ResourceHealthy, "")
		w.Advance(100 * time.Millisecond)
		if w.HasObject(w.binding); w.binding.BindingStatus().AggregatedStatus[0].Applied {
			w.t.Error("the first answer was written before the window was over")
		}
		w.Eventually("two answers are written", func() string {
			w.HasObject(w.binding)
			if s := w.binding.BindingStatus().AggregatedStatus; !s[0].Applied || !s[1].Applied {
				return fmt.Sprintf("%+v", s)
			}
			return ""
		})
		if got := w.statusWrites(); len(got) != 1 {
			w.t.Errorf("written: %v, want one status", got)
		}
	})
}

// A failover adds a member that has not reported. Whether its Work was seen before or after its report must not cost
// another write.
func TestNewMembersHaveTheFirstWindow(t *testing.T) {
	item := func(cluster string, health workv1alpha1.ResourceHealth) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: health == workv1alpha1.ResourceHealthy,
			Health: health}
	}
	m1, m1Lost := item("m1", workv1alpha1.ResourceHealthy), item("m1", workv1alpha1.ResourceUnknown)
	m2, m2New := item("m2", workv1alpha1.ResourceHealthy), item("m2", workv1alpha1.ResourceUnknown)
	for _, c := range []struct {
		name      string
		was, want []workv1alpha2.AggregatedStatusItem
		applied   metav1.ConditionStatus
		first     bool
	}{
		{"no member has reported", nil, []workv1alpha2.AggregatedStatusItem{m2New}, metav1.ConditionFalse, true},
		{"one of two has reported", nil, []workv1alpha2.AggregatedStatusItem{m1, m2New}, metav1.ConditionFalse, true},
		{"a member is new", []workv1alpha2.AggregatedStatusItem{m1}, []workv1alpha2.AggregatedStatusItem{m1, m2New},
			metav1.ConditionFalse, true},
		{"a lost member is replaced", []workv1alpha2.AggregatedStatusItem{m1Lost},
			[]workv1alpha2.AggregatedStatusItem{m1Lost, m2New}, metav1.ConditionFalse, true},
		{"another member changes", []workv1alpha2.AggregatedStatusItem{m1},
			[]workv1alpha2.AggregatedStatusItem{m1Lost, m2New}, metav1.ConditionFalse, false},
		{"a member is removed", []workv1alpha2.AggregatedStatusItem{m1, m2},
			[]workv1alpha2.AggregatedStatusItem{m1}, metav1.ConditionFalse, false},
		{"all have reported", []workv1alpha2.AggregatedStatusItem{m1Lost},
			[]workv1alpha2.AggregatedStatusItem{m1Lost, m2}, metav1.ConditionTrue, false},
	} {
		status := func(items []workv1alpha2.AggregatedStatusItem) *workv1alpha2.ResourceBindingStatus {
			return &workv1alpha2.ResourceBindingStatus{AggregatedStatus: items,
				Conditions: []metav1.Condition{{Type: workv1alpha2.FullyApplied, Status: c.applied}}}
		}
		r := &reconciler{Options: Options{Clock: clock.RealClock{}, StatusWindow: time.Second, FirstWindow: time.Minute}}
		r.progress.Rate = progressRate
		wait := r.wait(types.NamespacedName{Name: "web"}, status(c.was), status(c.want))
		if first := wait > time.Second; first != c.first || wait == 0 {
			t.Errorf("%s: the write waits for %v, want the first window: %v", c.name, wait, c.first)
		}
	}
}

func TestDeletedWorkIsNotCounted(t *testing.T) {
	forBothScopes(t, Options{Gather: 10 * time.Millisecond}, func(w *world) {
		for i := range clusters {
			w.answer(i, "", workv1alpha1.ResourceHealthy, "")
		}
		w.folded(metav1.ConditionTrue, 3)
		w.Gone(w.works[2])
		w.folded(metav1.ConditionFalse, 2)
		controllertest.Change(w.Hub, w.binding, func(b workv1alpha2.Binding) {
			b.BindingSpec().Clusters = b.BindingSpec().Clusters[:2]
		})
		w.folded(metav1.ConditionTrue, 2)
	})
}

func TestTemplateIsAsReadyAsItsMembers(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment, "shop", Options{Gather: 10 * time.Millisecond})
		ready := func(ready int) string {
			return fmt.Sprintf(`{"replicas":2,"updatedReplicas":2,"readyReplicas":%d,"availableReplicas":%[1]d,"observedGeneration":1,"generation":1,"resourceTemplateGeneration":1}`, ready)
		}
		template := func(readyReplicas, observedGeneration int64) {
			t.Helper()
			w.Eventually(fmt.Sprintf("%d are ready at generation %d", readyReplicas, observedGeneration), func() string {
				w.HasObject(w.template)
				r, _, _ := unstructured.NestedInt64(w.template.Object, "status", "readyReplicas")
				g, _, _ := unstructured.NestedInt64(w.template.Object, "status", "observedGeneration")
				if r != readyReplicas || g != observedGeneration {
					return fmt.Sprint(w.template.Object["status"])
				}
				return ""
			})
		}
		w.Gone(w.works[2])
		w.answer(0, "", workv1alpha1.ResourceHealthy, ready(2))
		w.answer(1, "", workv1alpha1.ResourceHealthy, ready(2))
		template(4, 0) // m3 has no Work yet: this generation must not be ready
		w.works[2].ObjectMeta = metav1.ObjectMeta{Namespace: w.works[2].Namespace, Name: "w",
			Annotations: w.works[2].Annotations}
		w.Make(w.works[2])
		w.answer(2, "", workv1alpha1.ResourceUnknown, ready(1))
		template(5, 1)
		w.answer(2, "", workv1alpha1.ResourceHealthy, ready(2))
		template(6, 1)
		w.statusWrites()

		// A template of another UID is another template.
		w.Gone(w.template)
		again := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(6)}}}
		again.SetGroupVersionKind(w.template.GroupVersionKind())
		again.SetNamespace("shop")
		again.SetName("c")
		w.Make(again)
		w.answer(0, "", workv1alpha1.ResourceUnknown, ready(1))
		w.Quiet()
		if w.HasObject(again); again.Object["status"] != nil {
			t.Errorf("a template made anew was given %v", again.Object["status"])
		}
	})
}

func TestFailedAggregationIsReportedOnceAndRetried(t *testing.T) {
	broken := interpret.Kinds{membertest.ConfigMap.GroupKind(): &interpret.Hooks{
		Aggregate: func(context.Context, *unstructured.Unstructured,
			[]workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			return nil, errors.New("no such field")
		},
	}}
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, membertest.ConfigMap, "shop",
			Options{Gather: 10 * time.Millisecond, Interpreter: interpret.New(broken)})
		w.answer(0, "", workv1alpha1.ResourceHealthy, "")
		w.Advance(time.Second) // several attempts
		w.Eventually("an event is recorded", func() string {
			if got := w.Events(); len(got) != 2 || !strings.Contains(got[0], workv1alpha2.EventAggregateStatusFailed) ||
				!strings.Contains(got[0], "no such field") {
				return fmt.Sprintf("events %v, want one on the binding and one on the template", got)
			}
			w.HasObject(w.binding)
			c := meta.FindStatusCondition(w.binding.BindingStatus().Conditions, "AggregateStatus")
			if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "no such field") {
				return fmt.Sprintf("the condition is %+v", c)
			}
			return ""
		})
	})
}

// A status that the kind's definition refuses is not written again and again: the next report may have another.
func TestInvalidStatusIsReportedOnceAndNotRetried(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment, "shop", Options{Gather: 10 * time.Millisecond})
		refused := 0
		w.Server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/deployments/c/status") {
				return false
			}
			refused++
			apistatus.Refuse(rw, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "status.phase: Required value")
			return true
		})
		w.answer(0, "", workv1alpha1.ResourceHealthy, `{"replicas": 1, "readyReplicas": 1}`)
		w.Quiet()
		w.Advance(10 * time.Minute)
		w.Quiet()
		if events := w.Events(); refused != 1 || len(events) != 2 ||
			!strings.Contains(events[0], workv1alpha2.EventAggregateStatusFailed) {
			t.Errorf("it was written %d times, with the events %q", refused, events)
		}
	})
}

// The last report of a cluster that is not ready is marked stale until the cluster recovers.
func TestReportBeforeAnOutageIsStale(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		lastReported bool
		ready        int64
		health       workv1alpha1.ResourceHealth
	}{
		"its pods are there and not ready": {ready: 4, health: workv1alpha1.ResourceUnknown},
		"all counts as last reported, as a user may ask for": {lastReported: true, ready: 6,
			health: workv1alpha1.ResourceHealthy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, controllertest.Deployment, "shop",
					Options{Gather: 10 * time.Millisecond, LastReported: want.lastReported})
				for i := range clusters {
					w.answer(i, "", workv1alpha1.ResourceHealthy,
						`{"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2,"observedGeneration":1,"generation":1,"resourceTemplateGeneration":1}`)
				}
				expect := func(ready int64, health workv1alpha1.ResourceHealth) {
					t.Helper()
					w.Eventually(fmt.Sprintf("6 replicas, %d ready, m2 is %s", ready, health), func() string {
						w.HasObject(w.template)
						w.HasObject(w.binding)
						all, _, _ := unstructured.NestedInt64(w.template.Object, "status", "replicas")
						is, _, _ := unstructured.NestedInt64(w.template.Object, "status", "readyReplicas")
						items := w.binding.BindingStatus().AggregatedStatus
						if all != 6 || is != ready || len(items) != 3 || items[1].Health != health ||
							items[0].Health != workv1alpha1.ResourceHealthy {
							return fmt.Sprintf("%v, %+v", w.template.Object["status"], items)
						}
						return ""
					})
				}
				expect(6, workv1alpha1.ResourceHealthy)
				w.statusWrites()
				setReady := func(status metav1.ConditionStatus, reason, message string) {
					w.ClusterStatus("m2", func(s *clusterv1alpha1.ClusterStatus) {
						meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
							Status: status, Reason: reason, Message: message})
					})
				}

				setReady(metav1.ConditionFalse, "ClusterNotReachable", "connection refused")
				expect(want.ready, want.health)
				if got, most := len(w.statusWrites()), 2; got > most || want.lastReported && got > 0 {
					t.Errorf("an outage costs %d writes", got)
				}
				setReady(metav1.ConditionFalse, "ClusterNotReachable", "connection timed out")
				if got := w.statusWrites(); len(got) != 0 {
					t.Errorf("other words of the same outage cost %v", got)
				}
				w.stop()
				w.run()
				if got := w.statusWrites(); len(got) != 0 {
					t.Errorf("a restart during an outage wrote %v", got)
				}
				expect(want.ready, want.health)

				setReady(metav1.ConditionTrue, "ClusterReady", "")
				expect(6, workv1alpha1.ResourceHealthy)
				if got, most := len(w.statusWrites()), 2; got > most || want.lastReported && got > 0 {
					t.Errorf("the end of an outage costs %d writes", got)
				}
			})
		})
	}
}
