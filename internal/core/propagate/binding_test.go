package propagate_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

var meaning = propagate.Meaning{
	Replicas: 2,
	Requirements: &workv1alpha2.ReplicaRequirements{
		ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
	},
	ID: "id-binding",
}

// scopes are the namespaces of a namespaced and of a cluster-scoped template, with the policy for each.
var scopes = map[string]string{"namespaced": "shop", "cluster-scoped": ""}

func full(namespace string) policyv1alpha1.Propagation {
	p := identified(policy(namespace, "p", 3), "id-p")
	s := p.PropagationSpec()
	s.Placement = policyv1alpha1.Placement{
		ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"eu"}, ExcludeClusters: []string{}},
		WorkloadAffinity: &policyv1alpha1.WorkloadAffinity{AntiAffinity: &policyv1alpha1.WorkloadAffinityTerm{
			GroupByLabelKey: "app"}},
	}
	s.Suspension = &policyv1alpha1.Suspension{Dispatching: new(bool)}
	s.ConflictResolution = policyv1alpha1.ConflictOverwrite
	s.PropagateDeps = true
	return p
}

// stored is b as the API server gives it back.
func stored(t *testing.T, b workv1alpha2.Binding) workv1alpha2.Binding {
	t.Helper()
	raw, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	out := reflect.New(reflect.TypeOf(b).Elem()).Interface().(workv1alpha2.Binding)
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func bind(t *testing.T, template *unstructured.Unstructured, p policyv1alpha1.Propagation, m propagate.Meaning,
	existing workv1alpha2.Binding) workv1alpha2.Binding {
	t.Helper()
	b, err := propagate.Binding(template, p, m, existing)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNewBindingHasLabelsOfKarmada(t *testing.T) {
	for name, namespace := range scopes {
		t.Run(name, func(t *testing.T) {
			tpl := template(namespace, "Web:1")
			tpl.SetLabels(map[string]string{"app": "web"})
			b := bind(t, tpl, full(namespace), meaning, nil)

			if want := strings.ToLower("web.1-" + tpl.GetKind()); b.GetName() != want || b.GetNamespace() != namespace {
				t.Errorf("named %s/%s, want %s/%s", b.GetNamespace(), b.GetName(), namespace, want)
			}
			owner := metav1.GetControllerOf(b)
			if owner == nil || owner.UID != tpl.GetUID() || owner.Kind != tpl.GetKind() || owner.BlockOwnerDeletion == nil ||
				!*owner.BlockOwnerDeletion {
				t.Errorf("owned by %+v, want the template as blocking controller", owner)
			}
			finalizer, label := workv1alpha2.BindingFinalizer, workv1alpha2.ResourceBindingPermanentIDLabel
			if namespace == "" {
				finalizer, label = workv1alpha2.ClusterBindingFinalizer, workv1alpha2.ClusterResourceBindingPermanentIDLabel
			}
			if f := b.GetFinalizers(); !reflect.DeepEqual(f, []string{finalizer}) {
				t.Errorf("finalizers %v, want %s", f, finalizer)
			}
			if b.GetLabels()[label] != "id-binding" || propagate.PermanentID(b) != "id-binding" {
				t.Errorf("labels %v lack the permanent id", b.GetLabels())
			}
			if claim, _ := propagate.Claimed(b); claim != propagate.ClaimOf(full(namespace)) {
				t.Errorf("claimed by %v", claim)
			}
			spec := b.BindingSpec()
			if r := spec.Resource; r.Name != "Web:1" || r.UID != tpl.GetUID() || r.Kind != tpl.GetKind() ||
				r.APIVersion != tpl.GetAPIVersion() || r.Namespace != namespace || r.ResourceVersion != "100" {
				t.Errorf("refers to %+v", r)
			}
			if spec.Replicas != 2 || spec.ReplicaRequirements == nil || spec.Placement.ClusterAffinity.ClusterNames[0] != "eu" ||
				spec.SchedulerName != "default-scheduler" || spec.ConflictResolution != policyv1alpha1.ConflictOverwrite ||
				!spec.PropagateDeps ||
				spec.Suspension == nil || spec.Suspension.Dispatching == nil ||
				spec.WorkloadAffinityGroups.AntiAffinityGroup != "app=web" {
				t.Errorf("the spec does not carry the policy: %+v", spec)
			}
		})
	}
}

func TestASecondRunChangesNothing(t *testing.T) {
	for name, namespace := range scopes {
		t.Run(name, func(t *testing.T) {
			tpl, p := template(namespace, "web"), full(namespace)
			existing := stored(t, bind(t, tpl, p, meaning, nil))
			before := existing.DeepCopyObject()

			// The status came back, the claim was written, another id was drawn.
			tpl.SetResourceVersion("200")
			tpl.Object["status"] = map[string]any{"readyReplicas": int64(2)}
			propagate.Claim(tpl, p)
			again := meaning
			again.ID = "id-other"
			b := bind(t, tpl, p, again, existing)
			if !equality.Semantic.DeepEqual(b, existing) {
				t.Errorf("rewritten without a reason:\n%+v\nwas\n%+v", b, existing)
			}
			if !reflect.DeepEqual(existing, before) {
				t.Error("the existing binding, which a cache shares, was changed")
			}
		})
	}
}

func TestTheTemplatesVersionFollowsItsContent(t *testing.T) {
	p := full("shop")
	for name, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   string
	}{
		"status": {func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"replicas": int64(1)} },
			"100"},
		"a finalizer": {func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"x/y"}) }, "100"},
		"the mark of a lazy claim": {func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{wellknown.AwaitingChangeAnnotation: "x"})
		}, "100"},
		"the spec": {func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"replicas": int64(3)} },
			"200"},
		"a label":            {func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }, "200"},
		"an annotation":      {func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "b"}) }, "200"},
		"a field of its own": {func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"a": "b"} }, "200"},
		"a label that steers us too": {func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{policyv1alpha1.RetainReplicasLabel: "true"})
		}, "200"},
	} {
		t.Run(name, func(t *testing.T) {
			tpl := template("shop", "web")
			existing := stored(t, bind(t, tpl, p, meaning, nil))
			is := tpl.DeepCopy()
			is.SetResourceVersion("200")
			c.change(is)
			if got := bind(t, is, p, meaning, existing).BindingSpec().Resource.ResourceVersion; got != c.want {
				t.Errorf("resourceVersion %s, want %s", got, c.want)
			}
		})
	}
}

