package template_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

var (
	configMaps = schema.GroupKind{Kind: "ConfigMap"}
	cloneSets  = schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"}
	core       = &metav1.APIResourceList{GroupVersion: "v1",
		APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}}}
	kruise = schema.GroupVersion{Group: "apps.kruise.io", Version: "v1alpha1"}
	crds   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
)

// hub is a fake API server with the kinds of a test.
type hub struct {
	t       *testing.T
	dynamic *fakedynamic.FakeDynamicClient
	served  *served
	store   *template.Store
	watches *watches
}

// served is a discovery client whose result a test changes.
type served struct {
	discovery.DiscoveryInterface
	mu    sync.Mutex
	lists []*metav1.APIResourceList
}

func (s *served) set(lists ...*metav1.APIResourceList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = lists
}

func (s *served) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: s.lists}}).ServerGroupsAndResources()
}

func (s *served) ServerGroups() (*metav1.APIGroupList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: s.lists}}).ServerGroups()
}

func (s *served) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: s.lists}}).ServerResourcesForGroupVersion(gv)
}

func newHub(t *testing.T, objs ...runtime.Object) *hub {
	t.Helper()
	h := &hub{t: t, served: &served{lists: []*metav1.APIResourceList{core}}}
	h.dynamic = fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{
			{Version: "v1", Resource: "configmaps"}:                          "ConfigMapList",
			kruise.WithResource("clonesets"):                                 "CloneSetList",
			kruise.WithResource("sidecarsets"):                               "SidecarSetList",
			{Group: kruise.Group, Version: "v1beta1", Resource: "clonesets"}: "CloneSetList",
			crds: "CustomResourceDefinitionList",
		}, objs...)
	h.watches = newWatches(h.dynamic, crds)
	h.store = template.New(h.dynamic, h.served)
	return h
}

func (h *hub) start() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- h.store.Start(ctx) }()
	h.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			h.t.Errorf("the store ended with %v", err)
		}
	})
	h.eventually("definitions are watched", func() bool { return true })
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func definition(version string) *unstructured.Unstructured {
	u := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "clonesets.apps.kruise.io")
	u.Object["spec"] = map[string]any{"group": kruise.Group, "names": map[string]any{"kind": "CloneSet"},
		"versions": []any{map[string]any{"name": version}}}
	return u
}

func resources(version string) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: kruise.Group + "/" + version,
		APIResources: []metav1.APIResource{{Name: "clonesets", Kind: "CloneSet", Namespaced: true}}}
}

// eventually waits for the condition, and until everything that was listed is watched.
func (h *hub) eventually(what string, ok func() bool) {
	h.t.Helper()
	if !membertest.Becomes(func() bool { return ok() && h.watches.allWatched() }) {
		h.t.Fatalf("never: %s", what)
	}
}

func TestWantedKindIsCached(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		claimed := object("v1", "ConfigMap", "shop", "held")
		claimed.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id", "app": "web"})
		claimed.SetAnnotations(map[string]string{policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop",
			policyv1alpha1.PropagationPolicyNameAnnotation: "p"})
		claimed.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		h := newHub(t, claimed, object("v1", "ConfigMap", "bank", "free"))
		var mu sync.Mutex
		seen := map[string]int{}
		count := func(was, is *unstructured.Unstructured) {
			mu.Lock()
			defer mu.Unlock()
			if is != nil {
				seen[is.GetName()]++
			} else {
				seen["gone "+was.GetName()]++
			}
		}
		h.store.Subscribe(count)
		h.start()
		if h.store.Synced(configMaps) {
			t.Error("a kind is in sync before anybody looked")
		}
		h.eventually("ConfigMaps are in memory", func() bool { return h.store.Synced(configMaps) })

		got, found, err := h.store.Get(context.Background(), configMaps, "shop", "held")
		if err != nil || !found || got.GetManagedFields() != nil {
			t.Errorf("got %v, %v, %v; want the object without managed fields", got, found, err)
		}
		if _, found, err := h.store.Get(context.Background(), configMaps, "shop", "absent"); found || err != nil {
			t.Errorf("an absent object is found=%v, %v", found, err)
		}
		if n := len(h.store.List(configMaps, "", nil)); n != 2 {
			t.Errorf("%d objects in all namespaces, want 2", n)
		}
		if n := len(h.store.List(configMaps, "shop", labels.SelectorFromSet(labels.Set{"app": "web"}))); n != 1 {
			t.Errorf("%d objects selected, want 1", n)
		}
		if n := len(h.store.List(configMaps, "bank", labels.SelectorFromSet(labels.Set{"app": "web"}))); n != 0 {
			t.Errorf("%d objects selected in another namespace, want none", n)
		}
		if claimed := h.store.ClaimedBy("id"); len(claimed) != 1 || claimed[0].GetName() != "held" {
			t.Errorf("held by the policy: %v", claimed)
		}

		// Who subscribes late hears of all that is there, and of what follows.
		h.store.Subscribe(func(was, is *unstructured.Unstructured) { count(was, is) })
		h.eventually("both subscribers heard of both", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return seen["held"] == 2 && seen["free"] == 2
		})
		if err := h.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(
			"bank").Delete(context.Background(), "free", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		h.eventually("both subscribers heard of the deletion", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return seen["gone free"] == 2
		})
	})
}

