package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Work is a manifest for one member cluster; it lives in that cluster's execution space.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=works,scope=Namespaced,shortName=wk,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.spec.workload.manifests[*].kind`,name=`WORKLOAD-KIND`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Applied")].status`,name=`APPLIED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type Work struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the member shall hold.
	// +required
	Spec WorkSpec `json:"spec"`

	// Status is what the member answered.
	// +optional
	Status WorkStatus `json:"status,omitempty"`
}

// WorkList is a list of Work.
// +kubebuilder:object:root=true
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Work `json:"items"`
}

// WorkSpec is what a member shall hold.
type WorkSpec struct {
	// Workload holds the manifest.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`

	// SuspendDispatching stops applying; the status is still collected.
	// +optional
	SuspendDispatching *bool `json:"suspendDispatching,omitempty"`

	// PreserveResourcesOnDeletion leaves the member object behind when the Work is deleted.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
}

// WorkloadTemplate holds manifests; Argosy writes exactly one.
type WorkloadTemplate struct {
	// Manifests of the member's objects.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is one object for a member.
type Manifest struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	runtime.RawExtension `json:",inline"`
}

// WorkStatus is what a member answered.
type WorkStatus struct {
	// Conditions: Applied, Dispatching.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ManifestStatuses are the states of the manifests.
	// +optional
	ManifestStatuses []ManifestStatus `json:"manifestStatuses,omitempty"`
}

// The condition types of a Work, and the reasons they carry.
const (
	WorkApplied     = "Applied"
	WorkDispatching = "Dispatching"
	WorkProgressing = "Progressing"
	WorkAvailable   = "Available"
	WorkDegraded    = "Degraded"

	// WorkFailure is True while the hub cannot carry the Work out. Its reason is one of those below. Its message is the
	// cause alone: the message of Applied is the same for people, with words around it. Ours.
	WorkFailure = "Failure"
	// ReasonUnreachable: the member did not answer, and did not get the request.
	ReasonUnreachable = "Unreachable"
	// ReasonTimeout: the member did not answer in time. It may have carried out the request.
	ReasonTimeout = "Timeout"
	// ReasonCertificateUntrusted: the hub does not trust the certificate of the member's API server.
	ReasonCertificateUntrusted = "CertificateUntrusted"
	// ReasonClusterNotReady: the hub did not ask the member, because it is known not to answer or another hub manages
	// it.
	ReasonClusterNotReady = "ClusterNotReady"
	// ReasonUnauthorized: the member does not accept the hub's credentials.
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden: the hub's account lacks a right, or built-in admission of the member denies the request.
	// Kubernetes answers both alike.
	ReasonForbidden = "Forbidden"
	// ReasonKindNotServed: the member does not serve the kind.
	ReasonKindNotServed = "KindNotServed"
	// ReasonRejected: the member's API server or a webhook rejected the request.
	ReasonRejected = "Rejected"
	// ReasonObjectUnmanaged: the object exists in the member and nobody manages it. Conflict resolution Overwrite takes
	// it over.
	ReasonObjectUnmanaged = "ObjectUnmanaged"
	// ReasonObjectOfAnother: the object in the member belongs to another Work or another hub.
	ReasonObjectOfAnother = "ObjectOfAnother"
	// ReasonNotSent: the hub has nothing to send, such as when the manifest cannot be read.
	ReasonNotSent = "NotSent"

	// WorkScaledByMember is True while an autoscaler in the member sets the replicas there; its message names it. Ours.
	WorkScaledByMember = "ScaledByMember"
	ReasonAutoscaled   = "Autoscaled"
	// WorkHeldAfterRestore is True while the hub, restored from a backup, leaves alone what it finds otherwise in the member; its message
	// says what, and how to go on. Ours.
	WorkHeldAfterRestore = "HeldAfterRestore"
	ReasonRestored       = "HubRestored"

	// WorkContested is True while somebody in the member changes the object again and again: it is put right at growing intervals. Ours.
	WorkContested = "Contested"

	ReasonAppliedSuccessful  = "AppliedSuccessful"
	ReasonAppliedFailed      = "AppliedFailed"
	ReasonDispatching        = "Dispatching"
	ReasonSuspendDispatching = "SuspendDispatching"
	ReasonChangedRepeatedly  = "ChangedRepeatedly"

	MessageApplied    = "Manifest has been successfully applied"
	MessageDispatched = "Work is being dispatched to member clusters."
	MessageSuspended  = "Work dispatching is in a suspended state."
)

// ManifestStatus is the state of one manifest.
type ManifestStatus struct {
	// Identifier says which manifest.
	// +required
	Identifier ResourceIdentifier `json:"identifier"`

	// Status reflected from the member object.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Health of the member object.
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	// +optional
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceIdentifier says which manifest of a Work a status belongs to.
type ResourceIdentifier struct {
	// Ordinal is the manifest's index.
	// +required
	Ordinal int `json:"ordinal"`

	// Group of the object.
	// +optional
	Group string `json:"group,omitempty"`

	// Version of the object.
	// +required
	Version string `json:"version"`

	// Kind of the object.
	// +required
	Kind string `json:"kind"`

	// Resource is required by the schema and always empty, as Karmada writes it.
	// +required
	Resource string `json:"resource"`

	// Namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +required
	Name string `json:"name"`
}

// ResourceHealth is Healthy, Unhealthy or Unknown.
type ResourceHealth string

// The healths that the API shows; five finer ones are used inside (core/interpret).
const (
	ResourceHealthy   ResourceHealth = "Healthy"
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	ResourceUnknown   ResourceHealth = "Unknown"
)
