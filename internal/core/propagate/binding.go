package propagate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Meaning has the facts about a template that its binding needs besides the policy.
type Meaning struct {
	// Replicas and Requirements are the interpreter's; 0 and nil if the template is no workload, or has Components.
	Replicas     int32
	Requirements *workv1alpha2.ReplicaRequirements
	// Sidecars are the SidecarSets whose containers count in Requirements, by name, sorted.
	Sidecars []string
	// SidecarsUnread is true if the SidecarSets are not known. A binding whose requirements count some keeps these while
	// the template stays.
	SidecarsUnread bool
	// Components of a template with several pod templates.
	Components []workv1alpha2.Component
	// Unread is true if the interpreter did not answer; the binding keeps its values of these three.
	Unread bool
	// SchedulePriority is the value of the policy's priority class; nil without one.
	SchedulePriority *int32
	// ID is the permanent id for a binding that has none.
	ID string
}

// Interpret reads the replicas of a template or, if it has no single number of replicas to divide, its components.
func (m *Meaning) Interpret(ctx context.Context, i interpret.Interpreter, template *unstructured.Unstructured) error {
	replicas, requirements, workload, err := i.Replicas(ctx, template)
	switch {
	case err != nil:
	case workload:
		m.Replicas, m.Requirements = replicas, requirements
	default:
		m.Components, err = i.Components(ctx, template)
	}
	return err
}

// counted reports whether the binding counts SidecarSets for the template as it is; existing is nil if there is none.
func counted(template *unstructured.Unstructured, existing workv1alpha2.Binding) bool {
	return existing != nil && existing.GetAnnotations()[wellknown.SidecarsAnnotation] != "" &&
		existing.GetAnnotations()[wellknown.TemplateDigestAnnotation] == Digest(template)
}

// The reasons why a template has no binding yet though a policy holds it.
var (
	// ErrTerminating: the binding with that name is being deleted. A new one is created afterwards.
	ErrTerminating = errors.New("is being deleted")
	// ErrOutlived reports that the binding belongs to a deleted template of the same name, and must be deleted too.
	ErrOutlived = errors.New("belongs to a template that was deleted and recreated")
	// ErrTaken: the names that the binding may have are taken by other templates.
	ErrTaken = errors.New("is the binding of another template")
)

// Binding returns the binding of template under policy p. existing is the present binding with its name, nil for none.
// No argument is changed. If there is nothing to do, the result equals existing.
//
// It keeps fields of other controllers: clusters, requiredBy, gracefulEvictionTasks, rescheduleTriggeredAt,
// suspension.scheduling, and foreign labels, annotations and finalizers. The error is one of those above.
func Binding(template *unstructured.Unstructured, p policyv1alpha1.Propagation, m Meaning,
	existing workv1alpha2.Binding) (workv1alpha2.Binding, error) {
	b, err := For(template, existing)
	if err != nil {
		return nil, err
	}
	Refer(b, template)
	setVersions(b, template)
	setPodRules(b, template)
	fields.PutAnnotation(b, wellknown.QuotaRefusedAnnotation, "")
	Claim(b, p)
	if PermanentID(b) == "" && m.ID != "" {
		fields.SetLabel(b, BindingIDLabel(b.GetNamespace()), m.ID)
	}
	finalizer(b, workv1alpha2.BindingFinalizer, workv1alpha2.ClusterBindingFinalizer)

	// The spec comes from the policy, the template's meaning, and fields that stay.
	policy, spec := p.PropagationSpec().DeepCopy(), b.BindingSpec()
	spec.Placement = &policy.Placement
	spec.PropagateDeps = policy.PropagateDeps
	spec.SchedulerName = cmp.Or(policy.SchedulerName, policyv1alpha1.DefaultSchedulerName)
	spec.ConflictResolution = cmp.Or(policy.ConflictResolution, policyv1alpha1.ConflictAbort)
	spec.Failover = policy.Failover
	spec.PreserveResourcesOnDeletion = policy.PreserveResourcesOnDeletion
	if existing != nil && len(spec.RequiredBy) > 0 {
		// Keep grants for bindings that require this one while there are any. core/source/dependency sets them without
		// knowing the policy: if they were removed here, the two controllers would undo each other's writes.
		granted := existing.BindingSpec()
		if granted.ConflictResolution == policyv1alpha1.ConflictOverwrite {
			spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
		}
		if ptr.Deref(granted.PreserveResourcesOnDeletion, false) &&
			existing.GetAnnotations()[wellknown.PreservedByPauseAnnotation] == "" {
			spec.PreserveResourcesOnDeletion = new(true)
		}
	}
	spec.Suspension = suspension(policy.Suspension, spec.Suspension)
	pause(b, template)
	spec.SchedulePriority = nil
	if m.SchedulePriority != nil {
		spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: *m.SchedulePriority}
	}
	spec.WorkloadAffinityGroups = affinityGroups(policy.Placement.WorkloadAffinity, template.GetLabels())
	if fleet.NamesClusters(template) {
		divideParts(spec)
	}
	if !m.Unread {
		m.write(b, template, existing)
	}
	return b, nil
}

