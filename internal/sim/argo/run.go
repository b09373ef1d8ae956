package argo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// outcome is what a pass decides.
type outcome struct {
	status Status
	labels map[string]string
	create []*corev1.Pod
	remove []*corev1.Pod
	// claims are to be there before the pods are; over means that they go.
	claims []*corev1.PersistentVolumeClaim
	over   bool
	// expired is true if the workflow has outlived its time and goes.
	expired bool
	// recheck is when time alone changes the outcome; zero means never.
	recheck time.Duration
}

// finder gets a template that another object holds.
type finder func(TemplateRef) (*Template, error)

// pass is one look at a workflow.
type pass struct {
	wf   *Workflow
	spec *Spec
	find finder
	pods map[string]*corev1.Pod // by node
	now  metav1.Time
	out  outcome
	// values are what parameters of the workflow stand for.
	values map[string]string
	// active counts the pods that were begun and are not over.
	active int64
	// held begins nothing new. ending, unless empty, says why everything that is not over fails.
	held   bool
	ending string
	depth  int
}

// maxDepth is how deep templates may call each other.
const maxDepth = 100

// cacheTimeout is how long a new pod may be missing from the cache.
const cacheTimeout = 10 * time.Second

// decide returns what happens next to a workflow that is not over yet, or whether one that is has to go. spec is its
// own, or that of the template that it refers to.
func decide(wf *Workflow, spec *Spec, pods []*corev1.Pod, find finder, now time.Time) outcome {
	if wf.Labels[completedLabel] == "true" || wf.Status.Phase.Over() {
		return expiry(wf, now)
	}
	p := &pass{wf: wf, spec: spec, find: find, now: metav1.NewTime(now.Truncate(time.Second)),
		pods: map[string]*corev1.Pod{}}
	for _, pod := range pods {
		p.pods[pod.Annotations[nodeIDNote]] = pod
	}
	p.out.status = wf.Status
	p.out.status.Nodes = maps.Clone(wf.Status.Nodes)
	if p.out.status.Nodes == nil {
		p.out.status.Nodes = map[string]Node{}
	}
	status := &p.out.status
	status.Conditions = slices.Clone(status.Conditions)
	if status.Phase == "" || status.StartedAt == nil {
		status.Phase, status.StartedAt = Running, &p.now
	}
	p.values = map[string]string{"workflow.name": wf.Name, "workflow.namespace": wf.Namespace,
		"workflow.uid": string(wf.UID)}
	for _, parameter := range spec.Arguments.Parameters {
		if v := cmp.Or(parameter.Value, parameter.Default); v != nil {
			p.values["workflow.parameters."+parameter.Name] = string(*v)
		}
	}
	for _, n := range status.Nodes {
		if n.Type == typePod && !n.Phase.Over() {
			p.active++
		}
	}
	p.held = wf.Spec.Suspend != nil && *wf.Spec.Suspend
	if s := wf.Spec.Shutdown; s != "" {
		p.ending = "workflow shutdown with strategy: " + s
	}
	if d := spec.ActiveDeadlineSeconds; d != nil && p.ending == "" {
		if left := status.StartedAt.Add(time.Duration(*d) * time.Second).Sub(now); left > 0 {
			p.recheckIn(left)
		} else {
			p.ending = "Step exceeded its deadline"
		}
	}
	p.claims()

	entry := p.template(spec.Entrypoint)
	if entry == nil {
		p.fail(fmt.Sprintf("entrypoint template %q is not defined", spec.Entrypoint))
		return p.out
	}
	phase := p.run(place{name: wf.Name, display: wf.Name}, entry, spec.Arguments, true)
	message := status.Nodes[p.id(wf.Name)].Message
	if phase.Over() && spec.OnExit != "" && wf.Spec.Shutdown != terminate {
		p.ending = ""
		p.values["workflow.status"] = string(phase)
		exit := p.template(spec.OnExit)
		if exit == nil {
			p.fail(fmt.Sprintf("onExit template %q is not defined", spec.OnExit))
			return p.out
		}
		after := p.run(place{name: wf.Name + ".onExit", display: wf.Name + ".onExit"}, exit, Arguments{}, true)
		switch {
		case !after.Over():
			phase = Running
		case after.bad():
			phase, message = after, status.Nodes[p.id(wf.Name+".onExit")].Message
		}
	}
	if wf.Spec.Shutdown != "" && phase.bad() {
		message = fmt.Sprintf("Stopped with strategy '%s'", wf.Spec.Shutdown)
	}
	if phase.Over() {
		p.finish(phase, message)
	}
	p.report()
	return p.out
}

