package interpretcli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/interpretcli/lint"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
)

func newLint(hub HubClients) *cobra.Command {
	var files, definitionFiles []string
	var recursive bool
	var target, failOn, output string
	cmd := &cobra.Command{
		Use:   "lint -f FILE",
		Short: "Check customizations, and show where and how to fix them",
		Long: `Check customizations, and show where and how to fix them.

The scripts are checked for fields that the kind does not have, wrong function names, lines that YAML joins, and variables that
keep their value after a call. They are also run on objects with missing optional fields, and on objects with a known result.
The fields of the kinds of Kubernetes, OpenKruise and Argo are built in. For other kinds, give the CustomResourceDefinition in
the same file or with --schema, or a hub that has it with --kubeconfig.

An error means that a hub rejects the customization or that it cannot work. A warning means that it fails or gives a wrong result
for some objects.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: give files with -f", args[0])
			}
			if len(files) == 0 {
				return fmt.Errorf("give the files with -f")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			machine, err := asJSON(output)
			if err != nil {
				return err
			}
			worst, ok := map[string]int{"error": 1, "warning": 2, "never": 0}[failOn]
			if !ok {
				return fmt.Errorf("--fail-on must be error, warning or never, not %s", failOn)
			}
			o := lint.Options{}
			if o.Target, err = parseTarget(target); err != nil {
				return err
			}
			sources, err := readFiles(files, recursive, cmd.InOrStdin())
			if err != nil {
				return err
			}
			if o.Schemas, err = knownKinds(cmd, hub, definitionFiles, sources); err != nil {
				return err
			}
			findings, count := []lint.Finding{}, 0
			for _, s := range sources {
				found, n := lint.File(cmd.Context(), s.name, s.text, o)
				findings, count = append(findings, found...), count+n
			}
			if count == 0 && len(findings) == 0 {
				return fmt.Errorf("there is no ResourceInterpreterCustomization in %s", listed(files))
			}
			if machine {
				if err := printJSON(cmd.OutOrStdout(), findings); err != nil {
					return err
				}
			} else {
				printFindings(cmd.OutOrStdout(), findings, count)
			}
			rank := map[lint.Severity]int{lint.Error: 1, lint.Warning: 2}[lint.Worst(findings)]
			if rank > 0 && rank <= worst {
				n := 0
				for _, f := range findings {
					if f.Severity == lint.Worst(findings) {
						n++
					}
				}
				return fmt.Errorf("lint found %s", text.Count(n, string(lint.Worst(findings))))
			}
			return nil
		},
	}
	filesFlags(cmd, &files, &recursive, "with ResourceInterpreterCustomizations, or with the operations of one")
	cmd.Flags().StringArrayVar(&definitionFiles, "schema", nil,
		"file or folder with CustomResourceDefinitions of the kinds")
	cmd.Flags().StringVar(&target, "target", "",
		"the kind, for files with only the operations of a customization, such as apps.kruise.io/v1alpha1/CloneSet")
	cmd.Flags().StringVar(&failOn, "fail-on", "error",
		"minimum severity of a finding for which the command fails: error, warning or never")
	outputFlag(cmd, &output)
	return cmd
}

// parseTarget reads group/version/kind, or version/kind.
func parseTarget(text string) (configv1alpha1.CustomizationTarget, error) {
	if text == "" {
		return configv1alpha1.CustomizationTarget{}, nil
	}
	at := strings.LastIndex(text, "/")
	if at <= 0 || at == len(text)-1 {
		return configv1alpha1.CustomizationTarget{}, fmt.Errorf("--target %s: write it as apps.kruise.io/v1alpha1/CloneSet",
			text)
	}
	return configv1alpha1.CustomizationTarget{APIVersion: text[:at], Kind: text[at+1:]}, nil
}

// knownKinds returns the built-in kinds, the kinds of the hub if one is named, and those in files, which have
// precedence.
func knownKinds(cmd *cobra.Command, hub HubClients, definitionFiles []string, sources []source) (*schemas.Set, error) {
	set, err := schemas.Builtin()
	if err != nil {
		return nil, err
	}
	if hub.Named() {
		var list apiextensionsv1.CustomResourceDefinitionList
		c, err := clientOf(hub)
		if err == nil {
			err = c.List(cmd.Context(), &list)
		}
		if err != nil {
			return nil, fmt.Errorf("read the CustomResourceDefinitions of the hub: %w", err)
		}
		for i := range list.Items {
			set.Add(&list.Items[i])
		}
	}
	more, err := readFiles(definitionFiles, true, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	n, err := definitions(set, more)
	if err != nil {
		return nil, err
	}
	if n == 0 && len(definitionFiles) > 0 {
		return nil, fmt.Errorf("--schema: there is no CustomResourceDefinition in %s", strings.Join(definitionFiles, ", "))
	}
	for _, s := range sources {
		// lint reports a file with invalid YAML, with the line.
		if _, err := definitions(set, []source{s}); err != nil {
			continue
		}
	}
	return set, nil
}

func clientOf(hub HubClients) (client.Client, error) {
	config, err := hub.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = requestTimeout
	return client.New(config, client.Options{Scheme: scheme})
}

func printFindings(out io.Writer, findings []lint.Finding, count int) {
	number := map[lint.Severity]int{}
	for _, f := range findings {
		number[f.Severity]++
		where := ""
		if f.Field != "" {
			where = f.Field + ": "
		}
		fmt.Fprintf(out, "%s:%d: %s: %s%s [%s]\n", f.File, f.Line, f.Severity, where, f.Message, f.Rule)
		if f.Fix != "" {
			fmt.Fprintf(out, "    fix: %s\n", f.Fix)
		}
	}
	fmt.Fprintf(out, "%s, %s, %s, %s\n", text.Count(count, "customization"), text.Count(number[lint.Error], "error"),
		text.Count(number[lint.Warning], "warning"), text.Count(number[lint.Info], "hint"))
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
