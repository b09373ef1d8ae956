package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Work is the manifest of one object for one member cluster. Its namespace is karmada-es-NAME of the cluster.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=works,scope=Namespaced,shortName=wk,categories=karmada-io
// +kubebuilder:printcolumn:JSONPath=`.spec.workload.manifests[*].kind`,name=`WORKLOAD-KIND`,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Applied")].status`,name=`APPLIED`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type Work struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the manifest that the cluster applies.
	Spec WorkSpec `json:"spec"`

	// Status is the state of the object in the cluster. The hub, or the agent of a cluster in Pull mode, writes it.
	Status WorkStatus `json:"status,omitempty"`
}

// WorkList is a list of Work.
// +kubebuilder:object:root=true
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Work `json:"items"`
}

// WorkSpec has the manifest that a cluster applies.
type WorkSpec struct {
	// Workload has the manifest.
	Workload WorkloadTemplate `json:"workload,omitempty"`

	// SuspendDispatching suspends applying the manifest. The status is still collected. Default: false.
	SuspendDispatching *bool `json:"suspendDispatching,omitempty"`

	// PreserveResourcesOnDeletion keeps the object in the cluster when the Work is deleted. Default: false.
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
}

// WorkloadTemplate has manifests. The hub writes exactly one.
type WorkloadTemplate struct {
	// Manifests are the objects to apply.
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is one object for a member.
type Manifest struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	runtime.RawExtension `json:",inline"`
}

// WorkStatus is the state of the object in the cluster.
type WorkStatus struct {
	// Conditions of the Work. See docs/reference/conditions.md.
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ManifestStatuses are the states of the manifests.
	ManifestStatuses []ManifestStatus `json:"manifestStatuses,omitempty"`
}

// Condition types of a Work.
//
//reference:condition Work
const (
	// WorkApplied: the object in the member equals the manifest.
	WorkApplied = "Applied"
	// WorkDispatching: the hub sends the Work. False while dispatching is suspended.
	WorkDispatching = "Dispatching"
	// WorkProgressing: True while the object is rolled out within its deadline, False when the deadline is over.
	// Absent when the object is not progressing.
	WorkProgressing = "Progressing"
	// WorkFailure: True while the hub cannot carry out the Work. The message is the cause alone, for programs; the
	// message of Applied is for people. Not in Karmada.
	WorkFailure = "Failure"
	// WorkScaledByMember: True while an autoscaler in the member sets the replicas there. The message names it. Not in
	// Karmada.
	WorkScaledByMember = "ScaledByMember"
	// WorkHeldAfterRestore: True while the hub was restored from a backup and leaves the different object in the
	// member unchanged. The message has the difference, and how to continue. Not in Karmada.
	WorkHeldAfterRestore = "HeldAfterRestore"
	// WorkHandsOff: True while the annotation argosy.io/hands-off keeps the hub from writing or deleting the object.
	// Not in Karmada.
	WorkHandsOff = "HandsOff"
	// WorkContested: True while a client in the member changes the object repeatedly. The hub corrects it at growing
	// intervals. Not in Karmada.
	WorkContested = "Contested"
)

// Reasons of Failure.
//
//reference:reason Failure of Work
const (
	// ReasonUnreachable: the member did not respond, and did not get the request.
	ReasonUnreachable = "Unreachable"
	// ReasonTimeout: the member did not respond in time. It may have carried out the request.
	ReasonTimeout = "Timeout"
	// ReasonCertificateUntrusted: the hub does not trust the certificate of the member's API server.
	ReasonCertificateUntrusted = "CertificateUntrusted"
	// ReasonClusterNotReady: the hub did not send the request, because the member is known not to respond or another
	// hub manages it.
	ReasonClusterNotReady = "ClusterNotReady"
	// ReasonUnauthorized: the member does not accept the hub's credentials.
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden: the hub's account lacks a permission, or built-in admission of the member denies the request.
	// Kubernetes answers both alike.
	ReasonForbidden = "Forbidden"
	// ReasonKindNotServed: the member does not serve the kind.
	ReasonKindNotServed = "KindNotServed"
	// ReasonNamespaceMissing: the namespace of the object does not exist in the member, or is being deleted there.
	ReasonNamespaceMissing = "NamespaceMissing"
	// ReasonRejected: the member's API server or a webhook rejected the request.
	ReasonRejected = "Rejected"
	// ReasonServerError: the member's API server or a webhook could not carry out the request now. The hub tries again.
	ReasonServerError = "ServerError"
	// ReasonObjectUnmanaged: the object exists in the member and no hub manages it. Conflict resolution Overwrite
	// takes it over.
	ReasonObjectUnmanaged = "ObjectUnmanaged"
	// ReasonObjectOfAnother: the object in the member belongs to another Work or another hub.
	ReasonObjectOfAnother = "ObjectOfAnother"
	// ReasonNotSent: the hub has nothing to send, for example because the manifest cannot be read.
	ReasonNotSent = "NotSent"
)

