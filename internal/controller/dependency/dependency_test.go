package dependency

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// hub has a real template store, and bindings in a fake client with the real index.
type hub struct {
	t         *testing.T
	r         *reconciler
	templates *fakedynamic.FakeDynamicClient
	client    client.Client
	recorder  *record.FakeRecorder
	writes    []string
	// needs are the dependencies of every workload; broken is why they are unknown.
	needs  []configv1alpha1.DependentObjectReference
	broken error
}

var resources = map[string]schema.GroupVersionResource{
	"ConfigMap":   {Version: "v1", Resource: "configmaps"},
	"Deployment":  {Group: "apps", Version: "v1", Resource: "deployments"},
	"ClusterTool": {Group: "example.io", Version: "v1", Resource: "clustertools"},
	"SidecarSet":  {Group: "apps.kruise.io", Version: "v1beta1", Resource: "sidecarsets"},

	"Secret":                  {Version: "v1", Resource: "secrets"},
	"ServiceAccount":          {Version: "v1", Resource: "serviceaccounts"},
	"WorkflowTemplate":        {Group: "argoproj.io", Version: "v1alpha1", Resource: "workflowtemplates"},
	"ClusterWorkflowTemplate": {Group: "argoproj.io", Version: "v1alpha1", Resource: "clusterworkflowtemplates"},
	"Workflow":                {Group: "argoproj.io", Version: "v1alpha1", Resource: "workflows"},
	"Role":                    {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	"RoleBinding":             {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	"ClusterRole":             {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"WorkloadSpread":          {Group: "apps.kruise.io", Version: "v1beta1", Resource: "workloadspreads"},
	"PersistentPodState":      {Group: "apps.kruise.io", Version: "v1beta1", Resource: "persistentpodstates"},
}

// clusterScoped are the cluster-scoped kinds among them.
var clusterScoped = []string{"ClusterTool", "SidecarSet", "ClusterWorkflowTemplate", "ClusterRole"}

// served returns a discovery client without some kinds. It has one list per group version.
func served(without ...string) *fakediscovery.FakeDiscovery {
	var served []*metav1.APIResourceList
	for kind, resource := range resources {
		if slices.Contains(without, kind) {
			continue
		}
		of := slices.IndexFunc(served, func(l *metav1.APIResourceList) bool {
			return l.GroupVersion == resource.GroupVersion().String()
		})
		if of < 0 {
			of = len(served)
			served = append(served, &metav1.APIResourceList{GroupVersion: resource.GroupVersion().String()})
		}
		served[of].APIResources = append(served[of].APIResources,
			metav1.APIResource{Name: resource.Resource, Kind: kind, Namespaced: !slices.Contains(clusterScoped, kind)})
	}
	return &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: served}}
}

func newHub(t *testing.T) *hub {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{workv1alpha2.AddToScheme, workv1alpha1.AddToScheme,
		corev1.AddToScheme, releasev1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	h := &hub{t: t, recorder: record.NewFakeRecorder(100)}
	wrote := func(verb string, obj client.Object) { h.writes = append(h.writes, verb+" "+obj.GetName()) }
	b := fake.NewClientBuilder().WithScheme(s).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			wrote("create", obj)
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			wrote("update", obj)
			return c.Update(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			wrote("delete", obj)
			return c.Delete(ctx, obj, opts...)
		},
	})
	for _, kind := range scope.Bindings.Kinds() {
		b = b.WithIndex(kind, byIndependent, independents).WithStatusSubresource(kind)
	}
	if err := scope.IndexWorks(t.Context(), controllertest.FieldIndexer(b)); err != nil {
		t.Fatal(err)
	}
	h.client = b.Build()

	lists := map[schema.GroupVersionResource]string{{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}: "CustomResourceDefinitionList"}
	for kind, resource := range resources {
		lists[resource] = kind + "List"
	}
	h.templates = fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	store := template.New(h.templates, served())
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go func() { _ = store.Start(ctx) }()
	for kind, resource := range resources {
		store.Want(schema.GroupKind{Group: resource.Group, Kind: kind})
	}
	synctest.Wait()
	h.restart(store)
	return h
}

// restart replaces the reconciler by a new one without memory.
func (h *hub) restart(store *template.Store) {
	hooks := &interpret.Hooks{Dependencies: func(context.Context,
		*unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
		return h.needs, h.broken
	}}
	h.r = &reconciler{
		Options: Options{Templates: store, Interpreter: interpret.New(interpret.Kinds{
			{Group: "apps", Kind: "Deployment"}:        hooks,
			{Group: "example.io", Kind: "ClusterTool"}: hooks,
		}, builtin.Tier())},
		client: h.client, events: commit.Events{EventRecorder: h.recorder, Successes: commit.SuccessEventsNone},
	}
}