func TestFieldsOfOtherControllersAreKept(t *testing.T) {
	tpl, p := template("shop", "web"), full("shop")
	existing := bind(t, tpl, p, meaning, nil)
	yes, now := true, metav1.Now()
	s := existing.BindingSpec()
	s.Clusters = []workv1alpha2.TargetCluster{{Name: "eu", Replicas: 2}}
	s.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "x-deployment"}}
	s.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "us"}}
	s.RescheduleTriggeredAt = &now
	s.Suspension.Scheduling = &yes
	existing.GetLabels()["mine"] = "too"
	existing.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation] = "{}"
	existing.SetFinalizers(append(existing.GetFinalizers(), "other/finalizer"))

	p.PropagationSpec().Suspension = nil
	p.PropagationSpec().Placement.ClusterAffinity.ClusterNames = []string{"us"}
	b := bind(t, tpl, p, meaning, existing)
	want := existing.DeepCopyObject().(workv1alpha2.Binding)
	want.BindingSpec().Placement.ClusterAffinity.ClusterNames = []string{"us"}
	want.BindingSpec().Suspension = &workv1alpha2.Suspension{Scheduling: &yes}
	if !equality.Semantic.DeepEqual(b, want) {
		t.Errorf("got\n%+v\nwant\n%+v", b, want)
	}
}

func TestPausedTemplateIsNeitherWrittenNorDeleted(t *testing.T) {
	for scope, namespace := range scopes {
		tpl, p := template(namespace, "web"), full(namespace)
		p.PropagationSpec().Suspension = nil
		before := bind(t, tpl, p, meaning, nil)
		for _, paused := range []bool{true, false} {
			tpl.SetAnnotations(map[string]string{wellknown.PauseManagementAnnotation: strconv.FormatBool(paused)})
			spec := bind(t, tpl, p, meaning, before).BindingSpec()
			suspended := spec.Suspension != nil && spec.Suspension.Dispatching != nil && *spec.Suspension.Dispatching
			preserved := spec.PreserveResourcesOnDeletion != nil && *spec.PreserveResourcesOnDeletion
			if suspended != paused || preserved != paused {
				t.Errorf("%s, paused %t: suspended %t, preserved %t", scope, paused, suspended, preserved)
			}
		}
	}
}

