package kruise

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ordinals returns the first replicas ordinals that are not reserved, ascending.
func ordinals(replicas int32, reserved []intstr.IntOrString) ([]int, error) {
	type span struct{ first, last int }
	var spans []span
	for _, r := range reserved {
		if r.Type == intstr.Int {
			spans = append(spans, span{int(r.IntVal), int(r.IntVal)})
			continue
		}
		from, to, isRange := strings.Cut(r.StrVal, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(strings.TrimSpace(from))
		last, err2 := strconv.Atoi(strings.TrimSpace(to))
		if err1 != nil || err2 != nil || last < first {
			return nil, fmt.Errorf("reserveOrdinals: invalid value %q: neither a number nor a range such as 3-5", r.StrVal)
		}
		spans = append(spans, span{first, last})
	}
	out := make([]int, 0, replicas)
next:
	for n := 0; len(out) < int(replicas); n++ {
		for _, s := range spans {
			if s.first <= n && n <= s.last {
				n = s.last
				continue next
			}
		}
		out = append(out, n)
	}
	return out, nil
}

// decideStatefulSet returns what to do next for an Advanced StatefulSet: finish in-place updates; make the pods of its
// ordinals and remove the others, one by one unless the policy is Parallel; then update from the highest ordinal down.
func decideStatefulSet(set *StatefulSet, o observed) (steps, error) {
	spec := &set.Spec
	replicas := orDefault(spec.Replicas, 1)
	wanted, err := ordinals(replicas, spec.ReserveOrdinals)
	if err != nil {
		return steps{}, err
	}
	partition, maxDown, policy, paused, minReady, err := spec.rolling(replicas)
	if err != nil {
		return steps{}, err
	}
	s := o.common(minReady)
	up := func(p *corev1.Pod) bool { return p != nil && active(p) && available(p, minReady, o.now) }

	byOrdinal := map[int]*corev1.Pod{}
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
		return n - m
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
			s.remove = append(s.remove, removal{pod: p})
		case up(p):
			continue
		}
		if ordered {
			return s, nil
		}
	}
	for _, p := range condemned {
		if p.DeletionTimestamp == nil {
			s.remove = append(s.remove, removal{pod: p}) // its claims stay
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
		if !s.update(o, p, policy, nil) {
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
	return min(max(0, orDefault(r.Partition, 0)), replicas), maxDown, r.PodUpdatePolicy, r.Paused,
		orDefault(r.MinReadySeconds, 0), err
}

// statefulSetStatus returns the status that belongs to what was observed; messages are the failures by condition type.
func statefulSetStatus(set *StatefulSet, o observed, messages map[string]string) (StatefulSetStatus, error) {
	replicas := orDefault(set.Spec.Replicas, 1)
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
func (o observed) member(set *StatefulSet, n int, revision string) creation {
	pod := fromTemplate(o.revisions[revision], &set.ObjectMeta, controllerRef(set, &set.TypeMeta), revision)
	pod.Name = fmt.Sprintf("%s-%d", set.Name, n)
	pod.Labels["statefulset.kubernetes.io/pod-name"] = pod.Name
	pod.Labels["apps.kubernetes.io/pod-index"] = strconv.Itoa(n)
	pod.Spec.Hostname = pod.Name
	pod.Spec.Subdomain = set.Spec.ServiceName
	out := creation{pod: pod}
	for _, template := range set.Spec.VolumeClaimTemplates {
		claim := newClaim(template, &set.ObjectMeta, set.Spec.Selector, claimName(template.Name, pod.Name))
		mount(pod, template.Name, claim.Name)
		out.claims = append(out.claims, claim)
	}
	return out
}

func claimName(claim, pod string) string { return claim + "-" + pod }

// ordinalOf reads the ordinal from a pod's name.
func ordinalOf(set, pod string) (int, bool) {
	rest, ok := strings.CutPrefix(pod, set+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(rest)
	return n, err == nil && n >= 0
}
