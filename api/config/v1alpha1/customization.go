package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ResourceInterpreterCustomization interprets a kind with scripts.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpretercustomizations,scope=Cluster,shortName=ric,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.spec.target.apiVersion`,name=`TARGET-API-VERSION`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.target.kind`,name=`TARGET-KIND`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ResourceInterpreterCustomization struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the kind and its scripts.
	// +required
	Spec ResourceInterpreterCustomizationSpec `json:"spec"`
}

// ResourceInterpreterCustomizationList is a list of ResourceInterpreterCustomization.
// +kubebuilder:object:root=true
type ResourceInterpreterCustomizationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceInterpreterCustomization `json:"items"`
}

// ResourceInterpreterCustomizationSpec is a kind and its scripts.
type ResourceInterpreterCustomizationSpec struct {
	// Target is the kind.
	// +required
	Target CustomizationTarget `json:"target"`

	// Customizations are the scripts, an operation each.
	// +required
	Customizations CustomizationRules `json:"customizations"`
}

// CustomizationTarget is a kind.
type CustomizationTarget struct {
	// APIVersion of the kind.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind's name.
	// +required
	Kind string `json:"kind"`
}

// CustomizationRules are the operations of a kind. The next tier decides operations that are not set.
type CustomizationRules struct {
	// Retention: Retain(desiredObj, observedObj) returns the object to write.
	// +optional
	Retention *RetentionRule `json:"retention,omitempty"`

	// ReplicaResource: GetReplicas(obj) returns replicas and requirements.
	// +optional
	ReplicaResource *OperationRule `json:"replicaResource,omitempty"`

	// ComponentResource: GetComponents(obj) returns components.
	// +optional
	ComponentResource *OperationRule `json:"componentResource,omitempty"`

	// ReplicaRevision: ReviseReplica(obj, desiredReplica) returns the object.
	// +optional
	ReplicaRevision *OperationRule `json:"replicaRevision,omitempty"`

	// StatusReflection: ReflectStatus(observedObj) returns the status.
	// +optional
	StatusReflection *OperationRule `json:"statusReflection,omitempty"`

	// StatusAggregation: AggregateStatus(desiredObj, statusItems) returns the object.
	// +optional
	StatusAggregation *AggregationRule `json:"statusAggregation,omitempty"`

	// HealthInterpretation: InterpretHealth(observedObj) returns a boolean.
	// +optional
	HealthInterpretation *HealthRule `json:"healthInterpretation,omitempty"`

	// DependencyInterpretation: GetDependencies(desiredObj) returns references.
	// +optional
	DependencyInterpretation *OperationRule `json:"dependencyInterpretation,omitempty"`

	CustomizationDialect `json:",inline"`
}

// OperationRule is a script, or a path where the operation is no more than a field. Exactly one is set.
type OperationRule struct {
	// LuaScript defines the operation's function.
	// +optional
	LuaScript string `json:"luaScript,omitempty"`

	// JSONPath is the field, such as .spec.replicas. It is an addition of Argosy.
	// +optional
	JSONPath string `json:"jsonPath,omitempty"`
}

// RetentionRule is a script, or the fields to keep from the member object.
type RetentionRule struct {
	OperationRule `json:",inline"`

	// JSONPaths are the fields to keep. It is an addition of Argosy.
	// +optional
	JSONPaths []string `json:"jsonPaths,omitempty"`
}

// AggregationRule is a script, or the status fields to fold.
type AggregationRule struct {
	OperationRule `json:",inline"`

	// JSONPaths are the status fields to fold. It is an addition of Argosy.
	// +optional
	JSONPaths *AggregationPaths `json:"jsonPaths,omitempty"`
}

// AggregationPaths are status fields by how they are folded.
type AggregationPaths struct {
	// Sum adds up over the clusters.
	// +optional
	Sum []string `json:"sum,omitempty"`

	// Max takes the largest.
	// +optional
	Max []string `json:"max,omitempty"`

	// Last takes the last cluster's.
	// +optional
	Last []string `json:"last,omitempty"`
}

// HealthRule is a script, or a field and the value it has in a healthy object.
type HealthRule struct {
	OperationRule `json:",inline"`

	// Expected is the value of jsonPath in a healthy object. It is an addition of Argosy.
	// +optional
	Expected string `json:"expected,omitempty"`
}

// CustomizationDialect holds spellings of public guides, among them the operations' own names.
// Admission rewrites each to its canonical form with a warning, so that none is ever stored.
type CustomizationDialect struct {
	// Replicas is rewritten to replicaResource.
	// +optional
	Replicas *OperationRule `json:"replicas,omitempty"`

	// Replica is rewritten to replicaResource.
	// +optional
	Replica *OperationRule `json:"replica,omitempty"`

	// InterpretReplica is rewritten to replicaResource.
	// +optional
	InterpretReplica *OperationRule `json:"interpretReplica,omitempty"`

	// InterpretComponent is rewritten to componentResource.
	// +optional
	InterpretComponent *OperationRule `json:"interpretComponent,omitempty"`

	// ReviseReplica is rewritten to replicaRevision.
	// +optional
	ReviseReplica *OperationRule `json:"reviseReplica,omitempty"`

	// Scale is rewritten to replicaRevision.
	// +optional
	Scale *OperationRule `json:"scale,omitempty"`

	// Retain is rewritten to retention.
	// +optional
	Retain *RetentionRule `json:"retain,omitempty"`

	// Status is rewritten to statusReflection.
	// +optional
	Status *OperationRule `json:"status,omitempty"`

	// InterpretStatus is rewritten to statusReflection.
	// +optional
	InterpretStatus *OperationRule `json:"interpretStatus,omitempty"`

	// AggregateStatus is rewritten to statusAggregation.
	// +optional
	AggregateStatus *AggregationRule `json:"aggregateStatus,omitempty"`

	// Health is rewritten to healthInterpretation.
	// +optional
	Health *HealthRule `json:"health,omitempty"`

	// InterpretHealth is rewritten to healthInterpretation.
	// +optional
	InterpretHealth *HealthRule `json:"interpretHealth,omitempty"`

	// InterpretDependency is rewritten to dependencyInterpretation.
	// +optional
	InterpretDependency *OperationRule `json:"interpretDependency,omitempty"`
}
