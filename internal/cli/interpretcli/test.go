package interpretcli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
)

func newTest() *cobra.Command {
	var output string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "test DIR…",
		Short: "Run test cases: objects, an operation and the expected result",
		Long: `Run test cases: objects, an operation and the expected result.

All files with a list of cases are run, including those in subfolders; other files are skipped. For example:

  customization: cloneset.yaml      # the customization to test, relative to this file; without it, Argosy's own interpreter
  object:                           # the object of all cases
    apiVersion: apps.kruise.io/v1alpha1
    kind: CloneSet
    metadata: {name: web, generation: 1}
    spec: {replicas: 3}
  cases:
  - name: a canary paused by its partition is no failure
    operation: InterpretHealth
    observed: {status: {observedGeneration: 1, updatedReplicas: 1}}   # a merge patch on the object; desired likewise
    want: {health: Suspended}       # the whole result; for health, either healthy or health is enough
  - name: the replicas of a cluster are set
    operation: ReviseReplica
    desiredReplica: 2
    wantChange: {spec: {replicas: 2}}   # the change, for operations that return the object
  - name: replicas of nonsense are refused
    operation: InterpretReplica
    desired: {spec: {replicas: many}}
    wantError: many                 # part of the error message

AggregateStatus takes statusItems: [{clusterName, status, …}]. For each case that fails, the differences are printed.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("give the folders or files with cases; `%s --help` shows an example", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			machine, err := asJSON(output)
			if err != nil {
				return err
			}
			return test(cmd, args, machine, verbose)
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print every case, not only those that fail")
	outputFlag(cmd, &output)
	return cmd
}

// tested is one file of cases.
type tested struct {
	File string `json:"file"`
	// Error is why the file was not run.
	Error   string       `json:"error,omitempty"`
	Results []caseResult `json:"results,omitempty"`
}

func test(cmd *cobra.Command, names []string, machine, verbose bool) error {
	sources, err := readFiles(names, true, cmd.InOrStdin())
	if err != nil {
		return err
	}
	set, err := schemas.Builtin()
	if err != nil {
		return err
	}
	all := []tested{}
	cases, failed := 0, 0
	for _, s := range sources {
		if !hasCases(s.text) {
			continue
		}
		t := tested{File: s.name}
		if t.Results, err = runCases(cmd.Context(), s, set, cmd.ErrOrStderr()); err != nil {
			t.Error = err.Error()
			failed++
		}
		for _, r := range t.Results {
			cases++
			if r.Failure != "" {
				failed++
			}
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return fmt.Errorf("there are no files with cases in %s; `%s --help` shows an example", listed(names),
			cmd.CommandPath())
	}
	if machine {
		if err := hubcli.WriteJSON(cmd.OutOrStdout(), all); err != nil {
			return err
		}
	} else {
		printTested(cmd.OutOrStdout(), all, verbose)
		fmt.Fprintf(cmd.OutOrStdout(), "%s in %s, %d failed\n", text.Count(cases, "case"), text.Count(len(all), "file"),
			failed)
	}
	if failed > 0 {
		return fmt.Errorf("%d failed", failed)
	}
	return nil
}

// hasCases reports whether a file is one of cases.
func hasCases(text []byte) bool {
	var f struct {
		Cases any `json:"cases"`
	}
	return yaml.Unmarshal(text, &f) == nil && f.Cases != nil
}

func runCases(ctx context.Context, s source, set *schemas.Set, warnings io.Writer) ([]caseResult, error) {
	f, err := parseCases(s.text)
	if err != nil {
		return nil, err
	}
	all := tiers.WithoutUsers()
	if f.Customization != "" {
		file := filepath.Join(filepath.Dir(s.name), f.Customization)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("customization: %w", err)
		}
		of, err := customizations([]source{{file, text}}, warnings)
		if err != nil {
			return nil, fmt.Errorf("customization: %w", err)
		}
		if len(of) == 0 {
			return nil, fmt.Errorf("customization: there is no ResourceInterpreterCustomization in %s", file)
		}
		all = append(interpret.Tiers{tierOf(of, set, tiers.Below())}, all...)
	}
	return f.run(ctx, all)
}

func printTested(out io.Writer, all []tested, verbose bool) {
	for _, t := range all {
		if t.Error != "" {
			text.Fprintf(out, "FAIL  %s: %s\n", t.File, t.Error)
			continue
		}
		bad := 0
		for _, r := range t.Results {
			switch {
			case r.Failure != "":
				bad++
				text.Fprintf(out, "FAIL  %s: %s (%s)\n", t.File, r.Name, string(r.Operation))
				fmt.Fprint(out, indented(r.Failure))
			case verbose:
				text.Fprintf(out, "ok    %s: %s (%s)\n", t.File, r.Name, string(r.Operation))
			}
		}
		if bad == 0 && !verbose {
			text.Fprintf(out, "ok    %s: %s\n", t.File, text.Count(len(t.Results), "case"))
		}
	}
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
