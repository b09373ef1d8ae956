package builtin

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	words "github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Standard returns the tier for custom resources that the other tiers do not know. It reads the conditions that
// controllers set by convention, such as Ready, and copies them to the template. It comes last.
func Standard(others ...interpret.Tier) interpret.Tier { return standard(others) }

type standard interpret.Tiers

var standardHooks = interpret.Hooks{Health: standardHealth, Reflect: reflectStandard,
	Aggregate: ofReports(aggregateStandard)}

// Find implements interpret.Tier.
func (s standard) Find(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) interpret.Implementation {
	if hubWritesStatus(kind.Group) || slices.ContainsFunc(statusOperations,
		func(o configv1alpha1.InterpreterOperation) bool {
			return interpret.Tiers(s).Find(kind, o).Evaluate != nil
		}) {
		return interpret.Implementation{}
	}
	return interpret.Implementation{Evaluate: standardHooks.Evaluate(operation)}
}

// statusOperations are about the status: a kind for which another tier implements one of them is known.
var statusOperations = []configv1alpha1.InterpreterOperation{configv1alpha1.InterpreterOperationInterpretHealth,
	configv1alpha1.InterpreterOperationInterpretStatus, configv1alpha1.InterpreterOperationAggregateStatus}

// hubWritesStatus reports whether the statuses of a group's objects on the hub are the hub's own: those of Kubernetes'
// kinds, and of the hub's.
func hubWritesStatus(group string) bool {
	name, kubernetes := strings.CutSuffix(group, ".k8s.io")
	return !strings.Contains(group, ".") || kubernetes && slices.Contains([]string{"admissionregistration",
		"apiextensions", "apiregistration", "authentication", "authorization", "certificates", "coordination", "discovery",
		"events", "flowcontrol.apiserver", "internal.apiserver", "networking", "node", "rbac.authorization", "resource",
		"scheduling", "storage", "storagemigration"}, name) || group == "multicluster.x-k8s.io" ||
		slices.ContainsFunc([]string{".karmada.io", ".argosy.io", ".open-cluster-management.io"},
			func(suffix string) bool { return strings.HasSuffix(group, suffix) })
}

// deciding are the conditions that decide the health. Others may describe an earlier generation for ever.
var deciding = []string{"Ready", "Available", "Synced", "Stalled", "Reconciling"}

// standardHealth follows the conventions of kstatus, extended by Available and Synced. An object without these
// conditions is healthy. One that is not ready is Unknown, without a deadline: it may wait for a person, and failover
// would move it.
func standardHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	status := object(observed.Object, "status")
	switch {
	case !observedBy(status, observed.GetGeneration()):
		return interpret.Unknown, nil
	case isTrue(status, "Stalled"), overdue(status):
		return interpret.Degraded, nil
	case isTrue(status, "Reconciling"):
		return interpret.Unknown, nil
	}
	for _, kind := range deciding[:3] {
		if is := conditionText(status, kind, "status"); is != "" && is != "True" {
			return interpret.Unknown, nil
		}
	}
	return interpret.Healthy, nil
}

// observedBy reports whether the controller has observed a generation, by the status and its deciding conditions. It is
// true if these do not tell.
func observedBy(status map[string]any, generation int64) bool {
	if n, ok := interpret.ObservedGeneration(status); ok && n < generation {
		return false
	}
	return !slices.ContainsFunc(objects(status, "conditions"), func(c map[string]any) bool {
		n, ok := whole(c["observedGeneration"])
		return ok && n < generation && slices.Contains(deciding, text(c, "type"))
	})
}

// observes reports whether a status or its conditions have an observedGeneration.
func observes(status map[string]any) bool {
	return status["observedGeneration"] != nil || slices.ContainsFunc(objects(status, "conditions"),
		func(c map[string]any) bool { return c["observedGeneration"] != nil })
}

// reflectStandard reports the whole status, and the generations if its observedGeneration is to be read.
func reflectStandard(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
	status := interpret.WholeStatus(observed)
	if len(objects(status, "conditions")) > 0 && observes(status) {
		return interpret.WithOrigin(status, observed), nil
	}
	return status, nil
}

