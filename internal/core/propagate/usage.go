package propagate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Used returns what a binding uses in its clusters; nothing if spec is nil. All components of a workload are in each of
// its clusters.
func Used(spec *workv1alpha2.ResourceBindingSpec) corev1.ResourceList {
	used := corev1.ResourceList{}
	switch {
	case spec == nil:
	case len(spec.Components) > 0:
		for _, c := range spec.Components {
			if c.ReplicaRequirements != nil {
				add(used, c.ReplicaRequirements.ResourceRequest, int64(c.Replicas)*int64(len(spec.Clusters)))
			}
		}
	case spec.ReplicaRequirements != nil:
		for _, t := range spec.Clusters {
			add(used, spec.ReplicaRequirements.ResourceRequest, int64(t.Replicas))
		}
	}
	return used
}

// Sum returns what bindings use together, by any key.
func Sum[K comparable](bindings map[K]*workv1alpha2.ResourceBinding) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, b := range bindings {
		add(sum, Used(&b.Spec), 1)
	}
	return sum
}

// Demand returns what a template uses if it is in one cluster, or divided; nil if that cannot be read.
func Demand(ctx context.Context, i interpret.Interpreter, template *unstructured.Unstructured) corev1.ResourceList {
	var m Meaning
	if m.Interpret(ctx, i, template) != nil {
		return nil
	}
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{}}}
	m.write(b, template, nil)
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Replicas: b.Spec.Replicas}}
	return Used(&b.Spec)
}

// add adds a multiple of list to sum. Only positive quantities count: the schema of some kinds permits negative ones,
// which would give the quota to others.
func add(sum, list corev1.ResourceList, times int64) {
	for name, q := range list {
		q = q.DeepCopy()
		q.Mul(times)
		if q.Sign() > 0 {
			q.Add(sum[name])
			sum[name] = q
		}
	}
}

// Grows reports whether a binding uses more of a resource after a change; was is nil for a new one.
func Grows(was, is *workv1alpha2.ResourceBindingSpec) bool {
	before := Used(was)
	for name, q := range Used(is) {
		if q.Cmp(before[name]) > 0 {
			return true
		}
	}
	return false
}

// RefusedByQuota reports whether a FederatedResourceQuota has refused the template as it is. Then its binding has the
// requests from before.
func RefusedByQuota(template *unstructured.Unstructured, b workv1alpha2.Binding) bool {
	refused := b.GetAnnotations()[wellknown.QuotaRefusedAnnotation]
	return refused != "" && refused == Digest(template)
}

// Outgrown returns the replicas that the template asks for, and whether enforced quotas have refused its requests or
// have not permitted them yet: they are more than its binding has. replicas is -1 if the interpreter does not answer.
func Outgrown(ctx context.Context, i interpret.Interpreter, template *unstructured.Unstructured,
	b workv1alpha2.Binding) (replicas int32, outgrown bool) {
	var m Meaning
	if m.Interpret(ctx, i, template) != nil {
		return -1, true
	}
	m.SidecarsUnread = true
	asked := b.DeepCopyObject().(workv1alpha2.Binding)
	m.write(asked, template, b)
	sidecars := b.GetAnnotations()[wellknown.SidecarsAnnotation] != "" && !counted(template, b)
	return asked.BindingSpec().Replicas, sidecars || RefusedByQuota(template, b) ||
		Grows(b.BindingSpec(), asked.BindingSpec())
}
