package why

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

// hub is one in memory, with StatefulSets of two groups.
func hub(objects ...client.Object) (client.Reader, meta.RESTMapper) {
	apps, kruise := schema.GroupVersion{Group: "apps", Version: "v1"},
		schema.GroupVersion{Group: "apps.kruise.io", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{apps, kruise, corev1.SchemeGroupVersion})
	for _, gv := range []schema.GroupVersion{apps, kruise} {
		mapper.Add(gv.WithKind("StatefulSet"), meta.RESTScopeNamespace)
	}
	mapper.Add(apps.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"), meta.RESTScopeNamespace)
	mapper.Add(policyv1alpha1.GroupVersion.WithKind("ClusterOverridePolicy"), meta.RESTScopeRoot)
	mapper.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
	mapper.Add(ocmv1.GroupVersion.WithKind("ManifestWork"), meta.RESTScopeNamespace)
	named := func(obj client.Object) []string { return []string{obj.GetName()} }
	event := func(get func(*corev1.Event) string) client.IndexerFunc {
		return func(obj client.Object) []string { return []string{get(obj.(*corev1.Event))} }
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithIndex(&workv1alpha1.Work{}, "metadata.name", named).
		WithIndex(&appsv1.Deployment{}, "metadata.name", named).
		WithIndex(&corev1.Event{}, "type", event(func(e *corev1.Event) string { return e.Type })).
		WithIndex(&corev1.Event{}, "involvedObject.name",
			event(func(e *corev1.Event) string { return e.InvolvedObject.Name })).
		Build(), mapper
}

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func TestQueryIsAnsweredOrItsErrorExplained(t *testing.T) {
	r, mapper := hub(
		&appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: objectMeta("shop", "web")},
		&appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
			ObjectMeta: objectMeta("shop", "db")},
		&corev1.Namespace{ObjectMeta: objectMeta("", "shop")},
		&clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "eu")},
	)
	for _, c := range []struct {
		name   string
		q      Query
		reason metav1.StatusReason
		want   string // the kind, or part of the complaint
	}{
		{"by kind", Query{Kind: "Deployment", Namespace: "shop", Name: "web"}, "", "apps/v1 Deployment"},
		{"by plural and group", Query{Kind: "deployments.apps", Namespace: "shop", Name: "web"}, "", "apps/v1 Deployment"},
		{"by kind, version and group", Query{Kind: "deployment.v1.apps", Namespace: "shop", Name: "web"}, "",
			"apps/v1 Deployment"},
		{"of two kinds the one that has it", Query{Kind: "statefulset", Namespace: "shop", Name: "db"}, "",
			"apps/v1 StatefulSet"},
		{"a cluster-scoped one, whatever the namespace", Query{Kind: "namespace", Namespace: "elsewhere", Name: "shop"}, "",
			"v1 Namespace"},
		{"in one cluster", Query{Kind: "namespace", Name: "shop", Cluster: "eu"}, "", "v1 Namespace"},
		{"no name", Query{Kind: "deployment"}, metav1.StatusReasonBadRequest, "name a kind and an object"},
		{"an unknown kind", Query{Kind: "widget", Name: "x"}, metav1.StatusReasonNotFound, `the hub serves no kind "widget"`},
		{"in another namespace", Query{Kind: "deployment", Namespace: "bank", Name: "web"}, metav1.StatusReasonNotFound,
			"there is one in namespace shop: name it with -n"},
		{"nowhere", Query{Kind: "deployment", Namespace: "shop", Name: "x"}, metav1.StatusReasonNotFound,
			`the hub has no deployments.apps "x" in namespace "shop"`},
		{"neither of two kinds", Query{Kind: "statefulset", Namespace: "shop", Name: "x"}, metav1.StatusReasonNotFound,
			"no statefulsets.apps and no statefulsets.apps.kruise.io"},
		{"an unknown cluster", Query{Kind: "namespace", Name: "shop", Cluster: "us"}, metav1.StatusReasonNotFound,
			`there is no cluster "us": the fleet has eu`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := Explain(t.Context(), r, mapper, c.q)
			if c.reason == "" {
				a, _ := a.(why.Answer)
				if err != nil || a.APIVersion+" "+a.Kind != c.want || a.Name != c.q.Name || a.Only != c.q.Cluster {
					t.Errorf("got %+v, %v, want a %s", a, err, c.want)
				}
				return
			}
			var wrong *Error
			if !errors.As(err, &wrong) || wrong.Reason != c.reason || !strings.Contains(wrong.Message, c.want) {
				t.Errorf("got %v, want %s: %s", err, c.reason, c.want)
			}
		})
	}
}

