package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// EnclosedManifest is a template that encloses the manifest of an object for members, such as a definition, a webhook
// configuration or a role, that would have an effect on the hub if it were created there. Policies select it by its own
// kind and name. Members get the enclosed object, and overrides select that object.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=enclosedmanifests,scope=Cluster
// +kubebuilder:printcolumn:JSONPath=`.spec.manifest.kind`,name=`MANIFEST-KIND`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.manifest.metadata.namespace`,name=`MANIFEST-NAMESPACE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.manifest.metadata.name`,name=`MANIFEST-NAME`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type EnclosedManifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the manifest.
	Spec EnclosedManifestSpec `json:"spec"`
}

// EnclosedManifestSpec has the manifest.
type EnclosedManifestSpec struct {
	// Manifest is one object of any kind, with apiVersion, kind and metadata.name. It is not validated against a schema.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Manifest runtime.RawExtension `json:"manifest"`
}

// EnclosedManifestList is a list of EnclosedManifests.
// +kubebuilder:object:root=true
type EnclosedManifestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EnclosedManifest `json:"items"`
}

// EnclosedManifestKind is the kind of EnclosedManifest.
var EnclosedManifestKind = schema.GroupKind{Group: GroupVersion.Group, Kind: "EnclosedManifest"}
