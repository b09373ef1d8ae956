package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ResourceInterpreterCustomization interprets a kind with Lua scripts or paths: its replicas, health, status and more.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpretercustomizations,scope=Cluster,shortName=ric,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.spec.target.apiVersion`,name=`TARGET-API-VERSION`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.target.kind`,name=`TARGET-KIND`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ResourceInterpreterCustomization struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the kind and its scripts.
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

// ResourceInterpreterCustomizationSpec has a kind and its scripts.
type ResourceInterpreterCustomizationSpec struct {
	// Target is the kind to interpret.
	// +required
	Target CustomizationTarget `json:"target"`

	// Customizations are the scripts, one for each operation.
	// +required
	Customizations CustomizationRules `json:"customizations"`
}

// CustomizationTarget is a kind to interpret.
type CustomizationTarget struct {
	// APIVersion of the kind, such as apps/v1.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the name of the kind, such as Deployment.
	// +required
	Kind string `json:"kind"`
}

// CustomizationRules are the operations of a kind. An operation that is not set is left to the next interpreter.
type CustomizationRules struct {
	// Retention keeps fields that the cluster owns. Retain(desiredObj, observedObj) returns the object to write.
	// +optional
	Retention *RetentionRule `json:"retention,omitempty"`

	// ReplicaResource reads replicas. GetReplicas(obj) returns their number and requirements.
	// +optional
	ReplicaResource *OperationRule `json:"replicaResource,omitempty"`

	// ComponentResource reads the components of a kind with several pod templates. GetComponents(obj) returns them.
	// +optional
	ComponentResource *OperationRule `json:"componentResource,omitempty"`

	// ReplicaRevision sets replicas. ReviseReplica(obj, desiredReplica) returns the changed object.
	// +optional
	ReplicaRevision *OperationRule `json:"replicaRevision,omitempty"`

	// StatusReflection selects the status to collect. ReflectStatus(observedObj) returns it.
	// +optional
	StatusReflection *OperationRule `json:"statusReflection,omitempty"`

	// StatusAggregation computes the status of the template. AggregateStatus(desiredObj, statusItems) returns it.
	// +optional
	StatusAggregation *AggregationRule `json:"statusAggregation,omitempty"`

	// HealthInterpretation reads the health. InterpretHealth(observedObj) returns true if the object is healthy.
	// +optional
	HealthInterpretation *HealthRule `json:"healthInterpretation,omitempty"`

	// DependencyInterpretation lists dependencies. GetDependencies(desiredObj) returns references to objects.
	// +optional
	DependencyInterpretation *OperationRule `json:"dependencyInterpretation,omitempty"`

	CustomizationDialect `json:",inline"`
}

// OperationRule is a script, or the path of a field. Set exactly one.
type OperationRule struct {
	// LuaScript defines the function of the operation.
	// +optional
	LuaScript string `json:"luaScript,omitempty"`

	// JSONPath is the field to read or set, such as .spec.replicas. Not in Karmada.
	// +optional
	JSONPath string `json:"jsonPath,omitempty"`
}

// RetentionRule is a script, or the paths of fields to keep as they are in the cluster.
type RetentionRule struct {
	OperationRule `json:",inline"`

	// JSONPaths are the fields to keep as they are in the cluster. Not in Karmada.
	// +optional
	JSONPaths []string `json:"jsonPaths,omitempty"`
}

// AggregationRule is a script, or the paths of status fields to aggregate.
type AggregationRule struct {
	OperationRule `json:",inline"`

	// JSONPaths are the status fields to aggregate. Not in Karmada.
	// +optional
	JSONPaths *AggregationPaths `json:"jsonPaths,omitempty"`
}

// AggregationPaths are status fields by the function that aggregates them.
type AggregationPaths struct {
	// Sum lists fields that are added up over the clusters.
	// +optional
	Sum []string `json:"sum,omitempty"`

	// Max lists fields of which the largest value of the clusters is used.
	// +optional
	Max []string `json:"max,omitempty"`

	// Last lists fields of which the value of the last cluster is used.
	// +optional
	Last []string `json:"last,omitempty"`
}

// HealthRule is a script, or the path of a field with its value in a healthy object.
type HealthRule struct {
	OperationRule `json:",inline"`

	// Expected is the value of the field jsonPath in a healthy object. Not in Karmada.
	// +optional
	Expected string `json:"expected,omitempty"`
}

// CustomizationDialect has alternative spellings of public guides, and the names of the operations. Admission rewrites
// each to its canonical field, with a warning. None is stored.
type CustomizationDialect struct {
	// Replicas is an alternative spelling of replicaResource. The hub rewrites it.
	// +optional
	Replicas *OperationRule `json:"replicas,omitempty"`

	// Replica is an alternative spelling of replicaResource. The hub rewrites it.
	// +optional
	Replica *OperationRule `json:"replica,omitempty"`

	// InterpretReplica is an alternative spelling of replicaResource. The hub rewrites it.
	// +optional
	InterpretReplica *OperationRule `json:"interpretReplica,omitempty"`

	// InterpretComponent is an alternative spelling of componentResource. The hub rewrites it.
	// +optional
	InterpretComponent *OperationRule `json:"interpretComponent,omitempty"`

	// ReviseReplica is an alternative spelling of replicaRevision. The hub rewrites it.
	// +optional
	ReviseReplica *OperationRule `json:"reviseReplica,omitempty"`

	// Scale is an alternative spelling of replicaRevision. The hub rewrites it.
	// +optional
	Scale *OperationRule `json:"scale,omitempty"`

	// Retain is an alternative spelling of retention. The hub rewrites it.
	// +optional
	Retain *RetentionRule `json:"retain,omitempty"`

	// Status is an alternative spelling of statusReflection. The hub rewrites it.
	// +optional
	Status *OperationRule `json:"status,omitempty"`

	// InterpretStatus is an alternative spelling of statusReflection. The hub rewrites it.
	// +optional
	InterpretStatus *OperationRule `json:"interpretStatus,omitempty"`

	// AggregateStatus is an alternative spelling of statusAggregation. The hub rewrites it.
	// +optional
	AggregateStatus *AggregationRule `json:"aggregateStatus,omitempty"`

	// Health is an alternative spelling of healthInterpretation. The hub rewrites it.
	// +optional
	Health *HealthRule `json:"health,omitempty"`

	// InterpretHealth is an alternative spelling of healthInterpretation. The hub rewrites it.
	// +optional
	InterpretHealth *HealthRule `json:"interpretHealth,omitempty"`

	// InterpretDependency is an alternative spelling of dependencyInterpretation. The hub rewrites it.
	// +optional
	InterpretDependency *OperationRule `json:"interpretDependency,omitempty"`
}
