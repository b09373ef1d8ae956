package propagate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// hub is a hub in memory: templates behind a real store, policies and bindings behind a fake client with the real
// indexes.
type hub struct {
	t         *testing.T
	r         *reconciler
	templates *fakedynamic.FakeDynamicClient
	client    client.Client
	recorder  *record.FakeRecorder
	// writes are the writes that reached the server since the last settle, in order.
	writes []string
	placed bool
}

var resources = map[string]schema.GroupVersionResource{
	"ConfigMap":   {Version: "v1", Resource: "configmaps"},
	"ClusterRole": {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"Service":     {Version: "v1", Resource: "services"},

	"Workflow":        {Group: "argoproj.io", Version: "v1alpha1", Resource: "workflows"},
	"AdvancedCronJob": {Group: "apps.kruise.io", Version: "v1beta1", Resource: "advancedcronjobs"},
}

func newHub(t *testing.T) *hub {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		policyv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
		schedulingv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, networkingv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	h := &hub{t: t, recorder: record.NewFakeRecorder(100)}
	wrote := func(verb string, obj client.Object) {
		h.writes = append(h.writes, strings.TrimPrefix(fmt.Sprintf("%s %T", verb, obj), "*"))
	}
	b := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&workv1alpha2.ResourceBinding{},
		&workv1alpha2.ClusterResourceBinding{}).WithInterceptorFuncs(interceptor.Funcs{
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
	for _, i := range indexes() {
		b = b.WithIndex(i.object, i.field, i.values)
	}
	if err := scope.IndexWorks(t.Context(), controllertest.FieldIndexer(b)); err != nil {
		t.Fatal(err)
	}
	h.client = b.Build()
	lists := map[schema.GroupVersionResource]string{
		resources["ConfigMap"]:       "ConfigMapList",
		resources["ClusterRole"]:     "ClusterRoleList",
		resources["Service"]:         "ServiceList",
		resources["Workflow"]:        "WorkflowList",
		resources["AdvancedCronJob"]: "AdvancedCronJobList",
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}: "CustomResourceDefinitionList",
	}
	h.templates = fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	h.templates.PrependReactor("update", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		h.writes = append(h.writes, "update template")
		return false, nil, nil
	})
	store := template.New(h.templates,
		&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
			{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true},
				{Name: "services", Kind: "Service", Namespaced: true}}},
			{GroupVersion: "argoproj.io/v1alpha1",
				APIResources: []metav1.APIResource{{Name: "workflows", Kind: "Workflow", Namespaced: true}}},
			{GroupVersion: "apps.kruise.io/v1beta1",
				APIResources: []metav1.APIResource{{Name: "advancedcronjobs", Kind: "AdvancedCronJob", Namespaced: true}}},
			{GroupVersion: "rbac.authorization.k8s.io/v1",
				APIResources: []metav1.APIResource{{Name: "clusterroles", Kind: "ClusterRole"}}},
		}}})
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go func() { _ = store.Start(ctx) }()
	store.Want(schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"},
		schema.GroupKind{Group: "apps.kruise.io", Kind: "AdvancedCronJob"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, serviceKind)
	synctest.Wait()

	h.r = h.reconciler(store)
	return h
}

// reconciler is one as it is after a start of the hub: it remembers nothing.
func (h *hub) reconciler(store *template.Store) *reconciler {
	return &reconciler{
		Options: Options{Templates: store, Interpreter: interpret.New(), Place: func(b workv1alpha2.Binding) bool {
			if h.placed {
				b.BindingSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "eu"}}
			}
			return h.placed
		}},
		client: h.client, live: h.client, events: commit.Events{EventRecorder: h.recorder},
	}
}

