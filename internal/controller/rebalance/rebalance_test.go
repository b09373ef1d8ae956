package rebalance

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// created is when rebalancers are created, and noon when they finish.
var (
	created = metav1.NewTime(time.Unix(1_800_000_000, 0))
	noon    = metav1.NewTime(time.Unix(1_800_000_100, 0))
)

// world is a hub that rebalances.
type world struct {
	*controllertest.Hub
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	stop  func()
}

func newWorld(t *testing.T) *world {
	w := &world{Hub: controllertest.New(t), t: t, clock: clocktesting.NewFakePassiveClock(noon.Time)}
	w.run()
	return w
}

func (w *world) run() {
	w.t.Helper()
	w.stop = w.Run(func(ctx context.Context, mgr ctrl.Manager) error { return Setup(ctx, mgr, Options{Clock: w.clock}) })
}

// workload is of the name "web" a Deployment of the namespace shop, and of "view!" a ClusterRole.
func workload(name string) appsv1alpha1.ObjectReference {
	if name, ok := strings.CutSuffix(name, "!"); ok {
		return appsv1alpha1.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: name}
	}
	return appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
}

func workloads(names ...string) (all []appsv1alpha1.ObjectReference) {
	for _, n := range names {
		all = append(all, workload(n))
	}
	return all
}

func rebalancer(names ...string) *appsv1alpha1.WorkloadRebalancer {
	return &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Name: "monday", CreationTimestamp: created},
		Spec: appsv1alpha1.WorkloadRebalancerSpec{Workloads: workloads(names...)}}
}

// bound makes the bindings of workloads.
func (w *world) bound(names ...string) {
	w.t.Helper()
	for _, n := range names {
		b := empty(n)
		ref := workload(n)
		b.BindingSpec().Resource = workv1alpha2.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind,
			Namespace: ref.Namespace, Name: ref.Name}
		w.Make(b)
	}
}

// empty returns the binding of a workload, to be read.
func empty(name string) workv1alpha2.Binding {
	w := workload(name)
	b := scope.Bindings.New(w.Namespace)
	b.SetName(names.Binding(w.Kind, w.Name))
	return b
}

// requestedAt returns when a fresh schedule of a workload's binding was requested.
func (w *world) requestedAt(name string) *metav1.Time {
	w.t.Helper()
	b := empty(name)
	if !w.HasObject(b) {
		w.t.Fatalf("there is no binding of %s", name)
	}
	return b.BindingSpec().RescheduleTriggeredAt
}

// waitForStatus waits for a status such as "web=Successful view=Failed/ReferencedBindingNotFound", with "finished" at
// its end if the rebalancer has finished, or "failed" if it has finished and a request failed.
func (w *world) waitForStatus(want string) {
	w.t.Helper()
	w.Eventually("the rebalancer says "+want, func() string {
		if got := w.status(); got != want {
			return "it says " + got
		}
		return ""
	})
}

func (w *world) status() string {
	r := rebalancer()
	if !w.HasObject(r) {
		return "gone"
	}
	var out []string
	for _, o := range r.Status.ObservedWorkloads {
		s := o.Workload.Name + "=" + string(o.Result)
		if o.Reason != "" {
			s += "/" + string(o.Reason)
		}
		out = append(out, s)
	}
	if r.Status.ObservedGeneration != r.Generation {
		out = append(out, fmt.Sprintf("of generation %d, not %d", r.Status.ObservedGeneration, r.Generation))
	}
	switch ended := r.Status.FinishTime != nil; {
	case ended && r.Status.Result == appsv1alpha1.RebalanceFailed:
		out = append(out, "failed")
	case ended && r.Status.Result == appsv1alpha1.RebalanceSuccessful:
		out = append(out, "finished")
	case ended || r.Status.Result != "":
		out = append(out, fmt.Sprintf("result %q, finished at %v", r.Status.Result, r.Status.FinishTime))
	}
	return strings.Join(out, " ")
}

