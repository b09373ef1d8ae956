package v1alpha1

import (
	"github.com/argosy-io/argosy/api/wellknown"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FederatedHPA scales a workload by metrics of its pods in all clusters together. The hub sets the replicas of the
// template, and the policy divides them. With the annotation argosy.io/autoscaling-mode: Distributed, each cluster has
// a HorizontalPodAutoscaler of its own instead, with a share of minReplicas and maxReplicas.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=federatedhpas,scope=Namespaced,shortName=fhpa,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name=`REFERENCE-KIND`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name=`REFERENCE-NAME`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.minReplicas`,name=`MINPODS`,type=integer
// +kubebuilder:printcolumn:JSONPath=`.spec.maxReplicas`,name=`MAXPODS`,type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.currentReplicas`,name=`REPLICAS`,type=integer
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type FederatedHPA struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the target, the limits of its replicas, and the metrics.
	Spec FederatedHPASpec `json:"spec"`

	// Status has the replicas, metrics and conditions of the last evaluation. The hub writes it.
	Status FederatedHPAStatus `json:"status,omitempty"`
}

// FederatedHPASpec has the target, the limits of its replicas, and the metrics.
type FederatedHPASpec struct {
	// ScaleTargetRef names the workload, in the same namespace of the hub.
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// MinReplicas is the lower limit of the replicas of the template, 1 or more. Default: 1.
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the upper limit of the replicas of the template. It must not be less than minReplicas.
	MaxReplicas int32 `json:"maxReplicas"`

	// Metrics are the metrics of which each gives a number of replicas. The highest number is used. The types are
	// Resource, ContainerResource, Pods and Object. Default: 80 percent of the CPU requests of the pods.
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`

	// Behavior configures the speed of scaling up and down, as in a HorizontalPodAutoscaler.
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}

// FederatedHPAStatus has the replicas, metrics and conditions of the last evaluation.
type FederatedHPAStatus struct {
	// ObservedGeneration is the generation of the FederatedHPA that the status is for.
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// LastScaleTime is the time when the hub last changed the number of replicas.
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`

	// CurrentReplicas is the number of replicas of the template. In the mode Distributed: of all clusters together.
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`

	// DesiredReplicas is the number of replicas that the last evaluation gave.
	DesiredReplicas int32 `json:"desiredReplicas"`

	// CurrentMetrics are the values of the metrics in the last evaluation.
	// +listType=atomic
	CurrentMetrics []autoscalingv2.MetricStatus `json:"currentMetrics,omitempty"`

	// Conditions are AbleToScale, ScalingActive, ScalingLimited and those in docs/reference/conditions.md.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []autoscalingv2.HorizontalPodAutoscalerCondition `json:"conditions,omitempty"`
}

// The modes of autoscaling.
const (
	ModeCentral     = "Central"
	ModeDistributed = "Distributed"
)

// Distributed reports whether the autoscalers of the members scale.
func (f *FederatedHPA) Distributed() bool {
	return f.Annotations[wellknown.AutoscalingModeAnnotation] == ModeDistributed
}

// Condition types of a FederatedHPA beyond those of a HorizontalPodAutoscaler.
//
//reference:condition FederatedHPA
const (
	// MetricsComplete: False while the pods or metrics of some clusters are unknown. The message names the clusters.
	// Not in Karmada.
	MetricsComplete autoscalingv2.HorizontalPodAutoscalerConditionType = "MetricsComplete"
	// BoundsSplit: in the mode Distributed, every cluster has an autoscaler with its share of the bounds. Not in
	// Karmada.
	BoundsSplit autoscalingv2.HorizontalPodAutoscalerConditionType = "BoundsSplit"
)

// The reason of MetricsComplete.
//
//reference:reason MetricsComplete of FederatedHPA
const (
	// ReasonClustersUnknown: some clusters do not respond or have no metrics.
	ReasonClustersUnknown = "ClustersUnknown"
)

// Reasons of AbleToScale that Karmada has beyond those of a HorizontalPodAutoscaler.
//
//reference:reason AbleToScale of FederatedHPA
const (
	// ReasonFailedGetBinding: no policy propagates the workload.
	ReasonFailedGetBinding = "FailedGetBinding"
	// ReasonFailedGetTargetClusters: the workload is not placed in a cluster yet.
	ReasonFailedGetTargetClusters = "FailedGetTargetClusters"
	// ReasonFailedGetScaleTargetRef: the workload does not exist on the hub.
	ReasonFailedGetScaleTargetRef = "FailedGetScaleTargetRef"
	// ReasonFrozen: a release of the workload has autoscaling: Freeze, and a stage of it is under way. Not in Karmada.
	ReasonFrozen = "FrozenByRelease"
)

// FederatedHPAList is a list of FederatedHPAs.
// +kubebuilder:object:root=true
type FederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FederatedHPA `json:"items"`
}
