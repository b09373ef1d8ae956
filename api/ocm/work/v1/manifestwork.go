package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ManifestWork has objects that a cluster applies. Its namespace has the name of the cluster.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=manifestworks,scope=Namespaced
type ManifestWork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the objects and their settings.
	Spec ManifestWorkSpec `json:"spec,omitempty"`

	// Status is the state of the objects in the cluster. The hub writes it.
	Status ManifestWorkStatus `json:"status,omitempty"`
}

// ManifestWorkList is a list of ManifestWork.
// +kubebuilder:object:root=true
type ManifestWorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ManifestWork `json:"items"`
}

// ManifestWorkSpec has the objects and their settings.
type ManifestWorkSpec struct {
	// Workload has the objects.
	Workload ManifestsTemplate `json:"workload,omitempty"`

	// DeleteOption decides about the objects when the ManifestWork is deleted, or when a manifest is removed from it.
	// Default: they are deleted.
	DeleteOption *DeleteOption `json:"deleteOption,omitempty"`

	// ManifestConfigs have the update strategy and the feedback rules of single objects.
	ManifestConfigs []ManifestConfigOption `json:"manifestConfigs,omitempty"`

	// Executor is the account in the cluster that creates the objects. It is not supported: the hub refuses a ManifestWork
	// with an executor.
	Executor *ManifestWorkExecutor `json:"executor,omitempty"`
}

