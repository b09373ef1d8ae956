package aggregate

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// ranIn is a member that runs the Workflow of a world and is watched.
type ranIn struct {
	*world
	server *membertest.Server
}

// newRanIn returns a hub with a Workflow in m1 that the hub watches.
func newRanIn(t *testing.T, window time.Duration) *ranIn {
	t.Helper()
	w := &ranIn{world: newRunOf(t, workflows, map[string]any{"entrypoint": "main"}, Options{NodesWindow: window})}
	w.server = w.joined
	w.server.Serve(workflows)
	w.setStatus(`{}`)
	w.watch()
	return w
}

// watch makes the hub watch Workflows in m1, as the first Work does.
func (w *ranIn) watch() {
	w.t.Helper()
	m, err := w.members.Get("m1")
	if err != nil {
		w.t.Fatal(err)
	}
	resource, _ := aggregate.Nodes(workflows.GroupVersionKind.GroupKind())
	m.Watch(resource)
}

// setStatus writes the status of the Workflow, as the member's controller does.
func (w *ranIn) setStatus(status string) {
	w.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"entrypoint": "main"}}}
	u.SetGroupVersionKind(workflows.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("c")
	u.SetLabels(map[string]string{workv1alpha2.ManagedLabel: "true"})
	u.SetAnnotations(map[string]string{
		workv1alpha2.TemplateUIDAnnotation:   string(w.template.GetUID()),
		workv1alpha2.WorkNamespaceAnnotation: names.ExecutionSpace("m1"), workv1alpha2.WorkNameAnnotation: "w",
		workv1alpha2.ResourceBindingNamespaceAnnotation: "shop",
		workv1alpha2.ResourceBindingNameAnnotation:      names.Binding("Workflow", "c"),
	})
	u.Object["status"] = parsed(w.t, status)
	w.server.Put(u)
}

// hears waits until the hub's watch has this status.
func (w *ranIn) hears(status string) {
	w.t.Helper()
	w.setStatus(status)
	want := parsed(w.t, status)
	resource, _ := aggregate.Nodes(workflows.GroupVersionKind.GroupKind())
	w.Eventually("the hub hears "+status, func() string {
		if got, _ := w.members.Known("m1").Cached(resource, "shop", "c"); got == nil ||
			!reflect.DeepEqual(got.Object["status"], any(want)) {
			return fmt.Sprintf("it has %v", got)
		}
		return ""
	})
}

func parsed(t *testing.T, status string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(status), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// shows waits until the template has this status.
func (w *ranIn) shows(status string) {
	w.t.Helper()
	want := parsed(w.t, status)
	w.Eventually("the template shows "+status, func() string {
		if got := w.Server.Object(workflows, "shop", "c").Object["status"]; !reflect.DeepEqual(got, any(want)) {
			return fmt.Sprintf("it shows %v", got)
		}
		return ""
	})
}

func TestWorkflowNodesAreShownOnTheHub(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newRanIn(t, 0)
		w.setStatus(`{"phase":"Running","startedAt":"a","nodes":{"c":{"phase":"Running"}}}`)
		w.answer(0, "", workv1alpha1.ResourceUnknown, `{"phase":"Running","startedAt":"a"}`)
		w.shows(`{"phase":"Running","startedAt":"a","nodes":{"c":{"phase":"Running"}}}`)
		w.Quiet()

		// Work and binding do not change for one more step.
		w.setStatus(`{"phase":"Running","startedAt":"a","nodes":{"c":{"phase":"Running"},"c-1":{"phase":"Pending"}}}`)
		w.shows(`{"phase":"Running","startedAt":"a","nodes":{"c":{"phase":"Running"},"c-1":{"phase":"Pending"}}}`)
		if wrote := w.Quiet(); !slices.Equal(wrote, []string{"patch workflows shop/c"}) {
			t.Errorf("it wrote %v, want the template alone", wrote)
		}

		// Somebody resumes it with Argo's CLI against the hub, which writes its nodes.
		marked := w.Server.Object(workflows, "shop", "c")
		_ = unstructured.SetNestedField(marked.Object, "Succeeded", "status", "nodes", "c-1", "phase")
		w.Server.Put(marked)
		w.shows(`{"phase":"Running","startedAt":"a","nodes":{"c":{"phase":"Running"},"c-1":{"phase":"Pending"}}}`)

		// The hub starts again while its member is silent: the last ones stay, and no others are written.
		w.Quiet()
		w.stop()
		w.server.Down(true)
		w.run()
		w.watch()
		w.answer(0, "", workv1alpha1.ResourceUnknown, `{"phase":"Running","startedAt":"a","progress":"0/1"}`)
		w.shows(`{"phase":"Running","startedAt":"a","progress":"0/1","nodes":{"c":{"phase":"Running"},"c-1":{"phase":"Pending"}}}`)

		// It has gone on meanwhile.
		w.setStatus(`{"phase":"Succeeded","startedAt":"a","finishedAt":"b","compressedNodes":"H4sI"}`)
		w.server.Down(false)
		w.answer(0, "", workv1alpha1.ResourceHealthy, `{"phase":"Succeeded","startedAt":"a","finishedAt":"b"}`)
		w.shows(`{"phase":"Succeeded","startedAt":"a","finishedAt":"b","compressedNodes":"H4sI"}`)

		// What is over stays when the member forgets it.
		w.server.Remove(workflows, "shop", "c")
		w.Quiet()
		w.shows(`{"phase":"Succeeded","startedAt":"a","finishedAt":"b","compressedNodes":"H4sI"}`)
	})
}

