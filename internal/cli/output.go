package cli

import (
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// checkOutput refuses what --output may not be where programs have json and yaml.
func checkOutput(output string) error {
	switch output {
	case "", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output must be json or yaml, not %q", output)
}

func writeJSON(out io.Writer, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	_, err = out.Write(append(data, '\n'))
	return err
}

func writeYAML(out io.Writer, value any) error {
	data, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// printTable prints a table with its columns aligned.
func printTable(out io.Writer, table *metav1.Table, o printers.PrintOptions) error {
	tabs := printers.GetNewTabWriter(out)
	if err := printers.NewTablePrinter(o).PrintObj(table, tabs); err != nil {
		return err
	}
	return tabs.Flush()
}