// The reason of ScaledByMember.
//
//reference:reason ScaledByMember of Work
const (
	// ReasonAutoscaled: the message names the autoscaler.
	ReasonAutoscaled = "Autoscaled"
)

// The reason of HeldAfterRestore, and of Applied and Failure meanwhile.
//
//reference:reason HeldAfterRestore, Applied, Failure of Work
const (
	// ReasonRestored: run `argosy restore status`, and then `argosy restore accept`.
	ReasonRestored = "HubRestored"
)

// The reason of HandsOff, and of Failure meanwhile.
//
//reference:reason HandsOff, Failure of Work
const (
	// ReasonHandsOff: remove the annotation from what the message names: the object in the member, its namespace there,
	// the namespace kube-system there, or the Work.
	ReasonHandsOff = "HandsOff"
)

// The reason of Contested.
//
//reference:reason Contested of Work
const (
	// ReasonChangedRepeatedly: the message has the fields that were changed.
	ReasonChangedRepeatedly = "ChangedRepeatedly"
)

// Reasons of Applied.
//
//reference:reason Applied of Work
const (
	// ReasonAppliedSuccessful: the member has the object.
	ReasonAppliedSuccessful = "AppliedSuccessful"
	// ReasonAppliedFailed: the member does not have it. The message has the error; the reason for programs is that of
	// Failure.
	ReasonAppliedFailed = "AppliedFailed"
)

// Reasons of Dispatching.
//
//reference:reason Dispatching of Work
const (
	// ReasonDispatching: the Work is sent.
	ReasonDispatching = "Dispatching"
	// ReasonSuspendDispatching: the policy or the binding suspends dispatching.
	ReasonSuspendDispatching = "SuspendDispatching"
)

// Messages of conditions. Karmada's tools know them.
const (
	MessageApplied    = "Manifest has been successfully applied"
	MessageDispatched = "Work is being dispatched to member clusters."
	MessageSuspended  = "Work dispatching is in a suspended state."
)

// ManifestStatus is the state of the object of one manifest.
type ManifestStatus struct {
	// Identifier identifies the manifest and its object.
	Identifier ResourceIdentifier `json:"identifier"`

	// Status is the status of the object in the cluster, or the part of it that the interpreter reads.
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Health of the object in the cluster: Healthy, Unhealthy or Unknown.
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceIdentifier identifies a manifest of a Work, and its object.
type ResourceIdentifier struct {
	// Ordinal is the index of the manifest in spec.workload.manifests, counted from 0.
	Ordinal int `json:"ordinal"`

	// Group of the object.
	Group string `json:"group,omitempty"`

	// Version of the object.
	Version string `json:"version"`

	// Kind of the object.
	Kind string `json:"kind"`

	// Resource is always empty. The schema requires it.
	Resource string `json:"resource"`

	// Namespace of the object.
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name"`
}

// ResourceHealth is Healthy, Unhealthy or Unknown.
type ResourceHealth string

// The values of health that the API shows. Internally there are five (core/workload/interpret).
const (
	ResourceHealthy   ResourceHealth = "Healthy"
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	ResourceUnknown   ResourceHealth = "Unknown"
)
