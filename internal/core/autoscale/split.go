package autoscale

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/fleet"
	"github.com/argosy-io/argosy/internal/core/names"
)

// OwnerAnnotation on a Work says for which FederatedHPA, "namespace/name", it has the autoscaler of a cluster.
const OwnerAnnotation = "argosy.io/autoscaler-of"

// Bounds are those of one cluster's autoscaler.
type Bounds struct {
	Min int32 `json:"min"`
	Max int32 `json:"max"`
}

// Split divides the bounds of a fleet between the autoscalers of its clusters in proportion to the replicas that each
// has, given by name. The maxima add up to highest, and the minima to lowest or, as each is at least 1, to the number
// of clusters; no minimum is above its maximum. More clusters than highest are an error: one of them would have to have
// no pods.
func Split(lowest, highest int32, replicas map[string]int32) (map[string]Bounds, error) {
	clusters := make([]string, 0, len(replicas))
	for name := range replicas {
		clusters = append(clusters, name)
	}
	slices.Sort(clusters)
	if int(highest) < len(clusters) {
		return nil, fmt.Errorf("maxReplicas is %d, but the workload is in %d clusters, each of which needs at least one: increase maxReplicas, or select fewer clusters in the policy", highest, len(clusters))
	}
	seats := make([]fleet.Seat, len(clusters))
	for i, name := range clusters {
		seats[i] = fleet.Seat{Weight: int64(max(replicas[name], 1)), Cap: int64(highest), Floor: 1}
	}
	most := fleet.Split(int64(highest), seats)
	for i := range seats {
		seats[i].Cap = most[i]
	}
	least := fleet.Split(int64(max(lowest, int32(len(clusters)))), seats)
	out := make(map[string]Bounds, len(clusters))
	for i, name := range clusters {
		out[name] = Bounds{int32(least[i]), int32(most[i])}
	}
	return out, nil
}

// Share is what one cluster's autoscaler was made from; it stays until the bounds or the clusters change.
type Share struct {
	Bounds
	// Of are the fleet's bounds, and Clusters those between which they are split.
	Of       Bounds   `json:"of"`
	Clusters []string `json:"clusters"`
}

// ShareAnnotation on a Work is its Share, as JSON.
const ShareAnnotation = "argosy.io/autoscaling-share"

// ShareOf is what a Work's autoscaler was made from; ok is false if it does not say.
func ShareOf(w *workv1alpha1.Work) (s Share, ok bool) {
	return s, json.Unmarshal([]byte(w.Annotations[ShareAnnotation]), &s) == nil
}

// Shares are those of the clusters, by name. While the bounds and the clusters are what they were, so are the shares,
// whatever the autoscalers have made of the replicas since; standing are the Works that there are. With an error, which
// is for the user, each cluster has its one replica: nothing is nearer to the bounds.
func Shares(spec *autoscalingv1alpha1.FederatedHPASpec, replicas map[string]int32,
	standing map[string]*workv1alpha1.Work) (map[string]Share, error) {
	of := Bounds{Min: 1, Max: spec.MaxReplicas}
	if spec.MinReplicas != nil {
		of.Min = *spec.MinReplicas
	}
	var clusters []string
	for name := range replicas {
		clusters = append(clusters, name)
	}
	slices.Sort(clusters)
	out := map[string]Share{}
	if int(of.Max) < len(clusters) {
		for _, name := range clusters {
			out[name] = Share{Bounds: Bounds{1, 1}, Of: of, Clusters: clusters}
		}
		_, err := Split(of.Min, of.Max, replicas)
		return out, err
	}
	for _, name := range clusters {
		w := standing[name]
		if w == nil {
			break
		}
		s, ok := ShareOf(w)
		if !ok || s.Of != of || !slices.Equal(s.Clusters, clusters) {
			break
		}
		out[name] = s
	}
	if len(out) == len(clusters) {
		return out, nil
	}
	bounds, err := Split(of.Min, of.Max, replicas)
	if err != nil {
		return nil, err
	}
	for name, b := range bounds {
		out[name] = Share{Bounds: b, Of: of, Clusters: clusters}
	}
	return out, nil
}

