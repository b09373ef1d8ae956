package dependency

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// independent returns a binding with dependencies, scheduled to these clusters.
func independent(name string, clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name,
		Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-of-" + name},
	}}
	b.Spec.PropagateDeps = true
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c, Replicas: 1})
	}
	return b
}

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetUID(types.UID("uid-of-" + name))
	u.SetResourceVersion("7")
	u.SetLabels(map[string]string{"app": name})
	return u
}

func attach(t *testing.T, to *workv1alpha2.ResourceBinding, existing workv1alpha2.Binding) workv1alpha2.Binding {
	t.Helper()
	b, err := Attach(to, object("v1", "ConfigMap", "conf"), existing, "new-id")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// claimable returns the binding of the ConfigMap as from a policy, but without the claim.
func claimable(t *testing.T) workv1alpha2.Binding {
	t.Helper()
	template := object("v1", "ConfigMap", "conf")
	b, err := propagate.For(template, nil)
	if err != nil {
		t.Fatal(err)
	}
	propagate.Refer(b, template)
	return b
}

// wanted lists the requirers of the binding with their clusters.
func wanted(b workv1alpha2.Binding) string {
	var out []string
	for _, s := range b.BindingSpec().RequiredBy {
		var clusters []string
		for _, c := range s.Clusters {
			clusters = append(clusters, c.Name)
		}
		out = append(out, fmt.Sprintf("%s/%s in %s", s.Namespace, s.Name, strings.Join(clusters, "+")))
	}
	return strings.Join(out, ", ")
}

func TestDependencyGetsAttachedBinding(t *testing.T) {
	web := independent("web-deployment", "m1", "m2")
	b := attach(t, web, nil)

	if b.GetNamespace() != "ns" || b.GetName() != "conf-configmap" {
		t.Errorf("name: got %s/%s", b.GetNamespace(), b.GetName())
	}
	if got := wanted(b); got != "ns/web-deployment in m1+m2" {
		t.Errorf("required by: got %s", got)
	}
	spec := b.BindingSpec()
	if spec.Placement != nil || len(spec.Clusters) != 0 || spec.ConflictResolution != policyv1alpha1.ConflictAbort {
		t.Errorf("spec: got %+v", spec)
	}
	if want := (workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "conf",
		UID: "uid-of-conf", ResourceVersion: "7"}); spec.Resource != want {
		t.Errorf("resource: got %+v", spec.Resource)
	}
	if got := b.GetLabels()[names.DependedByLabel(workv1alpha2.DependedByLabelPrefix, "ns",
		"web-deployment")]; got != "id-of-web-deployment" {
		t.Errorf("depended-by label: got %q in %v", got, b.GetLabels())
	}
	if propagate.PermanentID(b) != "new-id" || !slices.Equal(b.GetFinalizers(), []string{workv1alpha2.BindingFinalizer}) {
		t.Errorf("got id %q, finalizers %v", propagate.PermanentID(b), b.GetFinalizers())
	}
	if owner := metav1.GetControllerOf(b); owner == nil || owner.UID != "uid-of-conf" || owner.Kind != "ConfigMap" {
		t.Errorf("owner: got %+v", owner)
	}
}

func TestRequirersAddUpInAnyOrder(t *testing.T) {
	a, z := independent("a", "m1"), independent("z", "m2", "m3")
	one := attach(t, z, attach(t, a, nil))
	other := attach(t, a, attach(t, z, nil))
	if !reflect.DeepEqual(one, other) || wanted(one) != "ns/a in m1, ns/z in m2+m3" {
		t.Errorf("got %s, and in the other order %s", wanted(one), wanted(other))
	}
	before := one.DeepCopyObject()
	if again := attach(t, a, one); !reflect.DeepEqual(again, one) || !reflect.DeepEqual(before, one) {
		t.Error("attaching again changed something")
	}
	a.Spec.Clusters = a.Spec.Clusters[:0]
	a.Spec.Clusters = append(a.Spec.Clusters, workv1alpha2.TargetCluster{Name: "m9"})
	if moved := attach(t, a, one); wanted(moved) != "ns/a in m9, ns/z in m2+m3" {
		t.Errorf("after a moved: got %s", wanted(moved))
	}
}

func TestDependencyWithoutRequirersIsRemoved(t *testing.T) {
	b := attach(t, independent("z", "m2"), attach(t, independent("a", "m1"), nil))
	without, remove := Detach(types.NamespacedName{Namespace: "ns", Name: "a"}, b)
	if remove || wanted(without) != "ns/z in m2" || RequiredBy(without, types.NamespacedName{Namespace: "ns", Name: "a"}) {
		t.Errorf("one left: got %s, remove %v, labels %v", wanted(without), remove, without.GetLabels())
	}
	none, remove := Detach(types.NamespacedName{Namespace: "ns", Name: "z"}, without)
	if !remove || wanted(none) != "" {
		t.Errorf("none left: got %s, remove %v", wanted(none), remove)
	}
	if _, again := Detach(types.NamespacedName{Namespace: "ns", Name: "z"}, none); !again {
		t.Error("the second time it is not to be removed any more")
	}
}

