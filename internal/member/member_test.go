package member_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func hub(objs ...client.Object) client.Client {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build()
}

// change is one call of a handler.
type change struct{ old, new *unstructured.Unstructured }

// recorder records the calls of handlers.
type recorder chan change

func (r recorder) handle(_ string, _ schema.GroupVersionResource, old, new *unstructured.Unstructured) {
	r <- change{old, new}
}

func (r recorder) next(t *testing.T) change {
	t.Helper()
	select {
	case c := <-r:
		return c
	case <-time.After(time.Minute):
		t.Fatal("no event came")
		return change{}
	}
}

func (r recorder) expectNone(t *testing.T) {
	t.Helper()
	select {
	case c := <-r:
		t.Fatalf("unexpected event: %v → %v", c.old, c.new)
	case <-time.After(50 * time.Millisecond):
	}
}

// joined returns a server that the hub knows as m1.
func joined(t *testing.T, s *membertest.Server, o member.Options) (*member.Members, *member.Member, client.Client) {
	t.Helper()
	return joinedAs(t, s.Cluster("m1"), s.Secret("m1"), o)
}

func joinedAs(t *testing.T, cluster *clusterv1alpha1.Cluster, secret *corev1.Secret,
	o member.Options) (*member.Members, *member.Member, client.Client) {
	t.Helper()
	c := hub(cluster, secret)
	o.Clusters, o.Secrets, o.Dial = c, c, membertest.Dial
	members := member.New(o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = members.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	m, err := members.Get("m1")
	if err != nil {
		t.Fatal(err)
	}
	return members, m, c
}

func configMap(name string, data map[string]string, labels map[string]string) *unstructured.Unstructured {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
		Data:       data,
	})
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: raw}
}

var ours = map[string]string{"karmada.io/managed": "true"}

func data(u *unstructured.Unstructured) map[string]string {
	d, _, _ := unstructured.NestedStringMap(u.Object, "data")
	return d
}

func TestApplyRemovesDroppedFieldsAndKeepsForeignOnes(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		_, m, _ := joined(t, s, member.Options{})
		ctx := t.Context()

		created, err := m.Create(ctx, configMap("c", map[string]string{"keep": "1", "drop": "1"}, ours))
		if err != nil {
			t.Fatal(err)
		}
		other := s.Object(membertest.ConfigMap, "default", "c")
		_ = unstructured.SetNestedField(other.Object, "theirs", "data", "foreign")
		s.Put(other)

		applied, err := m.Apply(ctx, configMap("c", map[string]string{"keep": "2"}, ours), created)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"keep": "2", "foreign": "theirs"}
		if got := data(applied); len(got) != 2 || got["keep"] != want["keep"] || got["foreign"] != want["foreign"] {
			t.Errorf("after the first apply the member holds %v, want %v", got, want)
		}
		if len(applied.GetManagedFields()) != 0 {
			t.Error("the object is still marked as created; every apply would take its fields over again")
		}

		before := len(s.Requests(""))
		if _, err := m.Apply(ctx, configMap("c", map[string]string{"keep": "2"}, ours), applied); err != nil {
			t.Fatal(err)
		}
		if sent := s.Requests("")[before:]; len(sent) != 1 {
			t.Errorf("the second apply sent %v, want one request", sent)
		}
		if got := s.Object(membertest.ConfigMap, "default", "c").GetResourceVersion(); got != applied.GetResourceVersion() {
			t.Error("an apply without a change changed the object")
		}
	})
}

func TestApplyWritesNothingToAReplacedObject(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		_, m, _ := joined(t, s, member.Options{})
		seen, err := m.Create(t.Context(), configMap("c", map[string]string{"a": "1"}, ours))
		if err != nil {
			t.Fatal(err)
		}
		seen.SetManagedFields(nil)

		s.Remove(membertest.ConfigMap, "default", "c")
		if _, err := m.Apply(t.Context(), configMap("c", map[string]string{"a": "2"}, ours),
			seen); !apierrors.IsConflict(err) {
			t.Errorf("applying to a deleted object gives %v, want a conflict", err)
		}
		if s.Object(membertest.ConfigMap, "default", "c") != nil {
			t.Error("a deleted object was made again by an apply")
		}
		s.Put(configMap("c", map[string]string{"theirs": "1"}, nil))
		if _, err := m.Apply(t.Context(), configMap("c", map[string]string{"a": "2"}, ours),
			seen); !apierrors.IsConflict(err) {
			t.Errorf("applying to a replaced object gives %v, want a conflict", err)
		}
		if err := m.Delete(t.Context(), seen); err != nil {
			t.Errorf("deleting a replaced object gives %v, want nothing", err)
		}
		if got := data(s.Object(membertest.ConfigMap, "default", "c")); got["theirs"] != "1" || len(got) != 1 {
			t.Errorf("somebody else's object now holds %v", got)
		}
	})
}