func TestLastResultIsKeptWhileInterpreterFails(t *testing.T) {
	for scope, namespace := range scopes {
		tpl, p := template(namespace, "web"), full(namespace)
		if propagate.Read(tpl, nil) {
			t.Errorf("%s: nothing was read of what has no binding", scope)
		}
		existing := bind(t, tpl, p, meaning, nil)
		if !propagate.Read(tpl, existing) {
			t.Errorf("%s: its replicas were read", scope)
		}
		p.PropagationSpec().Placement.ClusterAffinity.ClusterNames = []string{"us"}
		b := bind(t, tpl, p, propagate.Meaning{ID: "id", Unread: true}, existing).BindingSpec()
		if b.Replicas != meaning.Replicas || !equality.Semantic.DeepEqual(b.ReplicaRequirements, meaning.Requirements) ||
			b.Placement.ClusterAffinity.ClusterNames[0] != "us" {
			t.Errorf("%s: got %+v, want the policy as it is, and %d replicas", scope, b, meaning.Replicas)
		}

		// A binding of a dependency only, which follows other bindings, has no policy.
		existing.BindingSpec().Placement = nil
		if propagate.Read(tpl, existing) {
			t.Errorf("%s: the replicas of a dependency are taken for read", scope)
		}
		other := template(namespace, "web")
		other.SetUID("another")
		existing.BindingSpec().Placement = &p.PropagationSpec().Placement
		if propagate.Read(other, existing) {
			t.Errorf("%s: the replicas of a template that is gone are taken for those of the next", scope)
		}
	}
}

func TestABindingOfAnotherTemplate(t *testing.T) {
	p := full("shop")
	existing := bind(t, template("shop", "web"), p, meaning, nil)
	going := existing.DeepCopyObject().(workv1alpha2.Binding)
	going.SetDeletionTimestamp(&metav1.Time{})

	anew := template("shop", "web")
	anew.SetUID("another")
	namesake := template("shop", "web")
	namesake.SetAPIVersion("example.io/v1")
	for name, c := range map[string]struct {
		template *unstructured.Unstructured
		existing workv1alpha2.Binding
		want     error
	}{
		"a template made anew waits for the old binding to go":    {anew, going, propagate.ErrTerminating},
		"a template made anew never takes over the old binding":   {anew, existing, propagate.ErrOutlived},
		"a binding that somebody deletes is made anew afterwards": {template("shop", "web"), going, propagate.ErrTerminating},
		"two kinds of one name in two groups share one name":      {namesake, existing, propagate.ErrTaken},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := propagate.Binding(c.template, p, meaning, c.existing); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

func TestABindingMadeForADependencyIsTakenOver(t *testing.T) {
	tpl, p := template("shop", "web"), full("shop")
	attached, err := propagate.For(tpl, nil)
	if err != nil {
		t.Fatal(err)
	}
	propagate.Refer(attached, tpl)
	attached.SetLabels(map[string]string{workv1alpha2.DependedByLabelPrefix + "abc": "id-x"})
	attached.BindingSpec().RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "x"}}
	b := bind(t, tpl, p, meaning, attached)
	if b.BindingSpec().Placement == nil || len(b.BindingSpec().RequiredBy) != 1 ||
		b.GetLabels()[workv1alpha2.DependedByLabelPrefix+"abc"] != "id-x" {
		t.Errorf("one of the two claims is lost: %+v", b)
	}
}

// What a pause preserved is not taken for what a dependent was granted, and the other way round.
func TestPauseLeavesNothingOnRequiredBinding(t *testing.T) {
	for scope, namespace := range scopes {
		for _, granted := range []bool{false, true} {
			tpl, p := template(namespace, "web"), full(namespace)
			before := bind(t, tpl, p, meaning, nil)
			before.BindingSpec().RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "x"}}
			if granted {
				before.BindingSpec().PreserveResourcesOnDeletion = new(true)
			}
			paused := tpl.DeepCopy()
			paused.SetAnnotations(map[string]string{wellknown.PauseManagementAnnotation: "true"})
			while := bind(t, paused, p, meaning, before)
			if again := bind(t, paused, p, meaning, while); !equality.Semantic.DeepEqual(again, while) {
				t.Errorf("%s: a second look changes it: %+v", scope, again)
			}
			if preserve := while.BindingSpec().PreserveResourcesOnDeletion; preserve == nil || !*preserve {
				t.Errorf("%s: it is not preserved", scope)
			}
			if after := bind(t, tpl, p, meaning, while); !equality.Semantic.DeepEqual(after.BindingSpec(),
				before.BindingSpec()) || !equality.Semantic.DeepEqual(after.GetAnnotations(), before.GetAnnotations()) {
				t.Errorf("%s, granted %t: afterwards it is\n%+v %v\nand was\n%+v %v", scope, granted, after.BindingSpec(),
					after.GetAnnotations(), before.BindingSpec(), before.GetAnnotations())
			}
		}
	}
}

