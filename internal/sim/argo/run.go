package argo

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outcome is what a pass decides.
type outcome struct {
	status Status
	create []*corev1.Pod
}

// podPhases are what a node shows of its pod.
var podPhases = map[corev1.PodPhase]struct {
	phase    Phase
	progress string
}{
	corev1.PodSucceeded: {Succeeded, "1/1"},
	corev1.PodFailed:    {Failed, "0/1"},
	corev1.PodRunning:   {Running, "0/1"},
	corev1.PodPending:   {Pending, "0/1"},
	"":                  {Pending, "0/1"},
}

// pass is one look at a workflow.
type pass struct {
	wf    *Workflow
	spec  *Spec
	pods  map[string]*corev1.Pod // by node
	nodes map[string]Node
	now   metav1.Time
	out   outcome
}

// maxDepth is how deep templates may call each other.
const maxDepth = 100

// decide returns what happens next to a workflow, of which broken is why it cannot run.
func decide(wf *Workflow, spec *Spec, pods []*corev1.Pod, broken error, now time.Time) outcome {
	stamp := metav1.NewTime(now.Truncate(time.Second))
	if wf.Status.Phase.Over() {
		return outcome{status: wf.Status}
	}
	p := &pass{wf: wf, spec: spec, pods: map[string]*corev1.Pod{}, nodes: maps.Clone(wf.Status.Nodes), now: stamp}
	if p.nodes == nil {
		p.nodes = map[string]Node{}
	}
	status := &p.out.status
	*status = wf.Status
	status.Nodes, status.StartedAt = p.nodes, cmp.Or(status.StartedAt, &stamp)
	if broken != nil {
		status.Phase, status.Message = Errored, broken.Error()
	} else {
		for _, pod := range pods {
			p.pods[pod.Annotations[nodeIDNote]] = pod
		}
		phase := p.run(place{name: wf.Name, display: wf.Name}, spec.Entrypoint, 0)
		status.Phase, status.Message = Running, ""
		if phase.Over() {
			status.Phase = phase
		}
		if phase.bad() {
			status.Message = p.nodes[wf.Name].Message
		}
	}
	running := metav1.ConditionFalse
	done, all := 0, 0
	for _, n := range p.nodes {
		if n.Type != typePod {
			continue
		}
		all++
		switch n.Phase {
		case Succeeded:
			done++
		case Running:
			running = metav1.ConditionTrue
		}
	}
	status.Progress = fmt.Sprintf("%d/%d", done, all)
	status.Conditions = []Condition{{"PodRunning", running}}
	if status.Phase.Over() {
		status.FinishedAt = &stamp
		status.Conditions = append(status.Conditions, Condition{"Completed", metav1.ConditionTrue})
	}
	return p.out
}

// place is where in the workflow a node stands.
type place struct{ name, display, boundary string }

func (p *pass) id(name string) string {
	if name == p.wf.Name {
		return name
	}
	return fmt.Sprintf("%s-%d", p.wf.Name, hash(name))
}

func hash(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()
}

// begin returns the id of the node at a place, made if it is not there. ok is false while nothing new begins.
func (p *pass) begin(at place, nodeType, template string) (id string, ok bool) {
	id = p.id(at.name)
	if _, there := p.nodes[id]; there {
		return id, true
	}
	if p.spec.Suspend {
		return id, false
	}
	p.nodes[id] = Node{ID: id, Name: at.name, DisplayName: at.display, Type: nodeType, TemplateName: template,
		TemplateScope: "local/" + p.wf.Name, Phase: Running, BoundaryID: at.boundary, StartedAt: &p.now}
	return id, true
}

// end writes the phase of a node, and returns it.
func (p *pass) end(id string, phase Phase, message string) Phase {
	n := p.nodes[id]
	n.Phase, n.Message = phase, message
	if phase.Over() && n.FinishedAt == nil {
		n.FinishedAt = &p.now
	}
	p.nodes[id] = n
	return phase
}

// run brings the template at a place as far as it goes now. The phase is empty if it has not begun.
func (p *pass) run(at place, name string, depth int) Phase {
	if phase := p.nodes[p.id(at.name)].Phase; phase.Over() {
		return phase
	}
	kind, broken := typeSkipped, ""
	var advance func(string, *Template, int) (Phase, string)
	i := slices.IndexFunc(p.spec.Templates, func(t Template) bool { return t.Name == name })
	switch t := p.spec.Templates; {
	case i < 0:
		broken = fmt.Sprintf("template %q is not defined", name)
	case depth > maxDepth:
		broken = fmt.Sprintf("templates call each other more than %d deep", maxDepth)
	case t[i].Container != nil:
		kind, advance = typePod, p.pod
	case t[i].Steps != nil:
		kind, advance = typeSteps, p.steps
	default:
		broken = fmt.Sprintf("template %q: the simulator does not run this template type", name)
	}
	id, ok := p.begin(at, kind, name)
	switch {
	case !ok:
		return ""
	case broken != "":
		return p.end(id, Errored, broken)
	}
	phase, message := advance(id, &p.spec.Templates[i], depth+1)
	return p.end(id, phase, message)
}