func TestOmittedNodesAreReportedOnce(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newRanIn(t, 0)
		w.setStatus(`{"phase":"Running","startedAt":"a","offloadNodeStatusVersion":"fnv:1"}`)
		w.answer(0, "", workv1alpha1.ResourceUnknown, `{"phase":"Running","startedAt":"a"}`)
		omitted := func() (events int) {
			for _, e := range w.Events() {
				if strings.Contains(e, "Workflow NodesOmitted") && strings.Contains(e, `"m1" stores the nodes in its database`) {
					events++
				}
			}
			return events
		}
		w.Eventually("an event is recorded", func() string {
			if n := omitted(); n != 1 {
				return fmt.Sprintf("%d times: %v", n, w.Events())
			}
			return ""
		})
		w.setStatus(`{"phase":"Running","startedAt":"a","offloadNodeStatusVersion":"fnv:2"}`)
		w.answer(0, "", workv1alpha1.ResourceUnknown, `{"phase":"Running","startedAt":"a","progress":"1/2"}`)
		w.Eventually("its progress is shown", func() string {
			got := w.Server.Object(workflows, "shop", "c")
			if p, _, _ := unstructured.NestedString(got.Object, "status", "progress"); p != "1/2" ||
				!strings.Contains(aggregate.Omitted(got), "database") {
				return fmt.Sprint(got.Object["status"])
			}
			return ""
		})
		w.Quiet()
		if n := omitted(); n != 1 {
			t.Errorf("%d events", n)
		}
	})
}

// Progress of a Workflow waits for more changes. Its end is written at once with the last nodes.
func TestWorkflowEndIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newRanIn(t, time.Hour)
		w.hears(`{"phase":"Running","startedAt":"a","nodes":{"c":{"phase":"Running"}}}`)
		w.answer(0, "", workv1alpha1.ResourceUnknown, `{"phase":"Running","startedAt":"a"}`)
		w.shows(`{"phase":"Running","startedAt":"a","nodes":{"c":{"phase":"Running"}}}`)
		w.Quiet()
		w.hears(`{"phase":"Running","startedAt":"a","nodes":{"c":{"phase":"Running"},"c-1":{"phase":"Running"}}}`)
		w.answer(0, "", workv1alpha1.ResourceUnknown, `{"phase":"Running","startedAt":"a","progress":"0/1"}`)
		if wrote := w.Quiet(); slices.Contains(wrote, "patch workflows shop/c") {
			t.Errorf("it wrote %v", wrote)
		}
		w.hears(`{"phase":"Succeeded","startedAt":"a","nodes":{"c":{"phase":"Succeeded"},"c-1":{"phase":"Succeeded"}}}`)
		w.answer(0, "", workv1alpha1.ResourceHealthy, `{"phase":"Succeeded","startedAt":"a","progress":"1/1"}`)
		w.shows(`{"phase":"Succeeded","startedAt":"a","progress":"1/1","nodes":{"c":{"phase":"Succeeded"},"c-1":{"phase":"Succeeded"}}}`)
	})
}

