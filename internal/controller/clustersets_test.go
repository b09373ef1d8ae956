package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// newClusterSet is a fleet whose members export Services themselves, and what starts its hub with other options. They
// serve the API in v1beta1.
func newClusterSet(t *testing.T) (x *exchange, restart func(Options)) {
	h := controllertest.New(t)
	h.Embed()
	x = &exchange{h, t, map[string]*membertest.Server{}}
	for _, name := range []string{"m1", "m2", "m3"} {
		x.members[name] = h.Join(name, controllertest.Service, controllertest.EndpointSlice, controllertest.Definition,
			controllertest.ClusterRole, beta("ServiceExport"), beta("ServiceImport"))
		x.members[name].SeparateStatus(beta("ServiceExport"), beta("ServiceImport"))
	}
	stop := func() {}
	restart = func(o Options) {
		stop()
		stop = startHub(t, h, o)
	}
	t.Cleanup(func() { stop() })
	restart(Options{ClusterSet: true})
	h.Eventually("the namespace is in all members", func() string {
		for name, m := range x.members {
			if m.Object(membertest.Namespace, "", "shop") == nil {
				return name + " lacks it"
			}
		}
		return ""
	})
	h.Quiet()
	return x, restart
}

// beta is a kind of SIG Multicluster as its conformance suite uses it.
func beta(name string) membertest.Kind {
	return membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: multiclusterv1alpha1.GroupVersion.Group,
		Version: "v1beta1", Kind: name}, Plural: strings.ToLower(name) + "s", Namespaced: true}
}

// exports has a member export its headless Service web, created at a minute.
func (x *exchange) exports(member string, minute int, port int32) {
	x.service(member, "None", port)
	e := &multiclusterv1alpha1.ServiceExport{TypeMeta: metav1.TypeMeta{APIVersion: "multicluster.x-k8s.io/v1beta1",
		Kind: "ServiceExport"}, ObjectMeta: named("web")}
	e.CreationTimestamp = metav1.NewTime(time.Date(2026, 12, 3, 12, minute, 0, 0, time.UTC))
	if x.members[member].Object(beta("ServiceExport"), "shop", "web") == nil {
		x.members[member].Put(e)
	}
}

// service gives a member the Service web with an address.
func (x *exchange) service(member, ip string, port int32) {
	s := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: named("web"),
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: "TCP", Port: port}}}}
	if ip != "None" {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	x.members[member].Put(s)
}

// imports waits until members have the ServiceImport with a port from clusters; 0 is for none.
func (x *exchange) imports(port int64, from string, members ...string) {
	x.t.Helper()
	for _, m := range members {
		x.Eventually(fmt.Sprintf("%s imports web with port %d from %q", m, port, from), func() string {
			u := x.members[m].Object(beta("ServiceImport"), "shop", "web")
			if u == nil || port == 0 {
				return map[bool]string{true: "", false: fmt.Sprint(u)}[(u == nil) == (port == 0)]
			}
			ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
			clusters, _, _ := unstructured.NestedSlice(u.Object, "status", "clusters")
			var names []string
			for _, c := range clusters {
				names = append(names, fmt.Sprint(c.(map[string]any)["cluster"]))
			}
			if got := fmt.Sprint(ports[0].(map[string]any)["port"]); got != fmt.Sprint(port) ||
				strings.Join(names, " ") != from {
				return fmt.Sprintf("port %s from %v", got, names)
			}
			return ""
		})
	}
}

// wantConditions waits until the ServiceExport of a member has conditions, each TYPE=STATUS/REASON.
func (x *exchange) wantConditions(member string, conditions ...string) {
	x.t.Helper()
	x.Eventually(fmt.Sprintf("the ServiceExport of %s says %v", member, conditions), func() string {
		var got []string
		if u := x.members[member].Object(beta("ServiceExport"), "shop", "web"); u != nil {
			all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			for _, c := range all {
				c := c.(map[string]any)
				got = append(got, fmt.Sprintf("%s=%s/%s", c["type"], c["status"], c["reason"]))
			}
		}
		for _, c := range conditions {
			if !slices.Contains(got, c) {
				return fmt.Sprint(got)
			}
		}
		return ""
	})
}

