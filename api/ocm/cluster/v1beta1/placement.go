package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Placement chooses clusters from the ManagedClusterSets that are bound in its namespace. Its PlacementDecisions list
// the chosen clusters.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=placements,scope=Namespaced
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="PlacementSatisfied")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="PlacementSatisfied")].reason`
// +kubebuilder:printcolumn:name="SelectedClusters",type=integer,JSONPath=`.status.numberOfSelectedClusters`
type Placement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the rules for the choice of clusters. Default: all clusters of all bound sets.
	Spec PlacementSpec `json:"spec"`

	// Status has the number of chosen clusters and their groups. The hub writes it.
	Status PlacementStatus `json:"status,omitempty"`
}

// PlacementList is a list of Placement.
// +kubebuilder:object:root=true
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placement `json:"items"`
}

// PlacementSpec has the rules for the choice of clusters.
type PlacementSpec struct {
	// ClusterSets are the names of the ManagedClusterSets to choose from. Those without a ManagedClusterSetBinding in the
	// namespace are left out. Default: all that are bound.
	ClusterSets []string `json:"clusterSets,omitempty"`

	// NumberOfClusters is the number of clusters to choose. Default: all that match.
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// Predicates select clusters. One that matches is enough. Default: all clusters.
	Predicates []ClusterPredicate `json:"predicates,omitempty"`

	// PrioritizerPolicy orders the clusters. Those with the highest sums of scores are chosen.
	PrioritizerPolicy PrioritizerPolicy `json:"prioritizerPolicy,omitempty"`

	// SpreadPolicy is accepted and has no effect, as in Open Cluster Management.
	SpreadPolicy SpreadPolicy `json:"spreadPolicy,omitempty"`

	// Tolerations of taints of ManagedClusters.
	Tolerations []Toleration `json:"tolerations,omitempty"`

	// DecisionStrategy divides the chosen clusters into groups.
	DecisionStrategy DecisionStrategy `json:"decisionStrategy,omitempty"`

	// SortBy is accepted and has no effect, as in Open Cluster Management.
	// +kubebuilder:validation:Enum=ClusterName;Score
	// +kubebuilder:default=ClusterName
	SortBy string `json:"sortBy,omitempty"`

	// ScoreRateLimit is accepted and has no effect, as in Open Cluster Management.
	// +kubebuilder:validation:Pattern=`^[0-9]+[hms]$`
	// +kubebuilder:default="1m"
	ScoreRateLimit string `json:"scoreRateLimit,omitempty"`
}

// ClusterPredicate selects clusters.
type ClusterPredicate struct {
	// RequiredClusterSelector selects clusters. All of its parts must match.
	RequiredClusterSelector ClusterSelector `json:"requiredClusterSelector,omitempty"`
}

// ClusterSelector selects clusters.
type ClusterSelector struct {
	// LabelSelector selects by the labels of ManagedClusters.
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitempty"`

	// ClaimSelector selects by the ClusterClaims of the clusters.
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitempty"`

	// CelSelector selects by expressions.
	CelSelector ClusterCelSelector `json:"celSelector,omitempty"`
}

