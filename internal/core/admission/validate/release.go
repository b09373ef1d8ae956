package validate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/release"
)

// Release validates the spec of a Release. scoped reports whether objects of a kind are namespaced, if the hub serves
// the kind.
func Release(r *releasev1alpha1.Release, scoped func(schema.GroupKind) (namespaced, known bool)) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "targets")
	for i, t := range r.Spec.Targets {
		ref := path.Index(i).Child("ref")
		if wrong := apiVersion(ref.Child("apiVersion"), t.Ref.APIVersion); wrong != nil {
			errs = append(errs, wrong...)
			continue
		}
		if namespaced, known := scoped(match.GroupKind(t.Ref.APIVersion, t.Ref.Kind)); known && !namespaced {
			errs = append(errs, field.Invalid(ref.Child("kind"), t.Ref.Kind, fmt.Sprintf(
				"a %s is cluster-scoped: a release updates workloads of its namespace", t.Ref.Kind)))
		}
	}
	if i, j, ok := release.DuplicateTarget(r.Spec.Targets); ok {
		errs = append(errs, field.Invalid(path.Index(j).Child("ref"), r.Spec.Targets[j].Ref.Name, fmt.Sprintf(
			"targets %s and %s are the same workload", r.Spec.Targets[i].Name, r.Spec.Targets[j].Name)))
	}
	if problem := release.DependencyProblem(r.Spec.Targets); problem != "" {
		errs = append(errs, field.Invalid(path, "dependsOn", problem))
	}
	if r.Spec.Strategy != nil {
		strategy := field.NewPath("spec", "strategy")
		errs = append(errs, ReleaseStrategy(r.Spec.Strategy, strategy)...)
		if r.Spec.Strategy.AutoStart != nil {
			errs = append(errs, field.Forbidden(strategy.Child("autoStart"),
				"is for a ReleaseStrategy: the strategy of a release starts no other releases"))
		}
	}
	return errs
}

// ReleaseUpdate rejects changes of immutable fields of an accepted release.
func ReleaseUpdate(r, old *releasev1alpha1.Release) field.ErrorList {
	if !meta.IsStatusConditionTrue(old.Status.Conditions, releasev1alpha1.ReleaseAccepted) {
		return nil
	}
	var errs field.ErrorList
	for _, f := range []struct {
		name    string
		is, was any
	}{
		{"targets", r.Spec.Targets, old.Spec.Targets},
		{"strategyRef", r.Spec.StrategyRef, old.Spec.StrategyRef},
		{"strategy", r.Spec.Strategy, old.Spec.Strategy},
		{"change", r.Spec.Change, old.Spec.Change},
	} {
		if !equality.Semantic.DeepEqual(f.is, f.was) {
			errs = append(errs, field.Forbidden(field.NewPath("spec", f.name),
				"cannot be changed once the release is accepted: only state, supersede and ttlSecondsAfterFinished can; "+
					"create another release instead"))
		}
	}
	return errs
}

// maxGates is how many gates a user can set before a stage. A release may have one more, of ReleaseGuards.
const maxGates = 8

// ReleaseStrategy validates a strategy. Clusters are not known here: whether each one is in a stage is decided when a
// release is accepted.
func ReleaseStrategy(s *releasev1alpha1.ReleaseStrategySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for k, stage := range s.Stages {
		at := path.Child("stages").Index(k)
		if stage.Clusters != nil {
			errs = append(errs, clusterAffinity(stage.Clusters, at.Child("clusters"))...)
		}
		errs = append(errs, amount(s, k, at.Child("to"))...)
		errs = append(errs, atLeast(stage.MaxConcurrentClusters, 1, at.Child("maxConcurrentClusters"))...)
		if stage.Soak.Duration < 0 {
			errs = append(errs, field.Invalid(at.Child("soak"), stage.Soak.Duration.String(), "must not be negative"))
		}
		errs = append(errs, positive(stage.Deadline, at.Child("deadline"))...)
		errs = append(errs, gates(stage.Before, at.Child("before"))...)
		if len(stage.Before) > maxGates {
			errs = append(errs, field.TooMany(at.Child("before"), len(stage.Before), maxGates))
		}
		errs = append(errs, gates(stage.After, at.Child("after"))...)
	}
	errs = append(errs, atLeast(s.Failure.MaxFailedPods, 0, path.Child("failure", "maxFailedPods"))...)
	errs = append(errs, atLeast(s.Failure.MaxFailedClusters, 0, path.Child("failure", "maxFailedClusters"))...)
	errs = append(errs, positive(s.Rollback.Deadline, path.Child("rollback", "deadline"))...)
	return append(errs, positive(s.OnLostCluster.After, path.Child("onLostCluster", "after"))...)
}

