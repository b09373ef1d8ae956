// Package tables prints objects of Kubernetes' own kinds as an API server prints them for kubectl.
package tables

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"
)

var generator = sync.OnceValue(func() *printers.HumanReadableGenerator {
	g := printers.NewTableGenerator()
	internalversion.AddHandlers(g)
	return g
})

// Row returns the columns and the cells of an object, as JSON. ok is false for kinds that are not Kubernetes' own.
func Row(_, _ string, raw []byte) (columns []metav1.TableColumnDefinition, cells []any, ok bool) {
	obj, _, err := legacyscheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, nil, false
	}
	table, err := generator().GenerateTable(obj, printers.GenerateOptions{})
	if err != nil || len(table.Rows) != 1 {
		return nil, nil, false
	}
	return table.ColumnDefinitions, table.Rows[0].Cells, true
}
