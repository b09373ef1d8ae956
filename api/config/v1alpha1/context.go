package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// ResourceInterpreterContext is the body of a request to an interpreter webhook, and of its response.
// It is never stored.
// +kubebuilder:object:generate=false
type ResourceInterpreterContext struct {
	metav1.TypeMeta `json:",inline"`

	// Request is what the webhook is asked.
	// +optional
	Request *ResourceInterpreterRequest `json:"request,omitempty"`

	// Response is what the webhook answers.
	// +optional
	Response *ResourceInterpreterResponse `json:"response,omitempty"`
}

// ResourceInterpreterRequest is a question about one object.
// +kubebuilder:object:generate=false
type ResourceInterpreterRequest struct {
	// UID of this request; the response repeats it.
	UID types.UID `json:"uid"`

	// Kind of the object.
	Kind metav1.GroupVersionKind `json:"kind"`

	// Name of the object.
	Name string `json:"name"`

	// Namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Operation is the question.
	Operation InterpreterOperation `json:"operation"`

	// Object is the template, the desired object of Retain, or the member's object for InterpretStatus and
	// InterpretHealth.
	Object runtime.RawExtension `json:"object"`

	// ObservedObject is the member's object, for Retain.
	// +optional
	ObservedObject *runtime.RawExtension `json:"observedObject,omitempty"`

	// DesiredReplicas is the number for ReviseReplica.
	// +optional
	DesiredReplicas *int32 `json:"replicas,omitempty"`

	// AggregatedStatus are the members' statuses, for AggregateStatus.
	// +optional
	AggregatedStatus []workv1alpha2.AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// ResourceInterpreterResponse is an answer. Which fields count depends on the operation.
// +kubebuilder:object:generate=false
type ResourceInterpreterResponse struct {
	// UID of the request.
	UID types.UID `json:"uid"`

	// Successful is true if the question was answered. If not, status has the reason.
	Successful bool `json:"successful"`

	// Status is the reason if there is no answer.
	// +optional
	Status *RequestStatus `json:"status,omitempty"`

	// Patch makes of the object of the request the one that is answered: for ReviseReplica, Retain and AggregateStatus.
	// +optional
	Patch []byte `json:"patch,omitempty"`

	// PatchType is JSONPatch (RFC 6902) where there is a patch.
	// +optional
	PatchType *PatchType `json:"patchType,omitempty"`

	// ReplicaRequirements are what one replica needs, for InterpretReplica.
	// +optional
	ReplicaRequirements *workv1alpha2.ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas of the object, for InterpretReplica.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Components of the object, for InterpretComponent.
	// +optional
	Components []workv1alpha2.Component `json:"components,omitempty"`

	// Dependencies of the object, for InterpretDependency.
	// +optional
	Dependencies []DependentObjectReference `json:"dependencies,omitempty"`

	// RawStatus is the status to report, for InterpretStatus.
	// +optional
	RawStatus *runtime.RawExtension `json:"rawStatus,omitempty"`

	// Healthy is the health of the object, for InterpretHealth.
	// +optional
	Healthy *bool `json:"healthy,omitempty"`
}

// RequestStatus is why a webhook did not answer.
// +kubebuilder:object:generate=false
type RequestStatus struct {
	// Message for people.
	// +optional
	Message string `json:"message,omitempty"`

	// Code as of HTTP.
	// +optional
	Code int32 `json:"code,omitempty"`
}

// PatchType is how a patch is written.
type PatchType string

// PatchTypeJSONPatch is RFC 6902.
const PatchTypeJSONPatch PatchType = "JSONPatch"
