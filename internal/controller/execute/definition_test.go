package execute

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// trains is a member that has definitions, with the Work of one.
type trains struct {
	*world
	old, now membertest.Kind
	crd      *unstructured.Unstructured
	work     *workv1alpha1.Work
}

func newTrains(t *testing.T) *trains {
	w := &trains{world: newWorld(t, Options{ContentsTimeout: time.Second})}
	kind := func(version string) membertest.Kind {
		return membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: version,
			Kind: "Train"}, Plural: "trains", Namespaced: true}
	}
	w.old, w.now = kind("v1"), kind("v2")
	w.crd = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": "example.com", "names": map[string]any{"kind": "Train", "plural": "trains"},
		"versions": []any{map[string]any{"name": "v0", "served": false, "storage": false},
			map[string]any{"name": "v1", "served": true, "storage": false},
			map[string]any{"name": "v2", "served": true, "storage": true}}}}}
	w.crd.SetGroupVersionKind(controllertest.Definition.GroupVersionKind)
	w.crd.SetName("trains.example.com")
	w.m1.Serve(controllertest.Definition)
	return w
}

// send makes the Work of the definition, and waits until that is in the member, where its kind is served from then on.
func (w *trains) send(change ...func(*workv1alpha1.Work)) {
	w.t.Helper()
	w.work = w.world.work(w.crd, change...)
	w.applied(w.work)
	w.m1.Serve(w.old)
	w.m1.Serve(w.now)
}

func (w *trains) train(name string) *unstructured.Unstructured {
	u := manifest(w.now, "shop", name)
	u.SetName(name)
	return u
}

func (w *trains) definition() *unstructured.Unstructured {
	return w.m1.Object(controllertest.Definition, "", "trains.example.com")
}

// released waits until the definition exists without the hub's marks, and an event gives the reason.
func (w *trains) released(why string) {
	w.t.Helper()
	w.gone(w.work)
	d := w.definition()
	if d == nil {
		w.t.Fatal("the definition is gone")
	}
	if d.GetLabels()[workv1alpha2.ManagedLabel] != "" || d.GetAnnotations()[wellknown.CreatedAnnotation] != "" ||
		d.GetAnnotations()[workv1alpha2.WorkNameAnnotation] != "" {
		w.t.Errorf("it is the hub's still: %v, %v", d.GetLabels(), d.GetAnnotations())
	}
	w.Eventually("it is reported", func() string {
		events := w.Events()
		if !slices.ContainsFunc(events, func(e string) bool {
			return strings.Contains(e, eventDefinitionReleased) && strings.Contains(e, why)
		}) {
			return fmt.Sprint(events)
		}
		return ""
	})
}

func TestUnusedDefinitionOfTheHubIsDeleted(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrains(t)
		w.send()
		w.Gone(w.work)
		w.gone(w.work)
		if w.definition() != nil {
			t.Error("the definition is left")
		}
	})
}

func TestDefinitionWithObjectsOfOthersStays(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrains(t)
		w.send()
		w.m1.Put(w.train("theirs"))
		w.Gone(w.work)
		w.released("Train shop/theirs")
		if w.m1.Object(w.now, "shop", "theirs") == nil {
			t.Error("what only the member had is gone")
		}
	})
}

func TestDefinitionWithObjectsOfTheHubStays(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrains(t)
		w.send()
		train := w.world.work(w.train("ours"))
		w.applied(train)
		w.Gone(w.work)
		w.released("Train shop/ours")
		if w.m1.Object(w.now, "shop", "ours") == nil || !w.HasObject(train) || train.DeletionTimestamp != nil {
			t.Error("what the hub still sends is gone")
		}
	})
}

// Works of a cluster that leaves go one after another.
func TestDefinitionInLeavingClusterWaitsForItsObjects(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrains(t)
		w.send()
		train := w.world.work(w.train("ours"))
		w.applied(train)
		leaver := &clusterv1alpha1.Cluster{}
		leaver.Name = "m1"
		controllertest.Change(w.Hub, leaver, func(c *clusterv1alpha1.Cluster) { c.Finalizers = []string{"example.com/hold"} })
		w.Gone(leaver)
		w.Gone(w.work)
		w.Eventually("it waits", func() string {
			if w.HasObject(w.work) && time.Since(w.work.DeletionTimestamp.Time) < execute.WorksSettle+2*time.Second {
				return "it was deleted just now"
			}
			return ""
		})
		if w.definition() == nil || !w.HasObject(w.work) {
			t.Fatal("it did not wait")
		}
		w.Gone(train)
		w.gone(train)
		w.gone(w.work)
		if w.definition() != nil {
			t.Error("the definition is left")
		}
	})
}

