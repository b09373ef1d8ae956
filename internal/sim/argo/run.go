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
	remove []*corev1.Pod
	// expired is true if the workflow has outlived its time and goes. recheck is when it has; zero means never.
	expired bool
	recheck time.Duration
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
	// active counts the pods that were begun and are not over.
	active int
	// ending, unless empty, is why everything that is not over fails.
	ending string
}

// maxDepth is how deep templates may call each other.
const maxDepth = 100

// decide returns what happens next to a workflow, of which broken is why it cannot run.
func decide(wf *Workflow, spec *Spec, pods []*corev1.Pod, broken error, now time.Time) outcome {
	stamp := metav1.NewTime(now.Truncate(time.Second))
	if wf.Status.Phase.Over() {
		return expiry(wf, spec, now)
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
		for _, n := range p.nodes {
			if n.Type == typePod && !n.Phase.Over() {
				p.active++
			}
		}
		if spec.Shutdown != "" {
			p.ending = fmt.Sprintf("Stopped with strategy '%s'", spec.Shutdown)
		}
		phase := p.run(place{name: wf.Name, display: wf.Name}, spec.Entrypoint, 0)
		status.Phase, status.Message = Running, ""
		if phase.Over() {
			status.Phase = phase
		}
		if phase.bad() {
			status.Message = cmp.Or(p.ending, p.nodes[wf.Name].Message)
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

// expiry returns when a workflow that is over goes.
func expiry(wf *Workflow, spec *Spec, now time.Time) outcome {
	out := outcome{status: wf.Status}
	if spec == nil || wf.Status.FinishedAt == nil {
		return out
	}
	ttl := spec.TTLStrategy
	seconds := cmp.Or(ttl.SecondsAfterFailure, ttl.SecondsAfterCompletion)
	if wf.Status.Phase == Succeeded {
		seconds = cmp.Or(ttl.SecondsAfterSuccess, ttl.SecondsAfterCompletion)
	}
	if seconds == nil {
		return out
	}
	left := wf.Status.FinishedAt.Add(time.Duration(*seconds) * time.Second).Sub(now)
	out.expired, out.recheck = left <= 0, max(left, 0)
	return out
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
	if p.spec.Suspend || p.ending != "" {
		return id, false
	}
	if nodeType == typePod {
		if p.spec.Parallelism != nil && p.active >= *p.spec.Parallelism {
			return id, false
		}
		p.active++
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
	case t[i].Container != nil || t[i].Script != nil:
		kind, advance = typePod, p.pod
	case t[i].Steps != nil:
		kind, advance = typeSteps, p.steps
	case t[i].DAG != nil:
		kind, advance = typeDAG, p.dag
	case t[i].Suspend != nil:
		kind, advance = typeSuspend, p.suspend
	default:
		broken = fmt.Sprintf("template %q: the simulator does not run this template type", name)
	}
	id, ok := p.begin(at, kind, name)
	switch {
	case !ok && p.ending != "":
		return Failed
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
		case n.Type == typeSteps || n.Type == typeDAG:
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
		switch {
		case !ok && p.ending != "":
			return Failed, p.ending
		case !ok:
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

// dag runs the tasks whose dependencies have succeeded. After a failure nothing new begins, unless it does not fail
// fast.
func (p *pass) dag(id string, t *Template, depth int) (Phase, string) {
	phases, leaves := map[string]Phase{}, map[string]bool{}
	at := func(task Step) place { return place{p.nodes[id].Name + "." + task.Name, task.Name, id} }
	ids := map[string]string{}
	for _, task := range t.DAG.Tasks {
		ids[task.Name], leaves[task.Name] = p.id(at(task).name), true
	}
	phase, message := Succeeded, ""
	failFast := t.DAG.FailFast == nil || *t.DAG.FailFast
	for round := range len(t.DAG.Tasks) + 1 {
		for _, task := range t.DAG.Tasks {
			_, begun := p.nodes[ids[task.Name]]
			waits := slices.ContainsFunc(task.Dependencies, func(name string) bool { return phases[name] != Succeeded })
			_, looked := phases[task.Name]
			// What has begun goes first, so that a failure is known before something new begins.
			if looked || waits || !begun && (round == 0 || phase.bad() && failFast) {
				continue
			}
			one := p.run(at(task), task.Template, depth)
			phases[task.Name] = one
			before := []string{id}
			if len(task.Dependencies) > 0 {
				before = nil
			}
			for _, name := range task.Dependencies {
				delete(leaves, name)
				before = append(before, p.ends([]string{ids[name]})...)
			}
			p.follow(before, ids[task.Name])
			if one.bad() && !phase.bad() {
				phase, message = one, fmt.Sprintf("child '%s' failed", ids[task.Name])
			}
		}
	}
	for _, one := range phases {
		if !one.Over() {
			return Running, ""
		}
	}
	if len(phases) < len(t.DAG.Tasks) && !phase.bad() {
		return Errored, "a task depends on itself, or on a task that is not defined"
	}
	var last []string
	for _, task := range t.DAG.Tasks {
		if leaves[task.Name] {
			last = append(last, p.ends([]string{ids[task.Name]})...)
		}
	}
	p.leave(id, last)
	return phase, message
}

// suspend waits for somebody who marks the node as succeeded.
func (p *pass) suspend(string, *Template, int) (Phase, string) {
	if p.ending != "" {
		return Failed, p.ending
	}
	return Running, ""
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
	switch {
	case shown.phase.Over():
	case p.ending != "":
		p.out.remove = append(p.out.remove, pod)
		return Failed, p.ending
	case pod.DeletionTimestamp != nil:
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

// newPod returns the pod of a node. It runs the main container with the sidecars.
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
	s.ServiceAccountName = cmp.Or(t.ServiceAccountName, s.ServiceAccountName)
	s.Affinity = cmp.Or(t.Affinity, s.Affinity)
	s.InitContainers = t.InitContainers
	s.Volumes = append(s.Volumes, t.Volumes...)
	s.Tolerations = append(s.Tolerations, t.Tolerations...)
	if t.NodeSelector != nil {
		s.NodeSelector = t.NodeSelector
	}
	main := t.Container
	if main == nil {
		main = &t.Script.Container
	}
	s.Containers = append([]corev1.Container{*main}, t.Sidecars...)
	s.Containers[0].Name = "main"
	maps.Copy(pod.Labels, t.Metadata.Labels)
	maps.Copy(pod.Annotations, t.Metadata.Annotations)
	pod.Labels[workflowLabel], pod.Labels[completedLabel] = p.wf.Name, strconv.FormatBool(false)
	pod.Annotations[nodeIDNote], pod.Annotations[nodeNameNote] = n.ID, n.Name
	return pod
}
