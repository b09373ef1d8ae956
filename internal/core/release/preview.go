package release

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Planned is a step of the plan of a release: after it, so many pods of a target in a cluster may be new.
type Planned struct {
	Target string `json:"target"`
	fleet.Released
}

// preview returns what a release will do if nothing fails, target by target, and a hash of it. Gates and the time of
// soaking are not in it. A release that is not accepted yet is previewed as Accept would accept it; the error is the
// reason why it would not. The stepper has the release as accepted.
func preview(in Input) (s *stepper, steps []Planned, hash string, err error) {
	s = &stepper{Input: in, status: *in.Release.Status.DeepCopy()}
	if s.status.StartedAt == nil && len(clustersOf(s.status.Stages)) == 0 {
		a := Accept(in)
		if a.Reason != releasev1alpha1.ReasonPlanned {
			return nil, nil, "", fmt.Errorf("%s: %s", a.Reason, a.Message)
		}
		s.assume(a)
	}
	for _, spec := range in.Release.Spec.Targets {
		t := in.Targets[spec.Name]
		status := s.target(spec.Name)
		to := t.revision(status.To)
		if t.Binding == nil || t.Template == nil || to == nil {
			return nil, nil, "", fmt.Errorf("target %s has no template, binding or revision", spec.Name)
		}
		former := t.revision(status.From)
		template, err := WithPods(t.Template, to)
		if err != nil {
			return nil, nil, "", err
		}
		before := template
		if former != nil {
			before, err = WithPods(t.Template, former)
		} else if t.Placed {
			before, err = withOtherPods(t.Template)
		}
		if err != nil {
			return nil, nil, "", err
		}
		p := s.plan(status, status.To)
		p.Joining = s.joining()
		p.Stages = s.planStages(spec.Name)
		for k, stage := range s.status.Stages {
			p.Stages[k].Skip = skippedByUser(stage)
		}
		fin := fleet.Input{Template: template, Divided: t.Divided, Plan: p}
		for _, c := range t.Binding.BindingSpec().Clusters {
			fin.Members = append(fin.Members, fleet.Member{Cluster: c.Name, Replicas: int64(c.Replicas)})
		}
		released, err := fleet.Preview(fin, before)
		if err != nil {
			return nil, nil, "", fmt.Errorf("target %s: %w", spec.Name, err)
		}
		for _, step := range released {
			steps = append(steps, Planned{spec.Name, step})
		}
	}
	return s, steps, hashOf(steps), nil
}

// assume sets the status as if the release was accepted and began.
func (s *stepper) assume(a Acceptance) {
	s.status.Strategy, s.status.Targets, s.status.Stages = s.strategy(), a.Targets, nil
	for k, stage := range s.status.Strategy.Stages {
		s.status.Stages = append(s.status.Stages, releasev1alpha1.ReleaseStageStatus{Name: stage.Name,
			ClusterNames: a.Clusters[k]})
	}
}

// withOtherPods is a copy of a template that makes other pods than any revision.
func withOtherPods(template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := template.DeepCopy()
	for _, path := range interpret.PodTemplates(template) {
		at := append(slices.Clone(path), "metadata", "annotations", "revision")
		if err := unstructured.SetNestedField(out.Object, "unknown", at...); err != nil {
			return nil, fmt.Errorf("read the pod template of %s %s: %w", template.GetKind(), template.GetName(), err)
		}
	}
	return out, nil
}

func clustersOf(stages []releasev1alpha1.ReleaseStageStatus) (all []string) {
	for _, stage := range stages {
		all = append(all, stage.ClusterNames...)
	}
	return all
}
