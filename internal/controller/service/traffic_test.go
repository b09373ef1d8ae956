package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// trafficWorld has a MultiClusterService and a MultiClusterIngress of Service web, which m1 and m2 provide to m3.
type trafficWorld struct {
	*controllertest.Hub
	t       *testing.T
	members map[string]*membertest.Server
	service *networkingv1alpha1.MultiClusterService
	ingress *networkingv1alpha1.MultiClusterIngress
	stop    func()
}

func newTrafficWorld(t *testing.T) *trafficWorld {
	w := &trafficWorld{Hub: controllertest.New(t), t: t, members: map[string]*membertest.Server{}}
	for _, name := range []string{"m1", "m2"} {
		w.members[name] = w.Join(name, controllertest.EndpointSlice)
		provide(w.members[name], "web-a")
	}
	w.Join("m3", controllertest.EndpointSlice)
	w.Make(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	for _, cluster := range []string{"m1", "m2", "m3"} { // which its binding sends
		w.Make(serviceWork(cluster))
	}
	w.service = &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: networkingv1alpha1.MultiClusterServiceSpec{
			Types:            []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
			ProviderClusters: []networkingv1alpha1.ClusterSelector{{Name: "m1"}, {Name: "m2"}},
			ConsumerClusters: []networkingv1alpha1.ClusterSelector{{Name: "m3"}}}}
	w.Make(w.service)
	w.ingress = &networkingv1alpha1.MultiClusterIngress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}}
	w.ingress.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web",
		Port: networkingv1.ServiceBackendPort{Number: 80}}}
	w.Make(w.ingress)
	w.Make(upkeep())
	w.stop = run(w.Hub)
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-service"}}
	w.Eventually("the Service has a binding", func() string {
		if !w.HasObject(binding) {
			return "it has none"
		}
		return ""
	})
	controllertest.Change(w.Hub, binding, func(b *workv1alpha2.ResourceBinding) {
		for _, c := range []string{"m1", "m2", "m3"} {
			b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
		}
	})
	return w
}

// serviceWork returns the Work that brings Service web to a cluster.
func serviceWork(cluster string) *workv1alpha1.Work {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(cluster),
		Name: names.Work("Service", "web", "shop"),
		Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop",
			workv1alpha2.ResourceBindingNameAnnotation: "web-service"}}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web"}}`)}}}
	return work
}

// upkeep returns a Remedy that takes these clusters out of traffic.
func upkeep(clusters ...string) *remedyv1alpha1.Remedy {
	return &remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: "upkeep"}, Spec: remedyv1alpha1.RemedySpec{
		ClusterAffinity: &remedyv1alpha1.ClusterAffinity{ClusterNames: clusters},
		Actions:         []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl}}}
}

// controls sets the clusters of the Remedy.
func (w *trafficWorld) controls(clusters ...string) {
	w.t.Helper()
	controllertest.Change(w.Hub, upkeep(), func(r *remedyv1alpha1.Remedy) {
		r.Spec.ClusterAffinity.ClusterNames = clusters
	})
}

// moves returns what was written of endpoints and clusters out of traffic since the last call of Quiet.
func (w *trafficWorld) moves() []string {
	w.t.Helper()
	return slices.DeleteFunc(w.Quiet(), func(s string) bool {
		return !strings.Contains(s, " works ") && !strings.Contains(s, " multiclusteringresses")
	})
}

// wantTraffic waits until m3 gets the endpoints of these clusters, the Ingress excludes the others of m1 and m2, and
// both have the condition TrafficKept, or not.
func (w *trafficWorld) wantTraffic(why string, kept bool, from ...string) {
	w.t.Helper()
	want := []string{"Service web"}
	var blocked []string
	for _, name := range []string{"m2", "m1"} {
		if slices.Contains(from, name) {
			want = append([]string{"EndpointSlice " + name + "-web-a"}, want...)
		} else {
			blocked = append(blocked, name)
		}
	}
	w.Eventually(why, func() string {
		got := sent(w.t, w.Hub, "m3", true)
		for _, cluster := range []string{"m1", "m2"} {
			sent(w.t, w.Hub, cluster, true)
		}
		// Fields that are gone would stay in an object that is read again.
		w.service = &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		w.ingress = &networkingv1alpha1.MultiClusterIngress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}}
		w.HasObject(w.service)
		w.HasObject(w.ingress)
		of := func(all []metav1.Condition) string {
			if c := meta.FindStatusCondition(all, networkingv1alpha1.TrafficKept); c != nil {
				return c.Message
			}
			return ""
		}
		message := of(w.service.Status.Conditions)
		if !slices.Equal(got, want) || !slices.Equal(w.ingress.Status.TrafficBlockClusters, blocked) ||
			(message != "") != kept || of(w.ingress.Status.Conditions) != message {
			return fmt.Sprintf("m3 has %q, the Ingress excludes %q; kept: %q, %q", got, w.ingress.Status.TrafficBlockClusters,
				message, of(w.ingress.Status.Conditions))
		}
		return ""
	})
}

