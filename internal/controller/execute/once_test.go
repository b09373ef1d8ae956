package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func served(group, version, kind string) membertest.Kind {
	return membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
		Plural: strings.ToLower(kind) + "s", Namespaced: true}
}

// onces are kinds that run once, and what they say on their way and at their end.
var onces = []struct {
	kind         membertest.Kind
	begun, ended map[string]any
}{
	{served("batch", "v1", "Job"), map[string]any{"active": int64(1)},
		map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}},
	{served("apps.kruise.io", "v1alpha1", "BroadcastJob"), map[string]any{"phase": "running"},
		map[string]any{"phase": "completed"}},
	{served("apps.kruise.io", "v1beta1", "ImagePullJob"), map[string]any{"active": int64(1)},
		map[string]any{"completionTime": "2026-01-01T00:00:00Z"}},
	{served("apps.kruise.io", "v1alpha1", "ContainerRecreateRequest"), map[string]any{"phase": "Recreating"},
		map[string]any{"phase": "Completed"}},
	{served("argoproj.io", "v1alpha1", "Workflow"), map[string]any{"phase": "Running"},
		map[string]any{"phase": "Succeeded"}},
}

func job(k membertest.Kind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(k.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("once")
	return u
}

// says gives m1's object a status, as its controller would.
func (w *world) setStatus(k membertest.Kind, status map[string]any) {
	w.t.Helper()
	obj := w.m1.Object(k, "shop", "once")
	obj.Object["status"] = status
	w.m1.Put(obj)
}

// reports waits until the Work reports a status with all fields of want.
func (w *world) reports(work *workv1alpha1.Work, want map[string]any) {
	w.t.Helper()
	w.Eventually("the end is reported", func() string {
		if !w.HasObject(work) || len(work.Status.ManifestStatuses) == 0 || work.Status.ManifestStatuses[0].Status == nil {
			return fmt.Sprintf("the status is %+v", work.Status)
		}
		var got map[string]any
		if err := json.Unmarshal(work.Status.ManifestStatuses[0].Status.Raw, &got); err != nil {
			return err.Error()
		}
		for key, value := range want {
			if fmt.Sprint(got[key]) != fmt.Sprint(value) {
				return fmt.Sprintf("%s is %v", key, got[key])
			}
		}
		return ""
	})
}

func TestCleanedUpJobIsNotRunAgain(t *testing.T) {
	t.Parallel()
	for _, o := range onces {
		t.Run(o.kind.Kind, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				w.serve(o.kind)
				work := w.work(job(o.kind))
				w.applied(work)

				w.setStatus(o.kind, o.begun)
				w.reports(work, o.begun)

				// The member's controller ends and deletes it, in one go: who looks later sees nothing any more.
				w.setStatus(o.kind, o.ended)
				w.m1.Remove(o.kind, "shop", "once")
				w.reports(work, o.ended)
				w.Quiet()

				// Nor after a change on the hub, nor after a restart.
				u := job(o.kind)
				u.SetLabels(map[string]string{"changed": "yes"})
				w.set(work, u)
				w.applied(work)
				w.restart()
				w.reports(work, o.ended)
				if creations := w.creations(o.kind); creations != 1 {
					t.Errorf("the member was asked to run it %d times", creations)
				}
				if w.m1.Object(o.kind, "shop", "once") != nil {
					t.Error("it runs again")
				}

				// A new template is a new Work, and runs.
				w.Gone(work)
				w.gone(work)
				again := w.work(job(o.kind), func(work *workv1alpha1.Work) {
					work.Labels["work.karmada.io/permanent-id"] = "another"
				})
				w.applied(again)
				if w.m1.Object(o.kind, "shop", "once") == nil {
					t.Error("the next one of that name does not run")
				}
			})
		})
	}
}

