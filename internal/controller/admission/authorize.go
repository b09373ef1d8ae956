package admission

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// right is a verb on objects of a resource: on one object or, without a name, on all; in one namespace or, without a
// namespace, in all.
type right struct {
	verb                         string
	resource                     schema.GroupVersionResource
	subresource, namespace, name string
}

// authorized reports whether the user of a request has a right. If not, the error may be why the authorizer could not
// answer.
func (o *objects) authorized(ctx context.Context, a admission.Attributes, of right) (bool, error) {
	return o.authorizedUser(ctx, a.GetUserInfo(), of)
}

// authorizedUser is authorized for any user.
func (o *objects) authorizedUser(ctx context.Context, u user.Info, of right) (bool, error) {
	decision, _, err := o.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: u, Verb: of.verb, ResourceRequest: true, Namespace: of.namespace, Name: of.name,
		APIGroup: of.resource.Group, APIVersion: of.resource.Version, Resource: of.resource.Resource,
		Subresource: of.subresource,
	})
	return decision == authorizer.DecisionAllow, err
}

// require rejects the request of a user without a right. The rest is the reason for the user.
func (o *objects) require(ctx context.Context, a admission.Attributes, of right, format string, args ...any) error {
	allowed, err := o.authorized(ctx, a, of)
	if allowed {
		return nil
	}
	return admission.NewForbidden(a, errors.Join(fmt.Errorf(format, args...), err))
}

// placeOf names a namespace, or all of them if it is empty.
func placeOf(namespace string) string {
	if namespace == "" {
		return "in all namespaces"
	}
	return fmt.Sprintf("in namespace %q", namespace)
}
