package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// run starts the controllers.
func run(h *controllertest.Hub) (stop func()) {
	_, stop = runWith(h)
	return stop
}

// runWith is run with the given members.
func runWith(h *controllertest.Hub) (members *member.Members, stop func()) {
	stop = h.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		dyn, err := dynamic.NewForConfig(h.Config)
		if err != nil {
			return err
		}
		disco, err := discovery.NewDiscoveryClientForConfig(h.Config)
		if err != nil {
			return err
		}
		templates := template.New(dyn, disco)
		members = member.New(member.Options{Clusters: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Dial: membertest.Dial})
		for _, r := range []interface{ Start(context.Context) error }{templates, members} {
			if err := mgr.Add(r); err != nil {
				return err
			}
		}
		if err := scope.IndexWorks(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
		return Setup(ctx, mgr, Options{Members: members, Templates: templates, Failover: failover.Defaults,
			Settle: 20 * time.Second})
	})
	return members, stop
}

// bind places the object web of a kind in clusters, as the scheduler does.
func bind(h *controllertest.Hub, kind string, clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: names.Binding(kind, "web")}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: multiclusterv1alpha1.GroupVersion.String(), Kind: kind,
		Namespace: "shop", Name: "web"}
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
	}
	h.Make(b)
	return b
}

// sent returns the objects in a cluster's Works, without CRDs. taken makes the cluster report them as applied, and
// those of deleted Works as gone.
func sent(t *testing.T, h *controllertest.Hub, cluster string, taken bool) (all []string) {
	t.Helper()
	var list workv1alpha1.WorkList
	if err := h.List(t.Context(), &list, client.InNamespace(names.ExecutionSpace(cluster))); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		w := &list.Items[i]
		if w.DeletionTimestamp != nil {
			if w.Finalizers = nil; taken {
				_ = h.Update(t.Context(), w) // it is tried again
			}
			continue
		}
		m, err := execute.Manifest(w)
		if err != nil {
			t.Fatal(err)
		}
		if m.GetKind() != "CustomResourceDefinition" {
			all = append(all, m.GetKind()+" "+m.GetName())
		}
		if taken && meta.SetStatusCondition(&w.Status.Conditions,
			metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: "AppliedSuccessful"}) {
			if err := h.Status().Update(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(all)
	return all
}

// provide creates a slice of Service web in a member.
func provide(m *membertest.Server, name string) {
	m.Put(&discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}})
}

func serviceImport() *multiclusterv1alpha1.ServiceImport {
	return &multiclusterv1alpha1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: multiclusterv1alpha1.ServiceImportSpec{
			Type: multiclusterv1alpha1.ClusterSetIP, Ports: []multiclusterv1alpha1.ServicePort{{Port: 80}}}}
}

// gets waits until a cluster's Works contain exactly these objects, and reports them as applied.
func gets(t *testing.T, h *controllertest.Hub, cluster string, want ...string) {
	t.Helper()
	h.Eventually(cluster+" gets the endpoints", func() string {
		if all := sent(t, h, cluster, true); !slices.Equal(all, want) {
			return fmt.Sprint(all)
		}
		return ""
	})
}

func TestRestartKeepsEndpointsOfSilentMember(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		h := controllertest.New(t)
		m1 := h.Join("m1", controllertest.EndpointSlice)
		h.Join("m2")
		h.Join("m3")
		provide(m1, "web-a")
		stop := run(h)
		bind(h, "ServiceExport", "m1")
		importers := bind(h, "ServiceImport", "m2")
		h.Make(serviceImport())
		both := []string{"EndpointSlice imported-m1-web-a", "Service derived-web"}
		gets(t, h, "m2", both...)
		h.Quiet()

		stop()
		m1.Down(true)
		stop = run(h)
		if got := h.Quiet(); len(got) > 0 {
			t.Errorf("a start wrote %v", got)
		}
		// Who imports it from now on learns of them, too.
		controllertest.Change(h, importers, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: "m3"})
		})
		gets(t, h, "m3", both...)

		// An import that is deleted while the hub is down is withdrawn after the start.
		h.Quiet()
		stop()
		h.Gone(&multiclusterv1alpha1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
		run(h)
		h.Eventually("its Works go", func() string {
			var list workv1alpha1.WorkList
			if err := h.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			for _, w := range list.Items {
				if w.Annotations["argosy.io/service-of"] != "" && w.DeletionTimestamp == nil {
					return w.Namespace + "/" + w.Name
				}
			}
			return ""
		})
	})
}