// An object may disappear from the cache before the event with its last state.
func TestJobIsNotRunAgainBeforeItsLastEvent(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		k := onces[0].kind
		w := newQuietWorld(t, clock.RealClock{}, k)
		work := w.work(job(k))
		w.look(work)
		w.setStatus(k, onces[0].ended)
		last := w.m1.Object(k, "shop", "once")
		w.m1.Remove(k, "shop", "once")
		m, err := w.r.member(t.Context(), "m1")
		if err != nil {
			t.Fatal(err)
		}
		w.Eventually("it has left memory", func() string {
			if there, err := observe(t.Context(), m, job(k)); there != nil || err != nil {
				return fmt.Sprint(there != nil, err)
			}
			return ""
		})
		if out := w.look(work); out.after == 0 {
			t.Error("it is not looked at again")
		}
		jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
		w.r.triggers.memberEvent("m1", jobs, last, nil)
		w.look(work)
		w.reports(work, onces[0].ended)
		if n := w.creations(k); n != 1 {
			t.Errorf("the member was asked to run it %d times", n)
		}
	})
}

func TestJobDeletedBeforeItsEndIsRecreated(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		k := onces[0].kind
		w.serve(k)
		work := w.work(job(k))
		w.applied(work)
		w.setStatus(k, map[string]any{"active": int64(1)})
		w.reports(work, map[string]any{"active": 1})
		w.m1.Remove(k, "shop", "once")
		w.Eventually("it is back", func() string {
			if w.m1.Object(k, "shop", "once") == nil {
				return "it is not there"
			}
			return ""
		})
	})
}

func TestJobCleanedUpUnobservedIsNotRunAgain(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		k := served("apps.kruise.io", "v1alpha1", "EphemeralJob")
		w.serve(k)
		work := w.work(job(k))
		w.applied(work)
		w.setStatus(k, map[string]any{"phase": "Running"})
		w.reports(work, map[string]any{"phase": "Running", "deletedWhenFinished": true})
		w.stop()
		w.m1.Remove(k, "shop", "once")
		w.restart()
		w.Eventually("users get an event", func() string {
			events := w.Events()
			if !slices.ContainsFunc(events, func(e string) bool {
				return strings.Contains(e, "its completion was not observed")
			}) {
				return fmt.Sprint(events)
			}
			return ""
		})
		if creations := w.creations(k); creations != 1 {
			t.Errorf("the member was asked to run it %d times", creations)
		}
	})
}

func TestWorkflowStatusIsTheMembers(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		k := served("argoproj.io", "v1alpha1", "Workflow") // its status is part of the object, and counts in its generation
		w.serve(k)
		work := w.work(job(k))
		w.applied(work)
		running := map[string]any{"phase": "Running", "nodes": map[string]any{"n": map[string]any{"phase": "Running"}}}
		w.setStatus(k, running)
		w.reports(work, map[string]any{"phase": "Running"})
		writes := len(w.m1.Writes())
		w.Quiet()
		if got := w.m1.Writes()[writes:]; len(got) > 0 {
			t.Errorf("a status was answered with %v", got)
		}

		u := job(k)
		_ = unstructured.SetNestedField(u.Object, true, "spec", "suspend")
		w.set(work, u)
		w.applied(work)
		obj := w.m1.Object(k, "shop", "once")
		if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); !suspended {
			t.Error("the suspension did not arrive")
		}
		if fmt.Sprint(obj.Object["status"]) != fmt.Sprint(running) {
			t.Errorf("the status is %v", obj.Object["status"])
		}
	})
}

// serve has m1 serve a kind more.
func (w *world) serve(k membertest.Kind) {
	w.t.Helper()
	w.m1.Serve(k)
	m, err := w.members.Get("m1")
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := m.Discover(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// creations returns the number of objects of the kind that were created in the member.
func (w *world) creations(k membertest.Kind) int {
	return len(slices.DeleteFunc(w.m1.Writes(), func(write string) bool {
		return !strings.HasPrefix(write, "create "+k.Plural)
	}))
}

// restart ends the controller, if it runs, and starts another.
func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.stop = w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		w.members = member.New(member.Options{Clusters: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Dial: membertest.Dial})
		if err := mgr.Add(w.members); err != nil {
			return err
		}
		return Setup(ctx, mgr, Options{Members: w.members, Interpreter: interpret.New(builtin.Tier()), Workers: 2})
	})
	w.Quiet()
}

func TestCleanUpByTheMemberIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{StatusWindow: time.Hour})
		k := served("apps.kruise.io", "v1alpha1", "EphemeralJob")
		w.serve(k)
		work := w.work(job(k))
		w.applied(work)
		w.reports(work, map[string]any{"deletedWhenFinished": true})
	})
}