func TestNameOfTwoKindsIsAmbiguous(t *testing.T) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apps.kruise.io/v1")
	u.SetKind("StatefulSet")
	u.SetNamespace("shop")
	u.SetName("db")
	r, mapper := hub(u, &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: objectMeta("shop", "db")})
	_, err := Explain(t.Context(), r, mapper, Query{Kind: "sts", Namespace: "shop", Name: "db"})
	if err == nil {
		t.Fatal("a short name that the mapper does not know is answered")
	}
	_, err = Explain(t.Context(), r, mapper, Query{Kind: "statefulset", Namespace: "shop", Name: "db"})
	if want := `"statefulset" may be statefulsets.apps or statefulsets.apps.kruise.io, and each has an object "db": name one of them`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRelatedObjectsAreCollected(t *testing.T) {
	r, mapper := hub(
		&appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: objectMeta("shop", "web")},
		&policyv1alpha1.PropagationPolicy{ObjectMeta: objectMeta("shop", "ours")},
		&policyv1alpha1.PropagationPolicy{ObjectMeta: objectMeta("bank", "theirs")},
		&policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: objectMeta("", "all")},
		&clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "eu")},
		&releasev1alpha1.Release{ObjectMeta: objectMeta("shop", "r1")},
		&releasev1alpha1.Release{ObjectMeta: objectMeta("bank", "r2")},
		&workv1alpha1.Work{ObjectMeta: objectMeta("karmada-es-eu", names.Work("Deployment", "web", "shop"))},
		&workv1alpha1.Work{ObjectMeta: objectMeta("karmada-es-eu", "another")},
		&corev1.Event{ObjectMeta: objectMeta("shop", "e1"),
			InvolvedObject: corev1.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web"}, Type: "Warning",
			Reason: "Ours"},
		&corev1.Event{ObjectMeta: objectMeta("shop", "e2"),
			InvolvedObject: corev1.ObjectReference{Kind: "Service", Namespace: "shop",
				Name: "web"}, Type: "Warning", Reason: "Another"},
		&corev1.Event{ObjectMeta: objectMeta("shop", "e3"),
			InvolvedObject: corev1.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web"}, Type: "Normal",
			Reason: "Fine"},
	)
	template, err := find(t.Context(), r, mapper, Query{Kind: "deployment", Namespace: "shop", Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := collect(t.Context(), r, template, Query{})
	if err != nil {
		t.Fatal(err)
	}
	var policies []string
	for _, p := range f.Policies {
		policies = append(policies, p.GetName())
	}
	if got := strings.Join(policies, " "); got != "ours all" && got != "all ours" {
		t.Errorf("policies %s", got)
	}
	if len(f.Releases) != 1 || len(f.Works) != 1 || len(f.Clusters) != 1 || f.Binding != nil || len(f.Warnings) != 1 ||
		f.Warnings[0].Reason != "Ours" {
		t.Errorf("works %d, clusters %d, binding %v, warnings %+v", len(f.Works), len(f.Clusters), f.Binding, f.Warnings)
	}
}

// The StatefulSet of Kubernetes has the binding with Karmada's name, so that of OpenKruise has a binding apart.
func TestBindingWithANameApartIsFound(t *testing.T) {
	kruise := schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"}
	apart := names.BindingApart(kruise, "db")
	binding := func(name, apiVersion string) *workv1alpha2.ResourceBinding {
		return &workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", name),
			Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: apiVersion,
				Kind: "StatefulSet", Namespace: "shop", Name: "db"}}}
	}
	r, _ := hub(binding(names.Binding("StatefulSet", "db"), "apps/v1"), binding(apart, "apps.kruise.io/v1"),
		&workv1alpha1.Work{ObjectMeta: objectMeta("karmada-es-eu", names.Work("StatefulSet", "db", "shop"))},
		&workv1alpha1.Work{ObjectMeta: objectMeta("karmada-es-eu", names.WorkApart(kruise, "db", "shop"))})
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apps.kruise.io/v1")
	u.SetKind("StatefulSet")
	u.SetNamespace("shop")
	u.SetName("db")
	f, err := collect(t.Context(), r, u, Query{})
	if err != nil || f.Binding == nil || f.Binding.GetName() != apart || len(f.Works) != 1 ||
		f.Works[0].Name != names.WorkApart(kruise, "db", "shop") {
		t.Errorf("found are binding %v and Works %v (%v), want %s and its Work", f.Binding, f.Works, err, apart)
	}
}

