package schedule

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// dividedByRoom has two replicas that clusters share by the room they have.
func dividedByRoom(b workv1alpha2.Binding) {
	b.BindingSpec().Replicas, b.BindingSpec().ReplicaRequirements = 2, &workv1alpha2.ReplicaRequirements{}
	b.BindingSpec().Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{
			DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas}}
}

// condition waits until the binding is not scheduled and the condition has this message.
func (w *world) condition(want string) {
	w.t.Helper()
	w.Eventually("it says "+want, func() string {
		w.HasObject(w.binding)
		if c := meta.FindStatusCondition(w.binding.BindingStatus().Conditions, workv1alpha2.Scheduled); c == nil ||
			c.Status != metav1.ConditionFalse || !strings.HasPrefix(c.Message, want) {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
}

func TestPendingBindingIsScheduledAfterAnEstimateRises(t *testing.T) {
	forBothScopes(t, []string{"m1"}, func(w *world) {
		w.stop()
		w.askAgain = 10 * time.Millisecond
		w.run()
		var room, asked atomic.Int32
		w.fleet.Estimate(func(workv1alpha2.Binding, schedule.Snapshot) schedule.Capacity {
			asked.Add(1)
			return schedule.Answers(map[string]int32{"m1": room.Load()})
		})
		dividedByRoom(w.binding)
		w.Make(w.binding)
		w.condition("Clusters available replicas 0 are not enough")
		room.Store(2)
		w.scheduled("m1")
		before := asked.Load()
		if w.Quiet(); asked.Load() != before {
			w.t.Error("estimators are asked about a binding that has what it wants")
		}
	})
}

// The condition of a binding that lacks capacity names the quota of a member that limits it.
func TestConditionNamesTheQuotaThatLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ hard, want string }{
		"a quota": {"1", "; m1: ResourceQuota team of namespace shop limits cpu."},
		"none":    {"", "or request fewer replicas."},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := &world{Hub: controllertest.New(t), t: t, measured: "m1",
					clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))}
				m1 := w.Join("m1", controllertest.Deployment)
				list := func(cpu string) corev1.ResourceList {
					return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
						corev1.ResourcePods: resource.MustParse("9")}
				}
				m1.Put(&corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
					ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: list("3"),
						Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
				if c.hard != "" {
					m1.Put(&corev1.ResourceQuota{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
						ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"},
						Spec:       corev1.ResourceQuotaSpec{Hard: list(c.hard)}})
				}
				w.binding = scope.Bindings.New("shop")
				w.binding.SetName("b")
				w.binding.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "some-id"})
				w.binding.BindingSpec().Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
					Namespace: "shop", Name: "b"}
				w.binding.BindingSpec().Placement = &policyv1alpha1.Placement{}
				dividedByRoom(w.binding)
				w.binding.BindingSpec().Replicas = 9
				w.binding.BindingSpec().ReplicaRequirements.ResourceRequest = corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("1")}
				w.run()
				w.Make(w.binding)
				w.Eventually("it says "+c.want, func() string {
					w.HasObject(w.binding)
					of := meta.FindStatusCondition(w.binding.BindingStatus().Conditions, workv1alpha2.Scheduled)
					if of == nil || of.Reason != workv1alpha2.ReasonUnschedulable || !strings.HasSuffix(of.Message, c.want) {
						return fmt.Sprintf("%+v", of)
					}
					return ""
				})
			})
		})
	}
}

// lossy fails the first requests.
type lossy struct {
	http.RoundTripper
	failures atomic.Int32
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.failures.Add(-1) >= 0 {
		return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: http.NoBody,
			Request: r}, nil
	}
	return l.RoundTripper.RoundTrip(r)
}

