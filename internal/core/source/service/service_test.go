package service

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// world has the Works of an exchange, with the statuses that the clusters report.
type world struct {
	t        *testing.T
	standing map[string]*workv1alpha1.Work
	ids      int
}

func newWorld(t *testing.T) *world {
	return &world{t: t, standing: map[string]*workv1alpha1.Work{}}
}

func (w *world) works() []*workv1alpha1.Work {
	var out []*workv1alpha1.Work
	for _, work := range w.standing {
		out = append(out, work)
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] }) // no order is promised
	return out
}

func (w *world) decide(x Exchange) Decision {
	w.t.Helper()
	services := map[string]*workv1alpha1.Work{}
	for _, c := range x.Consumers {
		if work := w.standing[names.ExecutionSpace(c)+"/"+x.ServiceWorkNames()[0]]; work != nil {
			services[c] = work
		}
	}
	d, err := Decide(x, w.works(), services, func() string { w.ids++; return fmt.Sprint("id-", w.ids) })
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// settle applies decisions until nothing changes, and returns what was written. All clusters apply their Works.
func (w *world) settle(x Exchange) (writes []string) {
	w.t.Helper()
	for range 5 {
		d, busy := w.decide(x), false
		for _, work := range d.Gone {
			delete(w.standing, work.Namespace+"/"+work.Name)
			writes, busy = append(writes, "delete "+brief(work)), true
		}
		for _, work := range d.Works {
			key := work.Namespace + "/" + work.Name
			was := w.standing[key]
			if was != nil && !dispatch.Differs(was, work) {
				continue
			}
			verb := "create "
			if was != nil {
				verb, work = "update ", dispatch.Onto(was, work)
			}
			answer(work, metav1.ConditionTrue, "")
			w.standing[key] = work
			writes, busy = append(writes, verb+brief(work)), true
		}
		if !busy {
			slices.Sort(writes)
			return writes
		}
	}
	w.t.Fatal("it never settles")
	return nil
}

// answer has the cluster answer: that it has the object, or what is in its way. What was there before stays.
func answer(w *workv1alpha1.Work, status metav1.ConditionStatus, message string) {
	if status == metav1.ConditionTrue {
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{}}
	}
	w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: status, Message: message}}
}

// brief writes a Work as "cluster: kind name".
func brief(w *workv1alpha1.Work) string {
	cluster, _ := names.ClusterOf(w.Namespace)
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s: %s %s", cluster, u.GetKind(), u.GetName())
}

func sliceIn(name string, addresses ...string) Slice {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}}}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return sliceOf(name, s)
}

func imported(t *testing.T, spec string) *multiclusterv1alpha1.ServiceImport {
	t.Helper()
	i := &multiclusterv1alpha1.ServiceImport{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {namespace: shop, name: web}\nspec: "+spec), i); err != nil {
		t.Fatal(err)
	}
	return i
}