// The scheduler keeps the workloads of an affinity group together, so what why runs must know where the others are.
func TestPeersOfAnAffinityGroupAreRead(t *testing.T) {
	deployment := func(name string) *appsv1.Deployment {
		return &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: objectMeta("shop", name)}
	}
	cluster := func(name string) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", name)}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1",
			Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
		return c
	}
	binding := func(name string, together, apart string, in ...string) *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", names.Binding("Deployment", name))}
		b.UID = types.UID(name)
		b.Spec = workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1",
			Kind: "Deployment", Namespace: "shop", Name: name}, Replicas: 1, Placement: &policyv1alpha1.Placement{
			SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: "cluster", MinGroups: 1, MaxGroups: 1}}},
			WorkloadAffinityGroups: &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: together, AntiAffinityGroup: apart}}
		for _, c := range in {
			b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c, Replicas: 1})
		}
		return b
	}
	for name, c := range map[string]struct {
		own  *workv1alpha2.ResourceBinding
		want string
	}{
		"together":         {binding("web", "g", ""), "eu"},
		"apart":            {binding("web", "", "g"), "eu"},
		"none of the kind": {binding("web", "other", "g"), "eu"},
		"without a group":  {binding("web", "", ""), "ap"},
	} {
		peer := binding("db", "g", "", "eu")
		if c.own.Spec.WorkloadAffinityGroups.AntiAffinityGroup != "" {
			peer = binding("db", "", "g", "ap")
		}
		r, mapper := hub(deployment("web"), deployment("db"), cluster("ap"), cluster("eu"), c.own, peer)
		says, err := Explain(t.Context(), r, mapper, Query{Kind: "deployment", Namespace: "shop", Name: "web"})
		if err != nil {
			t.Fatal(err)
		}
		run := says.(why.Answer).Placement.Run
		if len(run) != 1 || run[0].Name != c.want {
			t.Errorf("%s: the scheduler would choose %v, want %s", name, run, c.want)
		}
	}
}

func TestAMultiClusterServicePlacesItsService(t *testing.T) {
	svc := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: objectMeta("shop", "web")}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: objectMeta("shop", "ours")}
	policy.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Service"}}
	exposing := &networkingv1alpha1.MultiClusterService{ObjectMeta: objectMeta("shop", "web")}
	exposing.Spec.Types = []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}
	r, mapper := hub(svc, policy, exposing)
	says, err := Explain(t.Context(), r, mapper, Query{Kind: "service", Namespace: "shop", Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	got := says.(why.Answer).Policy
	if got.Why != "MultiClusterService shop/web propagates it, so policies ignore it" ||
		got.Candidates[0].Why != "selects it, but a MultiClusterService propagates it" {
		t.Errorf("the policies are explained as %+v", got)
	}
}

func TestTheServiceOfAStatefulSetIsLookedFor(t *testing.T) {
	set := func(name string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
			ObjectMeta: objectMeta("shop", name), Spec: appsv1.StatefulSetSpec{ServiceName: name}}
	}
	r, _ := hub(set("web"), set("db"), &corev1.Service{ObjectMeta: objectMeta("shop", "db")},
		&workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", names.Binding("Service", "db")),
			Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Service",
				Namespace: "shop", Name: "db"}}})
	for name, there := range map[string]bool{"web": false, "db": true} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set(name))
		if err != nil {
			t.Fatal(err)
		}
		f, err := collect(t.Context(), r, &unstructured.Unstructured{Object: content}, Query{})
		if err != nil || f.Service == nil || f.Service.Name != name || f.Service.There != there ||
			(f.Service.Binding != nil) != there {
			t.Errorf("%s: %+v, %v", name, f.Service, err)
		}
	}
}

