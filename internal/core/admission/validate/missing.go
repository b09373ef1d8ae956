package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/kind"
	values "github.com/argosy-io/argosy/internal/core/object/fields"
)

// ServiceOf returns the Service by which the pods of a StatefulSet, of either group, have names of their own; empty for
// other kinds.
func ServiceOf(obj *unstructured.Unstructured) string {
	if !kind.Facts(obj).Pods.Ordinals {
		return ""
	}
	return values.Text(obj.Object, "spec", "serviceName")
}

// MissingService returns the warning about a StatefulSet that names a Service that is not on the hub.
func MissingService(namespace, service string) string {
	return fmt.Sprintf("spec.serviceName: there is no Service %q in namespace %q on the hub yet; without it the pods have no DNS names: "+
		"create it as a headless Service, and propagate it with propagateDeps or by a policy, or make sure that members have it", service, namespace)
}

// MissingRights returns the warning about a Workflow whose service account cannot report results on the hub.
func MissingRights(namespace, account string) string {
	return fmt.Sprintf("the ServiceAccount %q in namespace %q has no role on the hub that lets steps report their results: steps fail in members where it has none; "+
		"bind a Role to it that may create and patch workflowtaskresults.argoproj.io, which follows with propagateDeps, or make sure that members have one", account, namespace)
}
