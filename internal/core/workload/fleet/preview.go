package fleet

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// Released is a step of a Preview: after it, so many pods of a cluster may be new.
type Released struct {
	Stage    string `json:"stage"`
	Cluster  string `json:"cluster"`
	Released int64  `json:"released"`
}

// Preview is what the plan of in will release, in order, if every member reports at once that all it was sent is there.
// former is the template with the pods of the revision before. Members need no Base, Local and Work.
func Preview(in Input, former *unstructured.Unstructured) ([]Released, error) {
	if in.Plan == nil {
		return nil, fmt.Errorf("there is no plan")
	}
	plan := *in.Plan
	in.Plan, in.Members = &plan, append([]Member(nil), in.Members...)
	for i := range in.Members {
		m := &in.Members[i]
		m.Reachable, m.Suspended, m.Scaled, m.Work = true, false, false, nil
		base, err := m.divided(in.Template, in.Divided)
		if err != nil {
			return nil, err
		}
		m.Base, m.Local = base, base
		before, err := m.divided(former, in.Divided)
		if err != nil {
			return nil, err
		}
		if err := m.perform(before, Note{}.String(), "", in.Divided); err != nil {
			return nil, err
		}
	}
	var all []Released
	released := map[string]int64{}
	for plan.At = 0; plan.At <= len(plan.Stages); plan.At++ {
		for round := 0; ; round++ {
			if round > 100000 {
				return nil, fmt.Errorf("stage %d of the plan does not end", plan.At)
			}
			result, err := Shares(in)
			if err != nil {
				return nil, err
			}
			moved, err := in.write(result)
			if err != nil {
				return nil, err
			}
			progress, err := ProgressOf(in)
			if err != nil {
				return nil, err
			}
			for _, p := range progress {
				if p.Released > released[p.Cluster] {
					released[p.Cluster] = p.Released
					stage := ""
					if plan.At > 0 {
						stage = plan.Stages[plan.At-1].Name
					}
					all = append(all, Released{stage, p.Cluster, p.Released})
				}
			}
			if !moved {
				break
			}
		}
	}
	return all, nil
}

// divided returns a template with the replicas of m.
func (m *Member) divided(template *unstructured.Unstructured, divided bool) (*unstructured.Unstructured, error) {
	out := template.DeepCopy()
	if !divided {
		return out, nil
	}
	return out, unstructured.SetNestedField(out.Object, m.Replicas, "spec", "replicas")
}

// write puts a result into the Works of the members, which report at once. moved is true if a Work has changed.
func (in Input) write(result Result) (moved bool, err error) {
	unchanged := slices.Concat(result.PodsKept, result.Waiting, result.Former)
	for i := range in.Members {
		m := &in.Members[i]
		if slices.Contains(unchanged, m.Cluster) {
			continue
		}
		manifest := result.Manifests[m.Cluster]
		if manifest == nil {
			manifest = m.Base
		}
		raw, err := json.Marshal(manifest.Object)
		if err != nil {
			return false, err
		}
		if string(m.Work.Spec.Workload.Manifests[0].Raw) == string(raw) &&
			m.Work.Annotations[wellknown.FleetAnnotation] == result.Notes[m.Cluster] &&
			m.Work.Annotations[EffectiveRevisionAnnotation] == in.Plan.Revision {
			continue
		}
		moved = true
		if err := m.perform(manifest, result.Notes[m.Cluster], in.Plan.Revision, in.Divided); err != nil {
			return false, err
		}
	}
	return moved, nil
}

// perform gives m a Work of a manifest, and the report of a member that has done all of it.
func (m *Member) perform(manifest *unstructured.Unstructured, note, revision string, divided bool) error {
	raw, err := json.Marshal(manifest.Object)
	if err != nil {
		return err
	}
	replicas := m.Replicas
	if n, ok := whole(field(manifest.Object, "spec", "replicas")); ok && !divided {
		replicas = n
	}
	status := map[string]any{"replicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas,
		"readyReplicas": replicas, "updatedAvailableReplicas": replicas, "updatedReadyReplicas": replicas}
	if w, ok := workloadOf(manifest.GroupVersionKind().GroupKind()); ok {
		c := w.Counters
		if c.Desired != "" {
			status[c.Desired] = replicas
		}
		s, err := w.shareOf(manifest.Object, replicas)
		if err != nil {
			return err
		}
		status[c.Present()[0]], status[c.Available] = replicas, replicas
		status[c.Updated] = s.released
		if c.UpdatedAvailable != "" {
			status[c.UpdatedAvailable] = s.released
		}
	}
	reported, err := json.Marshal(status)
	if err != nil {
		return err
	}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{}}}
	if m.Work != nil {
		work.Generation = m.Work.Generation + 1
	}
	if note != "" {
		work.Annotations[wellknown.FleetAnnotation] = note
	}
	if revision != "" {
		work.Annotations[EffectiveRevisionAnnotation] = revision
	}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
		ObservedGeneration: work.Generation}}
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy,
		Status: &runtime.RawExtension{Raw: reported}}}
	m.Work = work
	return nil
}
