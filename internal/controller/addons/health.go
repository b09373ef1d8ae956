package addons

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	"github.com/argosy-io/argosy/internal/commit"
	core "github.com/argosy-io/argosy/internal/core/source/ocm/addons"
)

// health writes the state of its add-ons into the labels of a ManagedCluster, and that a cluster is silent into its
// add-ons.
type health struct{ *reconciler }

func (h *health) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	mc := &clusterv1.ManagedCluster{}
	if err := h.client.Get(ctx, client.ObjectKey{Name: req.Name}, mc); err != nil || mc.DeletionTimestamp != nil ||
		meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ClusterAvailable) == nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var list addonv1beta1.ManagedClusterAddOnList
	if err := h.client.List(ctx, &list, client.InNamespace(mc.Name)); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the add-ons of cluster %q: %w", mc.Name, err)
	}
	var failures []error
	if silent := core.Silent(mc); silent != nil {
		for i := range list.Items {
			want := list.Items[i].DeepCopy()
			meta.SetStatusCondition(&want.Status.Conditions, metav1.Condition{Type: addonv1alpha1.Available,
				Status: silent.Status, Reason: silent.Reason, Message: silent.Message,
				LastTransitionTime: metav1.NewTime(h.Clock.Now())})
			_, err := commit.Status(ctx, h.client, &list.Items[i], want)
			failures = append(failures, client.IgnoreNotFound(err))
			list.Items[i] = *want
		}
	}
	want := mc.DeepCopy()
	want.Labels = maps.Clone(mc.Labels)
	maps.DeleteFunc(want.Labels, func(key, _ string) bool { return strings.HasPrefix(key, clusterv1.AddonLabelPrefix) })
	for key, value := range core.FeatureLabels(list.Items) {
		metav1.SetMetaDataLabel(&want.ObjectMeta, key, value)
	}
	if !maps.Equal(mc.Labels, want.Labels) {
		_, err := commit.Update(ctx, h.client, mc, want)
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return commit.Requeue(0, errors.Join(failures...))
}
