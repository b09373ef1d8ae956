package why

import (
	"github.com/argosy-io/argosy/internal/core/propagate"
	"slices"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
)

func TestDividedBoundsAndTheirReasonAreShown(t *testing.T) {
	template := &unstructured.Unstructured{}
	template.SetAPIVersion("apps/v1")
	template.SetKind("Deployment")
	template.SetNamespace("shop")
	template.SetName("web")
	f := autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "by-load"}}
	f.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
		Name: "web"}
	const reason = "the bounds are a 1 to 1, b 3 to 19; cluster a has room for 0 replicas"
	for status, want := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: true, corev1.ConditionUnknown: true,
		corev1.ConditionFalse: false} { // False is a finding
		f.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv1alpha1.BoundsSplit,
			Status: status, Message: reason}}
		a := Explain(Facts{Observed: propagate.Observed{Template: template}, Scalers: []autoscalingv1alpha1.FederatedHPA{f}})
		if got := slices.Contains(a.Scaling, "FederatedHPA by-load: "+reason); got != want {
			t.Errorf("%s: it is shown: %v, in %v", status, got, a.Scaling)
		}
	}
}
