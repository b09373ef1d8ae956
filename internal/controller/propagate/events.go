package propagate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// fails records an event about what blocks a template, on the template and its policy. It records the same message only
// once.
func (r *reconciler) fails(k key, template *unstructured.Unstructured, p policyv1alpha1.Propagation, reason string,
	err error) {
	if r.failures.IsNew(k, reason+": "+err.Error()) {
		r.events.Event(template, corev1.EventTypeWarning, reason, err.Error())
		r.events.Event(p, corev1.EventTypeWarning, reason, k.template()+": "+err.Error())
	}
}

// template returns how messages about a policy name a template.
func (k key) template() string { return text.Object(k.Kind, k.Namespace, k.Name) }

// describe returns how messages name a policy.
func describe(p policyv1alpha1.Propagation) string {
	if propagate.Namespaced(p) {
		return "policy(" + p.GetNamespace() + "/" + p.GetName() + ")"
	}
	return "cluster policy(" + p.GetName() + ")"
}

// recordMeaning records events about what was read of a workload.
func (r *reconciler) recordMeaning(template *unstructured.Unstructured, m propagate.Meaning) {
	switch {
	case len(m.Components) > 0:
		r.events.RecordStep(workv1alpha2.EventGetComponentsSucceed,
			fmt.Sprintf("Get components(%d) succeed.", len(m.Components)), template)
	case m.Requirements != nil || m.Replicas > 0:
		r.events.RecordStep(workv1alpha2.EventGetReplicasSucceed, fmt.Sprintf("Get replicas(%d) succeed.", m.Replicas),
			template)
	}
}
