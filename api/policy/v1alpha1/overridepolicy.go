package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OverridePolicy changes the manifests of its namespace for some clusters.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=overridepolicies,scope=Namespaced,shortName=op,categories=karmada-io
type OverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired change.
	// +required
	Spec OverrideSpec `json:"spec"`
}

// OverridePolicyList is a list of OverridePolicy.
// +kubebuilder:object:root=true
type OverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OverridePolicy `json:"items"`
}

// ClusterOverridePolicy changes manifests of any namespace and cluster-scoped ones for some clusters.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusteroverridepolicies,scope=Cluster,shortName=cop,categories=karmada-io
type ClusterOverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired change.
	// +required
	Spec OverrideSpec `json:"spec"`
}

// ClusterOverridePolicyList is a list of ClusterOverridePolicy.
// +kubebuilder:object:root=true
type ClusterOverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterOverridePolicy `json:"items"`
}

// OverrideSpec selects manifests, and changes them per cluster.
type OverrideSpec struct {
	// ResourceSelectors select the manifests; nil selects all.
	// +optional
	ResourceSelectors []ResourceSelector `json:"resourceSelectors,omitempty"`

	// OverrideRules are applied in order, each to the clusters it targets.
	// +optional
	OverrideRules []RuleWithCluster `json:"overrideRules,omitempty"`

	// TargetCluster is deprecated: use overrideRules.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders is deprecated: use overrideRules.
	// +optional
	Overriders Overriders `json:"overriders,omitempty"`
}

// RuleWithCluster is a set of overriders for some clusters.
type RuleWithCluster struct {
	// TargetCluster matches the clusters; nil is all.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders are the changes.
	// +required
	Overriders Overriders `json:"overriders"`
}

// Overriders are changes to a manifest, applied in the order:
// image, command, args, resources, labels, annotations, field, plaintext.
type Overriders struct {
	// Plaintext are RFC 6902 operations, applied as one patch.
	// +optional
	Plaintext []PlaintextOverrider `json:"plaintext,omitempty"`

	// ImageOverrider changes parts of image names.
	// +optional
	ImageOverrider []ImageOverrider `json:"imageOverrider,omitempty"`

	// CommandOverrider changes the command of a container.
	// +optional
	CommandOverrider []CommandArgsOverrider `json:"commandOverrider,omitempty"`

	// ArgsOverrider changes the args of a container.
	// +optional
	ArgsOverrider []CommandArgsOverrider `json:"argsOverrider,omitempty"`

	// ResourcesOverrider changes the resources of a container.
	// +optional
	ResourcesOverrider []ResourcesOverrider `json:"resourcesOverrider,omitempty"`

	// LabelsOverrider changes labels of the manifest.
	// +optional
	LabelsOverrider []LabelAnnotationOverrider `json:"labelsOverrider,omitempty"`

	// AnnotationsOverrider changes annotations of the manifest.
	// +optional
	AnnotationsOverrider []LabelAnnotationOverrider `json:"annotationsOverrider,omitempty"`

	// FieldOverrider changes JSON or YAML inside a string field.
	// +optional
	FieldOverrider []FieldOverrider `json:"fieldOverrider,omitempty"`

	OverridersDialect `json:",inline"`
}

// OverriderOperator is what an overrider does.
type OverriderOperator string

// The operators. AddIfAbsent is for labels and annotations only, and an addition of Argosy.
const (
	OverriderOpAdd         OverriderOperator = "add"
	OverriderOpRemove      OverriderOperator = "remove"
	OverriderOpReplace     OverriderOperator = "replace"
	OverriderOpAddIfAbsent OverriderOperator = "addIfAbsent"
)

// PlaintextOverrider is one RFC 6902 operation.
type PlaintextOverrider struct {
	// Path is a JSON pointer into the manifest.
	// +required
	Path string `json:"path"`

	// Operator is add, remove or replace.
	// +kubebuilder:validation:Enum=add;remove;replace
	// +required
	Operator OverriderOperator `json:"operator"`

	// Value to add or replace with.
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitempty"`
}

// ImageComponent is a part of an image name.
// +kubebuilder:validation:Enum=Registry;Repository;Tag
type ImageComponent string

// The parts of an image name; a digest counts as the tag.
const (
	Registry   ImageComponent = "Registry"
	Repository ImageComponent = "Repository"
	Tag        ImageComponent = "Tag"
)

// ImageOverrider changes one part of image names.
type ImageOverrider struct {
	// Predicate names one image; nil is every container image that the kind is known to have.
	// +optional
	Predicate *ImagePredicate `json:"predicate,omitempty"`

	// Component is the part changed.
	// +required
	Component ImageComponent `json:"component"`

	// Operator is add, remove or replace.
	// +kubebuilder:validation:Enum=add;remove;replace
	// +required
	Operator OverriderOperator `json:"operator"`

	// Value to add or replace with.
	// +optional
	Value string `json:"value,omitempty"`
}

// ImagePredicate names one image of a manifest.
type ImagePredicate struct {
	// Path is a JSON pointer to the image.
	// +required
	Path string `json:"path"`
}

// CommandArgsOverrider changes the command or args of one container.
type CommandArgsOverrider struct {
	// ContainerName names the container.
	// +required
	ContainerName string `json:"containerName"`

	// Operator is add (append) or remove.
	// +kubebuilder:validation:Enum=add;remove
	// +required
	Operator OverriderOperator `json:"operator"`

	// Value are the items to add or remove.
	// +optional
	Value []string `json:"value,omitempty"`
}

// LabelAnnotationOverrider changes labels or annotations.
type LabelAnnotationOverrider struct {
	// Operator is add, remove, replace or addIfAbsent; remove and replace act on existing keys only.
	// +kubebuilder:validation:Enum=add;remove;replace;addIfAbsent
	// +required
	Operator OverriderOperator `json:"operator"`

	// Value are the keys and values.
	// +required
	Value map[string]string `json:"value,omitempty"`
}

// FieldOverrider changes a document inside a string field. Exactly one of json and yaml is set.
type FieldOverrider struct {
	// FieldPath is a JSON pointer to the string field.
	// +required
	FieldPath string `json:"fieldPath"`

	// JSON changes a JSON document.
	// +optional
	JSON []FieldPatchOperation `json:"json,omitempty"`

	// YAML changes a YAML document.
	// +optional
	YAML []FieldPatchOperation `json:"yaml,omitempty"`
}

// FieldPatchOperation is one operation on an embedded document.
type FieldPatchOperation struct {
	// SubPath is a JSON pointer into the document.
	// +required
	SubPath string `json:"subPath"`

	// Operator is add, remove or replace.
	// +kubebuilder:validation:Enum=add;remove;replace
	// +required
	Operator OverriderOperator `json:"operator"`

	// Value to add or replace with; not with remove.
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitempty"`
}

// Empty reports whether there is nothing to change.
func (o *Overriders) Empty() bool {
	return len(o.Plaintext)+len(o.ImageOverrider)+len(o.CommandOverrider)+len(o.ArgsOverrider)+len(o.ResourcesOverrider)+
		len(o.LabelsOverrider)+len(o.AnnotationsOverrider)+len(o.FieldOverrider)+len(o.ReplicasOverrider) == 0
}