func TestRequestsOfDependentsStayGranted(t *testing.T) {
	tpl, p := template("shop", "web"), full("shop")
	p.PropagationSpec().ConflictResolution = policyv1alpha1.ConflictAbort
	existing := bind(t, tpl, p, meaning, nil)
	yes := true
	spec := existing.BindingSpec()
	spec.ConflictResolution, spec.PreserveResourcesOnDeletion = policyv1alpha1.ConflictOverwrite, &yes
	spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "x"}}
	if b := bind(t, tpl, p, meaning, existing); !equality.Semantic.DeepEqual(b, existing) {
		t.Errorf("the policy undoes what a dependent asked for: %+v", b.BindingSpec())
	}
	spec.RequiredBy = nil
	if s := bind(t, tpl, p, meaning, existing).BindingSpec(); s.ConflictResolution != policyv1alpha1.ConflictAbort ||
		s.PreserveResourcesOnDeletion != nil {
		t.Errorf("with nobody depending on it the policy alone speaks, got %+v", s)
	}
}

// A Lazy policy, from every way of claiming, until a user changes the template.
func TestLazyActivation(t *testing.T) {
	lazy := full("shop")
	lazy.PropagationSpec().ActivationPreference = policyv1alpha1.LazyActivation
	other := identified(policy("shop", "other", 0), "id-other")
	eager := full("shop")

	// held is a template that lazy claimed: after the fact, or as it was created.
	held := func(afterwards bool) *unstructured.Unstructured {
		u := template("shop", "web")
		propagate.Claim(u, lazy)
		if afterwards {
			propagate.Await(u, lazy)
		}
		return u
	}
	edited := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u = u.DeepCopy()
		u.Object["spec"] = map[string]any{"replicas": int64(9)}
		return u
	}
	// A CloneSet that names pods for deletion, and what the hub makes of it when they are gone.
	names := func(u *unstructured.Unstructured, pods ...any) *unstructured.Unstructured {
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "CloneSet"})
		u.Object["spec"] = map[string]any{"replicas": int64(2), "scaleStrategy": map[string]any{"podsToDelete": pods}}
		return u
	}
	pods := names(template("shop", "web"), "web-a", "web-b")
	propagate.Claim(pods, lazy)
	deleted := fleet.WithoutPods(pods, []string{"web-a", "web-b"})
	waitingForPods := pods.DeepCopy()
	propagate.Await(waitingForPods, lazy)
	labelledByUs := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u = u.DeepCopy()
		labels := u.GetLabels()
		labels[policyv1alpha1.RetainReplicasLabel] = "true"
		u.SetLabels(labels)
		return u
	}
	for name, c := range map[string]struct {
		template *unstructured.Unstructured
		policy   policyv1alpha1.Propagation
		existing workv1alpha2.Binding
		want     bool
	}{
		"a policy that is not lazy acts at once":              {held(true), eager, nil, true},
		"claimed at its creation":                             {held(false), lazy, nil, true},
		"claimed after the fact":                              {held(true), lazy, nil, false},
		"claimed after the fact, then changed by its user":    {edited(held(true)), lazy, nil, true},
		"claimed after the fact, then only marked by Karmada": {labelledByUs(held(true)), lazy, nil, false},
		"in effect, the policy changed": {held(false), lazy,
			bind(t, held(false), lazy, meaning, nil), false},
		"in effect, the template changed": {edited(held(false)), lazy,
			bind(t, held(false), lazy, meaning, nil), true},
		"in effect, the pods that it named are gone": {deleted, lazy, bind(t, pods, lazy, meaning, nil), false},
		"claimed after the fact, the pods it named are gone": {fleet.WithoutPods(waitingForPods,
			[]string{"web-a", "web-b"}), lazy, nil, false},
		"in effect, the pods are gone and it is changed": {edited(deleted), lazy, bind(t, pods, lazy, meaning, nil),
			true},
		"taken over from another policy": {held(true), lazy, bind(t, held(true), other, meaning, nil),
			false},
		"taken over from another policy, then changed": {edited(held(true)), lazy,
			bind(t, held(true), other, meaning, nil), true},
		"claimed at creation, a dependency's binding came first": {held(false), lazy,
			bind(t, held(false), other, meaning, nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := propagate.Activated(c.template, c.policy, c.existing, false); got != c.want {
				t.Errorf("acts = %v, want %v", got, c.want)
			}
		})
	}

	if propagate.Digest(pods) == propagate.Digest(deleted) {
		t.Error("the Works are not made anew for pods that are named for deletion")
	}
	waiting := held(true)
	if !propagate.Waiting(waiting) || propagate.Await(waiting, lazy) {
		t.Error("waiting twice is one wait")
	}
	if !propagate.StopWaiting(waiting) || propagate.Waiting(waiting) || propagate.StopWaiting(waiting) {
		t.Error("the wait does not end")
	}
}