// settle lets everything run until nothing is written any more, and returns what was written.
func (h *hub) settle() []string {
	h.t.Helper()
	ctx := context.Background()
	h.writes = nil
	for range 10 {
		h.catchUp()
		before := len(h.writes)
		keys := map[key]bool{}
		for _, resource := range resources {
			for _, u := range h.list(resource) {
				keys[keyOf(u)] = true
			}
		}
		bindings, err := scope.Bindings.List(ctx, h.client)
		h.noError(err)
		for _, b := range bindings {
			keys[keyBehind(b)] = true
		}
		for k := range keys {
			_, _ = h.r.reconcileTemplate(ctx, k)
		}
		h.catchUp()
		policies, err := scope.Propagations.List(ctx, h.client)
		h.noError(err)
		for _, p := range policies {
			_, err := h.r.reconcilePolicy(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
			h.noError(err)
		}
		if len(h.writes) == before {
			return h.writes
		}
	}
	h.t.Fatalf("it never settles: %v", h.writes)
	return nil
}

// catchUp waits until the store knows what the server holds.
func (h *hub) catchUp() { synctest.Wait() }

func (h *hub) list(resource schema.GroupVersionResource) []*unstructured.Unstructured {
	h.t.Helper()
	l, err := h.templates.Resource(resource).List(context.Background(), metav1.ListOptions{})
	h.noError(err)
	var out []*unstructured.Unstructured
	for i := range l.Items {
		out = append(out, &l.Items[i])
	}
	return out
}

func (h *hub) noError(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// scopes are a template of each scope: its kind, and its namespace.
var scopes = map[string]struct{ kind, namespace string }{
	"namespaced":     {"ConfigMap", "shop"},
	"cluster-scoped": {"ClusterRole", ""},
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

func (h *hub) create(u *unstructured.Unstructured) {
	h.t.Helper()
	_, err := h.templates.Resource(resources[u.GetKind()]).Namespace(u.GetNamespace()).Create(context.Background(), u,
		metav1.CreateOptions{})
	h.noError(err)
}

func (h *hub) remove(u *unstructured.Unstructured) {
	h.t.Helper()
	h.noError(h.templates.Resource(resources[u.GetKind()]).Namespace(u.GetNamespace()).Delete(context.Background(),
		u.GetName(), metav1.DeleteOptions{}))
}

func (h *hub) get(u *unstructured.Unstructured) *unstructured.Unstructured {
	h.t.Helper()
	got, err := h.templates.Resource(resources[u.GetKind()]).Namespace(u.GetNamespace()).Get(context.Background(),
		u.GetName(), metav1.GetOptions{})
	h.noError(err)
	return got
}

// edit is a change by a user.
func (h *hub) edit(u *unstructured.Unstructured, change func(*unstructured.Unstructured)) {
	h.t.Helper()
	got := h.get(u)
	change(got)
	_, err := h.templates.Resource(resources[u.GetKind()]).Namespace(u.GetNamespace()).Update(context.Background(), got,
		metav1.UpdateOptions{})
	h.noError(err)
}

// policy creates one as admission leaves it: an id that is its name, and its finalizer. It selects the kind of u.
func (h *hub) policy(namespace, name string, u *unstructured.Unstructured,
	change func(*policyv1alpha1.PropagationSpec)) policyv1alpha1.Propagation {
	h.t.Helper()
	p := scope.Propagations.New(namespace)
	p.SetName(name)
	label, finalizer := policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.PropagationPolicyFinalizer
	if namespace == "" {
		label, finalizer = policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
			policyv1alpha1.ClusterPropagationPolicyFinalizer
	}
	p.SetLabels(map[string]string{label: "id of " + name})
	p.SetFinalizers([]string{finalizer})
	p.PropagationSpec().ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: u.GetAPIVersion(),
		Kind: u.GetKind()}}
	if change != nil {
		change(p.PropagationSpec())
	}
	h.noError(h.client.Create(context.Background(), p))
	return p
}

func (h *hub) updatePolicy(p policyv1alpha1.Propagation, change func(*policyv1alpha1.PropagationSpec)) {
	h.t.Helper()
	got, err := scope.Propagations.Get(context.Background(), h.client, client.ObjectKeyFromObject(p))
	h.noError(err)
	change(got.PropagationSpec())
	h.noError(h.client.Update(context.Background(), got))
}

func (h *hub) bindings() []workv1alpha2.Binding {
	h.t.Helper()
	all, err := scope.Bindings.List(context.Background(), h.client)
	h.noError(err)
	return all
}

func (h *hub) onlyBinding() workv1alpha2.Binding {
	h.t.Helper()
	all := h.bindings()
	if len(all) != 1 {
		h.t.Fatalf("%d bindings, want 1", len(all))
	}
	return all[0]
}

// heldBy checks the claims of a template and its binding; an empty name is none.
func (h *hub) expectClaim(u *unstructured.Unstructured, policy string) {
	h.t.Helper()
	for what, obj := range map[string]client.Object{"template": h.get(u), "binding": h.onlyBinding()} {
		claim, _ := propagate.Claimed(obj)
		if claim.Name != policy {
			h.t.Errorf("the %s is claimed by %q, want %q", what, claim.Name, policy)
		}
	}
}

func (h *hub) drainEvents() []string {
	var all []string
	for {
		select {
		case e := <-h.recorder.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// eachScope runs a test in both scopes.
func eachScope(t *testing.T, test func(t *testing.T, h *hub, u *unstructured.Unstructured)) {
	for name, s := range scopes {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) { test(t, newHub(t), object(s.kind, s.namespace, "a")) })
		})
	}
}

