package why

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

var marks = map[Severity]string{Problem: "✗", Attention: "!", Waiting: "…"}

// Write prints the answer for people: problems first, then policy, placement and clusters. An answer that is narrowed
// to one cluster shows all details of that cluster.
func (a Answer) Write(out io.Writer) error {
	var b bytes.Buffer
	kind := match.GroupKind(a.APIVersion, a.Kind).String()
	fmt.Fprintf(&b, "%s: %s\n", text.Object(kind, a.Namespace, a.Name), a.Summary)
	writeFindings(&b, a.Findings)
	writePolicy(&b, a.Policy)
	if a.Placement != nil {
		writePlacement(&b, a.Placement)
	}
	for _, s := range a.Scaling {
		fmt.Fprintf(&b, "\nScaling: %s\n", s)
	}
	writeClusters(&b, a)
	if len(a.Warnings) > 0 {
		fmt.Fprint(&b, "\nRecent warnings\n")
		for _, w := range a.Warnings {
			fmt.Fprintf(&b, "  %s  %s, %s: %s\n", w.Last.UTC().Format("15:04:05Z"), w.Object, w.Reason, w.Message)
		}
	}
	writeMissing(&b, a.Missing)
	if len(a.Clusters) > 0 {
		writeUnseen(&b, a.Missing, "SCORE and CAPACITY", scoreNeeds)
		writeUnseen(&b, a.Missing, "OVERRIDES", overridesNeeds)
	}
	return writePrintable(out, b.Bytes())
}

// writePrintable writes lines for a terminal, without control characters, which texts of members may have.
func writePrintable(out io.Writer, lines []byte) error {
	_, err := out.Write(bytes.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, lines))
	return err
}

func writePolicy(b *bytes.Buffer, p Policy) {
	switch {
	case p.ClaimedBy != "":
		fmt.Fprintf(b, "\nPolicy: claimed by %s\n", p.ClaimedBy)
	case p.Why != "":
		fmt.Fprintf(b, "\nPolicy: none; %s\n", p.Why)
	default:
		fmt.Fprint(b, "\nPolicy: none\n")
	}
	table(b, "", p.Candidates, []string{"POLICY", "PRIORITY", "SELECTS BY", "WHY NOT"},
		func(c PolicyCandidate) []string {
			why := c.Why
			if c.Holds {
				why = "claimed it"
			}
			return []string{c.Policy, fmt.Sprint(c.Priority), c.Selects, why}
		})
	if p.OtherKinds > 0 {
		what := "more policies select"
		if p.OtherKinds == 1 {
			what = "more policy selects"
		}
		fmt.Fprintf(b, "  %d %s other kinds.\n", p.OtherKinds, what)
	}
}

func writePlacement(b *bytes.Buffer, p *Placement) {
	fmt.Fprintf(b, "\nPlacement: %s", p.Binding)
	if p.Method != "" && p.Method != schedule.Everywhere {
		fmt.Fprintf(b, ", %s, %s", text.Count(int(p.Replicas), "replica"), p.Method)
	}
	if c := p.Scheduled; c != nil {
		fmt.Fprintf(b, ", Scheduled=%s (%s)", c.Status, c.Reason)
	}
	fmt.Fprintln(b)
	for _, t := range p.Terms {
		verdict := cmp.Or(t.Fails, "can be satisfied")
		if t.InUse {
			verdict += ", in use"
		}
		fmt.Fprintf(b, "  affinity %q: %s\n", t.Name, verdict)
	}
	for i, s := range p.Steps {
		fmt.Fprintf(b, "  %d. %s\n", i+1, s)
	}
	replicas := p.Method != schedule.Everywhere
	writeTargets := func(what string, all []workv1alpha2.TargetCluster) {
		if len(all) > 0 {
			fmt.Fprintf(b, "  %s: %s\n", what, targets(all, replicas))
		}
	}
	if len(p.Run) > 0 {
		writeTargets("In the binding", p.Placed)
	}
	writeTargets("A WorkloadRebalancer would place", p.Fresh)
}

