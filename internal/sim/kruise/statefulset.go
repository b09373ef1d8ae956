package kruise

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// decideStatefulSet returns what to do next for an Advanced StatefulSet: finish in-place updates; make the pods of its
// ordinals and remove the others, one by one unless the policy is Parallel; then update from the highest ordinal down.
func decideStatefulSet(set *StatefulSet, o observed) (steps, error) {
	spec := &set.Spec
	replicas := ptr.Deref(spec.Replicas, 1)
	wanted, err := fleet.FirstOrdinals(int64(replicas), spec.ReserveOrdinals)
	if err != nil {
		return steps{}, err
	}
	partition, maxDown, policy, paused, minReady, err := spec.rolling(replicas)
	if err != nil {
		return steps{}, err
	}
	s := o.common(minReady)
	up := func(p *corev1.Pod) bool { return p != nil && active(p) && available(p, minReady, o.now) }

	byOrdinal := map[int64]*corev1.Pod{}
	var condemned []*corev1.Pod
	for _, p := range o.pods {
		n, ok := ordinalOf(set.Name, p.Name)
		if !ok {
			continue
		}
		byOrdinal[n] = p
		if !slices.Contains(wanted, n) {
			condemned = append(condemned, p)
		}
	}
	slices.SortFunc(condemned, func(a, b *corev1.Pod) int {
		m, _ := ordinalOf(set.Name, a.Name)
		n, _ := ordinalOf(set.Name, b.Name)
		return cmp.Compare(n, m)
	})
	var down int32
	for _, n := range wanted {
		if !up(byOrdinal[n]) {
			down++
		}
	}

	// 1. Scale. In order, everything waits for the pod at hand.
	ordered := spec.PodManagementPolicy != parallel
	waiting := false
	for i, n := range wanted {
		p := byOrdinal[n]
		switch {
		case p == nil:
			revision := o.update
			if spec.UpdateStrategy.Type != onDelete && i < int(partition) && o.revisions[o.current] != nil {
				revision = o.current
			}
			s.create = append(s.create, o.member(set, n, revision))
		case p.DeletionTimestamp != nil:
			waiting = true
		case !active(p):
			// Failed or succeeded: the ordinal gets a new pod.
			s.remove = append(s.remove, p)
		case up(p):
			continue
		}
		if ordered {
			return s, nil
		}
	}
	for _, p := range condemned {
		if p.DeletionTimestamp == nil {
			s.remove = append(s.remove, p)
		}
		waiting = true
		if ordered {
			return s, nil
		}
	}
	if waiting || len(s.create) > 0 || len(s.remove) > 0 {
		return s, nil
	}

	// 2. Update. The pods that are down cost nothing, the others come out of what may be down.
	if spec.UpdateStrategy.Type == onDelete || paused {
		return s, nil
	}
	for i := len(wanted) - 1; i >= int(partition); i-- {
		p := byOrdinal[wanted[i]]
		if revisionOf(p) == o.update {
			continue
		}
		if up(p) {
			if down >= maxDown {
				break
			}
			down++
		}
		if !s.update(o, p, policy) {
			break
		}
	}
	return s, nil
}

// rolling returns the settings of a rolling update, with their defaults.
func (spec *StatefulSetSpec) rolling(replicas int32) (partition, maxDown int32, policy string, paused bool,
	minReady int32, err error) {
	r := spec.UpdateStrategy.RollingUpdate
	if r == nil {
		return 0, 1, recreate, false, 0, nil
	}
	maxDown, err = atLeastOne(r.MaxUnavailable, replicas)
	return min(max(0, ptr.Deref(r.Partition, 0)), replicas), maxDown, r.PodUpdatePolicy, r.Paused,
		ptr.Deref(r.MinReadySeconds, 0), err
}

// statefulSetStatus returns the status that belongs to what was observed; messages are the failures by condition type.
func statefulSetStatus(set *StatefulSet, o observed, messages map[string]string) (StatefulSetStatus, error) {
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	_, _, _, _, minReady, err := set.Spec.rolling(replicas)
	if err != nil {
		return StatefulSetStatus{}, err
	}
	status := StatefulSetStatus{SetStatus: o.status(&set.ObjectMeta, set.Spec.Selector, minReady, messages)}
	for _, p := range o.pods {
		if active(p) && revisionOf(p) == o.current {
			status.CurrentReplicas++
		}
	}
	// An update is over when every pod has it and is ready; from then on it is the current revision.
	if status.UpdatedReplicas == replicas && status.ReadyReplicas == replicas && status.Replicas == replicas {
		status.CurrentRevision, status.CurrentReplicas = o.update, status.UpdatedReplicas
	}
	// As with a CloneSet, conditions alone are no reason to write a status.
	unchanged := status
	if unchanged.Conditions = set.Status.Conditions; reflect.DeepEqual(unchanged, set.Status) {
		return set.Status, nil
	}
	return status, nil
}

// member returns the pod of an ordinal with its claims.
func (o observed) member(set *StatefulSet, n int64, revision string) creation {
	pod := fromTemplate(o.revisions[revision], &set.ObjectMeta, controllerRef(set, &set.TypeMeta), revision)
	pod.Name = fmt.Sprintf("%s-%d", set.Name, n)
	pod.Labels["statefulset.kubernetes.io/pod-name"] = pod.Name
	pod.Labels["apps.kubernetes.io/pod-index"] = strconv.FormatInt(n, 10)
	pod.Spec.Hostname = pod.Name
	pod.Spec.Subdomain = set.Spec.ServiceName
	return creation{pod, newClaims(set.Spec.VolumeClaimTemplates, set.Spec.Selector, pod)}
}

// ordinalOf reads the ordinal from a pod's name.
func ordinalOf(set, pod string) (int64, bool) {
	rest, ok := strings.CutPrefix(pod, set+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	return n, err == nil && n >= 0
}
