package schedule

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// versions returns the versions in wellknown.TemplateVersionsAnnotation; nil if every version can express the template.
func versions(b workv1alpha2.Binding) []string {
	text := b.GetAnnotations()[wellknown.TemplateVersionsAnnotation]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// canReceive reports whether a cluster that serves these versions can receive the template: it is sent
// in its own version where that is served, and else in another.
func (q *question) canReceive(served []string) bool {
	if slices.Contains(served, q.version) {
		return slices.Contains(q.versions, q.version)
	}
	return slices.ContainsFunc(served, func(v string) bool { return slices.Contains(q.versions, v) })
}

// preferServed removes the candidates that serve no version that can express the template, as long as others are left.
// It applies only if replicas are divided. Otherwise all other clusters get a copy, and the author is warned about
// these. Current clusters stay unless the run is fresh: the object that was sent before still runs there.
func (q *question) preferServed(candidates []Candidate, rejections Rejections, s Snapshot,
	fresh bool) ([]Candidate, Rejections) {
	if q.versions == nil || !q.plugins.Runs(APIEnablement) || !strategyOf(q.spec).divided() {
		return candidates, rejections
	}
	refused := func(c Candidate) bool {
		return (fresh || !c.placed) && !q.canReceive(s.member(c.Cluster.Name).apis.versions[q.kind])
	}
	if !slices.ContainsFunc(candidates, refused) ||
		!slices.ContainsFunc(candidates, func(c Candidate) bool { return !refused(c) }) {
		return candidates, rejections
	}
	for _, c := range candidates {
		if refused(c) {
			cause := because(ReasonVersion)
			rejections = append(rejections, Rejection{Cluster: c.Cluster.Name, Cause: cause, Remedy: q.remedy(cause)})
		}
	}
	slices.SortFunc(rejections, func(a, b Rejection) int { return strings.Compare(a.Cluster, b.Cluster) })
	return slices.DeleteFunc(candidates, refused), rejections
}

// otherVersions reports whether a cluster serves the kind in other versions than it did.
func otherVersions(kind schema.GroupKind, old, now *clusterv1alpha1.Cluster) bool {
	of := func(c *clusterv1alpha1.Cluster) []string {
		return apiSets{}.setOf(c.Status.APIEnablements).versions[kind]
	}
	return old != nil && now != nil && !slices.Equal(of(old), of(now))
}
