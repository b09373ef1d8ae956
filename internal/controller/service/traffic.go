package service

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/remedy"
	"github.com/argosy-io/argosy/internal/core/source/service"
)

// control has the clusters and the Remedies that decide about traffic. The actions in the status of Clusters are only a
// report: they are written one by one, and the first clusters would be replaced by others that are about to be cut.
type control struct {
	clusters []*clusterv1alpha1.Cluster
	remedies []remedyv1alpha1.Remedy
	// controlled are the clusters with the action TrafficControl.
	controlled map[string]bool
}

// control reads the Remedies. An error must leave all traffic as it is.
func (x *exchanges) control(ctx context.Context, clusters []*clusterv1alpha1.Cluster) (control, error) {
	var list remedyv1alpha1.RemedyList
	if err := x.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return control{}, fmt.Errorf("list Remedies: %w", err)
	}
	c := control{clusters, list.Items, map[string]bool{}}
	for _, cluster := range clusters {
		if slices.Contains(remedy.Actions(cluster, list.Items), string(remedyv1alpha1.TrafficControl)) {
			c.controlled[cluster.Name] = true
		}
	}
	return c, nil
}

// conditions returns conditions with the given ones set, and TrafficKept set or removed.
func (x *exchanges) conditions(was []metav1.Condition, generation int64, c control, t remedy.Traffic,
	set ...metav1.Condition) []metav1.Condition {
	those := slices.DeleteFunc(slices.Clone(c.clusters), func(cluster *clusterv1alpha1.Cluster) bool {
		return !slices.Contains(t.Kept, cluster.Name)
	})
	kept := remedy.KeptCondition(t, remedy.Giving(remedyv1alpha1.TrafficControl, those, c.remedies),
		meta.FindStatusCondition(was, networkingv1alpha1.TrafficKept))
	if kept != nil {
		set = append(set, *kept)
	}
	is := service.SetConditions(was, generation, metav1.NewTime(x.Clock.Now()), set...)
	if kept == nil {
		meta.RemoveStatusCondition(&is, networkingv1alpha1.TrafficKept)
	}
	return is
}

// warnKept records an event if the condition TrafficKept is new.
func (x *exchanges) warnKept(obj client.Object, was, is []metav1.Condition) {
	if c := meta.FindStatusCondition(is, networkingv1alpha1.TrafficKept); c != nil &&
		!meta.IsStatusConditionTrue(was, networkingv1alpha1.TrafficKept) {
		x.events.Event(obj, corev1.EventTypeWarning, remedy.EventTrafficKept, c.Message)
	}
}