func TestTemplatesAndPoliciesMeetInAnyOrder(t *testing.T) {
	for _, templateFirst := range []bool{true, false} {
		eachScope(t, func(t *testing.T, h *hub, u *unstructured.Unstructured) {
			if templateFirst {
				h.create(u)
				if w := h.settle(); len(w) != 0 || len(h.bindings()) != 0 {
					t.Errorf("without a policy it wrote %v", w)
				}
				h.policy(u.GetNamespace(), "p", u, nil)
			} else {
				h.policy(u.GetNamespace(), "p", u, nil)
				h.settle()
				h.create(u)
			}
			if w := h.settle(); len(w) != 2 || w[0] != "update template" || !strings.HasPrefix(w[1], "create") {
				t.Errorf("it wrote %v, want the claim and the binding", w)
			}
			h.expectClaim(u, "p")
			if events := h.drainEvents(); len(events) != 2 || !strings.HasPrefix(events[0], "Normal ApplyPolicySucceed Apply") ||
				events[1] != "Normal ApplyPolicySucceed Claimed "+keyOf(u).template() {
				t.Errorf("got events %q, want one on the template and one on the policy", events)
			}
		})
	}
}

func TestTemplateClaimedByAdmissionCostsOneWrite(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, u *unstructured.Unstructured) {
		h.placed = true
		propagate.Claim(u, h.policy(u.GetNamespace(), "p", u, nil))
		h.create(u)
		if w := h.settle(); len(w) != 1 || !strings.HasPrefix(w[0], "create") {
			t.Errorf("it wrote %v, want the binding alone", w)
		}
		if b := h.onlyBinding(); len(b.BindingSpec().Clusters) != 1 || propagate.PermanentID(b) == "" {
			t.Errorf("the binding was created without clusters or id: %+v", b)
		}
		if events := h.drainEvents(); len(events) != 0 {
			t.Errorf("got events %q, want none", events)
		}
		h.r = h.reconciler(h.r.Templates)
		if w := h.settle(); len(w) != 0 {
			t.Errorf("after a restart it wrote %v", w)
		}
		h.edit(u, func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"ready": true}
			u.SetResourceVersion("2")
		})
		if w := h.settle(); len(w) != 0 {
			t.Errorf("a status made it write %v", w)
		}
		h.edit(u, func(u *unstructured.Unstructured) {
			u.Object["data"] = map[string]any{"a": "c"}
			u.SetResourceVersion("3")
		})
		if w := h.settle(); len(w) != 1 || h.onlyBinding().BindingSpec().Resource.ResourceVersion != "3" {
			t.Errorf("a change wrote %v, want the binding with the new version", w)
		}
		if len(h.onlyBinding().BindingSpec().Clusters) != 1 {
			t.Error("a change of the template lost the clusters")
		}
	})
}

