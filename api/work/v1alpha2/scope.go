package v1alpha2

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Binding is a ResourceBinding or a ClusterResourceBinding.
// +kubebuilder:object:generate=false
type Binding interface {
	metav1.Object
	runtime.Object
	// BindingSpec is the binding's spec, not a copy.
	BindingSpec() *ResourceBindingSpec
	// BindingStatus is the binding's status, not a copy.
	BindingStatus() *ResourceBindingStatus
}

func (b *ResourceBinding) BindingSpec() *ResourceBindingSpec { return &b.Spec }

func (b *ResourceBinding) BindingStatus() *ResourceBindingStatus { return &b.Status }

func (b *ClusterResourceBinding) BindingSpec() *ResourceBindingSpec { return &b.Spec }

func (b *ClusterResourceBinding) BindingStatus() *ResourceBindingStatus { return &b.Status }

// HasTarget reports whether one of the targets is the cluster.
func HasTarget(targets []TargetCluster, cluster string) bool {
	return slices.ContainsFunc(targets, func(t TargetCluster) bool { return t.Name == cluster })
}

// DescribeTargets returns targets for people: "member1:2, member2:1".
func DescribeTargets(targets []TargetCluster) string {
	all := make([]string, len(targets))
	for i, t := range targets {
		all[i] = fmt.Sprintf("%s:%d", t.Name, t.Replicas)
	}
	return strings.Join(all, ", ")
}

// ReplicasIn returns the replicas that targets have in a cluster; 0 if it is none of them.
func ReplicasIn(targets []TargetCluster, cluster string) int32 {
	for i := range targets {
		if targets[i].Name == cluster {
			return targets[i].Replicas
		}
	}
	return 0
}
