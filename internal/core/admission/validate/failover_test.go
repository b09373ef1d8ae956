package validate

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

func TestUnexpectedFailoverIsWarnedAbout(t *testing.T) {
	application := func(change func(*policyv1alpha1.ApplicationFailoverBehavior)) *policyv1alpha1.FailoverBehavior {
		a := &policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeGracefully}
		change(a)
		return &policyv1alpha1.FailoverBehavior{Application: a}
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		failover    *policyv1alpha1.FailoverBehavior
		want        []string
	}{
		"no failover": {nil, nil, nil},
		"defaults":    {nil, application(func(*policyv1alpha1.ApplicationFailoverBehavior) {}), nil},
		"a toleration of zero": {nil, application(func(a *policyv1alpha1.ApplicationFailoverBehavior) {
			a.DecisionConditions.TolerationSeconds = new(int32(0))
		}),
			[]string{"tolerationSeconds: with 0, the application moves as soon as it is unhealthy"}},
		"Never": {nil, application(func(a *policyv1alpha1.ApplicationFailoverBehavior) {
			a.PurgeMode = policyv1alpha1.PurgeModeNever
		}),
			[]string{"purgeMode: with Never, the old copy stays until"}},
		"Directly": {nil, &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
			PurgeMode: policyv1alpha1.PurgeModeDirectly}},
			[]string{"purgeMode: with Directly"}},
		"labels of the hub": {nil, &policyv1alpha1.FailoverBehavior{
			Application: &policyv1alpha1.ApplicationFailoverBehavior{StatePreservation: &policyv1alpha1.StatePreservation{
				Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "example.com/job"},
					{AliasLabelName: "karmada.io/managed"}}}},
			Cluster: &policyv1alpha1.ClusterFailoverBehavior{StatePreservation: &policyv1alpha1.StatePreservation{
				Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "argosy.io/created"}}}}},
			[]string{"spec.failover.application.statePreservation.rules[1].aliasLabelName: the rule has no effect",
				"spec.failover.cluster.statePreservation.rules[0].aliasLabelName: the rule has no effect"}},
		"annotations that cannot be read": {map[string]string{"argosy.io/failover-persistent-volumes": "yes",
			"argosy.io/failback-after": "soon"}, nil,
			[]string{`"yes" is neither true nor false`, `"soon" is not a duration`}},
	} {
		p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
		p.Spec.Failover = c.failover
		if got := PropagationAdvice(p); !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