func TestClaimOfAnUncachedPolicyStays(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		u := object("ConfigMap", "shop", "a")
		propagate.Claim(u, h.policy("shop", "p", u, nil))
		h.create(u)
		h.settle()
		// A cache that lags sees no policies at all.
		h.r.client = interceptor.NewClient(h.client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
				opts ...client.GetOption) error {
				if _, is := obj.(policyv1alpha1.Propagation); is {
					return c.Get(ctx, types.NamespacedName{Namespace: "nowhere", Name: "none"}, obj, opts...)
				}
				return c.Get(ctx, key, obj, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				switch list.(type) {
				case *policyv1alpha1.PropagationPolicyList, *policyv1alpha1.ClusterPropagationPolicyList:
					return nil
				}
				return c.List(ctx, list, opts...)
			},
		})
		if w := h.settle(); len(w) != 0 {
			t.Errorf("an old cache made it write %v", w)
		}
		h.expectClaim(u, "p")
	})
}

func TestADeletedPolicyLetsGo(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, u *unstructured.Unstructured) {
		h.placed = true
		p := h.policy(u.GetNamespace(), "p", u, nil)
		h.create(u)
		h.settle()
		h.noError(h.client.Delete(context.Background(), p))
		h.settle()
		h.expectClaim(u, "")
		if len(h.onlyBinding().BindingSpec().Clusters) != 1 {
			t.Error("the workload stopped with its policy")
		}
		if policies, err := scope.Propagations.List(context.Background(), h.client); err != nil || len(policies) != 0 {
			t.Errorf("the policy stays: %v, %v", policies, err)
		}
		h.policy("", "next", u, nil)
		h.settle()
		h.expectClaim(u, "next")
	})
}

func TestADeletedPolicyHandsOver(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, u *unstructured.Unstructured) {
		p := h.policy(u.GetNamespace(), "p", u, nil)
		h.create(u)
		h.settle()
		h.policy("", "q", u, func(s *policyv1alpha1.PropagationSpec) { high := int32(9); s.Priority = &high })
		if w := h.settle(); len(w) != 0 {
			t.Errorf("a claim does not stay: %v", w)
		}
		h.noError(h.client.Delete(context.Background(), p))
		h.settle()
		h.expectClaim(u, "q")
	})
}

func TestPolicyDeletionDoesNotWaitForTemplateDeletion(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		u := object("ConfigMap", "shop", "a")
		p := h.policy("shop", "p", u, nil)
		h.create(u)
		h.settle()
		h.edit(u, func(u *unstructured.Unstructured) {
			now := metav1.Now()
			u.SetDeletionTimestamp(&now)
			u.SetFinalizers([]string{"somebody/else"})
		})
		if w := h.settle(); len(w) != 0 {
			t.Errorf("a template on its way out made it write %v", w)
		}
		h.noError(h.client.Delete(context.Background(), p))
		h.settle()
		h.expectClaim(u, "")
		if policies, err := scope.Propagations.List(context.Background(), h.client); err != nil || len(policies) != 0 {
			t.Errorf("the policy stays: %v, %v", policies, err)
		}
	})
}

func TestSelectorsGrowAndShrink(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, u *unstructured.Unstructured) {
		p := h.policy(u.GetNamespace(), "p", u,
			func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "other" })
		h.create(u)
		if w := h.settle(); len(w) != 0 {
			t.Errorf("a template that is not selected made it write %v", w)
		}
		h.updatePolicy(p, func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "" })
		h.settle()
		h.expectClaim(u, "p")
		h.updatePolicy(p, func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "other" })
		h.settle()
		h.expectClaim(u, "")
	})
}

func TestPreemption(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, u *unstructured.Unstructured) {
		low, mid := int32(1), int32(5)
		p := h.policy(u.GetNamespace(), "p", u,
			func(s *policyv1alpha1.PropagationSpec) { high := int32(9); s.Priority = &high })
		h.create(u)
		h.settle()
		h.policy(u.GetNamespace(), "q", u, func(s *policyv1alpha1.PropagationSpec) {
			s.Priority, s.Preemption, s.ResourceSelectors[0].Name = &mid, policyv1alpha1.PreemptAlways, "a"
		})
		h.settle()
		h.expectClaim(u, "p")
		h.drainEvents()
		// Lowering the claiming policy lets the one between take over.
		h.updatePolicy(p, func(s *policyv1alpha1.PropagationSpec) { s.Priority = &low })
		h.settle()
		h.expectClaim(u, "q")
		if events := h.drainEvents(); len(events) != 3 || !strings.HasPrefix(events[0], "Normal PreemptPolicySucceed") {
			t.Errorf("got events %q", events)
		}
	})
}