func crossCluster(t *testing.T, spec string) *networkingv1alpha1.MultiClusterService {
	t.Helper()
	s := &networkingv1alpha1.MultiClusterService{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {namespace: shop, name: web, labels: {"+
		networkingv1alpha1.MultiClusterServicePermanentIDLabel+": id}}\nspec: "+spec), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func known(x Exchange, cluster string, slices ...Slice) {
	x.Providers[cluster] = Known{Slices: slices, Listed: true, Ready: true}
}

const clusterSetIP = `{type: ClusterSetIP, ports: [{name: http, port: 80}]}`

func TestImportCreatesDerivedServiceWithAllEndpoints(t *testing.T) {
	w := newWorld(t)
	x := Import(imported(t, clusterSetIP), []string{"m1", "m2"}, []string{"m3", "m2"})
	known(x, "m1", sliceIn("web-abc", "10.0.0.2", "10.0.0.1"))
	known(x, "m2", sliceIn("web-xyz", "10.1.0.1"))

	first := w.decide(x)
	for _, work := range first.Works {
		if !strings.Contains(brief(work), "Service derived-web") {
			t.Errorf("%s is sent before the cluster has the Service", brief(work))
		}
	}
	if diff := cmp.Diff([]string{
		"create m2: EndpointSlice imported-m1-web-abc",
		"create m2: EndpointSlice imported-m2-web-xyz", // its own too: derived-web is another Service than web
		"create m2: Service derived-web",
		"create m3: EndpointSlice imported-m1-web-abc",
		"create m3: EndpointSlice imported-m2-web-xyz",
		"create m3: Service derived-web",
	}, w.settle(x)); diff != "" {
		t.Error(diff)
	}
	d := w.decide(x)
	if diff := cmp.Diff([]multiclusterv1alpha1.ClusterStatus{{Cluster: "m1"}, {Cluster: "m2"}},
		ImportStatus(d).Clusters); diff != "" {
		t.Error(diff)
	}

	// What a member gets, to the letter that others read.
	var got discoveryv1.EndpointSlice
	work := w.standing["karmada-es-m3/"+names.Work("EndpointSlice", "imported-m1-web-abc", "shop")]
	if work == nil {
		t.Fatal("the name of the Work does not match its manifest")
	}
	if err := json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &got); err != nil {
		t.Fatal(err)
	}
	if got.Labels["kubernetes.io/service-name"] != "derived-web" ||
		got.Labels["endpointslice.kubernetes.io/managed-by"] != "endpointslice-controller.karmada.io" ||
		got.Labels["karmada.io/managed"] != "true" || got.Annotations["endpointslice.karmada.io/provision-cluster"] != "m1" {
		t.Errorf("marked %v, %v", got.Labels, got.Annotations)
	}
	if got.Endpoints[0].Addresses[0] != "10.0.0.1" || got.Endpoints[1].Addresses[0] != "10.0.0.2" ||
		*got.Ports[0].Port != 8080 {
		t.Errorf("endpoints %+v, ports %+v", got.Endpoints, got.Ports)
	}
	if work.Labels["endpointslice.karmada.io/name"] != "web" ||
		work.Labels["endpointslice.karmada.io/namespace"] != "shop" {
		t.Errorf("the Work is labelled %v", work.Labels)
	}
}

func TestEndpointChangeIsOneWritePerImporter(t *testing.T) {
	w := newWorld(t)
	x := Import(imported(t, clusterSetIP), []string{"m1"}, []string{"m2", "m3"})
	known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
	w.settle(x)

	known(x, "m1", sliceIn("web-abc", "10.0.0.1", "10.0.0.9"))
	if diff := cmp.Diff([]string{"update m2: EndpointSlice imported-m1-web-abc",
		"update m3: EndpointSlice imported-m1-web-abc"}, w.settle(x)); diff != "" {
		t.Error(diff)
	}
	known(x, "m1", sliceIn("web-abc", "10.0.0.9", "10.0.0.1")) // in another order
	if got := w.settle(x); len(got) > 0 {
		t.Errorf("the same endpoints in another order: %v", got)
	}
	known(x, "m1")
	if diff := cmp.Diff([]string{"delete m2: EndpointSlice imported-m1-web-abc",
		"delete m3: EndpointSlice imported-m1-web-abc"}, w.settle(x)); diff != "" {
		t.Error(diff)
	}
}

func TestSilentProviderKeepsItsLastEndpoints(t *testing.T) {
	w := newWorld(t)
	x := Import(imported(t, clusterSetIP), []string{"m1", "m2"}, []string{"m3"})
	known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
	known(x, "m2", sliceIn("web-xyz", "10.1.0.1"))
	w.settle(x)

	// The hub restarts and m1 is silent. A new importer gets its endpoints too.
	again := Import(imported(t, clusterSetIP), []string{"m1", "m2"}, []string{"m3", "m4"})
	known(again, "m2", sliceIn("web-xyz", "10.1.0.1"))
	if diff := cmp.Diff([]string{
		"create m4: EndpointSlice imported-m1-web-abc", "create m4: EndpointSlice imported-m2-web-xyz",
		"create m4: Service derived-web",
	}, w.settle(again)); diff != "" {
		t.Error(diff)
	}
	d := w.decide(again)
	if !slices.Equal(d.Silent, []string{"m1"}) || !slices.Equal(d.From, []string{"m1", "m2"}) {
		t.Errorf("silent %v, from %v", d.Silent, d.From)
	}

	// It exports no more: then silence keeps nothing.
	left := Import(imported(t, clusterSetIP), []string{"m2"}, []string{"m3", "m4"})
	known(left, "m2", sliceIn("web-xyz", "10.1.0.1"))
	if diff := cmp.Diff([]string{"delete m3: EndpointSlice imported-m1-web-abc",
		"delete m4: EndpointSlice imported-m1-web-abc"}, w.settle(left)); diff != "" {
		t.Error(diff)
	}
}

func TestLastEndpointsOfSilentProviderSurviveImporterChange(t *testing.T) {
	w := newWorld(t)
	x := Import(imported(t, clusterSetIP), []string{"m1"}, []string{"m2"})
	known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
	w.settle(x)

	// The hub starts again, m1 is silent, and m3 imports instead of m2; it does not have the derived Service yet.
	swapped := Import(imported(t, clusterSetIP), []string{"m1"}, []string{"m3"})
	if diff := cmp.Diff([]string{"create m3: EndpointSlice imported-m1-web-abc", "create m3: Service derived-web",
		"delete m2: EndpointSlice imported-m1-web-abc", "delete m2: Service derived-web"}, w.settle(swapped)); diff != "" {
		t.Error(diff)
	}

	// Without importers nothing is kept.
	if diff := cmp.Diff([]string{"delete m3: EndpointSlice imported-m1-web-abc", "delete m3: Service derived-web"},
		w.settle(Import(imported(t, clusterSetIP), []string{"m1"}, nil))); diff != "" {
		t.Error(diff)
	}
}

func TestClusterWithRefusedServiceGetsNoEndpoints(t *testing.T) {
	w := newWorld(t)
	x := Import(imported(t, clusterSetIP), []string{"m1"}, []string{"m2"})
	known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
	d := w.decide(x)
	work := d.Works[0]
	answer(work, metav1.ConditionFalse, "resource(kind=Service, shop/derived-web) already exists")
	w.standing[work.Namespace+"/"+work.Name] = work

	if d = w.decide(x); len(d.Works) != 1 {
		t.Errorf("%d Works, want the Service alone", len(d.Works))
	}
	if diff := cmp.Diff([]string{`cluster "m2": resource(kind=Service, shop/derived-web) already exists`},
		Refused(d, w.works())); diff != "" {
		t.Error(diff)
	}

	// A temporary failure does not withdraw endpoints.
	answer(work, metav1.ConditionTrue, "")
	w.settle(x)
	answer(w.standing[work.Namespace+"/"+work.Name], metav1.ConditionFalse, `cluster "m2" is not ready`)
	if got := w.settle(x); len(got) > 0 {
		t.Errorf("a cluster that is away for a while: %v", got)
	}

	// Where the Service is somebody else's by now, or is not sent any more, they go.
	service := w.standing[work.Namespace+"/"+work.Name]
	service.Status.ManifestStatuses = nil
	if d = w.decide(x); len(d.Works) != 1 || len(d.Gone) != 1 {
		t.Errorf("the Service is another's: %d Works and %d that go, want 1 and 1", len(d.Works), len(d.Gone))
	}
	if d, err := Decide(x, w.works(), nil, func() string { return "id" }); err != nil || len(d.Gone) != 1 {
		t.Errorf("it is not sent the Service: %v, and %d Works go, want 1", err, len(d.Gone))
	}
}

func TestProviderWithoutServiceOffersNoEndpoints(t *testing.T) {
	work := func(status metav1.ConditionStatus, message string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		if status != "" {
			answer(w, status, message)
		}
		return w
	}
	silent := work("True", "")
	answer(silent, "False", "cluster is not reachable")
	for _, c := range []struct {
		name          string
		work          *workv1alpha1.Work
		fresh, before bool // whether it offers at first, and when it did before
	}{
		{"it has it", work("True", ""), true, true},
		{"it has it, and is silent now", silent, true, true},
		{"it has not said", work("", ""), false, true},
		{"it is somebody else's there", work("False", "already exists"), false, false},
		{"it is not sent there", nil, false, false},
	} {
		x := CrossCluster(crossCluster(t,
			`{types: [CrossCluster], providerClusters: [{name: m1}], consumerClusters: [{name: m2}]}`), []string{"m1", "m2"})
		known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
		services := map[string]*workv1alpha1.Work{"m1": c.work, "m2": work("True", "")}
		offers := func(standing ...*workv1alpha1.Work) (*workv1alpha1.Work, bool) {
			d, err := Decide(x, standing, services, func() string { return "id" })
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Works) == 0 {
				return nil, false
			}
			return d.Works[0], true
		}
		if _, got := offers(); got != c.fresh {
			t.Errorf("%s: at first it offers: %t", c.name, got)
		}
		services["m1"] = work("True", "")
		standing, _ := offers()
		services["m1"] = c.work
		if _, got := offers(standing); got != c.before {
			t.Errorf("%s: where it did before it offers: %t", c.name, got)
		}
	}
}

func TestDerivedServiceMatchesImport(t *testing.T) {
	s := derived(imported(t, `{type: Headless, ports: [{port: 53, protocol: UDP, appProtocol: dns}], sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}}`))
	if s.Name != "derived-web" || s.Spec.ClusterIP != "None" || s.Spec.SessionAffinity != "ClientIP" ||
		*s.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds != 5 || len(s.Spec.Selector) > 0 {
		t.Errorf("%+v", s.Spec)
	}
	if p := s.Spec.Ports[0]; p.Port != 53 || p.Protocol != "UDP" || *p.AppProtocol != "dns" {
		t.Errorf("port %+v", p)
	}
	if s := derived(imported(t, clusterSetIP)); s.Spec.ClusterIP != "" || s.Spec.Ports[0].Protocol != "TCP" ||
		s.Spec.Ports[0].Name != "http" {
		t.Errorf("%+v", s.Spec)
	}
}

func TestMissingPortIsReported(t *testing.T) {
	dns := Slice{Name: "a", Ports: []discoveryv1.EndpointPort{{Name: new("dns"), Protocol: new(corev1.ProtocolUDP),
		Port: new(int32(53))}}}
	for _, c := range []struct {
		name, ports string
		slices      []Slice
		want        string
	}{
		{"named alike", `[{name: http, port: 80}]`, []Slice{sliceIn("a", "10.0.0.1")}, ""},
		{"named otherwise", `[{name: web, port: 80}, {name: http, port: 81}, {port: 82}]`, []Slice{sliceIn("a", "10.0.0.1")},
			`"web" (TCP) "" (TCP)`},
		{"of another protocol", `[{name: http, port: 80, protocol: UDP}]`, []Slice{sliceIn("a", "10.0.0.1")}, `"http" (UDP)`},
		{"of the same protocol", `[{name: dns, port: 53, protocol: UDP}]`, []Slice{dns}, ""},
		{"whose protocol the import leaves out", `[{name: dns, port: 53}]`, []Slice{dns}, `"dns" (TCP)`},
		{"without a pod there are no ports", `[{name: web, port: 80}]`, []Slice{{Name: "a"}}, ""},
		{"nobody exports it", `[{name: web, port: 80}]`, nil, ""},
	} {
		x := Import(imported(t, `{type: ClusterSetIP, ports: `+c.ports+`}`), []string{"m1"}, []string{"m2"})
		known(x, "m1", c.slices...)
		if got := strings.Join(newWorld(t).decide(x).Portless, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestConsumersGetEndpointsOfOtherProviders(t *testing.T) {
	w := newWorld(t)
	s := crossCluster(t, `{types: [CrossCluster], providerClusters: [{name: m1}, {name: m2}], consumerClusters: [{name: m2}, {name: m3}]}`)
	x := CrossCluster(s, []string{"m1", "m2", "m3", "m4"})
	known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
	known(x, "m2", sliceIn("web-xyz", "10.1.0.1"))
	// The Service comes by its binding.
	for _, c := range []string{"m1", "m2", "m3"} {
		service := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(c),
			Name: names.Work("Service", "web", "shop")}}
		answer(service, metav1.ConditionTrue, "")
		w.standing[service.Namespace+"/"+service.Name] = service
	}
	services := map[string]*workv1alpha1.Work{}
	for key, work := range w.standing {
		cluster, _ := names.ClusterOf(work.Namespace)
		services[cluster] = work
		delete(w.standing, key)
	}
	d, err := Decide(x, nil, services, func() string { return "id" })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, work := range d.Works {
		got = append(got, brief(work))
		if work.Labels["multiclusterservice.karmada.io/name"] != "web" ||
			work.Annotations["endpointslice.karmada.io/provision-cluster"] == "" {
			t.Errorf("%s is marked %v, %v", brief(work), work.Labels, work.Annotations)
		}
	}
	if diff := cmp.Diff([]string{"m2: EndpointSlice m1-web-abc", "m3: EndpointSlice m1-web-abc",
		"m3: EndpointSlice m2-web-xyz"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWorkOfBindingHasNoOwner(t *testing.T) {
	w := &workv1alpha1.Work{}
	for _, c := range []struct {
		name  string
		notes map[string]string
		want  bool
	}{
		{"an exchange's", map[string]string{wellknown.ServiceOfAnnotation: "ServiceImport/shop/web"}, true},
		{"no owner", nil, false},
		{"a template's that took it", map[string]string{wellknown.ServiceOfAnnotation: "ServiceImport/shop/web",
			workv1alpha2.ResourceBindingNameAnnotation: "derived-web-service"}, false},
		{"a cluster-scoped template's", map[string]string{wellknown.ServiceOfAnnotation: "ServiceImport/shop/web",
			workv1alpha2.ClusterResourceBindingNameAnnotation: "x"}, false},
	} {
		w.Annotations = c.notes
		if owner, got := OwnerOf(w); got != c.want {
			t.Errorf("%s: it is %s's: %t, want %t", c.name, owner, got, c.want)
		}
	}
}

func TestClustersOfMultiClusterService(t *testing.T) {
	for _, c := range []struct{ name, spec, providers, consumers, missing string }{
		{"all by default", `{types: [CrossCluster]}`, "a b c", "a b c", ""},
		{"as named", `{types: [CrossCluster], providerClusters: [{name: b}, {name: a}, {name: b}], consumerClusters: [{name: c}]}`, "a b", "c", ""},
		{"the earlier fields", `{types: [CrossCluster], serviceProvisionClusters: [a], serviceConsumptionClusters: [b]}`, "a",
			"b", ""},
		{"the later fields count", `{types: [CrossCluster], providerClusters: [{name: b}], serviceProvisionClusters: [a]}`,
			"b", "a b c", ""},
		{"one that is not there", `{types: [CrossCluster], providerClusters: [{name: x}], consumerClusters: [{name: a}, {name: z}]}`, "", "a", "x z"},
	} {
		got := ClustersOf(crossCluster(t, c.spec), []string{"c", "a", "b"})
		if p, k, m := strings.Join(got.Providers, " "), strings.Join(got.Consumers, " "),
			strings.Join(got.Missing, " "); p != c.providers || k != c.consumers || m != c.missing {
			t.Errorf("%s: %q, %q and %q are missing; want %q, %q, %q", c.name, p, k, m, c.providers, c.consumers, c.missing)
		}
	}
}

func TestSliceOmitsClusterSpecificFields(t *testing.T) {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "web-abc"}, AddressType: "IPv4",
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.2"}, NodeName: new("node-1"), Zone: new("z"), Hostname: new("h"),
				Conditions: discoveryv1.EndpointConditions{Ready: new(false)},
				Hints:      &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z"}}}},
		}}
	got, ok := SliceOf(s)
	want := []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.2"}, Zone: new("z"), Hostname: new("h"),
		Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}}
	if diff := cmp.Diff(want, got.Endpoints); !ok || diff != "" {
		t.Errorf("counts: %v\n%s", ok, diff)
	}
	s.Annotations = map[string]string{ProvisionClusterAnnotation: "m1", workv1alpha2.WorkNameAnnotation: "w"}
	if _, ok := SliceOf(s); ok {
		t.Error("a slice from another cluster counts as the cluster's own and would circulate")
	}
	s.Annotations = map[string]string{workv1alpha2.WorkNameAnnotation: "w"}
	if _, ok := SliceOf(s); !ok {
		t.Error("a slice that the cluster mirrors from Endpoints that a policy sent does not count")
	}
}