func TestApplyFromAStaleObjectWritesNothing(t *testing.T) {
	for name, again := range map[string]bool{"the first apply after the creation": false, "a later apply": true} {
		t.Run(name, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				s := membertest.NewInMemory(t)
				_, m, _ := joined(t, s, member.Options{})
				observed, err := m.Create(t.Context(), configMap("c", map[string]string{"ours": "1"}, ours))
				if err == nil && again {
					observed, err = m.Apply(t.Context(), configMap("c", map[string]string{"ours": "1"}, ours), observed)
				}
				if err != nil {
					t.Fatal(err)
				}
				desired := configMap("c", map[string]string{"ours": "2", "retained": "old"}, ours)
				desired.SetResourceVersion(observed.GetResourceVersion())
				changed := s.Object(membertest.ConfigMap, "default", "c")
				_ = unstructured.SetNestedField(changed.Object, "new", "data", "retained")
				s.Put(changed)
				if _, err := m.Apply(t.Context(), desired, observed); !apierrors.IsConflict(err) {
					t.Errorf("the apply ended with %v, want a conflict", err)
				}
				if got := data(s.Object(membertest.ConfigMap, "default", "c")); got["ours"] != "1" || got["retained"] != "new" {
					t.Errorf("the object was written: %v", got)
				}

				observed, err = m.Get(t.Context(), membertest.ConfigMap.GroupVersionKind, "default", "c")
				if err != nil {
					t.Fatal(err)
				}
				desired.SetResourceVersion(observed.GetResourceVersion())
				if _, err := m.Apply(t.Context(), desired, observed); err != nil {
					t.Errorf("made from the object as it is: %v", err)
				}
			})
		})
	}
}

func TestCreateKeepsAnExistingObject(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		_, m, _ := joined(t, s, member.Options{})
		s.Put(configMap("c", map[string]string{"theirs": "1"}, nil))
		_, err := m.Create(t.Context(), configMap("c", map[string]string{"a": "1"}, ours))
		if !apierrors.IsAlreadyExists(err) {
			t.Fatalf("got %v, want AlreadyExists", err)
		}
		for _, text := range []string{"ConfigMap default/c", `cluster "m1"`} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("error %q does not name %s", err, text)
			}
		}
	})
}

func TestStatusIsNeverSent(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		_, m, _ := joined(t, s, member.Options{})
		desired := configMap("c", nil, ours)
		desired.Object["status"] = map[string]any{"phase": "Running"}
		created, err := m.Create(t.Context(), desired)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := created.Object["status"]; ok {
			t.Error("a created object carries the status of the template")
		}
		live := s.Object(membertest.ConfigMap, "default", "c")
		live.Object["status"] = map[string]any{"phase": "Succeeded"}
		s.Put(live)
		applied, err := m.Apply(t.Context(), desired, created)
		if err != nil {
			t.Fatal(err)
		}
		if phase, _, _ := unstructured.NestedString(applied.Object, "status", "phase"); phase != "Succeeded" {
			t.Errorf("after an apply the status is %q; the member's must stay", phase)
		}
		if _, ok := desired.Object["status"]; !ok {
			t.Error("the caller's object was changed")
		}
	})
}