// ClusterClaimSelector selects by ClusterClaims.
type ClusterClaimSelector struct {
	// MatchExpressions are requirements for the values of claims. All must hold.
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// ClusterCelSelector selects by expressions in the Common Expression Language.
type ClusterCelSelector struct {
	// CelExpressions are expressions with the variable managedCluster. All must be true.
	// managedCluster.scores("NAME") returns the scores of the AddOnPlacementScore with that name.
	CelExpressions []string `json:"celExpressions,omitempty"`
}

// PrioritizerPolicy orders clusters.
type PrioritizerPolicy struct {
	// Mode is Additive (the weights below are added to, or replace, the default: Balance 1 and Steady 1) or Exact (only
	// the weights below count).
	// +kubebuilder:default=Additive
	Mode PrioritizerPolicyMode `json:"mode,omitempty"`

	// Configurations are the weights.
	Configurations []PrioritizerConfig `json:"configurations,omitempty"`
}

// PrioritizerPolicyMode is Additive or Exact.
type PrioritizerPolicyMode string

// The modes of a PrioritizerPolicy.
const (
	Additive PrioritizerPolicyMode = "Additive"
	Exact    PrioritizerPolicyMode = "Exact"
)

// PrioritizerConfig is the weight of a score.
type PrioritizerConfig struct {
	// ScoreCoordinate is the score.
	ScoreCoordinate *ScoreCoordinate `json:"scoreCoordinate"`

	// Weight multiplies the score. 0 turns the score off.
	// +kubebuilder:validation:Minimum=-10
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:default=1
	Weight int32 `json:"weight,omitempty"`
}

// ScoreCoordinate names a score. Scores are from -100 to 100.
type ScoreCoordinate struct {
	// Type is BuiltIn (the hub computes the score) or AddOn (an AddOnPlacementScore has it).
	// +kubebuilder:validation:Enum=BuiltIn;AddOn
	// +kubebuilder:default=BuiltIn
	// +kubebuilder:validation:Required
	Type ScoreCoordinateType `json:"type,omitempty"`

	// BuiltIn is the name of a score that the hub computes. Balance is higher for clusters in fewer PlacementDecisions of
	// other Placements. Steady is 100 for clusters that this Placement has chosen before, otherwise 0.
	// ResourceAllocatableCPU and ResourceAllocatableMemory are higher for clusters with more CPU or memory for pods.
	BuiltIn string `json:"builtIn,omitempty"`

	// AddOn names a score of an AddOnPlacementScore.
	AddOn *AddOnScore `json:"addOn,omitempty"`
}

// ScoreCoordinateType is the source of a score: BuiltIn or AddOn.
type ScoreCoordinateType string

// The types of a ScoreCoordinate.
const (
	ScoreBuiltIn ScoreCoordinateType = "BuiltIn"
	ScoreAddOn   ScoreCoordinateType = "AddOn"
)

// The scores that the hub computes.
const (
	Balance                   = "Balance"
	Steady                    = "Steady"
	ResourceAllocatableCPU    = "ResourceAllocatableCPU"
	ResourceAllocatableMemory = "ResourceAllocatableMemory"
)

// AddOnScore names a score of an AddOnPlacementScore.
type AddOnScore struct {
	// ResourceName is the name of the AddOnPlacementScore in the namespace of each cluster. Without one, or when it has
	// expired, the score is 0.
	ResourceName string `json:"resourceName"`

	// ScoreName is the name of the score in it.
	ScoreName string `json:"scoreName"`
}

// SpreadPolicy is accepted and has no effect.
type SpreadPolicy struct {
	// SpreadConstraints are accepted and have no effect.
	// +kubebuilder:validation:MaxItems=8
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`
}

// SpreadConstraint is accepted and has no effect.
type SpreadConstraint struct {
	// TopologyKey is a label or a claim of clusters.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +kubebuilder:validation:MaxLength=316
	TopologyKey string `json:"topologyKey"`

	// TopologyKeyType is Label or Claim.
	// +kubebuilder:validation:Enum=Label;Claim
	TopologyKeyType string `json:"topologyKeyType"`

	// MaxSkew is the greatest difference between the numbers of clusters of two topologies.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=1
	MaxSkew int32 `json:"maxSkew,omitempty"`

	// WhenUnsatisfiable is DoNotSchedule or ScheduleAnyway.
	// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
	// +kubebuilder:default=ScheduleAnyway
	WhenUnsatisfiable string `json:"whenUnsatisfiable,omitempty"`
}

// Toleration of taints of ManagedClusters.
type Toleration struct {
	// Key of the taint. Default: all taints; the operator must be Exists then.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key,omitempty"`

	// Operator is Equal (the value of the taint is that of the toleration) or Exists (any value).
	// +kubebuilder:default=Equal
	Operator TolerationOperator `json:"operator,omitempty"`

	// Value of the taint, with the operator Equal.
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`

	// Effect of the taint. Default: all effects.
	// +kubebuilder:validation:Enum=NoSelect;PreferNoSelect;NoSelectIfNew
	Effect string `json:"effect,omitempty"`

	// TolerationSeconds is the number of seconds for which an added taint is tolerated. Default: without limit.
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// TolerationOperator compares the value of a taint.
type TolerationOperator string

// The operators of a Toleration.
const (
	TolerationEqual  TolerationOperator = "Equal"
	TolerationExists TolerationOperator = "Exists"
)

// DecisionStrategy divides the chosen clusters into groups.
type DecisionStrategy struct {
	// GroupStrategy divides the chosen clusters into groups.
	GroupStrategy GroupStrategy `json:"groupStrategy,omitempty"`
}

// GroupStrategy divides the chosen clusters into groups.
type GroupStrategy struct {
	// DecisionGroups are named groups, in order. A cluster belongs to the first whose selector matches. Clusters without
	// one follow in groups without a name.
	DecisionGroups []DecisionGroup `json:"decisionGroups,omitempty"`

	// ClustersPerDecisionGroup is the greatest number of clusters in a group, or their share of the chosen clusters. A
	// larger group is divided.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$`
	// +kubebuilder:default="100%"
	ClustersPerDecisionGroup intstr.IntOrString `json:"clustersPerDecisionGroup,omitempty"`
}

// DecisionGroup is a named group of clusters.
type DecisionGroup struct {
	// GroupName is the name of the group.
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$`
	GroupName string `json:"groupName"`

	// ClusterSelector selects the clusters of the group.
	ClusterSelector GroupClusterSelector `json:"groupClusterSelector"`
}

// GroupClusterSelector selects the clusters of a group.
type GroupClusterSelector struct {
	// LabelSelector selects by the labels of ManagedClusters.
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitempty"`

	// ClaimSelector selects by the ClusterClaims of the clusters.
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitempty"`
}

// PlacementStatus has the number of chosen clusters and their groups.
type PlacementStatus struct {
	// NumberOfSelectedClusters is the number of chosen clusters.
	// +optional
	NumberOfSelectedClusters int32 `json:"numberOfSelectedClusters"`

	// DecisionGroups are the groups of the chosen clusters.
	// +optional
	DecisionGroups []DecisionGroupStatus `json:"decisionGroups"`

	// Conditions of the Placement. See docs/reference/conditions.md.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions"`

	// LastScoreUpdateTime is never set, as in Open Cluster Management.
	LastScoreUpdateTime *metav1.Time `json:"lastScoreUpdateTime,omitempty"`
}

// DecisionGroupStatus is a group of the chosen clusters.
type DecisionGroupStatus struct {
	// DecisionGroupIndex counts the groups, from 0.
	// +optional
	DecisionGroupIndex int32 `json:"decisionGroupIndex"`

	// DecisionGroupName is the name of the group; empty for clusters that no named group selects.
	// +optional
	DecisionGroupName string `json:"decisionGroupName"`

	// Decisions are the names of the PlacementDecisions of the group.
	// +optional
	Decisions []string `json:"decisions"`

	// ClustersCount is the number of clusters in the group.
	// +optional
	// +kubebuilder:default=0
	ClustersCount int32 `json:"clusterCount"`
}

// PlacementDecision lists clusters that a Placement, or a policy, has chosen.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=placementdecisions,scope=Namespaced
type PlacementDecision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Status lists the clusters. The hub writes it.
	Status PlacementDecisionStatus `json:"status,omitempty"`
}