func writeClusters(b *bytes.Buffer, a Answer) {
	columns := []string{"CLUSTER", "STATE", "REPLICAS", "SCORE", "CAPACITY", "OVERRIDES", "APPLIED", "HEALTH", "WHY"}
	table(b, "\nClusters\n", a.Clusters, columns, func(c Cluster) []string {
		replicas, score, room, applied, health := "", "", "", "", ""
		if c.Target && a.Placement != nil && a.Placement.Method != schedule.Everywhere && a.Placement.Method != "" {
			replicas = fmt.Sprint(c.Replicas)
		}
		if c.Score != nil {
			score = fmt.Sprint(*c.Score)
		}
		if c.Room != nil {
			room = fmt.Sprint(*c.Room)
		}
		if c.Target {
			score, room = markUnseen(a.Missing, score, scoreNeeds), markUnseen(a.Missing, room, scoreNeeds)
		}
		var policies []string
		for _, o := range c.Overrides {
			_, name, _ := strings.Cut(o.Policy, " ")
			policies = append(policies, name[strings.LastIndex(name, "/")+1:])
		}
		overrides := strings.Join(policies, ",")
		if c.Target {
			overrides = markUnseen(a.Missing, overrides, overridesNeeds)
		}
		if w := c.Work; w != nil {
			applied, health = yesNo(w.Applied), string(w.Health)
		}
		return []string{c.Name, string(c.State), replicas, score, room, overrides, applied, health,
			short(c.Why)}
	})
	if a.Only != "" && len(a.Clusters) > 0 {
		writeDetail(b, a.Clusters[0])
	}
}

// Command returns the command that explains an object, in backquotes.
func Command(kind, namespace, name string) string {
	if namespace != "" {
		name += " -n " + namespace
	}
	return fmt.Sprintf("`argosy why %s %s`", strings.ToLower(kind), name)
}

// writeDetail prints all details of one cluster.
func writeDetail(b *bytes.Buffer, c Cluster) {
	fmt.Fprintf(b, "\nCluster %s\n", c.Name)
	if c.Why != "" {
		fmt.Fprintf(b, "  why: %s\n", text.Printable(c.Why))
	}
	if c.Ready != nil {
		fmt.Fprintf(b, "  ready: %s%s (%s) %s\n", c.Ready.Status, sinceText(c.Ready), c.Ready.Reason,
			text.Printable(c.Ready.Message))
	}
	if len(c.Taints) > 0 {
		fmt.Fprintf(b, "  taints: %s\n", strings.Join(c.Taints, ", "))
	}
	for _, f := range c.Free {
		fmt.Fprintf(b, "  capacity: %s\n", f.text())
	}
	for _, o := range c.Overrides {
		fmt.Fprintf(b, "  override: %s %s\n", o.Policy, o.Overriders)
	}
	for _, u := range c.Untouched {
		fmt.Fprintf(b, "  override: %s\n", u)
	}
	if c.Work == nil {
		return
	}
	if c.Pods != nil {
		for i, line := range c.Pods.Lines() {
			if i < len(c.Pods.Troubles) && c.Pods.Troubles[i].Pod != "" {
				line += ", such as pod " + c.Pods.Troubles[i].Pod
			}
			fmt.Fprintf(b, "  pods: %s\n", text.Printable(line))
		}
	}
	fmt.Fprintf(b, "  work: %s/%s\n", c.Work.Namespace, c.Work.Name)
	for _, cond := range c.Work.Conditions {
		fmt.Fprintf(b, "    %s=%s (%s) %s\n", cond.Type, cond.Status, cond.Reason,
			text.Printable(cond.Message))
	}
	var status bytes.Buffer
	if len(c.Work.Status) > 0 && json.Indent(&status, c.Work.Status, "    ", "  ") == nil {
		fmt.Fprintf(b, "  status reported by the member:\n    %s\n", status.String())
	}
}

// shownWhy is the maximal length of a reason in a table; the findings have the whole text.
const shownWhy = 90

func short(s string) string {
	if r := []rune(s); len(r) > shownWhy {
		return string(r[:shownWhy-1]) + "…"
	}
	return s
}

// table prints a row of cells for each element under the columns; nothing for no elements. Empty cells are dashes, and
// the last column is not padded.
func table[T any](out io.Writer, title string, all []T, columns []string, row func(T) []string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprint(out, title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range len(all) + 1 {
		cells := columns
		if i > 0 {
			cells = row(all[i-1])
		}
		for j := range cells {
			cells[j] = cmp.Or(text.Printable(cells[j]), "-")
		}
		fmt.Fprintf(w, "  %s\n", strings.Join(cells, "\t"))
	}
	_ = w.Flush()
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
