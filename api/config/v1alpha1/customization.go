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
	Target CustomizationTarget `json:"target"`

	// Customizations are the scripts, one for each operation.
	Customizations CustomizationRules `json:"customizations"`
}

// CustomizationTarget is a kind to interpret.
type CustomizationTarget struct {
	// APIVersion of the kind, such as apps/v1.
	APIVersion string `json:"apiVersion"`

	// Kind is the name of the kind, such as Deployment.
	Kind string `json:"kind"`
}

// CustomizationRules are the operations of a kind. An operation that is not set is left to the next interpreter.
type CustomizationRules struct {
	// Retention keeps fields that the cluster owns. Retain(desiredObj, observedObj) returns the object to write.
	Retention *RetentionRule `json:"retention,omitempty"`

	// ReplicaResource reads replicas. GetReplicas(obj) returns their number and requirements.
	ReplicaResource *OperationRule `json:"replicaResource,omitempty"`

	// ComponentResource reads the components of a kind with several pod templates. GetComponents(obj) returns them.
	ComponentResource *OperationRule `json:"componentResource,omitempty"`

	// ReplicaRevision sets replicas. ReviseReplica(obj, desiredReplica) returns the changed object.
	ReplicaRevision *OperationRule `json:"replicaRevision,omitempty"`

	// StatusReflection selects the status to collect. ReflectStatus(observedObj) returns it.
	StatusReflection *OperationRule `json:"statusReflection,omitempty"`

	// StatusAggregation computes the status of the template. AggregateStatus(desiredObj, statusItems) returns it.
	StatusAggregation *AggregationRule `json:"statusAggregation,omitempty"`

	// HealthInterpretation reads the health. InterpretHealth(observedObj) returns true if the object is healthy.
	HealthInterpretation *HealthRule `json:"healthInterpretation,omitempty"`

	// DependencyInterpretation lists dependencies. GetDependencies(desiredObj) returns references to objects.
	DependencyInterpretation *OperationRule `json:"dependencyInterpretation,omitempty"`

	CustomizationDialect `json:",inline"`
}

// OperationRule is a script, or the path of a field. Set exactly one.
type OperationRule struct {
	// LuaScript defines the function of the operation.
	LuaScript string `json:"luaScript,omitempty"`

	// JSONPath is the field to read or set, such as .spec.replicas. Not in Karmada.
	JSONPath string `json:"jsonPath,omitempty"`
}

// RetentionRule is a script, or the paths of fields to keep as they are in the cluster.
type RetentionRule struct {
	OperationRule `json:",inline"`

	// JSONPaths are the fields to keep as they are in the cluster. Not in Karmada.
	JSONPaths []string `json:"jsonPaths,omitempty"`
}

// AggregationRule is a script, or the paths of status fields to aggregate.
type AggregationRule struct {
	OperationRule `json:",inline"`

	// JSONPaths are the status fields to aggregate. Not in Karmada.
	JSONPaths *AggregationPaths `json:"jsonPaths,omitempty"`
}

// AggregationPaths are status fields by the function that aggregates them.
type AggregationPaths struct {
	// Sum lists fields that are added up over the clusters.
	Sum []string `json:"sum,omitempty"`

	// Max lists fields of which the largest value of the clusters is used.
	Max []string `json:"max,omitempty"`

	// Last lists fields of which the value of the last cluster is used.
	Last []string `json:"last,omitempty"`
}

// HealthRule is a script, or the path of a field with its value in a healthy object.
type HealthRule struct {
	OperationRule `json:",inline"`

	// Expected is the value of the field jsonPath in a healthy object. Not in Karmada.
	Expected string `json:"expected,omitempty"`
}

// CustomizationDialect has alternative spellings of public guides, and the names of the operations. Admission rewrites
// each to its canonical field, with a warning. None is stored.
type CustomizationDialect struct {
	// Replicas is an alternative spelling of replicaResource. The hub rewrites it.
	Replicas *OperationRule `json:"replicas,omitempty"`

	// Replica is an alternative spelling of replicaResource. The hub rewrites it.
	Replica *OperationRule `json:"replica,omitempty"`

	// InterpretReplica is an alternative spelling of replicaResource. The hub rewrites it.
	InterpretReplica *OperationRule `json:"interpretReplica,omitempty"`

	// InterpretComponent is an alternative spelling of componentResource. The hub rewrites it.
	InterpretComponent *OperationRule `json:"interpretComponent,omitempty"`

	// ReviseReplica is an alternative spelling of replicaRevision. The hub rewrites it.
	ReviseReplica *OperationRule `json:"reviseReplica,omitempty"`

	// Scale is an alternative spelling of replicaRevision. The hub rewrites it.
	Scale *OperationRule `json:"scale,omitempty"`

	// Retain is an alternative spelling of retention. The hub rewrites it.
	Retain *RetentionRule `json:"retain,omitempty"`

	// Status is an alternative spelling of statusReflection. The hub rewrites it.
	Status *OperationRule `json:"status,omitempty"`

	// InterpretStatus is an alternative spelling of statusReflection. The hub rewrites it.
	InterpretStatus *OperationRule `json:"interpretStatus,omitempty"`

	// AggregateStatus is an alternative spelling of statusAggregation. The hub rewrites it.
	AggregateStatus *AggregationRule `json:"aggregateStatus,omitempty"`

	// Health is an alternative spelling of healthInterpretation. The hub rewrites it.
	Health *HealthRule `json:"health,omitempty"`

	// InterpretHealth is an alternative spelling of healthInterpretation. The hub rewrites it.
	InterpretHealth *HealthRule `json:"interpretHealth,omitempty"`

	// InterpretDependency is an alternative spelling of dependencyInterpretation. The hub rewrites it.
	InterpretDependency *OperationRule `json:"interpretDependency,omitempty"`
}