func TestReleaseTakesOffOurMarksOnly(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		_, m, _ := joined(t, s, member.Options{})
		obj := configMap("c", nil, map[string]string{"karmada.io/managed": "true", "work.karmada.io/permanent-id": "x",
			"app": "web"})
		obj.SetAnnotations(map[string]string{"work.karmada.io/name": "w", "resourcetemplate.karmada.io/managed-labels": "app",
			"note": "mine"})
		created, err := m.Create(t.Context(), obj)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Release(t.Context(), created); err != nil {
			t.Fatal(err)
		}
		got := s.Object(membertest.ConfigMap, "default", "c")
		if l := got.GetLabels(); len(l) != 1 || l["app"] != "web" {
			t.Errorf("labels are %v, want only app", l)
		}
		if a := got.GetAnnotations(); len(a) != 1 || a["note"] != "mine" {
			t.Errorf("annotations are %v, want only note", a)
		}
	})
}

// Flux and Argo CD apply without force what they take over.
func TestReleaseLetsOthersApplyWithoutForce(t *testing.T) {
	others := configMap("c", map[string]string{"key": "theirs"}, map[string]string{"app": "theirs"})
	for name, manage := range map[string]func(t *testing.T, s *membertest.Server,
		m *member.Member) *unstructured.Unstructured{
		"created": func(t *testing.T, _ *membertest.Server, m *member.Member) *unstructured.Unstructured {
			created, err := m.Create(t.Context(), configMap("c", map[string]string{"key": "1"}, ours))
			if err != nil {
				t.Fatal(err)
			}
			return created
		},
		"adopted": func(t *testing.T, s *membertest.Server, m *member.Member) *unstructured.Unstructured {
			s.Put(configMap("c", map[string]string{"key": "0", "other": "1"}, nil))
			adopted, err := m.Apply(t.Context(), configMap("c", map[string]string{"key": "1"}, ours),
				s.Object(membertest.ConfigMap, "default", "c"))
			if err != nil {
				t.Fatal(err)
			}
			return adopted
		},
		"created and applied": func(t *testing.T, _ *membertest.Server, m *member.Member) *unstructured.Unstructured {
			created, err := m.Create(t.Context(), configMap("c", map[string]string{"key": "0"}, ours))
			if err != nil {
				t.Fatal(err)
			}
			applied, err := m.Apply(t.Context(), configMap("c", map[string]string{"key": "1"}, ours), created)
			if err != nil {
				t.Fatal(err)
			}
			return applied
		},
	} {
		t.Run(name, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				s := membertest.NewInMemory(t)
				_, m, _ := joined(t, s, member.Options{})
				managed := manage(t, s, m)
				if err := s.Conflicts(membertest.ConfigMap, others, "flux"); err == nil {
					t.Fatal("others can apply already before the release: this test shows nothing")
				}
				before := len(s.Requests(""))
				if err := m.Release(t.Context(), managed); err != nil {
					t.Fatal(err)
				}
				if sent := s.Requests("")[before:]; len(sent) != 2 {
					t.Errorf("the release sent %v, want one read and one write", sent)
				}
				got := s.Object(membertest.ConfigMap, "default", "c")
				for _, entry := range got.GetManagedFields() {
					if entry.Manager == member.Manager {
						t.Errorf("the hub still owns %s", entry.FieldsV1.GetRawBytes())
					}
				}
				if data(got)["key"] != "1" || len(got.GetLabels()) != 0 {
					t.Errorf("the object is %v, with labels %v", data(got), got.GetLabels())
				}
				if err := s.Conflicts(membertest.ConfigMap, others, "flux"); err != nil {
					t.Errorf("after the release, others cannot apply: %v", err)
				}
			})
		})
	}
}

func TestReleaseOfReplacedObjectWritesNothing(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		_, m, _ := joined(t, s, member.Options{})
		created, err := m.Create(t.Context(), configMap("c", map[string]string{"key": "1"}, ours))
		if err != nil {
			t.Fatal(err)
		}
		s.Remove(membertest.ConfigMap, "default", "c")
		if err := m.Release(t.Context(), created); err != nil {
			t.Errorf("the release of a deleted object ends with %v", err)
		}
		s.Put(configMap("c", map[string]string{"key": "2"}, ours))
		if err := m.Release(t.Context(), created); !apierrors.IsConflict(err) {
			t.Errorf("the release of a replaced object ends with %v, want a conflict", err)
		}
		if got := s.Object(membertest.ConfigMap, "default", "c").GetLabels(); len(got) != 1 {
			t.Errorf("the labels of the new object are %v", got)
		}
	})
}