func TestOverHTTP(t *testing.T) {
	r, mapper := hub(&corev1.Namespace{ObjectMeta: objectMeta("", "shop")},
		&clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "eu")})
	h := Handler(func() (client.Reader, meta.RESTMapper, error) { return r, mapper, nil }, nil, Scheduler{}, nil)
	ask := func(method, query string, into any) int {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(method, Path+"?"+query, nil))
		if err := json.Unmarshal(rec.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v", rec.Body, err)
		}
		return rec.Code
	}
	var a why.Answer
	if code := ask(http.MethodGet, "kind=ns&name=shop", &metav1.Status{}); code != http.StatusNotFound {
		t.Errorf("a short name that the mapper does not know: %d", code)
	}
	if code := ask(http.MethodGet, "kind=namespace&name=shop", &a); code != http.StatusOK || a.Kind != "Namespace" {
		t.Errorf("%d %+v", code, a)
	}
	for method, want := range map[string]int{http.MethodGet: http.StatusBadRequest,
		http.MethodPost: http.StatusMethodNotAllowed} {
		var s metav1.Status
		if code := ask(method, "kind=namespace", &s); code != want || s.Status != metav1.StatusFailure ||
			int(s.Code) != want || s.Message == "" {
			t.Errorf("%s: %d %+v", method, code, s)
		}
	}
	broken := Handler(func() (client.Reader, meta.RESTMapper, error) { return nil, nil, errors.New("no key") }, nil,
		Scheduler{}, nil)
	rec := httptest.NewRecorder()
	broken.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, Path+"?kind=namespace&name=shop", nil))
	if rec.Code != http.StatusServiceUnavailable || !strings.Contains(rec.Body.String(), "no key") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestTheSchedulersRoomOverHTTP(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", "web-deployment")}
	b.Spec.Replicas = 4
	sets := &workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", "sets")}
	sets.Spec.Components = []workv1alpha2.Component{{Name: "head", Replicas: 1}}
	r, mapper := hub(b, sets, &clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "eu")},
		&clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "us")},
		&clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "uk")})
	var knows schedule.Capacity
	server := httptest.NewServer(RoomHandler(func() (client.Reader, meta.RESTMapper, error) { return r, mapper, nil },
		func(_ context.Context, of workv1alpha2.Binding) (schedule.Capacity, why.Limits) {
			if of.GetName() != b.Name && of.GetName() != sets.Name {
				t.Errorf("asked about %s", of.GetName())
			}
			return knows, func(cluster string) (capacity.Limit, bool) {
				if cluster == "uk" {
					t.Errorf("asked for the limit of %s, which has room for all", cluster)
				}
				return capacity.Limit{Replicas: 3, Quota: "team", Resource: "cpu"}, cluster == "eu"
			}
		}))
	defer server.Close()
	room := RoomOf(&rest.Config{Host: server.URL})
	if known, _ := room(t.Context(), b); known != nil {
		t.Error("a hub without a scheduler knows room")
	}
	knows = schedule.Answers(map[string]int32{"eu": 3, "uk": 4, "left": 9})
	got, limits := room(t.Context(), b)
	if limit, known := limits("eu"); !known || limit.Quota != "team" || limit.Resource != "cpu" {
		t.Errorf("the limit of eu: %+v, %t", limit, known)
	}
	if limit, known := limits("uk"); known {
		t.Errorf("the limit of uk: %+v", limit)
	}
	if n, known := got("eu"); n != 3 || !known {
		t.Errorf("eu: %d, %t; want 3", n, known)
	}
	for _, cluster := range []string{"us", "left"} {
		if _, known := got(cluster); known {
			t.Errorf("the room of %s is known", cluster)
		}
	}
	knows = schedule.Answers(map[string]int32{"eu": 0, "uk": 1})
	_, limits = room(t.Context(), sets)
	if limit, known := limits("eu"); !known || limit.Quota != "team" {
		t.Errorf("the limit of components in eu: %+v, %t", limit, known)
	}
	other := b.DeepCopy()
	other.Name = "none"
	if known, _ := room(t.Context(), other); known != nil {
		t.Error("there is room for a binding that is not there")
	}
}

