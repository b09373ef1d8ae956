package interpretcli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/util/editor"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// contracts describe input and output of each operation.
var contracts = map[configv1alpha1.InterpreterOperation]string{
	configv1alpha1.InterpreterOperationInterpretReplica: `obj is the template.
Return the number of replicas and, as the second value, the requirements of one replica: {resourceRequest, nodeClaim, namespace,
priorityClassName}, such as from kube.accuratePodRequirements(obj.spec.template). Return nil to let the next tier answer.`,
	configv1alpha1.InterpreterOperationInterpretComponent: `obj is the template of a kind with several pod templates, each with its own replicas.
Return a list of {name, replicas, replicaRequirements}.`,
	configv1alpha1.InterpreterOperationReviseReplica: `obj is the manifest for one cluster, desiredReplica its share of the replicas.
Return obj with this number of replicas.`,
	configv1alpha1.InterpreterOperationRetain: `desiredObj is about to be applied, observedObj is what the member has.
Return desiredObj with the values of observedObj that the member owns.`,
	configv1alpha1.InterpreterOperationInterpretStatus: `observedObj is what the member has.
Return the status to report to the hub.`,
	configv1alpha1.InterpreterOperationAggregateStatus: `desiredObj is the template; statusItems are {clusterName, status, applied, appliedMessage, health}, one per cluster.
Return desiredObj with its status set.`,
	configv1alpha1.InterpreterOperationInterpretHealth: `observedObj is what the member has.
Return true or false, or (not supported by Karmada) "Healthy", "Progressing", "Suspended", "Degraded" or "Unknown".`,
	configv1alpha1.InterpreterOperationInterpretDependency: `desiredObj is the template.
Return a list of {apiVersion, kind, namespace, name or labelSelector}, such as
kube.getPodDependencies(desiredObj.spec.template, desiredObj.metadata.namespace).`,
}

// documentation returns a description of the operations.
func documentation() string {
	var out strings.Builder
	for _, o := range script.Operations {
		fmt.Fprintf(&out, "spec.customizations.%s.luaScript\n  function %s\n  %s\n\n", o.Field, o.Signature(),
			strings.ReplaceAll(contracts[o.Operation], "\n", "\n  "))
	}
	out.WriteString(`require("kube") has accuratePodRequirements(podTemplate), getPodDependencies(podTemplate, namespace),
resourceAdd(quantity, quantity, …) and getResourceQuantity(quantity).
A call is limited to one second and 64 MiB. Scripts cannot do I/O, read the clock, or load code.
`)
	return out.String()
}

// comment marks lines that edit adds at the top of a file and removes again.
const comment = "#| "

func commented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimRight(comment+strings.TrimRight(line, "\n"), " ") + "\n")
	}
	return out.String()
}

// uncommented returns a text without the lines that edit put in.
func uncommented(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte(strings.TrimRight(comment, " "))) {
			out.Write(line)
		}
	}
	return out.Bytes()
}

// edit opens a file of customizations in the user's editor until it is valid, empty, or unchanged.
func edit(cmd *cobra.Command, file string, showDoc bool) error {
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head := ""
	if showDoc {
		head = commented(documentation())
	}
	open := editor.NewDefaultEditor([]string{"KUBE_EDITOR", "EDITOR"})
	text, problem := before, ""
	for {
		shown := append([]byte(commented(problem)+head), text...)
		edited, path, err := open.LaunchTempFile(filepath.Base(file)+"-edit-", ".yaml", bytes.NewReader(shown))
		if err != nil {
			return fmt.Errorf("edit %s: %w; the edited text is in %s", file, err, path)
		}
		after := uncommented(edited)
		done := func() { os.Remove(path) } // a leftover in a temporary folder does no harm
		switch {
		case len(bytes.TrimSpace(after)) == 0:
			done()
			return fmt.Errorf("%s was not changed: the new text is empty", file)
		case bytes.Equal(after, before):
			done()
			fmt.Fprintf(cmd.ErrOrStderr(), "%s was not changed\n", file)
			return nil
		case problem != "" && bytes.Equal(after, text):
			// The same error again: stop.
			return fmt.Errorf("%s was not changed, because the new text is not valid:\n%sthe edited text is in %s", file,
				problem, path)
		}
		all, err := customizations([]source{{file, after}}, cmd.ErrOrStderr())
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("there is no ResourceInterpreterCustomization in it")
		}
		if err == nil {
			err = invalid(all)
		}
		if err == nil {
			done()
			mode := os.FileMode(0o644)
			if info, err := os.Stat(file); err == nil {
				mode = info.Mode().Perm()
			}
			if err := os.WriteFile(file, after, mode); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s edited\n", file)
			return nil
		}
		done()
		text, problem = after, err.Error()+"\n"
	}
}