// A user who filters for warnings must not read that something succeeded.
func TestAdviceHasAReasonOfItsOwn(t *testing.T) {
	for kind, advice := range map[string]string{
		"Workflow":        "Workflow runs in one of the clusters",
		"AdvancedCronJob": "AdvancedCronJob runs once per schedule in each cluster",
	} {
		t.Run(kind, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				h := newHub(t)
				u := object(kind, "shop", "nightly")
				h.policy("shop", "p", u, nil)
				h.create(u)
				h.settle()
				var warnings []string
				for _, e := range h.drainEvents() {
					if strings.HasPrefix(e, "Warning ") {
						warnings = append(warnings, e)
					}
				}
				if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "Warning ApplyPolicyAdvised "+advice) {
					t.Errorf("got warnings %q", warnings)
				}
			})
		})
	}
}

func TestAPolicyWaitsForTheOverridesItDependsOn(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, u *unstructured.Unstructured) {
		p := h.policy(u.GetNamespace(), "p", u,
			func(s *policyv1alpha1.PropagationSpec) { s.DependentOverrides = []string{"o"} })
		h.create(u)
		for range 2 {
			if w := h.settle(); len(w) != 0 {
				t.Errorf("it did not wait: %v", w)
			}
		}
		if events := h.drainEvents(); len(events) != 2 || !strings.Contains(events[0], "ApplyPolicyFailed") ||
			!strings.HasSuffix(events[0], "depends on: o") || !strings.HasSuffix(events[1], "depends on: o") ||
			!strings.HasPrefix(events[1], "Warning ApplyPolicyFailed "+keyOf(u).template()+": ") {
			t.Errorf("got events %q, want a message that names the override, on the template and on the policy", events)
		}
		if got := h.r.concerns(context.Background(), p); !got[keyOf(u)] {
			t.Errorf("the override's creation would wake %v", got)
		}
		o := scope.Overrides.New(u.GetNamespace())
		o.SetName("o")
		h.noError(h.client.Create(context.Background(), o))
		h.settle()
		h.expectClaim(u, "p")
	})
}

func TestTemplateClaimedAtCreationWaitsForOverrides(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		u := object("ConfigMap", "shop", "a")
		propagate.Claim(u, h.policy("shop", "p", u,
			func(s *policyv1alpha1.PropagationSpec) { s.DependentOverrides = []string{"o"} }))
		h.create(u)
		if w := h.settle(); len(w) != 0 {
			t.Errorf("it did not wait: %v", w)
		}
	})
}

func TestALazyPolicyWaitsForItsUsers(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, u *unstructured.Unstructured) {
		h.create(u)
		p := h.policy(u.GetNamespace(), "p", u,
			func(s *policyv1alpha1.PropagationSpec) { s.ActivationPreference = policyv1alpha1.LazyActivation })
		h.settle()
		if claim, _ := propagate.Claimed(h.get(u)); claim.Name != "p" || len(h.bindings()) != 0 {
			t.Errorf("claimed by %q with %d bindings, want the claim alone", claim.Name, len(h.bindings()))
		}
		h.r = h.reconciler(h.r.Templates)
		if w := h.settle(); len(w) != 0 {
			t.Errorf("a restart activated it: %v", w)
		}
		change := func(value string) {
			h.edit(u, func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"a": value} })
		}
		change("c")
		h.settle()
		h.expectClaim(u, "p")
		if propagate.Waiting(h.get(u)) {
			t.Error("it waits on")
		}
		suspended := func() bool { return h.onlyBinding().BindingSpec().Suspension != nil }
		h.updatePolicy(p, func(s *policyv1alpha1.PropagationSpec) {
			yes := true
			s.Suspension = &policyv1alpha1.Suspension{Dispatching: &yes}
		})
		if w := h.settle(); len(w) != 0 || suspended() {
			t.Errorf("a change of the policy alone wrote %v", w)
		}
		change("d")
		h.settle()
		if !suspended() {
			t.Error("the user's change did not bring the policy into effect")
		}
		h.noError(h.client.Delete(context.Background(), p))
		h.settle()
		h.expectClaim(u, "")
	})
}

