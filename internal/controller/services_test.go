package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// exchange is a hub with all its loops and three members, which know Services and their endpoints, and not yet what
// exports are.
type exchange struct {
	*controllertest.Hub
	t       *testing.T
	members map[string]*membertest.Server
}

func newExchange(t *testing.T) *exchange {
	h, members := fleet(t, controllertest.Service, controllertest.EndpointSlice, controllertest.Definition)
	return &exchange{h, t, members}
}

// place has a policy place the object of a kind called web in clusters.
func (x *exchange) place(kind string, clusters ...string) *policyv1alpha1.PropagationPolicy {
	p := policy("shop", multiclusterv1alpha1.GroupVersion.String(), kind).(*policyv1alpha1.PropagationPolicy)
	p.Name = strings.ToLower(kind)
	p.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] = p.Name
	p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
	x.Make(p)
	return p
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }

// export exports web from clusters, and importTo imports it in clusters.
func (x *exchange) export(clusters ...string) *policyv1alpha1.PropagationPolicy {
	p := x.place("ServiceExport", clusters...)
	x.Make(&multiclusterv1alpha1.ServiceExport{ObjectMeta: named("web")})
	return p
}

func (x *exchange) importTo(clusters ...string) *multiclusterv1alpha1.ServiceImport {
	x.place("ServiceImport", clusters...)
	i := &multiclusterv1alpha1.ServiceImport{ObjectMeta: named("web"), Spec: multiclusterv1alpha1.ServiceImportSpec{
		Type: multiclusterv1alpha1.ClusterSetIP, Ports: []multiclusterv1alpha1.ServicePort{{Name: "http", Port: 80}}}}
	x.Make(i)
	return i
}

// setEndpoints gives a member endpoints of web, as its own controllers do for ready pods.
func (x *exchange) setEndpoints(member string, addresses ...string) {
	s := &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  named("web-" + member),
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}}}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	x.members[member].Put(s)
}

// reaches waits until a member knows these addresses, and no others, under a Service that the hub brought; none is no
// slices.
func (x *exchange) reaches(member, service string, addresses ...string) {
	x.t.Helper()
	x.Eventually(fmt.Sprintf("%s reaches %v by %s", member, addresses, service), func() string {
		var got []string
		for _, w := range x.members[member].Writes() {
			words := strings.Fields(w)
			name, ok := strings.CutPrefix(words[2], "shop/")
			if words[1] != "endpointslices" || !ok {
				continue
			}
			u := x.members[member].Object(controllertest.EndpointSlice, "shop", name)
			if u == nil || u.GetLabels()[discoveryv1.LabelServiceName] != service {
				continue
			}
			list, _, _ := unstructured.NestedSlice(u.Object, "endpoints")
			for _, e := range list {
				all, _, _ := unstructured.NestedStringSlice(e.(map[string]any), "addresses")
				got = append(got, all...)
			}
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, addresses) {
			return fmt.Sprintf("it knows %v", got)
		}
		return ""
	})
}

