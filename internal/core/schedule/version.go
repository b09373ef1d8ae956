package schedule

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// versions are those of wellknown.TemplateVersionsAnnotation; nil where every version will do.
func versions(b workv1alpha2.Binding) []string {
	text := b.GetAnnotations()[wellknown.TemplateVersionsAnnotation]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// says whether a cluster that serves these versions of the template's kind can be sent the template: it is sent in its
// own version where that is served, and else in another.
func (q *question) says(served []string) bool {
	if slices.Contains(served, q.version) {
		return slices.Contains(q.versions, q.version)
	}
	return slices.ContainsFunc(served, func(v string) bool { return slices.Contains(q.versions, v) })
}

// preferServed takes out the candidates that serve no version which can say the template, as long as others are left.
// Only where the replicas are divided: what each cluster is to have a copy of is sent to the others, and of these its
// author is told. What is placed stays, unless the run is fresh: what was sent before still runs there.
func (q *question) preferServed(candidates []Candidate, rejections Rejections, s Snapshot,
	fresh bool) ([]Candidate, Rejections) {
	if q.versions == nil || !q.plugins.Runs(APIEnablement) || !strategyOf(q.spec).divided() {
		return candidates, rejections
	}
	refused := func(c Candidate) bool {
		return (fresh || !c.placed) && !q.says(s.member(c.Cluster.Name).apis.versions[q.kind])
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

// otherVersions says whether a cluster serves the kind in other versions than it did.
func otherVersions(kind schema.GroupKind, old, now *clusterv1alpha1.Cluster) bool {
	of := func(c *clusterv1alpha1.Cluster) []string {
		return apiSets{}.of(c.Status.APIEnablements).versions[kind]
	}
	return old != nil && now != nil && !slices.Equal(of(old), of(now))
}