// write writes the values of the interpreter into b, the next state of existing.
func (m Meaning) write(b workv1alpha2.Binding, template *unstructured.Unstructured, existing workv1alpha2.Binding) {
	spec := b.BindingSpec()
	spec.Replicas = m.Replicas
	spec.Components = m.Components
	if !m.SidecarsUnread || !counted(template, existing) {
		spec.ReplicaRequirements = m.Requirements
		fields.PutAnnotation(b, wellknown.SidecarsAnnotation, strings.Join(m.Sidecars, ","))
	}
	schedule.SetParts(b, Parts(template, spec.Replicas))
	if Single(template) && spec.Placement != nil {
		single(spec, template.GetNamespace(), m.Components)
	}
}

// Read reports whether existing has the template's replicas from an earlier answer of the interpreter, so that it can
// be kept while the interpreter does not answer. A binding that exists only for other bindings has not.
func Read(template *unstructured.Unstructured, existing workv1alpha2.Binding) bool {
	return existing != nil && existing.BindingSpec().Placement != nil && Belongs(template, existing) == nil
}

// For returns a copy of existing if it is the binding of template, and a new one if there is none: with name, scope
// and owner, without spec. The error is one of those above, with names.
func For(template *unstructured.Unstructured, existing workv1alpha2.Binding) (workv1alpha2.Binding, error) {
	if err := Belongs(template, existing); err != nil {
		return nil, err
	}
	var b workv1alpha2.Binding
	if existing == nil {
		b = empty(template.GetNamespace())
		b.SetName(names.Binding(template.GetKind(), template.GetName()))
	} else {
		b = existing.DeepCopyObject().(workv1alpha2.Binding)
	}
	if !metav1.IsControlledBy(b, template) {
		owner := *metav1.NewControllerRef(template, template.GroupVersionKind())
		b.SetOwnerReferences(append(slices.DeleteFunc(slices.Clone(b.GetOwnerReferences()),
			func(o metav1.OwnerReference) bool {
				return o.UID == owner.UID || (o.Controller != nil && *o.Controller)
			}), owner))
	}
	return b, nil
}

// Refer points b at the current template. The resourceVersion changes only with the template's content; see
// wellknown.TemplateDigestAnnotation.
func Refer(b workv1alpha2.Binding, template *unstructured.Unstructured) {
	digest, was := Digest(template), b.BindingSpec().Resource
	ref := workv1alpha2.ObjectReference{
		APIVersion:      template.GetAPIVersion(),
		Kind:            template.GetKind(),
		Namespace:       template.GetNamespace(),
		Name:            template.GetName(),
		UID:             template.GetUID(),
		ResourceVersion: template.GetResourceVersion(),
	}
	if was.UID == ref.UID && was.ResourceVersion != "" &&
		b.GetAnnotations()[wellknown.TemplateDigestAnnotation] == digest {
		ref.ResourceVersion = was.ResourceVersion
	}
	b.BindingSpec().Resource = ref
	fields.PutAnnotation(b, wellknown.TemplateDigestAnnotation, digest)
}

// Owner returns the UID of the template that owns the binding; empty if an orphaning deletion of its template left it.
// The next template of that name adopts it.
func Owner(b workv1alpha2.Binding) types.UID {
	if owner := metav1.GetControllerOf(b); owner != nil {
		return owner.UID
	}
	return ""
}

// IsBindingOf reports whether the binding's template has this group, kind and name. Bindings of kinds in other groups
// may have the same name.
func IsBindingOf(b workv1alpha2.Binding, gk schema.GroupKind, name string) bool {
	ref := b.BindingSpec().Resource
	return ref.Name == name && match.GroupKind(ref.APIVersion, ref.Kind) == gk
}

