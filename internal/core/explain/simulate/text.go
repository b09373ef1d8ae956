package simulate

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Print writes the report for users: unplaced workloads first, then changes, then clusters. all includes unchanged
// workloads. The error comes from out.
func (r Report) Print(out io.Writer, all bool) error {
	var b strings.Builder
	change := "nothing is changed"
	if len(r.Change) > 0 {
		change = strings.Join(r.Change, ", ")
	}
	text.Fprintf(&b, "Simulated: %s\n", change)

	section := func(title string) { fmt.Fprintf(&b, "\n%s\n", title) }
	if !r.Summary.Fits() {
		section("Does not fit")
	}
	for _, w := range r.Workloads {
		if w.Problem == "" {
			continue
		}
		text.Fprintf(&b, "  %s: %s\n", w.ref(), w.Problem)
		if w.Unplaced > 0 {
			text.Fprintf(&b, "    %d of %d replicas have no cluster\n", w.Unplaced, w.After.Replicas)
		}
		for _, help := range w.WouldFit {
			text.Fprintf(&b, "    would fit with %s\n", help)
		}
		if w.Help != "" {
			text.Fprintf(&b, "    what helps: %s\n", w.Help)
		}
	}
	for _, w := range r.Workloads {
		for _, o := range w.Overridden {
			if o.Problem != "" {
				text.Fprintf(&b, "  %s in %s: %s\n", w.ref(), o.Cluster, o.Problem)
			}
		}
	}
	for _, c := range r.Clusters {
		if len(c.Short) > 0 {
			text.Fprintf(&b, "  %s is given more than it has room for: it lacks %s\n", c.Name, strings.Join(c.Short, ", "))
		}
	}

	table := tabwriter.NewWriter(&b, 0, 8, 3, ' ', 0)
	shown := slices.DeleteFunc(slices.Clone(r.Workloads), func(w Workload) bool { return !w.Changed() && !all })
	if len(shown) > 0 {
		section("Workloads")
		fmt.Fprintln(table, "  WORKLOAD\tPOLICY\tBEFORE\tAFTER\tMOVED\tWHY")
	}
	for _, w := range shown {
		policy := short(w.After.Policy)
		if w.Before.Policy != w.After.Policy && w.Before.Policy != "" {
			policy = short(w.Before.Policy) + " → " + policy
		}
		why := w.Reason
		if rollsOut := w.rollsOut(); why == "" && len(rollsOut) > 0 {
			why = "rolls out in " + text.Names(rollsOut, listed)
		}
		text.Fprintf(table, "  %s\t%s\t%s\t%s\t%d\t%s\n", w.ref(), policy, shares(w.Before), shares(w.After), w.Moved,
			cmp.Or(why, "-"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var stays, undetermined, manifests []string
	for _, w := range r.Workloads {
		for _, why := range w.Stays {
			stays = append(stays, w.ref()+" "+why)
		}
		if w.Undetermined != "" {
			undetermined = append(undetermined, w.ref()+": "+w.Undetermined)
		}
		for _, o := range w.Overridden {
			for _, c := range o.Changes {
				manifests = append(manifests, w.ref()+" in "+o.Cluster+": "+c)
			}
		}
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"Stays", stays}, {"Can get other clusters on the hub", undetermined}, {"Manifests", manifests}} {
		if len(list.lines) > 0 {
			section(list.title)
		}
		for _, line := range list.lines {
			text.Fprintf(&b, "  %s\n", line)
		}
	}

	section("Clusters (free before → after)")
	fmt.Fprintln(table, "  CLUSTER\tSTATE\tREPLICAS\tCPU\tMEMORY\tPODS")
	for _, c := range r.Clusters {
		text.Fprintf(table, "  %s\t%s\t%s", c.Name, cmp.Or(c.State, "-"), arrow(fmt.Sprint(c.Before), fmt.Sprint(c.After)))
		for _, name := range columns {
			h, known := c.Headroom[name]
			cell := "unknown"
			if known {
				unit := r.unit(name)
				cell = arrow(free(h.Before, unit), free(h.After, unit))
			}
			text.Fprintf(table, "\t%s", cell)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, warning := range r.Warnings {
		text.Fprintf(&b, "\nWarning: %s", warning)
	}
	if len(r.Warnings) > 0 {
		b.WriteByte('\n')
	}
	s := r.Summary
	text.Fprintf(&b, "\nWorkloads that change: %d of %d. Replicas that move: %d. Workloads that do not fit: %d.",
		s.Changed, s.Workloads, s.MovedReplicas, s.Unplaced)
	if s.UnplacedReplicas > 0 {
		text.Fprintf(&b, " Replicas without a cluster: %d.", s.UnplacedReplicas)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(out, blanks.ReplaceAllString(b.String(), ""))
	return err
}

// columns are the resources in the table of clusters.
var columns = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// unit returns the unit of a column: that of the largest amount in it.
func (r Report) unit(name corev1.ResourceName) capacity.Unit {
	var largest resource.Quantity
	for _, c := range r.Clusters {
		for _, q := range []*resource.Quantity{c.Headroom[name].Before, c.Headroom[name].After} {
			if q != nil && math.Abs(q.AsApproximateFloat64()) > math.Abs(largest.AsApproximateFloat64()) {
				largest = *q
			}
		}
	}
	return capacity.UnitOf(name, largest).Rounded()
}

// free returns the free capacity, or by how much it is exceeded: "7.5", "over by 2", or "none" for a cluster that does
// not exist.
func free(q *resource.Quantity, unit capacity.Unit) string {
	switch {
	case q == nil:
		return "none"
	case q.Sign() < 0:
		over := q.DeepCopy()
		over.Neg()
		return "over by " + unit.Write(over)
	}
	return unit.Write(*q)
}

func (w Workload) ref() string { return text.Object(w.Kind, w.Namespace, w.Name) }

// rollsOut returns the clusters in which members run another manifest.
func (w Workload) rollsOut() (clusters []string) {
	for _, o := range w.Overridden {
		if o.Problem == "" {
			clusters = append(clusters, o.Cluster)
		}
	}
	return clusters
}

// blanks are those at the end of lines.
var blanks = regexp.MustCompile(`(?m) +$`)

// short returns a policy without its kind: a name without a namespace is a cluster policy's.
func short(policy string) string {
	if _, name, ok := strings.Cut(policy, " "); ok {
		return name
	}
	return "-"
}

// listed is the number of clusters that are listed individually.
const listed = 6

// shares returns "m1:4 m2:2", without numbers if replicas are not divided.
func shares(p Placed) string {
	if len(p.Clusters) == 0 {
		return "-"
	}
	text := func(t workv1alpha2.TargetCluster) string {
		if t.Replicas == 0 {
			return t.Name
		}
		return fmt.Sprintf("%s:%d", t.Name, t.Replicas)
	}
	var sum int64
	var texts []string
	for _, t := range p.Clusters {
		texts = append(texts, text(t))
		sum += int64(t.Replicas)
	}
	if len(texts) <= listed {
		return strings.Join(texts, " ")
	}
	return fmt.Sprintf("%s … (%d in %d clusters)", strings.Join(slices.Clone(texts[:listed-1]), " "), sum, len(texts))
}

func arrow(before, after string) string {
	if before == after {
		return before
	}
	return before + " → " + after
}
