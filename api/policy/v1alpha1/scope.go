package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Propagation is a PropagationPolicy or a ClusterPropagationPolicy.
// +kubebuilder:object:generate=false
type Propagation interface {
	metav1.Object
	runtime.Object
	// PropagationSpec is the policy's spec, not a copy.
	PropagationSpec() *PropagationSpec
}

func (p *PropagationPolicy) PropagationSpec() *PropagationSpec { return &p.Spec }

func (p *ClusterPropagationPolicy) PropagationSpec() *PropagationSpec { return &p.Spec }

// Override is an OverridePolicy or a ClusterOverridePolicy.
// +kubebuilder:object:generate=false
type Override interface {
	metav1.Object
	runtime.Object
	// OverrideSpec is the policy's spec, not a copy.
	OverrideSpec() *OverrideSpec
}

func (p *OverridePolicy) OverrideSpec() *OverrideSpec { return &p.Spec }

func (p *ClusterOverridePolicy) OverrideSpec() *OverrideSpec { return &p.Spec }