// expiry returns when a workflow that is over goes.
func expiry(wf *Workflow, now time.Time) outcome {
	out := outcome{status: wf.Status, over: true}
	ttl := wf.Spec.TTLStrategy
	if ttl == nil || wf.Status.FinishedAt == nil {
		return out
	}
	seconds := ttl.SecondsAfterCompletion
	if wf.Status.Phase == Succeeded {
		seconds = cmp.Or(ttl.SecondsAfterSuccess, seconds)
	} else {
		seconds = cmp.Or(ttl.SecondsAfterFailure, seconds)
	}
	if seconds == nil {
		return out
	}
	left := wf.Status.FinishedAt.Add(time.Duration(*seconds) * time.Second).Sub(now)
	out.expired, out.recheck = left <= 0, max(left, 0)
	return out
}

// fail ends a workflow whose spec cannot be run.
func (p *pass) fail(message string) {
	p.condition("SpecError", metav1.ConditionTrue, message)
	p.finish(Errored, message)
	p.report()
}

func (p *pass) finish(phase Phase, message string) {
	p.out.status.Phase, p.out.status.Message, p.out.status.FinishedAt = phase, message, &p.now
	if phase == Succeeded {
		p.out.status.Message = ""
	}
	p.condition("Completed", metav1.ConditionTrue, "")
	p.out.over = true
}

// report sums up the nodes.
func (p *pass) report() {
	done, all, running := 0, 0, metav1.ConditionFalse
	for _, n := range p.out.status.Nodes {
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
	p.out.status.Progress = fmt.Sprintf("%d/%d", done, all)
	p.condition("PodRunning", running, "")
	p.out.labels = map[string]string{phaseLabel: string(p.out.status.Phase),
		completedLabel: strconv.FormatBool(p.out.over)}
}

func (p *pass) condition(t string, status metav1.ConditionStatus, message string) {
	c := Condition{Type: t, Status: status, Message: message}
	i := slices.IndexFunc(p.out.status.Conditions, func(have Condition) bool { return have.Type == t })
	if i >= 0 {
		p.out.status.Conditions[i] = c
		return
	}
	p.out.status.Conditions = append(p.out.status.Conditions, c)
}

func (p *pass) recheckIn(d time.Duration) {
	if d > 0 && (p.out.recheck == 0 || d < p.out.recheck) {
		p.out.recheck = d
	}
}

func (p *pass) claims() {
	for _, t := range p.spec.VolumeClaimTemplates {
		c := t.DeepCopy()
		c.TypeMeta, c.Status = metav1.TypeMeta{}, corev1.PersistentVolumeClaimStatus{}
		c.Namespace, c.Name = p.wf.Namespace, p.wf.Name+"-"+t.Name
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p.wf, WorkflowKind)}
		p.out.claims = append(p.out.claims, c)
	}
}

func (p *pass) template(name string) *Template {
	for i := range p.spec.Templates {
		if p.spec.Templates[i].Name == name {
			return &p.spec.Templates[i]
		}
	}
	return nil
}

// place is where in the workflow a node stands; ref is what its template was found by, if that is another object's.
type place struct {
	name, display, boundary string
	ref                     *TemplateRef
}

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

// begin returns the node at a place, made if it is not there. ok is false while nothing new begins.
func (p *pass) begin(at place, nodeType, template string, phase Phase) (n Node, ok bool) {
	id := p.id(at.name)
	if n, there := p.out.status.Nodes[id]; there {
		return n, true
	}
	if p.held || p.ending != "" {
		return Node{}, false
	}
	n = Node{
		ID: id, Name: at.name, DisplayName: at.display, Type: nodeType, TemplateName: template, TemplateRef: at.ref,
		TemplateScope: p.scope(at),
		Phase:         phase, BoundaryID: at.boundary, StartedAt: &p.now,
	}
	if phase.Over() {
		n.FinishedAt = &p.now
	}
	p.put(n)
	return n, true
}

