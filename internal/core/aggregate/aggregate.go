// Package aggregate computes the status of a binding from its Works. core/workload/interpret computes the template's
// status. The controller decides when to write.
package aggregate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Binding returns the status of b computed from works: aggregatedStatus, FullyApplied, failed interpreter operations
// and stale statuses. All else is kept. The order of works does not matter, equal input gives equal bytes, and now is
// used only if a condition changes, or a cluster becomes Unhealthy. An outage ends that: what happens meanwhile is not
// known. Works in clusters that b has left are ignored.
func Binding(b workv1alpha2.Binding, works []workv1alpha1.Work, outages Outages,
	now metav1.Time) workv1alpha2.ResourceBindingStatus {
	status := *b.BindingStatus().DeepCopy()
	expected := clusters(b)

	was := map[string]workv1alpha2.AggregatedStatusItem{}
	for _, item := range status.AggregatedStatus {
		was[item.ClusterName] = item
	}
	kind := match.GroupKind(b.BindingSpec().Resource.APIVersion, b.BindingSpec().Resource.Kind)
	var items []workv1alpha2.AggregatedStatusItem
	var stale []string
	for i := range works {
		cluster, err := names.ClusterOf(works[i].Namespace)
		if err != nil || !slices.Contains(expected, cluster) {
			continue
		}
		item := itemOf(cluster, &works[i])
		if sameStatus(was[cluster].Status, item.Status) {
			item.Status = was[cluster].Status
		}
		if outages[cluster] != nil && !Final(kind, item.Status) {
			item.Health = workv1alpha1.ResourceUnknown
			stale = append(stale, cluster)
		}
		if item.Health == workv1alpha1.ResourceUnhealthy {
			item.UnhealthySince = cmp.Or(was[cluster].UnhealthySince, &now)
		}
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b workv1alpha2.AggregatedStatusItem) int {
		return cmp.Compare(a.ClusterName, b.ClusterName)
	})
	left := fit(items)
	status.AggregatedStatus = items

	known := meta.FindStatusCondition(status.Conditions, workv1alpha2.FullyApplied) != nil
	if len(expected) > 0 || known {
		condition := metav1.Condition{
			Type:               workv1alpha2.FullyApplied,
			Status:             metav1.ConditionFalse,
			Reason:             workv1alpha2.ReasonFullyAppliedFailed,
			Message:            workv1alpha2.MessageFullyAppliedFails,
			LastTransitionTime: now,
		}
		if unwritten := Unwritten(status.Conditions); len(unwritten) > 0 {
			for _, message := range unwritten {
				condition.Message += "; " + text.Cut(message, 1<<10)
			}
		} else if fullyApplied(items, expected) {
			condition.Status = metav1.ConditionTrue
			condition.Reason = workv1alpha2.ReasonFullyAppliedSuccess
			condition.Message = workv1alpha2.MessageFullyApplied
		} else if end := RunEnd(status.Conditions); end != nil && !slices.ContainsFunc(items, isUnapplied) {
			condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, end.Reason, end.Message
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	for _, operation := range reported {
		lines := faults(works, expected, operation)
		if operation == configv1alpha1.InterpreterOperationInterpretStatus {
			lines = append(lines, left...)
		}
		interpret.SetFault(&status.Conditions, operation, joined(lines), now)
	}
	setStale(&status.Conditions, stale, outages, now)
	return status
}

// Unwritten returns the messages of conditions for Works that could not be written, each with a line for each cluster.
// Then the members have applied an earlier template.
func Unwritten(conditions []metav1.Condition) (lines []string) {
	for _, kind := range unwritten {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && IsUnwritten(*c) {
			lines = append(lines, kind+": "+c.Message)
		}
	}
	return lines
}

// unwritten are the conditions that report Works that could not be written.
var unwritten = []string{string(configv1alpha1.InterpreterOperationReviseReplica), workv1alpha2.WorksWritten,
	workv1alpha2.VersionServed}

// IsUnwritten reports whether a condition of a binding reports that Works could not be written.
func IsUnwritten(c metav1.Condition) bool {
	return c.Status == metav1.ConditionFalse && slices.Contains(unwritten, c.Type)
}

// UnwrittenIn returns the message for the Work of a cluster that could not be written; empty if it could.
func UnwrittenIn(conditions []metav1.Condition, cluster string) (line string) {
	if refused := Refused(conditions); refused != "" {
		return refused
	}
	for _, message := range Unwritten(conditions) {
		for l := range strings.Lines(message) {
			if strings.Contains(l, strconv.Quote(cluster)) {
				line = text.Cut(strings.TrimSpace(l), 1<<10)
			}
		}
	}
	return line
}

// Refused returns the message of a template of which no Work could be written, in any cluster; empty if that is not so.
func Refused(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, workv1alpha2.WorksWritten)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != workv1alpha2.ReasonTemplateRefused {
		return ""
	}
	return text.Cut(c.Type+": "+c.Message, 1<<10)
}

