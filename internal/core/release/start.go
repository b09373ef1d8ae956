package release

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// StartInput has all that decides whether the hub starts a release of a workload. All of it is read-only.
type StartInput struct {
	Template *unstructured.Unstructured
	Binding  workv1alpha2.Binding
	// Current is the revision that the template has now.
	Current *releasev1alpha1.ReleaseRevision
	// Stored are the ReleaseRevisions of the workload, by name.
	Stored map[string]*releasev1alpha1.ReleaseRevision
	// Strategy is the one that the template names; nil if it does not exist.
	Strategy *releasev1alpha1.ReleaseStrategySpec
	// Releases are those of the workload that are not being deleted.
	Releases []releasev1alpha1.Release
}

// ReleaseToStart returns the release that the hub creates for a change that waits; nil if there is none, or if users
// start releases. A revision that the last release had is never started again, whatever its result: the hub does not
// repeat what failed, and does not undo a rollback. The same input gives a release of the same name.
func ReleaseToStart(in StartInput) *releasev1alpha1.Release {
	effective := Target{Binding: in.Binding}.effective()
	if in.Strategy == nil || in.Strategy.AutoStart == nil || effective == "" {
		return nil // users start releases, or the revision that clusters have is not known
	}
	supersede := cmp.Or(in.Strategy.AutoStart.Supersede, releasev1alpha1.SupersedeQueue)
	underWay := false
	for i := range in.Releases {
		r := &in.Releases[i]
		if r.Status.Phase.Ended() || IsRecord(r) {
			continue
		}
		underWay = true
		if len(r.Status.Targets) == 0 {
			return nil // it is not accepted yet, so its revision is not known
		}
		if supersede != releasev1alpha1.SupersedeReplace || r.Status.Phase == releasev1alpha1.ReleaseRollingBack ||
			r.Spec.State == releasev1alpha1.StatePause || r.Spec.State == releasev1alpha1.StateRollback {
			return nil
		}
	}
	last, stored := newest(in.Releases), in.Stored[in.Current.Name]
	switch {
	case !underWay && effective == in.Current.Name, last != nil && had(last, ReferenceOf(in.Template), in.Current.Name):
		return nil
	case stored != nil && (last == nil || !stored.CreationTimestamp.Before(&last.CreationTimestamp)):
		return nil // a release had the revision, and was deleted
	}
	r := startedRelease(in, last, releasev1alpha1.TriggerTemplate)
	r.Spec.StrategyRef = &releasev1alpha1.ReleaseStrategyReference{Name: StrategyOf(in.Template)}
	r.Spec.Supersede = supersede
	return r
}

// startedRelease is a release of the present revision of a workload. Its name is the same until another release
// follows.
func startedRelease(in StartInput, last *releasev1alpha1.Release,
	trigger releasev1alpha1.ReleaseTriggerType) *releasev1alpha1.Release {
	previous := ""
	if last != nil {
		previous = string(last.UID)
	}
	hash := hashOf(string(in.Template.GetUID()), in.Current.Name, previous)
	name := in.Template.GetName()
	return &releasev1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.Template.GetNamespace(),
			Name: strings.TrimRight(name[:min(len(name), 50)], "-.") + "-" + hash},
		Spec: releasev1alpha1.ReleaseSpec{
			// The schema refuses a source without a field.
			Targets: []releasev1alpha1.ReleaseTarget{{Name: "workload", Ref: ReferenceOf(in.Template),
				To: releasev1alpha1.ReleaseRevisionSource{Current: &releasev1alpha1.CurrentRevision{}}}},
			Trigger: &releasev1alpha1.ReleaseTrigger{Type: trigger, Revision: in.Current.Name},
		},
	}
}

// startedByHub reports whether the hub started a release because its workload had changed.
func startedByHub(r *releasev1alpha1.Release) bool {
	return r.Spec.Trigger != nil && r.Spec.Trigger.Type == releasev1alpha1.TriggerTemplate
}

// StrategyOf is the name of the ReleaseStrategy of a template; empty for none.
func StrategyOf(template *unstructured.Unstructured) string {
	return template.GetAnnotations()[releasev1alpha1.ReleaseStrategyAnnotation]
}

// ReferenceOf names a template in a release.
func ReferenceOf(template *unstructured.Unstructured) releasev1alpha1.ReleaseObjectReference {
	return releasev1alpha1.ReleaseObjectReference{APIVersion: template.GetAPIVersion(), Kind: template.GetKind(),
		Name: template.GetName()}
}

// newest is the release that was created last; nil for none.
func newest(releases []releasev1alpha1.Release) (last *releasev1alpha1.Release) {
	for i := range releases {
		if last == nil || older(last, &releases[i]) {
			last = &releases[i]
		}
	}
	return last
}

// targets reports whether a workload is a target of a release.
func targets(r *releasev1alpha1.Release, ref releasev1alpha1.ReleaseObjectReference) bool {
	return slices.ContainsFunc(r.Spec.Targets, func(t releasev1alpha1.ReleaseTarget) bool {
		return sameTarget(t.Ref, ref)
	})
}

// had reports whether a release was of a revision of a workload, or was started while the template had it.
func had(r *releasev1alpha1.Release, ref releasev1alpha1.ReleaseObjectReference, revision string) bool {
	if r.Spec.Trigger != nil && r.Spec.Trigger.Revision == revision {
		return true
	}
	for _, spec := range r.Spec.Targets {
		for _, t := range r.Status.Targets {
			if sameTarget(spec.Ref, ref) && t.Name == spec.Name && (t.To == revision || t.TemplateRevision == revision) {
				return true
			}
		}
	}
	return false
}
