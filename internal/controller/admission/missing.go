package admission

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
)

var (
	services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	roles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1",
		Resource: "clusterroles"}
	roleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1",
		Resource: "rolebindings"}
	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1",
		Resource: "clusterrolebindings"}

	nativeStatefulSets = schema.GroupResource{Group: "apps", Resource: "statefulsets"}
)

// adviseMissing warns the author of a new template of required objects that its pods do not name and that are not on
// the hub. Kinds that cannot be read are skipped.
func (o *objects) adviseMissing(ctx context.Context, r request) {
	if r.old != nil || r.fromHub() || r.fieldValidation() == metav1.FieldValidationIgnore {
		return
	}
	if service := validate.ServiceOf(r.obj); service != "" {
		if _, err := o.client.Resource(services).Namespace(r.GetNamespace()).Get(ctx, service,
			metav1.GetOptions{}); apierrors.IsNotFound(err) {
			warn(ctx, []string{validate.MissingService(r.GetNamespace(), service)}, nil)
		}
	}
	if account := dependency.Reporter(r.obj); account != "" {
		if may, err := o.mayReport(ctx, r.GetNamespace(), account); err == nil && !may {
			warn(ctx, []string{validate.MissingRights(r.GetNamespace(), account)}, nil)
		}
	}
}

// mayReport reports whether a role on the hub lets Workflows report as the account.
func (o *objects) mayReport(ctx context.Context, namespace, account string) (bool, error) {
	for _, all := range []schema.GroupVersionResource{roleBindings, clusterRoleBindings} {
		in := namespace
		if all == clusterRoleBindings {
			in = ""
		}
		bindings, err := o.client.Resource(all).Namespace(in).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		for i := range bindings.Items {
			if !dependency.Binds(&bindings.Items[i], namespace, account) {
				continue
			}
			kind, name := dependency.RoleOf(&bindings.Items[i])
			from := o.client.Resource(roles).Namespace(namespace)
			if kind != dependency.RoleKind {
				from = o.client.Resource(clusterRoles)
			}
			role, err := from.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return false, err
			}
			if dependency.Reports(role) {
				return true, nil
			}
		}
	}
	return false, nil
}

// native returns the request for a StatefulSet of Kubernetes, for which the API server has its own type. ok is false
// for other kinds.
func native(a admission.Attributes, interfaces admission.ObjectInterfaces) (request, bool) {
	if a.GetResource().GroupResource() != nativeStatefulSets || a.GetSubresource() != "" ||
		a.GetOperation() != admission.Create {
		return request{}, false
	}
	obj, err := templateOf(a.GetObject(), a, interfaces)
	return request{Attributes: a, obj: obj}, err == nil && obj != nil
}