func TestImportedServiceFollowsEndpoints(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x := newExchange(t)
		x.setEndpoints("m1", "10.0.0.1")
		exports := x.export("m1")
		imported := x.importTo("m2", "m3")

		// 1. Members get to know the kinds, and what is exported arrives there.
		for cluster, plural := range map[string]string{"m1": "serviceexports", "m2": "serviceimports",
			"m3": "serviceimports"} {
			x.Eventually(cluster+" is sent the definition", func() string {
				if x.members[cluster].Object(controllertest.Definition, "", plural+".multicluster.x-k8s.io") == nil {
					return "there is none"
				}
				return ""
			})
		}
		if x.members["m1"].Object(controllertest.Definition, "", "serviceimports.multicluster.x-k8s.io") != nil {
			t.Error("m1 imports nothing, and was sent the definition")
		}
		// 2. And those who import it get to know the endpoints.
		for _, m := range []string{"m2", "m3"} {
			x.reaches(m, "derived-web", "10.0.0.1")
			derived := x.members[m].Object(controllertest.Service, "shop", "derived-web")
			if derived == nil || derived.Object["spec"].(map[string]any)["selector"] != nil {
				t.Errorf("%s has %v", m, derived)
			}
		}
		x.Eventually("the import says who exports it", func() string {
			x.HasObject(imported)
			if c := imported.Status.Clusters; len(c) != 1 || c[0].Cluster != "m1" {
				return fmt.Sprint(c)
			}
			return ""
		})

		// 3. Each change is one write for each of them.
		for _, m := range x.members {
			m.Serve(kindOf("ServiceExport"))
			m.Serve(kindOf("ServiceImport"))
		}
		x.applied("m1", "web-serviceexport")
		x.applied("m2", "web-serviceimport")
		x.Quiet()
		x.setEndpoints("m1", "10.0.0.1", "10.0.0.2")
		x.reaches("m2", "derived-web", "10.0.0.1", "10.0.0.2")
		x.reaches("m3", "derived-web", "10.0.0.1", "10.0.0.2")
		writes := count(x.Quiet())
		delete(writes, "update works/status") // the members' answers
		if want := map[string]int{"update works": 2}; !maps.Equal(writes, want) {
			t.Errorf("two endpoints instead of one: %v, want %v", writes, want)
		}

		// 4. A member that falls silent keeps what it had, and tells what it has when it is back.
		x.members["m1"].Down(true)
		x.setEndpoints("m1", "10.0.0.3")
		x.setEndpoints("m2", "10.2.0.1") // of a Service of its own called web, which it does not export
		if got := x.Quiet(); len(slices.DeleteFunc(got, func(w string) bool { return !strings.Contains(w, " works ") })) > 0 {
			t.Errorf("silence wrote %v", got)
		}
		x.members["m1"].Down(false)
		x.reaches("m2", "derived-web", "10.0.0.3")
		x.reaches("m3", "derived-web", "10.0.0.3")

		// 5. Another cluster exports it as well, and the first one no more.
		controllertest.Change(x.Hub, exports, func(p *policyv1alpha1.PropagationPolicy) {
			p.Generation++
			p.Spec.Placement.ClusterAffinity.ClusterNames = []string{"m1", "m2"}
		})
		x.reaches("m2", "derived-web", "10.0.0.3", "10.2.0.1")
		x.reaches("m3", "derived-web", "10.0.0.3", "10.2.0.1")
		controllertest.Change(x.Hub, exports, func(p *policyv1alpha1.PropagationPolicy) {
			p.Generation++
			p.Spec.Placement.ClusterAffinity.ClusterNames = []string{"m2"}
		})
		x.reaches("m3", "derived-web", "10.2.0.1")
		x.setEndpoints("m1", "10.0.0.4") // no controller watches it any more
		x.members["m2"].Remove(controllertest.EndpointSlice, "shop", "web-m2")
		x.reaches("m3", "derived-web")

		// 6. Without the import the Service is unreachable.
		x.setEndpoints("m2", "10.2.0.2")
		x.reaches("m3", "derived-web", "10.2.0.2")
		controllertest.Change(x.Hub, imported, func(i *multiclusterv1alpha1.ServiceImport) {
			i.Generation++
			i.Spec.Ports[0].Name = "web"
		})
		x.Eventually("the user is told that nothing is behind a port", func() string {
			if slices.ContainsFunc(x.Events(), func(e string) bool { return strings.Contains(e, `has a port named "web"`) }) {
				return ""
			}
			return fmt.Sprint(x.Events())
		})
		x.Gone(imported)
		x.reaches("m2", "derived-web")
		x.reaches("m3", "derived-web")
		x.Eventually("the derived Services are gone", func() string {
			for name, m := range x.members {
				if m.Object(controllertest.Service, "shop", "derived-web") != nil {
					return name + " has it"
				}
			}
			return ""
		})
	})
}

func kindOf(name string) membertest.Kind {
	return membertest.Kind{GroupVersionKind: multiclusterv1alpha1.GroupVersion.WithKind(name),
		Plural: strings.ToLower(name) + "s", Namespaced: true}
}

// applied waits until a member has what a binding sends it.
func (x *exchange) applied(member, binding string) {
	x.t.Helper()
	x.Eventually(member+" has "+binding, func() string {
		var works workv1alpha1.WorkList
		if err := x.List(x.t.Context(), &works, client.InNamespace("karmada-es-"+member)); err != nil {
			return err.Error()
		}
		for _, w := range works.Items {
			if w.Annotations["resourcebinding.karmada.io/name"] == binding &&
				meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkApplied) {
				return ""
			}
		}
		return "it does not say so"
	})
}

