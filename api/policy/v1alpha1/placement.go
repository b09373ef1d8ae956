package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Placement selects the clusters of a template and how its replicas are divided.
type Placement struct {
	// ClusterAffinity restricts the clusters. Not together with clusterAffinities.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// ClusterAffinities are tried in order; the first that can be satisfied is used.
	// +optional
	ClusterAffinities []ClusterAffinityTerm `json:"clusterAffinities,omitempty"`

	// ClusterTolerations let the template go to clusters with matching taints.
	// +optional
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`

	// SpreadConstraints bound the number of clusters, regions, zones or providers used.
	// +optional
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`

	// ReplicaScheduling is how replicas are divided. Default: each cluster gets all replicas.
	// +optional
	ReplicaScheduling *ReplicaSchedulingStrategy `json:"replicaScheduling,omitempty"`

	// WorkloadAffinity groups or separates workloads by a label that they share.
	// +optional
	WorkloadAffinity *WorkloadAffinity `json:"workloadAffinity,omitempty"`
}

// ClusterAffinityTerm is a named ClusterAffinity, with others to overflow to.
type ClusterAffinityTerm struct {
	// AffinityName names the term; unique in a placement.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`

	// OverflowAffinities take, in order, the replicas that the clusters of this term have no room for.
	// +optional
	OverflowAffinities []OverflowAffinity `json:"overflowAffinities,omitempty"`
}

// OverflowAffinity is a further tier of clusters of a ClusterAffinityTerm.
type OverflowAffinity struct {
	// AffinityName names the tier; unique in its term.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`
}

// SpreadFieldValue is a field of Cluster to spread over.
// +kubebuilder:validation:Enum=cluster;region;zone;provider
type SpreadFieldValue string

// The fields to spread over.
const (
	SpreadByFieldCluster  SpreadFieldValue = "cluster"
	SpreadByFieldRegion   SpreadFieldValue = "region"
	SpreadByFieldZone     SpreadFieldValue = "zone"
	SpreadByFieldProvider SpreadFieldValue = "provider"
)

// SpreadConstraint bounds into how many groups of clusters a template is spread.
type SpreadConstraint struct {
	// SpreadByField groups clusters by a field. Not together with spreadByLabel.
	// +optional
	SpreadByField SpreadFieldValue `json:"spreadByField,omitempty"`

	// SpreadByLabel groups clusters by the value of a label.
	// +optional
	SpreadByLabel string `json:"spreadByLabel,omitempty"`

	// MaxGroups is the largest number of groups; 0 is no limit.
	// +optional
	MaxGroups int `json:"maxGroups,omitempty"`

	// MinGroups is the smallest number of groups; 0 is defaulted to 1.
	// +optional
	MinGroups int `json:"minGroups,omitempty"`
}

// ReplicaSchedulingType is how clusters get replicas: each gets all, or they are divided.
// +kubebuilder:validation:Enum=Duplicated;Divided
type ReplicaSchedulingType string

// The replica scheduling types.
const (
	ReplicaSchedulingTypeDuplicated ReplicaSchedulingType = "Duplicated"
	ReplicaSchedulingTypeDivided    ReplicaSchedulingType = "Divided"
)

// ReplicaDivisionPreference is how replicas are divided.
// +kubebuilder:validation:Enum=Aggregated;Weighted
type ReplicaDivisionPreference string

// The division preferences. Aggregated uses as few clusters as have room.
const (
	ReplicaDivisionPreferenceAggregated ReplicaDivisionPreference = "Aggregated"
	ReplicaDivisionPreferenceWeighted   ReplicaDivisionPreference = "Weighted"
)

// DynamicWeightFactor is what a dynamic weight is computed from.
// +kubebuilder:validation:Enum=AvailableReplicas
type DynamicWeightFactor string

// DynamicWeightByAvailableReplicas weighs a cluster by the replicas it has room for.
const DynamicWeightByAvailableReplicas DynamicWeightFactor = "AvailableReplicas"

// ReplicaSchedulingStrategy is how the replicas of a workload are divided.
type ReplicaSchedulingStrategy struct {
	// ReplicaSchedulingType is Duplicated (each cluster gets all) or Divided (the clusters share them).
	// +kubebuilder:default="Divided"
	// +optional
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`

	// ReplicaDivisionPreference is how divided replicas are shared; empty is defaulted to Weighted.
	// +optional
	ReplicaDivisionPreference ReplicaDivisionPreference `json:"replicaDivisionPreference,omitempty"`

	// WeightPreference gives the weights; nil with Weighted weighs all clusters alike.
	// +optional
	WeightPreference *ClusterPreferences `json:"weightPreference,omitempty"`

	ReplicaSchedulingDialect `json:",inline"`
}

// ClusterPreferences are weights of clusters. A dynamic weight overrides static ones.
type ClusterPreferences struct {
	// StaticWeightList weighs the clusters that each rule matches.
	// +optional
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`

	// DynamicWeight computes the weights when scheduling.
	// +optional
	DynamicWeight DynamicWeightFactor `json:"dynamicWeight,omitempty"`
}

// StaticClusterWeight weighs the clusters that it matches.
type StaticClusterWeight struct {
	// TargetCluster matches the clusters.
	// +required
	TargetCluster ClusterAffinity `json:"targetCluster"`

	// Weight is relative to the other rules'; a cluster that several rules match has the largest.
	// +kubebuilder:validation:Minimum=1
	// +required
	Weight int64 `json:"weight"`
}

// WorkloadAffinity keeps workloads together or apart.
type WorkloadAffinity struct {
	// Affinity keeps workloads with the same label value in the same clusters.
	// +optional
	Affinity *WorkloadAffinityTerm `json:"affinity,omitempty"`

	// AntiAffinity keeps workloads with the same label value in different clusters.
	// +optional
	AntiAffinity *WorkloadAffinityTerm `json:"antiAffinity,omitempty"`
}

// WorkloadAffinityTerm groups workloads by the value of a label of their templates.
type WorkloadAffinityTerm struct {
	// GroupByLabelKey is the label's key.
	// +required
	GroupByLabelKey string `json:"groupByLabelKey"`
}

// DividesReplicas reports whether the placement divides replicas among clusters.
func (p *Placement) DividesReplicas() bool {
	return p != nil && p.ReplicaScheduling != nil &&
		p.ReplicaScheduling.ReplicaSchedulingType != ReplicaSchedulingTypeDuplicated
}