func TestServicesThatClustersExportAreImportedEverywhere(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x, _ := newClusterSet(t)
		x.setEndpoints("m1", "10.0.0.1")

		// 1. One export: all clusters with the namespace import it, also its own.
		x.exports("m1", 0, 80)
		x.imports(80, "m1", "m1", "m2", "m3")
		x.wantConditions("m1", "Valid=True/Valid", "Ready=True/Exported", "Conflict=False/NoConflicts")
		for _, m := range []string{"m1", "m2", "m3"} {
			x.reaches(m, "derived-web", "10.0.0.1")
		}

		// 2. A newer one with another port: the oldest wins, and both report the conflict.
		x.setEndpoints("m2", "10.2.0.1")
		x.exports("m2", 5, 81)
		x.imports(80, "m1 m2", "m1", "m2", "m3")
		for _, m := range []string{"m1", "m2"} {
			x.wantConditions(m, "Valid=True/Valid", "Ready=True/Exported", "Conflict=True/PortConflict")
		}
		x.reaches("m3", "derived-web", "10.0.0.1", "10.2.0.1")

		// 3. Nothing more is written.
		x.Quiet()
		x.setEndpoints("m2", "10.2.0.2")
		x.reaches("m3", "derived-web", "10.0.0.1", "10.2.0.2")
		writes := count(x.Quiet())
		delete(writes, "update works/status")
		if writes["update works"] != 3 || len(writes) != 1 {
			t.Errorf("another endpoint: %v, want one Work for each cluster", writes)
		}

		// 4. A cluster that falls silent exports on, also after a restart of the hub (see below).
		x.members["m1"].Down(true)
		if got := x.Quiet(); slices.ContainsFunc(got, func(w string) bool { return strings.Contains(w, " works ") }) {
			t.Errorf("silence wrote %v", got)
		}
		x.imports(80, "m1 m2", "m2", "m3")
		x.members["m1"].Down(false)

		// 5. The oldest leaves, and then the last.
		x.members["m1"].Remove(beta("ServiceExport"), "shop", "web")
		x.imports(81, "m2", "m1", "m2", "m3")
		x.wantConditions("m2", "Conflict=False/NoConflicts")
		x.reaches("m3", "derived-web", "10.2.0.2")
		x.members["m2"].Remove(beta("ServiceExport"), "shop", "web")
		x.imports(0, "", "m1", "m2", "m3")
		x.reaches("m3", "derived-web")
	})
}

// What is wrong with an export is said in its cluster alone.
func TestExportsThatAreNotValidAreNotImported(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x, _ := newClusterSet(t)
		x.exports("m1", 0, 80)
		x.imports(80, "m1", "m2")

		// 1. The Service goes away, and comes back.
		x.members["m1"].Remove(controllertest.Service, "shop", "web")
		x.wantConditions("m1", "Valid=False/NoService", "Ready=False/Failed")
		x.imports(0, "", "m2", "m3")
		x.exports("m1", 0, 80)
		x.imports(80, "m1", "m2")

		// 2. It becomes the name of another host, while another cluster exports it as well.
		x.exports("m2", 5, 81)
		x.wantConditions("m2", "Conflict=True/PortConflict")
		x.members["m1"].Put(&corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: named("web"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "a.b"}})
		x.wantConditions("m1", "Valid=False/InvalidServiceType", "Ready=False/Failed", "Conflict=False/NoConflicts")
		x.wantConditions("m2", "Valid=True/Valid", "Conflict=False/NoConflicts")
		x.imports(81, "m2", "m1", "m2", "m3")
	})
}

// An address of the derived Service is part of the import; until the cluster has assigned one, there is no import.
func TestImportsHaveTheAddressOfTheirCluster(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x, _ := newClusterSet(t)
		x.service("m1", "10.96.0.1", 80)
		x.members["m1"].Put(&multiclusterv1alpha1.ServiceExport{TypeMeta: metav1.TypeMeta{
			APIVersion: "multicluster.x-k8s.io/v1beta1", Kind: "ServiceExport"}, ObjectMeta: named("web")})
		x.Eventually("m2 has the derived Service", func() string {
			if x.members["m2"].Object(controllertest.Service, "shop", "derived-web") == nil {
				return "it has none"
			}
			return ""
		})
		x.Quiet()
		x.imports(0, "", "m2")
		assign := func(ip string) {
			u := x.members["m2"].Object(controllertest.Service, "shop", "derived-web").DeepCopy()
			_ = unstructured.SetNestedField(u.Object, ip, "spec", "clusterIP")
			_ = unstructured.SetNestedStringSlice(u.Object, []string{ip}, "spec", "clusterIPs")
			_ = unstructured.SetNestedStringSlice(u.Object, []string{"IPv4"}, "spec", "ipFamilies")
			x.members["m2"].Put(u)
		}
		for i, ip := range []string{"10.2.0.7", "10.2.0.8"} {
			if i > 0 { // somebody exports the derived Service as well
				e := &multiclusterv1alpha1.ServiceExport{TypeMeta: metav1.TypeMeta{
					APIVersion: "multicluster.x-k8s.io/v1beta1", Kind: "ServiceExport"}, ObjectMeta: named("derived-web")}
				x.members["m2"].Put(e)
				x.Eventually("it is imported", func() string {
					return map[bool]string{true: "it is not"}[x.members["m1"].Object(controllertest.Service, "shop",
						"derived-derived-web") == nil]
				})
			}
			assign(ip)
			x.Eventually("m2 imports the address "+ip, func() string {
				u := x.members["m2"].Object(beta("ServiceImport"), "shop", "web")
				if u == nil {
					return "there is no import"
				}
				ips, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "ips")
				families, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "ipFamilies")
				if fmt.Sprint(ips, families) != fmt.Sprintf("[%s] [IPv4]", ip) {
					return fmt.Sprint(ips, families)
				}
				return ""
			})
		}
	})
}

