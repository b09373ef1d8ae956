// Package interpretcli is `interpret`: it runs scripts and interpreters on files. It reads flags and files, and prints;
// core/workload/interpret decides.
package interpretcli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// HubClients connects to the hub, which few commands read.
type HubClients interface {
	ToRESTConfig() (*rest.Config, error)
	ToRESTMapper() (meta.RESTMapper, error)
	// Named reports whether the user named a hub, so that an unreachable hub is an error.
	Named() bool
}

// options are the flags of `interpret` itself.
type options struct {
	files     []string
	recursive bool
	output    string

	check, edit, showDoc bool

	operation              string
	desired, observed      string
	status                 string
	desiredReplica         int32
	desiredReplicaWasGiven bool
}

// New returns the command with its subcommands.
func New(hub HubClients) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "interpret (-f FILE | test | explain)",
		Short: "Run, test and explain how Argosy interprets a kind",
		Long: `Run, test and explain how Argosy interprets a kind.

Without a subcommand, it runs the scripts of a ResourceInterpreterCustomization on objects in files. It does not use a
hub. --check also runs each script on sample objects, and warns if it fails on one, reads fields that the kind does not
have, sets global variables or gives a wrong result. The fields of the kinds of Kubernetes, OpenKruise and Argo are
built in; for other kinds, give the CustomResourceDefinition as well.`,
		Example: `  # Are the scripts valid? Do they fail on objects with missing fields?
  argosy interpret -f customization.yaml --check
  argosy interpret -f customization.yaml -f crd.yaml --check

  # What do they answer?
  argosy interpret -f customization.yaml --operation InterpretReplica --desired-file cloneset.yaml
  argosy interpret -f customization.yaml --operation ReviseReplica --desired-file cloneset.yaml --desired-replica 3
  argosy interpret -f customization.yaml --operation Retain --desired-file cloneset.yaml --observed-file member.yaml
  argosy interpret -f customization.yaml --operation AggregateStatus --desired-file cloneset.yaml --status-file items.yaml

  # Edit them, with the arguments and the result of each shown in the file
  argosy interpret -f customization.yaml --edit --show-doc

  # How does Argosy interpret the kind without them?
  argosy interpret explain CloneSet`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			var known []string
			for _, sub := range cmd.Commands() {
				known = append(known, sub.Name())
			}
			if nearest := text.Meant(args[0], known); nearest != "" {
				return fmt.Errorf("unknown command %q for %q; did you mean %q?", args[0], cmd.CommandPath(), nearest)
			}
			return fmt.Errorf("unknown command %q for %q; give a file with -f", args[0], cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.desiredReplicaWasGiven = cmd.Flags().Changed("desired-replica")
			return o.run(cmd)
		},
	}
	fs := cmd.Flags()
	filesFlags(cmd, &o.files, &o.recursive, "with ResourceInterpreterCustomizations")
	fs.BoolVar(&o.check, "check", false, "check the script of each operation, and run it on sample objects")
	fs.BoolVar(&o.edit, "edit", false, "edit the file; the change is saved only if it is valid")
	fs.BoolVar(&o.showDoc, "show-doc", false,
		"show the arguments and the result of each operation; with --edit, in the edited file")
	fs.StringVar(&o.operation, "operation", "", "the operation to run: "+operationNames())
	fs.StringVar(&o.desired, "desired-file", "",
		"file with the template, or with the manifest to apply; - is standard input")
	fs.StringVar(&o.observed, "observed-file", "", "file with the object as a member has it; - is standard input")
	fs.StringVar(&o.status, "status-file", "",
		"file with the items of AggregateStatus: {clusterName, status, …} each, or a binding that has them")
	fs.Int32Var(&o.desiredReplica, "desired-replica", 0, "the number of replicas for ReviseReplica")
	outputFlag(cmd, &o.output)
	cmd.AddCommand(newTest(), newExplain(hub))
	for _, c := range append(cmd.Commands(), cmd) {
		c.RunE = cleaned(c.RunE)
	}
	return cmd
}

