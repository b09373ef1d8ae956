package deschedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Stuck returns how many replicas of a template have been unschedulable since before the given time. pods are the
// member's unschedulable pods. inMember is the member's number of replicas.
func Stuck(template *unstructured.Unstructured, inMember int32, pods []capacity.UnschedulablePod,
	before time.Time) int32 {
	if ScaledByMembers(template) {
		return 0
	}
	stuck := Waiting(template, pods, before)
	switch of := kind.Facts(template).Pods; {
	case of.Ordinals:
		return int32(last(template, inMember, stuck))
	case of.Subsets:
		return 0 // it chooses itself which subset shrinks, maybe one without pending pods
	}
	return int32(len(stuck))
}

// Waiting returns the pods of a template that have been unschedulable since before the given time.
func Waiting(template *unstructured.Unstructured, pods []capacity.UnschedulablePod,
	before time.Time) (waiting []capacity.UnschedulablePod) {
	owns := ownerOf(template)
	for _, p := range pods {
		if p.Since.Before(before) && owns(p) {
			waiting = append(waiting, p)
		}
	}
	return waiting
}

// ScaledByMembers reports whether each member chooses its number of replicas, so that a move has no effect.
func ScaledByMembers(template *unstructured.Unstructured) bool {
	return template.GetLabels()[policyv1alpha1.RetainReplicasLabel] == "true"
}

// ownerOf returns a filter for the template's pods: those that it controls, and those that match its selector and are
// controlled by a ReplicaSet or similar with its name as prefix.
func ownerOf(template *unstructured.Unstructured) func(capacity.UnschedulablePod) bool {
	selector := labels.Nothing()
	if s, err := match.ParseSelector(fields.Object(template.Object, "spec", "selector")); err == nil && !s.Empty() {
		selector = s
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

// last returns how many of the highest ordinals of a StatefulSet are stuck, because scaling down removes these. With
// ordered creation the pending pod is the highest one.
func last(template *unstructured.Unstructured, inMember int32, stuck []capacity.UnschedulablePod) int {
	policy, _, _ := unstructured.NestedString(template.Object, "spec", "podManagementPolicy")
	if policy != "Parallel" {
		return min(1, len(stuck))
	}
	if reserved, ok, _ := unstructured.NestedSlice(template.Object, "spec", "reserveOrdinals"); ok && len(reserved) > 0 ||
		template.GetAnnotations()[wellknown.UniqueOrdinalsAnnotation] == "true" {
		return 0 // ordinals in members differ from the template
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

// Stay explains why unschedulable replicas do not move.
type Stay struct {
	// Stuck are the unschedulable replicas by cluster.
	Stuck map[string]int32
	// Cause is why they do not move.
	Cause error
}

func (s *Stay) Error() string {
	return fmt.Sprintf("replicas are unschedulable (%s) and are not moved, because no other cluster has capacity: %s Add capacity there, or select more clusters in the policy.",
		Listed(s.Stuck), strings.TrimSuffix(s.Cause.Error(), ".")+".")
}

func (s *Stay) Unwrap() error { return s.Cause }

// Relieve moves stuck replicas of b to clusters with room: at most the allowed number at once, no ready ones, and none
// that moved recently. ok is false if nothing must move. A *Stay error explains why nothing can move. b must be at rest
// (see Rests). The move takes its room.
func Relieve(b workv1alpha2.Binding, stuck map[string]int32, s schedule.Snapshot, room schedule.Room,
	allowed intstr.IntOrString, now time.Time) (m Move, ok bool, err error) {
	record := RecordOf(b)
	leave := map[string]int32{}
	for cluster, n := range stuck {
		status, known := seenIn(b, cluster)
		has := workv1alpha2.ReplicasIn(b.BindingSpec().Clusters, cluster)
		if !known || record.settling(cluster, now) {
			continue
		}
		// Surplus pods are terminating or surge pods of a rollout.
		n -= max(0, status.Replicas-has)
		if n = min(n, has-status.Ready); n > 0 {
			leave[cluster] = n
		}
	}
	if len(leave) == 0 {
		return Move{}, false, nil
	}
	m, err = elsewhere(b, trim(leave, Allowance(allowed, b.BindingSpec().Replicas)), s, room,
		func(cluster string) (int32, bool) {
			return 0, record.shut(cluster, now) || stuck[cluster] > 0
		})
	if err != nil {
		return Move{}, false, &Stay{Stuck: leave, Cause: err}
	}
	return m, true, nil
}
