package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/remedy"
	"github.com/argosy-io/argosy/internal/core/object/names"
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
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(cluster),
			Name: names.Work("Service", "web", "shop"),
			Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop",
				workv1alpha2.ResourceBindingNameAnnotation: "web-service"}}}
		work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
			`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web"}}`)}}}
		w.Make(work)
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
	w.Make(&remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: "upkeep"}, Spec: remedyv1alpha1.RemedySpec{
		Actions: []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl}}})
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

// controls sets the clusters with the action TrafficControl, as the cluster controller does.
func (w *trafficWorld) controls(clusters ...string) {
	w.t.Helper()
	for _, name := range []string{"m1", "m2"} {
		w.ClusterStatus(name, func(s *clusterStatus) {
			if s.RemedyActions = nil; slices.Contains(clusters, name) {
				s.RemedyActions = []string{string(remedyv1alpha1.TrafficControl)}
			}
		})
	}
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

		// A lost cluster is no replacement, and neither is one without endpoints.
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
		if got := w.Quiet(); slices.ContainsFunc(got, func(s string) bool {
			return !strings.Contains(s, "web/status") &&
				strings.Contains(s, "works") || strings.Contains(s, "multiclusteringresses")
		}) {
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
	} {
		i := &networkingv1alpha1.MultiClusterIngress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}}
		i.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web"}}
		i.Status.TrafficBlockClusters = []string{"m1"}
		i.Status.Conditions = []metav1.Condition{{Type: networkingv1alpha1.TrafficKept, Status: metav1.ConditionTrue}}
		m1 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		m1.Status.RemedyActions = []string{string(remedyv1alpha1.TrafficControl)}
		c := fake.NewClientBuilder().WithScheme(controllertest.Scheme()).WithObjects(i, m1).WithStatusSubresource(i).
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
		r := &ingresses{exchanges: &exchanges{Options: Options{Clock: clock.RealClock{}}, client: c, follows: &follows{}},
			users: map[types.NamespacedName]sets.Set[types.NamespacedName]{}}
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

	// Without the Remedies, the condition stays.
	c := fake.NewClientBuilder().WithScheme(controllertest.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken }}).
		Build()
	x := &exchanges{client: c}
	if _, err := x.kept(t.Context(), remedy.Traffic{Kept: []string{"m1"}}, nil, nil); !errors.Is(err, broken) {
		t.Errorf("Remedies that cannot be read: %v", err)
	}
}