// unserve replaces the reconciler by one of a hub that does not serve a kind.
func (h *hub) unserve(kind string) {
	h.t.Helper()
	store := template.New(h.templates, served(kind))
	ctx, stop := context.WithCancel(context.Background())
	h.t.Cleanup(stop)
	go func() { _ = store.Start(ctx) }()
	for kind, resource := range resources {
		store.Want(schema.GroupKind{Group: resource.Group, Kind: kind})
	}
	synctest.Wait()
	h.restart(store)
}

func (h *hub) mustSucceed(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// settle reconciles all bindings, including deleted ones, until nothing changes, and returns the writes.
func (h *hub) settle() []string {
	h.t.Helper()
	h.writes = nil
	keys := map[types.NamespacedName]bool{}
	for range 10 {
		h.catchUp()
		before := len(h.writes)
		for _, b := range h.bindings() {
			keys[client.ObjectKeyFromObject(b)] = true
		}
		for key := range keys {
			_, _ = h.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: key})
		}
		if len(h.writes) == before {
			return h.writes
		}
	}
	h.t.Fatalf("it never settles: %v", h.writes)
	return nil
}

func (h *hub) catchUp() { synctest.Wait() }

func (h *hub) bindings() []workv1alpha2.Binding {
	h.t.Helper()
	all, err := scope.Bindings.List(context.Background(), h.client)
	h.mustSucceed(err)
	return all
}

func object(kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "b"}}}
	u.SetGroupVersionKind(resources[kind].GroupVersion().WithKind(kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(types.UID("uid of " + name))
	u.SetResourceVersion("1")
	return u
}

func (h *hub) update(u *unstructured.Unstructured) {
	h.t.Helper()
	_, err := h.templates.Resource(resources[u.GetKind()]).Namespace(u.GetNamespace()).Update(context.Background(), u,
		metav1.UpdateOptions{})
	h.mustSucceed(err)
}

func (h *hub) create(u *unstructured.Unstructured) *unstructured.Unstructured {
	h.t.Helper()
	_, err := h.templates.Resource(resources[u.GetKind()]).Namespace(u.GetNamespace()).Create(context.Background(), u,
		metav1.CreateOptions{})
	h.mustSucceed(err)
	return u
}

// workload creates a template and its binding, scheduled to the clusters.
func (h *hub) workload(kind, namespace, name string, clusters ...string) types.NamespacedName {
	h.t.Helper()
	u := h.create(object(kind, namespace, name))
	p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p",
		Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}}
	p.Spec.PropagateDeps = true
	b, err := propagate.Binding(u, p, propagate.Meaning{ID: "id of " + name}, nil)
	h.mustSucceed(err)
	h.mustSucceed(h.client.Create(context.Background(), b))
	key := client.ObjectKeyFromObject(b)
	h.place(key, clusters...)
	return key
}

// place sets the clusters of a binding.
func (h *hub) place(key types.NamespacedName, clusters ...string) {
	h.t.Helper()
	h.change(key, func(s *workv1alpha2.ResourceBindingSpec) { s.Clusters = targets(clusters...) })
	b := h.get(key)
	b.BindingStatus().LastScheduledTime = new(metav1.Now())
	h.mustSucceed(h.client.Status().Update(context.Background(), b))
}

func targets(clusters ...string) []workv1alpha2.TargetCluster {
	var out []workv1alpha2.TargetCluster
	for _, c := range clusters {
		out = append(out, workv1alpha2.TargetCluster{Name: c})
	}
	return out
}

func (h *hub) get(key types.NamespacedName) workv1alpha2.Binding {
	h.t.Helper()
	b, err := scope.Bindings.Get(context.Background(), h.client, key)
	h.mustSucceed(err)
	return b
}

func (h *hub) change(key types.NamespacedName, change func(*workv1alpha2.ResourceBindingSpec)) {
	h.t.Helper()
	b := h.get(key)
	change(b.BindingSpec())
	h.mustSucceed(h.client.Update(context.Background(), b))
}

// going reports whether the attached binding is being deleted. Another controller removes its finalizer.
func (h *hub) going(key types.NamespacedName) bool {
	h.t.Helper()
	b, err := scope.Bindings.Get(context.Background(), h.client, key)
	return apierrors.IsNotFound(err) || b.GetDeletionTimestamp() != nil
}

