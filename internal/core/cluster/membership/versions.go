package membership

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/api/kruise"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// Served compares the OpenKruise versions of a cluster with those that the hub stores. The zero value means no
// OpenKruise.
type Served struct {
	// Newest are the kinds served in the hub's version, Older those served only in another one, as "CloneSet v1alpha1".
	// Kinds with a single version are in neither.
	Newest, Older []string
	// Any is true if there is any kind of OpenKruise.
	Any bool
}

// OpenKruise reads the served versions from a cluster's kinds.
func OpenKruise(apis []clusterv1alpha1.APIEnablement) Served {
	versions := map[string][]string{} // by group and kind
	for _, api := range apis {
		group, version, ok := strings.Cut(api.GroupVersion, "/")
		if !ok || !strings.HasSuffix(group, ".kruise.io") {
			continue
		}
		for _, r := range api.Resources {
			versions[group+"/"+r.Kind] = append(versions[group+"/"+r.Kind], version)
		}
	}
	s := Served{Any: len(versions) > 0}
	if !s.Any {
		return s
	}
	kinds, err := kruise.Kinds()
	if err != nil {
		panic(err) // the files are embedded and tested
	}
	for _, k := range kinds {
		served := versions[k.Group+"/"+k.Kind]
		switch {
		case len(served) == 0 || len(k.Versions) < 2:
		case slices.Contains(served, k.Versions[0].Name):
			s.Newest = append(s.Newest, k.Kind)
		default:
			s.Older = append(s.Older, k.Kind+" "+served[0])
		}
	}
	return s
}

// String returns the version for a table column; both versions if they differ between kinds, empty without OpenKruise.
// It ignores StatefulSet, which has v1beta1 in every release.
func (s Served) String() string {
	newer := slices.ContainsFunc(s.Newest, func(kind string) bool {
		return kind != "StatefulSet" && kind != "Rollout" && kind != "BatchRelease"
	})
	switch {
	case !s.Any:
		return ""
	case len(s.Older) == 0:
		return "v1beta1"
	case newer:
		return "v1alpha1,v1beta1"
	default:
		return "v1alpha1"
	}
}

// CurrentOpenKruise returns the condition that reports whether the cluster serves the OpenKruise versions of the hub;
// nil without OpenKruise.
func CurrentOpenKruise(current *metav1.Condition, s Served, now time.Time) *metav1.Condition {
	if !s.Any {
		return nil
	}
	c := metav1.Condition{
		Type:    clusterv1alpha1.ClusterConditionCurrentOpenKruise,
		Status:  metav1.ConditionTrue,
		Reason:  clusterv1alpha1.ReasonSameVersions,
		Message: "every kind of OpenKruise is served in the version that the hub stores",
	}
	if len(s.Older) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, clusterv1alpha1.ReasonOlderVersions
		c.Message = fmt.Sprintf("served only in an older version: %s; templates are converted, but cannot be applied here if they use fields that exist only in v1beta1; upgrade OpenKruise in this cluster to apply them",
			strings.Join(s.Older, ", "))
	}
	out := withTransitionTime(current, c, now)
	return &out
}
