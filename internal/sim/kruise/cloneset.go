package kruise

import (
	"cmp"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// newID makes the random part of a pod's name.
type newID func() string

// decideCloneSet returns what to do next for a CloneSet: finish in-place updates; else scale; else update.
func decideCloneSet(cs *CloneSet, o observed, id newID) (steps, error) {
	spec := &cs.Spec
	replicas := ptr.Deref(spec.Replicas, 1)
	keep, err := keepOld(spec.UpdateStrategy.Partition, replicas)
	if err != nil {
		return steps{}, err
	}
	surge, unavailable, err := surgeAndUnavailable(spec.UpdateStrategy.MaxSurge, spec.UpdateStrategy.MaxUnavailable,
		spec.UpdateStrategy.Paused, replicas)
	if err != nil {
		return steps{}, err
	}
	s := o.common(spec.MinReadySeconds)
	up := func(p *corev1.Pod) bool { return available(p, spec.MinReadySeconds, o.now) }

	var pods, old []*corev1.Pod
	var numUp int32
	for _, p := range o.pods {
		if !active(p) {
			continue
		}
		pods = append(pods, p)
		if revisionOf(p) != o.update {
			old = append(old, p)
		}
		if up(p) {
			numUp++
		}
	}
	toUpdate := max(0, int32(len(old))-keep)
	wanted := replicas + min(surge, toUpdate)
	total := int32(len(pods))
	// spare is how many available pods may be taken away without falling below what must stay.
	spare := numUp - (replicas - unavailable)

	var specified []*corev1.Pod
	for _, p := range pods {
		if slices.Contains(spec.ScaleStrategy.PodsToDelete, p.Name) {
			specified = append(specified, p)
		}
	}

	if named := spec.ScaleStrategy.PodsToDelete; len(named) > 0 {
		left := slices.DeleteFunc(slices.Clone(named), func(name string) bool {
			return !slices.ContainsFunc(o.pods, func(p *corev1.Pod) bool { return p.Name == name })
		})
		if len(left) < len(named) {
			s.toDelete = left
		}
	}

	// 1. Scale up: old pods only as far as the partition wants them.
	if total < wanted {
		for i := range wanted - total {
			revision := o.update
			if i < keep-int32(len(old)) && o.revisions[o.current] != nil {
				revision = o.current
			}
			s.create = append(s.create, o.clone(cs, id(), revision))
		}
		return s, nil
	}

	// 2. Scale down: pods named for it first, then the old ones too many, then the others; the unready first. Those that
	// are not named and are up stay while they are needed, since the remaining pods may still be starting.
	if total > wanted {
		surplusOld := min(total-wanted, toUpdate)
		slices.SortFunc(old, deletionOrder)
		rank := map[*corev1.Pod]int{}
		for _, p := range pods {
			rank[p] = 2
		}
		for _, p := range old {
			rank[p] = 3
		}
		for _, p := range old[:surplusOld] {
			rank[p] = 1
		}
		for _, p := range specified {
			rank[p] = 0
		}
		order := slices.Clone(pods)
		slices.SortFunc(order, func(a, b *corev1.Pod) int {
			return cmp.Or(cmp.Compare(rank[a], rank[b]), deletionOrder(a, b))
		})
		for _, p := range order {
			if up(p) {
				if spare <= 0 && rank[p] != 0 {
					continue
				}
				spare--
			}
			if s.remove = append(s.remove, p); int32(len(s.remove)) == total-wanted {
				break
			}
		}
		return s, nil
	}

	// 3. Pods named for deletion beyond that are replaced, within what may be unavailable.
	if len(specified) > 0 {
		for _, p := range specified {
			if up(p) {
				if spare <= 0 {
					continue
				}
				spare--
			}
			s.remove = append(s.remove, p)
		}
		return s, nil
	}

	// 4. Update: the pods that are down cost nothing, the others come out of what may be unavailable.
	if spec.UpdateStrategy.Paused || spec.UpdateStrategy.Type == onDelete || toUpdate == 0 {
		return s, nil
	}
	slices.SortFunc(old, func(a, b *corev1.Pod) int {
		return cmp.Or(compareBool(up(a), up(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
	for _, p := range old[:toUpdate] {
		if up(p) {
			if spare <= 0 {
				break
			}
			spare--
		}
		if !s.update(o, p, spec.UpdateStrategy.Type) {
			break
		}
	}
	return s, nil
}

// cloneSetStatus returns the status that belongs to what was observed; messages are the failures by condition type.
func cloneSetStatus(cs *CloneSet, o observed, messages map[string]string) (CloneSetStatus, error) {
	replicas := ptr.Deref(cs.Spec.Replicas, 1)
	keep, err := keepOld(cs.Spec.UpdateStrategy.Partition, replicas)
	if err != nil {
		return CloneSetStatus{}, err
	}
	status := CloneSetStatus{o.status(&cs.ObjectMeta, cs.Spec.Selector, cs.Spec.MinReadySeconds, messages),
		replicas - keep}
	if status.UpdatedReplicas == status.Replicas && status.Replicas == replicas {
		status.CurrentRevision = o.update
	}
	// The real manager writes a status only if a counter or a revision changes. Until then a failure that is over stays
	// True, and a new failure is not shown.
	unchanged := status
	if unchanged.Conditions = cs.Status.Conditions; reflect.DeepEqual(unchanged, cs.Status) {
		return cs.Status, nil
	}
	return status, nil
}

// clone returns a new pod with the claims that go with it.
func (o observed) clone(cs *CloneSet, id, revision string) creation {
	pod := fromTemplate(o.revisions[revision], &cs.ObjectMeta, controllerRef(cs, &cs.TypeMeta), revision)
	pod.Name = cs.Name + "-" + id
	pod.Labels[instanceIDLabel] = id
	pod.Labels[lifecycleLabel] = "Normal"
	if !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == inPlaceReady
	}) {
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: inPlaceReady})
	}
	out := creation{pod, newClaims(cs.Spec.VolumeClaimTemplates, cs.Spec.Selector, pod)}
	for _, claim := range out.claims {
		claim.Labels[instanceIDLabel] = id
		claim.OwnerReferences = pod.OwnerReferences
	}
	return out
}

// deletionOrder puts the pods first that are missed least: not placed, not running, not ready, young.
func deletionOrder(a, b *corev1.Pod) int {
	running := func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }
	return cmp.Or(
		compareBool(a.Spec.NodeName != "", b.Spec.NodeName != ""),
		compareBool(running(a), running(b)),
		compareBool(ready(a), ready(b)),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