// scope returns the object whose templates are called at a place, as nodes name it.
func (p *pass) scope(at place) string {
	switch {
	case at.ref != nil && at.ref.ClusterScope:
		return "cluster/" + at.ref.Name
	case at.ref != nil:
		return "namespaced/" + at.ref.Name
	}
	return "local/" + p.wf.Name
}

func (p *pass) put(n Node) { p.out.status.Nodes[n.ID] = n }

// end finishes a node and returns its phase.
func (p *pass) end(n Node, phase Phase, message string) Phase {
	n.Phase, n.Message, n.FinishedAt = phase, message, &p.now
	p.put(n)
	return phase
}

// notBegun returns the phase of what is not begun: still open, or failed if nothing will begin any more.
func (p *pass) notBegun() Phase {
	if p.ending != "" {
		return Failed
	}
	return ""
}

// broken returns a node that cannot be run, with the reason.
func (p *pass) broken(at place, template string, err error) Phase {
	n, ok := p.begin(at, typeSkipped, template, Errored)
	if !ok {
		return p.notBegun()
	}
	n.Message = err.Error()
	p.put(n)
	return n.Phase
}

// run brings the template at a place as far as it goes now. retry is false for the attempts of one that retries.
func (p *pass) run(at place, t *Template, arguments Arguments, retry bool) Phase {
	if n, there := p.out.status.Nodes[p.id(at.name)]; there && n.Phase.Over() {
		return n.Phase
	}
	if p.depth++; p.depth > maxDepth {
		return p.broken(at, t.Name, fmt.Errorf("templates call each other more than %d deep", maxDepth))
	}
	defer func() { p.depth-- }()
	if retry && t.RetryStrategy != nil {
		return p.retry(at, t, arguments)
	}
	values, err := p.inputs(t, arguments)
	if err == nil {
		t, err = substitute(t, values)
	}
	if err != nil {
		return p.broken(at, t.Name, err)
	}
	if _, begun := p.out.status.Nodes[p.id(at.name)]; !begun {
		defer p.given(at, t, values)
	}
	switch {
	case t.Container != nil, t.Script != nil:
		return p.pod(at, t)
	case t.Steps != nil:
		return p.steps(at, t, values)
	case t.DAG != nil:
		return p.dag(at, t, values)
	case t.Suspend != nil:
		return p.suspend(at, t)
	}
	return p.broken(at, t.Name, fmt.Errorf("template %q: only container, script, steps, dag and suspend are simulated",
		t.Name))
}

// inputs returns the values that a template's placeholders stand for.
func (p *pass) inputs(t *Template, arguments Arguments) (map[string]string, error) {
	values := maps.Clone(p.values)
	for _, in := range t.Inputs.Parameters {
		v := cmp.Or(in.Value, in.Default)
		for _, given := range arguments.Parameters {
			if given.Name == in.Name && given.Value != nil {
				v = given.Value
			}
		}
		if v == nil {
			return nil, fmt.Errorf("template %q: inputs.parameters.%s was not supplied", t.Name, in.Name)
		}
		values["inputs.parameters."+in.Name] = string(*v)
	}
	return values, nil
}

// given notes what the node at a place was given, if it has begun.
func (p *pass) given(at place, t *Template, values map[string]string) {
	n, begun := p.out.status.Nodes[p.id(at.name)]
	if !begun || len(t.Inputs.Parameters) == 0 {
		return
	}
	n.Inputs = &Arguments{}
	for _, in := range t.Inputs.Parameters {
		v := Text(values["inputs.parameters."+in.Name])
		n.Inputs.Parameters = append(n.Inputs.Parameters, Parameter{Name: in.Name, Value: &v})
	}
	p.put(n)
}