func TestAnAPIWithoutApplyIsUpdated(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		_, m, _ := joined(t, s, member.Options{})
		created, err := m.Create(t.Context(), configMap("c", map[string]string{"a": "1"}, ours))
		if err != nil {
			t.Fatal(err)
		}
		live := s.Object(membertest.ConfigMap, "default", "c")
		live.SetFinalizers([]string{"theirs.example.io/x"})
		live.SetAnnotations(map[string]string{"theirs": "1"})
		s.Put(live)
		created.SetManagedFields(nil)
		s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPatch {
				return false
			}
			w.WriteHeader(http.StatusUnsupportedMediaType)
			return true
		})
		if _, err := m.Apply(t.Context(), configMap("c", map[string]string{"a": "2"}, ours), created); err != nil {
			t.Fatal(err)
		}
		got := s.Object(membertest.ConfigMap, "default", "c")
		if data(got)["a"] != "2" || got.GetAnnotations()["theirs"] != "1" || len(got.GetFinalizers()) != 1 {
			t.Errorf("the update left %v with annotations %v and finalizers %v", data(got), got.GetAnnotations(),
				got.GetFinalizers())
		}
	})
}

func TestWatchReportsManagedObjectsOnly(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		s.Put(configMap("unmanaged", nil, nil))
		s.Put(configMap("first", map[string]string{"a": "1"}, ours))
		events := make(recorder, 100)
		_, m, _ := joined(t, s, member.Options{Handler: events.handle})

		if _, synced := m.Cached(configMaps, "default", "first"); synced {
			t.Error("a resource that is not watched claims to be known")
		}
		m.Watch(configMaps)
		m.Watch(configMaps)
		if c := events.next(t); c.old != nil || c.new.GetName() != "first" {
			t.Fatalf("the list reported: %v → %v, want that first appeared", c.old, c.new)
		}
		if obj, synced := m.Cached(configMaps, "default", "unmanaged"); obj != nil || !synced {
			t.Errorf("an unmanaged object is cached as %v (synced %t)", obj, synced)
		}

		second := configMap("second", nil, ours)
		second.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{…}"})
		s.Put(second)
		if c := events.next(t); c.new == nil || c.new.GetName() != "second" || len(c.new.GetManagedFields()) != 0 ||
			len(c.new.GetAnnotations()) != 1 {
			t.Fatalf("the watch reported: %v, want second without managed fields, and with what a manifest may set", c.new)
		}
		first := s.Object(membertest.ConfigMap, "default", "first")
		first.SetLabels(nil)
		s.Put(first)
		if c := events.next(t); c.new != nil || c.old.GetName() != "first" {
			t.Fatalf("when first lost its mark, the watch reported: %v → %v, want that it went", c.old, c.new)
		}
		if obj, synced := m.Cached(configMaps, "default", "first"); obj != nil || !synced {
			t.Errorf("first is still cached as %v (synced %t)", obj, synced)
		}
		if _, err := m.Create(t.Context(), configMap("third", nil, ours)); err != nil {
			t.Fatal(err)
		}
		if c := events.next(t); len(c.new.GetManagedFields()) != 1 || c.new.GetManagedFields()[0].FieldsV1 != nil {
			t.Errorf("our own creation is cached with managed fields %v, want a mark without fields", c.new.GetManagedFields())
		}
	})
}