// amount compares how many pods stage k updates with the stages before it that select the same clusters. A stage that
// adds nothing would be skipped together with its gates.
func amount(s *releasev1alpha1.ReleaseStrategySpec, k int, path *field.Path) field.ErrorList {
	stage := s.Stages[k]
	for j := k - 1; j >= 0; j-- {
		before := s.Stages[j]
		if !release.SameSelection(before, stage) {
			continue
		}
		a, b := releasev1alpha1.ReleaseAmount{}, releasev1alpha1.ReleaseAmount{}
		if before.To != nil {
			a = *before.To
		}
		if stage.To != nil {
			b = *stage.To
		}
		switch {
		case (a.Weight != nil) != (b.Weight != nil):
			return field.ErrorList{field.Invalid(path, amountText(stage.To), fmt.Sprintf(
				"stages of the same clusters must all have a weight or none: stage %s has %s", before.Name,
				amountText(before.To)))}
		case a.Weight != nil:
		case a.Pods != nil && b.Pods != nil && *b.Pods <= *a.Pods,
			a.Pods == nil && b.Pods == nil && percentOf(b) <= percentOf(a),
			a.Pods == nil && percentOf(a) == 100:
			return field.ErrorList{field.Invalid(path, amountText(stage.To), fmt.Sprintf(
				"must be more than in stage %s of the same clusters, which has %s: amounts include earlier stages",
				before.Name, amountText(before.To)))}
		}
		return nil
	}
	return nil
}

// percentOf returns the percentage of an amount without pods and weight.
func percentOf(a releasev1alpha1.ReleaseAmount) int64 {
	if a.Percent == nil {
		return 100
	}
	return *a.Percent
}

func amountText(a *releasev1alpha1.ReleaseAmount) string {
	switch {
	case a == nil:
		return "all pods"
	case a.Weight != nil:
		return fmt.Sprintf("weight %d", *a.Weight)
	case a.Pods != nil:
		return fmt.Sprintf("%d pods", *a.Pods)
	}
	return fmt.Sprintf("%d percent", percentOf(*a))
}

// gates validates the gates before or after a stage.
func gates(list []releasev1alpha1.ReleaseGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, g := range list {
		at := path.Index(i)
		errs = append(errs, positive(g.Timeout, at.Child("timeout"))...)
		errs = append(errs, gateType(g, at)...)
		rule := g.Approval
		if rule == nil || len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(s releasev1alpha1.ReleaseSubject) bool {
			return s.Kind == "Group"
		}) {
			continue
		}
		users := map[releasev1alpha1.ReleaseSubject]bool{}
		for _, s := range rule.From {
			users[s] = true
		}
		if int(rule.Count) > len(users) {
			errs = append(errs, field.Invalid(at.Child("approval", "count"), rule.Count,
				fmt.Sprintf("more than the %d users in from: the gate could not open", len(users))))
		}
	}
	return errs
}

// positive refuses a duration that is set and not more than 0.
func positive(d *metav1.Duration, path *field.Path) field.ErrorList {
	if d == nil || d.Duration > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, d.Duration.String(), "must be more than 0")}
}

// atLeast refuses a number that is set and too small. The schema checks percentages.
func atLeast(v *intstr.IntOrString, least int, path *field.Path) field.ErrorList {
	if v == nil || v.Type != intstr.Int || v.IntValue() >= least {
		return nil
	}
	return field.ErrorList{field.Invalid(path, v.IntValue(), fmt.Sprintf("must be at least %d", least))}
}