func TestSameContent(t *testing.T) {
	was := template("shop", "web")
	for name, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		same   bool
	}{
		"nothing":              {func(*unstructured.Unstructured) {}, true},
		"status":               {func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"a": "b"} }, true},
		"the resource version": {func(u *unstructured.Unstructured) { u.SetResourceVersion("7") }, true},
		"a field removed":      {func(u *unstructured.Unstructured) { delete(u.Object, "spec") }, false},
		"a field added":        {func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{} }, false},
		"a claim":              {func(u *unstructured.Unstructured) { propagate.Claim(u, full("shop")) }, false},
		"a deletion": {func(u *unstructured.Unstructured) { now := metav1.Now(); u.SetDeletionTimestamp(&now) },
			false},
		"another object": {func(u *unstructured.Unstructured) { u.SetUID("x") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			is := was.DeepCopy()
			c.change(is)
			if got := propagate.SameContent(was, is); got != c.same {
				t.Errorf("same = %v, want %v", got, c.same)
			}
		})
	}
}

func TestBindingKeepsSidecarsWhileUnknown(t *testing.T) {
	needs := func(cpu string, sidecars ...string) propagate.Meaning {
		m := meaning
		m.Requirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu)}}
		m.Sidecars = sidecars
		return m
	}
	unread := func(m propagate.Meaning) propagate.Meaning {
		m.SidecarsUnread = true
		return m
	}
	tpl := template("shop", "web")
	edited := tpl.DeepCopy()
	edited.SetLabels(map[string]string{"now": "another"})
	p := full("shop")
	counted, plain := bind(t, tpl, p, needs("600m", "logs", "proxy"), nil), bind(t, tpl, p, needs("500m"), nil)
	for _, c := range []struct {
		name     string
		existing workv1alpha2.Binding
		template *unstructured.Unstructured
		m        propagate.Meaning
		cpu, who string
	}{
		{"they count", nil, tpl, needs("600m", "logs", "proxy"), "600m", "logs,proxy"},
		{"none does", nil, tpl, needs("500m"), "500m", ""},
		{"one has gone", counted, tpl, needs("550m", "logs"), "550m", "logs"},
		{"all have gone", counted, tpl, needs("500m"), "500m", ""},
		{"nobody knows, as at a start", counted, tpl, unread(needs("500m")), "600m", "logs,proxy"},
		{"nobody knows, and none counted", plain, tpl, unread(needs("400m")), "400m", ""},
		{"nobody knows, and the template is another", counted, edited, unread(needs("400m")), "400m", ""},
		{"nobody knows, and it is new", nil, tpl, unread(needs("500m")), "500m", ""},
	} {
		b := bind(t, c.template, p, c.m, c.existing)
		if cpu := b.BindingSpec().ReplicaRequirements.ResourceRequest[corev1.ResourceCPU]; cpu.Cmp(
			resource.MustParse(c.cpu)) != 0 || b.GetAnnotations()[wellknown.SidecarsAnnotation] != c.who {
			t.Errorf("%s: it needs %s with %q, want %s with %q", c.name, &cpu, b.GetAnnotations()[wellknown.SidecarsAnnotation],
				c.cpu, c.who)
		}
	}
}
