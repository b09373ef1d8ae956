package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/test/kit"
)

const workGroup = "work.karmada.io/v1alpha1"

// notApplied says what is wrong unless a Work failed with a text, and the binding and an event of the Work say so too.
func notApplied(t *testing.T, member, kind, namespace, name, text string) string {
	t.Helper()
	w := work(t, member, kind, namespace, name)
	if w == nil {
		return "there is no Work in " + member
	}
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	if c == nil || c.Status != "False" || c.Reason != workv1alpha1.ReasonAppliedFailed || !strings.Contains(c.Message, text) {
		return fmt.Sprintf("the Work's condition is %+v", c)
	}
	b := binding(t, namespace, names.Binding(kind, name))
	fully := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied)
	if fully == nil || fully.Status != "False" || fully.Reason != workv1alpha2.ReasonFullyAppliedFailed {
		return fmt.Sprintf("the binding's condition is %+v", fully)
	}
	said := false
	for _, item := range b.Status.AggregatedStatus {
		said = said || item.ClusterName == member && !item.Applied && strings.Contains(item.AppliedMessage, text)
	}
	if !said {
		return fmt.Sprintf("the aggregated status is %+v", b.Status.AggregatedStatus)
	}
	for _, told := range fleet.Hub.Told(t, "Work", w.Namespace, w.Name, workv1alpha2.EventSyncFailed) {
		if strings.Contains(told, text) {
			return ""
		}
	}
	return "no event tells it"
}

// rests says that nobody writes a Work for a while: a failure is not retried hot, nor told again and again.
func rests(t *testing.T, member, kind, namespace, name string) {
	t.Helper()
	version := func() string {
		if w := work(t, member, kind, namespace, name); w != nil {
			return w.ResourceVersion
		}
		return "gone"
	}
	before := version()
	kit.Stays(t, "the Work is not written", 3*time.Second, func() string {
		if now := version(); now != before {
			return "its version was " + before + ", is " + now
		}
		return ""
	})
}

func TestSuspendedDispatchingHoldsBackChangesAndNotDeletions(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation(ns, "p", "{suspension: {dispatchingOnClusters: {clusterNames: [m2]}}, resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: "+to("m1", "m2")+"}"))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	kit.Eventually(t, "m1 has it", func() string { return holds(t, "v1", "ConfigMap", ns, "c", "m1") })
	dispatching := func(member string, want string) func() string {
		return func() string {
			w := work(t, member, "ConfigMap", ns, "c")
			if w == nil {
				return "there is no Work"
			}
			c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDispatching)
			if c == nil || string(c.Status)+" "+c.Reason+" "+c.Message != want {
				return fmt.Sprintf("the condition is %+v", c)
			}
			return ""
		}
	}
	const going, held = "True Dispatching Work is being dispatched to member clusters.", "False SuspendDispatching Work dispatching is in a suspended state."
	kit.Eventually(t, "the Work of m1 says that it goes", dispatching("m1", going))
	kit.Eventually(t, "the Work of m2 says that it is held", dispatching("m2", held))

	changeSpec(t, "PropagationPolicy", ns, "p", map[string]any{"dispatching": true}, "suspension")
	kit.Eventually(t, "now m1 is held too", dispatching("m1", held))
	setData(t, ns, "c", "2")
	kit.Stays(t, "a change is held back", quiet, func() string {
		if got := inMember(t, "m1", "v1", "ConfigMap", ns, "c", "data", "key"); got != "1" {
			return fmt.Sprintf("m1 has %v", got)
		}
		return holds(t, "v1", "ConfigMap", ns, "c", "m1")
	})
	fleet.Hub.Change(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "p", func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "suspension")
	})
	for _, m := range []string{"m1", "m2"} {
		is[any](t, m+" has the change on resume", "2", func() any { return inMember(t, m, "v1", "ConfigMap", ns, "c", "data", "key") })
		kit.Eventually(t, "its Work says that it goes", dispatching(m, going))
	}
	kit.Eventually(t, "the binding knows", func() string { return applied(t, ns, "c-configmap", "m1", "m2") })

	changeSpec(t, "PropagationPolicy", ns, "p", map[string]any{"dispatching": true}, "suspension")
	kit.Eventually(t, "m1 is held again", dispatching("m1", held))
	fleet.Hub.Remove(t, "v1", "ConfigMap", ns, "c")
	kit.Eventually(t, "a deletion is not held back", func() string { return holds(t, "v1", "ConfigMap", ns, "c") })
}