func TestEndpointsContinueAfterCredentialsAreFixed(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		h := controllertest.New(t)
		m1 := h.Join("m1", controllertest.EndpointSlice)
		h.Join("m2")
		provide(m1, "web-a")
		members, _ := runWith(h)
		bind(h, "ServiceExport", "m1")
		bind(h, "ServiceImport", "m2")
		h.Make(serviceImport())
		gets(t, h, "m2", "EndpointSlice imported-m1-web-a", "Service derived-web")

		secret := m1.Secret("m1")
		controllertest.Change(h, secret, func(s *corev1.Secret) { s.Data = nil })
		if _, err := members.Refresh(t.Context(), "m1"); !errors.Is(err, member.ErrCredentials) {
			t.Fatalf("without a token: %v", err)
		}
		controllertest.Change(h, secret, func(s *corev1.Secret) { s.Data = m1.Secret("m1").Data })
		if _, err := members.Refresh(t.Context(), "m1"); err != nil {
			t.Fatal(err)
		}
		provide(m1, "web-b")
		gets(t, h, "m2", "EndpointSlice imported-m1-web-a", "EndpointSlice imported-m1-web-b", "Service derived-web")
	})
}

func TestFailedDefinitionBlocksNoEndpoints(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		h := controllertest.New(t)
		m1 := h.Join("m1", controllertest.EndpointSlice)
		h.Join("m2")
		provide(m1, "web-a")
		h.Server.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !strings.Contains(r.URL.Path, "/karmada-es-m1/works") {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"a quota is exceeded"}`))
			return true
		})
		run(h)
		bind(h, "ServiceExport", "m1")
		bind(h, "ServiceImport", "m2")
		h.Make(serviceImport())
		gets(t, h, "m2", "EndpointSlice imported-m1-web-a", "Service derived-web")
		h.Eventually("a warning is recorded", func() string {
			if slices.ContainsFunc(h.Events(), func(e string) bool {
				return strings.HasPrefix(e, "ServiceImport SyncDerivedServiceFailed: ") &&
					strings.Contains(e, "a quota is exceeded")
			}) {
				return ""
			}
			return fmt.Sprint(h.Events())
		})
	})
}

func TestTemporaryErrorsAreRetriedWithoutWarning(t *testing.T) {
	resource := schema.GroupResource{Resource: "works"}
	for _, c := range []struct {
		name  string
		err   error
		after time.Duration
		want  string
	}{
		{"the cache is behind", apierrors.NewConflict(resource, "w", errors.New("modified")), commit.StaleRetry, ""},
		{"the execution space comes or goes", apierrors.NewNotFound(resource, "w"), spaceRetry, ""},
		{"the binding of the Service that was is going", fmt.Errorf("bind: %w", propagate.ErrTerminating), endingRetry, ""},
		{"the binding of the Service that was is there", fmt.Errorf("bind: %w", propagate.ErrOutlived), endingRetry, ""},
		{"the Work is another's", errors.Join(&takenError{"Work w", "another owner"}), takenRetry,
			"Work w belongs to another owner"},
		{"refused", errors.Join(errors.New("a quota"), errors.New("another")), 0, "a quota; another"},
	} {
		result, err := outcome(c.err)
		if result.RequeueAfter != c.after || (err != nil) != (c.after == 0) {
			t.Errorf("%s: again after %s, with %v; want %s", c.name, result.RequeueAfter, err, c.after)
		}
		if got := obstacle(c.err); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: message %q, want %q", c.name, got, c.want)
		}
	}
	if endingRetry < time.Second {
		t.Error("a binding may be going for hours")
	}
}

func TestRestartKeepsConditionsUntilDataArrives(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		h := controllertest.New(t)
		m1 := h.Join("m1", controllertest.EndpointSlice)
		h.Join("m2")
		provide(m1, "web-a")
		h.Make(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
		for _, cluster := range []string{"m1", "m2"} { // which its binding sends
			w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(cluster),
				Name: names.Work("Service", "web", "shop"),
				Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop",
					workv1alpha2.ResourceBindingNameAnnotation: "web-service"}}}
			w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
				`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}}`)}}}
			h.Make(w)
		}
		s := &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec: networkingv1alpha1.MultiClusterServiceSpec{
				Types:            []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
				ProviderClusters: []networkingv1alpha1.ClusterSelector{{Name: "m1"}},
				ConsumerClusters: []networkingv1alpha1.ClusterSelector{{Name: "m2"}}}}
		h.Make(s)
		expectStatus := func(status metav1.ConditionStatus) {
			t.Helper()
			h.Eventually("the endpoints are dispatched: "+string(status), func() string {
				sent(t, h, "m1", true)
				sent(t, h, "m2", true)
				h.HasObject(s)
				if c := meta.FindStatusCondition(s.Status.Conditions, networkingv1alpha1.EndpointSliceDispatched); c == nil ||
					c.Status != status {
					return fmt.Sprintf("%+v", c)
				}
				return ""
			})
		}
		stop := run(h)
		expectStatus(metav1.ConditionTrue)
		h.Quiet()

		stop()
		stop = run(h)
		if got := h.Quiet(); len(got) > 0 {
			t.Errorf("a start wrote %v", got)
		}
		// Of one that does not answer for so long that it counts as silent it is said, by a start as by a hub that runs.
		stop()
		m1.Down(true)
		stop = run(h)
		h.Ready("m1", metav1.ConditionFalse, "ClusterNotReachable")
		expectStatus(metav1.ConditionUnknown)
		m1.Down(false)
		expectStatus(metav1.ConditionTrue)

		// The agent of a cluster in Pull mode reports a status, but does not let the hub read the cluster.
		stop()
		controllertest.Change(h, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}},
			func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull })
		run(h)
		expectStatus(metav1.ConditionUnknown)
	})
}

func TestDefinitionIsSentOnlyToClustersWithoutIt(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		h := controllertest.New(t)
		h.Join("lacks")
		h.Join("has", controllertest.Service)
		h.ClusterStatus("has", func(s *clusterStatus) {
			s.APIEnablements = append(s.APIEnablements, apiEnablement("serviceexports", "ServiceExport"))
		})
		run(h)
		bind(h, "ServiceExport", "lacks", "has")
		definition := func(cluster string) *workv1alpha1.Work {
			w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(cluster),
				Name: names.Work("CustomResourceDefinition", "serviceexports.multicluster.x-k8s.io", "")}}
			if !h.HasObject(w) {
				return nil
			}
			return w
		}
		h.Eventually("it is sent", func() string {
			if definition("lacks") == nil {
				return "it is not"
			}
			return ""
		})
		if w := definition("lacks"); w.Spec.PreserveResourcesOnDeletion == nil || !*w.Spec.PreserveResourcesOnDeletion {
			t.Error("it would go with its Work, and all exports of the cluster with it")
		}
		// Then it serves it, and keeps it all the same.
		h.ClusterStatus("lacks", func(s *clusterStatus) {
			s.APIEnablements = append(s.APIEnablements, apiEnablement("serviceexports", "ServiceExport"))
		})
		if got := slices.DeleteFunc(h.Quiet(), func(w string) bool { return !strings.HasPrefix(w, "delete") }); len(got) > 0 {
			t.Errorf("written: %v", got)
		}
		if definition("lacks") == nil || definition("has") != nil {
			t.Errorf("definitions: %v, %v; want one for the cluster that lacked it", definition("lacks"), definition("has"))
		}
	})
}

type clusterStatus = clusterv1alpha1.ClusterStatus

func apiEnablement(plural, kind string) clusterv1alpha1.APIEnablement {
	return clusterv1alpha1.APIEnablement{GroupVersion: multiclusterv1alpha1.GroupVersion.String(),
		Resources: []clusterv1alpha1.APIResource{{Name: plural, Kind: kind}}}
}

// taints sets the taints for the condition Ready, as the cluster controller does.
func taints(h *controllertest.Hub, cluster string) {
	controllertest.Change(h, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
		func(c *clusterv1alpha1.Cluster) {
			c.Spec.Taints, _ = membership.Taints(c.Spec.Taints, membership.Readiness(c), time.Now())
		})
}

func TestEndpointsOfLostProviderAreWithdrawnAndReturn(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		h := controllertest.New(t)
		servers := map[string]*membertest.Server{}
		for _, name := range []string{"m1", "m2"} {
			servers[name] = h.Join(name, controllertest.EndpointSlice)
			provide(servers[name], "web-a")
		}
		h.Join("m3")
		stop := run(h)
		bind(h, "ServiceExport", "m1", "m2")
		bind(h, "ServiceImport", "m1", "m3")
		i := serviceImport()
		h.Make(i)
		all := []string{"EndpointSlice imported-m1-web-a", "EndpointSlice imported-m2-web-a", "Service derived-web"}
		gets(t, h, "m1", all...)
		gets(t, h, "m3", all...)

		servers["m1"].Down(true)
		h.Ready("m1", metav1.ConditionFalse, "ClusterNotReachable")
		taints(h, "m1")
		h.Quiet() // the test's own writes
		if got := h.Quiet(); len(got) > 0 {
			t.Errorf("at once, the loss wrote %v", got)
		}
		h.Advance(30 * time.Second) // without another event
		gets(t, h, "m3", all[1:]...)
		h.Eventually("a warning is recorded", func() string {
			if slices.ContainsFunc(h.Events(), func(e string) bool {
				return strings.HasPrefix(e, "ServiceImport ProviderLost: The endpoints of m1 are withdrawn")
			}) {
				return ""
			}
			return fmt.Sprint(h.Events())
		})
		h.HasObject(i)
		if c := i.Status.Clusters; len(c) != 1 || c[0].Cluster != "m2" {
			t.Errorf("the import names the exporters %v", c)
		}

		// The hub starts again. A Work for m1 still has the endpoints of m1.
		h.Quiet()
		stop()
		run(h)
		for _, wait := range []time.Duration{0, time.Minute} {
			h.Advance(wait)
			if got := h.Quiet(); len(got) > 0 {
				t.Errorf("%s after its start, the hub wrote %v", wait, got)
			}
		}

		servers["m1"].Down(false)
		h.Ready("m1", metav1.ConditionTrue, "ClusterReady")
		gets(t, h, "m3", all...)
		h.Quiet()
		taints(h, "m1")
		if got := h.Quiet(); len(got) > 1 { // besides the test's own
			t.Errorf("the end of the taint wrote %v", got)
		}
	})
}