// RunEnd returns the condition that is set if clusters of a binding lack a Work, or if it has no clusters, because its
// template runs once and has finished or failed; nil if it is not set.
func RunEnd(conditions []metav1.Condition) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, workv1alpha2.WorksWritten)
	if c == nil || c.Status != metav1.ConditionTrue ||
		c.Reason != workv1alpha2.ReasonRunFinished && c.Reason != workv1alpha2.ReasonRunFailed {
		return nil
	}
	return c
}

func isUnapplied(item workv1alpha2.AggregatedStatusItem) bool { return !item.Applied }

// reported are the operations whose failures Works report.
var reported = []configv1alpha1.InterpreterOperation{
	configv1alpha1.InterpreterOperationRetain, configv1alpha1.InterpreterOperationInterpretStatus,
	configv1alpha1.InterpreterOperationInterpretHealth,
}

// statusesLimit is the maximum size of all statuses and messages of a binding in bytes. etcd accepts 1.5 MiB per
// object; for 1000 clusters this leaves 1 KiB each.
const statusesLimit = 1 << 20

// messageLimit is the size to which messages of members are cut if they do not fit.
const messageLimit = 256

// fit cuts messages (the Works have the full ones) and omits the largest statuses until the rest fits, so that one
// cluster cannot block the others. It returns a line per omitted status.
func fit(items []workv1alpha2.AggregatedStatusItem) (left []string) {
	const fields = 128 // size of field names and punctuation
	total := 0
	for i := range items {
		total += fields + statusSize(&items[i]) + len(items[i].AppliedMessage)
	}
	if total <= statusesLimit {
		return nil
	}
	for i := range items {
		if m := &items[i].AppliedMessage; total > statusesLimit && len(*m) > messageLimit {
			total -= len(*m)
			*m = text.Cut(*m, messageLimit)
			total += len(*m)
		}
	}
	bySize := make([]int, len(items))
	for i := range items {
		bySize[i] = i
	}
	slices.SortStableFunc(bySize, func(a, b int) int { return cmp.Compare(statusSize(&items[b]), statusSize(&items[a])) })
	for _, i := range bySize {
		size := statusSize(&items[i])
		if total <= statusesLimit || size == 0 {
			break
		}
		left = append(left, fmt.Sprintf("cluster %q: its status has %d bytes and is omitted, because the statuses of all clusters together exceed the limit of %d bytes", items[i].ClusterName, size, statusesLimit))
		items[i].Status = nil
		total -= size
	}
	return left
}

func statusSize(item *workv1alpha2.AggregatedStatusItem) int {
	if item.Status == nil {
		return 0
	}
	return len(item.Status.Raw)
}

