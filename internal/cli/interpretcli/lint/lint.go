// Package lint finds problems in the customizations of a file, with line and fix, before they are on a hub. It reads
// the scripts and runs them on objects with missing fields. It changes nothing.
package lint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/dialect"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// Severity is the severity of a finding.
type Severity string

// The severities.
const (
	// Error: the hub rejects it, or the script cannot work as intended.
	Error Severity = "error"
	// Warning: it fails or gives wrong results for some objects.
	Warning Severity = "warning"
	// Info: it works but could be improved.
	Info Severity = "info"
)

// Rule identifies the kind of a finding.
type Rule string

// The rules.
const (
	NotYAML       Rule = "yaml"
	Spelling      Rule = "spelling"       // a field of a customization has another name
	Incomplete    Rule = "incomplete"     // a field of a customization is missing
	Folded        Rule = "folded-scalar"  // YAML joins the lines of a script
	Syntax        Rule = "syntax"         // no Lua
	FunctionName  Rule = "function-name"  // the function is not the operation's
	Parameters    Rule = "parameters"     // the function takes other arguments
	Global        Rule = "global"         // a variable that outlives the call
	Library       Rule = "library"        // a function that kube does not have
	UnknownKind   Rule = "unknown-kind"   // no schema to check fields with
	UnknownField  Rule = "unknown-field"  // not in the kind's schema
	NilCheck      Rule = "nil-check"      // fails on an object that lacks something
	Result        Rule = "result"         // returns something else than is asked for
	Dropped       Rule = "dropped-field"  // leaves out what others look for
	Generation    Rule = "generation"     // takes an old status for the present one
	FalseHealth   Rule = "false-health"   // calls healthy what is not, or the other way round
	MemberOwned   Rule = "member-owned"   // takes a field away from the hub
	NoRequirement Rule = "no-requirement" // the resource requests of a replica are missing
	Namespace     Rule = "namespace"      // of an object that has none
)

// Finding is one problem.
type Finding struct {
	File string `json:"file"`
	// Line in the file, from 1.
	Line     int      `json:"line"`
	Severity Severity `json:"severity"`
	Rule     Rule     `json:"rule"`
	// Customization is its name, if any. Field is the place in it, such as spec.customizations.retention.
	Customization string `json:"customization,omitempty"`
	Field         string `json:"field,omitempty"`
	// Message is the problem, Fix the solution.
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Options of a check.
type Options struct {
	// Schemas are the kinds whose fields are checked.
	Schemas *schemas.Set
	// Target is the kind for customizations without one, such as fragments.
	Target configv1alpha1.CustomizationTarget
}

// File returns the findings in a file in order of lines. It skips other documents; customizations is the number of
// customizations.
func File(ctx context.Context, name string, text []byte, o Options) (findings []Finding, customizations int) {
	documents, err := parseFile(text)
	add := func(f Finding) {
		f.File = name
		if !slices.Contains(findings, f) {
			findings = append(findings, f)
		}
	}
	for _, d := range documents {
		customizations++
		d.check(ctx, o, add)
	}
	if err != nil {
		add(Finding{Line: err.line, Severity: Error, Rule: NotYAML, Message: err.message,
			Fix: "correct the indentation or the quotes there"})
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return findings, customizations
}

// Worst returns the worst severity of the findings; empty if there are none.
func Worst(findings []Finding) Severity {
	for _, s := range []Severity{Error, Warning, Info} {
		if slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == s }) {
			return s
		}
	}
	return ""
}

// returns describes the result of each operation.
var returns = map[configv1alpha1.InterpreterOperation]string{
	configv1alpha1.InterpreterOperationInterpretReplica:    "a number, and what one replica needs",
	configv1alpha1.InterpreterOperationInterpretComponent:  "a list of components",
	configv1alpha1.InterpreterOperationReviseReplica:       "the object",
	configv1alpha1.InterpreterOperationRetain:              "the object to write",
	configv1alpha1.InterpreterOperationInterpretStatus:     "the status",
	configv1alpha1.InterpreterOperationAggregateStatus:     "the object",
	configv1alpha1.InterpreterOperationInterpretHealth:     "true or false",
	configv1alpha1.InterpreterOperationInterpretDependency: "a list of references",
}

// operationOf returns the operation of a field, also if it has a spelling that the hub rewrites.
func operationOf(field string) (script.Operation, bool) {
	field = dialect.OperationField(field)
	i := slices.IndexFunc(script.Operations, func(o script.Operation) bool { return o.Field == field })
	if i < 0 {
		return script.Operation{}, false
	}
	return script.Operations[i], true
}