// substitute is a copy of v with the placeholders replaced that have a value.
func substitute[T any](v *T, values map[string]string) (*T, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return v, err
	}
	text := string(data)
	if !strings.Contains(text, "{{") {
		return v, nil
	}
	var pairs []string
	for name, value := range values {
		quoted, err := json.Marshal(value)
		if err != nil {
			return v, err
		}
		inside := string(quoted[1 : len(quoted)-1])
		pairs = append(pairs, "{{"+name+"}}", inside, "{{ "+name+" }}", inside)
	}
	out := new(T)
	if err := json.Unmarshal([]byte(strings.NewReplacer(pairs...).Replace(text)), out); err != nil {
		return v, fmt.Errorf("fill in parameters: %w", err)
	}
	return out, nil
}

// retry runs a template until an attempt succeeds or there were enough.
func (p *pass) retry(at place, t *Template, arguments Arguments) Phase {
	n, ok := p.begin(at, typeRetry, t.Name, Running)
	if !ok {
		return p.notBegun()
	}
	limit := 1000
	if l := t.RetryStrategy.Limit; l != nil {
		limit = l.IntValue()
		if l.Type == intstr.String {
			var err error
			if limit, err = strconv.Atoi(l.StrVal); err != nil {
				return p.end(n, Errored, fmt.Sprintf("retryStrategy.limit %q is not a number", l.StrVal))
			}
		}
	}
	for i := 0; ; i++ {
		attempt := place{fmt.Sprintf("%s(%d)", at.name, i), fmt.Sprintf("%s(%d)", at.display, i), at.boundary, at.ref}
		phase := p.run(attempt, t, arguments, false)
		n = p.child(n, attempt)
		switch {
		case !phase.Over():
			return n.Phase
		case !phase.bad():
			return p.end(n, phase, "")
		case p.ending != "" || i >= limit:
			message := p.out.status.Nodes[p.id(attempt.name)].Message
			if i >= limit {
				message = "No more retries left"
			}
			return p.end(n, phase, message)
		}
	}
}

// child notes that a node has begun another one.
func (p *pass) child(n Node, at place) Node {
	id := p.id(at.name)
	if _, there := p.out.status.Nodes[id]; there && !slices.Contains(n.Children, id) {
		n.Children = append(slices.Clone(n.Children), id)
		p.put(n)
	}
	return n
}

// after notes that what is at a place comes after a node: after the nodes that end it.
func (p *pass) after(id string, at place) {
	for _, end := range p.ends(id) {
		p.child(p.out.status.Nodes[end], at)
	}
}

// ends returns the nodes that end a node: itself, unless it contains others.
func (p *pass) ends(id string) []string {
	n := p.out.status.Nodes[id]
	within := n.Children
	switch n.Type {
	case typeSteps, typeDAG:
		return n.OutboundNodes
	case typeRetry:
		within = within[max(0, len(within)-1):]
	case typeGroup, typeTaskGroup:
	default:
		return []string{id}
	}
	if len(within) == 0 {
		return []string{id}
	}
	return p.endsOf(within)
}

func (p *pass) endsOf(ids []string) (all []string) {
	for _, id := range ids {
		for _, end := range p.ends(id) {
			if !slices.Contains(all, end) {
				all = append(all, end)
			}
		}
	}
	return all
}