func TestAnEndedRunIsFoundAfterItsTemplateCouldNotBeRead(t *testing.T) {
	forBothScopes(t, nil, func(w *world) {
		if w.binding.GetNamespace() == "" {
			return // runs are namespaced
		}
		w.Server.Serve(controllertest.Job)
		w.Server.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job",
			"metadata": map[string]any{"namespace": "shop", "name": "b"},
			"status": map[string]any{"succeeded": int64(1), "conditions": []any{
				map[string]any{"type": "Complete", "status": "True"}}}}})
		config := rest.CopyConfig(w.Config)
		failing := &lossy{}
		failing.failures.Store(4)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			failing.RoundTripper = next
			return failing
		})
		w.stop()
		w.templates = template.New(dynamic.NewForConfigOrDie(config),
			discovery.NewDiscoveryClientForConfigOrDie(w.Config))
		w.run()
		w.binding.BindingSpec().Resource.APIVersion, w.binding.BindingSpec().Resource.Kind = "batch/v1", "Job"
		w.Make(w.binding)
		w.Eventually("its run has ended", func() string {
			w.HasObject(w.binding)
			if c := meta.FindStatusCondition(w.binding.BindingStatus().Conditions, workv1alpha2.Scheduled); c == nil ||
				c.Reason != workv1alpha2.ReasonRunFinished {
				return fmt.Sprintf("%+v", c)
			}
			return ""
		})
	})
}

func TestBindingsWaitingForCapacityRetryAtABoundedRate(t *testing.T) {
	waits := func(name string) workv1alpha2.Binding {
		b := &workv1alpha2.ResourceBinding{}
		b.Namespace, b.Name = "shop", name
		b.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "some-id"}
		b.Spec.Placement = &policyv1alpha1.Placement{}
		dividedByRoom(b)
		return b
	}
	r := &reconciler{Options: Options{Fleet: &capacity.Fleet{}, AskAgain: askAgain},
		index: newIndex(policyv1alpha1.DefaultSchedulerName, schedule.Plugins{})}
	b, full := waits("b"), &schedule.UnschedulableError{}
	if got := r.retryAfter(b, full); got != 0 {
		t.Errorf("without estimators it is looked at again after %s", got)
	}
	r.Fleet.Estimate(func(workv1alpha2.Binding, schedule.Snapshot) schedule.Capacity { return nil })
	everywhere := waits("everywhere")
	everywhere.BindingSpec().Replicas, everywhere.BindingSpec().ReplicaRequirements = 0, nil
	for _, test := range []struct {
		what    string
		b       workv1alpha2.Binding
		failure error
		want    time.Duration
	}{
		{"one that is placed", b, nil, 0},
		{"one that fits nowhere", b, &schedule.FitError{}, 0},
		{"one that takes no room", everywhere, errors.New("failed"), 0},
		{"one that waits for room", b, full, 30 * time.Second},
		{"one that finds no room to spread", b, &schedule.SpreadError{}, 30 * time.Second},
	} {
		if got := r.retryAfter(test.b, test.failure); got != test.want {
			t.Errorf("%s is looked at again after %s, want %s", test.what, got, test.want)
		}
	}
	for i := range 3000 {
		r.index.put(waits(fmt.Sprint("b", i)))
	}
	r.index.put(everywhere)
	if got := r.retryAfter(b, full); got != 150*time.Second {
		t.Errorf("with 3,000 that wait, one is looked at again after %s, want 20 a second", got)
	}
}

func TestUnschedulableConditionFollowsTheFleet(t *testing.T) {
	forBothScopes(t, []string{"m1"}, func(w *world) {
		w.stop()
		w.refreshAfter = time.Millisecond
		w.run()
		w.binding.BindingSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m9"}}
		w.Make(w.binding)
		w.condition("0/1 clusters are available")
		w.Quiet()
		w.Join("m2", controllertest.ClusterRole)
		w.condition("0/2 clusters are available")
		if got := w.written(); len(got) != 1 {
			w.t.Errorf("another cluster that does not fit wrote %q, want one status", got)
		}
		m2 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}}
		controllertest.Change(w.Hub, m2, func(c *clusterv1alpha1.Cluster) {
			c.Labels = map[string]string{
				"unrelated": "label"}
		})
		if got := w.written(); len(got) != 0 {
			w.t.Errorf("a label that is not in the condition wrote %q", got)
		}
		w.Gone(m2)
		w.condition("0/1 clusters are available")
	})
}
