package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ReleaseRevision is what members get of a workload: the fields that make its pods, and the overrides of clusters. The
// hub writes it when a release is accepted, or when the workload gets a release strategy. Its spec cannot be changed.
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

	// Spec is what members get.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a ReleaseRevision cannot be changed"
	// +required
	Spec ReleaseRevisionSpec `json:"spec"`

	// Status of the revision: whether it may be released.
	// +optional
	Status ReleaseRevisionStatus `json:"status,omitempty"`
}

// ReleaseRevisionList is a list of ReleaseRevisions.
// +kubebuilder:object:root=true
type ReleaseRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReleaseRevision `json:"items"`
}

// ReleaseRevisionSpec is what members get of a workload.
type ReleaseRevisionSpec struct {
	// Target is the workload.
	// +required
	Target ReleaseObjectReference `json:"target"`

	// Hash of pods and overrides.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Hash string `json:"hash"`

	// PodsHash is of the fields that make pods alone, without overrides.
	// +kubebuilder:validation:MaxLength=63
	// +required
	PodsHash string `json:"podsHash"`

	// TemplateGeneration is the generation of the template that the revision was made from.
	// +optional
	TemplateGeneration int64 `json:"templateGeneration,omitempty"`

	// Pods are the fields of the template that make its pods.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +required
	Pods []RevisionField `json:"pods"`

	// Images of the pods without overrides, for people.
	// +listType=atomic
	// +optional
	Images []string `json:"images,omitempty"`

	// Config are the ConfigMaps that the pods read, for a release with config: Versioned. Pods refer to the versions in
	// place of the ConfigMaps. A version has the name of the ConfigMap, "-" and the hash.
	// +listType=atomic
	// +optional
	Config []RevisionConfig `json:"config,omitempty"`

	// Overrides are the override policies that select the workload, in the order in which they apply. Selectors of other
	// workloads are left out.
	// +listType=atomic
	// +optional
	Overrides []RevisionOverride `json:"overrides,omitempty"`
}

// RevisionField is a field of the template.
type RevisionField struct {
	// Path of the field, such as spec.template.
	// +kubebuilder:validation:MinLength=1
	// +required
	Path string `json:"path"`

	// Value of the field; not set if the template does not have the field.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	Value *runtime.RawExtension `json:"value,omitempty"`
}

// RevisionConfig is an object that pods read, as it was.
type RevisionConfig struct {
	// Kind is ConfigMap.
	// +kubebuilder:validation:Enum=ConfigMap
	// +required
	Kind string `json:"kind"`

	// Name of the object in the template.
	// +required
	Name string `json:"name"`

	// Hash of the content. It is not set for an object that is not part of the revision, because it did not exist, or
	// because an override policy selects it. Pods read such an object by its own name.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Hash string `json:"hash,omitempty"`
}

// RevisionOverride is an override policy as it was.
type RevisionOverride struct {
	// Kind is OverridePolicy or ClusterOverridePolicy.
	// +kubebuilder:validation:Enum=OverridePolicy;ClusterOverridePolicy
	// +required
	Kind string `json:"kind"`

	// Name of the policy.
	// +required
	Name string `json:"name"`

	// Spec of the policy.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +required
	Spec runtime.RawExtension `json:"spec"`
}

// ReleaseRevisionStatus is the status of a revision.
type ReleaseRevisionStatus struct {
	// Blocked is why the revision must not be released again. It is not set if it may be. The hub sets it when a release
	// in which the revision failed was rolled back. Who may update the status of ReleaseRevisions can set and remove it.
	// +optional
	Blocked *RevisionBlock `json:"blocked,omitempty"`
}

// RevisionBlock is why a revision must not be released.
type RevisionBlock struct {
	// Reason is one word, such as PodsFailed.
	Reason string `json:"reason"`

	// Release is the name of the release that was rolled back.
	// +optional
	Release string `json:"release,omitempty"`

	// At is when it was blocked.
	At metav1.Time `json:"at"`
}