func TestWorkloadsOfBothScopesAreAskedForAFreshSchedule(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.bound("web", "other", "view!")
		w.Make(rebalancer("web", "view!"))
		w.waitForStatus("web=Successful view=Successful finished")
		for _, name := range []string{"web", "view!"} {
			if at := w.requestedAt(name); !at.Equal(&created) {
				t.Errorf("%s was asked as of %v, want the rebalancer's creation, %v", name, at, created)
			}
		}
		if at := w.requestedAt("other"); at != nil {
			t.Errorf("what nobody named was asked at %v", at)
		}
		r := rebalancer()
		if w.HasObject(r); !r.Status.FinishTime.Equal(&noon) {
			t.Errorf("it finished at %v, want %v", r.Status.FinishTime, noon)
		}
		w.Quiet()
		w.stop()
		w.run()
		if got := w.Quiet(); len(got) != 0 {
			t.Errorf("a restart wrote %v", got)
		}
	})
}

func TestLaterRequestStays(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.bound("web")
		later := metav1.NewTime(created.Add(time.Hour))
		controllertest.Change(w.Hub, empty("web"),
			func(b workv1alpha2.Binding) { b.BindingSpec().RescheduleTriggeredAt = &later })
		w.Make(rebalancer("web"))
		w.waitForStatus("web=Successful finished")
		if at := w.requestedAt("web"); !at.Equal(&later) {
			t.Errorf("a later request became %v", at)
		}
	})
}

func TestMissingBindingFailsAndIsTriggeredOnceCreated(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.bound("web")
		w.Make(rebalancer("web", "late", "view!"))
		w.waitForStatus("late=Failed/ReferencedBindingNotFound web=Successful view=Failed/ReferencedBindingNotFound failed")
		w.Quiet()
		reads := len(w.Server.Requests("GET"))
		if got := w.Quiet(); len(got) != 0 || len(w.Server.Requests("GET")) > reads {
			t.Errorf("while bindings are missing it wrote %v and made %d requests", got, len(w.Server.Requests("GET"))-reads)
		}
		w.clock.SetTime(noon.Add(time.Minute))
		w.bound("late")
		w.waitForStatus("late=Successful web=Successful view=Failed/ReferencedBindingNotFound failed")
		r := rebalancer()
		if w.HasObject(r); !r.Status.FinishTime.Equal(&metav1.Time{Time: noon.Add(time.Minute)}) {
			t.Errorf("it finished at %v, want when the last result came", r.Status.FinishTime)
		}
		w.bound("view!")
		w.waitForStatus("late=Successful web=Successful view=Successful finished")
		for _, name := range []string{"late", "view!"} {
			if at := w.requestedAt(name); !at.Equal(&created) {
				t.Errorf("%s was asked at %v", name, at)
			}
		}
	})
}

func TestTheBindingOfAnotherGroupsTemplateIsNotTaken(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		b := empty("web")
		b.BindingSpec().Resource = workv1alpha2.ObjectReference{APIVersion: "example.com/v1", Kind: "Deployment",
			Namespace: "shop", Name: "web"}
		w.Make(b)
		w.Make(rebalancer("web"))
		w.waitForStatus("web=Failed/ReferencedBindingNotFound failed")
		if at := w.requestedAt("web"); at != nil {
			t.Errorf("it was asked at %v", at)
		}
		w.Gone(b)
		w.bound("web")
		w.waitForStatus("web=Successful finished")
	})
}

func TestTheSpecIsFollowed(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.bound("a", "b")
		w.Make(rebalancer("a", "gone"))
		w.waitForStatus("a=Successful gone=Failed/ReferencedBindingNotFound failed")
		controllertest.Change(w.Hub, rebalancer(),
			func(r *appsv1alpha1.WorkloadRebalancer) { r.Spec.Workloads = workloads("b") })
		w.waitForStatus("a=Successful b=Successful finished")
		if at := w.requestedAt("b"); !at.Equal(&created) {
			t.Errorf("what was added was asked at %v", at)
		}
		// Named as of another version it is the same workload, and another entry.
		controllertest.Change(w.Hub, rebalancer(), func(r *appsv1alpha1.WorkloadRebalancer) {
			r.Spec.Workloads = []appsv1alpha1.ObjectReference{{APIVersion: "apps/v1beta1", Kind: "Deployment", Namespace: "shop",
				Name: "b"}}
		})
		w.waitForStatus("a=Successful b=Successful b=Successful finished")
	})
}