func TestExistingServiceWithTheDerivedNameStays(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x := newExchange(t)
		theirs := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: named("derived-web"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "theirs"}}}
		x.members["m2"].Put(theirs)
		x.setEndpoints("m1", "10.0.0.1")
		x.export("m1")
		x.importTo("m2", "m3")

		x.reaches("m3", "derived-web", "10.0.0.1") // one cluster's trouble is no other's
		x.Eventually("the import gets an event", func() string {
			for _, e := range x.Events() {
				if strings.HasPrefix(e, "ServiceImport SyncDerivedServiceFailed: ") && strings.Contains(e, `cluster "m2"`) &&
					strings.Contains(e, "already exists") {
					return ""
				}
			}
			return fmt.Sprint(x.Events())
		})
		x.reaches("m2", "derived-web")
		if s := x.members["m2"].Object(controllertest.Service, "shop",
			"derived-web"); s.GetLabels()["karmada.io/managed"] != "" {
			t.Errorf("the member's own Service was taken over: %v", s)
		}

		x.members["m2"].Remove(controllertest.Service, "shop", "derived-web")
		x.reaches("m2", "derived-web", "10.0.0.1")
	})
}

func TestAMultiClusterServiceGoesToAllAndItsEndpointsToTheOthers(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x := newExchange(t)
		web := &corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
		x.setEndpoints("m1", "10.0.0.1")
		x.setEndpoints("m2", "10.2.0.1")
		s := &networkingv1alpha1.MultiClusterService{ObjectMeta: named("web"),
			Spec: networkingv1alpha1.MultiClusterServiceSpec{
				Types:            []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
				ProviderClusters: []networkingv1alpha1.ClusterSelector{{Name: "m1"}, {Name: "m2"}},
				ConsumerClusters: []networkingv1alpha1.ClusterSelector{{Name: "m2"}, {Name: "m3"}, {Name: "m9"}},
			}}
		x.Make(s)
		wantText := func(condition string, status metav1.ConditionStatus, text string) {
			t.Helper()
			x.Eventually(fmt.Sprintf("%s is %s: %s", condition, status, text), func() string {
				x.HasObject(s)
				c := meta.FindStatusCondition(s.Status.Conditions, condition)
				if c == nil || c.Status != status || !strings.Contains(c.Message, text) {
					return fmt.Sprintf("%+v", c)
				}
				return ""
			})
		}
		wantText("ServiceApplied", metav1.ConditionFalse, "there is no Service shop/web on the hub")

		x.Make(web)
		wantText("ServiceApplied", metav1.ConditionTrue, "Service is propagated to target clusters.")
		wantText("EndpointSliceDispatched", metav1.ConditionTrue, "EndpointSlice are dispatched successfully")
		x.reaches("m1", "web")             // it provides, and consumes nothing
		x.reaches("m2", "web", "10.0.0.1") // its own it has itself
		x.reaches("m3", "web", "10.0.0.1", "10.2.0.1")
		for name, m := range x.members {
			if m.Object(controllertest.Service, "shop", "web") == nil {
				t.Errorf("%s does not have the Service", name)
			}
		}
		x.Eventually("somebody is told of m9", func() string {
			if events := x.Events(); !slices.ContainsFunc(events, func(e string) bool {
				return strings.Contains(e, "ClusterNotFound: no cluster is named m9")
			}) {
				return fmt.Sprint(events)
			}
			return ""
		})
		x.HasObject(web)
		if web.Labels[policyv1alpha1.ClaimedByLabel] != "MultiClusterService" {
			t.Errorf("the Service is labelled %v", web.Labels)
		}

		x.Quiet()
		x.setEndpoints("m2", "10.2.0.2")
		x.reaches("m3", "web", "10.0.0.1", "10.2.0.2")
		writes := count(x.Quiet())
		delete(writes, "update works/status")
		if want := map[string]int{"update works": 1}; !maps.Equal(writes, want) {
			t.Errorf("another endpoint: %v, want %v", writes, want)
		}

		// A Service stays when its MultiClusterService is deleted, as a template stays without its policy; endpoints are no
		// longer exchanged.
		x.Gone(s)
		x.reaches("m2", "web")
		x.reaches("m3", "web")
		x.Eventually("the Service is released", func() string {
			x.HasObject(web)
			if web.Labels[policyv1alpha1.ClaimedByLabel] != "" {
				return fmt.Sprint(web.Labels)
			}
			return ""
		})
		x.Quiet()
		if x.members["m3"].Object(controllertest.Service, "shop", "web") == nil {
			t.Error("the Service went with it")
		}
	})
}

