package interpret

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
)

// Source is a tier under the name that people know it by.
type Source struct {
	Name string
	Tier Tier
}

// Namer is a Tier that knows whose its answers are.
type Namer interface {
	// By are the names of the objects that answer the operation for the kind, as a user finds them; nil if none does.
	By(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) []string
}

// Besider is a Tier that knows who would answer for objects in another version, or if others did not answer first.
type Besider interface {
	Besides(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) []Besides
}

// Besides is an object that says something of an operation as well, for a version of the kind.
type Besides struct {
	Version, By string
}

// Answer says who answers an operation for a kind.
type Answer struct {
	Operation configv1alpha1.InterpreterOperation
	// Tier is the name of the source, empty when none knows the kind: then Default is what holds for every such kind.
	Tier    string
	Default string
	// By are the objects that answer, where the tier has such.
	By []string
	// Besides are the objects that say something of it, too, and are not asked about objects in the version, in the order
	// in which they would be.
	Besides []Besides
}

// operations are all that a kind is asked, in the order of an object's way.
var operations = []struct {
	operation configv1alpha1.InterpreterOperation
	answers   func(*Hooks) bool
	otherwise string
}{
	{configv1alpha1.InterpreterOperationInterpretReplica, func(h *Hooks) bool { return h.Replicas != nil },
		"no replicas to divide"},
	{configv1alpha1.InterpreterOperationInterpretComponent, func(h *Hooks) bool { return h.Components != nil },
		"no components"},
	{configv1alpha1.InterpreterOperationReviseReplica, func(h *Hooks) bool { return h.Revise != nil },
		"unchanged in each cluster"},
	{configv1alpha1.InterpreterOperationRetain, func(h *Hooks) bool { return h.Retain != nil },
		"fields that the template sets come from the template, all others from the member"},
	{configv1alpha1.InterpreterOperationInterpretStatus, func(h *Hooks) bool { return h.Reflect != nil },
		"the status as a whole"},
	{configv1alpha1.InterpreterOperationAggregateStatus, func(h *Hooks) bool { return h.Aggregate != nil },
		"the template's status is not changed"},
	{configv1alpha1.InterpreterOperationInterpretHealth, func(h *Hooks) bool { return h.Health != nil },
		"healthy once applied"},
	{configv1alpha1.InterpreterOperationInterpretDependency, func(h *Hooks) bool { return h.Dependencies != nil },
		"no dependencies"},
}

// Explain says who answers each operation for a kind when the sources are asked in the order given, as New's are.
func Explain(kind schema.GroupVersionKind, sources []Source) []Answer {
	all := make([]Answer, 0, len(operations))
	for _, o := range operations {
		a := Answer{Operation: o.operation, Default: o.otherwise}
		for _, s := range sources {
			if b, ok := s.Tier.(Besider); ok {
				a.Besides = append(a.Besides, b.Besides(kind, o.operation)...)
			}
			h := HooksOf(s.Tier, kind)
			if h == nil || !o.answers(h) {
				continue
			}
			a.Tier, a.Default = s.Name, ""
			if n, ok := s.Tier.(Namer); ok {
				a.By = n.By(kind, o.operation)
			}
			break
		}
		all = append(all, a)
	}
	return all
}
