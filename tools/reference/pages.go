package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// note is at the end of each page.
const note = "\nThis page is generated from the source by `make generate`.\n"

// render returns the text of each page by its file name. An error names each constant that lacks something.
func render(root string, s source) (map[string]string, error) {
	pages, missing := map[string]string{}, verify(s)
	for name, page := range map[string]func() (string, error){
		"labels-and-annotations.md": func() (string, error) { return namesPage(s) },
		"conditions.md":             func() (string, error) { return conditionsPage(s) },
		"events.md":                 func() (string, error) { return eventsPage(s) },
		"api-fields.md":             func() (string, error) { return fieldsPage(root) },
	} {
		text, err := page()
		if err != nil {
			missing = append(missing, err)
		}
		pages[name] = text
	}
	return pages, errors.Join(missing...)
}

// verify returns what keeps the pages from being complete.
func verify(s source) (missing []error) {
	for _, call := range s.unnamed {
		missing = append(missing, fmt.Errorf("%s: make the reason of the event a constant with a doc comment", call))
	}
	events, known := map[string]bool{}, map[string]bool{}
	for _, c := range s.constants {
		known[c.name] = true
		events[c.name] = events[c.name] || c.kind == "event" || c.kind == "none"
	}
	for _, name := range slices.Sorted(maps.Keys(s.recorded)) {
		if known[name] && !events[name] {
			missing = append(missing, fmt.Errorf("%s: the event %s needs a directive //reference:event", s.recorded[name], name))
		}
	}
	for _, c := range s.constants {
		at := fmt.Sprintf("%s:%d: %s", c.file, c.line, c.name)
		switch {
		case c.kind == "none":
		case c.kind == "" && reasonName.MatchString(c.name) && reasonValue.MatchString(c.value):
			missing = append(missing, fmt.Errorf("%s needs a directive //reference:event, reason or none", at))
		case c.kind != "" && reasonValue.MatchString(c.value) && meaning(c) == "":
			missing = append(missing, fmt.Errorf("%s needs a doc comment %q", at, c.name+": MEANING."))
		}
	}
	return missing
}

// meaning is the doc comment of a listed constant without its name; empty if it is not of that form.
func meaning(c constant) string {
	text, ok := strings.CutPrefix(c.doc, c.name+": ")
	if !ok || text == "" {
		return ""
	}
	return cell(strings.TrimSuffix(text, "."))
}

// cell is a text as a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// listed are the constants of a kind by what their directive is about, without duplicates, sorted by value.
func listed(s source, kind string) map[string][]constant {
	found := map[string][]constant{}
	for _, c := range s.constants {
		if c.kind != kind || !reasonValue.MatchString(c.value) {
			continue
		}
		// A reason that two packages record has two constants.
		if !slices.ContainsFunc(found[c.about], func(o constant) bool {
			return o.value == c.value && meaning(o) == meaning(c)
		}) {
			found[c.about] = append(found[c.about], c)
		}
	}
	for _, all := range found {
		slices.SortFunc(all, func(a, b constant) int { return cmp.Compare(a.value, b.value) })
	}
	return found
}

// objects are those that have conditions, in the order of the page.
var objects = []string{"ResourceBinding and ClusterResourceBinding", "Work", "Cluster", "status of a template",
	"Release", "FederatedHPA", "MultiClusterService", "ServiceExport", "MultiClusterIngress",
	"ReplicaSchedulingPolicy", "ManifestWork", "ManifestWorkReplicaSet",
	"ManagedCluster", "ManagedClusterSet", "ManagedClusterSetBinding", "Placement", "ClusterManagementAddOn",
	"ManagedClusterAddOn", "WorkloadRebalancer", "ResourceRegistry"}

func conditionsPage(s source) (string, error) {
	conditions, reasons := listed(s, "condition"), listed(s, "reason")
	known := map[string]bool{}
	var out strings.Builder
	out.WriteString("# Conditions and reasons\n```\nkubectl get resourcebinding web-deployment -o yaml\n```\n" +
		"The conditions that the hub sets, with their reasons. Programs should read types and reasons; messages are for people. " +
		"[Read the status of workloads](../status.md) explains the most frequent ones.\n")
	for _, object := range objects {
		fmt.Fprintf(&out, "\n## %s\n", strings.ToUpper(object[:1])+object[1:])
		if all := conditions[object]; len(all) > 0 {
			out.WriteString("| condition | meaning |\n|---|---|\n")
			for _, c := range all {
				fmt.Fprintf(&out, "| `%s` | %s |\n", c.value, meaning(c))
			}
			known[object] = true
		}
		var rows []string
		for about, all := range reasons {
			condition, found := strings.CutSuffix(about, " of "+object)
			if !found {
				continue
			}
			known[about] = true
			for _, c := range all {
				rows = append(rows, fmt.Sprintf("| %s | `%s` | %s |\n", condition, c.value, meaning(c)))
			}
		}
		slices.Sort(rows)
		if len(rows) > 0 {
			out.WriteString("\n| condition | reason | meaning |\n|---|---|---|\n" + strings.Join(rows, ""))
		}
	}
	var unknown []error
	for _, all := range []map[string][]constant{conditions, reasons} {
		for about, cs := range all {
			if !known[about] {
				unknown = append(unknown, fmt.Errorf("%s:%d: no object is called %q, see objects in tools/reference/pages.go",
					cs[0].file, cs[0].line, about))
			}
		}
	}
	return out.String() + note, errors.Join(unknown...)
}

// eventAbout splits what the directive of an event says: its type, the level of --success-events, and its objects.
var eventAbout = regexp.MustCompile(`^(Warning|Normal|Normal, all) on (.+)$`)

func eventsPage(s source) (string, error) {
	var rows []string
	var wrong []error
	for about, all := range listed(s, "event") {
		m := eventAbout.FindStringSubmatch(about)
		if m == nil {
			wrong = append(wrong, fmt.Errorf("%s:%d: an event is about %q, want TYPE on OBJECTS", all[0].file,
				all[0].line, about))
			continue
		}
		for _, c := range all {
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", c.value, m[1], m[2], meaning(c)))
		}
	}
	slices.Sort(rows)
	return "# Events\n```\nkubectl get events -n shop --field-selector reason=ScheduleBindingFailed\n```\n" +
		"The events that the hub records. An event on a template is in its namespace, one on a Cluster in `default`. " +
		"`Normal` events are recorded by default, `Normal, all` only with `argosy up --success-events=all`; " +
		"with `none`, only warnings are recorded.\n\n" +
		"A condition that is True while something is wrong with a rollout, such as `FleetHalted`, is also recorded as a " +
		"Warning with the same reason: see [conditions](conditions.md).\n\n" +
		"| reason | type | on | meaning |\n|---|---|---|---|\n" + strings.Join(rows, "") + note, errors.Join(wrong...)
}
