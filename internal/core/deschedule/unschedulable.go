package deschedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/capacity"
	"github.com/argosy-io/argosy/internal/core/fleet"
)

// Stuck is how many replicas of a template have found no node in a member since before a time, given the pods of the
// member that wait. inMember are the replicas that the member shall have.
func Stuck(template *unstructured.Unstructured, inMember int32, pods []capacity.UnschedulablePod, before time.Time) int32 {
	if ScaledByMembers(template) {
		return 0
	}
	var stuck []capacity.UnschedulablePod
	owns := ownerOf(template)
	for _, p := range pods {
		if p.Since.Before(before) && owns(p) {
			stuck = append(stuck, p)
		}
	}
	switch template.GetKind() {
	case "StatefulSet":
		return int32(last(template, inMember, stuck))
	case "UnitedDeployment":
		return 0 // which subset shrinks with it is its own to say, and may have none that waits
	}
	return int32(len(stuck))
}

// ScaledByMembers says whether each member decides by itself how many replicas it has: to move some would change
// nothing.
func ScaledByMembers(template *unstructured.Unstructured) bool {
	return template.GetLabels()[policyv1alpha1.RetainReplicasLabel] == "true"
}

// ownerOf says of a pod whether it is the template's: the one that the template itself controls, or one that its
// selector selects and a ReplicaSet or the like controls that is named after it.
func ownerOf(template *unstructured.Unstructured) func(capacity.UnschedulablePod) bool {
	selector := labels.Nothing()
	if raw, ok, _ := unstructured.NestedMap(template.Object, "spec", "selector"); ok {
		var typed metav1.LabelSelector
		if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &typed) == nil {
			if s, err := metav1.LabelSelectorAsSelector(&typed); err == nil && !s.Empty() {
				selector = s
			}
		}
	}
	kind, name, namespace := template.GetKind(), template.GetName(), template.GetNamespace()
	return func(p capacity.UnschedulablePod) bool {
		switch {
		case p.Namespace != namespace:
			return false
		case p.OwnerKind == kind:
			return p.OwnerName == name
		case !selector.Matches(labels.Set(p.Labels)):
			return false
		}
		if hash := p.Labels["pod-template-hash"]; hash != "" {
			return p.OwnerName == name+"-"+hash
		}
		return strings.HasPrefix(p.OwnerName, name+"-")
	}
}

// last is how many of the highest ordinals of a StatefulSet wait: those are the pods that fewer replicas take away.
// Where pods are made one after the other the one that waits is the highest.
func last(template *unstructured.Unstructured, inMember int32, stuck []capacity.UnschedulablePod) int {
	policy, _, _ := unstructured.NestedString(template.Object, "spec", "podManagementPolicy")
	if policy != "Parallel" {
		return min(1, len(stuck))
	}
	if reserved, ok, _ := unstructured.NestedSlice(template.Object, "spec", "reserveOrdinals"); ok && len(reserved) > 0 ||
		template.GetAnnotations()[fleet.UniqueOrdinalsAnnotation] == "true" {
		return 0 // the ordinals of a member are not those of the template
	}
	start, _, _ := unstructured.NestedInt64(template.Object, "spec", "ordinals", "start")
	var waiting []int64
	for _, p := range stuck {
		if n, err := strconv.ParseInt(p.Name[strings.LastIndexByte(p.Name, '-')+1:], 10, 32); err == nil {
			waiting = append(waiting, n)
		}
	}
	n := 0
	for ordinal := start + int64(inMember) - 1; slices.Contains(waiting, ordinal); ordinal-- {
		n++
	}
	return n
}

// Stay says why replicas that find no node stay all the same.
type Stay struct {
	// Stuck are the replicas that wait for a node, by cluster.
	Stuck map[string]int32
	// Cause is why they do not move.
	Cause error
}

func (s *Stay) Error() string {
	return fmt.Sprintf("replicas are unschedulable (%s) and are not moved, because no other cluster has capacity: %s Add capacity there, or select more clusters in the policy.",
		Listed(s.Stuck), strings.TrimSuffix(s.Cause.Error(), ".")+".")
}

// Unwrap is the cause.
func (s *Stay) Unwrap() error { return s.Cause }

// Relieve moves replicas of b that are stuck, by cluster, to where there is room: never more than is allowed at a time,
// none that are ready, and none that came a short while ago. ok is false when nothing is to be done; an error, a *Stay,
// says why nothing can be. b rests (see Rests).
func Relieve(b workv1alpha2.Binding, stuck map[string]int32, f Fleet, allowed intstr.IntOrString,
	now time.Time) (m Move, ok bool, err error) {
	record := RecordOf(b)
	leave := map[string]int32{}
	for cluster, n := range stuck {
		s, known := seenIn(b, cluster)
		has := assigned(b, cluster)
		if !known || record.settling(cluster, now) {
			continue
		}
		// Pods beyond those wanted are on their way out, or stand in for others in a rollout.
		n -= max(0, s.Replicas-has)
		if n = min(n, has-s.Ready); n > 0 {
			leave[cluster] = n
		}
	}
	if len(leave) == 0 {
		return Move{}, false, nil
	}
	m, err = elsewhere(b, trim(leave, Allowance(allowed, b.BindingSpec().Replicas)), f,
		func(cluster string) (int32, bool) {
			return 0, record.shut(cluster, now) || stuck[cluster] > 0
		})
	if err != nil {
		return Move{}, false, &Stay{Stuck: leave, Cause: err}
	}
	return m, true, nil
}
