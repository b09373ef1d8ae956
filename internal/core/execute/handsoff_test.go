package execute_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
)

// braked sets wellknown.HandsOffAnnotation to a value.
func braked(u *unstructured.Unstructured, value string) *unstructured.Unstructured {
	u = u.DeepCopy()
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[wellknown.HandsOffAnnotation] = value
	u.SetAnnotations(annotations)
	return u
}

func TestHandsOffStopsEveryWriteAndDeletion(t *testing.T) {
	brakedWork := func(w *workv1alpha1.Work) { w.Annotations = map[string]string{wellknown.HandsOffAnnotation: "true"} }
	ours := desired(t, work(t, service), nil)
	drifted := ours.DeepCopy()
	_ = unstructured.SetNestedSlice(drifted.Object, []any{map[string]any{"port": int64(81)}}, "spec", "ports")
	foreign := object(t, service)
	going := ours.DeepCopy()
	going.SetDeletionTimestamp(new(metav1.Unix(1, 0)))
	type changes []func(*workv1alpha1.Work)
	for name, c := range map[string]struct {
		change   changes
		observed *unstructured.Unstructured
		without  execute.Kind // what is done without the annotation
	}{
		"drift":                       {nil, drifted, execute.Apply},
		"a changed template":          {changes{changed}, ours, execute.Apply},
		"an object to adopt":          {changes{overwriting}, foreign, execute.Apply},
		"a deletion":                  {changes{deleting}, ours, execute.Delete},
		"a release":                   {changes{deleting, preserving}, ours, execute.Release},
		"an object that is deleted":   {nil, going, execute.Wait},
		"the deletion of one that is": {changes{deleting}, going, execute.Wait},
	} {
		for where, plan := range map[string]func() execute.Action{
			"the object": func() execute.Action {
				w := work(t, service, c.change...)
				return execute.HubID("hub-1").Plan(w, desired(t, w, c.observed), braked(c.observed, "true"))
			},
			"the Work": func() execute.Action {
				w := work(t, service, append(c.change, func(w *workv1alpha1.Work) {
					if w.Annotations == nil {
						w.Annotations = map[string]string{}
					}
					w.Annotations[wellknown.HandsOffAnnotation] = "true"
				})...)
				return execute.HubID("hub-1").Plan(w, desired(t, w, c.observed), c.observed)
			},
		} {
			if got := plan(); got.Kind != execute.Leave || got.Reason == "" {
				t.Errorf("%s, with the annotation on %s: %s (%s), want Leave", name, where, got.Kind, got.Reason)
			}
		}
		w := work(t, service, c.change...)
		if got := execute.HubID("hub-1").Plan(w, desired(t, w, c.observed),
			braked(c.observed, "false")).Kind; got != c.without {
			t.Errorf("%s, with the value false: %s, want %s", name, got, c.without)
		}
	}
	w := work(t, service, unapplied, brakedWork)
	if got := execute.Plan(w, desired(t, w, nil), nil).Kind; got != execute.Leave {
		t.Errorf("an object that does not exist: %s, want Leave", got)
	}
	// A Work that is being deleted does not wait for what it does not own.
	for name, observed := range map[string]*unstructured.Unstructured{"no object": nil,
		"an object of others": braked(foreign, "true")} {
		if got := execute.Plan(work(t, service, deleting, brakedWork), nil, observed).Kind; got != execute.Nothing {
			t.Errorf("the deletion of a Work with %s: %s, want Nothing", name, got)
		}
	}
}

// The author of a template must not be able to keep an object that policies change or remove.
func TestHubNeverSendsHandsOff(t *testing.T) {
	template := braked(object(t, service), "true")
	raw, err := template.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	w := work(t, string(raw))
	observed := desired(t, work(t, service), nil)
	for name, retain := range map[string]execute.Retain{
		"the manifest": nil,
		"a Retain operation": func(desired, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return braked(desired, "true"), nil
		},
	} {
		got, err := execute.Desired(w, observed, retain)
		if err != nil {
			t.Fatal(err)
		}
		if v, there := got.GetAnnotations()[wellknown.HandsOffAnnotation]; there {
			t.Errorf("%s sends the annotation with %q", name, v)
		}
	}
	if action := execute.Plan(w, desired(t, w, observed), observed); action.Kind != execute.Nothing {
		t.Errorf("the annotation in a template has the effect %s (%s)", action.Kind, action.Reason)
	}
	execute.Unmark(template)
	if _, there := template.GetAnnotations()[wellknown.HandsOffAnnotation]; there {
		t.Error("the annotation stays on what is written into a Work")
	}
	if !execute.Marks(wellknown.HandsOffAnnotation) {
		t.Error("overrides can set the annotation")
	}
}

func TestBrakeOnNamespaceStopsWritesAndDeletions(t *testing.T) {
	all := []execute.Kind{execute.Create, execute.Apply, execute.Delete, execute.Release, execute.Conflict, execute.Wait,
		execute.Nothing, execute.Leave}
	writes := all[:4]
	for brake, want := range map[execute.Brake]string{
		"":            "",
		"shop":        "namespace shop of the member: the hub neither writes nor deletes the objects in it",
		"kube-system": "namespace kube-system of the member: the hub neither writes nor deletes any object in the cluster",
	} {
		if got := brake.Reason(); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("the brake %q says %q, want %q", brake, got, want)
		}
		for _, kind := range all {
			a := execute.Action{Kind: kind, Reason: "because", Object: object(t, service)}
			got := brake.Stop(a)
			if brake != "" && slices.Contains(writes, kind) {
				a = execute.Action{Kind: execute.Leave, Reason: brake.Reason()}
			}
			if got.Kind != a.Kind || got.Reason != a.Reason || got.Object != a.Object {
				t.Errorf("with the brake %q, %s becomes %s (%s)", brake, kind, got.Kind, got.Reason)
			}
		}
	}
}

func TestBrakesOfAClusterNameTheirRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		set, in    string // the namespaces with a brake, and that of an object
		want, next string
	}{
		"no brake": {in: "shop"},
		"the whole cluster": {set: "kube-system", in: "shop",
			want: "brake on berlin: the hub writes and deletes nothing in the cluster", next: "`argosy brake off -C berlin`"},
		"the whole cluster, no namespace": {set: "kube-system", want: "brake on berlin: ",
			next: "`argosy brake off -C berlin`"},
		"the namespace": {set: "bank shop", in: "shop", want: "brake on namespace shop of berlin: ",
			next: "`argosy brake off -C berlin -n shop`"},
		"another namespace":                     {set: "bank", in: "shop"},
		"another namespace, no namespace of it": {set: "bank"},
	} {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "berlin"},
			Status: clusterv1alpha1.ClusterStatus{Brakes: strings.Fields(c.set)}}
		brake := execute.BrakeOn(cluster, c.in)
		if (brake == "") != (c.want == "") {
			t.Errorf("%s: the brake is %q", name, brake)
		}
		what, next := brake.Explain("berlin")
		if c.want != "" && (!strings.HasPrefix(what, c.want) || !strings.HasPrefix(next, c.next)) {
			t.Errorf("%s: %s; %s", name, what, next)
		}
	}
	if b := execute.BrakeOn(nil, "shop"); b != "" {
		t.Errorf("a cluster that is not known has the brake %q", b)
	}
}
