package argo

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// member is a cluster in memory. Each reconcile moves its pods one state further.
type member struct {
	t       *testing.T
	wf      *Workflow
	spec    *Spec
	broken  error
	pods    map[string]*corev1.Pod
	now     time.Time
	started []string
}

func submit(t *testing.T, text string) *member {
	t.Helper()
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	m := &member{t: t, wf: &Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "wf", UID: "1"}},
		pods: map[string]*corev1.Pod{}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	m.spec, m.broken = readSpec(spec)
	return m
}

// look has the controller look once, and reports what it decided.
func (m *member) look() outcome {
	out := decide(m.wf, m.spec, slices.Collect(maps.Values(m.pods)), m.broken, m.now)
	m.wf.Status = out.status
	for _, p := range out.create {
		p.Status.Phase = corev1.PodRunning
		m.pods[p.Name] = p
		m.started = append(m.started, strings.TrimPrefix(p.Annotations[nodeNameNote], "wf"))
	}
	return out
}

// finish ends all running pods: with failure if the test asked for it.
func (m *member) finish() {
	for _, p := range m.pods {
		if p.Status.Phase != corev1.PodRunning {
			continue
		}
		p.Status.Phase = corev1.PodSucceeded
		if p.Annotations["sim.argosy.io/exit-code"] != "" {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
		}
	}
	m.now = m.now.Add(time.Second)
}

// run looks until nothing happens any more.
func (m *member) run() Status {
	m.t.Helper()
	for range 30 {
		if m.look().status.Phase.Over() {
			return m.wf.Status
		}
		m.finish()
	}
	m.t.Fatalf("not over after 30 looks: %+v", m.wf.Status)
	return Status{}
}

const leaves = `
templates:
- {name: ok, container: {image: "busybox:1"}}
- {name: bad, container: {image: "busybox:1"}, metadata: {annotations: {sim.argosy.io/exit-code: "1"}}}
`

func TestAWorkflowRunsAsItsTemplatesSay(t *testing.T) {
	for _, tt := range []struct {
		name, spec string
		want       Phase
		progress   string
		started    string // the nodes that got pods, in order
	}{
		{"one container", "entrypoint: ok" + leaves, Succeeded, "1/1", ""},
		{"one that fails", "entrypoint: bad" + leaves, Failed, "0/1", ""},
		{"an entrypoint that is not there", "entrypoint: none" + leaves, Errored, "0/0", ""},
		{"steps, one group after the other", "entrypoint: main" + leaves + `
- name: main
  steps:
  - - {name: a, template: ok}
    - {name: b, template: ok}
  - - {name: c, template: ok}
`, Succeeded, "3/3", "[0].a [0].b [1].c"},
		{"steps stop at a failure", "entrypoint: main" + leaves + `
- name: main
  steps:
  - - {name: a, template: bad}
    - {name: b, template: ok}
  - - {name: c, template: ok}
`, Failed, "1/2", "[0].a [0].b"},
		{"templates that call each other", "entrypoint: main\ntemplates: [{name: main, steps: [[{name: a, template: main}]]}]",
			Errored, "0/0", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := submit(t, tt.spec)
			status := m.run()
			if status.Phase != tt.want || status.Progress != tt.progress {
				t.Errorf("phase %s, progress %s (%s), want %s %s", status.Phase, status.Progress, status.Message, tt.want,
					tt.progress)
			}
			if tt.want == Errored && status.Message == "" {
				t.Error("nothing says what is wrong")
			}
			if status.StartedAt == nil || status.FinishedAt == nil {
				t.Errorf("started %v, finished %v", status.StartedAt, status.FinishedAt)
			}
			if got := strings.Join(m.started, " "); tt.started != "" && got != tt.started {
				t.Errorf("started %q, want %q", got, tt.started)
			}
			for _, n := range status.Nodes {
				if !n.Phase.Over() || n.FinishedAt == nil {
					t.Errorf("node %s is left %s", n.Name, n.Phase)
				}
			}
		})
	}
}

func TestWhatDoesNotRunIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"entrypoint: main\ntemplates: [{name: main, http: {url: x}}]": `template "main": the simulator does not run this ` +
			`template type`,
		"entrypoint: ok\nonExit: ok" + leaves: `unknown field "onExit"`,
		"entrypoint: main\ntemplates: [{name: main, dag: {tasks: []}}]": `template "main": the simulator does not run this ` +
			`template type`,
		"workflowTemplateRef: {name: other}":      `unknown field "workflowTemplateRef"`,
		"entrypoint: ok\nshutdown: Stop" + leaves: `unknown field "shutdown"`,
		"entrypoint: main" + leaves +
			"- {name: main, steps: [[{name: a, template: ok, withItems: [1]}]]}": `unknown field "withItems"`,
		"entrypoint: main" + leaves +
			"- {name: main, steps: [[{name: a, template: ok, when: 1 == 1}]]}": `unknown field "when"`,
	} {
		if status := submit(t, text).run(); status.Phase != Errored || !strings.Contains(status.Message, want) ||
			!strings.Contains(status.Message, "the simulator does not run") {
			t.Errorf("%s: %s %q, want %q", text, status.Phase, status.Message, want)
		}
	}
}