func TestNodesAreNotShownForSeveralClusters(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newRanIn(t, 0)
		w.setStatus(`{"phase":"Running","startedAt":"a","nodes":{"c":{"phase":"Running"}}}`)
		w.answer(0, "", workv1alpha1.ResourceUnknown, `{"phase":"Running","startedAt":"a"}`)
		w.shows(`{"phase":"Running","startedAt":"a","nodes":{"c":{"phase":"Running"}}}`)
		w.HasObject(w.binding)
		w.binding.BindingSpec().Clusters = append(w.binding.BindingSpec().Clusters,
			workv1alpha2.TargetCluster{Name: "m2", Replicas: 1})
		w.binding.SetGeneration(w.binding.GetGeneration() + 1)
		if err := w.Update(t.Context(), w.binding); err != nil {
			t.Fatal(err)
		}
		w.Eventually("the template has none", func() string {
			got := w.Server.Object(workflows, "shop", "c")
			if nodes, has, _ := unstructured.NestedMap(got.Object, "status", "nodes"); has {
				return fmt.Sprint(nodes)
			}
			return ""
		})
	})
}

// turning writes nodes of this size as often as allowed for some time, and returns the bytes written.
func turning(p *pacing, workflows, bytes int, lasting time.Duration) (wrote int) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for now := begin; now.Before(begin.Add(lasting)); now = now.Add(100 * time.Millisecond) {
		for i := range workflows {
			key := types.NamespacedName{Name: fmt.Sprint(i)}
			if p.afford(key, bytes, now) <= 0 {
				p.wrote(key, now)
				wrote += bytes
			}
		}
	}
	return wrote
}

func TestFrequentChangesAreWrittenAtTheRate(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int{1 << 10, 1 << 20} {
		if wrote := turning(&pacing{}, 1, bytes, time.Minute); wrote > 60*nodesRate+bytes {
			t.Errorf("with %d bytes of nodes it wrote %d in a minute", bytes, wrote)
		}
	}
}

func TestNodesOfAllWorkflowsShareOneRate(t *testing.T) {
	t.Parallel()
	for workflows, bytes := range map[int]int{100: 1 << 20, 500: 10 << 10} {
		wrote := turning(&pacing{}, workflows, bytes, time.Minute)
		if most, least := 60*hubNodesRate+bytes, 60*hubNodesRate*9/10; wrote > most || wrote < least {
			t.Errorf("%d Workflows of %d bytes wrote %d in a minute, want %d to %d", workflows, bytes, wrote, least, most)
		}
	}
	// A forgotten template, and one without delayed nodes, leave no state behind.
	p, key := &pacing{}, types.NamespacedName{Name: "w"}
	p.afford(key, 1<<20, time.Now())
	p.Done(key)
	p.forget(key)
	if len(p.of) != 0 {
		t.Errorf("it keeps %v", p.of)
	}
}

// Each change of the phase writes all nodes.
func TestPhaseChangeWaitsForRateOfLargeNodes(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newRanIn(t, time.Hour)
		large := strings.Repeat("x", 900<<10)
		w.hears(`{"phase":"Running","startedAt":"a","compressedNodes":"` + large + `"}`)
		w.answer(0, "", workv1alpha1.ResourceUnknown, `{"phase":"Running","startedAt":"a"}`)
		w.shows(`{"phase":"Running","startedAt":"a","compressedNodes":"` + large + `"}`)
		w.Quiet()
		w.hears(`{"phase":"Pending","startedAt":"a","compressedNodes":"` + large + `"}`)
		w.answer(0, "", workv1alpha1.ResourceUnknown, `{"phase":"Pending","startedAt":"a"}`)
		if wrote := w.Quiet(); slices.Contains(wrote, "patch workflows shop/c") {
			t.Errorf("it wrote %v", wrote)
		}
	})
}
