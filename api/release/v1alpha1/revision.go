package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ReleaseRevision has the fields of a workload that define its pods, and the overrides for clusters. The hub creates it
// when a release is accepted, or when the workload gets a release strategy. Its spec cannot be changed.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=releaserevisions,scope=Namespaced,shortName=rrev
// +kubebuilder:printcolumn:JSONPath=`.spec.target.kind`,name=`KIND`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.target.name`,name=`TARGET`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.images[0]`,name=`IMAGE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.blocked.reason`,name=`BLOCKED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ReleaseRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the fields that define the pods, and the overrides.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a ReleaseRevision cannot be changed"
	Spec ReleaseRevisionSpec `json:"spec"`

	// Status is set if the revision must not be released again. The hub writes it.
	Status ReleaseRevisionStatus `json:"status,omitempty"`
}

// ReleaseRevisionList is a list of ReleaseRevisions.
// +kubebuilder:object:root=true
type ReleaseRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReleaseRevision `json:"items"`
}

// ReleaseRevisionSpec has the fields that define the pods of a workload, and the overrides.
type ReleaseRevisionSpec struct {
	// Target names the workload.
	Target ReleaseObjectReference `json:"target"`

	// Hash of the pods and the overrides.
	// +kubebuilder:validation:MaxLength=63
	Hash string `json:"hash"`

	// PodsHash is the hash of the fields that define the pods, without overrides.
	// +kubebuilder:validation:MaxLength=63
	PodsHash string `json:"podsHash"`

	// TemplateGeneration is the generation of the template from which the revision was created.
	TemplateGeneration int64 `json:"templateGeneration,omitempty"`

	// Pods are the fields of the template that define its pods.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	Pods []RevisionField `json:"pods"`

	// Images are the images of the pods without overrides, for people.
	// +listType=atomic
	Images []string `json:"images,omitempty"`

	// Config are the ConfigMaps that the pods read, for a release with config: Versioned. Pods refer to immutable copies
	// instead, whose name is that of the ConfigMap, "-" and the hash.
	// +listType=atomic
	Config []RevisionConfig `json:"config,omitempty"`

	// Overrides are the override policies that select the workload, in the order of their application. Selectors of other
	// workloads are left out.
	// +listType=atomic
	Overrides []RevisionOverride `json:"overrides,omitempty"`
}

// RevisionField is a field of the template.
type RevisionField struct {
	// Path of the field, such as spec.template.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`

	// Value of the field. Not set if the template does not have the field.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Value *runtime.RawExtension `json:"value,omitempty"`
}

// RevisionConfig is an object that pods read, at the time of the revision.
type RevisionConfig struct {
	// Kind is ConfigMap.
	// +kubebuilder:validation:Enum=ConfigMap
	Kind string `json:"kind"`

	// Name of the object that the template refers to.
	Name string `json:"name"`

	// Hash of the content. Not set for an object that is not part of the revision, because it did not exist, or because an
	// override policy selects it. Pods read such an object by its own name.
	// +kubebuilder:validation:MaxLength=63
	Hash string `json:"hash,omitempty"`
}

// RevisionOverride is an override policy at the time of the revision.
type RevisionOverride struct {
	// Kind is OverridePolicy or ClusterOverridePolicy.
	// +kubebuilder:validation:Enum=OverridePolicy;ClusterOverridePolicy
	Kind string `json:"kind"`

	// Name of the policy.
	Name string `json:"name"`

	// Spec of the policy.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Spec runtime.RawExtension `json:"spec"`
}

// ReleaseRevisionStatus is set if the revision must not be released again.
type ReleaseRevisionStatus struct {
	// Blocked is the reason why the revision must not be released again. The hub sets it when it rolls back a release in
	// which the revision failed. Users who may update the status of ReleaseRevisions can set and remove it.
	Blocked *RevisionBlock `json:"blocked,omitempty"`
}

// RevisionBlock is the reason why a revision must not be released.
type RevisionBlock struct {
	// Reason is one word, such as PodsFailed, for programs.
	Reason string `json:"reason"`

	// Release is the name of the release that was rolled back.
	Release string `json:"release,omitempty"`

	// At is the time when the revision was blocked.
	At metav1.Time `json:"at"`
}