var (
	settings    = types.NamespacedName{Namespace: "shop", Name: "settings-configmap"}
	settingsRef = configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop",
		Name: "settings"}
)

// eachScope runs a test with an independent binding of each scope.
func eachScope(t *testing.T, test func(t *testing.T, h *hub, independent types.NamespacedName)) {
	for name, w := range map[string]struct{ kind, namespace string }{
		"namespaced": {"Deployment", "shop"}, "cluster-scoped": {"ClusterTool", ""},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				h := newHub(t)
				h.needs = []configv1alpha1.DependentObjectReference{settingsRef}
				test(t, h, h.workload(w.kind, w.namespace, "web", "eu", "us"))
			})
		})
	}
}

func TestDependenciesFollow(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, independent types.NamespacedName) {
		h.create(object("ConfigMap", "shop", "settings"))
		if w := h.settle(); len(w) != 2 {
			t.Errorf("it wrote %v, want the record on the independent binding and the attached one", w)
		}
		b := h.get(settings)
		if s := b.BindingSpec(); s.Placement != nil || len(s.Clusters) != 0 || len(s.RequiredBy) != 1 ||
			s.RequiredBy[0].Name != independent.Name || len(s.RequiredBy[0].Clusters) != 2 {
			t.Errorf("the attached binding has %+v", s)
		}
		if !slices.Contains(slices.Collect(maps.Values(b.GetLabels())), "id of web") {
			t.Errorf("labels %v lack the independent binding's id", b.GetLabels())
		}
		i := h.get(independent)
		if a := i.GetAnnotations()[workv1alpha2.DependenciesAnnotation]; !strings.Contains(a, "settings") ||
			!slices.Contains(i.GetFinalizers(), workv1alpha2.DependenciesDistributorFinalizer) {
			t.Errorf("the independent binding has annotation %q and finalizers %v", a, i.GetFinalizers())
		}

		h.restart(h.r.Templates)
		if w := h.settle(); len(w) != 0 {
			t.Errorf("after a restart it wrote %v", w)
		}
		h.place(independent, "asia")
		h.settle()
		if c := h.get(settings).BindingSpec().RequiredBy[0].Clusters; len(c) != 1 || c[0].Name != "asia" {
			t.Errorf("it stays in %v", c)
		}
	})
}

func TestDependenciesAreDetached(t *testing.T) {
	for name, leave := range map[string]func(h *hub, independent types.NamespacedName){
		"when the template needs them no more": func(h *hub, _ types.NamespacedName) { h.needs = nil },
		"when the policy drops propagateDeps": func(h *hub, independent types.NamespacedName) {
			h.change(independent, func(s *workv1alpha2.ResourceBindingSpec) { s.PropagateDeps = false })
		},
		"when the template has no clusters": func(h *hub, independent types.NamespacedName) {
			h.place(independent)
		},
		"when the binding is deleted": func(h *hub, independent types.NamespacedName) {
			h.mustSucceed(h.client.Delete(context.Background(), h.get(independent)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachScope(t, func(t *testing.T, h *hub, independent types.NamespacedName) {
				h.create(object("ConfigMap", "shop", "settings"))
				h.settle()
				leave(h, independent)
				h.settle()
				if !h.going(settings) {
					t.Error("the attached binding stays")
				}
				if i := h.get(independent); slices.Contains(i.GetFinalizers(), workv1alpha2.DependenciesDistributorFinalizer) ||
					i.GetAnnotations()[workv1alpha2.DependenciesAnnotation] != "" {
					t.Errorf("the independent binding keeps finalizers %v and annotations %v", i.GetFinalizers(), i.GetAnnotations())
				}
			})
		})
	}
}

func TestDependencyIsReplaced(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, independent types.NamespacedName) {
		h.create(object("ConfigMap", "shop", "settings"))
		h.create(object("ConfigMap", "shop", "other"))
		h.settle()
		other := settingsRef
		other.Name = "other"
		h.needs = []configv1alpha1.DependentObjectReference{other}
		h.settle()
		if !h.going(settings) || h.going(types.NamespacedName{Namespace: "shop", Name: "other-configmap"}) {
			t.Error("the one that is needed no more stays, or the other did not come")
		}
		if a := h.get(independent).GetAnnotations()[workv1alpha2.DependenciesAnnotation]; !strings.Contains(a, "other") ||
			strings.Contains(a, "settings") {
			t.Errorf("recorded %s", a)
		}
	})
}

