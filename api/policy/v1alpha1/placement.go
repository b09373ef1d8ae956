package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Placement selects the clusters of a template, and configures the division of its replicas.
type Placement struct {
	// ClusterAffinity selects the clusters. Not together with clusterAffinities. Default: all clusters.
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// ClusterAffinities are tried in order. The first term whose clusters fit is used. Not together with clusterAffinity.
	ClusterAffinities []ClusterAffinityTerm `json:"clusterAffinities,omitempty"`

	// ClusterTolerations are the cluster taints that the template tolerates.
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`

	// SpreadConstraints limit the number of clusters, regions, zones or providers that are used.
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`

	// ReplicaScheduling configures the division of replicas. Default: each cluster gets all replicas.
	ReplicaScheduling *ReplicaSchedulingStrategy `json:"replicaScheduling,omitempty"`

	// WorkloadAffinity places workloads with the same value of a label into the same clusters, or into different ones.
	WorkloadAffinity *WorkloadAffinity `json:"workloadAffinity,omitempty"`
}

// ClusterAffinityTerm is a ClusterAffinity with a name, and with overflow affinities.
type ClusterAffinityTerm struct {
	// AffinityName is the name of the term, unique in the placement.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`

	// OverflowAffinities get, in order, the replicas for which the clusters of this term lack capacity.
	OverflowAffinities []OverflowAffinity `json:"overflowAffinities,omitempty"`
}

// OverflowAffinity is an additional tier of clusters of a ClusterAffinityTerm.
type OverflowAffinity struct {
	// AffinityName is the name of the tier, unique in its term.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`
}

// SpreadFieldValue is a field of Cluster by which clusters are grouped.
// +kubebuilder:validation:Enum=cluster;region;zone;provider
type SpreadFieldValue string

const (
	SpreadByFieldCluster  SpreadFieldValue = "cluster"
	SpreadByFieldRegion   SpreadFieldValue = "region"
	SpreadByFieldZone     SpreadFieldValue = "zone"
	SpreadByFieldProvider SpreadFieldValue = "provider"
)

// SpreadConstraint limits the number of groups of clusters that a template is placed in.
type SpreadConstraint struct {
	// SpreadByField groups clusters: by cluster, region, zone or provider. Default: cluster, without spreadByLabel.
	SpreadByField SpreadFieldValue `json:"spreadByField,omitempty"`

	// SpreadByLabel groups clusters by the value of the label with this key. Not together with spreadByField.
	SpreadByLabel string `json:"spreadByLabel,omitempty"`

	// MaxGroups is the largest number of groups. Default: 0, no limit.
	MaxGroups int `json:"maxGroups,omitempty"`

	// MinGroups is the smallest number of groups. Default: 1; 0 is stored as 1.
	MinGroups int `json:"minGroups,omitempty"`
}

// ReplicaSchedulingType is Duplicated or Divided.
// +kubebuilder:validation:Enum=Duplicated;Divided
type ReplicaSchedulingType string

const (
	ReplicaSchedulingTypeDuplicated ReplicaSchedulingType = "Duplicated"
	ReplicaSchedulingTypeDivided    ReplicaSchedulingType = "Divided"
)

// ReplicaDivisionPreference is Aggregated or Weighted.
// +kubebuilder:validation:Enum=Aggregated;Weighted
type ReplicaDivisionPreference string

// The division preferences. Aggregated uses as few clusters as have enough capacity.
const (
	ReplicaDivisionPreferenceAggregated ReplicaDivisionPreference = "Aggregated"
	ReplicaDivisionPreferenceWeighted   ReplicaDivisionPreference = "Weighted"
)

// DynamicWeightFactor is the quantity from which dynamic weights are computed.
// +kubebuilder:validation:Enum=AvailableReplicas
type DynamicWeightFactor string

// DynamicWeightByAvailableReplicas weights a cluster by the number of replicas that it has capacity for.
const DynamicWeightByAvailableReplicas DynamicWeightFactor = "AvailableReplicas"

// ReplicaSchedulingStrategy configures the division of the replicas of a workload.
type ReplicaSchedulingStrategy struct {
	// ReplicaSchedulingType is Duplicated (each cluster gets all replicas) or Divided. Default: Divided.
	// +kubebuilder:default="Divided"
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`

	// ReplicaDivisionPreference is Aggregated (as few clusters as have capacity) or Weighted, for Divided. Default:
	// Weighted.
	ReplicaDivisionPreference ReplicaDivisionPreference `json:"replicaDivisionPreference,omitempty"`

	// WeightPreference has the weights of clusters, for Weighted. Default: all clusters have the same weight.
	WeightPreference *ClusterPreferences `json:"weightPreference,omitempty"`

	ReplicaSchedulingDialect `json:",inline"`
}

// ClusterPreferences are weights of clusters. If a dynamic weight is set, static ones are not used.
type ClusterPreferences struct {
	// StaticWeightList are weights of clusters that do not depend on their capacity.
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`

	// DynamicWeight is AvailableReplicas: a cluster is weighted by the number of replicas that it has capacity for.
	DynamicWeight DynamicWeightFactor `json:"dynamicWeight,omitempty"`
}

// StaticClusterWeight is the weight of the clusters that it selects.
type StaticClusterWeight struct {
	// TargetCluster selects the clusters.
	TargetCluster ClusterAffinity `json:"targetCluster"`

	// Weight is the share of replicas relative to the other weights, 1 or more. A cluster that several entries select has
	// the largest of their weights.
	// +kubebuilder:validation:Minimum=1
	Weight int64 `json:"weight"`
}

// WorkloadAffinity places workloads together or apart.
type WorkloadAffinity struct {
	// Affinity places workloads with the same value of a label into the same clusters.
	Affinity *WorkloadAffinityTerm `json:"affinity,omitempty"`

	// AntiAffinity places workloads with the same value of a label into different clusters.
	AntiAffinity *WorkloadAffinityTerm `json:"antiAffinity,omitempty"`
}

// WorkloadAffinityTerm groups workloads by the value of a label of their templates.
type WorkloadAffinityTerm struct {
	// GroupByLabelKey is the key of the label.
	GroupByLabelKey string `json:"groupByLabelKey"`
}

// DividesReplicas reports whether the placement divides replicas among clusters.
func (p *Placement) DividesReplicas() bool {
	return p != nil && p.ReplicaScheduling != nil &&
		p.ReplicaScheduling.ReplicaSchedulingType != ReplicaSchedulingTypeDuplicated
}
