package dispatch

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// part is one target with its replicas, or an error.
type part struct {
	workv1alpha2.TargetCluster
	manifest *unstructured.Unstructured
	err      error
}

// share divides the fields that count the pods of all clusters, with core/workload/fleet; most templates have none.
// Overrides apply afterwards; their changes are an input. Clusters that first pull images get no new pods meanwhile.
func (in Input) share(parts []part, gates map[string]gate) (fleet.Result, error) {
	spec := in.Binding.BindingSpec()
	divided := Divides(spec)
	concerns, err := fleet.Concerns(in.Template, divided)
	concerns = concerns || in.pace.plan != nil
	annotations := in.Binding.GetAnnotations()
	record := annotations[wellknown.OrdinalsAnnotation]
	if err == nil && !concerns && in.Template.GetAnnotations()[wellknown.UniqueOrdinalsAnnotation] == "true" {
		// It has no replicas now, but volumes in its former clusters.
		return fleet.Result{Record: record}, nil
	}
	if err != nil && in.pace.plan == nil {
		return fleet.Result{}, err
	}
	if !concerns {
		return fleet.Shares(fleet.Input{Template: in.Template, Divided: divided})
	}
	scheduled := func(cluster string) bool {
		return workv1alpha2.HasTarget(spec.Clusters, cluster)
	}
	fin := fleet.Input{Template: in.Template, Divided: divided, Record: record, Pods: in.Pods,
		Target: in.Target, Plan: in.pace.plan,
		Progress: annotations[wellknown.RolloutProgressAnnotation], Routed: annotations[wellknown.RoutedToAnnotation],
		Approved: annotations[wellknown.ApprovedStageAnnotation],
		Now:      in.Now, Leaving: spec.LeftGracefully()}
	if in.Purging {
		fin.Leaving = append(fin.Leaving, purged(in.Binding)...) // they still run what they were sent
	}
	for _, p := range parts {
		if divided && !scheduled(p.Name) {
			continue // it is there because another one requires it, whole
		}
		m := fleet.Member{Cluster: p.Name, Replicas: int64(p.Replicas),
			Reachable: !membership.KnownNotReady(in.Clusters[p.Name]),
			Suspended: Suspended(in.Binding, p.Name) || leaving(in.Existing[p.Name]) || gates[p.Name].shut,
			Scaled:    scaled(in.Binding, in.Existing[p.Name]),
			Base:      p.manifest, Local: p.manifest, Work: in.Existing[p.Name]}
		if len(p.Components) > 0 {
			m.Subsets = map[string]int64{}
			for name, n := range schedule.Given(p.TargetCluster) {
				m.Subsets[name] = int64(n)
			}
		}
		if c := in.Clusters[p.Name]; c != nil && p.manifest != nil {
			m.Kubernetes = c.Status.KubernetesVersion
			// The override reports its failure.
			if local, _, err := override.Apply(p.manifest, c, in.overridesFor(p.Name)); err == nil {
				m.Local = local
			}
		}
		fin.Members = append(fin.Members, m)
	}
	inOrder(spec.Placement, fin.Members)
	return fleet.Shares(fin)
}

// StageOf returns the stage of the rollout of a template, or of its release plan, from its Works in the scheduled
// clusters. lost are the clusters that do not respond. ok is false without stages.
func StageOf(b workv1alpha2.Binding, template *unstructured.Unstructured, works []workv1alpha1.Work,
	lost func(cluster string) bool) (s fleet.Stage, ok bool) {
	spec := b.BindingSpec()
	in := fleet.Input{Template: template, Divided: Divides(spec), Plan: fleet.PlanOf(b.GetAnnotations()),
		Approved: b.GetAnnotations()[wellknown.ApprovedStageAnnotation]}
	for _, target := range spec.Clusters {
		m := fleet.Member{Cluster: target.Name, Replicas: int64(target.Replicas), Reachable: !lost(target.Name)}
		if i := slices.IndexFunc(works, func(w workv1alpha1.Work) bool {
			return w.Namespace == names.ExecutionSpace(target.Name)
		}); i >= 0 {
			m.Work = &works[i]
		}
		m.Scaled = scaled(b, m.Work)
		in.Members = append(in.Members, m)
	}
	inOrder(spec.Placement, in.Members)
	return fleet.StageOf(in)
}

// scaled reports whether an autoscaler in a member sets the replicas: one of a FederatedHPA, or another one that the
// hub found there. w is the Work in the cluster, nil for none.
func scaled(b workv1alpha2.Binding, w *workv1alpha1.Work) bool {
	return b.GetAnnotations()[wellknown.ScaledByAnnotation] != "" || w != nil &&
		meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkScaledByMember)
}

func inOrder(p *policyv1alpha1.Placement, members []fleet.Member) {
	rank := ranks(p)
	slices.SortStableFunc(members, func(x, y fleet.Member) int {
		return cmp.Or(rank(x.Cluster)-rank(y.Cluster), strings.Compare(x.Cluster, y.Cluster))
	})
}

// leaving reports whether a Work is being deleted. A new Work can replace it afterwards.
func leaving(w *workv1alpha1.Work) bool { return w != nil && w.DeletionTimestamp != nil }

// Divides reports whether a binding divides the replicas of its template among clusters.
func Divides(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Replicas > 0 && spec.Placement.DividesReplicas()
}

// ranks returns the position of each cluster in the placement; clusters outside it come last.
func ranks(p *policyv1alpha1.Placement) func(cluster string) int {
	var named []string
	if p != nil {
		if p.ClusterAffinity != nil {
			named = append(named, p.ClusterAffinity.ClusterNames...)
		}
		for _, term := range p.ClusterAffinities {
			named = append(named, term.ClusterNames...)
		}
	}
	return func(cluster string) int {
		if i := slices.Index(named, cluster); i >= 0 {
			return i
		}
		return len(named)
	}
}

// Follows reports whether other Works of the template depend on a Work's status.
func Follows(w *workv1alpha1.Work) bool { return w.Annotations[wellknown.FleetAnnotation] != "" }

// Moved reports whether the Works in other clusters depend on the change of a Work from was to is.
func Moved(was, is *workv1alpha1.Work) bool {
	if leaving(is) && handsOff(was) != handsOff(is) {
		return true // see PurgeIsStuck
	}
	if !Follows(is) {
		return false
	}
	before, after := meta.FindStatusCondition(was.Status.Conditions, workv1alpha1.WorkApplied),
		meta.FindStatusCondition(is.Status.Conditions, workv1alpha1.WorkApplied)
	if (before == nil) != (after == nil) || after != nil &&
		(before.Status != after.Status || before.ObservedGeneration != after.ObservedGeneration) {
		return true
	}
	if meta.IsStatusConditionTrue(was.Status.Conditions,
		workv1alpha1.WorkScaledByMember) != meta.IsStatusConditionTrue(is.Status.Conditions,
		workv1alpha1.WorkScaledByMember) {
		return true
	}
	return !slices.EqualFunc(was.Status.ManifestStatuses, is.Status.ManifestStatuses,
		func(x, y workv1alpha1.ManifestStatus) bool {
			return x.Health == y.Health && (x.Status == nil) == (y.Status == nil) &&
				(x.Status == nil || bytes.Equal(x.Status.Raw, y.Status.Raw))
		})
}

// Reachability reports whether a cluster started or stopped responding between was and is.
func Reachability(was, is *clusterv1alpha1.Cluster) bool {
	return membership.KnownNotReady(was) != membership.KnownNotReady(is)
}