func TestSharedDependencyStaysForTheOther(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.needs = []configv1alpha1.DependentObjectReference{settingsRef}
		h.create(object("ConfigMap", "shop", "settings"))
		web, db := h.workload("Deployment", "shop", "web", "eu"), h.workload("Deployment", "shop", "db", "us")
		h.settle()
		if n := len(h.get(settings).BindingSpec().RequiredBy); n != 2 {
			t.Fatalf("required by %d, want 2", n)
		}
		h.mustSucceed(h.client.Delete(context.Background(), h.get(web)))
		h.settle()
		if r := h.get(settings).BindingSpec().RequiredBy; len(r) != 1 || r[0].Name != db.Name || h.going(settings) {
			t.Errorf("required by %v, want the one that is left", r)
		}
	})
}

func TestDependencyWithOwnPolicyStays(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, independent types.NamespacedName) {
		h.create(object("ConfigMap", "shop", "settings"))
		h.settle()
		h.change(settings, func(s *workv1alpha2.ResourceBindingSpec) {
			s.Placement, s.Clusters = &policyv1alpha1.Placement{}, targets("home")
		})
		if w := h.settle(); len(w) != 0 {
			t.Errorf("the two undo each other: %v", w)
		}
		h.mustSucceed(h.client.Delete(context.Background(), h.get(independent)))
		h.settle()
		if s := h.get(settings).BindingSpec(); h.going(settings) || len(s.RequiredBy) != 0 || len(s.Clusters) != 1 {
			t.Errorf("what its own policy said is lost: %+v", s)
		}
	})
}

func TestNewDependencyTriggersDependents(t *testing.T) {
	selecting := configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop",
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": "web"}}}
	for name, ref := range map[string]configv1alpha1.DependentObjectReference{"by name": settingsRef,
		"by label": selecting} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				h := newHub(t)
				h.needs = []configv1alpha1.DependentObjectReference{ref}
				independent := h.workload("Deployment", "shop", "web", "eu")
				h.settle()

				u := object("ConfigMap", "shop", "settings")
				u.SetLabels(map[string]string{"of": "web"})
				other := object("ConfigMap", "shop", "other")
				var woken []types.NamespacedName
				changed := h.r.objectChanged(func(r reconcile.Request) { woken = append(woken, r.NamespacedName) })
				changed(nil, other)
				status := u.DeepCopy()
				status.Object["status"] = map[string]any{}
				changed(u, status)
				if len(woken) != 0 {
					t.Errorf("woken %v though nothing changed for it", woken)
				}
				changed(nil, u)
				if !slices.Equal(woken, []types.NamespacedName{independent}) {
					t.Errorf("woken %v, want the dependent", woken)
				}
				woken = nil
				relabelled := u.DeepCopy()
				relabelled.SetLabels(nil)
				changed(u, relabelled)
				if !slices.Contains(woken, independent) {
					t.Error("an object that is selected no more does not wake those it leaves")
				}

				h.create(u)
				h.create(other)
				h.settle()
				if h.get(settings).BindingSpec().RequiredBy[0].Name != independent.Name || len(h.bindings()) != 2 {
					t.Errorf("%d bindings, want the dependency's and its dependent's", len(h.bindings()))
				}
			})
		})
	}
}

func TestDependencyChangeIsPropagated(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, _ types.NamespacedName) {
		u := h.create(object("ConfigMap", "shop", "settings"))
		h.settle()
		u.Object["data"] = map[string]any{"a": "c"}
		u.SetResourceVersion("2")
		_, err := h.templates.Resource(resources["ConfigMap"]).Namespace("shop").Update(context.Background(), u,
			metav1.UpdateOptions{})
		h.mustSucceed(err)
		if w := h.settle(); len(w) != 1 || h.get(settings).BindingSpec().Resource.ResourceVersion != "2" {
			t.Errorf("it wrote %v, want the attached binding alone", w)
		}
	})
}

func TestFailuresAreReportedOnce(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, independent types.NamespacedName) {
		h.create(object("ConfigMap", "shop", "settings"))
		h.settle()
		h.broken = errors.New("line 7: nil")
		for range 3 {
			_, err := h.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: independent})
			if err == nil {
				t.Error("a failure is not tried again")
			}
		}
		if n := len(h.recorder.Events); n != 2 {
			t.Errorf("%d events, want one on the binding and one on the template", n)
		}
		if e := <-h.recorder.Events; !strings.Contains(e, "GetDependenciesFailed") || !strings.Contains(e, "line 7") {
			t.Errorf("events are %q", e)
		}
		if h.going(settings) {
			t.Error("a failure took a dependency away")
		}
		output := func() *metav1.Condition {
			return meta.FindStatusCondition(h.get(independent).BindingStatus().Conditions, "InterpretDependency")
		}
		if c := output(); c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "line 7: nil") {
			t.Errorf("the condition is %+v", c)
		}
		h.broken = nil
		h.settle()
		if c := output(); c != nil {
			t.Errorf("when all is well the condition is %+v", c)
		}
	})
}

