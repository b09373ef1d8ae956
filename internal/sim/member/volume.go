package member

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	storageClass = "sim"
	provisioner  = "sim.argosy.io"
)

// volumes binds every claim at once to a volume of its own that stores nothing, whatever its class, and removes the
// volume with the claim. It stands for a provisioner and the volume binder.
type volumes struct{ client client.Client }

func addVolumes(mgr ctrl.Manager) error {
	v := &volumes{mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).Named("volumes").
		For(&corev1.PersistentVolumeClaim{}).
		Owns(&corev1.PersistentVolume{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		Complete(v)
}

func (v *volumes) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var claim corev1.PersistentVolumeClaim
	err := v.client.Get(ctx, req.NamespacedName, &claim)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, v.removeVolumes(ctx, req.NamespacedName)
	}
	if err != nil || claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimBound {
		return reconcile.Result{}, err
	}
	name := "pvc-" + string(claim.UID)
	if claim.Spec.VolumeName == "" {
		ref, err := reference.GetReference(v.client.Scheme(), &claim)
		if err != nil {
			return reconcile.Result{}, err
		}
		volume := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name,
				Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": provisioner}},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:                      claim.Spec.Resources.Requests,
				AccessModes:                   claim.Spec.AccessModes,
				StorageClassName:              ptr.Deref(claim.Spec.StorageClassName, ""),
				ClaimRef:                      ref,
				VolumeMode:                    claim.Spec.VolumeMode,
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: provisioner, VolumeHandle: name,
				}},
			},
		}
		if err := v.client.Create(ctx, volume); err != nil && !apierrors.IsAlreadyExists(err) {
			return reconcile.Result{}, fmt.Errorf("make volume %s: %w", name, err)
		}
	}
	return reconcile.Result{}, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := v.client.Get(ctx, req.NamespacedName, &claim); err != nil {
			return client.IgnoreNotFound(err)
		}
		if claim.Spec.VolumeName == "" {
			claim.Spec.VolumeName = name
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "pv.kubernetes.io/bound-by-controller", "yes")
			if err := v.client.Update(ctx, &claim); err != nil {
				return err
			}
		}
		claim.Status = corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
		}
		return v.client.Status().Update(ctx, &claim)
	})
}

func (v *volumes) removeVolumes(ctx context.Context, claim types.NamespacedName) error {
	var all corev1.PersistentVolumeList
	if err := v.client.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		ref := all.Items[i].Spec.ClaimRef
		if ref == nil || ref.Namespace != claim.Namespace || ref.Name != claim.Name {
			continue
		}
		if err := v.client.Delete(ctx, &all.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove volume %s: %w", all.Items[i].Name, err)
		}
	}
	return nil
}