// theirs makes a ConfigMap in a member that is not ours.
func theirs(t *testing.T, member, ns, name string) {
	t.Helper()
	kit.Eventually(t, "the namespace is in "+member, func() string {
		if fleet.Members[member].Find(t, "v1", "Namespace", "", ns) == nil {
			return "it is not"
		}
		return ""
	})
	fleet.Members[member].Apply(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {theirs: kept}", name, ns))
}

func TestAnObjectThatIsNotOursIsLeftAloneUnlessWeAreToldToOverwrite(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	theirs(t, "m1", ns, "c")
	was := fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c").GetResourceVersion()
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", to("m1", "m2")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	text := fmt.Sprintf("resource(kind=ConfigMap, %s/c) already exists in the cluster m1 and the work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource", ns)
	kit.Eventually(t, "the conflict is told", func() string { return notApplied(t, "m1", "ConfigMap", ns, "c", text) })
	kit.Eventually(t, "the other member has it", func() string {
		if inMember(t, "m2", "v1", "ConfigMap", ns, "c", "data", "key") != "1" {
			return "it has not"
		}
		return ""
	})
	if got := work(t, "m1", "ConfigMap", ns, "c").Status.Conditions; !strings.HasPrefix(meta.FindStatusCondition(got, workv1alpha1.WorkApplied).Message, "Failed to apply all manifests (0/1): resource(kind=") {
		t.Errorf("conditions are %+v", got)
	}
	rests(t, "m1", "ConfigMap", ns, "c")
	if now := fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c").GetResourceVersion(); now != was {
		t.Error("the member's own object was written")
	}

	changeSpec(t, "PropagationPolicy", ns, "p", "Overwrite", "conflictResolution")
	kit.Eventually(t, "told to, we take it over", func() string { return applied(t, ns, "c-configmap", "m1", "m2") })
	u := fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c")
	if kit.Field(u, "data", "key") != "1" || kit.Field(u, "data", "theirs") != "kept" || u.GetLabels()[workv1alpha2.ManagedLabel] != "true" {
		t.Errorf("it is %v", u.Object)
	}
}

func TestTheTemplatesOwnAnnotationResolvesConflictsBeforeThePolicy(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	theirs(t, "m1", ns, "mine")
	theirs(t, "m1", ns, "yours")
	spec := "resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: %s}], placement: " + to("m1") + "}"
	fleet.Hub.Apply(t, propagation(ns, "a", "{conflictResolution: Abort, "+fmt.Sprintf(spec, "mine")))
	fleet.Hub.Apply(t, propagation(ns, "o", "{conflictResolution: Overwrite, "+fmt.Sprintf(spec, "yours")))
	for name, resolution := range map[string]string{"mine": "overwrite", "yours": "abort"} {
		fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, annotations: {work.karmada.io/conflict-resolution: %s}}, data: {key: "1"}}`, name, ns, resolution))
	}
	kit.Eventually(t, "what the template wants overwritten is", func() string { return applied(t, ns, "mine-configmap", "m1") })
	kit.Eventually(t, "what the template wants left alone is", func() string {
		return notApplied(t, "m1", "ConfigMap", ns, "yours", "already exists in the cluster m1")
	})
	fleet.Members["m1"].Remove(t, "v1", "ConfigMap", ns, "yours")
	kit.Eventually(t, "when theirs is gone, ours comes", func() string { return applied(t, ns, "yours-configmap", "m1") })
}

func TestPreservedResourcesOutliveTheirTemplate(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation(ns, "p", "{preserveResourcesOnDeletion: true, resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: "+to("m1", "m2")+"}"))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	kit.Eventually(t, "it is sent", func() string { return applied(t, ns, "c-configmap", "m1", "m2") })
	changeSpec(t, "PropagationPolicy", ns, "p", []any{"m1"}, "placement", "clusterAffinity", "clusterNames")
	kit.Eventually(t, "the Work of m2 goes", func() string {
		if work(t, "m2", "ConfigMap", ns, "c") != nil {
			return "it is there"
		}
		return ""
	})
	fleet.Hub.Remove(t, "v1", "ConfigMap", ns, "c")
	is(t, "the binding goes", true, func() bool { return binding(t, ns, "c-configmap") == nil })
	for _, m := range []string{"m1", "m2"} {
		kit.Eventually(t, m+" keeps it, without our marks", func() string {
			u := fleet.Members[m].Find(t, "v1", "ConfigMap", ns, "c")
			if kit.Field(u, "data", "key") != "1" {
				return "it has lost it"
			}
			for _, marks := range []map[string]string{u.GetLabels(), u.GetAnnotations()} {
				for key := range marks {
					if strings.Contains(key, "karmada.io/") {
						return "it has the mark " + key
					}
				}
			}
			if u.GetLabels()["app"] != "c" {
				return "it lost its own labels"
			}
			return ""
		})
	}
}

func TestProtectedObjectsAreNotDeleted(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	u := fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: %s, labels: {%s: Always}}}`, ns, policyv1alpha1.DeletionProtectionLabel))[0]
	err := fleet.Hub.Delete(t.Context(), u)
	if !apierrors.IsForbidden(err) {
		t.Errorf("deleting a protected object gave %v, want a 403", err)
	}
	fleet.Hub.Change(t, "v1", "ConfigMap", ns, "c", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	fleet.Hub.Remove(t, "v1", "ConfigMap", ns, "c")
}

