package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterTaintPolicy adds and removes taints by the conditions of clusters. Deleting the policy removes no taint.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustertaintpolicies,scope=Cluster,categories=karmada-io
type ClusterTaintPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired behavior.
	Spec ClusterTaintPolicySpec `json:"spec"`
}

// ClusterTaintPolicyList is a list of ClusterTaintPolicy.
// +kubebuilder:object:root=true
type ClusterTaintPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterTaintPolicy `json:"items"`
}

// ClusterTaintPolicySpec selects clusters, and lists their taints with the conditions for adding and removing them.
type ClusterTaintPolicySpec struct {
	// TargetClusters selects the clusters of the policy. Default: all clusters.
	TargetClusters *ClusterAffinity `json:"targetClusters,omitempty"`

	// AddOnConditions adds the taints to a cluster that matches all of them. Empty: the policy adds no taint.
	AddOnConditions []MatchCondition `json:"addOnConditions,omitempty"`

	// RemoveOnConditions removes the taints from a cluster that matches all of them. Empty: the policy removes no taint.
	RemoveOnConditions []MatchCondition `json:"removeOnConditions,omitempty"`

	// Taints are the taints to add and remove, at least one. A taint is identified by key and effect: if the cluster
	// already has it, it keeps its value.
	// +kubebuilder:validation:MinItems=1
	Taints []Taint `json:"taints"`
}

// MatchCondition matches a cluster by the status of a condition. A cluster without the condition does not match.
type MatchCondition struct {
	// ConditionType is the type of the cluster condition, such as Ready.
	ConditionType string `json:"conditionType"`

	// Operator is In (the status is one of statusValues) or NotIn (the status is none of them).
	Operator MatchConditionOperator `json:"operator"`

	// StatusValues lists statuses of the condition: True, False or Unknown.
	StatusValues []metav1.ConditionStatus `json:"statusValues"`
}

// MatchConditionOperator is In or NotIn.
type MatchConditionOperator string

const (
	MatchConditionOpIn    MatchConditionOperator = "In"
	MatchConditionOpNotIn MatchConditionOperator = "NotIn"
)

// Taint is a taint that a policy adds to clusters.
type Taint struct {
	// Key of the taint. It must be a qualified name.
	Key string `json:"key"`

	// Effect of the taint: NoSchedule or NoExecute.
	Effect corev1.TaintEffect `json:"effect"`

	// Value of the taint. It must be a valid label value. Default: empty.
	Value string `json:"value,omitempty"`
}
