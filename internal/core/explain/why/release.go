package why

import (
	"cmp"
	"slices"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/release"
)

// explainReleases reports what the releases of the template wait for that have not ended, or that demand something.
func (e *explanation) explainReleases() {
	all := slices.SortedFunc(slices.Values(e.Releases), func(a, b releasev1alpha1.Release) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, r := range all {
		d := release.DemandOf(&r)
		if r.Namespace != e.template.Namespace || r.Status.Phase.Ended() && d.Actor == release.NoActor ||
			!slices.ContainsFunc(r.Spec.Targets, func(t releasev1alpha1.ReleaseTarget) bool {
				return match.GroupKind(t.Ref.APIVersion, t.Ref.Kind) == match.GroupKind(e.template.APIVersion, e.template.Kind) &&
					t.Ref.Name == e.template.Name
			}) {
			continue
		}
		if d.Reason != "" {
			d.What += " (" + d.Reason + ")"
		}
		e.find(d.Severity, "", "release "+r.Name+": "+d.What, d.Next)
	}
}
