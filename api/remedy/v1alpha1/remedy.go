package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Remedy gives actions to clusters, always or while a condition of the cluster matches. The hub lists the actions of a
// cluster in status.remedyActions of the Cluster, and carries them out.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=remedies,scope=Cluster,categories=karmada-io
type Remedy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the clusters, when the remedy applies to them, and the actions.
	Spec RemedySpec `json:"spec,omitempty"`
}

// RemedySpec has the clusters of a remedy, when it applies to them, and its actions.
type RemedySpec struct {
	// ClusterAffinity names the clusters of the remedy. Default: all clusters.
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// DecisionMatches are requirements. The remedy applies to a cluster that meets at least one of them. Default: it
	// always applies.
	DecisionMatches []DecisionMatch `json:"decisionMatches,omitempty"`

	// Actions are taken for each cluster to which the remedy applies. Without actions the remedy has no effect.
	Actions []RemedyAction `json:"actions,omitempty"`
}

// ClusterAffinity names clusters.
type ClusterAffinity struct {
	// ClusterNames are the names of the clusters. An empty list names no cluster.
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// DecisionMatch is a requirement on a cluster.
type DecisionMatch struct {
	// ClusterConditionMatch compares a condition of the cluster.
	ClusterConditionMatch *ClusterConditionRequirement `json:"clusterConditionMatch,omitempty"`
}

// ClusterConditionRequirement compares the status of a condition in status.conditions of a Cluster. A cluster that does
// not have the condition does not meet it, with either operator.
type ClusterConditionRequirement struct {
	// ConditionType is the type of the condition, such as Ready.
	ConditionType string `json:"conditionType"`

	// Operator is Equal or NotEqual.
	Operator ClusterConditionOperator `json:"operator"`

	// ConditionStatus is the status to compare with, such as True, False or Unknown.
	ConditionStatus string `json:"conditionStatus"`
}

// ClusterConditionOperator compares the status of a condition with another status.
type ClusterConditionOperator string

const (
	ClusterConditionEqual    ClusterConditionOperator = "Equal"
	ClusterConditionNotEqual ClusterConditionOperator = "NotEqual"
)

// RemedyAction is an action that the hub takes for a cluster.
type RemedyAction string

// TrafficControl takes a cluster out of the traffic of MultiClusterServices and MultiClusterIngresses.
const TrafficControl RemedyAction = "TrafficControl"

// RemedyList is a list of Remedy.
// +kubebuilder:object:root=true
type RemedyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Remedy `json:"items"`
}