func TestWhatIsDeletedByHandComesBack(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", to("m1", "m2")))
	fleet.Hub.Apply(t, deployment(ns, "web", 1, "example.com/web:1"))
	all := func() string { return applied(t, ns, "web-deployment", "m1", "m2") }
	kit.Eventually(t, "it is sent", all)
	b, w := binding(t, ns, "web-deployment"), work(t, "m1", "Deployment", ns, "web")
	for what, finalizer := range map[string]bool{
		"binding": len(b.Finalizers) == 1 && b.Finalizers[0] == workv1alpha2.BindingFinalizer,
		"Work":    len(w.Finalizers) == 1 && w.Finalizers[0] == workv1alpha2.ExecutionFinalizer,
	} {
		if !finalizer {
			t.Errorf("the %s has other finalizers: %v, %v", what, b.Finalizers, w.Finalizers)
		}
	}

	fleet.Hub.Remove(t, workGroup, "Work", w.Namespace, w.Name)
	kit.Eventually(t, "a Work comes back", func() string {
		if now := work(t, "m1", "Deployment", ns, "web"); now == nil || now.UID == w.UID {
			return "it is not there"
		}
		return all()
	})
	fleet.Hub.Remove(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, "web-deployment")
	kit.Eventually(t, "a binding comes back", func() string {
		if now := binding(t, ns, "web-deployment"); now == nil || now.UID == b.UID {
			return "it is not there"
		}
		return all()
	})
	kit.Eventually(t, "the members have it", func() string { return holds(t, "apps/v1", "Deployment", ns, "web", "m1", "m2") })
}

func TestATemplateMadeAnewAtOnceIsSentAnew(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", to("m1", "m2")))
	for i := range 4 {
		value := fmt.Sprint(i)
		u := fleet.Hub.Apply(t, configMap(ns, "c", value))[0]
		for _, m := range []string{"m1", "m2"} {
			kit.Eventually(t, m+" has the one made last", func() string {
				in := fleet.Members[m].Find(t, "v1", "ConfigMap", ns, "c")
				if in == nil || kit.Field(in, "data", "key") != value || in.GetAnnotations()[workv1alpha2.TemplateUIDAnnotation] != string(u.GetUID()) {
					return fmt.Sprintf("it has %v", in)
				}
				return ""
			})
		}
		kit.Eventually(t, "the binding is its own", func() string {
			if b := binding(t, ns, "c-configmap"); b == nil || b.Spec.Resource.UID != u.GetUID() || b.OwnerReferences[0].UID != u.GetUID() {
				return "it is another's"
			}
			return applied(t, ns, "c-configmap", "m1", "m2")
		})
		fleet.Hub.Remove(t, "v1", "ConfigMap", ns, "c")
	}
}

