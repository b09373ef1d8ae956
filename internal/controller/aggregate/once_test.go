package aggregate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func served(group, version, kind string) membertest.Kind {
	return membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
		Plural: strings.ToLower(kind) + "s", Namespaced: true}
}

// newRun returns a hub with a template that runs once in m1.
func newRun(t *testing.T, kind membertest.Kind, spec map[string]any) *world {
	return newRunOf(t, kind, spec, Options{})
}

func newRunOf(t *testing.T, kind membertest.Kind, spec map[string]any, o Options) *world {
	w := &world{Hub: controllertest.New(t), t: t, options: o}
	w.joined = w.Join("m1")
	w.Server.Serve(kind)
	w.template = &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	w.template.SetGroupVersionKind(kind.GroupVersionKind)
	w.template.SetNamespace("shop")
	w.template.SetName("c")
	w.template = w.Server.Put(w.template)
	w.run()
	w.binding = scope.Bindings.New("shop")
	w.binding.SetName(names.Binding(kind.Kind, "c"))
	w.binding.BindingSpec().Resource = workv1alpha2.ObjectReference{APIVersion: w.template.GetAPIVersion(),
		Kind: kind.Kind, Namespace: "shop", Name: "c", UID: w.template.GetUID()}
	w.binding.BindingSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}}
	w.Make(w.binding)
	work := &workv1alpha1.Work{}
	work.Namespace, work.Name = names.ExecutionSpace("m1"), "w"
	work.Annotations = map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop",
		workv1alpha2.ResourceBindingNameAnnotation: w.binding.GetName()}
	w.Make(work)
	w.works = append(w.works, work)
	w.Quiet()
	return w
}

var workflows = served("argoproj.io", "v1alpha1", "Workflow")

// expectPhase waits until the template's status says so.
func (w *world) expectPhase(kind membertest.Kind, phase string) *unstructured.Unstructured {
	w.t.Helper()
	var found *unstructured.Unstructured
	w.Eventually("the template has phase "+phase, func() string {
		found = w.Server.Object(kind, "shop", "c")
		if found == nil {
			return "it is gone"
		}
		if got, _, _ := unstructured.NestedString(found.Object, "status", "phase"); got != phase {
			return fmt.Sprintf("got %v", found.Object["status"])
		}
		return ""
	})
	return found
}

func TestWorkflowStatusIsWrittenWithoutSubresource(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newRun(t, workflows, map[string]any{"entrypoint": "main"})
		w.answer(0, "", workv1alpha1.ResourceUnknown, `{"phase":"Running","progress":"1/2"}`)
		w.expectPhase(workflows, "Running")
		w.answer(0, "", workv1alpha1.ResourceHealthy, `{"phase":"Succeeded","progress":"2/2"}`)
		got := w.expectPhase(workflows, "Succeeded")
		if entry, _, _ := unstructured.NestedString(got.Object, "spec", "entrypoint"); entry != "main" {
			t.Errorf("the spec is %v", got.Object["spec"])
		}
		w.Quiet()
		w.stop()
		w.run()
		if wrote := w.Quiet(); len(wrote) != 0 {
			t.Errorf("looked at again, it wrote %v", wrote)
		}
	})
}

func TestFinishedTemplateIsDeletedAfterTTL(t *testing.T) {
	t.Parallel()
	pull := served("apps.kruise.io", "v1beta1", "ImagePullJob")
	for _, c := range []struct {
		name   string
		kind   membertest.Kind
		spec   map[string]any
		status string        // without the time of its end
		ended  time.Duration // ago
		gone   bool
	}{
		{"a Workflow after its time", workflows,
			map[string]any{"ttlStrategy": map[string]any{"secondsAfterCompletion": int64(60)}},
			`{"phase":"Succeeded","finishedAt":%q}`, time.Hour, true},
		{"a Workflow before it", workflows,
			map[string]any{"ttlStrategy": map[string]any{"secondsAfterCompletion": int64(7200)}},
			`{"phase":"Succeeded","finishedAt":%q}`, time.Hour, false},
		{"a Workflow that failed is kept longer", workflows,
			map[string]any{"ttlStrategy": map[string]any{"secondsAfterCompletion": int64(60),
				"secondsAfterFailure": int64(7200)}}, `{"phase":"Failed","finishedAt":%q}`, time.Hour, false},
		{"a Workflow without a time", workflows, map[string]any{}, `{"phase":"Succeeded","finishedAt":%q}`, time.Hour, false},
		{"an ImagePullJob", pull, map[string]any{"completionPolicy": map[string]any{"ttlSecondsAfterFinished": int64(0)}},
			`{"desired":1,"succeeded":1,"completionTime":%q}`, time.Second, true},
		{"an EphemeralJob, after half an hour by default", served("apps.kruise.io", "v1alpha1", "EphemeralJob"),
			map[string]any{}, `{"phase":"Succeeded","completionTime":%q}`, time.Hour, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newRun(t, c.kind, c.spec)
				if c.kind != workflows {
					w.Server.SeparateStatus(c.kind)
				}
				w.answer(0, "", workv1alpha1.ResourceHealthy,
					fmt.Sprintf(c.status, time.Now().Add(-c.ended).UTC().Format(time.RFC3339)))
				if !c.gone {
					w.Eventually("it is folded", func() string {
						if o := w.Server.Object(c.kind, "shop", "c"); o == nil || o.Object["status"] == nil {
							return "it has no status"
						}
						return ""
					})
					w.Quiet()
					if w.Server.Object(c.kind, "shop", "c") == nil {
						t.Error("it is gone")
					}
					return
				}
				w.Eventually("it is gone", func() string {
					if o := w.Server.Object(c.kind, "shop", "c"); o != nil {
						return fmt.Sprint(o.Object["status"])
					}
					return ""
				})
			})
		})
	}
}