// warnings returns the objects of the events of traffic that stays, sorted.
func (w *trafficWorld) warnings() (all []string) {
	for _, e := range w.Events() {
		if kind, _, is := strings.Cut(e, " TrafficKept: traffic to "); is {
			all = append(all, kind)
		}
	}
	slices.Sort(all)
	return all
}

func TestTrafficFollowsRemedies(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrafficWorld(t)
		w.wantTraffic("no action", false, "m1", "m2")
		w.controls("m1")
		w.wantTraffic("m1 has the action", false, "m2")
		w.Quiet()
		w.stop()
		w.stop = run(w.Hub)
		if got := w.Quiet(); len(got) > 0 {
			t.Errorf("a start wrote %v", got)
		}
		w.controls()
		w.wantTraffic("m1 lost the action", false, "m1", "m2")
		if got := w.warnings(); len(got) > 0 {
			t.Errorf("warnings: %q", got)
		}
	})
}

func TestRemediesThatWouldCutAllTrafficAreReported(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrafficWorld(t)
		w.wantTraffic("no action", false, "m1", "m2")
		w.controls("m1", "m2")
		w.wantTraffic("both have the action", true, "m1", "m2")
		const want = "traffic to m1, m2 continues against Remedy upkeep: no other cluster is ready and has ready endpoints; " +
			"provide endpoints in another cluster, or change the Remedy"
		c := meta.FindStatusCondition(w.ingress.Status.Conditions, networkingv1alpha1.TrafficKept)
		if c.Message != want || c.Status != metav1.ConditionTrue {
			t.Errorf("the condition is %+v", c)
		}
		both := []string{"MultiClusterIngress", "MultiClusterService"}
		w.Eventually("each is warned of", func() string {
			if got := w.warnings(); !slices.Equal(got, both) {
				return fmt.Sprint(got)
			}
			return ""
		})
		w.Quiet()
		w.stop()
		w.stop = run(w.Hub)
		w.Quiet()
		if got := w.warnings(); !slices.Equal(got, both) {
			t.Errorf("a start warned again: %q", got)
		}
		w.controls("m1")
		w.wantTraffic("m2 lost the action", false, "m2")

		// A cluster that is not ready is no replacement, and neither is one without endpoints.
		w.Ready("m2", metav1.ConditionFalse, "ClusterNotReachable")
		w.wantTraffic("m2 is not ready", true, "m1", "m2")
		w.Ready("m2", metav1.ConditionTrue, "ClusterReady")
		w.wantTraffic("m2 is ready again", false, "m2")
		slice := &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1",
			Kind: "EndpointSlice"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-a",
			Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"},
				Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}}}
		w.members["m2"].Put(slice)
		w.wantTraffic("the endpoints of m2 are not ready", true, "m1", "m2")
		provide(w.members["m2"], "web-a")
		w.wantTraffic("the endpoints of m2 are ready again", false, "m2")
	})
}

// A cluster that is ready, and that the hub cannot read, may have endpoints.
func TestUnreadableClusterReturnsNoOtherToTraffic(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrafficWorld(t)
		w.controls("m1")
		w.wantTraffic("m1 has the action", false, "m2")
		w.Quiet()
		w.stop()
		secret := w.members["m2"].Secret("m2")
		controllertest.Change(w.Hub, secret, func(s *corev1.Secret) { s.Data = nil })
		w.Quiet()
		w.stop = run(w.Hub)
		if got := w.moves(); len(got) > 0 {
			t.Errorf("a start without m2 wrote %v", got)
		}
		w.wantTraffic("m2 cannot be read", false, "m2")
	})
}

