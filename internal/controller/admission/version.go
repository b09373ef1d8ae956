package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/admission/protect"
	"github.com/argosy-io/argosy/internal/core/release"
)

// refuseVersionChange refuses that a user makes a version of a ConfigMap, or changes one that pods read. It reads other
// objects only if a version changes.
func (o *objects) refuseVersionChange(ctx context.Context, a admission.Attributes,
	interfaces admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("configmaps") || a.GetSubresource() != "" ||
		a.GetUserInfo().GetName() == user.APIServerUser {
		return nil
	}
	was, is := annotationsOf(a.GetOldObject()), annotationsOf(a.GetObject())
	if err := protect.VersionAnnotation(was, is); err != nil {
		return admission.NewForbidden(a, err)
	}
	if a.GetOperation() != admission.Update || !release.IsVersion(is) {
		return nil
	}
	old, err := templateOf(a.GetOldObject(), a, interfaces)
	if err != nil || old == nil {
		return err
	}
	version, err := templateOf(a.GetObject(), a, interfaces)
	if err != nil || version == nil || !protect.ChangesVersion(old, version) {
		return err
	}
	if err := checkVersion(ctx, o.client, old); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// annotationsOf returns the annotations of an object, which may be nil.
func annotationsOf(obj runtime.Object) map[string]string {
	if obj == nil {
		return nil
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	return accessor.GetAnnotations()
}

// checkVersion returns why a version of a ConfigMap may not be changed or deleted; nil if it may.
func checkVersion(ctx context.Context, c dynamic.Interface, version metav1.Object) error {
	bindings, err := bindingsIn(ctx, c, version.GetNamespace())
	if err != nil {
		return err
	}
	return protect.Version(version, bindings)
}

// bindingsIn returns the ResourceBindings of a namespace.
func bindingsIn(ctx context.Context, c dynamic.Interface, namespace string) ([]workv1alpha2.Binding, error) {
	var all workv1alpha2.ResourceBindingList
	if err := list(ctx, c.Resource(workv1alpha2.GroupVersion.WithResource("resourcebindings")).Namespace(namespace),
		metav1.ListOptions{}, &all); err != nil {
		return nil, fmt.Errorf("list the bindings of namespace %q: %w", namespace, err)
	}
	bindings := make([]workv1alpha2.Binding, len(all.Items))
	for i := range all.Items {
		bindings[i] = &all.Items[i]
	}
	return bindings, nil
}
