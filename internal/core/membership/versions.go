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

// Served is which versions of OpenKruise a cluster serves, compared with those that the hub stores. The zero value is
// for a cluster without OpenKruise.
type Served struct {
	// Newest are the kinds that are served in the hub's own version, Older those that are served in another only, as
	// "CloneSet v1alpha1". Kinds of one version count for neither.
	Newest, Older []string
	// Any says whether there is any kind of OpenKruise at all.
	Any bool
}

// OpenKruise reads what is served from a cluster's kinds.
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
		panic(err) // the files are part of the program, and its tests read them
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

// String is one word for a column: the version that all kinds are served in, both if they differ, nothing without
// OpenKruise. StatefulSet alone had v1beta1 in every release, and makes no difference.
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

// CurrentOpenKruise is the condition of that name: whether the cluster serves OpenKruise in the versions that the hub
// stores. There is none for a cluster without OpenKruise.
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
	out := since(current, c, now)
	return &out
}
