package kruise

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	convertkruise "github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// CloneSet and StatefulSet in the versions that the real manager stores them in as of 1.8.
var (
	CloneSetKind    = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}
	StatefulSetKind = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"}
)

// The other kinds that are simulated, in any version.
var (
	SidecarSetKind       = schema.GroupKind{Group: "apps.kruise.io", Kind: "SidecarSet"}
	UnitedDeploymentKind = schema.GroupKind{Group: "apps.kruise.io", Kind: "UnitedDeployment"}
	BroadcastJobKind     = schema.GroupKind{Group: "apps.kruise.io", Kind: "BroadcastJob"}
)

// Labels, annotations, conditions and values of OpenKruise.
const (
	instanceIDLabel        = "apps.kruise.io/cloneset-instance-id"
	lifecycleLabel         = "lifecycle.apps.kruise.io/state"
	inPlaceStateAnnotation = "apps.kruise.io/inplace-update-state"
	inPlaceReady           = corev1.PodConditionType("InPlaceUpdateReady")

	recreate          = "ReCreate"
	inPlaceIfPossible = "InPlaceIfPossible"
	inPlaceOnly       = "InPlaceOnly"

	rollingUpdate = "RollingUpdate"
	onDelete      = "OnDelete"
	parallel      = "Parallel"
)

// Object is the part of an object that the simulation acts on.
type Object[Spec, Status any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status"`
}

// The kinds that are simulated: a CloneSet of v1alpha1, a StatefulSet of v1beta1, the others in any version.
type (
	CloneSet         = Object[CloneSetSpec, CloneSetStatus]
	StatefulSet      = Object[StatefulSetSpec, StatefulSetStatus]
	BroadcastJob     = Object[BroadcastJobSpec, BroadcastJobStatus]
	SidecarSet       = Object[SidecarSetSpec, SidecarSetStatus]
	UnitedDeployment = Object[UnitedDeploymentSpec, UnitedDeploymentStatus]
)

// CloneSetSpec is complete once admission has defaulted it; a nil value then has the meaning of its default.
type CloneSetSpec struct {
	Replicas             *int32                         `json:"replicas,omitempty"`
	Selector             *metav1.LabelSelector          `json:"selector"`
	Template             corev1.PodTemplateSpec         `json:"template"`
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	ScaleStrategy        struct {
		PodsToDelete []string `json:"podsToDelete,omitempty"`
	} `json:"scaleStrategy"`
	UpdateStrategy  CloneSetUpdateStrategy `json:"updateStrategy"`
	MinReadySeconds int32                  `json:"minReadySeconds,omitempty"`
}

// CloneSetUpdateStrategy is the one of v1alpha1.
type CloneSetUpdateStrategy struct {
	Type           string              `json:"type,omitempty"`
	Partition      *intstr.IntOrString `json:"partition,omitempty"`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	MaxSurge       *intstr.IntOrString `json:"maxSurge,omitempty"`
	Paused         bool                `json:"paused,omitempty"`
}

// readCloneSet reads a CloneSet of either version as one of v1alpha1, except that the type of its update may also be
// OnDelete and that its apiVersion stays what it is.
func readCloneSet(u *unstructured.Unstructured) (*CloneSet, error) {
	old, err := convertkruise.Convert(u, CloneSetKind.GroupVersion().String())
	if err != nil {
		return nil, err
	}
	cs, err := read[CloneSet](old)
	if err != nil {
		return nil, err
	}
	cs.APIVersion = u.GetAPIVersion()
	if way, _, _ := unstructured.NestedString(u.Object, "spec", "updateStrategy", "type"); way == onDelete {
		cs.Spec.UpdateStrategy.Type = onDelete
	}
	return cs, nil
}

// SetStatus is what CloneSets and StatefulSets report alike. Only active pods count.
type SetStatus struct {
	ObservedGeneration       int64       `json:"observedGeneration,omitempty"`
	Replicas                 int32       `json:"replicas"`
	ReadyReplicas            int32       `json:"readyReplicas"`
	AvailableReplicas        int32       `json:"availableReplicas"`
	UpdatedReplicas          int32       `json:"updatedReplicas"`
	UpdatedReadyReplicas     int32       `json:"updatedReadyReplicas"`
	UpdatedAvailableReplicas int32       `json:"updatedAvailableReplicas"`
	CurrentRevision          string      `json:"currentRevision,omitempty"`
	UpdateRevision           string      `json:"updateRevision,omitempty"`
	Conditions               []Condition `json:"conditions,omitempty"`
	LabelSelector            string      `json:"labelSelector,omitempty"`
}

// CloneSetStatus is the status of a CloneSet.
type CloneSetStatus struct {
	SetStatus               `json:",inline"`
	ExpectedUpdatedReplicas int32 `json:"expectedUpdatedReplicas"`
}

// Condition is a condition. Only those of BroadcastJobs have a lastProbeTime.
type Condition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	LastProbeTime      *metav1.Time           `json:"lastProbeTime,omitempty"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitempty"`
	Reason             string                 `json:"reason,omitempty"`
	Message            string                 `json:"message,omitempty"`
}

// StatefulSetSpec is complete once admission has defaulted it; a nil value then has the meaning of its default.
type StatefulSetSpec struct {
	Replicas             *int32                         `json:"replicas,omitempty"`
	Selector             *metav1.LabelSelector          `json:"selector"`
	Template             corev1.PodTemplateSpec         `json:"template"`
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	ServiceName          string                         `json:"serviceName,omitempty"`
	PodManagementPolicy  string                         `json:"podManagementPolicy,omitempty"`
	UpdateStrategy       struct {
		Type          string `json:"type,omitempty"`
		RollingUpdate *struct {
			Partition       *int32              `json:"partition,omitempty"`
			MaxUnavailable  *intstr.IntOrString `json:"maxUnavailable,omitempty"`
			PodUpdatePolicy string              `json:"podUpdatePolicy,omitempty"`
			Paused          bool                `json:"paused,omitempty"`
			MinReadySeconds *int32              `json:"minReadySeconds,omitempty"`
		} `json:"rollingUpdate,omitempty"`
	} `json:"updateStrategy"`
	ReserveOrdinals []any `json:"reserveOrdinals,omitempty"`
}

// StatefulSetStatus is the status of an Advanced StatefulSet.
type StatefulSetStatus struct {
	SetStatus       `json:",inline"`
	CurrentReplicas int32 `json:"currentReplicas"`
}

// read turns what the API holds into a typed copy.
func read[T any](u *unstructured.Unstructured) (*T, error) {
	var out T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &out); err != nil {
		return nil, err
	}
	return &out, nil
}
