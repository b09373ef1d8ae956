package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit"
)

// notApplied returns what is wrong unless a Work failed with a text, and the binding and an event of the Work say so
// too.
func notApplied(t *testing.T, member, kind, namespace, name, text string) string {
	t.Helper()
	w := work(t, member, kind, namespace, name)
	if w == nil {
		return "there is no Work in " + member
	}
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	if c == nil || c.Status != "False" || c.Reason != workv1alpha1.ReasonAppliedFailed ||
		!strings.Contains(c.Message, text) {
		return fmt.Sprintf("the Work's condition is %+v", c)
	}
	b := binding(t, namespace, names.Binding(kind, name))
	fully := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied)
	if fully == nil || fully.Status != "False" || fully.Reason != workv1alpha2.ReasonFullyAppliedFailed {
		return fmt.Sprintf("the binding's condition is %+v", fully)
	}
	output := false
	for _, item := range b.Status.AggregatedStatus {
		output = output || item.ClusterName == member && !item.Applied && strings.Contains(item.AppliedMessage, text)
	}
	if !output {
		return fmt.Sprintf("the aggregated status is %+v", b.Status.AggregatedStatus)
	}
	for _, messages := range fleet.Hub.Messages(t, "Work", w.Namespace, w.Name, workv1alpha2.EventSyncFailed) {
		if strings.Contains(messages, text) {
			return ""
		}
	}
	return "no event tells it"
}

// createForeign creates a ConfigMap in a member that the hub does not manage.
func createForeign(t *testing.T, member, ns, name string) {
	t.Helper()
	kit.Eventually(t, "the namespace is in "+member, func() string {
		if fleet.Members[member].Find(t, "v1", "Namespace", "", ns) == nil {
			return "it is not"
		}
		return ""
	})
	fleet.Members[member].Apply(t, fmt.Sprintf(
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {theirs: kept}", name, ns))
}

func TestForeignObjectStaysUnlessOverwriteIsSet(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	createForeign(t, "m1", ns, "c")
	was := fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c").GetResourceVersion()
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", placedOn("m1", "m2")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	text := fmt.Sprintf("resource(kind=ConfigMap, %s/c) already exists in the cluster m1 and the work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource", ns)
	kit.Eventually(t, "the conflict is reported", func() string { return notApplied(t, "m1", "ConfigMap", ns, "c", text) })
	kit.Eventually(t, "the other member has it", func() string {
		if inMember(t, "m2", "v1", "ConfigMap", ns, "c", "data", "key") != "1" {
			return "it has not"
		}
		return ""
	})
	if got := work(t, "m1", "ConfigMap", ns, "c").Status.Conditions; !strings.HasPrefix(meta.FindStatusCondition(got,
		workv1alpha1.WorkApplied).Message, "Failed to apply all manifests (0/1): resource(kind=") {
		t.Errorf("conditions are %+v", got)
	}
	if now := fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c").GetResourceVersion(); now != was {
		t.Error("the member's own object was written")
	}

	changeSpec(t, "PropagationPolicy", ns, "p", "Overwrite", "conflictResolution")
	kit.Eventually(t, "told to, we take it over", func() string { return applied(t, ns, "c-configmap", "m1", "m2") })
	u := fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c")
	if kit.Field(u, "data", "key") != "1" || kit.Field(u, "data", "theirs") != "kept" ||
		u.GetLabels()[workv1alpha2.ManagedLabel] != "true" {
		t.Errorf("it is %v", u.Object)
	}
}

func TestPreservedResourcesOutliveTheirTemplate(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation(ns, "p",
		"{preserveResourcesOnDeletion: true, resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: "+
			placedOn("m1", "m2")+"}"))
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
	waitFor(t, "the binding goes", true, func() bool { return binding(t, ns, "c-configmap") == nil })
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
		gitops := kit.Object(t, configMap(ns, "c", "2"))
		if err := fleet.Members[m].Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(gitops),
			client.FieldOwner("flux")); err != nil {
			t.Errorf("in %s, others cannot apply without force: %v", m, err)
		}
	}
}

func TestATemplateMadeAnewAtOnceIsSentAnew(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", placedOn("m1", "m2")))
	for i := range 4 {
		value := fmt.Sprint(i)
		u := fleet.Hub.Apply(t, configMap(ns, "c", value))[0]
		for _, m := range []string{"m1", "m2"} {
			kit.Eventually(t, m+" has the one made last", func() string {
				in := fleet.Members[m].Find(t, "v1", "ConfigMap", ns, "c")
				if in == nil || kit.Field(in, "data", "key") != value ||
					in.GetAnnotations()[workv1alpha2.TemplateUIDAnnotation] != string(u.GetUID()) {
					return fmt.Sprintf("it has %v", in)
				}
				return ""
			})
		}
		kit.Eventually(t, "the binding is its own", func() string {
			if b := binding(t, ns, "c-configmap"); b == nil || b.Spec.Resource.UID != u.GetUID() ||
				b.OwnerReferences[0].UID != u.GetUID() {
				return "it is another's"
			}
			return applied(t, ns, "c-configmap", "m1", "m2")
		})
		fleet.Hub.Remove(t, "v1", "ConfigMap", ns, "c")
	}
}

// A member object that somebody holds with a finalizer holds all above it, so that nothing is forgotten.
func TestNothingIsForgottenBeforeItIsGoneBelow(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", placedOn("m1", "m2")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	kit.Eventually(t, "it is sent", func() string { return applied(t, ns, "c-configmap", "m1", "m2") })
	fleet.Members["m1"].Change(t, "v1", "ConfigMap", ns, "c",
		func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/hold"}) })
	fleet.Hub.Remove(t, "v1", "ConfigMap", ns, "c")
	kit.Eventually(t, "m2 lets go", func() string { return lacks(t, "v1", "ConfigMap", ns, "c", "m1") })
	waitFor(t, "its Work goes", true, func() bool { return work(t, "m2", "ConfigMap", ns, "c") == nil })
	kit.Stays(t, "Work and binding wait for m1", quiet, func() string {
		if work(t, "m1", "ConfigMap", ns, "c") == nil || binding(t, ns, "c-configmap") == nil {
			return "one of them is gone"
		}
		return ""
	})
	fleet.Members["m1"].Change(t, "v1", "ConfigMap", ns, "c", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	waitFor(t, "then all goes", true, func() bool {
		return work(t, "m1", "ConfigMap", ns, "c") == nil && binding(t, ns, "c-configmap") == nil
	})
}

func TestNamesWithColonsGoTheWholeWay(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	const group = "rbac.authorization.k8s.io/v1"
	name := "Team:" + ns + ":Reader"
	fleet.Hub.Apply(t, propagation("", ns, "{resourceSelectors: [{apiVersion: "+group+", kind: ClusterRole, name: '"+name+
		"'}], placement: "+placedOn("m1")+"}"))
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: %s, kind: ClusterRole, metadata: {name: '%s'}, rules: []}", group, name))
	kit.Eventually(t, "it is in m1", func() string { return lacks(t, group, "ClusterRole", "", name, "m1") })
	if fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ClusterResourceBinding", "", "team."+ns+
		".reader-clusterrole") == nil {
		t.Error("its binding is not named as tools expect")
	}
	fleet.Hub.Remove(t, group, "ClusterRole", "", name)
	kit.Eventually(t, "it goes again", func() string { return lacks(t, group, "ClusterRole", "", name) })
}