func TestWatchOfRemovedKindEnds(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		cloneSet := membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1",
			Kind: "CloneSet"}, Plural: "clonesets", Namespaced: true}
		cloneSets := cloneSet.GroupVersion().WithResource(cloneSet.Plural)
		web := func() *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetGroupVersionKind(cloneSet.GroupVersionKind)
			u.SetNamespace("default")
			u.SetName("web")
			u.SetLabels(ours)
			return u
		}
		s := membertest.NewInMemory(t, cloneSet)
		s.Put(web())
		events := make(recorder, 100)
		_, m, _ := joined(t, s, member.Options{Handler: events.handle})
		m.Watch(cloneSets)
		events.next(t)

		// An API that is down may return with its objects.
		s.Unserve(cloneSet)
		membertest.Advance(5 * time.Minute)
		if obj, synced := m.Cached(cloneSets, "default", "web"); obj == nil || !synced {
			t.Errorf("while the API is down, web is %v, known: %t", obj, synced)
		}
		s.Serve(cloneSet)
		s.Remove(cloneSet, "default", "web")
		if c := events.next(t); c.new != nil || c.old.GetName() != "web" {
			t.Fatalf("the watch reported %v → %v, want that web was deleted", c.old, c.new)
		}

		s.Unserve(cloneSet)
		membertest.Advance(5 * time.Minute)
		if _, synced := m.Cached(cloneSets, "default", "web"); synced {
			t.Error("a kind without objects that was removed is still watched")
		}
		before := len(s.Requests("GET /apis/apps.kruise.io/v1beta1/clonesets"))
		membertest.Advance(5 * time.Minute)
		if n := len(s.Requests("GET /apis/apps.kruise.io/v1beta1/clonesets")) - before; n > 0 {
			t.Errorf("the member got %d more requests for it", n)
		}

		s.Serve(cloneSet)
		s.Put(web())
		m.Watch(cloneSets)
		if c := events.next(t); c.old != nil || c.new.GetName() != "web" {
			t.Errorf("when the kind is back, the watch reported %v → %v, want that web appeared", c.old, c.new)
		}
	})
}

func TestWatchReportsMissedChangesAfterOutage(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		s.Put(configMap("stays", nil, ours))
		s.Put(configMap("goes", nil, ours))
		events := make(recorder, 100)
		c := hub(s.Cluster("m1"), s.Secret("m1"))
		members := member.New(member.Options{Clusters: c, Secrets: c, Dial: membertest.Dial, Handler: events.handle})
		t.Cleanup(func() { members.Forget("m1") })
		m, err := members.Get("m1")
		if err != nil {
			t.Fatal(err)
		}
		back := make(chan string, 1)
		members.OnAnswer(func(name string) { // a later subscriber is notified as well
			select {
			case back <- name:
			default:
			}
		})
		m.Watch(configMaps)
		events.next(t)
		events.next(t)

		s.Down(true)
		if _, err := m.Create(t.Context(), configMap("x", nil, ours)); !member.Unreachable(err) {
			t.Fatalf("creating in a dead member gives %v, want that it is unreachable", err)
		}
		s.Remove(membertest.ConfigMap, "default", "goes")
		s.Put(configMap("comes", nil, ours))
		events.expectNone(t)
		if obj, synced := m.Cached(configMaps, "default", "stays"); obj == nil || !synced {
			t.Error("what was known of a dead member is forgotten")
		}

		s.Down(false)
		messages := map[string]bool{}
		for range 2 {
			c := events.next(t)
			if c.new == nil {
				messages["-"+c.old.GetName()] = true
			} else {
				messages["+"+c.new.GetName()] = true
			}
		}
		if !messages["-goes"] || !messages["+comes"] {
			t.Errorf("after the absence the watch reported: %v, want that goes went and comes came", messages)
		}
		events.expectNone(t) // stays did not change
		if name := <-back; name != "m1" {
			t.Errorf("%q answered again, want m1", name)
		}
	})
}

// A member that was restored from an older backup accepts a watch from a later revision, and sends no events.
func TestMemberWithoutResourceVersionIsListedAgain(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		s.Put(configMap("c", map[string]string{"value": "1"}, ours))
		events := make(recorder, 100)
		c := hub(s.Cluster("m1"), s.Secret("m1"))
		members := member.New(member.Options{Clusters: c, Secrets: c, Dial: membertest.Dial, Handler: events.handle})
		t.Cleanup(func() { members.Forget("m1") })
		m, err := members.Get("m1")
		if err != nil {
			t.Fatal(err)
		}
		m.Watch(configMaps)
		events.next(t)
		s.Put(configMap("c", map[string]string{"value": "2"}, ours))
		events.next(t) // by the watch, which is there

		var looked, listed atomic.Bool
		s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			switch q := r.URL.Query(); {
			case !strings.HasSuffix(r.URL.Path, "/configmaps"):
				return false
			case q.Get("limit") == "1":
				if looked.Swap(true) {
					return false
				}
				w.WriteHeader(http.StatusServiceUnavailable) // it is starting
				return true
			case q.Get("watch") == "":
				listed.Store(true)
			case !listed.Load() && q.Get("sendInitialEvents") == "":
				<-r.Context().Done()
				return true
			}
			return false
		})
		s.BreakWatches()
		s.Put(configMap("c", map[string]string{"value": "3"}, ours))
		if c := events.next(t); c.new == nil || !looked.Load() {
			t.Errorf("it is reported %v, and the member was asked for its time: %t", c, looked.Load())
		}
	})
}