// cleaned returns a command's function with output that cannot control a terminal: files, and scripts in them, come
// from others.
func cleaned(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		out, errOut := &hubcli.Painter{Out: cmd.OutOrStdout()}, &hubcli.Painter{Out: cmd.ErrOrStderr()}
		defer out.Flush()
		defer errOut.Flush()
		cmd.SetOut(out)
		cmd.SetErr(errOut)
		return run(cmd, args)
	}
}

func filesFlags(cmd *cobra.Command, files *[]string, recursive *bool, what string) {
	cmd.Flags().StringArrayVarP(files, "filename", "f", nil, "file or folder "+what+"; - is standard input")
	cmd.Flags().BoolVarP(recursive, "recursive", "R", false, "process folders recursively")
}

func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "output format: json, or a table if empty")
}

// asJSON reports whether programs are to read the output.
func asJSON(output string) (bool, error) {
	switch output {
	case "", "table":
		return false, nil
	case "json":
		return true, nil
	}
	return false, fmt.Errorf("-o %s is not supported: use json, or leave it out for a table", output)
}

func (o *options) run(cmd *cobra.Command) error {
	machine, err := asJSON(o.output)
	if err != nil {
		return err
	}
	if o.showDoc && !o.edit {
		_, err := io.WriteString(cmd.OutOrStdout(), documentation())
		return err
	}
	if len(o.files) == 0 {
		return fmt.Errorf("give the customizations with -f, or see `%s test` and `explain`", cmd.CommandPath())
	}
	if o.edit {
		if o.check || o.operation != "" || len(o.files) != 1 || o.files[0] == "-" {
			return fmt.Errorf("--edit requires exactly one file with -f, and cannot be used with --check or --operation")
		}
		return edit(cmd, o.files[0], o.showDoc)
	}
	if o.check == (o.operation != "") {
		return fmt.Errorf("use either --check, or --operation with one of %s", operationNames())
	}
	if err := o.checkStdin(); err != nil {
		return err
	}
	sources, err := readFiles(o.files, o.recursive, cmd.InOrStdin())
	if err != nil {
		return err
	}
	all, err := customizations(sources, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("there is no ResourceInterpreterCustomization in %s", listed(o.files))
	}
	if o.check {
		return check(cmd, sources, all, machine)
	}
	return o.execute(cmd, all, machine)
}

// checkStdin returns an error if standard input, which can be read once, is named several times.
func (o *options) checkStdin() error {
	var of []string
	if slices.Contains(o.files, "-") {
		of = append(of, "-f")
	}
	for _, f := range []struct{ flag, file string }{{"--desired-file", o.desired}, {"--observed-file", o.observed},
		{"--status-file", o.status}} {
		if f.file == "-" {
			of = append(of, f.flag)
		}
	}
	if len(of) > 1 {
		return fmt.Errorf("%s all use standard input, which can be read only once: give files for all but one",
			strings.Join(of, ", "))
	}
	return nil
}

