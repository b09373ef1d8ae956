package why

import (
	"bytes"
	"cmp"
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
	has, as, takes := "CLAIMED", "AFFINITY", "ELIGIBLE"
	if strings.HasSuffix(a.Kind, "OverridePolicy") {
		has, as, takes = "PROPAGATED", "RULES", "SELECTED"
	}
	table(&b, "\nSelectors\n", a.Selectors, []string{"SELECTS", "MATCHED", "WHY NONE"}, func(s Selector) []string {
		matched := fmt.Sprint(s.Matches)
		if s.Unread {
			matched = "?"
		}
		return []string{s.Selects, matched, short(s.None)}
	})
	table(&b, "\nTemplates\n", a.Templates, []string{"TEMPLATE", "SELECTS BY", has, "PLACED", "WHY"},
		func(s Selected) []string {
			return []string{s.Template, s.By, yesNo(s.Claimed), s.Placed, cmp.Or(s.Why, short(s.State))}
		})
	table(&b, "\nClusters\n", a.Clusters, []string{"CLUSTER", takes, as, "WHY NOT"}, func(c PolicyCluster) []string {
		return []string{c.Name, yesNo(c.Takes), strings.Join(c.As, ","), c.Why}
	})
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