func TestUnreadableHubKeepsTrafficAsItIs(t *testing.T) {
	broken := errors.New("the hub is overloaded")
	for name, fails := range map[string]func(client.ObjectList) bool{
		"clusters": func(l client.ObjectList) bool { _, is := l.(*clusterv1alpha1.ClusterList); return is },
		"bindings": func(l client.ObjectList) bool { _, is := l.(*workv1alpha2.ResourceBindingList); return is },
		"Remedies": func(l client.ObjectList) bool { _, is := l.(*remedyv1alpha1.RemedyList); return is },
	} {
		i := &networkingv1alpha1.MultiClusterIngress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}}
		i.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web"}}
		i.Status.TrafficBlockClusters = []string{"m1"}
		i.Status.Conditions = []metav1.Condition{{Type: networkingv1alpha1.TrafficKept, Status: metav1.ConditionTrue}}
		m1 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		c := fake.NewClientBuilder().WithScheme(controllertest.Scheme()).WithObjects(i, m1, upkeep("m1")).
			WithStatusSubresource(i).
			WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
					opts ...client.GetOption) error {
					if _, is := obj.(*workv1alpha2.ResourceBinding); is && name == "bindings" {
						return broken
					}
					return c.Get(ctx, key, obj, opts...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if fails(list) {
						return broken
					}
					return c.List(ctx, list, opts...)
				}}).Build()
		r := &ingresses{&exchanges{Options: Options{Clock: clock.RealClock{}}, client: c, follows: &follows{}}}
		if _, err := r.reconcile(t.Context(), client.ObjectKeyFromObject(i)); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(i), i); err != nil {
			t.Fatal(err)
		}
		if len(i.Status.TrafficBlockClusters) != 1 || len(i.Status.Conditions) != 1 {
			t.Errorf("%s cannot be read, and the status is %+v", name, i.Status)
		}
	}

	c := fake.NewClientBuilder().WithScheme(controllertest.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if _, is := list.(*remedyv1alpha1.RemedyList); is {
				return broken
			}
			return nil
		}}).WithObjects(&networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: networkingv1alpha1.MultiClusterServiceSpec{
			Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}}}).Build()
	r := &crossCluster{&exchanges{Options: Options{Clock: clock.RealClock{}}, client: c, follows: &follows{}}}
	if _, err := r.reconcile(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}); !errors.Is(err, broken) {
		t.Errorf("a MultiClusterService without the Remedies: %v", err)
	}
}

// The status of Clusters is written one by one. If it decided, the first clusters of a Remedy would be replaced by the
// next ones.
func TestRemedyForAllClustersMovesNoTraffic(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrafficWorld(t)
		w.wantTraffic("no action", false, "m1", "m2")
		w.Quiet()
		w.ClusterStatus("m1", func(s *clusterStatus) { s.RemedyActions = []string{string(remedyv1alpha1.TrafficControl)} })
		if got := w.moves(); len(got) > 0 {
			t.Errorf("a report in the status of m1 wrote %v", got)
		}
		w.controls("m1", "m2")
		if got := w.moves(); !slices.Equal(got, []string{"update multiclusteringresses/status shop/front"}) {
			t.Errorf("a Remedy for both wrote %v, want the condition", got)
		}
		w.wantTraffic("both have the action", true, "m1", "m2")
	})
}

func TestTrafficFollowsConditionsAndDeletedRemedies(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrafficWorld(t)
		dns := func(status metav1.ConditionStatus) {
			w.ClusterStatus("m1", func(s *clusterStatus) {
				meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: "DNS", Status: status, Reason: "Probe"})
			})
		}
		sick := &remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: "sick"}, Spec: remedyv1alpha1.RemedySpec{
			DecisionMatches: []remedyv1alpha1.DecisionMatch{{ClusterConditionMatch: &remedyv1alpha1.ClusterConditionRequirement{
				ConditionType: "DNS", Operator: remedyv1alpha1.ClusterConditionNotEqual, ConditionStatus: "True"}}},
			Actions: []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl}}}
		dns(metav1.ConditionTrue)
		w.Make(sick)
		w.wantTraffic("the condition is good", false, "m1", "m2")
		dns(metav1.ConditionFalse)
		w.wantTraffic("the condition is bad", false, "m2")
		dns(metav1.ConditionTrue)
		w.wantTraffic("the condition is good again", false, "m1", "m2")
		dns(metav1.ConditionUnknown)
		w.wantTraffic("the condition is unknown", false, "m2")
		w.Gone(sick)
		w.wantTraffic("the Remedy is deleted", false, "m1", "m2")
	})
}

// A Remedy about the condition Ready is subject to the limits of failover.
func TestRemedyWithdrawsLostClustersOnlyWithinLimits(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrafficWorld(t)
		w.wantTraffic("no action", false, "m1", "m2")
		w.Make(&remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: "not-ready"}, Spec: remedyv1alpha1.RemedySpec{
			DecisionMatches: []remedyv1alpha1.DecisionMatch{{ClusterConditionMatch: &remedyv1alpha1.ClusterConditionRequirement{
				ConditionType: "Ready", Operator: remedyv1alpha1.ClusterConditionNotEqual, ConditionStatus: "True"}}},
			Actions: []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl}}})
		w.Quiet()
		fail := func(cluster string) {
			w.Ready(cluster, metav1.ConditionFalse, "ClusterNotReachable")
			taints(w.Hub, cluster)
		}
		fail("m1")
		if got := w.moves(); len(got) > 0 {
			t.Errorf("at once, the loss wrote %v", got)
		}
		w.Advance(30 * time.Second)
		w.wantTraffic("m1 is lost", false, "m2")
		w.Ready("m1", metav1.ConditionTrue, "ClusterReady")
		taints(w.Hub, "m1")
		w.wantTraffic("m1 is back", false, "m1", "m2")

		w.Advance(time.Hour)
		w.Quiet()
		fail("m1")
		fail("m3")
		w.Advance(time.Minute)
		if got := w.moves(); len(got) > 0 {
			t.Errorf("while failover is paused, the loss wrote %v", got)
		}
		w.wantTraffic("failover is paused", false, "m1", "m2")
		w.stop()
		w.stop = run(w.Hub)
		if got := w.moves(); len(got) > 0 {
			t.Errorf("a start wrote %v", got)
		}
	})
}