// A member object that somebody holds with a finalizer holds all above it, so that nothing is forgotten.
func TestNothingIsForgottenBeforeItIsGoneBelow(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", to("m1", "m2")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	kit.Eventually(t, "it is sent", func() string { return applied(t, ns, "c-configmap", "m1", "m2") })
	fleet.Members["m1"].Change(t, "v1", "ConfigMap", ns, "c", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/hold"}) })
	fleet.Hub.Remove(t, "v1", "ConfigMap", ns, "c")
	kit.Eventually(t, "m2 lets go", func() string { return holds(t, "v1", "ConfigMap", ns, "c", "m1") })
	kit.Stays(t, "Work and binding wait for m1", quiet, func() string {
		if work(t, "m1", "ConfigMap", ns, "c") == nil || binding(t, ns, "c-configmap") == nil {
			return "one of them is gone"
		}
		return ""
	})
	fleet.Members["m1"].Change(t, "v1", "ConfigMap", ns, "c", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	is(t, "then all goes", true, func() bool { return work(t, "m1", "ConfigMap", ns, "c") == nil && binding(t, ns, "c-configmap") == nil })
}

func TestAFieldThatAMemberWillNotChangeIsToldAndMendedByANewObject(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", to("m1")))
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: %s}, data: {key: a}}", ns))
	kit.Eventually(t, "it is sent", func() string { return applied(t, ns, "c-configmap", "m1") })
	fleet.Members["m1"].Change(t, "v1", "ConfigMap", ns, "c", func(u *unstructured.Unstructured) { u.Object["immutable"] = true })
	setData(t, ns, "c", "b")
	kit.Eventually(t, "the member's refusal is told", func() string {
		return notApplied(t, "m1", "ConfigMap", ns, "c", "field is immutable when `immutable` is set")
	})
	rests(t, "m1", "ConfigMap", ns, "c")
	fleet.Members["m1"].Remove(t, "v1", "ConfigMap", ns, "c")
	is[any](t, "when it is deleted there, it is made as it should be", "b", func() any { return inMember(t, "m1", "v1", "ConfigMap", ns, "c", "data", "key") })
	kit.Eventually(t, "and all is told to be well", func() string { return applied(t, ns, "c-configmap", "m1") })
}

func TestNamesWithColonsGoTheWholeWay(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	const group = "rbac.authorization.k8s.io/v1"
	name := "Team:" + ns + ":Reader"
	fleet.Hub.Apply(t, propagation("", ns, "{resourceSelectors: [{apiVersion: "+group+", kind: ClusterRole, name: '"+name+"'}], placement: "+to("m1")+"}"))
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: %s, kind: ClusterRole, metadata: {name: '%s'}, rules: []}", group, name))
	kit.Eventually(t, "it is in m1", func() string { return holds(t, group, "ClusterRole", "", name, "m1") })
	if fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ClusterResourceBinding", "", "team."+ns+".reader-clusterrole") == nil {
		t.Error("its binding is not named as tools expect")
	}
	fleet.Hub.Remove(t, group, "ClusterRole", "", name)
	kit.Eventually(t, "it goes again", func() string { return holds(t, group, "ClusterRole", "", name) })
}

// Names of bindings and Works know no groups, so that two kinds of the same name meet. The first goes on, the second is told.
func TestTwoKindsOfTheSameNameDoNotTakeEachOthersBinding(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	spec := "{replicas: 1, serviceName: x, " + podTemplate("x", "example.com/x:1") + "}"
	set := func(group string) string {
		return fmt.Sprintf("{apiVersion: %s, kind: StatefulSet, metadata: {name: x, namespace: %s}, spec: %s}", group, ns, spec)
	}
	fleet.Hub.Apply(t, policy(ns, "native", "apps/v1", "StatefulSet", to("m1"))+"\n---"+policy(ns, "kruise", "apps.kruise.io/v1beta1", "StatefulSet", to("m2")))
	fleet.Hub.Apply(t, set("apps/v1"))
	kit.Eventually(t, "the first is sent", func() string { return applied(t, ns, "x-statefulset", "m1") })
	fleet.Hub.Apply(t, set("apps.kruise.io/v1beta1"))
	kit.Eventually(t, "the second is told what is in its way", func() string {
		for _, told := range fleet.Hub.Told(t, "StatefulSet", ns, "x", workv1alpha2.EventApplyPolicyFailed) {
			if strings.Contains(told, "x-statefulset") {
				return ""
			}
		}
		return "it is not"
	})
	if b := binding(t, ns, "x-statefulset"); b.Spec.Resource.APIVersion != "apps/v1" {
		t.Errorf("the binding is of %+v", b.Spec.Resource)
	}
	if wrong := holds(t, "apps/v1", "StatefulSet", ns, "x", "m1"); wrong != "" {
		t.Error(wrong)
	}
}
