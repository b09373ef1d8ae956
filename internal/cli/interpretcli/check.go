package interpretcli

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// verdict is the result of check for one operation.
type verdict struct {
	Operation configv1alpha1.InterpreterOperation `json:"operation"`
	// Result is PASS, UNSET, ERROR if a hub refuses the script, or FAIL if the script fails on every sample object.
	Result string   `json:"result"`
	Errors []string `json:"errors,omitempty"`
	// Warnings are about results of sample objects.
	Warnings []string `json:"warnings,omitempty"`

	// field is the operation's field of a customization.
	field string
}

type checked struct {
	Source        string                             `json:"source"`
	Customization string                             `json:"customization"`
	Target        configv1alpha1.CustomizationTarget `json:"target"`
	Rules         []verdict                          `json:"rules"`
	// Errors are of the customization as a whole.
	Errors []string `json:"errors,omitempty"`
}

// folded matches a line that starts a script whose lines YAML joins.
var folded = regexp.MustCompile(`^\s*luaScript:\s*>`)

// check prints for each customization which operations a hub would accept; the error has the number of rejected ones.
// sources may define the kinds.
func check(cmd *cobra.Command, sources []source, all []customizationFile, machine bool) error {
	set, err := schemas.Builtin()
	if err != nil {
		return err
	}
	if err := definitions(set, sources); err != nil {
		return err
	}
	objects := objectsOf(all)
	for _, s := range sources {
		for i, line := range strings.Split(string(s.text), "\n") {
			if folded.MatchString(line) {
				fmt.Fprintf(cmd.ErrOrStderr(), "Warning: %s: line %d: > joins lines, so code after a comment becomes part of it; "+
					"write luaScript: |\n", s.name, i+1)
			}
		}
	}
	refused, failing := 0, 0
	results := make([]checked, 0, len(all))
	for _, c := range all {
		r := judge(c, objects)
		refused += len(r.Errors)
		found := try(cmd.Context(), c.object, set)
		for i := range r.Rules {
			v := &r.Rules[i]
			refused += len(v.Errors)
			of := found[v.Operation]
			v.Warnings = of.warnings
			if len(of.failures) > 0 {
				failing++
				v.Errors = append(v.Errors, of.failures...)
				if v.Result == "PASS" {
					v.Result = "FAIL"
				}
			}
		}
		results = append(results, r)
	}
	if machine {
		if err := hubcli.WriteJSON(cmd.OutOrStdout(), results); err != nil {
			return err
		}
	} else {
		for _, r := range results {
			printChecked(cmd.OutOrStdout(), r)
		}
	}
	var problems []string
	if refused > 0 {
		problems = append(problems, text.Count(refused, "error")+": the hub would refuse this")
	}
	if failing > 0 {
		problems = append(problems, text.Count(failing, "operation")+
			" with a script that fails on every sample object or exceeds a limit")
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

func judge(c customizationFile, all []*configv1alpha1.ResourceInterpreterCustomization) checked {
	r := checked{Source: c.file, Customization: c.object.Name, Target: c.object.Spec.Target}
	var known field.ErrorList
	if r.Target.APIVersion == "" || r.Target.Kind == "" {
		r.Errors = append(r.Errors, "spec.target: set apiVersion and kind")
	}
	known = append(known, validate.Customization(c.object, all)...)
	_, err := script.Hooks(c.object.Name, c.object.Spec.Customizations, nil)
	faults := script.Errors(err)
	for _, o := range script.Operations {
		name := "spec.customizations." + o.Field
		v := verdict{Operation: o.Operation, Result: "UNSET", field: o.Field}
		if o.Rule(&c.object.Spec.Customizations) != nil {
			v.Result = "PASS"
		}
		rest := known[:0:0]
		for _, e := range known {
			if e.Field != name && !strings.HasPrefix(e.Field, name+".") {
				rest = append(rest, e)
				continue
			}
			v.Errors = append(v.Errors, e.ErrorBody())
		}
		known = rest
		for _, fault := range faults {
			// A script that does not compile is reported by both checks.
			if fault.Operation == o.Operation && (fault.Reason != script.Syntax || len(v.Errors) == 0) {
				v.Errors = append(v.Errors, lineAnd(fault))
			}
		}
		if len(v.Errors) > 0 {
			v.Result = "ERROR"
		}
		r.Rules = append(r.Rules, v)
	}
	for _, e := range known {
		r.Errors = append(r.Errors, e.Error())
	}
	return r
}

func lineAnd(e *script.Error) string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}
	return e.Message
}

func printChecked(out io.Writer, r checked) {
	text.Fprintf(out, "-----------------------------------\nSOURCE: %s\nTARGET: %s %s\nRULERS:\n", r.Source,
		r.Target.APIVersion, r.Target.Kind)
	for _, v := range r.Rules {
		text.Fprintf(out, "    %-24s %s", string(v.Operation)+":", v.Result)
		if len(v.Errors) > 0 {
			text.Fprintf(out, ": %s", strings.Join(v.Errors, "; "))
		}
		fmt.Fprintln(out)
		for _, w := range v.Warnings {
			text.Fprintf(out, "        warning: %s\n", w)
		}
	}
	for _, e := range r.Errors {
		text.Fprintf(out, "    ERROR: %s\n", e)
	}
}

// invalid returns the problems that keep an edited file from being taken.
func invalid(all []customizationFile) error {
	objects := objectsOf(all)
	var problems []error
	for _, c := range all {
		r := judge(c, objects)
		for _, e := range r.Errors {
			problems = append(problems, fmt.Errorf("%s: %s", r.Customization, e))
		}
		for _, v := range r.Rules {
			for _, e := range v.Errors {
				problems = append(problems, fmt.Errorf("%s: %s: %s", r.Customization, v.field, e))
			}
		}
	}
	return errors.Join(problems...)
}
