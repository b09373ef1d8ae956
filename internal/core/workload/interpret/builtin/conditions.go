package builtin

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	words "github.com/argosy-io/argosy/internal/core/object/text"
)

// nativeCondition describes how to aggregate a condition of a Kubernetes kind.
type nativeCondition struct {
	kind string
	// good is the status of a healthy workload.
	good string
	// final is the reason of the good status that means finished; empty if all reasons do.
	final string
	// expected is true if the controller always sets it. Then a cluster without it counts as Unknown.
	expected bool
	// fine is the message if all clusters are healthy and finished.
	fine string
}

// reflectConditions is reflectFields plus the aggregated parts of conditions. It omits lastUpdateTime and the messages
// of good conditions, which change with every pod and would cause a write per cluster.
func reflectConditions(kinds []nativeCondition, fields ...string) reflector {
	reflect := reflectFields(fields...)
	return func(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
		status, err := reflect(ctx, observed)
		if err != nil || status == nil {
			return status, err
		}
		var short []any
		for _, c := range objects(observed.Object, "status", "conditions") {
			i := slices.IndexFunc(kinds, func(k nativeCondition) bool { return k.kind == text(c, "type") })
			if i < 0 || text(c, "status") == "" {
				continue
			}
			one := map[string]any{"type": text(c, "type"), "status": text(c, "status")}
			setText(one, "reason", text(c, "reason"))
			setText(one, "lastTransitionTime", text(c, "lastTransitionTime"))
			if text(c, "status") != kinds[i].good {
				setText(one, "message", text(c, "message"))
			}
			short = append(short, one)
		}
		if short != nil {
			sortBy(short, "type")
			status["conditions"] = short
		}
		return status, nil
	}
}

// nativeConditions aggregates the clusters' conditions: the worst status wins, an unfinished reason wins over the
// final one, and the message names the clusters with it. A cluster without a report is Unknown. Without any report
// there is no condition, except for a workload with zero replicas, which is available.
func nativeConditions(kinds []nativeCondition) addition {
	return func(status map[string]any, template *unstructured.Unstructured, rs []report) error {
		var all []any
		for _, k := range kinds {
			if c := k.fold(rs); c != nil {
				all = append(all, c)
			} else if wanted, err := specNumber(template, 1, "replicas"); k.expected && len(rs) == 0 && err == nil &&
				wanted == 0 {
				c := map[string]any{"type": k.kind, "status": k.good, "reason": k.final, "message": k.fine}
				if was := conditionText(object(template.Object, "status"), k.kind, "lastTransitionTime"); was != "" {
					c["lastTransitionTime"], c["lastUpdateTime"] = was, was
				}
				all = append(all, c)
			}
		}
		if all != nil {
			status["conditions"] = all
		}
		return nil
	}
}

// fold returns the aggregated condition; nil if no cluster has it.
func (k nativeCondition) fold(rs []report) map[string]any {
	// Lower is worse. With equal severity, unfinished is worse.
	type state struct{ severity, done int }
	worst, reported := state{severity: 3}, false
	var status, reason, since, lately string
	var messages []string
	for _, r := range rs {
		is, why, at, message := "", "", "", ""
		for _, c := range objects(r.status, "conditions") {
			if text(c, "type") == k.kind {
				is, why, at, message = text(c, "status"), text(c, "reason"), text(c, "lastTransitionTime"), text(c, "message")
			}
		}
		lately = latest(lately, at)
		switch {
		case is != "":
			reported = true
		case !k.expected:
			continue
		default:
			is, why, message = "Unknown", "NotReported", "the cluster has not reported it yet"
		}
		s := state{severity: severity(is, k.good == "False")}
		if is == k.good && (k.final == "" || why == k.final) {
			s.done = 1
		}
		if c := cmp.Or(cmp.Compare(s.severity, worst.severity), cmp.Compare(s.done, worst.done)); c > 0 {
			continue
		} else if c < 0 {
			worst, status, reason, since, messages = s, is, why, "", nil
		}
		since = latest(since, at)
		messages = append(messages, withCluster(r.cluster, cmp.Or(message, why)))
	}
	if !reported {
		return nil
	}
	c := map[string]any{"type": k.kind, "status": status}
	setText(c, "reason", reason)
	setText(c, "message", words.Message(words.Lines(messages, maxMessages)))
	if worst.done == 1 && k.fine != "" {
		c["message"] = k.fine
	}
	if at := cmp.Or(since, lately); at != "" {
		c["lastTransitionTime"], c["lastUpdateTime"] = at, at
	}
	return c
}
