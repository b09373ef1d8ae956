package execute

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// HandsOff returns why the hub must not touch the object of w; empty if it may. observed is the object in the member,
// nil for none.
func HandsOff(w *workv1alpha1.Work, observed *unstructured.Unstructured) string {
	switch {
	case observed != nil && IsHandsOff(observed):
		return handsOff("object in the member", "the object")
	case w.Annotations[wellknown.HandsOffAnnotation] == "true":
		return handsOff("Work", "the object")
	}
	return ""
}

func handsOff(where, what string) string {
	return fmt.Sprintf("the annotation %s is set on the %s: the hub neither writes nor deletes %s until it is removed",
		wellknown.HandsOffAnnotation, where, what)
}

// IsHandsOff reports whether an object in a member has wellknown.HandsOffAnnotation.
func IsHandsOff(obj *unstructured.Unstructured) bool {
	return field(obj, "annotations", wellknown.HandsOffAnnotation) == "true"
}

// BrakeNamespace is the namespace of a member where wellknown.HandsOffAnnotation counts for the whole cluster.
const BrakeNamespace = "kube-system"

// Brake is the namespace of a member whose annotation wellknown.HandsOffAnnotation keeps the hub from an object; empty
// for none.
type Brake string

// BrakeOn returns the brake that keeps the hub from the objects in a namespace of a cluster, or from cluster-scoped
// objects if namespace is empty; empty for none, or if c is nil.
func BrakeOn(c *clusterv1alpha1.Cluster, namespace string) Brake {
	if c == nil {
		return ""
	}
	for _, set := range c.Status.Brakes {
		if set == BrakeNamespace || set == namespace {
			return Brake(set)
		}
	}
	return ""
}

// Explain returns the sentence that the brake is set in a cluster, and how to remove it.
func (b Brake) Explain(cluster string) (what, next string) {
	if b == BrakeNamespace {
		return fmt.Sprintf("brake on %s: the hub writes and deletes nothing in the cluster", cluster),
			fmt.Sprintf("`argosy brake off -C %s` lets the hub continue", cluster)
	}
	return fmt.Sprintf("brake on namespace %s of %s: the hub writes and deletes nothing in it", string(b), cluster),
		fmt.Sprintf("`argosy brake off -C %s -n %s` lets the hub continue", cluster, string(b))
}

// Reason returns why the hub must not write or delete an object; empty if it may.
func (b Brake) Reason() string {
	switch b {
	case "":
		return ""
	case BrakeNamespace:
		return handsOff("namespace "+BrakeNamespace+" of the member", "any object in the cluster")
	}
	return handsOff("namespace "+string(b)+" of the member", "the objects in it")
}

// Ended returns the message that the hub writes again because the annotation was removed.
func (b Brake) Ended() string {
	return fmt.Sprintf("the annotation %s is no longer set on the namespace %s of the member",
		wellknown.HandsOffAnnotation, string(b))
}

// Stop returns a without its writes and deletions. An action that changes nothing in the member stays, so that a brake
// costs no write for an object that is up to date.
func (b Brake) Stop(a Action) Action {
	switch a.Kind {
	case Create, Apply, Delete, Release:
		if reason := b.Reason(); reason != "" {
			return Action{Kind: Leave, Reason: reason}
		}
	}
	return a
}