func TestClaimedDependencyStays(t *testing.T) {
	for name, claim := range map[string]func(workv1alpha2.Binding){
		"a policy's label": func(b workv1alpha2.Binding) {
			b.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"})
		},
		"a cluster policy's label": func(b workv1alpha2.Binding) {
			b.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "p"})
		},
		"another component's label": func(b workv1alpha2.Binding) {
			b.SetLabels(map[string]string{workv1alpha2.BindingManagedByLabel: "x"})
		},
		"a placement": func(b workv1alpha2.Binding) { b.BindingSpec().Placement = &policyv1alpha1.Placement{} },
	} {
		t.Run(name, func(t *testing.T) {
			existing := claimable(t)
			claim(existing)
			b := attach(t, independent("a", "m1"), existing)
			if _, remove := Detach(types.NamespacedName{Namespace: "ns", Name: "a"}, b); remove {
				t.Error("it is to be removed")
			}
		})
	}
}

func TestSettingsOfAnyRequirerApply(t *testing.T) {
	yes, no := new(true), new(false)
	for name, c := range map[string]struct{ one, other, want *bool }{
		"neither says":        {nil, nil, nil},
		"one says false":      {no, nil, no},
		"both say false":      {no, no, no},
		"one of them is true": {no, yes, yes},
		"only one says":       {nil, yes, yes},
		"both say true":       {yes, yes, yes},
	} {
		meek, bold := independent("meek", "m1"), independent("bold", "m1")
		meek.Spec.ConflictResolution, meek.Spec.PreserveResourcesOnDeletion = policyv1alpha1.ConflictAbort, c.one
		bold.Spec.ConflictResolution, bold.Spec.PreserveResourcesOnDeletion = policyv1alpha1.ConflictOverwrite, c.other
		for _, order := range [][]*workv1alpha2.ResourceBinding{{meek, bold}, {bold, meek}} {
			spec := attach(t, order[1], attach(t, order[0], nil)).BindingSpec()
			got := spec.PreserveResourcesOnDeletion
			if spec.ConflictResolution != policyv1alpha1.ConflictOverwrite || (got == nil) != (c.want == nil) ||
				got != nil && *got != *c.want {
				t.Errorf("%s: got %s, preserve %v", name, spec.ConflictResolution, got)
			}
		}
	}
	spec := attach(t, independent("meek", "m1"), nil).BindingSpec()
	if spec.ConflictResolution != policyv1alpha1.ConflictAbort {
		t.Errorf("requested by none: got %s", spec.ConflictResolution)
	}
}

func TestClaimingPolicyDecidesSettings(t *testing.T) {
	yes := true
	bold := independent("bold", "m1")
	bold.Spec.ConflictResolution, bold.Spec.PreserveResourcesOnDeletion = policyv1alpha1.ConflictOverwrite, &yes
	existing := claimable(t)
	existing.BindingSpec().Placement = &policyv1alpha1.Placement{}
	existing.BindingSpec().ConflictResolution = policyv1alpha1.ConflictAbort

	b := attach(t, bold, existing)
	if spec := b.BindingSpec(); spec.ConflictResolution != policyv1alpha1.ConflictAbort || preserves(spec) ||
		wanted(b) != "ns/bold in m1" {
		t.Errorf("got %+v", spec)
	}
	if got := Conflicts(b, []workv1alpha2.Binding{bold}); len(got) != 2 {
		t.Errorf("overruled: got %v", got)
	}
	if got := Conflicts(attach(t, bold, nil), []workv1alpha2.Binding{bold}); got != nil {
		t.Errorf("overruled without a policy: got %v", got)
	}
}

func TestBindingOfAnotherObjectIsNotTaken(t *testing.T) {
	existing := attach(t, independent("a", "m1"), nil)
	if _, err := Attach(independent("b", "m1"), object("example.io/v1", "ConfigMap", "conf"), existing,
		"id"); !errors.Is(err, propagate.ErrTaken) {
		t.Errorf("got %v, want %v", err, propagate.ErrTaken)
	}
}

