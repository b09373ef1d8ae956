package kind

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/test/kit/coretest"
)

var update = flag.Bool("update", false, "write the table of docs/kinds.md")

const (
	page  = "../../../docs/kinds.md"
	begin = "<!-- kinds: go test ./internal/core/kind -update -->\n"
	end   = "<!-- end of kinds -->\n"
)

// questions are what other packages ask about a kind.
var questions = []struct {
	name   string
	answer func(*Kind) string
}{
	{"pods", func(k *Kind) string {
		switch n := len(k.Pods.Templates); {
		case k.MemberMade:
			return "made by members"
		case n == 1:
			return "1 template"
		case n > 0:
			return fmt.Sprint(n) + " templates"
		case len(k.Pods.Specs) > 0:
			return "added to others"
		case len(k.Pods.Containers) > 0:
			return "containers of steps"
		case len(k.Pods.Images) > 0:
			return "images"
		}
		return ""
	}},
	{"owned by", func(k *Kind) string {
		return strings.Join(append(marked(k.Pods.Owned, "itself"), k.Pods.Makers...), ", ")
	}},
	{"pods have", func(k *Kind) string {
		return strings.Join(slices.Concat(marked(k.Pods.Ordinals, "ordinals"), marked(k.Pods.InTurn, "an order"),
			marked(k.Pods.Claims != nil, "claims"), marked(k.Counters.Desired == "desiredNumberScheduled", "a node each"),
			marked(k.Pods.Subsets, "subsets")), ", ")
	}},
	{"replicas", func(k *Kind) string { return path(k.Replicas) }},
	{"counts updated pods", func(k *Kind) string { return yes(k.Counters.Updated != "") }},
	{"reports failures by", func(k *Kind) string {
		var types []string
		for _, f := range k.Failures {
			types = append(types, f.Type)
		}
		return strings.Join(types, ", ")
	}},
	{"runs", func(k *Kind) string {
		return strings.Join(slices.Concat(marked(k.Once != nil, "once"), marked(k.Runs == InOneCluster, "in one cluster"),
			marked(k.Runs == InEachCluster, "in each cluster")), ", ")
	}},
	{"divided", func(k *Kind) string {
		return [...]string{"", "rollout", "rollout, pods to delete", "rollout, ordinals", "ordinals", "injection", "subsets",
			"limits of subsets", "steps", "budget", "parallelism", "pods, parallelism", "sent to the cluster of its pod",
			"bounds",
		}[k.Divides]
	}},
	{"pause", func(k *Kind) string {
		if k.Pause == nil {
			return ""
		}
		return path(k.Pause("v1"))
	}},
	{"scale", func(k *Kind) string { return yes(k.Scale) }},
	{"restart", func(k *Kind) string { return yes(k.Restart) }},
	{"revisions", func(k *Kind) string { return yes(k.Revisions) }},
	{"refers to workloads by", func(k *Kind) string {
		if k.Refers == nil {
			return ""
		}
		var by []string
		for _, p := range k.Refers.Paths {
			by = append(by, path(p))
		}
		return strings.Join(append(by, marked(k.Refers.Selects, "`spec.selector`")...), ", ")
	}},
}

func marked(is bool, text string) []string {
	if is {
		return []string{text}
	}
	return nil
}

func yes(is bool) string { return strings.Join(marked(is, "yes"), "") }

func path(p []string) string {
	if p == nil {
		return ""
	}
	return "`" + strings.Join(p, ".") + "`"
}

// TestPageListsTheFactsOfEachKind runs every kind through every question. A hole in the table is a question without an
// answer for a kind, or a fact: a Job has no pause.
func TestPageListsTheFactsOfEachKind(t *testing.T) {
	var b strings.Builder
	b.WriteString("| kind |")
	for _, q := range questions {
		b.WriteString(" " + q.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(questions)) + "\n")
	kinds := slices.Collect(List())
	slices.SortFunc(kinds, func(a, b *Kind) int {
		return strings.Compare(a.Group+"/"+a.GroupKind.Kind, b.Group+"/"+b.GroupKind.Kind)
	})
	for _, k := range kinds {
		fmt.Fprintf(&b, "| %s |", k.GroupKind)
		for _, q := range questions {
			b.WriteString(" " + q.answer(k) + " |")
		}
		b.WriteString("\n")
	}
	coretest.PagePart(t, page, begin, end, b.String(), *update)
}

// The facts of a kind belong together: a forgotten one makes failover, adoption or a page wrong for that kind alone.
func TestFactsOfAKindAreConsistent(t *testing.T) {
	for k := range List() {
		pods := len(k.Pods.Templates) > 0 || len(k.Pods.Specs) > 0
		counts := k.Counters.Updated != ""
		for what, wrong := range map[string]bool{
			"it restarts pods, and has no pod template":         k.Restart && len(k.Pods.Templates) == 0,
			"it keeps revisions of pods, and counts none":       k.Revisions && !counts,
			"it counts updated pods, and has none":              counts && !pods,
			"it reports failures of pods, and counts none":      len(k.Failures) > 0 && !counts,
			"it scales, and where its replicas are is unknown":  k.Scale && k.Replicas == nil,
			"it has replicas, and who owns its pods is unknown": k.Replicas != nil && !k.Pods.HaveOwners(),
			"it has a partition, and counts no updated pods":    k.Rolling != nil && !counts,
			"it has a partition, and nothing divides it":        k.Rolling != nil && k.Divides == DividesNothing,
			"its rollout is divided, and it has no partition": k.Rolling == nil && k.Divides >= DividesRollout &&
				k.Divides <= DividesRolloutAndOrdinals,
			"its steps need a workload, and it refers to none": (k.Divides == DividesSteps ||
				k.Divides == DividesSubsetLimits || k.Divides == DividesBounds) && (k.Refers == nil || k.Refers.Paths == nil),
			"its parallelism is divided, and it does not end": (k.Divides == DividesParallelism ||
				k.Divides == DividesPodsAndParallelism) && k.Once == nil,
			"its bounds are divided, and where they are is unknown": (k.Divides == DividesBounds) != (k.Scaler != nil),
			"it updates all pods, and has a partition":              k.UpdatesAll && k.Rolling != nil,
			"it runs once, and it keeps revisions or scales":        k.Once != nil && (k.Revisions || k.Scale),
			"it has a TTL, and its end is not known": k.Once != nil && k.Once.TTL != nil && k.Once.Ended == "" &&
				!k.Once.Swept,
			"a TTL applies by itself, and none can be set": k.Once != nil && k.Once.Standard >= 0 && k.Once.TTL == nil,
		} {
			if wrong {
				t.Errorf("%s: %s", k.GroupKind, what)
			}
		}
	}
	k := Lookup(groupKind("example.com", "Train"))
	if k.Once != nil || k.Pause != nil || len(k.Pods.Templates) > 0 || k.Kind != "" {
		t.Errorf("an unknown kind has the facts %+v", k)
	}
}