func TestOverwrittenTrafficOfAnIngressIsRestored(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrafficWorld(t)
		overwrite := func() {
			w.HasObject(w.ingress)
			w.ingress.Status = networkingv1alpha1.MultiClusterIngressStatus{}
			if err := w.Status().Update(t.Context(), w.ingress); err != nil {
				t.Fatal(err)
			}
		}
		w.controls("m1")
		w.wantTraffic("m1 has the action", false, "m2")
		w.Quiet()
		overwrite()
		w.wantTraffic("the clusters are overwritten", false, "m2")
		w.controls("m1", "m2")
		w.wantTraffic("both have the action", true, "m1", "m2")
		w.Quiet()
		overwrite()
		w.wantTraffic("the condition is overwritten", true, "m1", "m2")
	})
}

// An Ingress follows the endpoints of a Service only while a cluster that has it may be cut.
func TestIngressFollowsServicesOfControlledClusters(t *testing.T) {
	i := &networkingv1alpha1.MultiClusterIngress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}}
	i.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web"}}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-service"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}
	objects := []client.Object{i, b, upkeep()}
	for _, name := range []string{"m1", "m2", "m3"} {
		objects = append(objects, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if name != "m3" {
			b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
			work := serviceWork(name)
			work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
			objects = append(objects, work)
		}
	}
	c := fake.NewClientBuilder().WithScheme(controllertest.Scheme()).WithObjects(objects...).WithStatusSubresource(i).
		Build()
	r := &ingresses{&exchanges{Options: Options{Clock: clock.RealClock{}, Members: member.New(member.Options{Clusters: c,
		Secrets: c})}, client: c, follows: &follows{}, began: time.Now}}
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	front := []types.NamespacedName{client.ObjectKeyFromObject(i)}
	for _, tc := range []struct {
		name     string
		clusters []string
		follows  bool
	}{{"no action", nil, false}, {"a cluster with the Service", []string{"m1"}, true},
		{"a cluster without it", []string{"m3"}, false}, {"again", []string{"m1", "m3"}, true}, {"none again", nil, false}} {
		is := upkeep()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(is), is); err != nil {
			t.Fatal(err)
		}
		is.Spec.ClusterAffinity = &remedyv1alpha1.ClusterAffinity{ClusterNames: tc.clusters}
		if err := c.Update(t.Context(), is); err != nil {
			t.Fatal(err)
		}
		if _, err := r.reconcile(t.Context(), front[0]); err != nil {
			t.Fatal(err)
		}
		var want []types.NamespacedName
		if tc.follows {
			want = front
		}
		for cluster, want := range map[string][]types.NamespacedName{"m1": want, "m2": want, "m3": nil} {
			if got := r.follows.ingresses(cluster, web); !slices.Equal(got, want) {
				t.Errorf("%s: endpoints of %s wake %v, want %v", tc.name, cluster, got, want)
			}
			if got := r.follows.ingresses(cluster); !slices.Equal(got, want) {
				t.Errorf("%s: an answer of %s wakes %v, want %v", tc.name, cluster, got, want)
			}
		}
	}
}

// A Service of the same name that the hub did not send replaces nothing, also when the hub sends one later.
func TestIngressIgnoresForeignServices(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrafficWorld(t)
		w.controls("m1")
		w.wantTraffic("m1 has the action", false, "m2")
		w.Gone(serviceWork("m2"))
		w.Eventually("m2 has no Service of the hub", func() string {
			w.ingress = &networkingv1alpha1.MultiClusterIngress{ObjectMeta: w.ingress.ObjectMeta}
			if w.HasObject(w.ingress); len(w.ingress.Status.TrafficBlockClusters) > 0 || len(w.ingress.Status.Conditions) == 0 {
				return fmt.Sprintf("%+v", w.ingress.Status)
			}
			return ""
		})
		w.Make(serviceWork("m2"))
		w.wantTraffic("m2 has the Service again", false, "m2")
	})
}
