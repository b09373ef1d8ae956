package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit"
)

func TestTemplatesWithFoldingOrLongNamesPropagate(t *testing.T) {
	kit.Long(t)
	ns := fleet.Namespace(t)
	roles := []string{"Team:Reader", "team:reader", "team.reader", "team-reader"}
	long := strings.Repeat("x", 253)
	fleet.Hub.Apply(t, propagation(ns, "names", fmt.Sprintf(`{propagateDeps: true, placement: %s, resourceSelectors: [
		{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}, {apiVersion: v1, kind: ConfigMap, name: %s}]}`,
		placedOn("m1"), long)))
	for _, role := range roles {
		fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: %q, namespace: %s},
			rules: [{apiGroups: [""], resources: [configmaps], verbs: [get], resourceNames: [%q]}]}`, role, ns, role))
	}
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {a: "1"}}`, long, ns))
	m1 := fleet.Members["m1"]
	kit.Eventually(t, "all arrive, each as it is", func() string {
		for _, role := range roles {
			r := m1.Find(t, "rbac.authorization.k8s.io/v1", "Role", ns, role)
			if r == nil || !strings.Contains(fmt.Sprint(r.Object["rules"]), "["+role+"]") {
				return fmt.Sprintf("%s is %v", role, r)
			}
		}
		if m1.Find(t, "v1", "ConfigMap", ns, long) == nil {
			return "the ConfigMap is not there"
		}
		return applied(t, ns, names.Binding("ConfigMap", long), "m1")
	})

	fleet.Hub.Remove(t, "rbac.authorization.k8s.io/v1", "Role", ns, "team:reader")
	fleet.Hub.Remove(t, "v1", "ConfigMap", ns, long)
	kit.Eventually(t, "what was deleted goes, and nothing else", func() string {
		if m1.Find(t, "rbac.authorization.k8s.io/v1", "Role", ns, "team:reader") != nil ||
			m1.Find(t, "v1", "ConfigMap", ns, long) != nil {
			return "it is there"
		}
		for _, role := range []string{"Team:Reader", "team.reader", "team-reader"} {
			if m1.Find(t, "rbac.authorization.k8s.io/v1", "Role", ns, role) == nil {
				return role + " is gone"
			}
		}
		return ""
	})
}
