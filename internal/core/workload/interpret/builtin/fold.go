package builtin

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	words "github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

type aggregator func(context.Context, *unstructured.Unstructured,
	[]workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)

// folding returns the Aggregate of a kind whose status depends only on the reports, which are sorted by cluster.
func folding(fold func(template *unstructured.Unstructured, rs []report) map[string]any) aggregator {
	return ofReports(func(template *unstructured.Unstructured, rs []report) (*unstructured.Unstructured, error) {
		return settled(template, fold(template, rs)), nil
	})
}

// foldingNative is folding for Kubernetes kinds, whose API servers omit zeros.
func foldingNative(fold func(template *unstructured.Unstructured, rs []report) map[string]any) aggregator {
	return ofReports(func(template *unstructured.Unstructured, rs []report) (*unstructured.Unstructured, error) {
		return settledNative(template, fold(template, rs)), nil
	})
}

// ofReports returns the Aggregate that computes the template from the reports, which are sorted by cluster.
func ofReports(aggregate func(template *unstructured.Unstructured, rs []report) (*unstructured.Unstructured,
	error)) aggregator {
	return func(_ context.Context, template *unstructured.Unstructured,
		items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
		rs, err := reports(items)
		if err != nil {
			return nil, err
		}
		return aggregate(template, rs)
	}
}

// span sets the times of a run: the earliest start, and the latest end if all clusters have ended.
func span(status map[string]any, rs []report, began, done string) {
	setText(status, began, earliest(textsOf(rs, began)...))
	setEnd(status, rs, done)
}

// setEnd sets the latest end, if all clusters have ended.
func setEnd(status map[string]any, rs []report, done string) {
	if ends := textsOf(rs, done); !slices.Contains(ends, "") {
		setText(status, done, latest(ends...))
	}
}

// setPhase sets the first of the phases, ordered by urgency, that any cluster is in. A cluster without a report is in
// the initial phase. A template without clusters has no phase.
func setPhase(status map[string]any, phases []string, initial string, rs []report) {
	if len(rs) > 0 {
		status["phase"] = firstOf(phases, initial, rs)
	}
}

// listed limits the items of a list that are gathered from all clusters. An image that cannot be pulled fails on each
// of thousands of nodes, and the template would become too large for etcd.
const listed = 100

// gather sets a list to the items of all clusters, in order of clusters, converted by convert and up to the limit.
func gather(status map[string]any, rs []report, name string, convert func(cluster string, item any) any) {
	var all []any
	for _, r := range rs {
		for _, item := range list(r.status, name) {
			if len(all) == listed {
				break
			}
			all = append(all, convert(r.cluster, runtime.DeepCopyJSONValue(item)))
		}
	}
	if all != nil {
		status[name] = all
	}
}

// byName returns the parts of all clusters' statuses by their names.
func byName(rs []report, parts func(report) []map[string]any) map[string][]report {
	all := map[string][]report{}
	for _, r := range rs {
		for _, part := range parts(r) {
			name := text(part, "name")
			all[name] = append(all[name], report{cluster: r.cluster, status: part})
		}
	}
	return all
}

// sortBy sorts objects by a string field.
func sortBy(objects []any, name string) {
	slices.SortFunc(objects, func(a, b any) int {
		return cmp.Compare(text(a.(map[string]any), name), text(b.(map[string]any), name))
	})
}

// copied returns the status of the only cluster, without the fields added for the hub.
func copied(r report) map[string]any {
	status := runtime.DeepCopyJSON(r.status)
	delete(status, interpret.RunOfField)
	delete(status, interpret.CleansUpField)
	return status
}

// asIs returns an item without its cluster.
func asIs(_ string, item any) any { return item }

// attributed returns a function that adds the cluster to a string field of an object.
func attributed(name string) func(string, any) any {
	return func(cluster string, item any) any {
		if o, ok := item.(map[string]any); ok {
			o[name] = withCluster(cluster, text(o, name))
		}
		return item
	}
}

// setMessages joins the messages of the clusters, each with the name of its cluster.
func setMessages(status map[string]any, rs []report) {
	var messages []string
	for _, r := range rs {
		if m := text(r.status, "message"); m != "" {
			messages = append(messages, withCluster(r.cluster, m))
		}
	}
	setText(status, "message", words.Lines(messages, maxMessages))
}

// withCluster returns the message with the name of its cluster, if it has one.
func withCluster(cluster, message string) string {
	if cluster == "" {
		return message
	}
	return strings.TrimSuffix(cluster+": "+message, ": ")
}

// least returns the lowest number of a field and the first report with it. ok is false if no cluster has the field.
func least(rs []report, path ...string) (lowest int64, of report, ok bool) {
	for _, r := range rs {
		if n, is := whole(field(r.status, path...)); is && (!ok || n < lowest) {
			lowest, of, ok = n, r, true
		}
	}
	return lowest, of, ok
}

// trueInAll reports whether there are clusters and the condition of a type is True in all.
func trueInAll(rs []report, kind string) bool {
	return len(rs) > 0 && !slices.ContainsFunc(rs, func(r report) bool { return !isTrue(r.status, kind) })
}

// whereTrue returns the clusters where the condition of a type is True.
func whereTrue(rs []report, kind string) []report {
	return slices.DeleteFunc(slices.Clone(rs), func(r report) bool { return !isTrue(r.status, kind) })
}
