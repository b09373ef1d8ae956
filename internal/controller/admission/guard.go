package admission

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

var releaseGuards = releasev1alpha1.GroupVersion.WithResource("releaseguards")

// refuseDirectChange refuses a change of the pods of a workload that would be sent to members at once where a
// ReleaseGuard requires releases.
func (o *objects) refuseDirectChange(ctx context.Context, a admission.Attributes,
	interfaces admission.ObjectInterfaces) error {
	if a.GetOperation() != admission.Update || a.GetSubresource() != "" || a.GetNamespace() == "" ||
		a.GetUserInfo().GetName() == user.APIServerUser || len(fleet.RevisionPaths(a.GetKind().GroupKind())) == 0 {
		return nil
	}
	template, err := templateOf(a.GetObject(), a, interfaces)
	if err != nil || template == nil {
		return err
	}
	old, err := templateOf(a.GetOldObject(), a, interfaces)
	if err != nil || old == nil || !validate.ChangesDirectly(old, template) {
		return err
	}
	// Only a change of pods needs this read, which is rare.
	var guards releasev1alpha1.ReleaseGuardList
	if err := list(ctx, o.client.Resource(releaseGuards), metav1.ListOptions{ResourceVersion: "0"}, &guards); err != nil {
		return fmt.Errorf("list ReleaseGuards: %w", err)
	}
	guard := release.RequiredBy(guards.Items, a.GetNamespace(), releasev1alpha1.RequireEnforce)
	if guard == "" {
		return nil
	}
	return admission.NewForbidden(a, errors.New(validate.DirectChange(template, guard)))
}

// templateOf returns an object of a request in the version of the request; nil if it cannot be a template.
func templateOf(obj runtime.Object, a admission.Attributes,
	interfaces admission.ObjectInterfaces) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u, nil
	}
	if obj == nil || interfaces == nil {
		return nil, nil
	}
	gvk := a.GetKind()
	typed, err := interfaces.GetObjectConvertor().ConvertToVersion(obj, gvk.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("convert %s %s/%s: %w", gvk.Kind, a.GetNamespace(), a.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("decode %s %s/%s: %w", gvk.Kind, a.GetNamespace(), a.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