func TestMultiClusterServiceReportsMissingClusters(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x := newExchange(t)
		x.setEndpoints("m1", "10.0.0.1")
		m3 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m3"}}
		controllertest.Change(x.Hub, m3, func(c *clusterv1alpha1.Cluster) {
			c.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
		})
		x.Quiet() // the fleet takes it from the cache
		x.Make(&corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
		s := &networkingv1alpha1.MultiClusterService{ObjectMeta: named("web"),
			Spec: networkingv1alpha1.MultiClusterServiceSpec{
				Types:            []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
				ProviderClusters: []networkingv1alpha1.ClusterSelector{{Name: "m1"}},
				ConsumerClusters: []networkingv1alpha1.ClusterSelector{{Name: "m2"}, {Name: "m3"}},
			}}
		x.Make(s)
		x.reaches("m2", "web", "10.0.0.1")
		wantText := func(status metav1.ConditionStatus, text string) {
			t.Helper()
			x.Eventually("it says: "+text, func() string {
				x.HasObject(s)
				c := meta.FindStatusCondition(s.Status.Conditions, networkingv1alpha1.ServiceApplied)
				if c == nil || c.Status != status || !strings.Contains(c.Message, text) {
					return fmt.Sprintf("%+v", c)
				}
				return ""
			})
		}
		wantText(metav1.ConditionFalse, "the Service is not placed in m3: it may be cordoned or tainted")
		controllertest.Change(x.Hub, m3, func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil })
		wantText(metav1.ConditionTrue, "Service is propagated to target clusters.")
		x.reaches("m3", "web", "10.0.0.1")
	})
}

func TestAMultiClusterServiceFollowsABindingWithANameApart(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x := newExchange(t)
		// A Service of Knative has the same name, so its binding has Karmada's name.
		other := &workv1alpha2.ResourceBinding{ObjectMeta: named(names.Binding("Service", "web")),
			Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{
				APIVersion: "serving.knative.dev/v1", Kind: "Service", Namespace: "shop", Name: "web"}}}
		x.Make(other)
		x.setEndpoints("m1", "10.0.0.1")
		x.Make(&corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
		s := &networkingv1alpha1.MultiClusterService{ObjectMeta: named("web"),
			Spec: networkingv1alpha1.MultiClusterServiceSpec{
				Types:            []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
				ProviderClusters: []networkingv1alpha1.ClusterSelector{{Name: "m1"}},
				ConsumerClusters: []networkingv1alpha1.ClusterSelector{{Name: "m2"}}}}
		x.Make(s)
		x.reaches("m2", "web", "10.0.0.1")
		x.Eventually("the Service is applied", func() string {
			if x.HasObject(s); !meta.IsStatusConditionTrue(s.Status.Conditions, networkingv1alpha1.ServiceApplied) {
				return fmt.Sprint(s.Status.Conditions)
			}
			return ""
		})
		apart := &workv1alpha2.ResourceBinding{ObjectMeta: named(names.BindingApart(controllertest.Service.GroupKind(),
			"web"))}
		if !x.HasObject(apart) || apart.Labels[workv1alpha2.BindingManagedByLabel] != "MultiClusterService" {
			t.Errorf("its binding %s has the labels %v", apart.Name, apart.Labels)
		}

		x.Gone(s)
		x.reaches("m2", "web")
		x.Eventually("the binding is released", func() string {
			if x.HasObject(apart); apart.Labels[workv1alpha2.BindingManagedByLabel] != "" {
				return fmt.Sprint(apart.Labels)
			}
			return ""
		})
		x.Quiet()
		if !x.HasObject(other) || other.Labels[workv1alpha2.BindingManagedByLabel] != "" || len(other.Spec.Clusters) > 0 {
			t.Errorf("the binding of the other Service was changed: %+v", other)
		}
	})
}
