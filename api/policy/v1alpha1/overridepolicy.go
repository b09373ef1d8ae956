package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OverridePolicy changes manifests of its namespace per cluster.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=overridepolicies,scope=Namespaced,shortName=op,categories=karmada-io
type OverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects the manifests, and has the changes per cluster.
	Spec OverrideSpec `json:"spec"`
}

// OverridePolicyList is a list of OverridePolicy.
// +kubebuilder:object:root=true
type OverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OverridePolicy `json:"items"`
}

// ClusterOverridePolicy changes manifests per cluster: cluster-scoped ones, and those of any namespace.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusteroverridepolicies,scope=Cluster,shortName=cop,categories=karmada-io
type ClusterOverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects the manifests, and has the changes per cluster.
	Spec OverrideSpec `json:"spec"`
}

// ClusterOverridePolicyList is a list of ClusterOverridePolicy.
// +kubebuilder:object:root=true
type ClusterOverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterOverridePolicy `json:"items"`
}

// OverrideSpec selects manifests, and has the changes per cluster.
type OverrideSpec struct {
	// ResourceSelectors select the manifests. One of them must match. Default: all manifests.
	ResourceSelectors []ResourceSelector `json:"resourceSelectors,omitempty"`

	// OverrideRules are applied in order. Each changes the manifests for the clusters that it selects.
	OverrideRules []RuleWithCluster `json:"overrideRules,omitempty"`

	// TargetCluster is deprecated. Use overrideRules.
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders is deprecated. Use overrideRules.
	Overriders Overriders `json:"overriders,omitempty"`
}

// RuleWithCluster has changes for some clusters.
type RuleWithCluster struct {
	// TargetCluster selects the clusters of the rule. Default: all clusters.
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders are the changes of the manifests.
	Overriders Overriders `json:"overriders"`
}

// Overriders are changes of a manifest. They are applied in this order: image, command, args, resources, labels,
// annotations, field, plaintext.
type Overriders struct {
	// Plaintext are operations of a JSON patch (RFC 6902), applied together.
	Plaintext []PlaintextOverrider `json:"plaintext,omitempty"`

	// ImageOverrider changes the registry, repository or tag of images.
	ImageOverrider []ImageOverrider `json:"imageOverrider,omitempty"`

	// CommandOverrider changes the command of containers.
	CommandOverrider []CommandArgsOverrider `json:"commandOverrider,omitempty"`

	// ArgsOverrider changes the args of containers.
	ArgsOverrider []CommandArgsOverrider `json:"argsOverrider,omitempty"`

	// ResourcesOverrider changes the requests and limits of containers. Not in Karmada.
	ResourcesOverrider []ResourcesOverrider `json:"resourcesOverrider,omitempty"`

	// LabelsOverrider changes the labels of the manifest.
	LabelsOverrider []LabelAnnotationOverrider `json:"labelsOverrider,omitempty"`

	// AnnotationsOverrider changes the annotations of the manifest.
	AnnotationsOverrider []LabelAnnotationOverrider `json:"annotationsOverrider,omitempty"`

	// FieldOverrider changes JSON or YAML documents inside string fields, such as the data of a ConfigMap.
	FieldOverrider []FieldOverrider `json:"fieldOverrider,omitempty"`

	OverridersDialect `json:",inline"`
}

// OverriderOperator is the operation of an overrider.
type OverriderOperator string

// The operators. AddIfAbsent is for labels and annotations only. It is not in Karmada.
const (
	OverriderOpAdd         OverriderOperator = "add"
	OverriderOpRemove      OverriderOperator = "remove"
	OverriderOpReplace     OverriderOperator = "replace"
	OverriderOpAddIfAbsent OverriderOperator = "addIfAbsent"
)

// PlaintextOverrider is one operation of a JSON patch (RFC 6902).
type PlaintextOverrider struct {
	// Path is a JSON pointer to the field of the manifest.
	Path string `json:"path"`

	// Operator is add, remove or replace.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value to add, or to replace with. Not used with remove.
	Value apiextensionsv1.JSON `json:"value,omitempty"`
}

// ImageComponent is a part of an image name.
// +kubebuilder:validation:Enum=Registry;Repository;Tag
type ImageComponent string

// The parts of an image name. A digest counts as the tag.
const (
	Registry   ImageComponent = "Registry"
	Repository ImageComponent = "Repository"
	Tag        ImageComponent = "Tag"
)

// ImageOverrider changes one part of the names of images.
type ImageOverrider struct {
	// Predicate selects one image. Default: the images of all containers of the manifest.
	Predicate *ImagePredicate `json:"predicate,omitempty"`

	// Component is the part of the name to change: Registry, Repository or Tag.
	Component ImageComponent `json:"component"`

	// Operator is add, remove or replace.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value to add, or to replace with. Not used with remove.
	Value string `json:"value,omitempty"`
}

// ImagePredicate selects one image of a manifest.
type ImagePredicate struct {
	// Path is a JSON pointer to the image.
	Path string `json:"path"`
}

// CommandArgsOverrider changes the command or args of one container.
type CommandArgsOverrider struct {
	// ContainerName is the name of the container.
	ContainerName string `json:"containerName"`

	// Operator is add (append the items) or remove.
	// +kubebuilder:validation:Enum=add;remove
	Operator OverriderOperator `json:"operator"`

	// Value lists the items to add or remove.
	Value []string `json:"value,omitempty"`
}

// LabelAnnotationOverrider changes labels or annotations of a manifest.
type LabelAnnotationOverrider struct {
	// Operator is add, remove, replace or addIfAbsent. Remove and replace change only keys that the manifest has, and
	// addIfAbsent adds only keys that it lacks.
	// +kubebuilder:validation:Enum=add;remove;replace;addIfAbsent
	Operator OverriderOperator `json:"operator"`

	// Value has the keys and values.
	// +required
	Value map[string]string `json:"value,omitempty"`
}

// FieldOverrider changes a document inside a string field. Set exactly one of json and yaml.
type FieldOverrider struct {
	// FieldPath is a JSON pointer to the string field.
	FieldPath string `json:"fieldPath"`

	// JSON are the operations on a JSON document.
	JSON []FieldPatchOperation `json:"json,omitempty"`

	// YAML are the operations on a YAML document.
	YAML []FieldPatchOperation `json:"yaml,omitempty"`
}

// FieldPatchOperation is one operation on an embedded document.
type FieldPatchOperation struct {
	// SubPath is a JSON pointer to the field of the document.
	SubPath string `json:"subPath"`

	// Operator is add, remove or replace.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value to add, or to replace with. Not used with remove.
	Value apiextensionsv1.JSON `json:"value,omitempty"`
}

// Empty reports whether there is nothing to change.
func (o *Overriders) Empty() bool {
	return len(o.Plaintext)+len(o.ImageOverrider)+len(o.CommandOverrider)+len(o.ArgsOverrider)+len(o.ResourcesOverrider)+
		len(o.LabelsOverrider)+len(o.AnnotationsOverrider)+len(o.FieldOverrider)+len(o.ReplicasOverrider) == 0
}
