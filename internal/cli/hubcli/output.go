package hubcli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

// OutputFlag adds --output, and has the command reject a value other than json and yaml before it runs.
func OutputFlag(cmd *cobra.Command, output *string, usage string) {
	cmd.Flags().StringVarP(output, "output", "o", "", usage)
	cmd.PreRunE = func(*cobra.Command, []string) error { return CheckOutput(*output) }
}

// CheckOutput rejects a value of --output other than json and yaml.
func CheckOutput(output string) error {
	switch output {
	case "", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output must be json or yaml, not %q", output)
}

func WriteJSON(out io.Writer, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, EscapeJSON(string(data))+"\n")
	return err
}

// EscapeJSON returns JSON with the characters that a terminal does not print as escape sequences. Only texts contain
// them.
func EscapeJSON(data string) string {
	return replaceControls(data, func(r rune) (units string) {
		for _, unit := range utf16.Encode([]rune{r}) {
			units += fmt.Sprintf(`\u%04x`, unit)
		}
		return units
	})
}

// Harmless returns a text with a blank for each character that could control a terminal.
func Harmless(text string) string { return replaceControls(text, func(rune) string { return " " }) }

// controls reports whether a character could control a terminal. Line breaks, tabs and spaces of any width do not.
func controls(r rune) bool {
	return r != '\n' && r != '\t' && !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r)
}

func replaceControls(text string, replace func(rune) string) string {
	var b strings.Builder
	for _, r := range text {
		if controls(r) {
			b.WriteString(replace(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// YAML returns a value as YAML that does not control a terminal. Only double-quoted texts have escape sequences, so a
// value that needs them is written in the style of JSON.
func YAML(value any) ([]byte, error) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, err
	}
	// It fails for control characters that YAML does not allow.
	if plain, err := yaml.JSONToYAML(data); err == nil && !strings.ContainsFunc(string(plain), controls) {
		return plain, nil
	}
	return []byte(replaceControls(string(data), func(r rune) string { return fmt.Sprintf(`\U%08x`, r) }) + "\n"), nil
}

// WriteAs writes a value as JSON, or as YAML if output is yaml.
func WriteAs(out io.Writer, output string, value any) error {
	if output != "yaml" {
		return WriteJSON(out, value)
	}
	data, err := YAML(value)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

func TextTable(columns ...string) *metav1.Table {
	table := &metav1.Table{}
	for _, name := range columns {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	return table
}

// AddRow adds a row. Each text in it is one printable line.
func AddRow(table *metav1.Table, cells ...any) {
	for i := range cells {
		if s, ok := cells[i].(string); ok {
			cells[i] = text.Printable(s)
		}
	}
	table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
}

// PrintTable prints a table with its columns aligned.
func PrintTable(out io.Writer, table *metav1.Table, o printers.PrintOptions) error {
	tabs := printers.GetNewTabWriter(out)
	if err := printers.NewTablePrinter(o).PrintObj(table, tabs); err != nil {
		return err
	}
	return tabs.Flush()
}

func Mib(n int64) float64 { return float64(n) / (1 << 20) }

func OrNone(s string) string { return cmp.Or(s, "<none>") }
