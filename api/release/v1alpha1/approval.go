package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ReleaseApproval is the verdict of one user about one gate of a release. It counts for one revision and one attempt of
// the stage, and cannot be changed.
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

	// Spec is the verdict.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a ReleaseApproval cannot be changed"
	// +required
	Spec ReleaseApprovalSpec `json:"spec"`
}

// ReleaseApprovalList is a list of ReleaseApprovals.
// +kubebuilder:object:root=true
type ReleaseApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReleaseApproval `json:"items"`
}

// ReleaseApprovalSpec is a verdict.
type ReleaseApprovalSpec struct {
	// Release is the name of the release, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Release string `json:"release"`

	// ReleaseUID is the uid of the release, so that the verdict does not count for another one of the same name.
	// +required
	ReleaseUID types.UID `json:"releaseUID"`

	// Revision is status.revision of the release.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Revision string `json:"revision"`

	// Stage is the name of the stage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Stage string `json:"stage"`

	// Position of the gate: before or after the stage.
	// +kubebuilder:validation:Enum=Before;After
	// +kubebuilder:default=Before
	// +optional
	Position GatePosition `json:"position,omitempty"`

	// Gate is the name of the gate.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Gate string `json:"gate"`

	// Attempt of the stage, as in the status of the release.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=1
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// Verdict is Approve or Reject.
	// +kubebuilder:validation:Enum=Approve;Reject
	// +required
	Verdict ApprovalVerdict `json:"verdict"`

	// Comment is for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Comment string `json:"comment,omitempty"`

	// By is the user who gave the verdict. The hub sets it and replaces other values.
	// +optional
	By *ReleaseUser `json:"by,omitempty"`
}

// ApprovalVerdict is the verdict of a user on a gate.
type ApprovalVerdict string

// The verdicts.
const (
	VerdictApprove ApprovalVerdict = "Approve"
	VerdictReject  ApprovalVerdict = "Reject"
)