func TemplateOfBinding(b workv1alpha2.Binding) identity.Object {
	ref := b.BindingSpec().Resource
	gk := match.GroupKind(ref.APIVersion, ref.Kind)
	return identity.Object{Group: gk.Group, Kind: gk.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// Find returns the binding of the object named, nil if there is none, and the name that a new one is to have:
// Karmada's, unless the binding of another template has it. Where others have all names, free is empty. get reads a
// binding, nil if there is none.
//
// A binding keeps its name: one that was made while Karmada's name was taken is found when that is free.
func Find(gk schema.GroupKind, namespace, name string,
	get func(types.NamespacedName) (workv1alpha2.Binding, error)) (b workv1alpha2.Binding, free string, err error) {
	// Keep this order: a cache that shows the deletion of the first also shows the second one, which was created before.
	for _, candidate := range names.Bindings(gk, name) {
		b, err := get(types.NamespacedName{Namespace: namespace, Name: candidate})
		switch {
		case err != nil:
			return nil, "", err
		case b == nil && free == "":
			free = candidate
		case b != nil && IsBindingOf(b, gk, name):
			return b, "", nil
		}
	}
	return nil, free, nil
}

// TakenError reports that other templates use all names that the binding of the object could have.
func TakenError(gk schema.GroupKind, name string) error {
	return fmt.Errorf("binding %s %w, and so is %s: rename %s %s", names.Binding(gk.Kind, name), ErrTaken,
		names.BindingApart(gk, name), gk, name)
}

// PermanentID returns the id by which Works name the binding; empty until it has one.
func PermanentID(b workv1alpha2.Binding) string {
	return b.GetLabels()[BindingIDLabel(b.GetNamespace())]
}

// empty returns a binding of the scope that the namespace implies. The core cannot import scope, which needs clients.
func empty(namespace string) workv1alpha2.Binding {
	if namespace == "" {
		return &workv1alpha2.ClusterResourceBinding{}
	}
	return &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
}

// Belongs returns why existing is not, or not any more, the binding of template; nil if it is, or if there is none.
func Belongs(template *unstructured.Unstructured, existing workv1alpha2.Binding) error {
	if existing == nil {
		return nil
	}
	var why error
	ref := existing.BindingSpec().Resource
	owner := Owner(existing)
	switch {
	case !IsBindingOf(existing, match.TemplateOf(template).GroupKind(), template.GetName()):
		return fmt.Errorf("binding %s %w: %s %s",
			existing.GetName(), ErrTaken, match.GroupKind(ref.APIVersion, ref.Kind), ref.Name)
	case existing.GetDeletionTimestamp() != nil:
		why = ErrTerminating
	case owner != "" && owner != template.GetUID():
		why = ErrOutlived
	default:
		return nil
	}
	return fmt.Errorf("binding %s of %s %w", existing.GetName(), describe(template), why)
}

// suspension returns the policy's, with the scheduling suspension that others set; nil if neither is set.
func suspension(policy *policyv1alpha1.Suspension, was *workv1alpha2.Suspension) *workv1alpha2.Suspension {
	var s workv1alpha2.Suspension
	if was != nil {
		s.Scheduling = was.Scheduling
	}
	if policy != nil {
		s.Suspension = *policy
	} else if s.Scheduling == nil {
		return nil
	}
	return &s
}

// affinityGroups returns the groups that the template's labels put it into; nil for none.
func affinityGroups(a *policyv1alpha1.WorkloadAffinity, labels map[string]string) *workv1alpha2.WorkloadAffinityGroups {
	if a == nil {
		return nil
	}
	group := func(term *policyv1alpha1.WorkloadAffinityTerm) string {
		if term == nil {
			return ""
		}
		if value, ok := labels[term.GroupByLabelKey]; ok {
			return term.GroupByLabelKey + "=" + value
		}
		return ""
	}
	g := workv1alpha2.WorkloadAffinityGroups{AffinityGroup: group(a.Affinity), AntiAffinityGroup: group(a.AntiAffinity)}
	if g == (workv1alpha2.WorkloadAffinityGroups{}) {
		return nil
	}
	return &g
}

// finalizer adds the one of the binding's scope unless it is there.
func finalizer(b workv1alpha2.Binding, namespaced, cluster string) {
	f := namespaced
	if b.GetNamespace() == "" {
		f = cluster
	}
	if !slices.Contains(b.GetFinalizers(), f) {
		b.SetFinalizers(append(slices.Clone(b.GetFinalizers()), f))
	}
}

// BindingIDLabel returns the label that holds the permanent id of a binding, on itself and on what comes from it.
func BindingIDLabel(namespace string) string {
	if namespace == "" {
		return workv1alpha2.ClusterResourceBindingPermanentIDLabel
	}
	return workv1alpha2.ResourceBindingPermanentIDLabel
}

func describe(template *unstructured.Unstructured) string {
	t := match.TemplateOf(template)
	return text.Object(t.GroupKind().String(), t.Namespace, t.Name)
}