func TestADeletedTemplateTakesItsBindingAlong(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, u *unstructured.Unstructured) {
		h.policy(u.GetNamespace(), "p", u, nil)
		h.create(u)
		h.settle()
		h.remove(u)
		h.settle()
		if b := h.onlyBinding(); b.GetDeletionTimestamp() == nil {
			t.Error("the binding stays")
		}

		// Recreated while the old binding still goes, then with it gone.
		anew := object(u.GetKind(), u.GetNamespace(), u.GetName())
		anew.SetUID("another")
		h.create(anew)
		h.settle()
		old := h.onlyBinding()
		if propagate.Owner(old) != u.GetUID() {
			t.Error("the old binding was taken over")
		}
		old.SetFinalizers(nil)
		h.noError(h.client.Update(context.Background(), old))
		h.settle()
		if propagate.Owner(h.onlyBinding()) != "another" {
			t.Error("the new template has no binding of its own")
		}
	})
}

func TestOrphaningDeletionLeavesTheBinding(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		u := object("ConfigMap", "shop", "a")
		p := h.policy("shop", "p", u, nil)
		h.create(u)
		h.settle()
		b := h.onlyBinding()
		b.SetOwnerReferences(nil)
		h.noError(h.client.Update(context.Background(), b))
		h.remove(u)
		if w := h.settle(); len(w) != 0 || h.onlyBinding().GetDeletionTimestamp() != nil {
			t.Errorf("it wrote %v over an orphan", w)
		}
		h.noError(h.client.Delete(context.Background(), p))
		h.settle()
		if policies, err := scope.Propagations.List(context.Background(), h.client); err != nil || len(policies) != 0 {
			t.Errorf("an orphan keeps its policy: %v, %v", policies, err)
		}
		anew := object("ConfigMap", "shop", "a")
		anew.SetUID("another")
		h.create(anew)
		h.policy("shop", "q", u, nil)
		h.settle()
		if propagate.Owner(h.onlyBinding()) != "another" {
			t.Error("the orphan was not adopted")
		}
	})
}

func TestTakenNameIsReportedOnce(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		u := object("ConfigMap", "shop", "a")
		for _, name := range names.Bindings(u.GroupVersionKind().GroupKind(), "a") {
			h.noError(h.client.Create(context.Background(), &workv1alpha2.ResourceBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
				Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "example.io/v1",
					Kind: "ConfigMap", Namespace: "shop", Name: "a"}},
			}))
		}
		h.policy("shop", "p", u, nil)
		h.create(u)
		h.settle()
		h.settle()
		var failed []string
		for _, e := range h.drainEvents() {
			if strings.Contains(e, "ApplyPolicyFailed") {
				failed = append(failed, e)
			}
		}
		if len(failed) != 2 || !strings.Contains(failed[0], "is the binding of another template") ||
			!strings.Contains(failed[1], "is the binding of another template") {
			t.Errorf("got events %q, want it once, on the template and on the policy", failed)
		}
		if res, err := h.r.reconcileTemplate(context.Background(), keyOf(u)); err != nil || res.RequeueAfter < time.Second {
			t.Errorf("it looks again after %v, %v: too hot", res.RequeueAfter, err)
		}
	})
}

func TestASchedulePriorityComesFromItsClass(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		u := object("ConfigMap", "shop", "a")
		h.policy("shop", "p", u, func(s *policyv1alpha1.PropagationSpec) {
			s.SchedulePriority = &policyv1alpha1.SchedulePriority{PriorityClassSource: policyv1alpha1.KubePriorityClass,
				PriorityClassName: "high"}
		})
		h.create(u)
		h.settle()
		if len(h.bindings()) != 0 {
			t.Error("a binding without its priority")
		}
		h.noError(h.client.Create(context.Background(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{
			Name: "high"},
			Value: 77}))
		h.settle()
		if p := h.onlyBinding().BindingSpec().SchedulePriority; p == nil || p.Priority != 77 {
			t.Errorf("priority %v, want 77", p)
		}
	})
}