// execute runs one operation and prints its result.
func (o *options) execute(cmd *cobra.Command, all []customizationFile, machine bool) error {
	q, err := o.question(cmd)
	if err != nil {
		return err
	}
	if err := q.check("--desired-file", "--observed-file", "--desired-replica"); err != nil {
		return err
	}
	set, err := schemas.Builtin()
	if err != nil {
		return err
	}
	obj := q.object()
	gvk := obj.GroupVersionKind()
	of := customizationsOf(all, gvk.GroupKind())
	if len(of) == 0 {
		var kinds []string
		for _, c := range all {
			kinds = append(kinds, c.object.Spec.Target.APIVersion+" "+c.object.Spec.Target.Kind)
		}
		return fmt.Errorf("the object is %s %s, but the customizations are for %s", obj.GetAPIVersion(), obj.GetKind(),
			strings.Join(kinds, ", "))
	}
	ctx := script.WithListener(cmd.Context(), func(p *script.Program, out *script.Outputs) {
		for _, line := range out.Printed {
			for part := range strings.SplitSeq(line, "\n") {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", text.Printable(p.Customization()), part)
			}
		}
		for _, w := range out.Warnings {
			text.Fprintf(cmd.ErrOrStderr(), "Warning: %s: %s\n", p.Customization(), w)
		}
	})
	answer, err := q.answer(ctx, tierOf(of, set, nil))
	if err == errNotAnswered {
		return fmt.Errorf("no customization in the files defines %s for %s", q.operation, obj.GetKind())
	}
	if err != nil {
		return err
	}
	if machine {
		values := map[string]any{}
		for _, p := range answer {
			values[p.name] = p.value
		}
		return hubcli.WriteJSON(cmd.OutOrStdout(), values)
	}
	return printAnswer(cmd.OutOrStdout(), q.operation, answer)
}

// printAnswer prints the parts as karmadactl does: a document of YAML each, under a comment that numbers it.
func printAnswer(out io.Writer, operation configv1alpha1.InterpreterOperation, answer []part) error {
	note := ""
	if operation == configv1alpha1.InterpreterOperationInterpretHealth {
		// Karmada knows two states of health; the finer state is a comment, so that the document is valid there.
		note = fmt.Sprintf(" # %v", answer[1].value)
		answer = answer[:1]
	}
	for i, p := range answer {
		data, err := hubcli.YAML(p.value)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "---\n# [%d/%d] %s:\n%s%s\n", i+1, len(answer), p.name, strings.TrimRight(string(data), "\n"),
			note)
	}
	return nil
}

// question returns the operation and input that the flags select.
func (o *options) question(cmd *cobra.Command) (question, error) {
	q := question{operation: configv1alpha1.InterpreterOperation(o.operation)}
	if o.desiredReplicaWasGiven {
		q.replicas = &o.desiredReplica
	}
	for _, f := range []struct {
		flag, file string
		into       **unstructured.Unstructured
	}{{"--desired-file", o.desired, &q.desired}, {"--observed-file", o.observed, &q.observed}} {
		if f.file == "" {
			continue
		}
		objects, err := objectsIn(f.file, cmd.InOrStdin())
		if err != nil {
			return q, err
		}
		if len(objects) != 1 || objects[0].GetKind() == "" {
			return q, fmt.Errorf("%s %s: the file must contain exactly one object with a kind; it contains %d", f.flag, f.file,
				len(objects))
		}
		*f.into = objects[0]
	}
	if o.status != "" {
		objects, err := objectsIn(o.status, cmd.InOrStdin())
		if err != nil {
			return q, err
		}
		if q.items, err = itemsIn(objects); err != nil {
			return q, fmt.Errorf("--status-file %s: %w", o.status, err)
		}
	}
	return q, nil
}

// itemsIn returns the items of AggregateStatus: one in each document, a list of them, or those of a binding.
func itemsIn(objects []*unstructured.Unstructured) ([]workv1alpha2.AggregatedStatusItem, error) {
	var raw []any
	for _, obj := range objects {
		switch listed, found, _ := unstructured.NestedSlice(obj.Object, "status", "aggregatedStatus"); {
		case found:
			raw = append(raw, listed...)
		case obj.Object["items"] != nil:
			items, _ := obj.Object["items"].([]any)
			raw = append(raw, items...)
		default:
			raw = append(raw, obj.Object)
		}
	}
	data, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	var items []workv1alpha2.AggregatedStatusItem
	if err := yaml.UnmarshalStrict(data, &items); err != nil {
		return nil, fmt.Errorf("read the items of the form {clusterName, status, applied, health}: %w", err)
	}
	for i, item := range items {
		if item.ClusterName == "" {
			return nil, fmt.Errorf("item %d has no clusterName", i+1)
		}
	}
	return items, nil
}