// faults returns the messages of Works in the expected clusters about a failed operation, by cluster.
func faults(works []workv1alpha1.Work, expected []string,
	operation configv1alpha1.InterpreterOperation) (lines []string) {
	for i := range works {
		cluster, err := names.ClusterOf(works[i].Namespace)
		if err != nil || !slices.Contains(expected, cluster) {
			continue
		}
		if c := meta.FindStatusCondition(works[i].Status.Conditions, string(operation)); c != nil &&
			c.Status == metav1.ConditionFalse {
			lines = append(lines, fmt.Sprintf("cluster %q: %s", cluster, c.Message))
		}
	}
	return lines
}

// joined returns the first lines as one error, or nil.
func joined(lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	return errors.New(text.Lines(lines, 3))
}

// Items returns the input for the template's status: one item per cluster of b, an empty one without a report. A
// cluster that is missing in aggregatedStatus is behind, not absent. The status of a cluster that is not ready is
// reduced by lastKnown, that of a cluster that is being left by capLeaving.
func Items(b workv1alpha2.Binding, outages Outages) []workv1alpha2.AggregatedStatusItem {
	kind := match.GroupKind(b.BindingSpec().Resource.APIVersion, b.BindingSpec().Resource.Kind)
	items := slices.Clone(b.BindingStatus().AggregatedStatus)
	for i := range items {
		if outage := outages[items[i].ClusterName]; outage != nil && !Final(kind, items[i].Status) {
			items[i].Status = lastKnown(items[i].Status, outage)
		}
	}
	capLeaving(b.BindingSpec(), items)
	for _, cluster := range clusters(b) {
		known := slices.ContainsFunc(items, func(i workv1alpha2.AggregatedStatusItem) bool {
			return i.ClusterName == cluster
		})
		if !known {
			items = append(items, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha1.ResourceUnknown})
		}
	}
	slices.SortFunc(items, func(a, b workv1alpha2.AggregatedStatusItem) int {
		return cmp.Compare(a.ClusterName, b.ClusterName)
	})
	return items
}

// clusters returns the final clusters of the binding: scheduled, required by another binding, or gracefully left. They
// are sorted and unique. A template for one pod goes only to the cluster of the pod.
func clusters(b workv1alpha2.Binding) []string {
	spec := b.BindingSpec()
	var all []string
	for _, c := range spec.Clusters {
		all = append(all, c.Name)
	}
	for _, r := range spec.RequiredBy {
		for _, c := range r.Clusters {
			all = append(all, c.Name)
		}
	}
	all = append(all, spec.LeftGracefully()...)
	if routed, ok := fleet.RoutedTo(b.GetAnnotations()); ok {
		all = slices.DeleteFunc(all, func(cluster string) bool { return !slices.Contains(routed, cluster) })
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// itemOf returns the item of one Work. If the object was not applied, the member's report is for an older one. Then the
// health is Unknown, and the status is kept for users.
func itemOf(cluster string, w *workv1alpha1.Work) workv1alpha2.AggregatedStatusItem {
	item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha1.ResourceUnknown}
	if len(w.Status.ManifestStatuses) > 0 {
		m := &w.Status.ManifestStatuses[0]
		item.Status = m.Status.DeepCopy()
		item.Health = cmp.Or(m.Health, workv1alpha1.ResourceUnknown)
	}
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	switch {
	case applied == nil:
		item.Health = workv1alpha1.ResourceUnknown
	case applied.Status == metav1.ConditionTrue:
		item.Applied = true
	default:
		item.AppliedMessage = applied.Message
		item.Health = workv1alpha1.ResourceUnknown
	}
	return item
}

// fullyApplied reports whether exactly the expected clusters have applied the template. It is false without clusters.
func fullyApplied(items []workv1alpha2.AggregatedStatusItem, expected []string) bool {
	return len(expected) > 0 && slices.EqualFunc(items, expected,
		func(item workv1alpha2.AggregatedStatusItem, cluster string) bool {
			return item.ClusterName == cluster && item.Applied
		})
}

// sameStatus reports whether two statuses are equal as JSON values.
func sameStatus(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y any
	return json.Unmarshal(a.Raw, &x) == nil && json.Unmarshal(b.Raw, &y) == nil && equality.Semantic.DeepEqual(x, y)
}