func TestSchedulerConfigurationOverHTTP(t *testing.T) {
	r, mapper := hub()
	plugins, err := schedule.ParsePlugins([]string{"*", "-TaintToleration"})
	if err != nil {
		t.Fatal(err)
	}
	set := Scheduler{Settings: schedule.Settings{Name: "ours", Plugins: plugins, KeepEmpty: true, QuotasOff: true},
		Failover: failover.Defaults}
	set.Failover.AllBindings = false
	for field, value := range reflect.ValueOf(set.Settings).Fields() {
		if value.IsZero() {
			t.Errorf("the test does not set %s", field.Name)
		}
	}
	server := httptest.NewServer(SchedulerHandler(func() (client.Reader, meta.RESTMapper, error) { return r, mapper, nil },
		set))
	if got := SchedulerOf(t.Context(), &rest.Config{Host: server.URL}); got != set {
		t.Errorf("got %+v, want %+v", got, set)
	}
	server.Close()
	if got := SchedulerOf(t.Context(), &rest.Config{Host: server.URL}); got != (Scheduler{}) {
		t.Errorf("a hub that does not answer has %+v", got)
	}
}

func TestQuotasThatTheHubOnlyCountsRefuseNothing(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", "web-deployment")}
	b.Spec = workv1alpha2.ResourceBindingSpec{Replicas: 6, Placement: &policyv1alpha1.Placement{},
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{
			ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}}}
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "shop", "name": "web"}}}
	b.Annotations = map[string]string{wellknown.QuotaRefusedAnnotation: propagate.Digest(template)}
	limit := corev1.ResourceList{"cpu": resource.MustParse("1")}
	team := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: objectMeta("shop", "team"),
		Spec:   policyv1alpha1.FederatedResourceQuotaSpec{Overall: limit},
		Status: policyv1alpha1.FederatedResourceQuotaStatus{Overall: limit}}
	eu := &clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "eu"), Status: clusterv1alpha1.ClusterStatus{
		Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}},
		APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1",
			Resources: []clusterv1alpha1.APIResource{{Kind: "Deployment"}}}}}}
	for name, c := range map[string]struct{ off, forbidden bool }{
		"enforced": {}, "counted": {off: true}, "hidden": {forbidden: true}, "hidden and counted": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := hub(b, team, eu)
			if c.forbidden {
				r = refusing{r, "", "FederatedResourceQuota"}
			}
			f, err := collect(t.Context(), r, template, Query{
				Scheduler: Scheduler{Settings: schedule.Settings{QuotasOff: c.off}}})
			if err != nil {
				t.Fatal(err)
			}
			said := fmt.Sprint(why.Explain(f), f.Missing)
			if strings.Contains(strings.ToLower(said), "federatedresourcequota") == c.off {
				t.Errorf("off %t: %s", c.off, said)
			}
		})
	}
}