// ManifestsTemplate has objects.
type ManifestsTemplate struct {
	// Manifests are the objects.
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is one object. Admission validates it. The schema does not, since the API server would then process its
// metadata at every read and write.
// +kubebuilder:pruning:PreserveUnknownFields
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// DeletePropagationPolicy decides about objects that were removed from the ManifestWork.
type DeletePropagationPolicy string

// The deletion policies.
const (
	// DeleteForeground deletes the objects before the ManifestWork.
	DeleteForeground DeletePropagationPolicy = "Foreground"
	// DeleteOrphan keeps all objects in the cluster.
	DeleteOrphan DeletePropagationPolicy = "Orphan"
	// DeleteSelectivelyOrphan keeps the objects in the cluster that rules name.
	DeleteSelectivelyOrphan DeletePropagationPolicy = "SelectivelyOrphan"
)

// DeleteOption decides about objects that were removed from the ManifestWork.
type DeleteOption struct {
	// PropagationPolicy is Foreground (all are deleted), Orphan (all are kept) or SelectivelyOrphan. Default: Foreground.
	// +kubebuilder:validation:Enum=Foreground;Orphan;SelectivelyOrphan
	// +kubebuilder:default=Foreground
	PropagationPolicy DeletePropagationPolicy `json:"propagationPolicy"`

	// SelectivelyOrphan names the objects that are kept, for SelectivelyOrphan.
	SelectivelyOrphan *SelectivelyOrphan `json:"selectivelyOrphans,omitempty"`

	// TTLSecondsAfterFinished is the time in seconds after the condition Complete is True when the ManifestWork is
	// deleted. 0: at once. Default: it is not deleted.
	TTLSecondsAfterFinished *int64 `json:"ttlSecondsAfterFinished,omitempty"`
}

// SelectivelyOrphan names objects that are kept in the cluster.
type SelectivelyOrphan struct {
	// OrphaningRules name the objects that are kept in the cluster.
	OrphaningRules []OrphaningRule `json:"orphaningRules,omitempty"`
}

// OrphaningRule names an object that is kept in the cluster.
type OrphaningRule struct {
	// Group of the object. Empty for the core group.
	// +optional
	Group string `json:"group"`

	// Resource is the plural name of the kind of the object, such as deployments.
	Resource string `json:"resource"`

	// Namespace of the object. Empty for a cluster-scoped object.
	// +optional
	Namespace string `json:"namespace"`

	// Name of the object.
	Name string `json:"name"`
}

// ResourceIdentifier names objects of a ManifestWork.
type ResourceIdentifier struct {
	// Group of the objects. Empty for the core group.
	// +optional
	Group string `json:"group"`

	// Resource is the plural name of their kind, such as deployments.
	Resource string `json:"resource"`

	// Name of the objects. * matches any text.
	Name string `json:"name"`

	// Namespace of the objects. * matches any text.
	// +optional
	Namespace string `json:"namespace"`
}

// ManifestConfigOption has the update strategy and the feedback rules of some objects.
type ManifestConfigOption struct {
	// ResourceIdentifier names the objects.
	ResourceIdentifier ResourceIdentifier `json:"resourceIdentifier"`

	// FeedbackRules select the values of the objects to report in the status.
	FeedbackRules []FeedbackRule `json:"feedbackRules,omitempty"`

	// FeedbackScrapeType is Poll or Watch, for agents of Open Cluster Management. The hub ignores it and always watches.
	// +kubebuilder:validation:Enum=Poll;Watch
	// +kubebuilder:default=Poll
	FeedbackScrapeType FeedbackScrapeType `json:"feedbackScrapeType,omitempty"`

	// UpdateStrategy decides about updates of the objects. Default: Update.
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// ConditionRules define conditions of the objects.
	// +listType=map
	// +listMapKey=condition
	ConditionRules []ConditionRule `json:"conditionRules,omitempty"`
}

// FeedbackScrapeType is Poll or Watch.
type FeedbackScrapeType string

const (
	// FeedbackPoll reads the object at an interval.
	FeedbackPoll FeedbackScrapeType = "Poll"
	// FeedbackWatch watches the object.
	FeedbackWatch FeedbackScrapeType = "Watch"
)

// FeedBackType is the source of the values to report.
type FeedBackType string

// The types of feedback.
const (
	// FeedbackWellKnownStatus reports the values that the hub knows for a kind.
	FeedbackWellKnownStatus FeedBackType = "WellKnownStatus"
	// FeedbackJSONPaths reports values by path.
	FeedbackJSONPaths FeedBackType = "JSONPaths"
)

// FeedbackRule selects values of an object to report.
type FeedbackRule struct {
	// Type is WellKnownStatus or JSONPaths.
	// +kubebuilder:validation:Enum=WellKnownStatus;JSONPaths
	Type FeedBackType `json:"type"`

	// JsonPaths are the paths of the values, for type JSONPaths.
	// +listType=map
	// +listMapKey=name
	JsonPaths []JsonPath `json:"jsonPaths,omitempty"`
}

// JsonPath is the path of a value of an object.
type JsonPath struct {
	// Name of the value in the status.
	Name string `json:"name"`

	// Version of the object that the path is for. Default: any version.
	Version string `json:"version,omitempty"`

	// Path of the value, such as .status.readyReplicas, without braces.
	Path string `json:"path"`
}

// UpdateStrategyType decides about updates of an object.
type UpdateStrategyType string

// The update strategies.
const (
	// UpdateStrategyUpdate restores every field of the manifest.
	UpdateStrategyUpdate UpdateStrategyType = "Update"
	// UpdateStrategyCreateOnly creates the object if it does not exist, and never updates it.
	UpdateStrategyCreateOnly UpdateStrategyType = "CreateOnly"
	// UpdateStrategyServerSideApply applies the fields of the manifest and leaves the fields of other managers.
	UpdateStrategyServerSideApply UpdateStrategyType = "ServerSideApply"
	// UpdateStrategyReadOnly writes nothing and reports the status of the object.
	UpdateStrategyReadOnly UpdateStrategyType = "ReadOnly"
)

// UpdateStrategy decides about updates of an object.
type UpdateStrategy struct {
	// Type is Update, CreateOnly, ServerSideApply or ReadOnly. Default: Update.
	// +kubebuilder:validation:Enum=Update;CreateOnly;ServerSideApply;ReadOnly
	// +kubebuilder:default=Update
	Type UpdateStrategyType `json:"type"`

	// ServerSideApply configures the type ServerSideApply.
	ServerSideApply *ServerSideApplyConfig `json:"serverSideApply,omitempty"`
}

// ServerSideApplyConfig configures server-side apply of an object.
type ServerSideApplyConfig struct {
	// Force takes over fields that other managers set to other values. Default: false.
	// +optional
	Force bool `json:"force"`

	// FieldManager is the field manager of agents of Open Cluster Management. The hub ignores it and uses its own.
	// +kubebuilder:validation:Pattern=`^work-agent`
	// +kubebuilder:default=work-agent
	FieldManager string `json:"fieldManager,omitempty"`

	// IgnoreFields are fields that the hub does not write.
	// +listType=map
	// +listMapKey=condition
	IgnoreFields []IgnoreField `json:"ignoreFields,omitempty"`
}

// IgnoreFieldsCondition is the time from which the hub does not write the fields.
type IgnoreFieldsCondition string

// The conditions under which the hub does not write the fields.
const (
	// IgnoreOnSpokePresent does not write the fields when the object exists.
	IgnoreOnSpokePresent IgnoreFieldsCondition = "OnSpokePresent"
	// IgnoreOnSpokeChange keeps changes of the fields that are made in the cluster, until the manifest changes.
	IgnoreOnSpokeChange IgnoreFieldsCondition = "OnSpokeChange"
)

// IgnoreField are fields that the hub does not write.
type IgnoreField struct {
	// Condition is OnSpokePresent (when the object exists) or OnSpokeChange (when they are changed in the cluster).
	// +kubebuilder:validation:Enum=OnSpokePresent;OnSpokeChange
	// +kubebuilder:default=OnSpokePresent
	Condition IgnoreFieldsCondition `json:"condition"`

	// JSONPaths of the fields, such as .spec.replicas.
	JSONPaths []string `json:"jsonPaths,omitempty"`

	// JSONPointers of the fields, such as /spec/replicas.
	JSONPointers []string `json:"jsonPointers,omitempty"`

	// JQPathExpressions of the fields, in the syntax of jq.
	JQPathExpressions []string `json:"jqPathExpressions,omitempty"`
}

// ConditionRuleType is the source of a condition.
type ConditionRuleType string

// The types of condition rules.
const (
	// RuleWellKnownConditions sets the condition Complete of Jobs and Pods.
	RuleWellKnownConditions ConditionRuleType = "WellKnownConditions"
	// RuleCEL evaluates CEL expressions over the object.
	RuleCEL ConditionRuleType = "CEL"
)

// ConditionRule defines a condition of an object.
// +kubebuilder:validation:XValidation:rule="self.type != 'CEL' || self.condition != \"\"",message="Condition is required for CEL rules"
type ConditionRule struct {
	// Condition is the type of the condition. The status of the ManifestWork has it for all its objects together.
	Condition string `json:"condition"`

	// Type is WellKnownConditions or CEL.
	// +kubebuilder:validation:Enum=WellKnownConditions;CEL
	Type ConditionRuleType `json:"type"`

	// CelExpressions must all be true for the condition to be True. The variable object is the object.
	// +optional
	CelExpressions []string `json:"celExpressions"`

	// Message of the condition.
	// +optional
	Message string `json:"message"`

	// MessageExpression is a CEL expression for the message, with the variables object and result. Default: message.
	// +optional
	MessageExpression string `json:"messageExpression"`
}

// ManifestWorkExecutor is the account that creates the objects in the cluster.
type ManifestWorkExecutor struct {
	// Subject is the account.
	Subject ManifestWorkExecutorSubject `json:"subject"`
}

// ManifestWorkExecutorSubject is an account in the cluster.
type ManifestWorkExecutorSubject struct {
	// Type is ServiceAccount.
	// +kubebuilder:validation:Enum=ServiceAccount
	Type string `json:"type"`

	// ServiceAccount is the account.
	ServiceAccount *ManifestWorkSubjectServiceAccount `json:"serviceAccount,omitempty"`
}

// ManifestWorkSubjectServiceAccount names a service account.
type ManifestWorkSubjectServiceAccount struct {
	// Namespace of the account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	Namespace string `json:"namespace"`

	// Name of the account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	Name string `json:"name"`
}

// ManifestWorkStatus is the state of the objects of a ManifestWork.
type ManifestWorkStatus struct {
	// Conditions are Applied, Available, Deleting, and those of condition rules.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ResourceStatus is the state of each object.
	ResourceStatus ManifestResourceStatus `json:"resourceStatus,omitempty"`
}

// ManifestResourceStatus is the state of each object.
type ManifestResourceStatus struct {
	// Manifests are the states of the objects, in the order of the spec.
	Manifests []ManifestCondition `json:"manifests,omitempty"`
}

// ManifestCondition is the state of one object.
type ManifestCondition struct {
	// ResourceMeta identifies the object.
	ResourceMeta ManifestResourceMeta `json:"resourceMeta"`

	// StatusFeedbacks are the values that the feedback rules select.
	StatusFeedbacks StatusFeedbackResult `json:"statusFeedback,omitempty"`

	// Conditions are Applied, Available, StatusFeedbackSynced, and those of condition rules.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions"`
}

// ManifestResourceMeta identifies an object of a ManifestWork.
type ManifestResourceMeta struct {
	// Ordinal is the index of the manifest in the spec, counted from 0.
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

	// Resource is the plural name of the kind of the object.
	// +optional
	Resource string `json:"resource"`

	// Name of the object.
	// +optional
	Name string `json:"name"`

	// Namespace of the object.
	// +optional
	Namespace string `json:"namespace"`
}

// StatusFeedbackResult has values of an object.
type StatusFeedbackResult struct {
	// Values are the values with their names.
	// +listType=map
	// +listMapKey=name
	Values []FeedbackValue `json:"values,omitempty"`
}

// FeedbackValue is a value of an object.
type FeedbackValue struct {
	// Name of the value.
	Name string `json:"name"`

	// Value of the type that it has.
	Value FieldValue `json:"fieldValue"`
}

// ValueType is Integer, String, Boolean or JsonRaw.
type ValueType string

const (
	ValueInteger ValueType = "Integer"
	ValueString  ValueType = "String"
	ValueBoolean ValueType = "Boolean"
	ValueJSONRaw ValueType = "JsonRaw"
)

// FieldValue is a value of an object, with its type.
type FieldValue struct {
	// Type is Integer, String, Boolean or JsonRaw.
	// +kubebuilder:validation:Enum=Integer;String;Boolean;JsonRaw
	Type ValueType `json:"type"`

	// Integer is the value of type Integer.
	Integer *int64 `json:"integer,omitempty"`

	// String is the value of type String.
	String *string `json:"string,omitempty"`

	// Boolean is the value of type Boolean.
	Boolean *bool `json:"boolean,omitempty"`

	// JsonRaw is the value of type JsonRaw.
	// +kubebuilder:validation:MaxLength=1024
	JsonRaw *string `json:"jsonRaw,omitempty"`
}