func TestUnservedKindIsATypedError(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		cloneSet := membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1",
			Kind: "CloneSet"}, Plural: "clonesets", Namespaced: true}
		s := membertest.NewInMemory(t)
		clock := newClock()
		_, m, _ := joined(t, s, member.Options{Clock: clock})
		ctx := t.Context()

		_, err := m.Mapping(ctx, cloneSet.GroupVersionKind)
		if !errors.Is(err, member.ErrKindNotServed) || !strings.Contains(err.Error(), `"m1"`) ||
			!strings.Contains(err.Error(), "CloneSet") {
			t.Fatalf("got %v, want ErrKindNotServed naming cluster and kind", err)
		}
		asked := len(s.Requests("GET /apis"))
		for range 5 {
			_, _ = m.Mapping(ctx, cloneSet.GroupVersionKind)
		}
		if again := len(s.Requests("GET /apis")); again != asked {
			t.Errorf("five more misses asked the member %d times", again-asked)
		}
		s.Serve(cloneSet)
		clock.Step(5 * time.Second)
		got, err := m.Mapping(ctx, cloneSet.GroupVersionKind)
		if err != nil || got.Resource.Resource != "clonesets" || !got.Namespaced {
			t.Fatalf("after the kind came: %v, %v", got, err)
		}
		// Another version than the member serves is sent in the member's.
		older := cloneSet.GroupVersionKind
		older.Version = "v1alpha1"
		if got, err := m.Mapping(ctx, older); err != nil || got.Resource.Version != "v1beta1" {
			t.Errorf("v1alpha1 is mapped to %v, %v; want the version that is served", got, err)
		}
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(older)
		obj.SetNamespace("default")
		obj.SetName("web")
		if made, err := m.Create(ctx, obj); err != nil || made.GetAPIVersion() != "apps.kruise.io/v1beta1" {
			t.Errorf("created %v, %v; want it in the version that is served", made, err)
		}
	})
}

func TestAnOldMemberWithoutAggregatedDiscoveryIsUnderstood(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			bodies := map[string]string{
				"/api":          `{"kind":"APIVersions","versions":["v1"]}`,
				"/apis":         `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
				"/api/v1":       `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["get"]}]}`,
				"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["get"]}]}`,
			}
			body, ok := bodies[r.URL.Path]
			if ok {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(body))
			}
			return ok
		})
		_, m, _ := joined(t, s, member.Options{})
		got, err := m.Mapping(t.Context(), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
		if err != nil || got.Resource.Resource != "deployments" {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestNewCredentialsReplaceTheConnectionAndKeepTheWatches(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		s.Put(configMap("a", nil, ours))
		events := make(recorder, 100)
		members, m, c := joined(t, s, member.Options{Handler: events.handle})
		m.Watch(configMaps)
		events.next(t)

		s.Take("rotated")
		if p := m.Probe(t.Context()); p.Code != http.StatusUnauthorized {
			t.Fatalf("with the old token the probe is %+v, want 401", p)
		}
		secret := s.Secret("m1")
		if err := c.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		again, err := members.Refresh(t.Context(), "m1")
		if err != nil || again != m {
			t.Fatalf("got %v, %v; want the same member with new credentials", again, err)
		}
		if p := m.Probe(t.Context()); p.Code != http.StatusOK {
			t.Fatalf("with the new token the probe is %+v", p)
		}
		s.Put(configMap("b", nil, ours))
		if got := events.next(t); got.old != nil || got.new.GetName() != "b" {
			t.Errorf("reported: %v → %v, want only that b came: a is known", got.old, got.new)
		}

		// A cluster of the same name that joined anew is another member.
		cluster := s.Cluster("m1")
		if err := c.Delete(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		fresh := s.Cluster("m1")
		fresh.UID = "another"
		if err := c.Create(t.Context(), fresh); err != nil {
			t.Fatal(err)
		}
		if other, err := members.Refresh(t.Context(), "m1"); err != nil || other == m {
			t.Errorf("got the old member (%v) for a new cluster", err)
		}
	})
}

func TestASilentMemberAnswersItsCallersAtOnce(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		_, m, _ := joined(t, s, member.Options{Timeout: 300 * time.Millisecond})
		if _, err := m.Discover(t.Context()); err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int32
		s.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
			asked.Add(1)
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return true
		})
		if _, err := m.Create(t.Context(), configMap("c", nil, ours)); !member.Unreachable(err) {
			t.Fatalf("a silent member gives %v, want that it is unreachable", err)
		}
		for range 100 {
			if _, err := m.Create(t.Context(), configMap("c", nil, ours)); !member.Unreachable(err) {
				t.Fatalf("got %v", err)
			}
		}
		// Those that wait find out whether it answers again, one at a time.
		if n := asked.Load(); n > 20 {
			t.Errorf("%d of 100 callers of a silent member waited for it", n)
		}
		if p := m.Probe(t.Context()); p.Err != "no answer in time" {
			t.Errorf("the probe says %+v", p)
		}
		s.Behave(nil)
		if p := m.Probe(t.Context()); p.Code != 200 {
			t.Errorf("after the member woke up the probe says %+v", p)
		}
		if _, err := m.Create(t.Context(), configMap("c", nil, ours)); err != nil {
			t.Errorf("after the member woke up: %v", err)
		}
	})
}

