package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
	"github.com/argosy-io/argosy/internal/controller/rename"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/member/membertest"
)

// upgrade is a hub with one member and a store of format 1, and what its Works are to be afterwards.
type upgrade struct {
	*controllertest.Hub
	t      *testing.T
	m1     *membertest.Server
	works  map[client.ObjectKey]*workv1alpha1.Work
	former map[client.ObjectKey]bool
	writes int
	// expected are the Works that all of it needs.
	expected []client.ObjectKey
}

func newUpgrade(t *testing.T, templates ...string) *upgrade {
	u := &upgrade{Hub: controllertest.New(t), t: t, works: map[client.ObjectKey]*workv1alpha1.Work{},
		former: map[client.ObjectKey]bool{}}
	u.m1 = u.Join("m1", controllertest.ClusterRole)
	p := policy("shop", "v1", "ConfigMap")
	u.Make(p)
	space := names.ExecutionSpace("m1")
	u.expected = []client.ObjectKey{{Namespace: space, Name: names.Work("Namespace", "shop", "")}}
	for _, name := range templates {
		u.expected = append(u.expected, client.ObjectKey{Namespace: space, Name: names.Work("ConfigMap", name, "shop")})
		u.Make(claimed(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Data: map[string]string{"v": "1"}}, p))
	}
	stop := u.run()
	u.settled()
	u.Quiet()
	stop()
	u.age()
	u.writes = len(u.m1.Writes())
	return u
}

// run runs a hub until stop is called.
func (u *upgrade) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, Options{Config: u.Config, DialMember: membertest.Dial}) }()
	// A manager of controller-runtime whose context ends while it starts spins until its caches are filled, and the clock
	// stands still.
	u.Advance(time.Second)
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		u.Disconnected(func() {
			cancel()
			if err := <-ended; err != nil {
				u.t.Error(err)
			}
		})
	}
	u.t.Cleanup(stop)
	return stop
}

// settled waits until the Works are applied.
func (u *upgrade) settled() {
	u.t.Helper()
	u.Eventually("the Works are applied", func() string {
		for _, key := range u.expected {
			w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			if !u.HasObject(w) || !meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkApplied) {
				return fmt.Sprintf("%s: %+v", key, w.Status.Conditions)
			}
		}
		return ""
	})
}

// age gives all Works the names that they had in format 1, at a later generation, and has the member's objects name
// them so.
func (u *upgrade) age() {
	var list workv1alpha1.WorkList
	if err := u.List(u.t.Context(), &list); err != nil {
		u.t.Fatal(err)
	}
	for i := range list.Items {
		w := &list.Items[i]
		m := &unstructured.Unstructured{}
		if err := m.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
			u.t.Fatal(err)
		}
		former := names.FormerWork(m.GetKind(), m.GetName(), m.GetNamespace())
		old := w.DeepCopy()
		old.SetGroupVersionKind(controllertest.Works.GroupVersionKind)
		old.Name, old.UID, old.ResourceVersion = former, "", ""
		renamed := func(obj *unstructured.Unstructured) {
			notes := obj.GetAnnotations()
			notes[workv1alpha2.WorkNameAnnotation] = former
			obj.SetAnnotations(notes)
		}
		renamed(m)
		raw, err := json.Marshal(m)
		if err != nil {
			u.t.Fatal(err)
		}
		earlier := old.DeepCopy()
		earlier.Spec.SuspendDispatching = new(false)
		u.Server.Put(earlier)
		old.Spec.Workload.Manifests[0].Raw = raw
		for i := range old.Status.Conditions {
			old.Status.Conditions[i].ObservedGeneration *= 2
		}
		if put := u.Server.Put(old); put.GetGeneration() != 2 {
			u.t.Fatalf("the generation is %d", put.GetGeneration())
		}
		u.Server.Remove(controllertest.Works, w.Namespace, w.Name)
		kind := membertest.ConfigMap
		if m.GetKind() == "Namespace" {
			kind = membertest.Namespace
		}
		obj := u.m1.Object(kind, m.GetNamespace(), m.GetName())
		renamed(obj)
		u.m1.Put(obj)
		u.works[client.ObjectKeyFromObject(w)] = w
		u.former[client.ObjectKeyFromObject(old)] = true
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.System}}
	controllertest.Change(u.Hub, system, func(ns *corev1.Namespace) { ns.Annotations = nil })
}

