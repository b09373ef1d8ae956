package validate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// federatedQuota has a spec in YAML.
func federatedQuota(t *testing.T, name, spec string) *policyv1alpha1.FederatedResourceQuota {
	t.Helper()
	q := &policyv1alpha1.FederatedResourceQuota{}
	u := coretest.Object(t, "{apiVersion: policy.karmada.io/v1alpha1, kind: FederatedResourceQuota, metadata: {namespace: shop, name: "+
		name+"}, spec: "+spec+"}")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, q); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestFederatedResourceQuota(t *testing.T) {
	for name, tc := range map[string]struct {
		name, spec string
		want       []string
	}{
		"all kinds of resources": {"q", `{overall: {cpu: "2", memory: 1Gi, ephemeral-storage: 1Gi, requests.cpu: "2", limits.memory: 1Gi, pods: "5",
			hugepages-2Mi: 4Mi, requests.hugepages-2Mi: 4Mi, requests.example.com/gpu: 1500m, example.com/gpu: "2", count/deployments.apps: "3"}}`, nil},
		"nothing":                 {"q", `{overall: {}}`, nil},
		"assignments up to all":   {"q", `{overall: {cpu: "2"}, staticAssignments: [{clusterName: m1, hard: {cpu: "1"}}, {clusterName: m2, hard: {cpu: "1"}}]}`, nil},
		"a name of 64 characters": {strings.Repeat("q", 64), `{overall: {}}`, []string{"metadata.name: Invalid value"}},
		"no quota resource": {"q", `{overall: {bananas: "2"}}`,
			[]string{"spec.overall[bananas]: Invalid value: \"bananas\": must be a standard resource for quota"}},
		"a name with a space": {"q", `{overall: {"a b": "2"}}`,
			[]string{"spec.overall[a b]: Invalid value: \"a b\": name part must consist",
				"spec.overall[a b]: Invalid value: \"a b\": must be a standard"}},
		"a negative limit": {"q", `{overall: {cpu: "-1"}}`,
			[]string{"spec.overall[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
				"spec.overall[cpu]: Invalid value: \"-1\": overall is less than assignments"}},
		"half a pod": {"q", `{overall: {pods: 500m}}`,
			[]string{"spec.overall[pods]: Invalid value: \"500m\": must be an integer"}},
		"half a device": {"q", `{overall: {example.com/gpu: 500m}}`,
			[]string{"spec.overall[example.com/gpu]: Invalid value: \"500m\": must be an integer"}},
		"assigned over overall": {"q", `{overall: {cpu: "2"}, staticAssignments: [{clusterName: m1, hard: {cpu: "1"}}, {clusterName: m2, hard: {cpu: 1001m}}]}`,
			[]string{"spec.overall[cpu]: Invalid value: \"2\": overall is less than assignments"}},
		"assigned but not in overall": {"q", `{overall: {cpu: "2"}, staticAssignments: [{clusterName: m1, hard: {memory: "1"}}]}`,
			[]string{"spec.staticAssignments[0].hard[memory]: Invalid value: \"memory\": assignment resourceName is not exist in overall"}},
		"no name of a cluster": {"q", `{overall: {cpu: "2"}, staticAssignments: [{clusterName: M1, hard: {cpu: "-1"}}]}`,
			[]string{"spec.staticAssignments[0].clusterName", "spec.staticAssignments[0].hard[cpu]"}},
	} {
		errs := FederatedResourceQuota(federatedQuota(t, tc.name, tc.spec))
		if len(errs) != len(tc.want) {
			t.Errorf("%s: got %v, want %v", name, errs, tc.want)
			continue
		}
		for i, err := range errs {
			if !strings.HasPrefix(err.Error(), tc.want[i]) {
				t.Errorf("%s: got %q, want %q", name, err, tc.want[i])
			}
		}
	}
}

func TestFederatedResourceQuotaAdvice(t *testing.T) {
	used := corev1.ResourceList(federatedQuota(t, "q", `{overall: {cpu: "3", memory: 1Gi}}`).Spec.Overall)
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"enough": {`{overall: {cpu: "3", example.com/gpu: "1"}, staticAssignments: [{clusterName: m1, hard: {cpu: "1"}}]}`, nil},
		"below what runs": {`{overall: {cpu: "2", memory: 2Gi}}`,
			[]string{"spec.overall[cpu]: namespace shop uses 3, which is more than 2"}},
		"what is not counted": {`{overall: {limits.cpu: "2", pods: "9"}}`,
			[]string{"spec.overall[limits.cpu]: the hub does not count it", "spec.overall[pods]: the hub does not count it"}},
		"no such cluster": {`{overall: {cpu: "3"}, staticAssignments: [{clusterName: away, hard: {cpu: "1"}}]}`,
			[]string{"spec.staticAssignments[0].clusterName: there is no cluster away"}},
		"a cluster twice": {`{overall: {cpu: "3"}, staticAssignments: [{clusterName: m1, hard: {cpu: "1"}}, {clusterName: m1, hard: {cpu: "2"}}]}`,
			[]string{"spec.staticAssignments[1].clusterName: cluster m1 is listed before"}},
	} {
		got := FederatedResourceQuotaAdvice(federatedQuota(t, "q", tc.spec), used, []string{"m1"})
		if len(got) != len(tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
			continue
		}
		for i, advice := range got {
			if !strings.HasPrefix(advice, tc.want[i]) {
				t.Errorf("%s: got %q, want %q", name, advice, tc.want[i])
			}
		}
	}
}
