package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ReleaseApproval is the approval or rejection of a gate of a release by one user. It is valid for one revision and one
// attempt of the stage, and cannot be changed.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=releaseapprovals,scope=Namespaced,shortName=rap
// +kubebuilder:printcolumn:JSONPath=`.spec.release`,name=`RELEASE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.stage`,name=`STAGE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.gate`,name=`GATE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.verdict`,name=`VERDICT`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.by.user`,name=`BY`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ReleaseApproval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the gate and the verdict.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a ReleaseApproval cannot be changed"
	Spec ReleaseApprovalSpec `json:"spec"`
}

// ReleaseApprovalList is a list of ReleaseApprovals.
// +kubebuilder:object:root=true
type ReleaseApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReleaseApproval `json:"items"`
}

// ReleaseApprovalSpec has the gate and the verdict of a user.
type ReleaseApprovalSpec struct {
	// Release is the name of the release, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Release string `json:"release"`

	// ReleaseUID is the UID of the release, so that the verdict is not valid for another release of the same name.
	ReleaseUID types.UID `json:"releaseUID"`

	// Revision is status.revision of the release.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision"`

	// Stage is the name of the stage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Stage string `json:"stage"`

	// Position of the gate: Before or After the stage. Default: Before.
	// +kubebuilder:validation:Enum=Before;After
	// +kubebuilder:default=Before
	Position GatePosition `json:"position,omitempty"`

	// Gate is the name of the gate.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Gate string `json:"gate"`

	// Attempt of the stage, as in status.stages of the release. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=1
	Attempt int32 `json:"attempt,omitempty"`

	// Verdict is Approve or Reject.
	// +kubebuilder:validation:Enum=Approve;Reject
	Verdict ApprovalVerdict `json:"verdict"`

	// Comment of the user, for people.
	// +kubebuilder:validation:MaxLength=1024
	Comment string `json:"comment,omitempty"`

	// By is the user who gave the verdict. The hub sets it and replaces other values.
	By *ReleaseUser `json:"by,omitempty"`
}

// ApprovalVerdict is the verdict of a user on a gate.
type ApprovalVerdict string

const (
	VerdictApprove ApprovalVerdict = "Approve"
	VerdictReject  ApprovalVerdict = "Reject"
)
