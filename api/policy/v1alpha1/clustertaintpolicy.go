package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterTaintPolicy adds taints to clusters, and removes them, by the conditions of the clusters.
// Deleting the policy removes no taint.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustertaintpolicies,scope=Cluster,categories=karmada-io
type ClusterTaintPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired behavior.
	// +required
	Spec ClusterTaintPolicySpec `json:"spec"`
}

// ClusterTaintPolicyList is a list of ClusterTaintPolicy.
// +kubebuilder:object:root=true
type ClusterTaintPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterTaintPolicy `json:"items"`
}

// ClusterTaintPolicySpec selects clusters, and the conditions and taints for them.
type ClusterTaintPolicySpec struct {
	// TargetClusters are the clusters to watch; nil is all of them.
	// +optional
	TargetClusters *ClusterAffinity `json:"targetClusters,omitempty"`

	// AddOnConditions must all match for the taints to be added. Empty adds none.
	// +optional
	AddOnConditions []MatchCondition `json:"addOnConditions,omitempty"`

	// RemoveOnConditions must all match for the taints to be removed. Empty removes none.
	// +optional
	RemoveOnConditions []MatchCondition `json:"removeOnConditions,omitempty"`

	// Taints are added and removed. A taint is known by its key and effect: one that the cluster has already keeps its
	// value.
	// +kubebuilder:validation:MinItems=1
	// +required
	Taints []Taint `json:"taints"`
}

// MatchCondition matches a cluster that has the condition with one of the statuses, or with none of them. A cluster
// without the condition does not match.
type MatchCondition struct {
	// ConditionType is the type of the cluster's condition, such as Ready.
	// +required
	ConditionType string `json:"conditionType"`

	// Operator is In or NotIn.
	// +required
	Operator MatchConditionOperator `json:"operator"`

	// StatusValues are statuses of the condition: True, False or Unknown.
	// +required
	StatusValues []metav1.ConditionStatus `json:"statusValues"`
}

// MatchConditionOperator relates the status of a condition to a set of statuses.
type MatchConditionOperator string

// The operators.
const (
	MatchConditionOpIn    MatchConditionOperator = "In"
	MatchConditionOpNotIn MatchConditionOperator = "NotIn"
)

// Taint is a taint that a policy adds to clusters.
type Taint struct {
	// Key of the taint, a qualified name.
	// +required
	Key string `json:"key"`

	// Effect is NoSchedule or NoExecute.
	// +required
	Effect corev1.TaintEffect `json:"effect"`

	// Value of the taint, a valid label value.
	// +optional
	Value string `json:"value,omitempty"`
}
