package fleet

import (
	"fmt"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
)

// pauseUnfit divides a template that its plan does not fit. All pods stay new or old as they are. Members get the
// replicas and all else of the template. It fails for a template that no member can have as it is on the hub.
func (h handler) pauseUnfit(in Input, o options) (Result, error) {
	by := "a part of its pods"
	if in.Plan.Unit == UnitCluster {
		by = "whole clusters"
	}
	undo := fmt.Sprintf(
		"undo the change of spec.updateStrategy, of the label %s, of the annotation %s or of the placement",
		policyv1alpha1.RetainReplicasLabel, wellknown.RolloutScopeAnnotation)
	if h.partial != nil && h.partial(in.Template) || h.always != nil && h.always(in.Template.Object) {
		return Result{}, fmt.Errorf("release %s updates this %s by %s, which the template no longer allows: members keep "+
			"what they have; %s", in.Plan.Release, in.Template.GetKind(), by, undo)
	}
	f, err := fleetOf(in, o)
	if err != nil {
		return Result{}, err
	}
	w, divides := workloadOf(in.Template.GroupVersionKind().GroupKind())
	for _, m := range f.members {
		f.keepFormer(m, false, 0, 1)
		if divides && m.Base != nil && m.before != nil && strategy(m.before.Object, "partition") != nil {
			if err := f.keepShare(w, m); err != nil {
				return Result{}, err
			}
		}
	}
	f.addCondition(FleetHalted, "release %s updates this %s by %s, which the template no longer allows: no pod is updated, while "+
		"replicas and placement still follow the template; %s", in.Plan.Release, in.Template.GetKind(), by, undo)
	return f.result, nil
}

// keepShare keeps how many pods are new in a cluster, and what its rollout may do, for the replicas that it has now.
func (f *fleet) keepShare(w workload, m *member) error {
	p, err := w.party(m)
	if err != nil {
		return err
	}
	if n, ok := whole(field(m.Base.Object, "spec", "replicas")); ok && !w.perNode() {
		p.replicas = n
	}
	o := outcome{share: p.written, scaled: p.scaled, percent: p.percent}
	o.replicas, o.released = p.replicas, min(p.written.released, p.replicas)
	if p.written.released >= p.written.replicas {
		o.released = p.replicas
	}
	manifest, err := w.write(m.Base, o)
	if err != nil {
		return fmt.Errorf("cluster %q: %w", m.Cluster, err)
	}
	f.result.Manifests[m.Cluster] = manifest
	if p.note != nil {
		f.result.Notes[m.Cluster] = p.note.String()
	}
	return nil
}
