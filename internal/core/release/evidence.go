package release

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Evidence has the facts that a user sees before a verdict at a gate.
type Evidence struct {
	Release   string `json:"release"`
	Namespace string `json:"namespace"`
	Revision  string `json:"revision"`
	Stage     string `json:"stage"`
	Attempt   int32  `json:"attempt"`
	Gate      string `json:"gate"`
	// Targets has the changes of the release, by target.
	Targets []TargetChanges `json:"targets"`
	// Starts are the stages that update pods after an approval, until another gate stops the release. Steps are their
	// simulation, in the order in which pods are released.
	Starts []PlannedStage `json:"starts"`
	Steps  []Planned      `json:"steps"`
	// Checks are the checks of the stages so far.
	Checks []CheckedGate `json:"checks"`
	// Notes name what cannot be shown, and why.
	Notes []string `json:"notes,omitempty"`
}

// TargetChanges are the changes of a release in a target.
type TargetChanges struct {
	PlannedTarget
	// Images are by container, Changes the other fields.
	Images  []Change `json:"images"`
	Changes []Change `json:"changes"`
}

// ChangesOfTarget compares the revisions of a target. Without a former revision, all is new and there are no changes.
func ChangesOfTarget(target PlannedTarget, from, to *releasev1alpha1.ReleaseRevision) (TargetChanges, error) {
	t := TargetChanges{PlannedTarget: target, Images: []Change{}, Changes: []Change{}}
	if from == nil || to == nil {
		return t, nil
	}
	before, err := imagesOf(from)
	if err != nil {
		return t, err
	}
	after, err := imagesOf(to)
	if err != nil {
		return t, err
	}
	all, err := Changes(from, to)
	if err != nil {
		return t, err
	}
	t.Images, t.Changes = splitImages(before, after, all)
	return t, nil
}

// splitImages returns the images that differ, and the other changes.
func splitImages(before, after map[string]any, all []Change) (images, others []Change) {
	images = append([]Change{}, fields.Changes(before, after)...)
	others = slices.DeleteFunc(append([]Change{}, all...), func(c Change) bool {
		return slices.ContainsFunc(images, func(image Change) bool {
			return strings.HasSuffix(c.Path, "["+image.Path+"].image")
		})
	})
	return images, others
}

// CheckedGate is the state of a check at a gate.
type CheckedGate struct {
	Stage string                    `json:"stage"`
	Gate  string                    `json:"gate"`
	Check string                    `json:"check"`
	Phase releasev1alpha1.GatePhase `json:"phase"`
	// Text describes the samples so far.
	Text string `json:"text,omitempty"`
}

// EvidenceOf returns the evidence for a verdict at a gate of the stage under way. plan is nil if it is not known.
func EvidenceOf(r *releasev1alpha1.Release, gate releasev1alpha1.ReleaseGateStatus, targets []TargetChanges,
	plan *ReleasePlan) Evidence {
	e := Evidence{Release: r.Name, Namespace: r.Namespace, Revision: r.Status.Revision, Gate: gate.Name, Targets: targets,
		Starts: []PlannedStage{}, Steps: []Planned{}, Checks: []CheckedGate{}}
	stage := StageUnderWay(r)
	e.Stage, e.Attempt = stage.Name, stage.Attempt
	for _, s := range r.Status.Stages {
		for _, g := range s.Gates {
			if g.Check != nil {
				e.Checks = append(e.Checks, CheckedGate{s.Name, g.Name, g.Check.Name, g.Phase, CheckText(g.Check)})
			}
		}
	}
	if plan == nil {
		return e
	}
	e.Notes = plan.Notes
	for _, g := range WaitingGates(r) {
		if g.Name != gate.Name {
			e.Notes = append(e.Notes, fmt.Sprintf("the stage waits for gate %s too", g.Name))
		}
	}
	k := slices.IndexFunc(plan.Stages, func(s PlannedStage) bool { return s.Name == stage.Name })
	if k < 0 {
		return e
	}
	if gate.Position == releasev1alpha1.GateAfter {
		k++
	}
	for i, s := range plan.Stages[k:] {
		if s.Skipped != "" {
			continue
		}
		if len(s.Before) > 0 && (i > 0 || gate.Position == releasev1alpha1.GateAfter) {
			break
		}
		e.Starts = append(e.Starts, s)
		for _, step := range plan.Steps {
			if step.Stage == s.Name {
				e.Steps = append(e.Steps, step)
			}
		}
		if len(s.After) > 0 {
			break
		}
	}
	return e
}

func imagesOf(r *releasev1alpha1.ReleaseRevision) (map[string]any, error) {
	u, err := podsOf(r)
	if err != nil {
		return nil, err
	}
	return imagesIn(u), nil
}

// imagesIn returns the images of an object by container.
func imagesIn(u *unstructured.Unstructured) map[string]any {
	images := map[string]any{}
	for _, c := range interpret.Containers(u) {
		if c.Image != "" {
			images[c.Name] = c.Image
		}
	}
	return images
}