// steps runs one group after the other, and what is in a group side by side.
func (p *pass) steps(at place, t *Template, values map[string]string) Phase {
	n, ok := p.begin(at, typeSteps, t.Name, Running)
	if !ok {
		return p.notBegun()
	}
	last := ""
	for i, group := range t.Steps {
		groupAt := place{fmt.Sprintf("%s[%d]", at.name, i), fmt.Sprintf("[%d]", i), n.ID, at.ref}
		g, ok := p.begin(groupAt, typeGroup, t.Name, Running)
		if !ok {
			if phase := p.notBegun(); phase.Over() {
				return p.end(n, phase, p.ending)
			}
			return n.Phase
		}
		if i == 0 {
			n = p.child(n, groupAt)
		} else {
			p.after(last, groupAt)
		}
		last = g.ID
		if g.Phase.Over() && !g.Phase.bad() {
			continue
		}
		over, bad, message := true, Phase(""), ""
		for j := range group {
			step := &group[j]
			stepAt := place{groupAt.name + "." + step.Name, step.Name, n.ID, at.ref}
			for _, one := range p.expand(stepAt, step, values) {
				phase := p.step(one.at, one.step, one.values)
				g = p.child(g, one.at)
				over = over && phase.Over()
				if phase.bad() && !step.tolerates(phase) && bad == "" {
					bad, message = phase, fmt.Sprintf("child '%s' failed", p.id(one.at.name))
				}
			}
		}
		switch {
		case !over:
			return n.Phase
		case bad != "":
			p.end(g, bad, message)
			n.OutboundNodes = p.ends(g.ID)
			return p.end(n, bad, message)
		}
		p.end(g, Succeeded, "")
	}
	if last != "" {
		n.OutboundNodes = p.ends(last)
	}
	return p.end(n, Succeeded, "")
}

// single is a step for one item, or for none.
type single struct {
	at     place
	step   *Step
	values map[string]string
}

// expand makes a step of each item.
func (p *pass) expand(at place, step *Step, values map[string]string) []single {
	if len(step.WithItems) == 0 {
		return []single{{at, step, values}}
	}
	var out []single
	for i, item := range step.WithItems {
		with := maps.Clone(values)
		text := fmt.Sprint(item)
		if fields, ok := item.(map[string]any); ok {
			var parts []string
			for _, k := range slices.Sorted(maps.Keys(fields)) {
				with["item."+k] = fmt.Sprint(fields[k])
				parts = append(parts, fmt.Sprintf("%s:%v", k, fields[k]))
			}
			text = strings.Join(parts, ",")
		}
		with["item"] = text
		suffix := fmt.Sprintf("(%d:%s)", i, text)
		one := *step
		one.WithItems = nil
		out = append(out, single{place{at.name + suffix, at.display + suffix, at.boundary, at.ref}, &one, with})
	}
	return out
}

// step runs one step: its condition, then its template.
func (p *pass) step(at place, step *Step, values map[string]string) Phase {
	if n, there := p.out.status.Nodes[p.id(at.name)]; there && n.Phase.Over() {
		return n.Phase
	}
	step, err := substitute(step, values)
	if err != nil {
		return p.broken(at, step.Template, err)
	}
	if step.When != "" {
		var run bool
		if strings.Contains(step.When, "{{") {
			err = fmt.Errorf("when %q: this value is not simulated", step.When)
		} else {
			run, err = holds(step.When, nil)
		}
		if err != nil {
			return p.broken(at, step.Template, err)
		}
		if !run {
			n, ok := p.begin(at, typeSkipped, step.Template, Skipped)
			if !ok {
				return p.notBegun()
			}
			n.Message = fmt.Sprintf("when '%s' evaluated false", step.When)
			p.put(n)
			return n.Phase
		}
	}
	var t *Template
	switch {
	case step.Inline != nil:
		t = &Template{}
		err = json.Unmarshal(*step.Inline, t)
	case step.TemplateRef != nil:
		at.ref = step.TemplateRef
		t, err = p.find(*step.TemplateRef)
	case at.ref != nil:
		// A template of another object calls its own kind.
		t, err = p.find(TemplateRef{Name: at.ref.Name, ClusterScope: at.ref.ClusterScope, Template: step.Template})
	default:
		if t = p.template(step.Template); t == nil {
			err = fmt.Errorf("template %q is not defined", step.Template)
		}
	}
	if err != nil {
		return p.broken(at, step.Template, err)
	}
	return p.run(at, t, step.Arguments, true)
}