func TestPoliciesAndClustersAreExplainedByKind(t *testing.T) {
	p := &policyv1alpha1.PropagationPolicy{TypeMeta: metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(),
		Kind: "PropagationPolicy"}, ObjectMeta: objectMeta("shop", "ours")}
	p.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop"}, {APIVersion: "example.com/v1", Kind: "StatefulSet"},
		{APIVersion: "example.com/v1", Kind: "Train"},
		{APIVersion: "apps/v1", Kind: "Deploymnet"}}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", "web-deployment")}
	b.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	b.Spec.Placement, b.Spec.Clusters = &policyv1alpha1.Placement{}, []workv1alpha2.TargetCluster{{Name: "eu"}}
	template := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: objectMeta("shop", "web")}
	propagate.Claim(template, p)
	o := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: objectMeta("", "images")}
	o.Spec.ResourceSelectors = p.Spec.ResourceSelectors[:1]
	r, mapper := hub(template, &appsv1.Deployment{ObjectMeta: objectMeta("bank", "ledger")}, p, o, b,
		&clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "eu")}, &ocmv1.ManifestWork{ObjectMeta: objectMeta("eu", "shop"),
			Status: ocmv1.ManifestWorkStatus{Conditions: []metav1.Condition{{Type: ocmv1.Applied,
				Status: metav1.ConditionFalse}}}})

	says, err := Explain(t.Context(), r, mapper, Query{Kind: "propagationpolicy", Namespace: "shop", Name: "ours"})
	a, ok := says.(why.PolicyAnswer)
	if err != nil || !ok || len(a.Templates) != 1 || !a.Templates[0].Claimed || a.Templates[0].Placed != "eu" ||
		len(a.Clusters) != 1 {
		t.Errorf("%+v, %v", says, err)
	}
	if len(a.Findings) < 3 || !strings.Contains(a.Findings[0].Next, "apps/v1 or apps.kruise.io/v1") ||
		!strings.Contains(a.Findings[1].What, "does not serve the kind Train.example.com") ||
		!strings.Contains(a.Findings[2].What, "did you mean Deployment?") {
		t.Errorf("it finds %+v", a.Findings)
	}
	says, err = Explain(t.Context(), r, mapper, Query{Kind: "clusteroverridepolicy", Namespace: "shop", Name: "images"})
	if a, ok := says.(why.PolicyAnswer); err != nil || !ok || len(a.Templates) != 1 || a.Templates[0].Placed != "eu" {
		t.Errorf("%+v, %v", says, err)
	}
	says, err = Explain(t.Context(), r, mapper, Query{Kind: "cluster", Name: "eu"})
	if a, ok := says.(why.MemberAnswer); err != nil || !ok || len(a.Placed) != 1 ||
		!slices.ContainsFunc(a.Findings, func(f why.Finding) bool {
			return strings.HasPrefix(f.What, "1 ManifestWork not applied")
		}) {
		t.Errorf("%+v, %v", says, err)
	}
	orphans := func(_ context.Context, cluster string) []string {
		return []string{"Deployment shop/left in " + cluster}
	}
	ready := &clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "us")}
	meta.SetStatusCondition(&ready.Status.Conditions, membership.Seen(membership.Probe{Code: http.StatusOK}))
	withReady, _ := hub(&clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "eu")}, ready)
	for cluster, want := range map[string]bool{"eu": false, "us": true} {
		says, err = Explain(t.Context(), withReady, mapper, Query{Kind: "cluster", Name: cluster, Orphans: orphans})
		a, ok := says.(why.MemberAnswer)
		if found := slices.ContainsFunc(a.Findings, func(f why.Finding) bool {
			return strings.Contains(f.What, "left in us")
		}); err != nil || !ok || found != want {
			t.Errorf("orphans of %s are named: %v, want %v (%v)", cluster, found, want, err)
		}
	}
	says, err = Explain(t.Context(), r, mapper, Query{Kind: "manifestwork", Namespace: "eu", Name: "shop"})
	if a, ok := says.(why.ManifestWorkAnswer); err != nil || !ok || a.Name != "shop" {
		t.Errorf("%+v, %v", says, err)
	}
	rec := httptest.NewRecorder()
	Handler(func() (client.Reader, meta.RESTMapper, error) { return r, mapper, nil }, nil, Scheduler{}, nil).ServeHTTP(rec,
		httptest.NewRequest(http.MethodGet, Path+"?kind=propagationpolicy&name=ours&namespace=shop", nil))
	if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `"template":"Deployment.apps shop/web"`) {
		t.Errorf("over HTTP: %d %s", rec.Code, rec.Body)
	}
}

