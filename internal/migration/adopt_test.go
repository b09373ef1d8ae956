package migration_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
	"github.com/argosy-io/argosy/internal/migration"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// adopts plans an adoption, and carries it out if nothing disturbs pods.
func (w *world) adopts(item migration.Workload, o migration.Adoption) (*migration.Adopted, error) {
	w.t.Helper()
	a, err := w.PlanAdoption(w.t.Context(), item, o)
	if err != nil || a.Managed || len(a.Disturbs) > 0 {
		return a, err
	}
	if err := w.Adopt(w.t.Context(), a); err != nil || o.NoPolicy {
		return a, err
	}
	return a, w.AwaitAdopted(w.t.Context(), a)
}

// policyFor is a policy that sends an object of a kind to a cluster.
func policyFor(live *unstructured.Unstructured, name, cluster string) policyv1alpha1.Propagation {
	p := adopt.Policy(live, name, cluster)
	p.PropagationSpec().ConflictResolution = policyv1alpha1.ConflictAbort
	return p
}

func TestAdoptionLeavesTheSpecAsItWas(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runs("m1", controllertest.CloneSet, "web", web("web", 2, "x:1"))
		before := w.members["m1"].Object(controllertest.CloneSet, "shop", "web")
		web := item(controllertest.CloneSet, "web", "m1")

		plan, err := w.PlanAdoption(t.Context(), web, migration.Adoption{})
		if err != nil || !plan.Asked || plan.Template == nil || plan.Policy == nil || len(plan.Differences) > 0 {
			t.Fatalf("the plan is %+v, %v", plan, err)
		}
		if template, _ := w.PlanAdoption(t.Context(), web, migration.Adoption{}); template.There != nil {
			t.Error("a plan created the template")
		}
		if a, err := w.adopts(web, migration.Adoption{}); err != nil || !a.Adopted {
			t.Fatalf("%+v, %v", a, err)
		}
		after := w.members["m1"].Object(controllertest.CloneSet, "shop", "web")
		if !reflect.DeepEqual(after.Object["spec"], before.Object["spec"]) || after.GetUID() != before.GetUID() ||
			after.GetLabels()["karmada.io/managed"] != "true" {
			t.Errorf("it is %v, and was %v", after.Object, before.Object)
		}
		if a, err := w.adopts(web, migration.Adoption{}); err != nil || !a.Managed {
			t.Errorf("again: %+v, %v", a, err)
		}
	})
}

func TestAdoptionIsRefused(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{"claimed", "named", "gone"} {
			w.runs("m1", controllertest.CloneSet, name, web(name, 1, "x:1"))
		}
		claimed := w.members["m1"].Object(controllertest.CloneSet, "shop", "claimed")
		w.Make(policyFor(claimed, "a", "m2"))
		named := w.members["m1"].Object(controllertest.CloneSet, "shop", "named")
		w.Make(policyFor(named, adopt.PolicyName(named), "m1"))
		for name, want := range map[string]string{
			"claimed": "the policy shop/a claims CloneSet shop/claimed and does not propagate it to cluster",
			"named":   "exists with other content: choose another name with --policy-name",
			"absent":  `cluster "m1" has no CloneSet shop/absent`,
		} {
			a, err := w.adopts(item(controllertest.CloneSet, name, "m1"), migration.Adoption{})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %+v, %v; want %q", name, a, err, want)
			}
		}
		gadget := membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "x.io", Version: "v1", Kind: "Gadget"},
			Plural: "gadgets", Namespaced: true}
		w.members["m3"] = w.Join("m3", gadget)
		ns := &unstructured.Unstructured{}
		ns.SetGroupVersionKind(membertest.Namespace.GroupVersionKind)
		ns.SetName("shop")
		w.members["m3"].Put(ns)
		w.runs("m3", gadget, "web", "{spec: {}}")
		if _, err := w.adopts(item(gadget, "web", "m3"), migration.Adoption{}); err == nil || !strings.Contains(err.Error(),
			"the hub does not know x.io/v1, Kind=Gadget: create its CustomResourceDefinition on the hub first") {
			t.Errorf("of a kind that the hub lacks: %v", err)
		}
		if a, err := w.adopts(item(controllertest.CloneSet, "named", "m1"), migration.Adoption{Policy: "other"}); err == nil {
			t.Errorf("another policy claims it: %+v", a)
		}
	})
}

// unbinding is a client of a hub that deletes a binding after it was read once.
type unbinding struct {
	client.Client
	read bool
}

func (c *unbinding) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, binding := obj.(*workv1alpha2.ResourceBinding); binding {
		if c.read {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "resourcebindings"}, key.Name)
		}
		c.read = true
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

