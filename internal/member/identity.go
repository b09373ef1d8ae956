package member

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClusterID returns the cluster's own property if it has one, otherwise the UID of its namespace kube-system.
func ClusterID(ctx context.Context, c client.Reader) (string, error) {
	property := &unstructured.Unstructured{}
	property.SetGroupVersionKind(schema.GroupVersionKind{Group: "about.k8s.io", Version: "v1alpha1",
		Kind: "ClusterProperty"})
	err := c.Get(ctx, types.NamespacedName{Name: "cluster.clusterset.k8s.io"}, property)
	if err == nil {
		if id, _, _ := unstructured.NestedString(property.Object, "spec", "value"); id != "" {
			return id, nil
		}
	} else if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return "", err
	}
	system := &corev1.Namespace{}
	if err := c.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", err
	}
	return string(system.UID), nil
}
