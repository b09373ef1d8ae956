package admission

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	kinds "github.com/argosy-io/argosy/internal/core/kind"
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

// adviseAutoscalers warns the author of a new autoscaler of a workload of others that scale it, too. Kinds that cannot
// be read are skipped.
func (o *objects) adviseAutoscalers(ctx context.Context, a admission.Attributes,
	interfaces admission.ObjectInterfaces) {
	scalers := append(kinds.Scalers(), autoscalingv1alpha1.GroupVersion.WithKind(autoscalingv1alpha1.FederatedHPAKind))
	same := func(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == a.GetKind().GroupKind() }
	if a.GetOperation() != admission.Create || a.GetSubresource() != "" || !slices.ContainsFunc(scalers, same) {
		return
	}
	obj, err := templateOf(a.GetObject(), a, interfaces)
	if err != nil || obj == nil || (request{Attributes: a}).fieldValidation() == metav1.FieldValidationIgnore {
		return
	}
	workload, name, ok := kinds.Facts(obj).Target(obj.Object)
	for _, gvk := range scalers {
		m, err := o.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil || !ok {
			continue
		}
		others, err := o.client.Resource(m.Resource).Namespace(a.GetNamespace()).List(ctx,
			metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			continue
		}
		for i := range others.Items {
			other := &others.Items[i]
			gk, of, _ := kinds.Lookup(gvk.GroupKind()).Target(other.Object)
			if gk == workload && of == name && !(same(gvk) && other.GetName() == obj.GetName()) {
				warn(ctx, []string{fmt.Sprintf("%s %s scales %s %s, too: they undo each other's replicas; keep one of them",
					gvk.Kind, other.GetName(), workload.Kind, name)}, nil)
			}
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