// dag runs the tasks whose dependencies are over.
func (p *pass) dag(at place, t *Template, values map[string]string) Phase {
	n, ok := p.begin(at, typeDAG, t.Name, Running)
	if !ok {
		return p.notBegun()
	}
	d := &graph{pass: p, at: at, node: n, tasks: map[string]*Step{}, phases: map[string]Phase{}, values: values,
		failFast: t.DAG.FailFast == nil || *t.DAG.FailFast}
	leaves := map[string]bool{}
	for i := range t.DAG.Tasks {
		d.tasks[t.DAG.Tasks[i].Name] = &t.DAG.Tasks[i]
		leaves[t.DAG.Tasks[i].Name] = true
	}
	// What was begun goes first, so that a failure is known before something new begins.
	for _, begun := range []bool{true, false} {
		for i := range t.DAG.Tasks {
			task := &t.DAG.Tasks[i]
			if _, there := p.out.status.Nodes[p.id(d.place(task).name)]; there != begun {
				continue
			}
			if _, err := d.task(task.Name, 0); err != nil {
				return p.end(d.node, Errored, err.Error())
			}
		}
	}
	for _, task := range d.tasks {
		for _, name := range d.dependencies(task) {
			delete(leaves, name)
		}
	}
	over, bad, message, failed := true, Phase(""), "", false
	for _, task := range t.DAG.Tasks {
		failed = failed || d.phases[task.Name].bad()
	}
	for _, task := range t.DAG.Tasks {
		phase := d.phases[task.Name]
		_, begun := p.out.status.Nodes[p.id(d.place(&task).name)]
		over = over && (phase.Over() || !begun && failed && d.failFast)
		if leaves[task.Name] && bad == "" &&
			(phase.bad() && !task.tolerates(phase) || failed && (phase == Omitted || phase == "")) {
			bad, message = Failed, fmt.Sprintf("child '%s' failed", p.id(d.place(&task).name))
			if phase == Errored {
				bad = Errored
			}
		}
	}
	if !over {
		return d.node.Phase
	}
	for _, task := range t.DAG.Tasks {
		if id := p.id(d.place(&task).name); leaves[task.Name] && p.out.status.Nodes[id].ID != "" {
			d.node.OutboundNodes = append(d.node.OutboundNodes, p.ends(id)...)
		}
	}
	if bad != "" {
		return p.end(d.node, bad, message)
	}
	return p.end(d.node, Succeeded, "")
}

// graph is a DAG in one pass.
type graph struct {
	*pass
	at       place
	node     Node
	tasks    map[string]*Step
	phases   map[string]Phase
	values   map[string]string
	failFast bool
	failed   bool
}

func (d *graph) place(task *Step) place {
	return place{d.at.name + "." + task.Name, task.Name, d.node.ID, d.at.ref}
}