// Work is the Work by which a cluster gets its autoscaler; id is for a new one. target is the workload in the version
// that the hub has it in.
func Work(f *autoscalingv1alpha1.FederatedHPA, cluster string, s Share, id string) (*workv1alpha1.Work, error) {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(), Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: f.Name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: f.Spec.ScaleTargetRef, MinReplicas: &s.Min,
			MaxReplicas: s.Max,
			Metrics:     f.Spec.Metrics, Behavior: f.Spec.Behavior},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hpa)
	if err != nil {
		return nil, fmt.Errorf("encode the autoscaler of cluster %s: %w", cluster, err)
	}
	m := &unstructured.Unstructured{Object: content}
	delete(m.Object, "status")
	unstructured.RemoveNestedField(m.Object, "metadata", "creationTimestamp")
	share, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode the share of cluster %s: %w", cluster, err)
	}
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace:   names.ExecutionSpace(cluster),
		Name:        names.WorkOfAutoscaler(f.Name, f.Namespace),
		Finalizers:  []string{workv1alpha2.ExecutionFinalizer},
		Labels:      map[string]string{workv1alpha2.WorkPermanentIDLabel: id},
		Annotations: map[string]string{OwnerAnnotation: f.Namespace + "/" + f.Name, ShareAnnotation: string(share)},
	}}
	execute.Mark(m, w)
	raw, err := json.Marshal(m.Object)
	if err != nil {
		return nil, fmt.Errorf("encode the autoscaler of cluster %s: %w", cluster, err)
	}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	return w, nil
}

// Observed is what the autoscaler of a cluster says of itself; known is false until it has said something, and when it
// goes.
func Observed(w *workv1alpha1.Work) (status autoscalingv2.HorizontalPodAutoscalerStatus, known bool) {
	if w == nil || w.DeletionTimestamp != nil || len(w.Status.ManifestStatuses) == 0 ||
		w.Status.ManifestStatuses[0].Status == nil {
		return status, false
	}
	if json.Unmarshal(w.Status.ManifestStatuses[0].Status.Raw, &status) != nil {
		return status, false
	}
	return status, status.CurrentReplicas > 0 || status.DesiredReplicas > 0
}

// Total are the replicas of all clusters.
func Total(of map[string]int32) int32 {
	var n int64
	for _, replicas := range of {
		n += int64(replicas)
	}
	return clamp(n)
}

// Sum is what the autoscalers of all clusters make together: the replicas that each wants, or, while it has said
// nothing, those that its cluster has, and none more than its share; and what is to be said of it.
func Sum(shares map[string]Share, replicas map[string]int32,
	works map[string]*workv1alpha1.Work) (current, desired map[string]int32,
	scaling autoscalingv2.HorizontalPodAutoscalerCondition) {
	current, desired = map[string]int32{}, map[string]int32{}
	var troubles []string
	active := 0
	for name, share := range shares {
		s, known := Observed(works[name])
		if !known {
			current[name], desired[name] = replicas[name], replicas[name]
			troubles = append(troubles, fmt.Sprintf("cluster %s: its autoscaler has no status yet", name))
			continue
		}
		current[name], desired[name] = max(s.CurrentReplicas, 0),
			min(max(cmp.Or(s.DesiredReplicas, s.CurrentReplicas), 0), share.Max)
		i := slices.IndexFunc(s.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
			return c.Type == autoscalingv2.ScalingActive
		})
		if i < 0 || s.Conditions[i].Status != corev1.ConditionTrue {
			why := "it does not report whether it scales"
			if i >= 0 {
				why = s.Conditions[i].Message
			}
			troubles = append(troubles, fmt.Sprintf("cluster %s: %s", name, why))
			continue
		}
		active++
	}
	slices.Sort(troubles)
	scaling = autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingActive,
		Status: corev1.ConditionTrue, Reason: "ValidMetricFound",
		Message: "the autoscalers in the clusters calculate the replicas"}
	if len(troubles) > 0 {
		scaling.Message += "; " + strings.Join(troubles, "; ")
		if active == 0 {
			scaling.Status, scaling.Reason, scaling.Message = corev1.ConditionFalse, "FailedGetResourceMetric",
				"the autoscaler is not active in any cluster: "+strings.Join(troubles, "; ")
		}
	}
	return current, desired, scaling
}
