package simulate

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// settled returns a fleet as a hub would have it after a while: templates claimed, bindings placed, and what they take
// allocated.
func settled(t testing.TB, text string) []Object {
	t.Helper()
	s := newState(load(t, text).clone(), roomsOf(t, load(t, text)), nil, time.Unix(1, 0))
	s.touched, s.past = s.invented, true // their creation is a user's change
	s.settle(t.Context())
	f := s.Fleet.clone()
	for name, c := range f.clusters {
		c = c.DeepCopy()
		c.Status.ResourceSummary.Allocated = corev1.ResourceList{}
		for r, total := range capacity.AmountsOf(c.Status.ResourceSummary.Allocatable) {
			c.Status.ResourceSummary.Allocated[r] = capacity.Quantity(r, total-s.rooms.free[name][r])
		}
		f.clusters[name] = c
	}
	return recordOf(t, f)
}

// recordOf returns a fleet as a file has it.
func recordOf(t testing.TB, f *Fleet) []Object {
	t.Helper()
	var all []Object
	add := func(apiVersion, kind string, obj any) {
		raw, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw, &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		raw, _ = u.MarshalJSON()
		if err := u.UnmarshalJSON(raw); err != nil { // numbers as an API server has them
			t.Fatal(err)
		}
		all = append(all, Object{Recorded(u), "hub"})
	}
	scoped := func(namespace, kind string) string {
		if namespace == "" {
			return "Cluster" + kind
		}
		return kind
	}
	for _, c := range f.clusters {
		add("cluster.karmada.io/v1alpha1", "Cluster", c)
	}
	for key, p := range f.policies {
		add("policy.karmada.io/v1alpha1", scoped(key.Namespace, "PropagationPolicy"), p)
	}
	for key, o := range f.overrides {
		add("policy.karmada.io/v1alpha1", scoped(key.Namespace, "OverridePolicy"), o)
	}
	for key, b := range f.bindings {
		add("work.karmada.io/v1alpha2", scoped(key.Namespace, "ResourceBinding"), b)
	}
	for _, u := range f.templates {
		add(u.GetAPIVersion(), u.GetKind(), u.Object)
	}
	return all
}

func TestRecordedFleetEqualsItsSource(t *testing.T) {
	rounds := uint64(60)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		text := anyFleet(rand.New(rand.NewPCG(seed, 5)))
		recorded, err := Load(settled(t, text), "default")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []Change{{}, {Removed: []string{"m0"}}, {Taints: []Taint{taint(t, "m1=k2:NoExecute")}},
			{Scale: []Scale{scale(t, "deployment/d0=20")}}} {
			want, got := run(t, load(t, text), c), run(t, recorded, c)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, %v: the recorded fleet differs (-made up +recorded):\n%s", seed, want.Change, diff)
			}
			if c.Removed == nil && c.Taints == nil && c.Scale == nil && got.Summary.Changed != 0 {
				t.Fatalf("seed %d: a settled fleet moves: %+v", seed, got.Summary)
			}
		}
	}
}

func TestALazyPolicyWaitsForTheTemplate(t *testing.T) {
	lazy := func(cluster string) string {
		return strings.Replace(policy("shop", "[{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: Secret}]",
			"{clusterAffinity: {clusterNames: ["+cluster+"]}}"),
			"spec: {", "spec: {activationPreference: Lazy, ", 1)
	}
	f, err := Load(settled(t, three+lazy("m1")+deployment("web", 2)+
		"\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\ndata: {a: Yg==}\n---\n"), "default")
	if err != nil {
		t.Fatal(err)
	}
	where := func(c Change) string {
		var all []string
		for _, w := range run(t, f, c).Workloads {
			all = append(all, w.Name+" "+shares(w.After))
		}
		return strings.Join(all, ", ")
	}
	for _, c := range []struct {
		name   string
		change Change
		want   string
	}{
		{"nothing changes, not even the Secret that was recorded without its data", Change{}, "web m1:2, s m1"},
		{"the policy changes, and waits", Change{Objects: objects(t, lazy("m2"))}, "web m1:2, s m1"},
		{"the policy and a template change", Change{Objects: objects(t, lazy("m2")+deployment("web", 3))}, "web m2:3, s m1"},
		{"the policy changes and a template is scaled",
			Change{Objects: objects(t, lazy("m2")), Scale: []Scale{scale(t, "deployment/web=4")}}, "web m2:4, s m1"},
	} {
		if got := where(c.change); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// `kubectl get -o yaml` shows what the server and kubectl wrote, which is no change of the user.
func TestAnUnchangedObjectOfTheHubChangesNothing(t *testing.T) {
	recorded := settled(t, three+policy("shop", "", byRoom)+deployment("web", 2))
	f, err := Load(recorded, "default")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(recorded, func(o Object) bool { return o.GetKind() == "Deployment" })
	shows := func(changes ...func(*unstructured.Unstructured)) Object {
		u := recorded[i].DeepCopy()
		fields.SetAnnotation(u, corev1.LastAppliedConfigAnnotation, `{"spec":{"replicas":2}}`)
		fields.SetAnnotation(u, wellknown.ChangedByAnnotation, "ann")
		u.SetResourceVersion("77")
		u.SetUID("another")
		u.SetGeneration(9)
		u.SetCreationTimestamp(metav1.Now())
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}})
		u.Object["status"] = map[string]any{"replicas": int64(2)}
		for _, change := range changes {
			change(u)
		}
		return Object{u, "file"}
	}
	changes := func(o Object) (all []string) {
		for _, w := range run(t, f, Change{Objects: []Object{o}}).Workloads {
			for _, o := range w.Overridden {
				all = append(all, o.Changes...)
			}
		}
		return slices.Compact(all)
	}
	if got := changes(shows()); len(got) > 0 {
		t.Errorf("it reports %q", got)
	}
	own := func(u *unstructured.Unstructured) { fields.SetAnnotation(u, "note", "mine") }
	if got := changes(shows(own)); len(got) != 1 || !strings.Contains(got[0], "note") {
		t.Errorf("a change of another annotation is reported as %q", got)
	}
}