func TestSilenceHasAReason(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		_, m, _ := joined(t, s, member.Options{Timeout: 300 * time.Millisecond})
		if _, err := m.Discover(t.Context()); err != nil {
			t.Fatal(err)
		}
		ask := func() (reason, cause string, ok bool) {
			_ = m.Probe(t.Context()) // later requests fail at once
			_, err := m.Create(t.Context(), configMap("c", nil, ours))
			return member.Silence(err)
		}
		s.Down(true)
		if reason, cause, ok := ask(); !ok || reason != workv1alpha1.ReasonUnreachable ||
			!strings.HasPrefix(cause, "cluster is not reachable: ") {
			t.Errorf("a dead member: %t, %s, %q", ok, reason, cause)
		}
		s.Down(false)
		s.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		})
		if reason, cause, ok := ask(); !ok || reason != workv1alpha1.ReasonTimeout ||
			cause != "cluster is not reachable: no answer in time" {
			t.Errorf("a member that does not answer: %t, %s, %q", ok, reason, cause)
		}
		s.Behave(func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "cluster is not reachable: no answer in time")
			return true
		})
		if reason, cause, ok := ask(); ok {
			t.Errorf("a member that says that it is not reachable: %s, %q", reason, cause)
		}
	})
}

func TestUntrustedCertificateIsFoundByType(t *testing.T) {
	for _, err := range []error{&tls.CertificateVerificationError{Err: errors.New("x")}, x509.UnknownAuthorityError{},
		x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}, x509.CertificateInvalidError{Reason: x509.Expired}} {
		if !member.Untrusted(&url.Error{Op: "Get", URL: "https://m1", Err: fmt.Errorf("tls: %w", err)}) {
			t.Errorf("%T is trusted", err)
		}
	}
	if member.Untrusted(errors.New("x509: certificate signed by unknown authority")) {
		t.Error("a text is taken for an error")
	}
}

func TestProbeOfDeadMemberHasStableMessage(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		_, m, _ := joined(t, s, member.Options{})
		s.Down(true)
		first := m.Probe(t.Context())
		if first.Err == "" {
			t.Fatal("a dead member answered")
		}
		for range 5 {
			if p := m.Probe(t.Context()); p != first {
				t.Errorf("the probe says %+v, then %+v: each change would be a write", first, p)
			}
		}
	})
}