func TestTheReasonsOfPodsOverHTTP(t *testing.T) {
	web := &workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", "web-deployment")}
	web.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	r, mapper := hub(web)
	connect := func() (client.Reader, meta.RESTMapper, error) { return r, mapper, nil }
	pulls := func(kind, name, cluster string) pods.Workload {
		return pods.Workload{APIVersion: "apps/v1", Kind: kind, Namespace: "shop", Name: name,
			Report: pods.Report{Cluster: cluster, Pods: 3,
				Troubles: []pods.Group{{Pods: 2, Pod: name + "-1", Reason: "ImagePullBackOff"}}}}
	}
	running := false
	all := []pods.Workload{pulls("Deployment", "api", "eu"), pulls("Deployment", "web", "eu"),
		pulls("Deployment", "web", "us"), pulls("StatefulSet", "web", "eu")}
	troubled := func(_ context.Context, namespace string, of workv1alpha2.Binding) ([]pods.Workload, bool, error) {
		if namespace != "" && namespace != "shop" || (of == nil) != (namespace == "") {
			t.Errorf("asked about %q and %v", namespace, of)
		}
		return slices.Clone(all), running, nil
	}
	mux := http.NewServeMux()
	mux.Handle(PodsPath, PodsHandler(connect, troubled))
	forbid := false
	mux.HandleFunc("/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings/web-deployment/pods",
		func(w http.ResponseWriter, req *http.Request) {
			if forbid {
				apistatus.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "no")
				return
			}
			BindingPodsHandler(connect, troubled, types.NamespacedName{Namespace: "shop", Name: "web-deployment"}).ServeHTTP(w,
				req)
		})
	server := httptest.NewServer(mux)
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	if _, err := PodsOf(t.Context(), config); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("a replica without controllers says %v", err)
	}
	if got := PodsOfBinding(config)(t.Context(), web); got.In != nil || got.Unseen {
		t.Errorf("a replica without controllers says %+v", got)
	}
	running = true
	if got, err := PodsOf(t.Context(), config); err != nil || len(got.Workloads) != 4 ||
		got.Workloads[1].Troubles[0].Reason != "ImagePullBackOff" || got.More != 0 {
		t.Errorf("of all it says %+v, %v", got, err)
	}
	got := PodsOfBinding(config)(t.Context(), web)
	if len(got.In) != 2 || got.In["us"].Pods != 3 || got.Unseen {
		t.Errorf("of one it says %+v", got)
	}
	// The states of all are known, also of those whose pods have no details.
	long := strings.Repeat("x", 256)
	for i := range podsShown {
		w := pulls("Deployment", fmt.Sprint("more-", i), "eu")
		w.Troubles[0].Message = long
		w.Troubles = append(w.Troubles, pods.Group{Pods: 1, Reason: "CrashLoopBackOff", Message: long})
		all = append(all, w)
	}
	many, err := PodsOf(t.Context(), config)
	if err != nil || len(many.Workloads) != podsShown || many.More != 4 {
		t.Fatalf("of many it says %d and %d more, %v", len(many.Workloads), many.More, err)
	}
	for i, w := range many.Workloads {
		if len(w.Troubles) == 0 || w.Troubles[0].Reason != "ImagePullBackOff" || w.Troubles[0].Pods != 2 ||
			i >= podsDetailed && (w.Others != 1 || w.Troubles[0].Message != "") ||
			i >= 4 && i < podsDetailed && w.Troubles[0].Message != long {
			t.Fatalf("workload %d is %+v", i, w)
		}
	}
	if raw, _ := json.Marshal(many); len(raw) > 3<<20 {
		t.Errorf("the answer has %d bytes", len(raw))
	}
	if all[podsShown-1].Troubles[0].Message != long {
		t.Error("what the controllers know is changed")
	}
	for i := range podsDetailed {
		all = append(all, pulls("Deployment", "web", fmt.Sprint("m", i)))
	}
	if got := PodsOfBinding(config)(t.Context(), web); len(got.In) != podsDetailed+2 || got.More != 0 ||
		len(got.In[fmt.Sprint("m", podsDetailed-1)].Troubles) == 0 {
		t.Errorf("of one in many clusters it says %d and %d more", len(got.In), got.More)
	}
	forbid = true
	if got := PodsOfBinding(config)(t.Context(), web); !got.Unseen || got.In != nil {
		t.Errorf("who may not know is told %+v", got)
	}
	for name, lost := range map[string]types.NamespacedName{"another namespace": {Namespace: "bank",
		Name: "web-deployment"}, "another name": {Namespace: "shop", Name: "none"}} {
		rec := httptest.NewRecorder()
		BindingPodsHandler(connect, troubled, lost).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
		if rec.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
}
