package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// ResourceInterpreterContext is the body of a request to an interpreter webhook, and of its response. It is not stored.
// +kubebuilder:object:generate=false
type ResourceInterpreterContext struct {
	metav1.TypeMeta `json:",inline"`

	// Request has the object and the operation. The hub sets it.
	Request *ResourceInterpreterRequest `json:"request,omitempty"`

	// Response has the result of the operation. The webhook sets it.
	Response *ResourceInterpreterResponse `json:"response,omitempty"`
}

// ResourceInterpreterRequest is an operation on one object.
// +kubebuilder:object:generate=false
type ResourceInterpreterRequest struct {
	// UID identifies the request. The response must have the same UID.
	UID types.UID `json:"uid"`

	// Kind of the object.
	Kind metav1.GroupVersionKind `json:"kind"`

	// Name of the object.
	Name string `json:"name"`

	// Namespace of the object.
	Namespace string `json:"namespace,omitempty"`

	// Operation to carry out, such as InterpretReplica.
	Operation InterpreterOperation `json:"operation"`

	// Object is the template, the desired object for Retain, or the object in the cluster for InterpretStatus and
	// InterpretHealth.
	Object runtime.RawExtension `json:"object"`

	// ObservedObject is the object in the cluster, for Retain.
	ObservedObject *runtime.RawExtension `json:"observedObject,omitempty"`

	// DesiredReplicas is the number of replicas to set, for ReviseReplica.
	DesiredReplicas *int32 `json:"replicas,omitempty"`

	// AggregatedStatus has the status of the object in each cluster, for AggregateStatus.
	AggregatedStatus []workv1alpha2.AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// ResourceInterpreterResponse is the result of an operation. The operation decides which fields are used.
// +kubebuilder:object:generate=false
type ResourceInterpreterResponse struct {
	// UID of the request.
	UID types.UID `json:"uid"`

	// Successful is true if the operation succeeded. If not, status has the error.
	Successful bool `json:"successful"`

	// Status is the error if successful is false.
	Status *RequestStatus `json:"status,omitempty"`

	// Patch changes the object of the request to the result, for ReviseReplica, Retain and AggregateStatus.
	Patch []byte `json:"patch,omitempty"`

	// PatchType is JSONPatch (RFC 6902). Required with a patch.
	PatchType *PatchType `json:"patchType,omitempty"`

	// ReplicaRequirements are the node requirements and resource requests of one replica, for InterpretReplica.
	ReplicaRequirements *workv1alpha2.ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas is the number of replicas of the object, for InterpretReplica.
	Replicas *int32 `json:"replicas,omitempty"`

	// Components of the object, for InterpretComponent.
	Components []workv1alpha2.Component `json:"components,omitempty"`

	// Dependencies are the objects that the object refers to, for InterpretDependency.
	Dependencies []DependentObjectReference `json:"dependencies,omitempty"`

	// RawStatus is the status to report, for InterpretStatus.
	RawStatus *runtime.RawExtension `json:"rawStatus,omitempty"`

	// Healthy is true if the object is healthy, for InterpretHealth.
	Healthy *bool `json:"healthy,omitempty"`
}

// RequestStatus is the error of a webhook.
// +kubebuilder:object:generate=false
type RequestStatus struct {
	// Message explains the error, for people.
	Message string `json:"message,omitempty"`

	// Code is an HTTP status code.
	Code int32 `json:"code,omitempty"`
}

// PatchType is the format of a patch.
type PatchType string

// PatchTypeJSONPatch is a JSON patch (RFC 6902).
const PatchTypeJSONPatch PatchType = "JSONPatch"