func TestObjectIsFoundBeforeKindIsCached(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, object("v1", "ConfigMap", "shop", "a"))
		if _, found, err := h.store.Get(context.Background(), configMaps, "shop", "a"); !found || err != nil {
			t.Errorf("found=%v, %v; want it from the hub", found, err)
		}
	})
}

func TestUnservedKindIsUnknownUnlessDefinitionWasDeleted(t *testing.T) {
	ctx := context.Background()
	var h *hub
	look := func() string {
		for _, get := range []func(context.Context, schema.GroupKind, string, string) (*unstructured.Unstructured, bool,
			error){h.store.Get, h.store.Live} {
			_, found, err := get(ctx, cloneSets, "shop", "web")
			switch {
			case found:
				return "there"
			case meta.IsNoMatchError(err) != h.store.Unknown(cloneSets) || err != nil && !meta.IsNoMatchError(err):
				return fmt.Sprintf("%v, known to be unknown: %v", err, h.store.Unknown(cloneSets))
			case err != nil:
				return "unknown"
			}
		}
		return "gone"
	}
	becomes := func(want string) {
		h.t.Helper()
		got := ""
		if !membertest.Becomes(func() bool { got = look(); return got == want }) {
			h.t.Fatalf("the object is %s, want %s", got, want)
		}
	}
	must := func(err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
	}
	going := definition("v1alpha1")
	going.SetFinalizers([]string{"customresourcecleanup.apiextensions.k8s.io"})
	going.SetDeletionTimestamp(new(metav1.Now()))
	other := definition("v1alpha1")
	other.SetName("clonesets2.apps.kruise.io")
	definitions := func() dynamic.ResourceInterface { return h.dynamic.Resource(crds) }

	for _, tc := range []struct {
		story string
		do    func()
		want  string
	}{
		{"it is not served, and its definition stands", func() {
			_, err := definitions().Update(ctx, definition("v1alpha1"), metav1.UpdateOptions{})
			must(err)
		}, "unknown"},
		{"its definition was lost without a deletion", func() {
			must(definitions().Delete(ctx, going.GetName(), metav1.DeleteOptions{}))
		}, "unknown"},
		{"its definition is being deleted", func() {
			_, err := definitions().Update(ctx, going, metav1.UpdateOptions{})
			must(err)
		}, "unknown"},
		{"somebody deleted its definition", func() {
			_, err := definitions().Update(ctx, going, metav1.UpdateOptions{})
			must(err)
			must(definitions().Delete(ctx, going.GetName(), metav1.DeleteOptions{}))
		}, "gone"},
		{"somebody deleted one of two definitions of it", func() {
			_, err := definitions().Create(ctx, other, metav1.CreateOptions{})
			must(err)
			_, err = definitions().Update(ctx, going, metav1.UpdateOptions{})
			must(err)
			must(definitions().Delete(ctx, going.GetName(), metav1.DeleteOptions{}))
		}, "unknown"},
		{"its definition is made again, and not served yet", func() {
			_, err := definitions().Update(ctx, going, metav1.UpdateOptions{})
			must(err)
			must(definitions().Delete(ctx, going.GetName(), metav1.DeleteOptions{}))
			becomes("gone")
			_, err = definitions().Create(ctx, definition("v1alpha1"), metav1.CreateOptions{})
			must(err)
		}, "unknown"},
	} {
		t.Run(tc.story, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				h = newHub(t, definition("v1alpha1"), object("apps.kruise.io/v1alpha1", "CloneSet", "shop", "web"))
				h.served.set(core, resources("v1alpha1"))
				h.store.Want(cloneSets)
				h.start()
				becomes("there")
				h.eventually("it is watched", func() bool { return h.store.Served(cloneSets) && h.store.Synced(cloneSets) })
				h.served.set(core)
				tc.do()
				becomes(tc.want)
			})
		})
	}
}