// aggregateStandard sets the conditions and the observedGeneration of the template, and keeps the rest of its status,
// also conditions of types that no cluster reports: a controller on the hub may set them. A template whose members
// report no conditions stays.
func aggregateStandard(template *unstructured.Unstructured, rs []report) (*unstructured.Unstructured, error) {
	seen, counts := template.GetGeneration(), false
	for _, r := range rs {
		of, known := whole(r.status[interpret.TemplateGenerationField])
		if r.status == nil || known && of < template.GetGeneration() ||
			!observedBy(r.status, number(r.status, interpret.GenerationField)) {
			seen = max(template.GetGeneration()-1, 0)
		}
		counts = counts || r.status["observedGeneration"] != nil
	}
	kinds, has := reportedTypes(rs)
	if len(kinds) == 0 {
		return template, nil
	}
	rs = validConditions(template, rs)
	var all []any
	for _, was := range objects(template.Object, "status", "conditions") {
		if !slices.Contains(kinds, text(was, "type")) {
			all = append(all, was)
		}
	}
	for _, kind := range kinds {
		good := map[bool]string{false: "True", true: "False"}[badIfTrue(kind)]
		c := nativeCondition{kind: kind, good: good, expected: !badIfTrue(kind)}.fold(rs)
		c["message"], c["observedGeneration"] = text(c, "message"), seen
		maps.DeleteFunc(c, func(name string, _ any) bool { return !has[name] })
		all = append(all, c)
	}
	status := maps.Clone(object(template.Object, "status"))
	if status == nil {
		status = map[string]any{}
	}
	if status["conditions"] = all; counts {
		status["observedGeneration"] = seen
	}
	return settled(template, status), nil
}

// maxTypes limits the types of conditions that reach a template. Members choose the types, and a hostile one could make
// the template too large for etcd.
const maxTypes = 32

// The patterns of metav1.Condition.
var (
	typePattern = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?` +
		`(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

// typeOf returns the type of a condition; empty if the condition has another form.
func typeOf(c map[string]any) string {
	kind := text(c, "type")
	if text(c, "status") == "" || len(kind) > 316 || !typePattern.MatchString(kind) {
		return ""
	}
	return kind
}

// reportedTypes returns the sorted types of the clusters' conditions, and the fields that any condition has. Of too
// many types it returns those that the most clusters report.
func reportedTypes(rs []report) (kinds []string, has map[string]bool) {
	has = map[string]bool{}
	in := map[string]int{}
	for _, r := range rs {
		kindsHere := map[string]bool{}
		for _, c := range objects(r.status, "conditions") {
			if kind := typeOf(c); kind != "" && !kindsHere[kind] {
				kindsHere[kind] = true
				in[kind]++
			}
			for name, value := range c {
				has[name] = has[name] || value != nil
			}
		}
	}
	kinds = slices.SortedFunc(maps.Keys(in), func(a, b string) int { return cmp.Or(in[b]-in[a], cmp.Compare(a, b)) })
	kinds = kinds[:min(len(kinds), maxTypes)]
	slices.Sort(kinds)
	return kinds, has
}

// validConditions returns the reports with conditions that the schema of metav1.Condition accepts. Otherwise one
// cluster could make the API server refuse the status, for all. The only cluster has no name.
func validConditions(template *unstructured.Unstructured, rs []report) []report {
	out := slices.Clone(rs)
	for i, r := range rs {
		var valid []any
		for _, c := range objects(r.status, "conditions") {
			status, reason := text(c, "status"), text(c, "reason")
			if status != "True" && status != "False" {
				status = "Unknown"
			}
			if len(reason) > 1024 || !reasonPattern.MatchString(reason) {
				reason = "Unspecified"
			}
			at, err := time.Parse(time.RFC3339, text(c, "lastTransitionTime"))
			if err != nil {
				at = template.GetCreationTimestamp().UTC()
			}
			valid = append(valid, map[string]any{"type": typeOf(c), "status": status, "reason": reason,
				"message":            words.Cut(text(c, "message"), 32<<10/min(len(rs), maxMessages)),
				"lastTransitionTime": at.Format(time.RFC3339)})
		}
		if out[i].status = map[string]any{"conditions": valid}; len(rs) == 1 {
			out[i].cluster = ""
		}
	}
	return out
}