func TestLoadSumsLivePods(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		pod := func(name, node string, phase corev1.PodPhase) *corev1.Pod {
			return &corev1.Pod{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
				Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}},
				Status: corev1.PodStatus{Phase: phase},
			}
		}
		s := membertest.NewInMemory(t)
		s.Put(&corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		s.Put(pod("a", "n", corev1.PodRunning))
		s.Put(pod("b", "n", corev1.PodRunning))
		s.Put(pod("ended", "n", corev1.PodSucceeded))
		_, m, _ := joined(t, s, member.Options{})

		<-m.Load()
		cpus := func() (nodes, running, waiting int64) {
			if !m.Capacity(func(c *capacity.ClusterState) {
				waiting = c.PendingRequests()[corev1.ResourceCPU]
				c.Nodes(func(_ *capacity.Node, requested capacity.Amounts) {
					nodes, running = nodes+1, running+requested[corev1.ResourceCPU]
				})
			}) {
				t.Error("nodes and pods were listed, but there is no capacity")
			}
			return nodes, running, waiting
		}
		if nodes, running, _ := cpus(); nodes != 1 || running != 2000 {
			t.Fatalf("got %d nodes and %dm CPUs, want 1 and 2000m", nodes, running)
		}
		s.Put(pod("b", "n", corev1.PodFailed))
		s.Put(pod("waits", "", corev1.PodPending))
		eventually(t, "b no longer counts and waits does", func() bool {
			_, running, waiting := cpus()
			return running == 1000 && waiting == 1000
		})
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !membertest.Becomes(ok) {
		t.Fatalf("not in time: %s", what)
	}
}

func TestMemberRecoversWithNewCredentials(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		c := hub(s.Cluster("m1"), s.Secret("m1"))
		members := member.New(member.Options{Clusters: c, Secrets: c, Dial: membertest.Dial})
		t.Cleanup(func() { members.Forget("m1") })
		back := make(chan string, 1)
		members.OnAnswer(func(name string) { back <- name })
		if _, err := members.Get("m1"); err != nil {
			t.Fatal(err)
		}

		secret := s.Secret("m1")
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			t.Fatal(err)
		}
		good := secret.DeepCopy()
		secret.Data = nil
		if err := c.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if _, err := members.Refresh(t.Context(), "m1"); !errors.Is(err, member.ErrCredentials) {
			t.Fatalf("a secret without a token gives %v, want unusable credentials", err)
		}

		good.ResourceVersion = secret.ResourceVersion
		if err := c.Update(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		if _, err := members.Refresh(t.Context(), "m1"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-back: // whoever had watches there opens them again
		default:
			t.Error("no event was recorded that the member is back")
		}
	})
}

// A redirect would take the hub's credentials, which a client adds to each request, to whom the member names.
func TestAMembersRedirectIsNotFollowed(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		m := membertest.NewInMemory(t)
		var taken atomic.Int32
		elsewhere := membertest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			taken.Add(1)
			t.Errorf("%s %s came to another server, with %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}))
		t.Cleanup(elsewhere.Close)
		_, c, _ := joined(t, m, member.Options{})
		m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, elsewhere.URL+"/taken", http.StatusTemporaryRedirect)
			return true
		})
		const wantText = "a redirect to "
		if p := c.Probe(t.Context()); !strings.Contains(p.Err, wantText) {
			t.Errorf("the probe says %+v", p)
		}
		for what, ask := range map[string]func() error{
			"its version":    func() error { _, err := c.Version(t.Context()); return err },
			"what it serves": func() error { _, err := c.Discover(t.Context()); return err },
			"an object": func() error {
				_, err := c.Client().Resource(configMaps).Namespace("shop").Get(t.Context(), "a", metav1.GetOptions{})
				return err
			},
			"a write": func() error {
				_, err := c.Client().Resource(configMaps).Namespace("shop").Create(t.Context(), configMap("a", nil, nil),
					metav1.CreateOptions{})
				return err
			},
			"pods":    func() error { _, err := c.Pods(t.Context(), "shop", ""); return err },
			"metrics": func() error { _, err := c.Usage(t.Context(), "shop", ""); return err },
			"its Config's own": func() error {
				own, err := dynamic.NewForConfig(c.Config())
				if err == nil {
					_, err = own.Resource(configMaps).Namespace("shop").List(t.Context(), metav1.ListOptions{})
				}
				return err
			},
		} {
			_ = c.Probe(t.Context())
			if err := ask(); err == nil || !strings.Contains(err.Error(), wantText) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if taken.Load() != 0 {
			t.Errorf("%d requests went elsewhere", taken.Load())
		}
	})
}
