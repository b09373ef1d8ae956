package v1alpha1

import (
	"github.com/argosy-io/argosy/api/wellknown"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FederatedHPA scales a workload by the load of its pods in all clusters together. The hub sets the replicas of the
// template, and the policy that propagates it divides them; or, with the annotation argosy.io/autoscaling-mode:
// Distributed, each cluster has a HorizontalPodAutoscaler of its own with a share of the bounds.
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

	// Spec has the workload, the limits of its replicas, and the metrics.
	// +required
	Spec FederatedHPASpec `json:"spec"`

	// Status is how that stands.
	// +optional
	Status FederatedHPAStatus `json:"status,omitempty"`
}

// FederatedHPASpec has the workload, the limits of its replicas, and the metrics.
type FederatedHPASpec struct {
	// ScaleTargetRef names the workload, in the same namespace of the hub.
	// +required
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// MinReplicas is the fewest replicas that the template gets, 1 or more; default 1.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the most replicas that the template gets, no fewer than minReplicas.
	// +required
	MaxReplicas int32 `json:"maxReplicas"`

	// Metrics compute the number of replicas; the highest result is used. Default: 80 percent of the CPU requests of the
	// pods. Types are Resource, ContainerResource, Pods and Object.
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`

	// Behavior bounds how fast replicas are added and taken away, as that of a HorizontalPodAutoscaler.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}

// FederatedHPAStatus is that of a HorizontalPodAutoscaler, about the pods of all clusters.
type FederatedHPAStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// LastScaleTime is when the replicas were last changed.
	// +optional
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`

	// CurrentReplicas are those of the template, or of all clusters together where the mode is Distributed.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`

	// DesiredReplicas is the last number that the autoscaler computed.
	DesiredReplicas int32 `json:"desiredReplicas"`

	// CurrentMetrics are the metrics as they were read last.
	// +optional
	// +listType=atomic
	CurrentMetrics []autoscalingv2.MetricStatus `json:"currentMetrics,omitempty"`

	// Conditions are AbleToScale, ScalingActive and ScalingLimited.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []autoscalingv2.HorizontalPodAutoscalerCondition `json:"conditions,omitempty"`
}

// The modes.
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
