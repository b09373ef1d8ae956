package why

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Write prints the answer for people: problems first, then selectors, templates and clusters.
func (a PolicyAnswer) Write(out io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n", text.Object(a.Kind, a.Namespace, a.Name), a.Summary)
	writeFindings(&b, a.Findings)
	if len(a.Selectors) > 0 {
		fmt.Fprint(&b, "\nSelectors\n")
		t := table(&b, "SELECTS", "MATCHED", "WHY NONE")
		for _, s := range a.Selectors {
			t.row(s.Selects, fmt.Sprint(s.Matches), short(s.None))
		}
		t.end()
	}
	if len(a.Templates) > 0 {
		has := "CLAIMED"
		if strings.HasSuffix(a.Kind, "OverridePolicy") {
			has = "PROPAGATED"
		}
		fmt.Fprint(&b, "\nTemplates\n")
		t := table(&b, "TEMPLATE", "SELECTS BY", has, "PLACED", "WHY")
		for _, s := range a.Templates {
			why := s.Why
			if why == "" {
				why = short(s.State)
			}
			t.row(s.Template, s.By, yesNo(s.Claimed), s.Placed, why)
		}
		t.end()
	}
	if len(a.Clusters) > 0 {
		as, takes := "AFFINITY", "ELIGIBLE"
		if strings.HasSuffix(a.Kind, "OverridePolicy") {
			as, takes = "RULES", "SELECTED"
		}
		fmt.Fprint(&b, "\nClusters\n")
		t := table(&b, "CLUSTER", takes, as, "WHY NOT")
		for _, c := range a.Clusters {
			t.row(c.Name, yesNo(c.Takes), strings.Join(c.As, ","), c.Why)
		}
		t.end()
	}
	writeMissing(&b, a.Missing)
	return writePrintable(out, b.Bytes())
}

func writeFindings(b *bytes.Buffer, all []Finding) {
	for _, f := range all {
		fmt.Fprintf(b, "\n%s %s\n", marks[f.Severity], f.What)
		if f.Next != "" {
			fmt.Fprintf(b, "  → %s\n", f.Next)
		}
	}
}