// crash renames Works until a number of writes were sent, the last one without an answer, and reports whether there
// were that many.
func (u *upgrade) crash(writes int) bool {
	ctx, cancel := context.WithCancel(u.t.Context())
	defer cancel()
	count := func(err error) error {
		if writes--; writes <= 0 {
			cancel()
			return context.Canceled
		}
		return err
	}
	if writes == 0 {
		return true
	}
	gate := make(chan struct{}, 1)
	in := func(do func() error) error {
		gate <- struct{}{}
		defer func() { <-gate }()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return count(do())
	}
	c := interceptor.NewClient(u.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return in(func() error { return c.Create(context.WithoutCancel(ctx), obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return in(func() error { return c.Update(context.WithoutCancel(ctx), obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return in(func() error { return c.Delete(context.WithoutCancel(ctx), obj, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object,
			opts ...client.SubResourceUpdateOption) error {
			return in(func() error { return c.SubResource(sub).Update(context.WithoutCancel(ctx), obj, opts...) })
		},
	})
	return rename.Works(ctx, u.Client, c) != nil
}

// takenOver holds the hub and the member against what they are to be after the upgrade.
func (u *upgrade) takenOver() {
	u.t.Helper()
	u.Eventually("the Works have their present names", func() string {
		for key := range u.former {
			w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			if u.HasObject(w) {
				return w.Name + " is there"
			}
		}
		return ""
	})
	u.settled()
	u.Quiet()
	for key, want := range u.works {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		if !u.HasObject(w) || w.Generation != 1 || !equality.Semantic.DeepEqual(w.Spec, want.Spec) ||
			!equality.Semantic.DeepEqual(w.Status, want.Status) ||
			!equality.Semantic.DeepEqual(w.Labels, want.Labels) ||
			!equality.Semantic.DeepEqual(w.Annotations, want.Annotations) || !slices.Equal(w.Finalizers, want.Finalizers) {
			u.t.Errorf("%s is\n%+v\nwant\n%+v", key, w, want)
		}
	}
	if writes := u.m1.Writes()[u.writes:]; len(writes) > 0 {
		u.t.Errorf("the member saw %v", writes)
	}
}

func TestWorksWithFormerNamesAreTakenOver(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		u := newUpgrade(t, "a", "b")
		u.run()
		u.takenOver()

		// What users do next reaches the member as ever.
		a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
		controllertest.Change(u.Hub, a, func(c *corev1.ConfigMap) { c.Data["v"] = "2" })
		u.Eventually("a change arrives with the present name", func() string {
			obj := u.m1.Object(membertest.ConfigMap, "shop", "a")
			if v, _, _ := unstructured.NestedString(obj.Object, "data", "v"); v != "2" ||
				obj.GetAnnotations()[workv1alpha2.WorkNameAnnotation] != names.Work("ConfigMap", "a", "shop") {
				return fmt.Sprintf("it is %+v", obj.Object)
			}
			return ""
		})
		b := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}}
		u.Gone(b)
		u.Eventually("what a user deletes goes", func() string {
			if u.m1.Object(membertest.ConfigMap, "shop", "b") != nil {
				return "it is there"
			}
			return ""
		})
	})
}

func TestRenamingWorksContinuesAfterACrash(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		for writes := 1; ; writes++ {
			u := newUpgrade(t, "a")
			crashed := u.crash(writes)
			u.run()
			u.takenOver()
			if !crashed || t.Failed() {
				if writes < 4*len(u.works) {
					t.Errorf("%d writes renamed %d Works", writes, len(u.works))
				}
				return
			}
		}
	})
}

func TestAMemberReportsUnderAFormerName(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		u := newUpgrade(t, "a")
		u.run()
		u.takenOver()
		obj := u.m1.Object(membertest.ConfigMap, "shop", "a")
		if err := unstructured.SetNestedField(obj.Object, "else", "data", "v"); err != nil {
			t.Fatal(err)
		}
		u.m1.Put(obj)
		u.Eventually("the hub repairs what changed in the member", func() string {
			if v, _, _ := unstructured.NestedString(u.m1.Object(membertest.ConfigMap, "shop", "a").Object, "data",
				"v"); v != "1" {
				return "it is " + v
			}
			return ""
		})
		if writes := u.m1.Writes()[u.writes:]; slices.ContainsFunc(writes, func(w string) bool {
			return strings.HasPrefix(w, "delete")
		}) {
			t.Errorf("the member saw %v", writes)
		}
	})
}
