package quota

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

func TestMostUsedNamesTheMostUsedLimits(t *testing.T) {
	amounts := func(pairs ...string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return out
	}
	limits := func(name string, overall, used corev1.ResourceList,
		clusters ...policyv1alpha1.ClusterQuotaStatus) policyv1alpha1.FederatedResourceQuota {
		return policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:   policyv1alpha1.FederatedResourceQuotaSpec{Overall: overall},
			Status: policyv1alpha1.FederatedResourceQuotaStatus{OverallUsed: used, AggregatedStatus: clusters}}
	}
	in := func(cluster string, hard, used corev1.ResourceList) policyv1alpha1.ClusterQuotaStatus {
		return policyv1alpha1.ClusterQuotaStatus{ClusterName: cluster,
			ResourceQuotaStatus: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
	}
	all := []policyv1alpha1.FederatedResourceQuota{
		limits("memory", amounts("cpu", "10", "memory", "10Gi"), amounts("cpu", "8500m", "memory", "9Gi")),
		limits("just", amounts("cpu", "10"), amounts("cpu", "8")),
		limits("below", amounts("cpu", "10"), amounts("cpu", "7900m")),
		limits("beyond", amounts("cpu", "10"), amounts("cpu", "15")),
		limits("nothing", amounts("cpu", "0"), amounts("cpu", "0")),
		limits("unknown", amounts("cpu", "10"), nil),
		limits("cluster", amounts("cpu", "10"), amounts("cpu", "1"), in("eu", amounts("pods", "4"), amounts("pods", "1")),
			in("us", amounts("pods", "4"), amounts("pods", "4"))),
		limits("lowered", amounts("cpu", "2"), amounts("cpu", "2")),
	}
	want := []Usage{{"shop", "beyond", "cpu", "", 1.5}, {"shop", "cluster", "pods", "us", 1},
		{"shop", "lowered", "cpu", "", 1}, {"shop", "memory", "memory", "", 0.9},
		{"shop", "memory", "cpu", "", 0.85}, {"shop", "just", "cpu", "", 0.8}}
	if diff := cmp.Diff(want, MostUsed(all, 0.8, 100)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:2], MostUsed(all, 0.8, 2)); diff != "" {
		t.Errorf("with a limit of 2 (-want +got):\n%s", diff)
	}
}