// dependencies returns the tasks that a task names.
func (d *graph) dependencies(task *Step) []string {
	if task.Depends == "" {
		return task.Dependencies
	}
	var names []string
	for _, word := range tokens(task.Depends) {
		name, _, _ := strings.Cut(word, ".")
		if d.tasks[name] != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// task brings a task as far as it goes now, and before it those that it depends on.
func (d *graph) task(name string, depth int) (Phase, error) {
	if phase, known := d.phases[name]; known {
		return phase, nil
	}
	task := d.tasks[name]
	if task == nil {
		return "", fmt.Errorf("task %q is not defined", name)
	}
	if depth > len(d.tasks) {
		return "", fmt.Errorf("task %q depends on itself", name)
	}
	waits := false
	for _, dependency := range d.dependencies(task) {
		phase, err := d.task(dependency, depth+1)
		if err != nil {
			return "", err
		}
		waits = waits || !phase.Over()
	}
	at := d.place(task)
	n, begun := d.out.status.Nodes[d.id(at.name)]
	phase := n.Phase
	switch {
	case begun && phase.Over():
	case !begun && (waits || d.failed && d.failFast):
		if phase = ""; d.ending != "" {
			phase = Failed
		}
	default:
		go_, err := d.due(task)
		if err != nil {
			return "", err
		}
		if !go_ && !begun {
			if omitted, ok := d.begin(at, typeSkipped, task.Template, Omitted); ok {
				omitted.Message = "omitted: depends condition not met"
				d.put(omitted)
				phase = Omitted
			}
			break
		}
		phase = d.start(at, task)
	}
	if before := d.dependencies(task); len(before) == 0 {
		d.node = d.child(d.node, at)
	} else {
		for _, name := range before {
			d.after(d.id(d.place(d.tasks[name]).name), at)
		}
	}
	d.failed = d.failed || phase.bad() && !task.tolerates(phase)
	d.phases[name] = phase
	return phase, nil
}

// due reports whether a task runs, given that those it depends on are over.
func (d *graph) due(task *Step) (bool, error) {
	succeeded := func(name string) bool {
		phase := d.phases[name]
		return phase == Succeeded || phase == Skipped || d.tasks[name].tolerates(phase)
	}
	if task.Depends == "" {
		for _, name := range task.Dependencies {
			if !succeeded(name) {
				return false, nil
			}
		}
		return true, nil
	}
	return holds(task.Depends, func(word string) (bool, error) {
		name, result, qualified := strings.Cut(word, ".")
		if d.tasks[name] == nil {
			return false, fmt.Errorf("task %q is not defined", name)
		}
		phase := d.phases[name]
		if !qualified {
			return succeeded(name), nil
		}
		switch result {
		case "Succeeded", "Failed", "Skipped", "Omitted":
			return phase == Phase(result), nil
		case "Errored":
			return phase == Errored, nil
		}
		return false, fmt.Errorf("%q is not simulated", word)
	})
}

// start runs a task, or its items side by side.
func (d *graph) start(at place, task *Step) Phase {
	if len(task.WithItems) == 0 {
		return d.step(at, task, d.values)
	}
	group, ok := d.begin(at, typeTaskGroup, task.Template, Running)
	if !ok {
		return d.notBegun()
	}
	over, worst := true, Succeeded
	for _, one := range d.expand(at, task, d.values) {
		phase := d.step(one.at, one.step, one.values)
		group = d.child(group, one.at)
		over = over && phase.Over()
		if phase.bad() {
			worst = phase
		}
	}
	if !over {
		return group.Phase
	}
	return d.end(group, worst, "")
}

// suspend waits for its time, or for somebody who marks the node as succeeded.
func (p *pass) suspend(at place, t *Template) Phase {
	n, ok := p.begin(at, typeSuspend, t.Name, Running)
	switch {
	case !ok:
		return p.notBegun()
	case p.ending != "":
		return p.end(n, Failed, p.ending)
	case t.Suspend.Duration == "":
		return n.Phase
	}
	wait, err := time.ParseDuration(string(t.Suspend.Duration))
	if seconds, isNumber := strconv.Atoi(string(t.Suspend.Duration)); isNumber == nil {
		wait, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil {
		return p.end(n, Errored, fmt.Sprintf("suspend: %v", err))
	}
	left := n.StartedAt.Add(wait).Sub(p.now.Time)
	if left <= 0 {
		return p.end(n, Succeeded, "")
	}
	p.recheckIn(left)
	return n.Phase
}

// pod runs one step in a pod of its own.
func (p *pass) pod(at place, t *Template) Phase {
	id := p.id(at.name)
	if _, there := p.out.status.Nodes[id]; !there {
		if limit := p.spec.Parallelism; limit != nil && p.active >= *limit {
			return p.notBegun()
		}
		n, ok := p.begin(at, typePod, t.Name, Pending)
		if !ok {
			return p.notBegun()
		}
		p.active++
		n.Progress = "0/1"
		p.put(n)
		if p.pods[id] == nil {
			p.out.create = append(p.out.create, p.newPod(n, t))
		}
		return n.Phase
	}
	n := p.out.status.Nodes[id]
	pod := p.pods[id]
	if pod != nil {
		n.HostNodeName = pod.Spec.NodeName
	}
	switch {
	case pod != nil && pod.Status.Phase == corev1.PodSucceeded:
		n.Progress = "1/1"
		return p.end(n, Succeeded, "")
	case pod != nil && pod.Status.Phase == corev1.PodFailed:
		return p.end(n, Failed, failure(pod))
	case p.ending != "":
		if pod != nil {
			p.out.remove = append(p.out.remove, pod)
		}
		return p.end(n, Failed, p.ending)
	case pod == nil || pod.DeletionTimestamp != nil:
		if left := n.StartedAt.Add(cacheTimeout).Sub(p.now.Time); pod == nil && left > 0 {
			p.recheckIn(left)
			return n.Phase
		}
		return p.end(n, Errored, "pod deleted")
	case pod.Status.Phase == corev1.PodRunning:
		n.Phase, n.Message = Running, ""
	default:
		n.Phase, n.Message = Pending, waiting(pod)
	}
	p.put(n)
	return n.Phase
}

// failure returns how a failed pod ended.
func failure(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("%s: %s (exit code %d)", c.Name, cmp.Or(t.Reason, "Error"), t.ExitCode)
		}
	}
	return cmp.Or(pod.Status.Message, "pod failed")
}

// waiting returns why a pod does not run yet.
func waiting(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			return w.Reason + ": " + w.Message
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// newPod returns the pod of a node.
func (p *pass) newPod(n Node, t *Template) *corev1.Pod {
	name := p.wf.Name
	if n.Name != p.wf.Name {
		name = fmt.Sprintf("%s-%s-%d", p.wf.Name, t.Name, hash(n.Name))
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.wf.Namespace, Name: name,
			Labels:          map[string]string{},
			Annotations:     map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.wf, WorkflowKind)},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:      corev1.RestartPolicyNever,
			ServiceAccountName: cmp.Or(t.ServiceAccountName, p.spec.ServiceAccountName),
			InitContainers:     t.InitContainers,
			Volumes:            append(slices.Clone(p.spec.Volumes), t.Volumes...),
			NodeSelector:       t.NodeSelector,
			Affinity:           t.Affinity,
			Tolerations:        append(slices.Clone(p.spec.Tolerations), t.Tolerations...),
			ImagePullSecrets:   p.spec.ImagePullSecrets,
			PriorityClassName:  p.spec.PodPriorityClassName,
		},
	}
	if pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = p.spec.NodeSelector
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = p.spec.Affinity
	}
	main := corev1.Container{}
	if t.Container != nil {
		main = *t.Container.DeepCopy()
	} else {
		main = *t.Script.Container.DeepCopy()
	}
	main.Name = "main"
	pod.Spec.Containers = append([]corev1.Container{main}, t.Sidecars...)
	for _, c := range p.spec.VolumeClaimTemplates {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: c.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.wf.Name + "-" + c.Name},
		}})
	}
	if m := p.spec.PodMetadata; m != nil {
		maps.Copy(pod.Labels, m.Labels)
		maps.Copy(pod.Annotations, m.Annotations)
	}
	maps.Copy(pod.Labels, t.Metadata.Labels)
	maps.Copy(pod.Annotations, t.Metadata.Annotations)
	pod.Labels[workflowLabel], pod.Labels[completedLabel] = p.wf.Name, "false"
	pod.Annotations[nodeIDNote], pod.Annotations[nodeNameNote] = n.ID, n.Name
	return pod
}

