package schedule

import (
	"testing"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// serving serves CloneSets in these versions.
func serving(versions ...string) with {
	return func(c *clusterv1alpha1.Cluster) {
		for _, v := range versions {
			c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{
				GroupVersion: "apps.kruise.io/" + v,
				Resources:    []clusterv1alpha1.APIResource{{Name: "clonesets", Kind: "CloneSet"}}})
		}
	}
}

func TestReplicasNeedTheTemplatesFields(t *testing.T) {
	cloneSet := func(replicas int32, p policyv1alpha1.Placement, versions string) *workv1alpha2.ResourceBinding {
		b := deployment(replicas, p)
		b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "apps.kruise.io/v1beta1", "CloneSet"
		if versions != "" {
			b.Annotations = map[string]string{wellknown.TemplateVersionsAnnotation: versions}
		}
		return b
	}
	noted := func(b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
		b.Annotations[wellknown.TemplateVersionsAnnotation] = "v1beta1"
		return b
	}
	s := fleet(cluster("old", serving("v1alpha1")), cluster("both", serving("v1alpha1", "v1beta1")),
		cluster("new", serving("v1beta1")), cluster("none"))
	for name, test := range map[string]struct {
		binding *workv1alpha2.ResourceBinding
		want    string
	}{
		"every version can say it":                           {cloneSet(6, equally(), ""), "both=2 new=2 old=2"},
		"only the newer one can":                             {cloneSet(6, equally(), "v1beta1"), "both=3 new=3"},
		"only the older one can, which is sent nowhere else": {cloneSet(6, equally(), "v1alpha1"), "old=6"},
		"by room, too":                                       {cloneSet(6, byAvailability(), "v1beta1"), "both=3 new=3"},
		"with no other cluster, it goes there all the same": {cloneSet(6, restrictedTo(equally(), "old"), "v1beta1"),
			"old=6"},
		"copies go everywhere, and who cannot take one says so": {cloneSet(2, policyv1alpha1.Placement{}, "v1beta1"),
			"both=2 new=2 old=2"},
		"what is placed stays": {noted(placed(cloneSet(6, byAvailability(), ""),
			"new=2 old=4")), "new=2 old=4"},
		"until everything may move": {rebalanced(noted(placed(cloneSet(6, byAvailability(), ""),
			"new=2 old=4"))), "both=3 new=3"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Schedule(test.binding, s, nil)
			if err != nil || targetList(r.Clusters) != test.want {
				t.Errorf("got %q (%v), want %q", targetList(r.Clusters), err, test.want)
			}
		})
	}

	r, err := Schedule(cloneSet(6, equally(), "v1beta1"), s, nil)
	if err != nil || len(r.Rejections) != 2 || r.Rejections[0].Cluster != "none" {
		t.Fatalf("rejected %+v (%v), want none and old", r.Rejections, err)
	}
	const remedy = "serve CloneSet.apps.kruise.io in v1beta1 there, or remove the fields that other versions do not have"
	if old := r.Rejections[1]; old.Cluster != "old" || old.Reason != ReasonVersion || old.Remedy != remedy {
		t.Errorf("rejected %+v, want old for its version, to %s", old, remedy)
	}

	waits := cloneSet(6, byAvailability(), "v1beta1")
	record(waits, Result{}, &UnschedulableError{}, waits.CreationTimestamp.Time)
	waits.Annotations[wellknown.TemplateVersionsAnnotation] = "v1beta1"
	if !Affects(waits, cluster("old", serving("v1alpha1")), cluster("old", serving("v1alpha1", "v1beta1")), Plugins{}) {
		t.Error("a version that is served from now on wakes nobody")
	}
}
