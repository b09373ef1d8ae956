package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

func namespaceYAML(name, labels string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {%s}}", name, labels)
}

func TestANamespaceIsInEveryMemberAndGoesWithTheHubs(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t) + "-all"
	fleet.Hub.Apply(t, namespaceYAML(ns, "team: a"))
	kit.Eventually(t, "it is in every member", func() string {
		return lacks(t, "v1", "Namespace", "", ns, "m1", "m2", "m3")
	})
	waitFor[any](t, "with its labels", "a", func() any {
		return inMember(t, "m1", "v1", "Namespace", "", ns, "metadata", "labels", "team")
	})
	fleet.Hub.Change(t, "v1", "Namespace", "", ns,
		func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"team": "b"}) })
	waitFor[any](t, "its labels follow", "b", func() any {
		return inMember(t, "m2", "v1", "Namespace", "", ns, "metadata", "labels", "team")
	})

	fleet.Hub.Apply(t, override("", ns, `{resourceSelectors: [{apiVersion: v1, kind: Namespace, name: `+ns+`}], overrideRules: [
		{targetCluster: {clusterNames: [m3]}, overriders: {labelsOverrider: [{operator: add, value: {only: m3}}]}}]}`))
	waitFor[any](t, "a cluster override applies to it", "m3", func() any {
		return inMember(t, "m3", "v1", "Namespace", "", ns, "metadata", "labels", "only")
	})
	if got := inMember(t, "m1", "v1", "Namespace", "", ns, "metadata", "labels", "only"); got != nil {
		t.Errorf("m1 has the label of m3: %v", got)
	}

	// It goes with the hub's, but where it holds what the hub did not send.
	fleet.Members["m1"].Apply(t, configMap(ns, "theirs", "1"))
	fleet.Hub.Remove(t, "v1", "Namespace", "", ns)
	kit.Eventually(t, "it goes with the hub's", func() string { return lacks(t, "v1", "Namespace", "", ns, "m1") })
	waitFor[any](t, "and is the hub's no more where it stays", nil, func() any {
		return inMember(t, "m1", "v1", "Namespace", "", ns, "metadata", "labels", "karmada.io/managed")
	})
	if fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "theirs") == nil {
		t.Error("what only m1 had is gone")
	}
	fleet.Members["m1"].Remove(t, "v1", "Namespace", "", ns)
}

// With templates in it: they go, their bindings and Works too, and the members are left clean.
func TestANamespaceDeletedOnTheHubTakesAllOfItsTemplatesAlong(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t) + "-full"
	fleet.Hub.Apply(t, namespaceYAML(ns, ""))
	fleet.Hub.Apply(t, withDependencies(ns, "web", "web", placedOn("m1", "m2"))+"\n---\n"+
		policy(ns, "p", "v1", "Secret", placedOn("m3")))
	fleet.Hub.Apply(t, configMap(ns, "config", "1")+"\n---\n"+needing(ns, "web", "config", "", "", ""))
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}}", ns))
	kit.Eventually(t, "all is sent", func() string {
		return applied(t, ns, "web-deployment", "m1", "m2") + applied(t, ns, "config-configmap", "m1", "m2") +
			applied(t, ns, "s-secret", "m3")
	})
	fleet.Hub.Remove(t, "v1", "Namespace", "", ns)
	waitFor(t, "the namespace goes", true, func() bool { return fleet.Hub.Find(t, "v1", "Namespace", "", ns) == nil })
	kit.Eventually(t, "it goes in the members", func() string { return lacks(t, "v1", "Namespace", "", ns) })
	for _, m := range []string{"m1", "m2", "m3"} {
		for kind, name := range map[string]string{"Deployment": "web", "ConfigMap": "config", "Secret": "s"} {
			waitFor(t, "no Work is left behind", true, func() bool { return work(t, m, kind, ns, name) == nil })
		}
	}
}

func TestANamespaceDeletedInAMemberComesBackWithAllOfOurs(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", placedOn("m1", "m2")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	kit.Eventually(t, "it is sent", func() string { return applied(t, ns, "c-configmap", "m1", "m2") })
	was := fleet.Members["m1"].Find(t, "v1", "Namespace", "", ns).GetUID()
	// Somebody's object with a finalizer keeps the namespace for a while in its end.
	createForeign(t, "m1", ns, "theirs")
	setFinalizers := func(finalizers ...string) {
		fleet.Members["m1"].Change(t, "v1", "ConfigMap", ns, "theirs",
			func(u *unstructured.Unstructured) { u.SetFinalizers(finalizers) })
	}
	setFinalizers("example.com/hold")
	fleet.Members["m1"].Remove(t, "v1", "Namespace", "", ns)
	kit.Eventually(t, "the member empties it", func() string {
		if fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c") != nil {
			return "ours is still there"
		}
		return ""
	})
	setData(t, ns, "c", "2")
	kit.Eventually(t, "meanwhile it says why nothing can be applied", func() string {
		return notApplied(t, "m1", "ConfigMap", ns, "c", "being terminated")
	})
	waitFor[any](t, "the other member goes on", "2", func() any {
		return inMember(t, "m2", "v1", "ConfigMap", ns, "c", "data", "key")
	})
	setFinalizers()
	kit.Eventually(t, "then the namespace comes back", func() string {
		if u := fleet.Members["m1"].Find(t, "v1", "Namespace", "", ns); u == nil || u.GetUID() == was {
			return "it is not there"
		}
		return ""
	})
	kit.Eventually(t, "with what belongs in it", func() string { return applied(t, ns, "c-configmap", "m1", "m2") })
	if b := binding(t, ns, "c-configmap"); b.Finalizers[0] != workv1alpha2.BindingFinalizer {
		t.Errorf("the binding is %+v", b)
	}
}