func TestFieldsWithoutEffectAreIgnored(t *testing.T) {
	m := submit(t, `
entrypoint: main
arguments: {parameters: [{name: who, value: fleet}]}
priority: 3
ttlStrategy: {secondsAfterCompletion: 5}
nodeSelector: {disk: ssd}
templates:
- name: main
  retryStrategy: {limit: "2"}
  inputs: {parameters: [{name: who}]}
  container: {image: "busybox:1", args: ["{{inputs.parameters.who}}"]}
`)
	if status := m.run(); status.Phase != Succeeded || m.pods["wf"].Spec.NodeSelector["disk"] != "ssd" {
		t.Errorf("%s %q, pods %v", status.Phase, status.Message, m.pods)
	}
}

const twoSteps = "entrypoint: main" + leaves + `
- name: main
  steps: [[{name: a, template: ok}], [{name: b, template: ok}]]
`

func TestASuspendedWorkflowBeginsNothing(t *testing.T) {
	m := submit(t, twoSteps)
	m.look()
	m.spec.Suspend = true
	m.finish()
	m.look()
	if out := m.look(); len(m.started) != 1 || out.status.Phase != Running || out.status.Progress != "1/1" {
		t.Errorf("started %v, status %s %s: what ran goes on, nothing else begins", m.started, out.status.Phase,
			out.status.Progress)
	}
	m.spec.Suspend = false
	if status := m.run(); status.Phase != Succeeded || status.Progress != "2/2" {
		t.Errorf("after it is resumed: %s %s", status.Phase, status.Progress)
	}
}

func TestErasedStatusStartsAgain(t *testing.T) {
	m := submit(t, twoSteps)
	m.run()
	m.wf.Status = Status{}
	if out := m.look(); !out.status.Phase.Over() || len(out.create) != 0 {
		t.Errorf("phase %s, %d new pods: the pods of the first run are those of the second, too", out.status.Phase,
			len(out.create))
	}
}

func TestDeletedPodIsAnError(t *testing.T) {
	m := submit(t, "entrypoint: ok"+leaves)
	m.look()
	clear(m.pods)
	if out := m.look(); out.status.Phase != Errored || out.status.Message != "pod deleted" {
		t.Errorf("%s %q", out.status.Phase, out.status.Message)
	}
}

// The nodes are a graph by which Argo's clients draw a Workflow: each is the child of those that it comes after.
func TestNodesAreTheChildrenOfThoseTheyComeAfter(t *testing.T) {
	m := submit(t, "entrypoint: main"+leaves+`
- name: main
  steps:
  - - {name: a, template: ok}
    - {name: b, template: ok}
  - - {name: c, template: two}
  - - {name: d, template: ok}
- name: two
  steps: [[{name: x, template: ok}], [{name: v, template: ok}, {name: z, template: ok}]]
`)
	status := m.run()
	named := func(ids []string) (names []string) {
		for _, id := range ids {
			names = append(names, strings.TrimPrefix(status.Nodes[id].Name, "wf"))
		}
		return names
	}
	want := map[string]struct{ children, outbound []string }{
		"":           {[]string{"[0]"}, []string{"[2].d"}},
		"[0]":        {[]string{"[0].a", "[0].b"}, nil},
		"[0].a":      {[]string{"[1]"}, nil},
		"[0].b":      {[]string{"[1]"}, nil},
		"[1]":        {[]string{"[1].c"}, nil},
		"[1].c":      {[]string{"[1].c[0]"}, []string{"[1].c[1].v", "[1].c[1].z"}},
		"[1].c[0]":   {[]string{"[1].c[0].x"}, nil},
		"[1].c[0].x": {[]string{"[1].c[1]"}, nil},
		"[1].c[1]":   {[]string{"[1].c[1].v", "[1].c[1].z"}, nil},
		"[1].c[1].v": {[]string{"[2]"}, nil},
		"[1].c[1].z": {[]string{"[2]"}, nil},
		"[2]":        {[]string{"[2].d"}, nil},
		"[2].d":      {nil, nil},
	}
	for _, n := range status.Nodes {
		name := strings.TrimPrefix(n.Name, "wf")
		if w, known := want[name]; !known || !slices.Equal(named(n.Children), w.children) ||
			!slices.Equal(named(n.OutboundNodes), w.outbound) {
			t.Errorf("%q has the children %q and ends with %q, want %q", name, named(n.Children), named(n.OutboundNodes), w)
		}
		if n.TemplateScope != "local/wf" {
			t.Errorf("%q is of %q", name, n.TemplateScope)
		}
	}
	if len(status.Nodes) != len(want) {
		t.Errorf("%d nodes, want %d", len(status.Nodes), len(want))
	}
}