func TestTimeToLive(t *testing.T) {
	t.Run("0 ends it at once", func(t *testing.T) {
		t.Parallel()
		controllertest.Run(t, func(t *testing.T) {
			w := newWorld(t)
			w.bound("web")
			r := rebalancer("web", "missing")
			r.Spec.TTLSecondsAfterFinished = new(int32(0))
			w.Make(r)
			w.waitForStatus("gone")
			if at := w.requestedAt("web"); !at.Equal(&created) {
				t.Errorf("it went before its work was done: asked at %v", at)
			}
		})
	})
	t.Run("a second later it goes by itself", func(t *testing.T) {
		t.Parallel()
		controllertest.Run(t, func(t *testing.T) {
			w := newWorld(t)
			w.bound("web")
			r := rebalancer("web")
			r.Spec.TTLSecondsAfterFinished = new(int32(1))
			w.Make(r)
			w.waitForStatus("web=Successful finished")
			w.clock.SetTime(noon.Add(time.Second))
			w.waitForStatus("gone")
		})
	})
	t.Run("it may be set later", func(t *testing.T) {
		t.Parallel()
		controllertest.Run(t, func(t *testing.T) {
			w := newWorld(t)
			w.bound("web")
			w.Make(rebalancer("web"))
			w.waitForStatus("web=Successful finished")
			w.clock.SetTime(noon.Add(time.Hour))
			controllertest.Change(w.Hub, rebalancer(),
				func(r *appsv1alpha1.WorkloadRebalancer) { r.Spec.TTLSecondsAfterFinished = new(int32(7200)) })
			w.Quiet()
			w.waitForStatus("web=Successful finished")
			controllertest.Change(w.Hub, rebalancer(),
				func(r *appsv1alpha1.WorkloadRebalancer) { r.Spec.TTLSecondsAfterFinished = new(int32(60)) })
			w.waitForStatus("gone")
		})
	})
}

func TestFailedBindingWriteBlocksNoOtherBinding(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.bound("bad", "web")
		var refuse atomic.Bool
		refuse.Store(true)
		w.Server.Behave(func(rw http.ResponseWriter, req *http.Request) bool {
			if req.Method != http.MethodPut || !strings.HasSuffix(req.URL.Path, "/bad-deployment") || !refuse.Load() {
				return false
			}
			http.Error(rw, "no", http.StatusInternalServerError)
			return true
		})
		r := rebalancer("bad", "web")
		r.Spec.TTLSecondsAfterFinished = new(int32(0))
		w.Make(r)
		w.waitForStatus("bad= web=Successful")
		refuse.Store(false)
		w.waitForStatus("gone")
		if at := w.requestedAt("bad"); !at.Equal(&created) {
			t.Errorf("it was asked at %v", at)
		}
	})
}

// Bindings appear and are written by others while all rebalancers look for them.
func TestManyRebalancersWithConcurrentWriters(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		const n = 6
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("w%d", i))
		}
		var all []*appsv1alpha1.WorkloadRebalancer
		for i, name := range names {
			r := rebalancer(names...)
			r.Name = fmt.Sprintf("r%d", i)
			r.CreationTimestamp = metav1.NewTime(created.Add(time.Duration(i) * time.Second))
			w.Make(r)
			all = append(all, r)
			w.bound(name)
			controllertest.Change(w.Hub, empty(name), func(b workv1alpha2.Binding) { b.BindingSpec().Replicas = int32(i + 1) })
		}
		for _, r := range all {
			w.Eventually("every rebalancer finds every workload", func() string {
				if w.HasObject(r); r.Status.FinishTime == nil || len(r.Status.ObservedWorkloads) != n {
					return fmt.Sprintf("%s: %+v", r.Name, r.Status)
				}
				for _, o := range r.Status.ObservedWorkloads {
					if o.Result != appsv1alpha1.RebalanceSuccessful {
						return fmt.Sprintf("%s: %+v", r.Name, r.Status)
					}
				}
				return ""
			})
		}
		last := metav1.NewTime(created.Add((n - 1) * time.Second))
		for i, name := range names {
			b := empty(name)
			if w.HasObject(b); !b.BindingSpec().RescheduleTriggeredAt.Equal(&last) || b.BindingSpec().Replicas != int32(i+1) {
				t.Errorf("%s was asked at %v, want the youngest rebalancer's creation, %v; it has %d replicas", name,
					b.BindingSpec().RescheduleTriggeredAt, last, b.BindingSpec().Replicas)
			}
		}
	})
}