func TestConditionsNameClusterAndReasonOfRefusal(t *testing.T) {
	work := func(cluster string, status metav1.ConditionStatus, message string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(cluster), Name: "w"}}
		if status != "" {
			answer(w, status, message)
		}
		return w
	}
	applied, refused, fresh := work("m1", "True", ""), work("m2", "False", "it exists"), work("m3", "", "")
	bound := func(seen int64, why string, clusters ...string) workv1alpha2.Binding {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		b.Spec.Resource = workv1alpha2.ObjectReference{Namespace: "shop", Name: "web"}
		for _, c := range clusters {
			b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
		}
		b.Status.SchedulerObservedGeneration = seen
		c := metav1.Condition{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue,
			Message: workv1alpha2.MessageScheduled}
		if why != "" {
			c.Status, c.Message = metav1.ConditionFalse, why
		}
		b.Status.Conditions = []metav1.Condition{c}
		return b
	}
	only := map[string]*workv1alpha1.Work{"m1": applied}
	for _, c := range []struct {
		name     string
		binding  workv1alpha2.Binding
		services map[string]*workv1alpha1.Work
		trouble  string
		want     string
	}{
		{"all have it", bound(2, "", "m1", "m2"), map[string]*workv1alpha1.Work{"m1": applied, "m2": applied}, "",
			"True ServiceAppliedSucceed: Service is propagated to target clusters."},
		{"one refused it", nil, map[string]*workv1alpha1.Work{"m1": applied, "m2": refused}, "",
			`False ServiceAppliedFailed: cluster "m2": it exists`},
		{"one has not said", bound(2, "", "m1", "m2"), map[string]*workv1alpha1.Work{"m1": applied, "m2": fresh}, "",
			"Unknown Applying: The Service is not yet applied in m2."},
		{"one is not sent it yet", bound(2, "", "m1", "m2"), only, "",
			"Unknown Applying: The Service is not yet applied in m2."},
		{"one is not scheduled yet", bound(1, "", "m1"), only, "", "Unknown Applying: The Service is not yet applied in m2."},
		{"one is left out", bound(2, "", "m1"), only, "",
			"False ServiceAppliedFailed: the Service is not placed in m2: it may be cordoned or tainted; see `argosy why service/web -n shop`"},
		{"it fits nowhere", bound(2, "0/2 clusters are available"), nil, "",
			"False ServiceAppliedFailed: the Service is not placed in m1, m2: 0/2 clusters are available"},
		{"there is none", nil, nil, "there is no Service", "False ServiceAppliedFailed: there is no Service"},
	} {
		got := ServiceApplied([]string{"m1", "m2"}, c.binding, c.services, c.trouble)
		if text := fmt.Sprintf("%s %s: %s", got.Status, got.Reason, got.Message); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
	for _, c := range []struct {
		name     string
		d        Decision
		standing []*workv1alpha1.Work
		want     string
	}{
		{"all know them", Decision{Works: []*workv1alpha1.Work{applied}}, []*workv1alpha1.Work{applied},
			"True EndpointSliceDispatchedSucceed: EndpointSlice are dispatched successfully"},
		{"one refused", Decision{Works: []*workv1alpha1.Work{refused}}, []*workv1alpha1.Work{applied, refused},
			`False EndpointSliceDispatchedFailed: cluster "m2": it exists`},
		{"one that goes refused", Decision{Gone: []*workv1alpha1.Work{refused}}, []*workv1alpha1.Work{refused},
			"True EndpointSliceDispatchedSucceed: EndpointSlice are dispatched successfully"},
		{"one is silent", Decision{Silent: []string{"m4"}}, nil,
			"Unknown ProviderSilent: No report from m4; its last known state is used."},
		{"one is silent, and another about to answer", Decision{Silent: []string{"m4"}, Soon: []string{"m5"}}, nil,
			"Unknown ProviderSilent: No report from m4; its last known state is used."},
		{"one is about to answer", Decision{Soon: []string{"m5"}}, nil, "True Before: as it was"},
	} {
		got := Dispatched(c.d, c.standing, "", &metav1.Condition{Type: "EndpointSliceDispatched", Status: "True",
			Reason: "Before", Message: "as it was"})
		if text := fmt.Sprintf("%s %s: %s", got.Status, got.Reason, got.Message); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}

func TestProviderWithoutDataIsReported(t *testing.T) {
	if got := Dispatched(Decision{Soon: []string{"m5"}}, nil, "", nil); got.Status != metav1.ConditionUnknown ||
		!strings.Contains(got.Message, "m5") {
		t.Errorf("%+v", got)
	}
}

func TestServiceIsClaimedFromPolicyAndReleased(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service"}}
	template.SetNamespace("shop")
	template.SetName("web")
	template.SetUID("uid")
	template.SetLabels(map[string]string{"app": "web", policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"})
	template.SetAnnotations(map[string]string{policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop",
		policyv1alpha1.PropagationPolicyNameAnnotation: "p"})
	s := crossCluster(t, `{types: [CrossCluster]}`)
	me := Owner{"MultiClusterService", "shop", "web"}

	got := Claim(template, s)
	if got == nil || got.GetLabels()[policyv1alpha1.ClaimedByLabel] != "MultiClusterService" ||
		got.GetLabels()[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" || !Claims(me, got) {
		t.Fatalf("claimed: %v", got)
	}
	if again := Claim(got, s); again != nil {
		t.Error("a claim that stands is written again")
	}
	b, err := Binding(got, s, Clusters{Providers: []string{"m1"}, Consumers: []string{"m2"}, Missing: []string{"m9"}}, nil,
		"id")
	if err != nil {
		t.Fatal(err)
	}
	if !Claims(me, b) || b.GetName() != "web-service" ||
		!slices.Equal(b.BindingSpec().Placement.ClusterAffinity.ClusterNames, []string{"m1", "m2", "m9"}) ||
		b.GetLabels()[workv1alpha2.BindingManagedByLabel] != "MultiClusterService" ||
		b.BindingSpec().ConflictResolution != policyv1alpha1.ConflictAbort {
		t.Errorf("binding %+v", b)
	}
	again, err := Binding(got, s, Clusters{Providers: []string{"m1"}, Consumers: []string{"m2"}, Missing: []string{"m9"}},
		b, "other")
	if diff := cmp.Diff(b, again); err != nil || diff != "" {
		t.Errorf("a second look changes the binding: %v %s", err, diff)
	}
	Unclaim(got)
	if Claims(me, got) || got.GetLabels()["app"] != "web" || len(got.GetLabels()) != 1 || len(got.GetAnnotations()) != 0 {
		t.Errorf("released: %v %v", got.GetLabels(), got.GetAnnotations())
	}
}

// After any history each consumer has exactly the providers' endpoints, and nothing is written twice.
func TestAnyHistoryConverges(t *testing.T) {
	all := []string{"m1", "m2", "m3", "m4"}
	seeds := uint64(200)
	if testing.Short() {
		seeds /= 10
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		some := func() (out []string) {
			for _, c := range all {
				if r.IntN(2) == 0 {
					out = append(out, c)
				}
			}
			return out
		}
		w := newWorld(t)
		var x Exchange
		for range 6 {
			x = Import(imported(t, clusterSetIP), some(), some())
			for _, p := range all {
				if _, provides := x.Providers[p]; !provides || r.IntN(3) == 0 {
					continue // silent
				}
				var list []Slice
				for i := range r.IntN(3) {
					list = append(list, sliceIn(fmt.Sprint("web-", i), fmt.Sprintf("10.%d.0.%d", i, r.IntN(200))))
				}
				known(x, p, list...)
			}
			w.settle(x)
		}
		want := map[string]bool{}
		d := w.decide(x)
		for _, c := range x.Consumers {
			want[c+": Service derived-web"] = true
			for p, k := range x.Providers {
				for _, s := range k.Slices {
					want[fmt.Sprintf("%s: EndpointSlice imported-%s-%s", c, p, s.Name)] = true
				}
			}
		}
		silent := func(b string) bool {
			return slices.ContainsFunc(d.Silent, func(p string) bool { return strings.Contains(b, "imported-"+p+"-") })
		}
		for _, work := range w.standing {
			b := brief(work)
			if !want[b] && !silent(b) {
				t.Fatalf("seed %d: %s exists but has no owner", seed, b)
			}
			delete(want, b)
		}
		if len(want) > 0 {
			t.Fatalf("seed %d: missing %v", seed, want)
		}
	}
}

// A broken cluster with very many slices must not fill the hub's store: each slice is a Work per consumer.
func TestNumberOfSharedSlicesIsLimited(t *testing.T) {
	var many, large []Slice
	for i := range 5000 {
		many = append(many, sliceIn(fmt.Sprintf("web-%04d", i), "10.0.0.1"))
	}
	for i := range 10 {
		var addresses []string
		for j := range 50_000 {
			addresses = append(addresses, fmt.Sprintf("10.%d.%d.%d", i, j/250, j%250))
		}
		large = append(large, sliceIn(fmt.Sprintf("web-%d", i), addresses...))
	}
	for name, c := range map[string]struct {
		slices   []Slice
		most     int
		wantText string
	}{
		"many":  {many, 100, `cluster "m1": only 100 of its 5000 EndpointSlices of the Service are shared`},
		"large": {large, 2, "of its 10 EndpointSlices of the Service"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x := Import(imported(t, clusterSetIP), []string{"m1", "m2"}, []string{"m3"})
			known(x, "m1", c.slices...)
			known(x, "m2", sliceIn("web-xyz", "10.1.0.1"))
			w.settle(x)
			d := w.decide(x)
			from := map[string]int{}
			for _, work := range d.Works {
				from[work.Annotations[ProvisionClusterAnnotation]]++
			}
			if from["m1"] > c.most || from["m2"] != 1 || from[""] != 1 {
				t.Errorf("made are %v, want %d of m1 at most, the other provider's and the Service", from, c.most)
			}
			if wantText := Refused(d, w.works()); len(wantText) != 1 || !strings.Contains(wantText[0], c.wantText) {
				t.Errorf("got %q, want %q", wantText, c.wantText)
			}
			if got := w.settle(x); len(got) > 0 {
				t.Errorf("a second time it writes %.200v", got)
			}
			known(x, "m1", c.slices[0])
			w.settle(x)
			if wantText := Refused(w.decide(x), w.works()); len(wantText) > 0 && name == "many" {
				t.Errorf("with one slice: got %q", wantText)
			}
		})
	}
}

// endpointsIn returns the EndpointSlices as "consumer: name".
func (w *world) endpointsIn() (all []string) {
	for _, work := range w.standing {
		if work.Annotations[ProvisionClusterAnnotation] != "" {
			all = append(all, strings.Replace(brief(work), "EndpointSlice ", "", 1))
		}
	}
	slices.Sort(all)
	return all
}

func TestLostProviderIsWithdrawnWhileAnotherServes(t *testing.T) {
	w := newWorld(t)
	x := Import(imported(t, clusterSetIP), []string{"m1", "m2"}, []string{"m1", "m3", "m4"})
	known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
	known(x, "m2", sliceIn("web-xyz", "10.1.0.1"))
	w.settle(x)

	x.Lost = map[string]bool{"m1": true, "m4": true}
	if diff := cmp.Diff([]string{"delete m3: EndpointSlice imported-m1-web-abc"}, w.settle(x)); diff != "" {
		t.Errorf("clusters that are lost keep what they have: %s", diff)
	}
	d := w.decide(x)
	if !slices.Equal(d.Withdrawn, []string{"m1"}) || !slices.Equal(d.From, []string{"m2"}) {
		t.Errorf("withdrawn %v, from %v", d.Withdrawn, d.From)
	}
	c := Dispatched(d, w.works(), "", nil)
	if c.Status != metav1.ConditionUnknown || c.Reason != EventProviderLost || !strings.Contains(c.Message, "m1") {
		t.Errorf("the condition is %+v", c)
	}

	// The hub starts again while m1 is lost: nothing returns before m1 does.
	x.Undecided, x.Lost = x.Lost, nil // the conditions of the clusters may be out of date
	x.Providers["m1"], x.Providers["m2"] = Known{}, Known{Ready: true}
	if got := w.settle(x); len(got) > 0 {
		t.Errorf("a start wrote %v", got)
	}
	if d := w.decide(x); !slices.Equal(d.Withdrawn, []string{"m1"}) || !slices.Equal(d.From, []string{"m2"}) {
		t.Errorf("after a start, withdrawn %v, from %v", d.Withdrawn, d.From)
	}
	x.Lost, x.Undecided = x.Undecided, nil
	if got := w.settle(x); len(got) > 0 {
		t.Errorf("once conditions are up to date, the hub wrote %v", got)
	}
	known(x, "m2", sliceIn("web-xyz", "10.1.0.1"))
	if got := w.settle(x); len(got) > 0 {
		t.Errorf("the first list wrote %v", got)
	}
	known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
	x.Lost = nil
	if diff := cmp.Diff([]string{"create m3: EndpointSlice imported-m1-web-abc"}, w.settle(x)); diff != "" {
		t.Error(diff)
	}
	if d := w.decide(x); len(d.Withdrawn) > 0 || WithdrawnMessage(d) != "" {
		t.Errorf("withdrawn %v", d.Withdrawn)
	}
}

func TestStartKeepsTheReportOfAWithdrawnProviderWithoutWorks(t *testing.T) {
	w := newWorld(t)
	x := Import(imported(t, clusterSetIP), []string{"m1", "m2"}, []string{"m3"})
	known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
	known(x, "m2", sliceIn("web-xyz", "10.1.0.1"))
	w.settle(x)
	x.Lost = map[string]bool{"m1": true}
	w.settle(x)
	before := Dispatched(w.decide(x), w.works(), "", nil)

	x.Providers["m1"], x.Providers["m2"] = Known{}, Known{Ready: true}
	if diff := cmp.Diff(before, Dispatched(w.decide(x), w.works(), "", nil)); diff != "" {
		t.Error(diff)
	}
	x.Lost, x.Undecided = nil, x.Lost
	if diff := cmp.Diff(before, Dispatched(w.decide(x), w.works(), "", nil)); diff != "" {
		t.Errorf("before conditions are up to date: %s", diff)
	}
}

func TestUndecidedProviderKeepsItsConsumers(t *testing.T) {
	w := newWorld(t)
	x := Import(imported(t, clusterSetIP), []string{"m1", "m2"}, []string{"m3"})
	known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
	known(x, "m2", sliceIn("web-xyz", "10.1.0.1"))
	w.settle(x)
	x.Undecided = map[string]bool{"m1": true}
	if got := w.settle(x); len(got) > 0 {
		t.Errorf("written: %v", got)
	}
	if d := w.decide(x); len(d.Withdrawn) > 0 || !slices.Equal(d.From, []string{"m1", "m2"}) {
		t.Errorf("withdrawn %v, from %v", d.Withdrawn, d.From)
	}
	known(x, "m1", sliceIn("web-new", "10.0.0.2"))
	if diff := cmp.Diff([]string{"create m3: EndpointSlice imported-m1-web-new",
		"delete m3: EndpointSlice imported-m1-web-abc"}, w.settle(x)); diff != "" {
		t.Error(diff)
	}
}

func TestLostProviderStaysIfNoOtherServes(t *testing.T) {
	for _, c := range []struct {
		name  string
		other Known
		lost  bool
	}{
		{"the other has no endpoints", Known{Listed: true, Ready: true}, false},
		{"the other's endpoints are not ready", Known{Listed: true, Ready: true, Slices: []Slice{func() Slice {
			s := sliceIn("web-xyz", "10.1.0.1")
			s.Endpoints[0].Conditions.Ready = new(false)
			return s
		}()}}, false},
		{"the other is lost, too", Known{Listed: true, Ready: true, Slices: []Slice{sliceIn("web-xyz", "10.1.0.1")}}, true},
		{"the other is not Ready", Known{Listed: true, Slices: []Slice{sliceIn("web-xyz", "10.1.0.1")}}, false},
		{"the other has not answered", Known{}, false},
	} {
		w := newWorld(t)
		x := Import(imported(t, clusterSetIP), []string{"m1", "m2"}, []string{"m3"})
		known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
		known(x, "m2", sliceIn("web-xyz", "10.1.0.1"))
		w.settle(x)
		x.Lost, x.Providers["m2"] = map[string]bool{"m1": true, "m2": c.lost}, c.other
		w.settle(x)
		if !slices.Contains(w.endpointsIn(), "m3: imported-m1-web-abc") {
			t.Errorf("%s: m3 has only %v", c.name, w.endpointsIn())
		}
	}
}

func TestLostProviderOfAMultiClusterServiceReturns(t *testing.T) {
	x := CrossCluster(crossCluster(t, `{types: [CrossCluster], providerClusters: [{name: m1}, {name: m2}], consumerClusters: [{name: m3}]}`), []string{"m1", "m2", "m3"})
	known(x, "m1", sliceIn("web-abc", "10.0.0.1"))
	known(x, "m2", sliceIn("web-xyz", "10.1.0.1"))
	x.Lost = map[string]bool{"m1": true}
	services := map[string]*workv1alpha1.Work{}
	for _, c := range []string{"m1", "m2", "m3"} {
		services[c] = &workv1alpha1.Work{}
		answer(services[c], metav1.ConditionTrue, "")
	}
	answer(services["m1"], metav1.ConditionFalse, "cluster is not reachable")
	decide := func() Decision {
		d, err := Decide(x, nil, services, func() string { return "id" })
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := decide(); !slices.Equal(d.Withdrawn, []string{"m1"}) || len(d.Works) != 1 {
		t.Errorf("withdrawn %v, and %d Works", d.Withdrawn, len(d.Works))
	}
	// m2 stops serving, so the endpoints of m1 are better than none, though no Work has them any more.
	known(x, "m2")
	if d := decide(); !slices.Equal(d.From, []string{"m1"}) || len(d.Works) != 1 {
		t.Errorf("from %v, and %d Works", d.From, len(d.Works))
	}
	// m1 returns, and refuses the Service as it is now: no Work shows that it had it.
	x.Lost = nil
	if d := decide(); !slices.Equal(d.From, []string{"m1"}) {
		t.Errorf("from %v", d.From)
	}
	// A Service of that name that was never the hub's provides nothing.
	services["m1"].Status.ManifestStatuses = nil
	if d := decide(); len(d.From)+len(d.Withdrawn) > 0 {
		t.Errorf("from %v, withdrawn %v", d.From, d.Withdrawn)
	}
}
