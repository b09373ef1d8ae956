package builtin

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	words "github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Standard returns the tier for custom resources that the other tiers do not know. It reads the conditions that
// controllers set by convention, such as Ready, and copies them to the template. It comes last.
func Standard(others ...interpret.Tier) interpret.Tier { return standard(others) }

type standard []interpret.Tier

// Hooks implements interpret.Tier.
func (s standard) Hooks(kind schema.GroupKind) *interpret.Hooks {
	if hubWritesStatus(kind.Group) || slices.ContainsFunc(s, func(t interpret.Tier) bool {
		h := t.Hooks(kind)
		return h != nil && (h.Health != nil || h.Reflect != nil || h.Aggregate != nil)
	}) {
		return nil
	}
	return &interpret.Hooks{Health: standardHealth, Reflect: reflectStandard, Aggregate: ofReports(aggregateStandard)}
}

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

// standardHealth follows the conventions of kstatus, extended by Available and Synced. An object without these
// conditions is healthy.
func standardHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	status := object(observed.Object, "status")
	switch {
	case !observedBy(status, observed.GetGeneration()):
		return interpret.Progressing, nil
	case isTrue(status, "Stalled"), overdue(status):
		return interpret.Degraded, nil
	case isTrue(status, "Reconciling"):
		return interpret.Progressing, nil
	}
	for _, kind := range []string{"Ready", "Available", "Synced"} {
		if is := conditionText(status, kind, "status"); is != "" && is != "True" {
			return interpret.Progressing, nil
		}
	}
	return interpret.Healthy, nil
}

// observedBy reports whether the controller has observed a generation. It is true if the status does not tell.
func observedBy(status map[string]any, generation int64) bool {
	if n, ok := interpret.ObservedGeneration(status); ok && n < generation {
		return false
	}
	return !slices.ContainsFunc(objects(status, "conditions"), func(c map[string]any) bool {
		n, ok := whole(c["observedGeneration"])
		return ok && n < generation
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

// aggregateStandard sets the conditions and the observedGeneration of the template, and keeps the rest of its status. A
// template whose members report no conditions stays.
func aggregateStandard(template *unstructured.Unstructured, rs []report) (*unstructured.Unstructured, error) {
	seen, counts := template.GetGeneration(), false
	kinds := map[string]bool{}
	for _, r := range rs {
		of, known := whole(r.status[interpret.TemplateGenerationField])
		if r.status == nil || known && of < template.GetGeneration() ||
			!observedBy(r.status, number(r.status, interpret.GenerationField)) {
			seen = max(template.GetGeneration()-1, 0)
		}
		counts = counts || r.status["observedGeneration"] != nil
		for _, c := range objects(r.status, "conditions") {
			if text(c, "type") == "" || text(c, "status") == "" {
				return template, nil // conditions of another form
			}
			kinds[text(c, "type")] = true
		}
	}
	if len(kinds) == 0 {
		return template, nil
	}
	var all []any
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		c := mergeCondition(kind, rs)
		if c["observedGeneration"] != nil {
			c["observedGeneration"] = seen
		}
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

// mergeCondition returns the worst of the clusters' conditions of a type, with the message of each cluster in that
// state. A cluster without it counts as Unknown, unless True is bad. The condition of a single cluster is copied.
func mergeCondition(kind string, rs []report) (worst map[string]any) {
	var messages []string
	at, bad := 3, badIfTrue(kind)
	for _, r := range rs {
		i := slices.IndexFunc(objects(r.status, "conditions"), func(c map[string]any) bool { return text(c, "type") == kind })
		var c map[string]any
		switch {
		case i >= 0:
			c = runtime.DeepCopyJSON(objects(r.status, "conditions")[i])
		case bad:
			continue
		default:
			c = notReported(kind, rs)
		}
		s := severity(text(c, "status"), bad)
		if s < at {
			worst, at, messages = c, s, nil
		}
		if s == at {
			messages = append(messages, withCluster(r.cluster, text(c, "message")))
			setText(worst, "lastTransitionTime", latest(text(worst, "lastTransitionTime"), text(c, "lastTransitionTime")))
		}
	}
	if len(rs) > 1 {
		worst["message"] = words.Lines(messages, maxMessages)
	}
	return worst
}

// notReported returns the condition of a cluster that does not report it: one of another cluster, as Unknown. So it has
// the fields that its definition requires.
func notReported(kind string, rs []report) map[string]any {
	for _, r := range rs {
		for _, c := range objects(r.status, "conditions") {
			if text(c, "type") == kind {
				c = runtime.DeepCopyJSON(c)
				c["status"], c["reason"], c["message"] = "Unknown", "NotReported", "the cluster has not reported it yet"
				return c
			}
		}
	}
	return nil
}
