package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ManifestWork is a list of objects that a cluster shall hold. Its namespace is named like the cluster.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=manifestworks,scope=Namespaced
type ManifestWork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the cluster shall hold.
	// +optional
	Spec ManifestWorkSpec `json:"spec,omitempty"`

	// Status is what became of it.
	// +optional
	Status ManifestWorkStatus `json:"status,omitempty"`
}

// ManifestWorkList is a list of ManifestWork.
// +kubebuilder:object:root=true
type ManifestWorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ManifestWork `json:"items"`
}

// ManifestWorkSpec is what a cluster shall hold, and how.
type ManifestWorkSpec struct {
	// Workload has the objects.
	// +optional
	Workload ManifestsTemplate `json:"workload,omitempty"`

	// DeleteOption is what happens to the objects when the ManifestWork is deleted, or when a manifest is removed from it.
	// Without it they are deleted.
	// +optional
	DeleteOption *DeleteOption `json:"deleteOption,omitempty"`

	// ManifestConfigs are the update strategy and the feedback of single objects.
	// +optional
	ManifestConfigs []ManifestConfigOption `json:"manifestConfigs,omitempty"`

	// Executor is the account in the cluster that the objects are made as. Argosy knows none but its own: a ManifestWork
	// with an executor is refused.
	// +optional
	Executor *ManifestWorkExecutor `json:"executor,omitempty"`
}