// PlacementDecisionList is a list of PlacementDecision.
// +kubebuilder:object:root=true
type PlacementDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementDecision `json:"items"`
}

// PlacementDecisionStatus lists clusters.
type PlacementDecisionStatus struct {
	// Decisions are the clusters, at most 100.
	Decisions []ClusterDecision `json:"decisions"`
}

// ClusterDecision is a chosen cluster.
type ClusterDecision struct {
	// ClusterName is the name of the ManagedCluster.
	ClusterName string `json:"clusterName"`

	// Reason is empty, as in Open Cluster Management.
	Reason string `json:"reason"`

	// Score is never set, as in Open Cluster Management.
	// +optional
	Score int64 `json:"score,omitempty"`
}

// Labels of a PlacementDecision.
const (
	// PlacementLabel has the name of the Placement.
	PlacementLabel = "cluster.open-cluster-management.io/placement"
	// DecisionGroupIndexLabel has the index of the group.
	DecisionGroupIndexLabel = "cluster.open-cluster-management.io/decision-group-index"
	// DecisionGroupNameLabel has the name of the group.
	DecisionGroupNameLabel = "cluster.open-cluster-management.io/decision-group-name"
)

// SchedulingDisabledAnnotation = "true" on a Placement: the hub does not choose its clusters, another program does.
const SchedulingDisabledAnnotation = "cluster.open-cluster-management.io/experimental-scheduling-disable"

// Condition types of a Placement.
//
//reference:condition Placement
const (
	// PlacementSatisfied: as many clusters are chosen as the Placement asks for.
	PlacementSatisfied = "PlacementSatisfied"
	// PlacementMisconfigured: a selector, an expression, a toleration, a score, a group or the name of the Placement is
	// not valid. The clusters that were chosen before stay, except those that left its sets.
	PlacementMisconfigured = "PlacementMisconfigured"
)

// Reasons of PlacementSatisfied. Tools know them.
//
//reference:reason PlacementSatisfied of Placement
const (
	// ReasonAllScheduled: as many clusters are chosen as the Placement asks for.
	ReasonAllScheduled = "AllDecisionsScheduled"
	// ReasonNotAllScheduled: fewer clusters are chosen. The message has the missing number, or an error; with an error
	// about PlacementDecisions of another owner, none is written.
	ReasonNotAllScheduled = "NotAllDecisionsScheduled"
	// ReasonNoBindings: no existing ManagedClusterSet is bound in the namespace.
	ReasonNoBindings = "NoManagedClusterSetBindings"
	// ReasonNoIntersection: none of the sets in spec.clusterSets is bound in the namespace.
	ReasonNoIntersection = "NoIntersection"
	// ReasonAllSetsEmpty: the sets have no clusters.
	ReasonAllSetsEmpty = "AllManagedClusterSetsEmpty"
	// ReasonNoMatch: no cluster of the sets matches the predicates and tolerates the taints.
	ReasonNoMatch = "NoManagedClusterMatched"
)

// Reasons of PlacementMisconfigured. Tools know them.
//
//reference:reason PlacementMisconfigured of Placement
const (
	// ReasonMisconfigured: see the message.
	ReasonMisconfigured = "Misconfigured"
	// ReasonSucceedConfigured: the Placement is valid.
	ReasonSucceedConfigured = "Succeedconfigured"
)