// What is listed may be gone, and its Work with it, before that Work is looked at: it is no object that stays.
func TestDefinitionIsDeletedAfterItsLastObject(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrains(t)
		w.send()
		var asked atomic.Int64
		w.m1.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/trains") || r.URL.Query().Get("watch") != "" ||
				asked.Add(1) > 1 {
				return false
			}
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": [{"metadata": {
			"namespace": "shop", "name": "ours", "uid": "1", "labels": {%q: "true"}, "annotations": {%q: "karmada-es-m1", %q: "finished"}}}]}`,
				workv1alpha2.ManagedLabel, workv1alpha2.WorkNamespaceAnnotation, workv1alpha2.WorkNameAnnotation)
			return true
		})
		w.Gone(w.work)
		w.gone(w.work)
		if w.definition() != nil || asked.Load() < 2 {
			t.Errorf("the definition is left, after %d looks", asked.Load())
		}
	})
}

func TestExistingDefinitionStays(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrains(t)
		w.m1.Put(w.crd.DeepCopy())
		w.send(func(work *workv1alpha1.Work) {
			work.Annotations = map[string]string{
				workv1alpha2.ConflictResolutionAnnotation: workv1alpha2.ConflictResolutionOverwrite}
		})
		w.Gone(w.work)
		w.released("existed before")
	})
}

func TestDefinitionIsDeletedAfterObjectsOfTheHub(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrains(t)
		w.send()
		ours := w.train("ours")
		train := w.world.work(ours)
		w.applied(train)
		stop := w.m1BlocksDeletions()
		w.Gone(w.work) // first, as when the file of all is deleted
		w.Quiet()
		w.Gone(train)
		w.Eventually("the definition waits for nothing but the deletion", func() string {
			if w.HasObject(w.work) && time.Since(w.work.DeletionTimestamp.Time) < execute.WorksSettle+2*time.Second {
				return "it was deleted just now"
			}
			return ""
		})
		if w.definition() == nil || w.definition().GetDeletionTimestamp() != nil || !w.HasObject(w.work) {
			t.Fatal("the definition went before the hub's own object of it")
		}
		stop()
		w.gone(train)
		w.gone(w.work)
		if w.definition() != nil {
			t.Error("the definition is left")
		}
	})
}

// m1BlocksDeletions makes m1 reject deletions of Trains until the returned function is called.
func (w *trains) m1BlocksDeletions() (stop func()) {
	w.m1.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/trains/") {
			return false
		}
		rw.WriteHeader(http.StatusInternalServerError)
		return true
	})
	return func() { w.m1.Behave(nil) }
}

func TestDefinitionWithUnknownObjectsStays(t *testing.T) {
	t.Parallel()
	for story, tc := range map[string]struct {
		refused []string
		as      int
		times   int64
		stays   bool
	}{
		"no version can be listed, as when a webhook that converts is down": {[]string{"v1", "v2"},
			http.StatusInternalServerError, 1000, true},
		"the version that is stored cannot be listed, but another can": {[]string{"v2"}, http.StatusInternalServerError,
			1000, false},
		"no version can be listed for a moment": {[]string{"v1", "v2"},
			http.StatusInternalServerError, 2, false},
		"the member has too much to do": {[]string{"v1", "v2"},
			http.StatusTooManyRequests, 6, false},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newTrains(t)
				w.send()
				var asked atomic.Int64
				w.m1.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
					if r.Method != http.MethodGet ||
						!slices.ContainsFunc(tc.refused, func(v string) bool { return r.URL.Path == "/apis/example.com/"+v+"/trains" }) ||
						r.URL.Query().Get("watch") != "" || asked.Add(1) > tc.times {
						return false
					}
					rw.WriteHeader(tc.as)
					return true
				})
				w.Gone(w.work)
				if tc.stays {
					w.released("cannot be listed")
					return
				}
				w.gone(w.work)
				if w.definition() != nil {
					t.Error("the definition is left")
				}
			})
		})
	}
}

// A member that does not answer says nothing: the Work waits for it.
func TestDefinitionWaitsWhileItsObjectsAreUnknown(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newTrains(t)
		w.send()
		w.m1.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/trains") {
				panic(http.ErrAbortHandler)
			}
			return false
		})
		w.Gone(w.work)
		w.Quiet()
		if !w.HasObject(w.work) || w.definition() == nil || w.definition().GetDeletionTimestamp() != nil {
			t.Fatal("it did not wait")
		}
		w.m1.Behave(nil)
		w.gone(w.work)
		if w.definition() != nil {
			t.Error("the definition is left")
		}
	})
}
