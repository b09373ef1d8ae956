package interpret

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
)

// Source is a tier with the name that users see.
type Source struct {
	Name string
	Tier Tier
}

// Namer is a Tier that knows the sources of its answers.
type Namer interface {
	// SourceNames returns the names of the objects that implement the operation for the kind; nil if there are none.
	SourceNames(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) []string
}

// Besider is a Tier that knows which objects would answer for another version, or without the first one.
type Besider interface {
	Besides(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) []Besides
}

// Besides is another object that implements an operation, for a version of the kind.
type Besides struct {
	Version string `json:"version"`
	By      string `json:"by"`
}

// Answer names what implements an operation for a kind.
type Answer struct {
	Operation configv1alpha1.InterpreterOperation `json:"operation"`
	// Tier is the name of the source. It is empty if no source knows the kind; then Default describes the default.
	Tier string `json:"tier,omitempty"`
	// By are the objects that implement the operation, if the tier has objects.
	By      []string `json:"by,omitempty"`
	Default string   `json:"default,omitempty"`
	// Besides are further objects that implement the operation but are not used for this version, in order of precedence.
	Besides []Besides `json:"besides,omitempty"`
}

// operations lists all operations in the order in which an object passes through them.
var operations = []struct {
	operation configv1alpha1.InterpreterOperation
	otherwise string
}{
	{configv1alpha1.InterpreterOperationInterpretReplica, "no replicas to divide"},
	{configv1alpha1.InterpreterOperationInterpretComponent, "no components"},
	{configv1alpha1.InterpreterOperationReviseReplica, "unchanged in each cluster"},
	{configv1alpha1.InterpreterOperationRetain, "fields that the template sets come from the template, all others from the member"},
	{configv1alpha1.InterpreterOperationInterpretStatus, "the status as a whole"},
	{configv1alpha1.InterpreterOperationAggregateStatus, "the template's status is not changed"},
	{configv1alpha1.InterpreterOperationInterpretHealth, "healthy once applied"},
	{configv1alpha1.InterpreterOperationInterpretDependency, "no dependencies"},
}

// Explain returns what implements each operation for a kind, with sources in order of precedence, as in New.
func Explain(kind schema.GroupVersionKind, sources []Source) []Answer {
	all := make([]Answer, 0, len(operations))
	for _, o := range operations {
		a := Answer{Operation: o.operation, Default: o.otherwise}
		for _, s := range sources {
			if b, ok := s.Tier.(Besider); ok {
				a.Besides = append(a.Besides, b.Besides(kind, o.operation)...)
			}
			h := HooksOf(s.Tier, kind)
			if !h.Implements(o.operation) {
				continue
			}
			a.Tier, a.Default = s.Name, ""
			if n, ok := s.Tier.(Namer); ok {
				a.By = n.SourceNames(kind, o.operation)
			}
			break
		}
		all = append(all, a)
	}
	return all
}