// follow notes that a node, if it has begun, comes after others.
func (p *pass) follow(before []string, id string) {
	if _, begun := p.nodes[id]; !begun {
		return
	}
	for _, b := range before {
		if n := p.nodes[b]; !slices.Contains(n.Children, id) {
			n.Children = append(slices.Clone(n.Children), id)
			p.nodes[b] = n
		}
	}
}

// ends returns the nodes that end those of ids: themselves, unless they contain others.
func (p *pass) ends(ids []string) (all []string) {
	for _, id := range ids {
		switch n := p.nodes[id]; {
		case n.Type == typeSteps:
			all = append(all, n.OutboundNodes...)
		case n.ID != "":
			all = append(all, id)
		}
	}
	return all
}

// leave notes which nodes end a node that contains others.
func (p *pass) leave(id string, ends []string) {
	n := p.nodes[id]
	n.OutboundNodes = ends
	p.nodes[id] = n
}

// steps runs one group after the other, and what is in a group side by side.
func (p *pass) steps(id string, t *Template, depth int) (Phase, string) {
	before := []string{id}
	for i, group := range t.Steps {
		at := place{fmt.Sprintf("%s[%d]", p.nodes[id].Name, i), fmt.Sprintf("[%d]", i), id}
		g, ok := p.begin(at, typeGroup, t.Name)
		if !ok {
			return Running, ""
		}
		p.follow(before, g)
		phase, message := Succeeded, ""
		var ids []string
		for _, s := range group {
			step := place{at.name + "." + s.Name, s.Name, id}
			ids = append(ids, p.id(step.name))
			one := p.run(step, s.Template, depth)
			p.follow([]string{g}, p.id(step.name))
			switch {
			case !one.Over():
				phase = Running
			case one.bad() && phase == Succeeded:
				phase, message = one, fmt.Sprintf("child '%s' failed", p.id(step.name))
			}
		}
		if !phase.Over() {
			return Running, ""
		}
		p.end(g, phase, message)
		before = p.ends(ids)
		if phase.bad() {
			p.leave(id, before)
			return phase, message
		}
	}
	p.leave(id, before)
	return Succeeded, ""
}

// pod runs one step in a pod of its own.
func (p *pass) pod(id string, t *Template, _ int) (Phase, string) {
	n, pod := p.nodes[id], p.pods[id]
	if pod == nil && n.Progress == "" {
		n.Progress = "0/1"
		p.nodes[id] = n
		p.out.create = append(p.out.create, p.newPod(n, t))
		return Pending, ""
	}
	if pod == nil {
		return Errored, "pod deleted"
	}
	shown := podPhases[pod.Status.Phase]
	n.HostNodeName, n.Progress = pod.Spec.NodeName, shown.progress
	p.nodes[id] = n
	if !shown.phase.Over() && pod.DeletionTimestamp != nil {
		return Errored, "pod deleted"
	}
	return shown.phase, explain(pod)
}

// explain returns how a pod failed or why it does not run yet; empty if there is no reason.
func explain(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("%s: %s (exit code %d)", c.Name, cmp.Or(t.Reason, "Error"), t.ExitCode)
		}
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			return w.Reason + ": " + w.Message
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return pod.Status.Message
}

// newPod returns the pod of a node. It runs the main container.
func (p *pass) newPod(n Node, t *Template) *corev1.Pod {
	name := p.wf.Name
	if n.Name != p.wf.Name {
		name = fmt.Sprintf("%s-%s-%d", p.wf.Name, t.Name, hash(n.Name))
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.wf.Namespace, Name: name,
			Labels: map[string]string{}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.wf, WorkflowKind)},
		},
		Spec: *p.spec.PodSpec.DeepCopy(),
	}
	s := &pod.Spec
	s.RestartPolicy = corev1.RestartPolicyNever
	s.Containers = []corev1.Container{*t.Container}
	s.Containers[0].Name = "main"
	maps.Copy(pod.Labels, t.Metadata.Labels)
	maps.Copy(pod.Annotations, t.Metadata.Annotations)
	pod.Labels[workflowLabel], pod.Labels[completedLabel] = p.wf.Name, strconv.FormatBool(false)
	pod.Annotations[nodeIDNote], pod.Annotations[nodeNameNote] = n.ID, n.Name
	return pod
}