// A policy sent a template where an object of that name existed already. It is adopted if pods stay as they are.
func TestConflictIsAdopted(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runs("m1", controllertest.CloneSet, "web", web("web", 2, "x:1"))
		live := w.members["m1"].Object(controllertest.CloneSet, "shop", "web")
		w.Make(policyFor(live, "p", "m1"))
		template := adopt.Template(live)
		if err := unstructured.SetNestedField(template.Object, int64(3), "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
		w.Make(template)
		w.Advance(5 * time.Second)
		if u := w.members["m1"].Object(controllertest.CloneSet, "shop", "web"); u.GetLabels()["karmada.io/managed"] != "" {
			t.Fatal("it was taken over without an adoption")
		}
		hub := w.Migration.Client
		w.Migration.Client = &unbinding{Client: hub}
		if _, err := w.adopts(item(controllertest.CloneSet, "web", "m1"), migration.Adoption{}); err == nil ||
			!strings.Contains(err.Error(), "CloneSet shop/web has no binding: see `argosy why`") {
			t.Errorf("its binding is deleted meanwhile: %v", err)
		}
		w.Migration.Client = hub
		a, err := w.adopts(item(controllertest.CloneSet, "web", "m1"), migration.Adoption{})
		if err != nil || !a.Adopted || !a.Annotate || a.Policy != nil || len(a.Differences) != 1 {
			t.Fatalf("%+v, %v", a, err)
		}
		if n := w.replicas("m1", controllertest.CloneSet, "web"); n != 3 {
			t.Errorf("it has %d replicas, want those of the template", n)
		}
	})
}

// An object of a Work that the hub lost, as after the restore of a backup, is adopted with the policy that sent it.
func TestOrphanIsAdopted(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runs("m1", controllertest.CloneSet, "web", web("web", 2, "x:1"))
		live := w.members["m1"].Object(controllertest.CloneSet, "shop", "web")
		w.Make(policyFor(live, "p", "m1"))
		lost := names.Works(live.GroupVersionKind().GroupKind(), "web", "shop")[0]
		live.SetLabels(map[string]string{workv1alpha2.ManagedLabel: "true"})
		live.SetAnnotations(map[string]string{workv1alpha2.WorkNamespaceAnnotation: names.ExecutionSpace("m1"),
			workv1alpha2.WorkNameAnnotation: lost})
		w.members["m1"].Put(live)
		a, err := w.adopts(item(controllertest.CloneSet, "web", "m1"), migration.Adoption{})
		if err != nil || !a.Adopted || a.Policy != nil {
			t.Fatalf("%+v, %v", a, err)
		}
	})
}

// What a workload names comes with it: its templates have no policy, and that of the workload propagates them.
func TestAdoptionWithDependencies(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runs("m1", controllertest.CloneSet, "web", strings.Replace(web("web", 1, "x:1"), "image: \"x:1\"",
			"image: \"x:1\", envFrom: [{configMapRef: {name: settings}}, {configMapRef: {name: optional, optional: true}}, "+
				"{configMapRef: {name: kube-root-ca.crt}}]", 1))
		for _, name := range []string{"settings", "kube-root-ca.crt"} {
			w.runs("m1", membertest.ConfigMap, name, "{data: {color: blue}}")
		}
		web := item(controllertest.CloneSet, "web", "m1")
		with := migration.Adoption{Dependencies: true}

		// A policy that does not propagate dependencies is not enough.
		live := w.members["m1"].Object(controllertest.CloneSet, "shop", "web")
		without := adopt.Policy(live, adopt.PolicyName(live), "m1")
		w.Make(without)
		if a, err := w.adopts(web, with); err == nil || !strings.Contains(err.Error(), "exists with other content") {
			t.Fatalf("its policy has no propagateDeps: %+v, %v", a, err)
		}
		if err := w.Delete(t.Context(), without); err != nil {
			t.Fatal(err)
		}

		// A template of the hub with other content would change the object in the member.
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"},
			Data: map[string]string{"color": "red"}}
		w.Make(settings)
		if a, err := w.adopts(web, with); err == nil ||
			!strings.Contains(err.Error(), `ConfigMap shop/settings differs between the hub and cluster "m1"`) {
			t.Fatalf("a dependency differs: %+v, %v", a, err)
		}
		if err := w.Delete(t.Context(), settings); err != nil {
			t.Fatal(err)
		}

		a, err := w.adopts(web, with)
		if err != nil || !a.Adopted || len(a.Dependencies) != 1 || !a.Dependencies[0].Adopted ||
			!a.Policy.PropagationSpec().PropagateDeps {
			t.Fatalf("%+v, %v", a, err)
		}
		left := []string{`ConfigMap shop/kube-root-ca.crt: objects like this are never propagated`,
			`ConfigMap shop/optional: cluster "m1" does not have it`}
		if slices.Sort(a.LeftOut); !slices.Equal(a.LeftOut, left) {
			t.Errorf("left out are %q, want %q", a.LeftOut, left)
		}
		after := w.members["m1"].Object(membertest.ConfigMap, "shop", "settings")
		if after.GetLabels()["karmada.io/managed"] != "true" || after.Object["data"].(map[string]any)["color"] != "blue" {
			t.Errorf("the ConfigMap is %v", after.Object)
		}
	})
}
