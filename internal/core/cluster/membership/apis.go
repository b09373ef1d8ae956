package membership

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// APIEnablements returns the discovered kinds without subresources, sorted by group, version and name.
func APIEnablements(discovered []*metav1.APIResourceList) []clusterv1alpha1.APIEnablement {
	var apis []clusterv1alpha1.APIEnablement
	for _, list := range discovered {
		api := clusterv1alpha1.APIEnablement{GroupVersion: list.GroupVersion}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				api.Resources = append(api.Resources, clusterv1alpha1.APIResource{Name: r.Name, Kind: r.Kind})
			}
		}
		if len(api.Resources) == 0 {
			continue
		}
		slices.SortFunc(api.Resources, func(a, b clusterv1alpha1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		apis = append(apis, api)
	}
	slices.SortFunc(apis, func(a, b clusterv1alpha1.APIEnablement) int {
		return strings.Compare(a.GroupVersion, b.GroupVersion)
	})
	return apis
}

// ReportedAPIs reports whether the kinds of a cluster have been collected, if only in part. A new cluster has none.
func ReportedAPIs(c *clusterv1alpha1.Cluster) bool {
	return meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements) != nil
}

// CompleteAPIEnablements returns the condition that reports whether the kinds are complete. failed has the errors by
// group version.
func CompleteAPIEnablements(current *metav1.Condition, apis []clusterv1alpha1.APIEnablement, failed map[string]string,
	now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type:    clusterv1alpha1.ClusterConditionCompleteAPIEnablements,
		Status:  metav1.ConditionTrue,
		Reason:  clusterv1alpha1.ReasonComplete,
		Message: "collected complete APIEnablements",
	}
	switch {
	case len(apis) == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, clusterv1alpha1.ReasonEmpty, "collected empty APIEnablements"+
			joinCauses(failed)
	case len(failed) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, clusterv1alpha1.ReasonPartial,
			"might collect partial APIEnablements"+joinCauses(failed)
	}
	return withTransitionTime(current, c, now)
}

// maxCauses and causeLimit limit the texts from a member in a condition. The API accepts 32768 characters.
const maxCauses, causeLimit = 20, 1 << 10

func joinCauses(failed map[string]string) string {
	if len(failed) == 0 {
		return ""
	}
	var causes []string
	for _, gv := range slices.Sorted(maps.Keys(failed)) {
		causes = append(causes, text.Cut(fmt.Sprintf("%s: %s", gv, failed[gv]), causeLimit))
	}
	return ": " + text.Lines(causes, maxCauses)
}
