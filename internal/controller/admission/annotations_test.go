package admission

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// enumerated are the annotations with a fixed set of values that users set. Of those that are not refused, every value
// but "true" or "force" is as good as none, and nothing fails later.
var enumerated = []struct {
	name, kind, spec string
	valid, invalid   string
	refused          string // what the refusal says besides the name
}{
	{"rollout-scope", deploymentKind, "", "Fleet", "Galaxy", `"Fleet", "Cluster"`},
	{"rollout-scope", "autoscaling/v2, kind: HorizontalPodAutoscaler", "", "Fleet", "fleet", `"Fleet", "Cluster"`},
	{"rollout-scope", "keda.sh/v1alpha1, kind: ScaledObject", "", "Cluster", "", `"Fleet", "Cluster"`},
	{"rollout-scope", "policy/v1, kind: PodDisruptionBudget", "", "Fleet", "all", `"Fleet", "Cluster"`},
	{"rollout-scope", "example.com/v1, kind: Widget", "", "Fleet", "all", `"Fleet", "Cluster"`},
	{"rollout-order", deploymentKind, "", "Stages", "Random", `"Proportional", "Ordered", "Stages"`},
	{"unreachable-clusters", deploymentKind, "", "Ignore", "Skip", `"CountAsDown", "Ignore"`},
	{"auto-halt", deploymentKind, "", "false", "no", `"true", "false"`},
	{"unique-ordinals", deploymentKind, "", "true", "yes", `"true", "false"`},
	{"ordinal-mobility", deploymentKind, "", "Always", "Sometimes", `"Never", "WithoutPVC", "Always"`},
	{"ordinal-scale-down", deploymentKind, "", "GlobalHighest", "Lowest", `"ClusterHighest", "GlobalHighest"`},
	{"autoscaling-mode", "autoscaling.karmada.io/v1alpha1, kind: FederatedHPA",
		"scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3", "Central", "Local",
		`"Central", "Distributed"`},
	{"pause-management", deploymentKind, "", "true", "yes", ""},
	{"run-per-cluster", "batch/v1, kind: Job", "", "true", "yes", ""},
	{"override-replicas", "policy.karmada.io/v1alpha1, kind: OverridePolicy", "overrideRules: []", "force", "yes", ""},
	{"failover-persistent-volumes", "policy.karmada.io/v1alpha1, kind: PropagationPolicy",
		"resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {}", "true", "yes", ""},
}

const deploymentKind = "apps/v1, kind: Deployment"

func TestAnnotationsWithAFixedSetOfValuesAreChecked(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		missing := slices.Collect(maps.Keys(fleet.Choices))
		for _, c := range enumerated {
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == "argosy.io/"+c.name })
			with := func(value string) string {
				return `{apiVersion: ` + c.kind + `, metadata: {name: web, namespace: shop, annotations: {argosy.io/` + c.name +
					`: "` + value + `"}}, spec: {` + c.spec + `}}`
			}
			valid, invalid := h.create(with(c.valid)), object(t, with(c.invalid))
			if c.refused == "" {
				if _, _, err := h.write("admin", invalid, nil); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				continue
			}
			words := []string{"argosy.io/" + c.name, "Unsupported value", c.refused}
			h.refuses("admin", invalid, nil, words...)
			h.refuses("admin", invalid, valid, words...)
			if strings.HasPrefix(c.kind, "autoscaling.karmada.io") {
				continue // a FederatedHPA is always checked as a whole
			}
			stored, other := object(t, with(c.invalid)), object(t, with("Other"))
			if _, _, err := h.write("admin", changed(t, invalid, "b", "metadata", "labels", "a"), stored); err != nil {
				t.Errorf("%s: a change of another field: %v", c.name, err)
			}
			if _, _, err := h.write("admin", valid, stored); err != nil {
				t.Errorf("%s: a correction: %v", c.name, err)
			}
			h.refuses("admin", other, stored, words...)
			if _, _, err := h.write(user.APIServerUser, invalid, nil); err != nil {
				t.Errorf("%s: a write of the hub: %v", c.name, err)
			}
		}
		if len(missing) > 0 {
			t.Errorf("no line here has %v", missing)
		}
	})
}
