package pods

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// ShownGroups is the maximum number of different troubles reported per template and cluster.
const ShownGroups = 5

// Report describes the pods of one template in one cluster.
type Report struct {
	Cluster string `json:"cluster"`
	// Pods is the total number of pods, including healthy ones.
	Pods int64 `json:"pods"`
	// Troubles are sorted by number of pods, highest first. Others is the number of pods with further troubles.
	Troubles []Group `json:"troubles,omitempty"`
	Others   int     `json:"others,omitempty"`
}

// Group is a number of pods with the same trouble.
type Group struct {
	Pods int `json:"pods"`
	// Pod is the pod from which Reason and Message are taken.
	Pod       string `json:"pod"`
	Reason    string `json:"reason"`
	Message   string `json:"message,omitempty"`
	Container string `json:"container,omitempty"`
	// Restarts is the maximum over the pods. Last is the last termination of the container in Pod.
	Restarts int32 `json:"restarts,omitempty"`
	Last     *End  `json:"last,omitempty"`
}

// groupKey is equal for troubles that alternate and are reported as one: pulling an image and backing off, a crashing
// container that runs and waits.
func (t Trouble) groupKey() string {
	reason := t.Reason
	switch {
	case reason == imageError:
		reason = imageBackOff
	case t.Last != nil && t.Restarts > 0 && t.Message == "":
		reason = crashLoop
	}
	return reason + "\n" + t.Container
}

// Summarize returns the report of one template with total pods in a cluster. It does not depend on the order of
// troubles.
func Summarize(cluster string, total int64, troubles []Trouble) Report {
	r := Report{Cluster: cluster, Pods: max(total, int64(len(troubles)))}
	troubles = slices.Clone(troubles)
	slices.SortFunc(troubles, func(a, b Trouble) int { return strings.Compare(a.Name, b.Name) })
	groups := map[string]*Group{}
	for _, t := range troubles {
		g := groups[t.groupKey()]
		if g == nil {
			g = &Group{Pod: t.Name, Reason: t.Reason, Message: t.Message, Container: t.Container, Last: t.Last}
			groups[t.groupKey()] = g
		}
		if g.Reason != crashLoop && t.Reason == crashLoop {
			g.Pod, g.Reason, g.Message, g.Last = t.Name, t.Reason, t.Message, t.Last
		}
		g.Pods++
		g.Restarts = max(g.Restarts, t.Restarts)
	}
	for _, g := range groups {
		r.Troubles = append(r.Troubles, *g)
	}
	slices.SortFunc(r.Troubles, func(a, b Group) int {
		return cmp.Or(b.Pods-a.Pods, strings.Compare(a.Reason, b.Reason), strings.Compare(a.Container, b.Container))
	})
	for len(r.Troubles) > ShownGroups {
		last := len(r.Troubles) - 1
		r.Others += r.Troubles[last].Pods
		r.Troubles = r.Troubles[:last]
	}
	return r
}

// Brief returns the report with the number and the reason of the most frequent trouble, and the number of others.
func (r Report) Brief() Report {
	for i, g := range r.Troubles {
		if i == 0 {
			r.Troubles = []Group{{Pods: g.Pods, Reason: g.Reason}}
		} else {
			r.Others += g.Pods
		}
	}
	return r
}

// Lines returns one line per trouble, such as
//
// 2 of 3 pods: ImagePullBackOff: Back-off pulling image "nope:1" (container web).
func (r Report) Lines() (lines []string) {
	for _, g := range r.Troubles {
		lines = append(lines, r.countOf(g.Pods)+": "+g.Summary())
	}
	if r.Others > 0 {
		lines = append(lines, r.countOf(r.Others)+": other reasons")
	}
	return lines
}

func (r Report) countOf(n int) string {
	return fmt.Sprintf("%d of %s", n, text.Count(r.Pods, "pod"))
}

// Summary returns the reason, message and last termination of the group.
func (g Group) Summary() string {
	parts := []string{g.Reason}
	if g.Message != "" {
		parts = append(parts, g.Message)
	}
	if g.Last != nil {
		how := fmt.Sprintf("exit code %d", g.Last.ExitCode)
		if g.Last.Reason != "" {
			how = g.Last.Reason + ", " + how
		}
		if g.Restarts > 0 {
			how = fmt.Sprintf("%s, last terminated: %s", text.Count(g.Restarts, "restart"), how)
		}
		parts = append(parts, how)
	}
	if g.Container == "" {
		return strings.Join(parts, ": ")
	}
	return fmt.Sprintf("%s (container %s)", strings.Join(parts, ": "), g.Container)
}

// FailedCreate is the reason with which controllers of workloads report that they cannot create pods.
const FailedCreate = "FailedCreate"

// Missing returns how many of a workload's replicas have no pod in a cluster, by its status there.
func Missing(gk schema.GroupKind, status map[string]any, replicas int64) int64 {
	c := kind.Lookup(gk).Counters
	if c.Existing == nil {
		c.Existing = []string{"replicas"}
	} else if c.Desired != "" {
		replicas = fields.Number(status, c.Desired)
	}
	for _, name := range c.Existing {
		replicas -= fields.Number(status, name)
	}
	return max(0, replicas)
}

// WithRefusal returns the report with pods that the controller cannot create, for the reason in message. A rollout may
// lack its next pod although there are enough: missing counts as at least 1. total is the number of wanted pods.
func (r Report) WithRefusal(cluster string, missing, total int64, message string) Report {
	r.Cluster, r.Pods = cluster, max(r.Pods+missing, total, 1)
	r.Troubles = append([]Group{{Pods: int(max(1, missing)), Reason: FailedCreate,
		Message: text.Plain(message, messageMost)}}, r.Troubles...)
	return r
}