// counting is an interpreter that knows the replicas of every object, unless it does not answer.
type counting struct {
	interpret.Interpreter
	replicas int32
	broken   error
}

func (c *counting) Replicas(context.Context,
	*unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, bool, error) {
	if c.broken != nil {
		return 0, nil, false, &interpret.Error{Operation: configv1alpha1.InterpreterOperationInterpretReplica,
			About: "read replicas", Cause: c.broken}
	}
	return c.replicas, nil, true, nil
}

func TestBrokenReplicaScriptBlocksNoTemplateChange(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, u *unstructured.Unstructured) {
		count := &counting{Interpreter: interpret.New(), replicas: 3, broken: errors.New("line 2")}
		h.r.Interpreter = count
		h.policy(u.GetNamespace(), "p", u, nil)
		h.create(u)
		h.settle()
		if n := len(h.bindings()); n != 0 {
			t.Fatalf("%d bindings of a template whose replicas nobody has read: it would run in full everywhere", n)
		}

		count.broken = nil
		h.settle()
		before := h.onlyBinding()
		if n := before.BindingSpec().Replicas; n != 3 {
			t.Fatalf("the binding has %d replicas, want 3", n)
		}

		count.broken = errors.New("line 2")
		h.edit(u, func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"image": "the one that worked"} })
		h.settle()
		b := h.onlyBinding()
		if n := b.BindingSpec().Replicas; n != 3 {
			t.Errorf("%d replicas, want the 3 that were read before", n)
		}
		if digest := wellknown.TemplateDigestAnnotation; b.GetAnnotations()[digest] == before.GetAnnotations()[digest] {
			t.Error("the binding is still that of the old template: the members do not get the new one")
		}
		if c := meta.FindStatusCondition(b.BindingStatus().Conditions, "InterpretReplica"); c == nil ||
			c.Message != "read replicas: line 2" {
			t.Errorf("the binding says %+v, not what is wrong", c)
		}

		count.replicas, count.broken = 5, nil
		h.settle()
		b = h.onlyBinding()
		if c := meta.FindStatusCondition(b.BindingStatus().Conditions, "InterpretReplica"); b.BindingSpec().Replicas != 5 ||
			c != nil {
			t.Errorf("mended, it has %d replicas and says %+v", b.BindingSpec().Replicas, c)
		}
	})
}

func TestComponentsAreBoundInsteadOfReplicas(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, u *unstructured.Unstructured) {
		var broken error
		h.r.Interpreter = interpret.New(interpret.Kinds{u.GroupVersionKind().GroupKind(): &interpret.Hooks{
			Replicas: func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
				return 5, &workv1alpha2.ReplicaRequirements{}, nil
			},
			Components: func(context.Context, *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
				return []workv1alpha2.Component{{Name: "head", Replicas: 1}, {Name: "worker", Replicas: 4}}, broken
			},
		}})
		h.policy(u.GetNamespace(), "p", u, nil)
		h.create(u)
		h.settle()
		spec := h.onlyBinding().BindingSpec()
		if len(spec.Components) != 2 || spec.Replicas != 0 || spec.ReplicaRequirements != nil {
			t.Errorf("components %v, %d replicas, requirements %v", spec.Components, spec.Replicas, spec.ReplicaRequirements)
		}

		broken = errors.New("line 2")
		h.edit(u, func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"a": "b"} })
		h.settle()
		if spec := h.onlyBinding().BindingSpec(); len(spec.Components) != 2 || spec.Replicas != 0 {
			t.Errorf("unread: components %v, %d replicas", spec.Components, spec.Replicas)
		}
		if events := strings.Join(h.drainEvents(), "\n"); !strings.Contains(events, "Warning GetComponentsFailed read") {
			t.Errorf("events:\n%s", events)
		}
	})
}