// An API server rejects such a path, but the store does not rely on it.
func TestWatchEndsWhenDiscoveryIsBehindDeletion(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, definition("v1alpha1"))
		h.served.set(core, resources("v1alpha1"))
		h.store.Want(cloneSets)
		h.start()
		h.eventually("it is watched", func() bool { return h.store.Served(cloneSets) && h.store.Synced(cloneSets) })

		going := definition("v1alpha1")
		going.SetFinalizers([]string{"customresourcecleanup.apiextensions.k8s.io"})
		going.SetDeletionTimestamp(new(metav1.Now()))
		definitions := h.dynamic.Resource(crds)
		if _, err := definitions.Update(t.Context(), going, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := definitions.Delete(t.Context(), going.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		membertest.Advance(time.Second)
		h.served.set(core)
		h.eventually("the watch ends", func() bool { return !h.store.Served(cloneSets) })
	})
}

func TestNamespacedReferenceFindsNoClusterScopedObject(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.served.set(core)
		h.dynamic.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, object("v1", "ConfigMap", "", "c"), nil
		})
		if obj, found, err := h.store.Live(t.Context(), configMaps, "shop", "c"); obj != nil || found || err != nil {
			t.Errorf("got %v, %t, %v", obj, found, err)
		}
		if _, found, err := h.store.Live(t.Context(), configMaps, "", "c"); !found || err != nil {
			t.Errorf("got %t, %v", found, err)
		}
	})
}

func TestLaterKindIsWatched(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.store.Want(cloneSets)
		h.start()
		h.eventually("the missing kind is known to be empty", func() bool { return h.store.Synced(cloneSets) })
		membertest.Advance(time.Minute) // the distances between the looks have grown

		h.served.set(core, resources("v1alpha1"))
		ctx := context.Background()
		if _, err := h.dynamic.Resource(kruise.WithResource("clonesets")).Namespace("shop").Create(ctx,
			object("apps.kruise.io/v1alpha1", "CloneSet", "shop", "web"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.dynamic.Resource(crds).Create(ctx, definition("v1alpha1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		h.eventually("the CloneSet is in memory", func() bool { return len(h.store.List(cloneSets, "shop", nil)) == 1 })
	})
}

func TestKindFollowsPreferredVersion(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		ctx := context.Background()
		h := newHub(t, definition("v1alpha1"), object("apps.kruise.io/v1alpha1", "CloneSet", "shop", "web"))
		h.served.set(core, resources("v1alpha1"))
		h.store.Want(cloneSets)
		h.start()
		version := func() string {
			if objs := h.store.List(cloneSets, "", nil); len(objs) == 1 {
				return objs[0].GetAPIVersion()
			}
			return ""
		}
		h.eventually("v1alpha1 is in memory", func() bool { return version() == "apps.kruise.io/v1alpha1" })

		beta := schema.GroupVersionResource{Group: kruise.Group, Version: "v1beta1", Resource: "clonesets"}
		if _, err := h.dynamic.Resource(beta).Namespace("shop").Create(ctx,
			object("apps.kruise.io/v1beta1", "CloneSet", "shop", "web"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		h.served.set(core, resources("v1beta1"))
		if _, err := h.dynamic.Resource(crds).Update(ctx, definition("v1beta1"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		h.eventually("v1beta1 took its place", func() bool { return version() == "apps.kruise.io/v1beta1" })

		h.served.set(core)
		if err := h.dynamic.Resource(crds).Delete(ctx, "clonesets.apps.kruise.io", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		h.eventually("a kind that is no longer served is not watched", func() bool {
			return version() == "" && h.store.Synced(cloneSets)
		})
	})
}

func TestHubConfigurationIsNeverWatched(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		works := schema.GroupKind{Group: "work.karmada.io", Kind: "Work"}
		h.store.Want(works)
		if !h.store.Synced(works) || len(h.store.List(works, "", nil)) != 0 {
			t.Error("Works are watched as templates")
		}
	})
}

func TestWritesNameTheVersionOfTheObject(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, object("v1", "ConfigMap", "shop", "a"))
		ctx := context.Background()
		changed := object("v1", "ConfigMap", "shop", "a")
		changed.SetLabels(map[string]string{"a": "b"})
		if got, err := h.store.Update(ctx, changed); err != nil || got.GetLabels()["a"] != "b" {
			t.Errorf("update: %v, %v", got, err)
		}
		changed.Object["status"] = map[string]any{"ready": true}
		if err := h.store.UpdateStatus(ctx, changed); err != nil {
			t.Errorf("write status: %v", err)
		}
		if _, err := h.store.Update(ctx, object("v1", "ConfigMap", "shop", "absent")); err == nil {
			t.Error("an update of what is not there is no error")
		}
	})
}
