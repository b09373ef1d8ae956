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
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Bounds are minReplicas and maxReplicas of one cluster's autoscaler.
type Bounds = fleet.Bounds

// Share is the input of one cluster's autoscaler.
type Share struct {
	Bounds
	// Of are the total bounds. Clusters are the clusters between which they are split, in proportion to Weights.
	Of       Bounds           `json:"of"`
	Clusters []string         `json:"clusters"`
	Weights  map[string]int32 `json:"weights,omitempty"`
	// Room is the number of replicas that the cluster can run, if that limits its share.
	Room *int32 `json:"room,omitempty"`
}

// ShareOf returns the share that a Work was made from. ok is false without a valid annotation.
func ShareOf(w *workv1alpha1.Work) (s Share, ok bool) {
	return s, json.Unmarshal([]byte(w.Annotations[wellknown.AutoscalingShareAnnotation]), &s) == nil
}

// Frozen returns spec with the total bounds of the existing autoscalers in the clusters of the workload. Then Shares
// keeps their bounds, unless the clusters change, such as by a failover. Works in clusters that the workload has left
// may have earlier bounds, so they do not count.
func Frozen(spec *autoscalingv1alpha1.FederatedHPASpec, replicas map[string]int32,
	standing map[string]*workv1alpha1.Work) *autoscalingv1alpha1.FederatedHPASpec {
	out, found := *spec, false
	for cluster := range replicas {
		w := standing[cluster]
		if w == nil || w.DeletionTimestamp != nil {
			continue
		}
		if s, ok := ShareOf(w); ok && (!found || s.Of.Max > out.MaxReplicas) {
			out.MinReplicas, out.MaxReplicas, found = &s.Of.Min, s.Of.Max, true
		}
	}
	return &out
}

// Work returns the Work with a cluster's autoscaler. id is used for a new Work. The target has the API version of the
// hub.
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
	w := execute.NewWork(cluster, names.WorkOfAutoscaler(f.Name, f.Namespace), id)
	w.Annotations[wellknown.AutoscalerOfAnnotation] = f.Namespace + "/" + f.Name
	w.Annotations[wellknown.AutoscalingShareAnnotation] = text.JSON(s)
	return w, execute.Seal(w, m)
}

// Observed returns the status of a cluster's autoscaler. known is false before it reports a status and while it is
// being deleted.
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

// Total returns the sum of the replicas.
func Total(of map[string]int32) int32 {
	var n int64
	for _, replicas := range of {
		n += int64(replicas)
	}
	return clamp(n)
}

// Sum adds up the replicas that the autoscalers want, with the conditions to set. A cluster without a status counts
// with its current replicas, within its share.
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
