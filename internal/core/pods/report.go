package pods

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/argosy-io/argosy/internal/core/text"
)

// ShownGroups is how many different troubles are told of one template in one cluster.
const ShownGroups = 5

// Report is how the pods of one template fare in one cluster.
type Report struct {
	Cluster string `json:"cluster"`
	// Pods is how many there are, in trouble or not.
	Pods int64 `json:"pods"`
	// Troubles are those that most pods have first; Others is how many pods have others.
	Troubles []Group `json:"troubles,omitempty"`
	Others   int     `json:"others,omitempty"`
	// AtLeast says that the cluster has more pods in trouble than are kept, so that there may be more of these.
	AtLeast bool `json:"atLeast,omitempty"`
}

// Group are pods with the same trouble.
type Group struct {
	Pods int `json:"pods"`
	// Pod is one of them, whose words these are.
	Pod       string `json:"pod"`
	Reason    string `json:"reason"`
	Message   string `json:"message,omitempty"`
	Container string `json:"container,omitempty"`
	// Restarts are the most that one of the pods has, Last is how the container of Pod ended last.
	Restarts int32 `json:"restarts,omitempty"`
	Last     *End  `json:"last,omitempty"`
}

// alike is equal for troubles that are told as one: an image is now being pulled, now waited for, and a container that
// crashes now runs, now waits.
func (t Trouble) alike() string {
	reason := t.Reason
	switch {
	case reason == imageError:
		reason = imageBackOff
	case t.Last != nil && t.Restarts > 0 && t.Message == "":
		reason = crashLoop
	}
	return reason + "\n" + t.Container
}

// Summarize says how the pods of one template fare in a cluster, of which there are total. The same troubles give the
// same report, in whatever order they come.
func Summarize(cluster string, total int64, troubles []Trouble, full bool) Report {
	r := Report{Cluster: cluster, Pods: max(total, int64(len(troubles))), AtLeast: full}
	troubles = slices.Clone(troubles)
	slices.SortFunc(troubles, func(a, b Trouble) int { return strings.Compare(a.Name, b.Name) })
	groups := map[string]*Group{}
	for _, t := range troubles {
		g := groups[t.alike()]
		if g == nil {
			g = &Group{Pod: t.Name, Reason: t.Reason, Message: t.Message, Container: t.Container, Last: t.Last}
			groups[t.alike()] = g
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

// Say is each of the troubles in a line, such as
// 2 of 3 pods: ImagePullBackOff: Back-off pulling image "nope:1" (container web).
func (r Report) Say() (lines []string) {
	for _, g := range r.Troubles {
		lines = append(lines, r.say(g.Pods)+": "+g.Words())
	}
	if r.Others > 0 {
		lines = append(lines, r.say(r.Others)+": other reasons")
	}
	return lines
}

func (r Report) say(n int) string {
	least := ""
	if r.AtLeast {
		least = "at least "
	}
	return fmt.Sprintf("%s%d of %s", least, n, text.Count(r.Pods, "pod"))
}

// Words are what a pod of the group says.
func (g Group) Words() string {
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