func TestDistributes(t *testing.T) {
	at := metav1.NewTime(time.Unix(1, 0))
	deleting := independent("a", "m1")
	deleting.DeletionTimestamp = &at
	unwilling := independent("a", "m1")
	unwilling.Spec.PropagateDeps = false
	for name, c := range map[string]struct {
		b    *workv1alpha2.ResourceBinding
		want bool
	}{
		"scheduled": {independent("a", "m1"), true}, "unscheduled": {independent("a"), false},
		"deleted": {deleting, false}, "without propagateDeps": {unwilling, false},
	} {
		if got := Distributes(c.b); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestReferenceNamesOrSelects(t *testing.T) {
	labelled := func(labels map[string]string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: labels}
	}
	for _, c := range []struct {
		name string
		ref  configv1alpha1.DependentObjectReference
		want bool
	}{
		{"by name", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns",
			Name: "conf"}, true},
		{"by labels", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns",
			LabelSelector: labelled(map[string]string{"app": "conf"})}, true},
		{"in another version", configv1alpha1.DependentObjectReference{APIVersion: "v2", Kind: "ConfigMap", Namespace: "ns",
			Name: "conf"}, true},
		{"not by another name", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns",
			Name: "other"}, false},
		{"not by other labels", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns",
			LabelSelector: labelled(map[string]string{"app": "x"})}, false},
		{"not in another namespace", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap",
			Namespace: "other", Name: "conf"}, false},
		{"not in another group", configv1alpha1.DependentObjectReference{APIVersion: "example.io/v1", Kind: "ConfigMap",
			Namespace: "ns", Name: "conf"}, false},
	} {
		if got, err := Selects(c.ref, object("v1", "ConfigMap", "conf")); got != c.want || err != nil {
			t.Errorf("%s: got %v, %v", c.name, got, err)
		}
	}
	broken := configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns",
		LabelSelector: labelled(map[string]string{"-": "-"})}
	if _, err := Selects(broken, object("v1", "ConfigMap", "conf")); err == nil {
		t.Error("a broken selector is no error")
	}
}

func TestLeavingBindingsAreMarkedAndNotWanted(t *testing.T) {
	a := types.NamespacedName{Namespace: "ns", Name: "a"}
	marked := attach(t, independent("a", "m1"), nil)
	onlyLabel := marked.DeepCopyObject().(workv1alpha2.Binding)
	onlyLabel.SetName("only-label")
	onlyLabel.BindingSpec().RequiredBy, onlyLabel.BindingSpec().Resource.Name = nil, "only-label"
	other := attach(t, independent("z", "m1"), nil)
	other.SetName("other")
	all := []workv1alpha2.Binding{marked, onlyLabel, other}

	if got := Leaving(a, []identity.Object{propagate.TemplateOfBinding(marked)}, all); len(got) != 1 ||
		got[0].GetName() != "only-label" {
		t.Errorf("got %v", got)
	}
	if got := Leaving(a, nil, all); len(got) != 2 {
		t.Errorf("with nothing wanted: got %v", got)
	}
	if len(all) != 3 || all[2] != other {
		t.Error("the argument was changed")
	}
}

func TestRecordedDependenciesRoundTrip(t *testing.T) {
	deps := []configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "conf"}}
	a := independent("a", "m1")
	b := Record(a, deps)
	if got, want := b.GetAnnotations()[workv1alpha2.DependenciesAnnotation],
		`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"ns","name":"conf"}]`; got != want {
		t.Errorf("annotation: got %s, want %s", got, want)
	}
	if got, err := propagate.RecordedDependencies(b); err != nil || !reflect.DeepEqual(got, deps) {
		t.Errorf("read back: got %v, %v", got, err)
	}
	if !slices.Contains(b.GetFinalizers(), workv1alpha2.DependenciesDistributorFinalizer) {
		t.Errorf("finalizers: got %v", b.GetFinalizers())
	}
	if again := Record(b, deps); !reflect.DeepEqual(again, b) {
		t.Errorf("a second time: got %v", again)
	}
	if none := Record(a, nil); !reflect.DeepEqual(none, workv1alpha2.Binding(a)) {
		t.Errorf("nothing to record: got %v", none)
	}
	if gone := Record(b, nil); gone.GetAnnotations()[workv1alpha2.DependenciesAnnotation] != "" {
		t.Errorf("no more dependencies: got %v", gone.GetAnnotations())
	}
	b.SetAnnotations(map[string]string{workv1alpha2.DependenciesAnnotation: "{"})
	if _, err := propagate.RecordedDependencies(b); err == nil {
		t.Error("a broken annotation is no error")
	}
}

func TestDependencyStaysWhileWorkloadLeavesCluster(t *testing.T) {
	web := independent("web", "m1")
	web.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2"},
		{FromCluster: "m3", PurgeMode: policyv1alpha1.PurgeModeDirectly}, {FromCluster: "m1"}}
	if got, want := wanted(attach(t, web, nil)), "ns/web in m1+m2+m3"; got != want {
		t.Errorf("it is wanted by %s, want %s", got, want)
	}
	if got, want := wanted(attach(t, RestrictTo(web, map[string]bool{"m1": true}).(*workv1alpha2.ResourceBinding), nil)),
		"ns/web in m1"; got != want {
		t.Errorf("in one cluster alone it is wanted by %s, want %s", got, want)
	}
}