// ManifestsTemplate has the objects.
type ManifestsTemplate struct {
	// Manifests are the objects.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is one object. That it is one is checked at admission: a schema that knew it would have the server take its
// metadata apart at every read and write.
// +kubebuilder:pruning:PreserveUnknownFields
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// DeletePropagationPolicy is what happens to objects that were removed from the ManifestWork.
type DeletePropagationPolicy string

// The deletion policies.
const (
	// DeleteForeground deletes the objects before the ManifestWork goes.
	DeleteForeground DeletePropagationPolicy = "Foreground"
	// DeleteOrphan leaves them all in the cluster.
	DeleteOrphan DeletePropagationPolicy = "Orphan"
	// DeleteSelectivelyOrphan leaves those in the cluster that rules name.
	DeleteSelectivelyOrphan DeletePropagationPolicy = "SelectivelyOrphan"
)

// DeleteOption is what happens to objects that were removed from the ManifestWork.
type DeleteOption struct {
	// PropagationPolicy is Foreground, which deletes them all, Orphan, which leaves them all, or SelectivelyOrphan.
	// +required
	// +kubebuilder:validation:Enum=Foreground;Orphan;SelectivelyOrphan
	// +kubebuilder:default=Foreground
	PropagationPolicy DeletePropagationPolicy `json:"propagationPolicy"`

	// SelectivelyOrphan names what SelectivelyOrphan leaves in the cluster.
	// +optional
	SelectivelyOrphan *SelectivelyOrphan `json:"selectivelyOrphans,omitempty"`

	// TTLSecondsAfterFinished deletes the ManifestWork so many seconds after its condition Complete is True; 0 at once.
	// +optional
	TTLSecondsAfterFinished *int64 `json:"ttlSecondsAfterFinished,omitempty"`
}

// SelectivelyOrphan names objects.
type SelectivelyOrphan struct {
	// OrphaningRules name the objects that are left in the cluster.
	// +optional
	OrphaningRules []OrphaningRule `json:"orphaningRules,omitempty"`
}

// OrphaningRule names an object.
type OrphaningRule struct {
	// Group of the object; empty for the core group.
	// +optional
	Group string `json:"group"`

	// Resource is the plural name of its kind.
	// +required
	Resource string `json:"resource"`

	// Namespace of the object; empty for one of the whole cluster.
	// +optional
	Namespace string `json:"namespace"`

	// Name of the object.
	// +required
	Name string `json:"name"`
}

// ResourceIdentifier names objects of a ManifestWork.
type ResourceIdentifier struct {
	// Group of the objects; empty for the core group.
	// +optional
	Group string `json:"group"`

	// Resource is the plural name of their kind.
	// +required
	Resource string `json:"resource"`

	// Name of the objects; * stands for any text.
	// +required
	Name string `json:"name"`

	// Namespace of the objects; * stands for any text.
	// +optional
	Namespace string `json:"namespace"`
}

// ManifestConfigOption is the update strategy and the feedback of some objects.
type ManifestConfigOption struct {
	// ResourceIdentifier names the objects.
	// +required
	ResourceIdentifier ResourceIdentifier `json:"resourceIdentifier"`

	// FeedbackRules select the values of the objects that are reported.
	// +optional
	FeedbackRules []FeedbackRule `json:"feedbackRules,omitempty"`

	// FeedbackScrapeType is how an agent of Open Cluster Management finds changes. The hub ignores it and always watches.
	// +kubebuilder:validation:Enum=Poll;Watch
	// +kubebuilder:default=Poll
	// +optional
	FeedbackScrapeType FeedbackScrapeType `json:"feedbackScrapeType,omitempty"`

	// UpdateStrategy is how the objects are kept.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// ConditionRules define conditions of the objects.
	// +listType=map
	// +listMapKey=condition
	// +optional
	ConditionRules []ConditionRule `json:"conditionRules,omitempty"`
}

// FeedbackScrapeType is Poll or Watch.
type FeedbackScrapeType string

// FeedBackType is how feedback is found.
type FeedBackType string

// The types of feedback.
const (
	// FeedbackWellKnownStatus reports the values that are known for a kind.
	FeedbackWellKnownStatus FeedBackType = "WellKnownStatus"
	// FeedbackJSONPaths reports values by their paths.
	FeedbackJSONPaths FeedBackType = "JSONPaths"
)

// FeedbackRule selects values of an object that are reported.
type FeedbackRule struct {
	// Type is WellKnownStatus or JSONPaths.
	// +required
	// +kubebuilder:validation:Enum=WellKnownStatus;JSONPaths
	Type FeedBackType `json:"type"`

	// JsonPaths are the values, for type JSONPaths.
	// +listType=map
	// +listMapKey=name
	// +optional
	JsonPaths []JsonPath `json:"jsonPaths,omitempty"`
}

// JsonPath is a value of an object, by its path.
type JsonPath struct {
	// Name under which the value is reported.
	// +required
	Name string `json:"name"`

	// Version of the object that the path is for; empty for any.
	// +optional
	Version string `json:"version,omitempty"`

	// Path of the value, such as .status.readyReplicas, without braces.
	// +required
	Path string `json:"path"`
}

// UpdateStrategyType is how an object is kept.
type UpdateStrategyType string

// The update strategies.
const (
	// UpdateStrategyUpdate keeps every field that the manifest sets.
	UpdateStrategyUpdate UpdateStrategyType = "Update"
	// UpdateStrategyCreateOnly makes the object if it is absent, and then leaves it alone.
	UpdateStrategyCreateOnly UpdateStrategyType = "CreateOnly"
	// UpdateStrategyServerSideApply applies the fields of the manifest and leaves the fields of other managers.
	UpdateStrategyServerSideApply UpdateStrategyType = "ServerSideApply"
	// UpdateStrategyReadOnly writes nothing and reports what is there.
	UpdateStrategyReadOnly UpdateStrategyType = "ReadOnly"
)

// UpdateStrategy is how an object is kept.
type UpdateStrategy struct {
	// Type is Update, CreateOnly, ServerSideApply or ReadOnly.
	// +required
	// +kubebuilder:validation:Enum=Update;CreateOnly;ServerSideApply;ReadOnly
	// +kubebuilder:default=Update
	Type UpdateStrategyType `json:"type"`

	// ServerSideApply is for type ServerSideApply.
	// +optional
	ServerSideApply *ServerSideApplyConfig `json:"serverSideApply,omitempty"`
}

// ServerSideApplyConfig is how an object is applied.
type ServerSideApplyConfig struct {
	// Force takes fields from others that set them otherwise.
	// +optional
	Force bool `json:"force"`

	// FieldManager is the name that agents of Open Cluster Management apply by. Argosy applies by its own.
	// +kubebuilder:validation:Pattern=`^work-agent`
	// +kubebuilder:default=work-agent
	// +optional
	FieldManager string `json:"fieldManager,omitempty"`

	// IgnoreFields are fields that are left to the cluster.
	// +listType=map
	// +listMapKey=condition
	// +optional
	IgnoreFields []IgnoreField `json:"ignoreFields,omitempty"`
}

// IgnoreFieldsCondition is when the hub stops writing the fields.
type IgnoreFieldsCondition string

// The conditions under which fields are ignored.
const (
	// IgnoreOnSpokePresent leaves the fields alone once the object is there.
	IgnoreOnSpokePresent IgnoreFieldsCondition = "OnSpokePresent"
	// IgnoreOnSpokeChange leaves changes that are made in the cluster alone until the manifest itself changes.
	IgnoreOnSpokeChange IgnoreFieldsCondition = "OnSpokeChange"
)

// IgnoreField are fields that are left to the cluster.
type IgnoreField struct {
	// Condition is OnSpokePresent or OnSpokeChange.
	// +required
	// +kubebuilder:validation:Enum=OnSpokePresent;OnSpokeChange
	// +kubebuilder:default=OnSpokePresent
	Condition IgnoreFieldsCondition `json:"condition"`

	// JSONPaths of the fields, such as .spec.replicas.
	// +optional
	JSONPaths []string `json:"jsonPaths,omitempty"`

	// JSONPointers of the fields, such as /spec/replicas.
	// +optional
	JSONPointers []string `json:"jsonPointers,omitempty"`

	// JQPathExpressions of the fields.
	// +optional
	JQPathExpressions []string `json:"jqPathExpressions,omitempty"`
}

// ConditionRuleType is how a condition is found.
type ConditionRuleType string

// The types of condition rules.
const (
	// RuleWellKnownConditions knows the condition Complete of Jobs and Pods.
	RuleWellKnownConditions ConditionRuleType = "WellKnownConditions"
	// RuleCEL evaluates expressions over the object.
	RuleCEL ConditionRuleType = "CEL"
)

// ConditionRule defines a condition of an object.
// +kubebuilder:validation:XValidation:rule="self.type != 'CEL' || self.condition != \"\"",message="Condition is required for CEL rules"
type ConditionRule struct {
	// Condition is the type of the condition. Complete, Progressing, Degraded and Available have a meaning of their own.
	// +required
	Condition string `json:"condition"`

	// Type is WellKnownConditions or CEL.
	// +required
	// +kubebuilder:validation:Enum=WellKnownConditions;CEL
	Type ConditionRuleType `json:"type"`

	// CelExpressions are true, all of them, while the object has the condition. The object is the variable object.
	// +optional
	CelExpressions []string `json:"celExpressions"`

	// Message of the condition.
	// +optional
	Message string `json:"message"`

	// MessageExpression gives the message, of the variables object and result; empty, it leaves it to message.
	// +optional
	MessageExpression string `json:"messageExpression"`
}

// ManifestWorkExecutor is the identity that creates the objects in the cluster.
type ManifestWorkExecutor struct {
	// Subject is the account.
	// +required
	Subject ManifestWorkExecutorSubject `json:"subject"`
}

// ManifestWorkExecutorSubject is an account in the cluster.
type ManifestWorkExecutorSubject struct {
	// Type is ServiceAccount.
	// +required
	// +kubebuilder:validation:Enum=ServiceAccount
	Type string `json:"type"`

	// ServiceAccount is the account.
	// +optional
	ServiceAccount *ManifestWorkSubjectServiceAccount `json:"serviceAccount,omitempty"`
}

// ManifestWorkSubjectServiceAccount names a service account.
type ManifestWorkSubjectServiceAccount struct {
	// Namespace of the account.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	Namespace string `json:"namespace"`

	// Name of the account.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	Name string `json:"name"`
}

// ManifestWorkStatus is what became of a ManifestWork.
type ManifestWorkStatus struct {
	// Conditions: Applied, Available, Deleting, and those that condition rules give.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ResourceStatus is what became of each object.
	// +optional
	ResourceStatus ManifestResourceStatus `json:"resourceStatus,omitempty"`
}

// ManifestResourceStatus is what became of each object.
type ManifestResourceStatus struct {
	// Manifests are in the order of the spec.
	// +optional
	Manifests []ManifestCondition `json:"manifests,omitempty"`
}

// ManifestCondition is what became of one object.
type ManifestCondition struct {
	// ResourceMeta identifies the object.
	// +required
	ResourceMeta ManifestResourceMeta `json:"resourceMeta"`

	// StatusFeedbacks are the values that feedback rules ask for.
	// +optional
	StatusFeedbacks StatusFeedbackResult `json:"statusFeedback,omitempty"`

	// Conditions: Applied, Available, StatusFeedbackSynced, and those that condition rules give.
	// +listType=map
	// +listMapKey=type
	// +required
	Conditions []metav1.Condition `json:"conditions"`
}

// ManifestResourceMeta identifies an object of a ManifestWork.
type ManifestResourceMeta struct {
	// Ordinal is its index in the spec.
	// +required
	Ordinal int32 `json:"ordinal"`

	// Group of the object.
	// +optional
	Group string `json:"group"`

	// Version of the object.
	// +optional
	Version string `json:"version"`

	// Kind of the object.
	// +optional
	Kind string `json:"kind"`

	// Resource is the plural name of its kind.
	// +optional
	Resource string `json:"resource"`

	// Name of the object.
	// +optional
	Name string `json:"name"`

	// Namespace of the object.
	// +optional
	Namespace string `json:"namespace"`
}

// StatusFeedbackResult are values of an object.
type StatusFeedbackResult struct {
	// Values by name.
	// +listType=map
	// +listMapKey=name
	// +optional
	Values []FeedbackValue `json:"values,omitempty"`
}

// FeedbackValue is a value of an object.
type FeedbackValue struct {
	// Name of the value.
	// +required
	Name string `json:"name"`

	// Value itself.
	// +required
	Value FieldValue `json:"fieldValue"`
}

// ValueType is Integer, String, Boolean or JsonRaw.
type ValueType string

// The types of feedback values.
const (
	ValueInteger ValueType = "Integer"
	ValueString  ValueType = "String"
	ValueBoolean ValueType = "Boolean"
	ValueJSONRaw ValueType = "JsonRaw"
)

// FieldValue is a value of an object, with its type.
type FieldValue struct {
	// Type is Integer, String, Boolean or JsonRaw.
	// +required
	// +kubebuilder:validation:Enum=Integer;String;Boolean;JsonRaw
	Type ValueType `json:"type"`

	// Integer is the value of type Integer.
	// +optional
	Integer *int64 `json:"integer,omitempty"`

	// String is the value of type String.
	// +optional
	String *string `json:"string,omitempty"`

	// Boolean is the value of type Boolean.
	// +optional
	Boolean *bool `json:"boolean,omitempty"`

	// JsonRaw is the value of type JsonRaw.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	JsonRaw *string `json:"jsonRaw,omitempty"`
}
