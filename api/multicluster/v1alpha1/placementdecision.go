package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PlacementDecision lists clusters that a scheduler chose. With inventory.decisions in its configuration, the hub
// writes one for each ResourceBinding, and further ones if the binding has more than 100 clusters.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=placementdecisions
// +kubebuilder:printcolumn:JSONPath=`.schedulerName`,name=`Scheduler`,type=string
// +kubebuilder:printcolumn:JSONPath=`.decisions[*].clusterProfileRef.name`,name=`Clusters`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`Age`,type=date
type PlacementDecision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Decisions are at most 100 of the clusters.
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=100
	Decisions []ClusterDecision `json:"decisions"`
	// SchedulerName is the name of the scheduler.
	SchedulerName string `json:"schedulerName,omitempty"`
}

// ClusterDecision is a cluster that a scheduler chose.
type ClusterDecision struct {
	// ClusterProfileRef names the ClusterProfile of the cluster.
	ClusterProfileRef ClusterProfileReference `json:"clusterProfileRef"`
	// Reason is a text for people.
	Reason string `json:"reason,omitempty"`
}

// ClusterProfileReference names a ClusterProfile.
type ClusterProfileReference struct {
	// Name of the ClusterProfile.
	Name string `json:"name"`
	// Namespace of the ClusterProfile. Empty: that of the PlacementDecision.
	Namespace string `json:"namespace,omitempty"`
}

// PlacementDecisionList is a list of PlacementDecision.
// +kubebuilder:object:root=true
type PlacementDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementDecision `json:"items"`
}

// Labels of PlacementDecisions.
const (
	// DecisionKeyLabel has the same value in all PlacementDecisions of one decision: the name of the binding.
	DecisionKeyLabel = "multicluster.x-k8s.io/decision-key"
	// DecisionIndexLabel is the number of the PlacementDecision among those of one decision, from 0.
	DecisionIndexLabel = "multicluster.x-k8s.io/decision-index"
	// PlacementKeyLabel is the workload: its name and kind, such as web-deployment.
	PlacementKeyLabel = "multicluster.x-k8s.io/placement-key"
)