// refused notes that the pod of a node could not be made; the node ends there.
func (s *Status) refused(pod *corev1.Pod, err error, now metav1.Time) {
	id := pod.Annotations[nodeIDNote]
	n := s.Nodes[id]
	n.Phase, n.Message, n.FinishedAt = Errored, err.Error(), &now
	s.Nodes[id] = n
}

// resolved returns the spec to run: the workflow's own over that of the template that it refers to, and so for
// parameters.
func resolved(own, template map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, template)
	maps.Copy(out, own)
	parameters := func(spec map[string]any) []any {
		arguments, _ := spec["arguments"].(map[string]any)
		list, _ := arguments["parameters"].([]any)
		return list
	}
	given := parameters(own)
	name := func(v any) string {
		m, _ := v.(map[string]any)
		s, _ := m["name"].(string)
		return s
	}
	all := slices.Clone(given)
	for _, v := range parameters(template) {
		if !slices.ContainsFunc(given, func(g any) bool { return name(g) == name(v) }) {
			all = append(all, v)
		}
	}
	if len(all) > 0 {
		out["arguments"] = map[string]any{"parameters": all}
	}
	return out
}

func parse[T any](from any) (*T, error) {
	data, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	out := new(T)
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // of items, which are written as they are read
	return out, d.Decode(out)
}

var errAgain = errors.New("again")
