package hubcli

import (
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

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
	_, err = out.Write(append(data, '\n'))
	return err
}

// WriteAs writes a value as JSON, or as YAML if output is yaml.
func WriteAs(out io.Writer, output string, value any) error {
	if output != "yaml" {
		return WriteJSON(out, value)
	}
	data, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// TextTable returns an empty table with columns of text.
func TextTable(columns ...string) *metav1.Table {
	table := &metav1.Table{}
	for _, name := range columns {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	return table
}

func AddRow(table *metav1.Table, cells ...any) {
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

func OrNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