func TestExcludedObjectsAreNotTemplates(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		claimedBy := object("ConfigMap", "shop", "b")
		claimedBy.SetLabels(map[string]string{policyv1alpha1.ClaimedByLabel: "MultiClusterService"})
		for _, u := range []*unstructured.Unstructured{object("ConfigMap", "kube-system", "a"),
			object("ConfigMap", "shop", "kube-root-ca.crt"), claimedBy} {
			h.create(u)
		}
		h.policy("", "p", claimedBy, nil)
		if w := h.settle(); len(w) != 0 {
			t.Errorf("it wrote %v", w)
		}
	})
}

func TestPolicyReconcilesOnlyItsTemplates(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		a, b, elsewhere := object("ConfigMap", "shop", "a"), object("ConfigMap", "shop", "b"),
			object("ConfigMap", "bank", "a")
		b.SetLabels(map[string]string{"app": "b"})
		for _, u := range []*unstructured.Unstructured{a, b, elsewhere} {
			h.create(u)
		}
		h.catchUp()
		for name, c := range map[string]struct {
			namespace string
			sel       policyv1alpha1.ResourceSelector
			want      []key
		}{
			"a name in its namespace": {"shop", policyv1alpha1.ResourceSelector{Name: "a"}, []key{keyOf(a)}},
			"a name that is not there yet": {"shop", policyv1alpha1.ResourceSelector{Name: "z"},
				[]key{{schema.GroupKind{Kind: "ConfigMap"}, types.NamespacedName{Namespace: "shop", Name: "z"}}}},
			"a name in any namespace": {"", policyv1alpha1.ResourceSelector{Name: "a"},
				[]key{keyOf(a), keyOf(elsewhere)}},
			"a label": {"shop",
				policyv1alpha1.ResourceSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "b"}}},
				[]key{keyOf(b)}},
			"all of a namespace": {"shop", policyv1alpha1.ResourceSelector{}, []key{keyOf(a), keyOf(b)}},
			"all of a namespace, for a cluster": {"", policyv1alpha1.ResourceSelector{Namespace: "bank"},
				[]key{keyOf(elsewhere)}},
		} {
			t.Log(name)
			p := scope.Propagations.New(c.namespace)
			c.sel.APIVersion, c.sel.Kind = "v1", "ConfigMap"
			p.PropagationSpec().ResourceSelectors = []policyv1alpha1.ResourceSelector{c.sel}
			got := h.r.concerns(context.Background(), p)
			if len(got) != len(c.want) {
				t.Errorf("wakes %v, want %v", got, c.want)
			}
			for _, k := range c.want {
				if !got[k] {
					t.Errorf("does not wake %v", k)
				}
			}
		}
	})
}

func TestOnlyChangesOfContentWakeATemplate(t *testing.T) {
	var woken []key
	changed := templateChanged(func(k key) { woken = append(woken, k) })
	u := object("ConfigMap", "shop", "a")
	status := u.DeepCopy()
	status.Object["status"] = map[string]any{"ready": true}
	changed(u, status)
	if len(woken) != 0 {
		t.Errorf("a status woke %v", woken)
	}
	relabelled := u.DeepCopy()
	relabelled.SetLabels(map[string]string{"a": "b"})
	changed(nil, u)
	changed(u, relabelled)
	changed(u, nil)
	if len(woken) != 3 {
		t.Errorf("an appearance, a change and a deletion woke %d times, want 3", len(woken))
	}
}

func TestPolicyIsReconciledAfterItsClaimEnds(t *testing.T) {
	var woken []reconcile.Request
	add := func(r reconcile.Request) { woken = append(woken, r) }
	free, claimed := object("ConfigMap", "shop", "a"), object("ConfigMap", "shop", "a")
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p",
		Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}}}
	propagate.Claim(claimed, p)
	ended(free, claimed, add)
	ended(claimed, claimed, add)
	ended(free, nil, add)
	if len(woken) != 0 {
		t.Errorf("woken for %v though no claim ended", woken)
	}
	ended(claimed, free, add)
	ended(claimed, nil, add)
	if len(woken) != 2 || woken[0].Name != "p" {
		t.Errorf("woken for %v, want twice for p", woken)
	}
}