// Absence of a cluster's word after a restart of the hub is no request: its export counts as before.
func TestExportsOfSilentClustersSurviveARestart(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x, restart := newClusterSet(t)
		x.setEndpoints("m1", "10.0.0.1")
		x.exports("m1", 0, 80)
		x.exports("m2", 5, 81)
		x.imports(80, "m1 m2", "m1", "m2", "m3")
		x.reaches("m3", "derived-web", "10.0.0.1")
		x.Quiet()
		x.members["m1"].Down(true)
		restart(Options{ClusterSet: true})
		x.members["m2"].Put(&corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: named("web"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "None",
				Ports: []corev1.ServicePort{{Name: "http", Protocol: "TCP", Port: 82}, {Name: "more", Protocol: "TCP", Port: 90}}}})
		x.Eventually("the union has the port of m2, and the number of the silent m1", func() string {
			u := x.members["m3"].Object(beta("ServiceImport"), "shop", "web")
			ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
			if len(ports) != 2 || fmt.Sprint(ports[0].(map[string]any)["port"]) != "80" {
				return fmt.Sprint(ports)
			}
			return ""
		})
		x.imports(80, "m1 m2", "m3")
		x.reaches("m3", "derived-web", "10.0.0.1")
	})
}

func TestPoliciesAndTheSwitchEndWhatClustersExport(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x, restart := newClusterSet(t)
		x.setEndpoints("m1", "10.0.0.1")
		x.exports("m1", 0, 80)
		x.imports(80, "m1", "m1", "m2", "m3")

		// 1. A ServiceImport on the hub leaves the Service to policies, until it is deleted.
		imported := x.importTo("m3")
		x.imports(0, "", "m1", "m2")
		x.Gone(imported)
		x.imports(80, "m1", "m1", "m2", "m3")

		// 2. Without the switch, nothing that the hub brought stays.
		restart(Options{})
		x.imports(0, "", "m1", "m2", "m3")
		x.reaches("m3", "derived-web")
	})
}

// Objects with the names of imports that the hub does not manage stay, and the exporting cluster learns of them.
func TestObjectsWithTheNamesOfImportsStay(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x, _ := newClusterSet(t)
		x.members["m2"].Put(&corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: named("derived-web"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "theirs"},
				ClusterIP: "10.2.0.9", ClusterIPs: []string{"10.2.0.9"}}})
		x.members["m3"].Put(&multiclusterv1alpha1.ServiceImport{TypeMeta: metav1.TypeMeta{
			APIVersion: "multicluster.x-k8s.io/v1beta1", Kind: "ServiceImport"}, ObjectMeta: named("web"),
			Spec: multiclusterv1alpha1.ServiceImportSpec{Type: multiclusterv1alpha1.Headless,
				Ports: []multiclusterv1alpha1.ServicePort{{Port: 7}}}})
		x.setEndpoints("m1", "10.0.0.1")
		x.exports("m1", 0, 80)
		x.wantConditions("m1", "Valid=True/Valid", "Ready=False/Failed")
		x.imports(80, "m1", "m1", "m2")
		x.reaches("m1", "derived-web", "10.0.0.1")
		x.reaches("m2", "derived-web")
		if u := x.members["m2"].Object(controllertest.Service, "shop", "derived-web"); u.GetLabels() != nil {
			t.Errorf("m2 has %v", u)
		}
		x.imports(7, "", "m3")

		// They go, and all is well.
		x.members["m2"].Remove(controllertest.Service, "shop", "derived-web")
		x.members["m3"].Remove(beta("ServiceImport"), "shop", "web")
		x.imports(80, "m1", "m3")
		x.reaches("m2", "derived-web", "10.0.0.1")
		x.wantConditions("m1", "Ready=True/Exported")
	})
}

// The namespaces of Kubernetes and of hubs hold rights: what one cluster exports there reaches no other.
func TestNamespacesOfTheSystemAreNotShared(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		x, _ := newClusterSet(t)
		for _, ns := range []string{"kube-system", "karmada-system", "argosy-system", "late"} {
			for name, m := range x.members {
				if ns == "late" && name != "m1" {
					continue // m1 alone has it
				}
				m.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
					ObjectMeta: metav1.ObjectMeta{Name: ns}})
			}
			e := &multiclusterv1alpha1.ServiceExport{TypeMeta: metav1.TypeMeta{APIVersion: "multicluster.x-k8s.io/v1beta1",
				Kind: "ServiceExport"}, ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
			x.members["m1"].Put(e)
			x.members["m1"].Put(&corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
				Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "None"}})
		}
		has := func(member, ns string) bool {
			return x.members[member].Object(beta("ServiceImport"), ns, "web") != nil
		}
		x.Eventually("m1 imports from the namespace late", func() string {
			return map[bool]string{false: "it does not"}[has("m1", "late")]
		})
		x.Quiet()
		for _, ns := range []string{"kube-system", "karmada-system", "argosy-system", "late"} {
			if has("m2", ns) {
				t.Errorf("m2 imports from %s", ns)
			}
		}
		x.members["m2"].Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: "late"}})
		x.Eventually("m2 has the namespace as well, and imports", func() string {
			return map[bool]string{false: "it does not"}[has("m2", "late")]
		})
	})
}
