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

// operations lists all operations in the order in which an object passes through them: what they do, for errors, and
// what holds if no tier implements them.
var operations = []struct {
	operation        configv1alpha1.InterpreterOperation
	doing, otherwise string
}{
	{configv1alpha1.InterpreterOperationInterpretReplica, "read replicas", "no replicas to divide"},
	{configv1alpha1.InterpreterOperationInterpretComponent, "read components", "no components"},
	{configv1alpha1.InterpreterOperationReviseReplica, "revise replicas", "unchanged in each cluster"},
	{configv1alpha1.InterpreterOperationRetain, "retain member values",
		"fields that the template sets come from the template, all others from the member"},
	{configv1alpha1.InterpreterOperationInterpretStatus, "reflect status", "the status as a whole"},
	{configv1alpha1.InterpreterOperationAggregateStatus, "aggregate status",
		"the template's status is not changed"},
	{configv1alpha1.InterpreterOperationInterpretHealth, "interpret health", "healthy once applied"},
	{configv1alpha1.InterpreterOperationInterpretDependency, "find dependencies", "no dependencies"},
}

func doing(operation configv1alpha1.InterpreterOperation) string {
	for _, o := range operations {
		if o.operation == operation {
			return o.doing
		}
	}
	return string(operation)
}

// Explain returns what implements each operation for a kind, with sources in order of precedence, as in New.
func Explain(kind schema.GroupVersionKind, sources []Source) []Answer {
	all := make([]Answer, 0, len(operations))
	for _, o := range operations {
		a := Answer{Operation: o.operation, Default: o.otherwise}
		for _, s := range sources {
			found := s.Tier.Find(kind, o.operation)
			a.Besides = append(a.Besides, found.Besides...)
			if found.Evaluate == nil {
				continue
			}
			a.Tier, a.By, a.Default = s.Name, found.By, ""
			break
		}
		all = append(all, a)
	}
	return all
}