// check checks one customization.
func (d *document) check(ctx context.Context, o Options, add func(Finding)) {
	report := func(f Finding) {
		f.Customization = d.name
		add(f)
	}
	target := d.target
	if target.Kind == "" && target.APIVersion == "" {
		target = o.Target
	}
	if !d.fragment && (d.target.Kind == "" || d.target.APIVersion == "") {
		report(Finding{Line: d.line, Severity: Error, Rule: Incomplete, Field: "spec.target",
			Message: "the kind is not set", Fix: "set spec.target.apiVersion and spec.target.kind"})
	}
	for _, problem := range d.problems {
		report(problem)
	}
	var kind *schemas.Kind
	if gv, err := schema.ParseGroupVersion(target.APIVersion); err == nil && target.Kind != "" {
		gvk := gv.WithKind(target.Kind)
		if known, ok := o.Schemas.Get(gvk); ok {
			kind = &known
		} else {
			report(unknownKind(d, gvk, o.Schemas))
		}
	}
	for _, s := range d.scripts {
		c := &checker{script: s, kind: kind, target: target, report: func(f Finding) {
			f.Field = s.field()
			report(f)
		}}
		c.run(ctx, d.name)
	}
	for _, p := range d.paths {
		checkPath(p, kind, target, report)
	}
}

func unknownKind(d *document, gvk schema.GroupVersionKind, set *schemas.Set) Finding {
	f := Finding{Line: d.line, Severity: Info, Rule: UnknownKind, Field: "spec.target",
		Message: fmt.Sprintf("the fields of %s %s are not known, so they are not checked", gvk.GroupVersion(), gvk.Kind),
		Fix:     "give its CustomResourceDefinition with --schema, or a hub that serves it with --kubeconfig",
	}
	if versions := set.Versions(gvk.GroupKind()); len(versions) > 0 {
		slices.Sort(versions)
		f.Severity = Warning
		f.Message = fmt.Sprintf("%s has no version %s", gvk.Kind, gvk.Version)
		f.Fix = "use " + strings.Join(versions, " or ")
	}
	return f
}

// checker checks one script.
type checker struct {
	script scriptText
	kind   *schemas.Kind
	target configv1alpha1.CustomizationTarget
	report func(Finding)
}

// reportAt reports a finding at a line of the script.
func (c *checker) reportAt(line int, severity Severity, rule Rule, message, fix string) {
	c.report(Finding{Line: c.script.fileLine(line), Severity: severity, Rule: rule, Message: message, Fix: fix})
}

func (c *checker) run(ctx context.Context, customization string) {
	c.folding()
	var fields *script.Schema
	if c.kind != nil {
		fields = script.SchemaOf(c.kind.Schema)
	}
	program, err := script.Compile(customization, c.script.operation.Operation, c.script.text, fields)
	if err != nil {
		for _, e := range script.Errors(err) {
			c.uncompiled(e)
		}
		if len(script.Errors(err)) == 0 {
			c.reportAt(1, Error, Syntax, err.Error(), "")
		}
		// Also check a script that was truncated.
		if whole, ok := closed(c.script.text); ok {
			c.script.text = whole
			c.read(c.script.operation.Function)
		}
		return
	}
	name, byContract := program.Function()
	if !byContract {
		c.reportAt(lineOf(program, name), Warning, FunctionName,
			fmt.Sprintf("the function is called %s; Karmada calls %s, and fails at run time with this name", name,
				c.script.operation.Function),
			"rename it to "+c.script.operation.Signature())
	}
	for _, f := range program.Functions() {
		if f.Name == name && len(f.Params) < len(c.script.operation.Params) {
			c.reportAt(f.Line, Warning, Parameters,
				fmt.Sprintf("%s declares %d of the %d arguments that it is called with", name, len(f.Params),
					len(c.script.operation.Params)),
				"declare it as "+c.script.operation.Signature())
		}
	}
	read := c.read(name)
	c.try(ctx, program, read)
}

func (c *checker) uncompiled(e *script.Error) {
	if e.Reason == script.NoFunction {
		c.reportAt(max(e.Line, 1), Error, FunctionName, e.Message, "define function "+c.script.operation.Signature()+
			", which returns "+returns[c.script.operation.Operation])
		return
	}
	fix := "correct the script there; Lua is parsed from the first line on"
	if strings.Contains(e.Message, "'end' expected") {
		fix = "close every function, if, for and while with an end; the script may have been truncated when it was copied"
	}
	if len(c.script.text) > script.SizeLimit {
		fix = "shorten it: a customization should only evaluate a few fields; move anything else out of it"
	}
	c.reportAt(max(e.Line, 1), Error, Syntax, e.Message, fix)
}

func lineOf(p *script.Program, name string) int {
	for _, f := range p.Functions() {
		if f.Name == name {
			return f.Line
		}
	}
	return 1
}
