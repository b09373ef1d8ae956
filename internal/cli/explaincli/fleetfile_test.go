package explaincli

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/argosy-io/argosy/internal/core/explain/simulate"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/why"
)

// Who operates the fleet may simulate it. Templates are the exception: see lacked.
func TestOperatorsMayReadWhatASimulationReads(t *testing.T) {
	all := roles.ClusterRoles()
	role := all[slices.IndexFunc(all, func(r rbacv1.ClusterRole) bool { return r.Name == roles.Operator })]
	for _, gk := range steering {
		plural := strings.ToLower(gk.Kind) + "s"
		if strings.HasSuffix(gk.Kind, "y") {
			plural = strings.TrimSuffix(plural, "ys") + "ies"
		} else if strings.HasSuffix(gk.Kind, "ss") {
			plural = strings.ToLower(gk.Kind) + "es"
		}
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, gk.Group) && slices.Contains(r.Resources, plural) &&
				slices.Contains(r.Verbs, "list")
		}) {
			t.Errorf("operators may not list %s.%s", plural, gk.Group)
		}
	}
	if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.NonResourceURLs, why.NodesPath)
	}) {
		t.Errorf("operators may not get %s", why.NodesPath)
	}
}

func TestRecordedFleetHasTheSettingsOfItsHub(t *testing.T) {
	plugins, err := schedule.ParsePlugins([]string{"*", "-TaintToleration"})
	if err != nil {
		t.Fatal(err)
	}
	set := schedule.Settings{Name: "ours", Plugins: plugins, KeepEmpty: true, QuotasOff: true}
	for field, value := range reflect.ValueOf(set).Fields() {
		if value.IsZero() {
			t.Errorf("the test does not set %s", field.Name)
		}
	}
	document, err := simulate.DocumentOf(recorded(why.Scheduler{Settings: set}))
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := simulate.Load([]simulate.Object{{Unstructured: document}}, "")
	if err != nil || fleet.Scheduler() != set {
		t.Errorf("got %+v, %v, want %+v", fleet.Scheduler(), err, set)
	}
}
