package kruise

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func TestAStatusOfEitherVersionComesInTheOneAsked(t *testing.T) {
	const ours = "resourceTemplateGeneration: 3, mine: {a: 1}"
	for _, c := range []struct{ kind, alpha, beta string }{
		{"DaemonSet", "desiredNumberScheduled: 2, daemonSetHash: x", "desiredNumberScheduled: 2, updateRevision: x"},
		{"UnitedDeployment", "replicas: 3, subsetReplicas: {a: 3}, subsetStatuses: [{name: a, replicas: 3, partition: 1}], updateStatus: {updatedRevision: r, currentPartitions: {a: 1}}",
			"replicas: 3, subsetStatuses: [{name: a, replicas: 3, partition: 1}], updatedRevision: r"},
		{"ResourceDistribution", "conditions: [{type: t, failedNamespace: [n]}]",
			"conditions: [{type: t, failedNamespaces: [n]}]"},
		{"CloneSet", "replicas: 3", "replicas: 3"},
	} {
		for _, version := range []string{alpha, beta} {
			for from, text := range map[string]string{alpha: c.alpha, beta: c.beta} {
				read := func(text string) (out map[string]any) {
					if err := yaml.Unmarshal([]byte("{"+text+", "+ours+"}"), &out); err != nil {
						t.Fatal(err)
					}
					return out
				}
				want := read(c.beta)
				if version == alpha {
					want = read(c.alpha)
				}
				status := read(text)
				got := Status(schema.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: c.kind}, status)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s from %s to %s (-want +got):\n%s", c.kind, from, version, diff)
				}
				if diff := cmp.Diff(read(text), status); diff != "" {
					t.Errorf("%s from %s to %s: the status given was changed:\n%s", c.kind, from, version, diff)
				}
			}
		}
	}
	given := map[string]any{"a": "b"}
	if got := Status(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, given); !cmp.Equal(got,
		given) {
		t.Errorf("of another kind it is %v", got)
	}
}
