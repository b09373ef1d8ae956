package service

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/remedy"
	"github.com/argosy-io/argosy/internal/filter"
)

// retitled selects Remedies that were created, deleted or changed: messages name them. What they do to a cluster is in
// its status, which causes an event of its own.
var retitled = predicate.And[client.Object](filter.AfterStart, predicate.GenerationChangedPredicate{})

// controlled returns the clusters with the action TrafficControl.
func controlled(clusters []*clusterv1alpha1.Cluster) map[string]bool {
	all := map[string]bool{}
	for _, c := range clusters {
		if remedy.IsControlled(c) {
			all[c.Name] = true
		}
	}
	return all
}

// kept returns the condition TrafficKept; none if it is to be removed. An error leaves it as it is.
func (x *exchanges) kept(ctx context.Context, t remedy.Traffic, clusters []*clusterv1alpha1.Cluster,
	was []metav1.Condition) ([]metav1.Condition, error) {
	var remedies []string
	if len(t.Kept) > 0 {
		var list remedyv1alpha1.RemedyList
		if err := x.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list Remedies: %w", err)
		}
		those := slices.DeleteFunc(slices.Clone(clusters), func(c *clusterv1alpha1.Cluster) bool {
			return !slices.Contains(t.Kept, c.Name)
		})
		remedies = remedy.Giving(remedyv1alpha1.TrafficControl, those, list.Items)
	}
	c := remedy.KeptCondition(t, remedies, meta.FindStatusCondition(was, networkingv1alpha1.TrafficKept))
	if c == nil {
		return nil, nil
	}
	return []metav1.Condition{*c}, nil
}

// warnKept records an event if the condition TrafficKept is new. was are the conditions before.
func (x *exchanges) warnKept(obj client.Object, was, kept []metav1.Condition) {
	if len(kept) > 0 && !meta.IsStatusConditionTrue(was, networkingv1alpha1.TrafficKept) {
		x.events.Event(obj, corev1.EventTypeWarning, remedy.EventTrafficKept, kept[0].Message)
	}
}