func TestTakenNameBlocksNoOther(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		other := settingsRef
		other.Name = "other"
		h.needs = []configv1alpha1.DependentObjectReference{settingsRef, other}
		for _, name := range names.Bindings(schema.GroupKind{Kind: "ConfigMap"}, "settings") {
			h.mustSucceed(h.client.Create(context.Background(), &workv1alpha2.ResourceBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: name},
				Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "example.io/v1",
					Kind: "ConfigMap", Namespace: "shop", Name: "settings"}},
			}))
		}
		h.create(object("ConfigMap", "shop", "settings"))
		h.create(object("ConfigMap", "shop", "other"))
		independent := h.workload("Deployment", "shop", "web", "eu")
		h.settle()
		if len(h.get(types.NamespacedName{Namespace: "shop", Name: "other-configmap"}).BindingSpec().RequiredBy) != 1 {
			t.Error("the other dependency did not follow")
		}
		res, err := h.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: independent})
		if err != nil || res.RequeueAfter < time.Second {
			t.Errorf("it looks again after %v, %v: too hot", res.RequeueAfter, err)
		}
		if n := len(h.recorder.Events); n != 2 {
			t.Errorf("%d events, want one on the binding and one on the template", n)
		}
	})
}

func TestDisagreeingDependentsAreReported(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.needs = []configv1alpha1.DependentObjectReference{settingsRef}
		h.create(object("ConfigMap", "shop", "settings"))
		web := h.workload("Deployment", "shop", "web", "eu")
		h.change(web, func(s *workv1alpha2.ResourceBindingSpec) { s.ConflictResolution = policyv1alpha1.ConflictOverwrite })
		h.settle()
		h.workload("Deployment", "shop", "db", "us")
		if w := h.settle(); len(w) != 2 {
			t.Errorf("it wrote %v", w)
		}
		if n := len(h.recorder.Events); n != 1 {
			t.Fatalf("%d events, want 1", n)
		}
		if e := <-h.recorder.Events; !strings.Contains(e, "DependencyPolicyConflict") ||
			!strings.Contains(e, "conflictResolution=Overwrite") {
			t.Errorf("events are %q", e)
		}
	})
}

func TestDetachedDependencyIsAttachedAgain(t *testing.T) {
	shop := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	was := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{RequiredBy: []workv1alpha2.BindingSnapshot{
		{Namespace: "shop", Name: "web", Clusters: targets("eu")}, {Namespace: "shop", Name: "db", Clusters: targets("eu")}}}}
	was.Labels = map[string]string{mark(shop("web")): "1", mark(shop("db")): "2"}
	for name, tear := range map[string]func(*workv1alpha2.ResourceBinding){
		"a snapshot taken away": func(b *workv1alpha2.ResourceBinding) { b.Spec.RequiredBy = b.Spec.RequiredBy[:1] },
		"a label taken away":    func(b *workv1alpha2.ResourceBinding) { delete(b.Labels, mark(shop("db"))) },
		"both": func(b *workv1alpha2.ResourceBinding) {
			b.Spec.RequiredBy = b.Spec.RequiredBy[:1]
			delete(b.Labels, mark(shop("db")))
		},
		"other clusters": func(b *workv1alpha2.ResourceBinding) { b.Spec.RequiredBy[1].Clusters = targets("us") },
	} {
		is := was.DeepCopy()
		tear(is)
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		(&reconciler{}).bindingChanged().UpdateFunc(t.Context(), event.TypedUpdateEvent[workv1alpha2.Binding]{ObjectOld: was,
			ObjectNew: is}, q)
		if q.Len() != 1 {
			t.Errorf("%s wakes %d bindings, want shop/db alone", name, q.Len())
		} else if got, _ := q.Get(); got.NamespacedName != shop("db") {
			t.Errorf("%s wakes %s, want shop/db", name, got)
		}
		q.ShutDown()
	}
	torn := was.DeepCopy()
	torn.Spec.RequiredBy = nil
	if marks := independents(torn); len(marks) != 2 || !strings.HasPrefix(marks[0], workv1alpha2.DependedByLabelPrefix) {
		t.Errorf("without snapshots it is found under %v", marks)
	}
}
