package failover

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
)

// workloads places a workload of each scheduling type, with so many replicas in each of the clusters if it has any.
var workloads = map[string]func(w *world, clusters []string, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding{
	"no replicaScheduling": ofType(nil, (*world).deployment),
	"Duplicated": ofType(&policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDuplicated}, (*world).deployment),
	"Job":             ofType(nil, (*world).job),
	"static weights":  ofType(equally().ReplicaScheduling, (*world).deployment),
	"dynamic weights": ofType(byRoom().ReplicaScheduling, (*world).deployment),
	"Aggregated": ofType(&policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated}, (*world).deployment),
	"ConfigMap":         ofKind("ConfigMap", nil),
	"Service":           ofKind("Service", nil),
	"Secret of Divided": ofKind("Secret", byRoom().ReplicaScheduling),
	"no replicas": func(w *world, clusters []string, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
		return w.deployment("web", strings.Join(clusters, " "), p)
	},
	"components": func(w *world, clusters []string, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
		b := w.deployment("web", strings.Join(clusters, " "), p)
		b.Spec.Components = []workv1alpha2.Component{{Name: "manager", Replicas: 1}, {Name: "worker", Replicas: 2}}
		for i := range b.Spec.Clusters {
			b.Spec.Clusters[i].Components = []workv1alpha2.TargetComponent{{Name: "manager", Replicas: 1},
				{Name: "worker", Replicas: 2}}
		}
		return b
	},
}

type makeBinding = func(w *world, name, at string, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding

func ofType(s *policyv1alpha1.ReplicaSchedulingStrategy, of makeBinding) func(*world, []string,
	policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	return func(w *world, clusters []string, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
		p.ReplicaScheduling = s
		return of(w, "web", strings.Join(clusters, "=2 ")+"=2", p)
	}
}

func ofKind(kind string, s *policyv1alpha1.ReplicaSchedulingStrategy) func(*world, []string,
	policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	return func(w *world, clusters []string, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
		p.ReplicaScheduling = s
		b := w.configMap("web", strings.Join(clusters, " "), p)
		b.Spec.Resource.Kind = kind
		return b
	}
}

// faults make a workload leave clusters.
var faults = map[string]struct {
	happens, ends func(w *world, b *workv1alpha2.ResourceBinding, clusters ...string)
}{
	"lost": {
		happens: func(w *world, _ *workv1alpha2.ResourceBinding, clusters ...string) {
			w.lose(clusters...)
			w.pass(10 * time.Minute)
		},
		ends: func(w *world, _ *workv1alpha2.ResourceBinding, clusters ...string) { w.back(clusters...) },
	},
	"NoExecute taint": {
		happens: func(w *world, _ *workv1alpha2.ResourceBinding, clusters ...string) {
			for _, name := range clusters {
				w.taint(name, "maintenance")
			}
		},
		ends: func(w *world, _ *workv1alpha2.ResourceBinding, clusters ...string) {
			for _, name := range clusters {
				w.untaint(name, "maintenance")
			}
		},
	},
	"NoExecute taint that is tolerated for a time": {
		happens: func(w *world, b *workv1alpha2.ResourceBinding, clusters ...string) {
			b.Spec.Placement.ClusterTolerations = []corev1.Toleration{{Key: "maintenance",
				Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(60))}}
			b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = schedule.AppliedPlacement(b.Spec.Placement)
			for _, name := range clusters {
				w.taint(name, "maintenance")
			}
			w.pass(time.Minute)
		},
		ends: func(w *world, _ *workv1alpha2.ResourceBinding, clusters ...string) {
			for _, name := range clusters {
				w.untaint(name, "maintenance")
			}
		},
	},
	"unhealthy application": {
		happens: func(w *world, b *workv1alpha2.ResourceBinding, clusters ...string) {
			b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
			for _, name := range clusters {
				w.reports(b, name, workv1alpha1.ResourceUnhealthy, 0)
			}
			w.pass(5 * time.Minute)
		},
		ends: func(*world, *workv1alpha2.ResourceBinding, ...string) {},
	},
}

func terms(lists ...string) (p policyv1alpha1.Placement) {
	for i, list := range lists {
		p.ClusterAffinities = append(p.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{
			AffinityName:    []string{"first", "second", "third"}[i],
			ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: strings.Fields(list)}})
	}
	return p
}

func selecting(clusters ...string) policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}}
}

func TestWorkloadsOfEveryTypeLeaveEveryFault(t *testing.T) {
	tests := map[string]struct {
		placement policyv1alpha1.Placement
		// at are the clusters, broken those that the fault is about, closed others that take nothing.
		at, broken, closed string
		// to are the clusters in the end, in this affinity term.
		to, term string
	}{
		"one term":                         {placement: selecting("a"), at: "a", broken: "a", to: "a"},
		"one term with spread constraints": {placement: upTo(selecting("a", "b"), 1), at: "a", broken: "a", to: "b"},
		"one term for two of three clusters": {placement: upTo(selecting("a", "b", "c"), 2), at: "a b", broken: "a",
			to: "b c"},
		"ordered terms":             {placement: terms("a", "b"), at: "a", broken: "a", to: "b", term: "second"},
		"the last of ordered terms": {placement: terms("a"), at: "a", broken: "a", to: "a", term: "first"},
		"a term without a cluster":  {placement: terms("a", "x", "b"), at: "a", broken: "a", to: "b", term: "third"},
		"ordered terms that overlap": {placement: upTo(terms("a", "a b"), 1), at: "a", broken: "a",
			to: "b", term: "second"},
		"ordered terms and spread constraints": {placement: upTo(terms("a b", "c"), 1), at: "a", broken: "a",
			to: "b", term: "first"},
		"a closed term and spread constraints": {placement: upTo(terms("a b", "c"), 1), at: "a", broken: "a", closed: "b",
			to: "c", term: "second"},
		"a whole term of two clusters": {placement: terms("a b", "c d"), at: "a b", broken: "a b",
			to: "c d", term: "second"},
		"a whole term, with spread constraints": {placement: upTo(terms("a b", "c d"), 2), at: "a b", broken: "a b",
			to: "c d", term: "second"},
		"the next term is closed": {placement: terms("a", "b"), at: "a", broken: "a", closed: "b", to: "a", term: "first"},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		for kind, workload := range workloads {
			for cause, fault := range faults {
				t.Run(name+"/"+kind+"/"+cause, func(t *testing.T) {
					w := newWorld(t, "a", "b", "c", "d")
					w.in.BrakeShare = 1
					b := workload(w, strings.Fields(test.at), test.placement)
					if len(test.placement.ClusterAffinities) > 0 {
						b.Status.SchedulerObservedAffinityName = "first"
					}
					for _, closed := range strings.Fields(test.closed) {
						w.taint(closed, "closed")
					}
					w.confirm()
					if got := strings.Join(names(b.Spec.Clusters), " "); got != test.at {
						t.Fatalf("it is at %s before the fault, want %s", got, test.at)
					}
					broken := strings.Fields(test.broken)
					if len(broken) > 1 && cause != "lost" && cause != "NoExecute taint" {
						t.Skip("each of them still takes copies")
					}
					if kind == "Aggregated" && strings.Contains(test.to, " ") {
						t.Skip("one cluster has room for all replicas")
					}
					fault.happens(w, b, broken...)
					w.lives(b)
					if got := strings.Join(names(b.Spec.Clusters), " "); got != test.to {
						t.Fatalf("it is at %s, want %s: %s", got, test.to, planText(w.plan()))
					}
					for _, waits := range w.plan().Waiting {
						if test.to != test.at {
							t.Errorf("it waits: %+v", waits)
						}
						if strings.Contains(waits.Message, errOthers.Error()) {
							t.Errorf("the message is untrue: %s", waits.Message)
						}
					}
					fault.ends(w, b, broken...)
					w.pass(time.Hour)
					w.lives(b)
					if got := strings.Join(names(b.Spec.Clusters), " "); got != test.to ||
						len(b.Spec.GracefulEvictionTasks) > 0 {
						t.Errorf("when the fault is over, it goes from %s to %s, with the tasks %v", test.to, got,
							b.Spec.GracefulEvictionTasks)
					}
					if got := b.Status.SchedulerObservedAffinityName; got != test.term {
						t.Errorf("the affinity term is %q, want %q", got, test.term)
					}
				})
			}
		}
	}
}

// lives executes plans until nothing happens, while replacements become healthy. The failover confirms what it writes,
// as the controller does, and the scheduler agrees.
func (w *world) lives(b *workv1alpha2.ResourceBinding) {
	w.t.Helper()
	for range 9 {
		p := w.plan()
		if len(p.Evictions)+len(p.Finishes) == 0 {
			return
		}
		for _, e := range p.Evictions {
			confirmed := e.Binding.DeepCopyObject().(*workv1alpha2.ResourceBinding)
			e.Apply(confirmed)
			if !schedule.Keep(confirmed, e.Affinity, w.in.SchedulerName, w.snapshot(), metav1.NewTime(w.now)) {
				reason, _ := schedule.Due(confirmed, w.snapshot())
				w.t.Errorf("%s: the scheduler would not keep the placement: %s", planText(p), reason)
			}
			if confirmed.Status.SchedulerObservedAffinityName != e.Affinity {
				w.t.Errorf("%s: the failover confirms the affinity term %q, want %q", planText(p),
					confirmed.Status.SchedulerObservedAffinityName, e.Affinity)
			}
		}
		w.execute(p)
		for _, t := range b.Spec.Clusters {
			w.reports(b, t.Name, workv1alpha1.ResourceHealthy, t.Replicas)
		}
	}
	w.t.Errorf("the workload moves again and again: %s", planText(w.plan()))
}

// TestWorkloadsOfEveryTypeGoWhereTheyHaveRoom has a cluster without enough room first by name.
func TestWorkloadsOfEveryTypeGoWhereTheyHaveRoom(t *testing.T) {
	for kind, workload := range workloads {
		for cause, fault := range faults {
			for _, c := range []struct{ room, want string }{
				{"b=0 c=9", "c"}, {"b=1 c=2", "c"}, {"b=3 c=0", "b"}, {"b=0 c=0", "b"}, {"b=1 c=1", "b"}, {"b=0", "c"},
			} {
				t.Run(kind+"/"+cause+"/"+c.room, func(t *testing.T) {
					w := newWorld(t, "a", "b", "c")
					b := workload(w, []string{"a"}, upTo(selecting("a", "b", "c"), 1))
					need := schedule.NeedsRoom(b)
					for _, r := range targets(c.room) {
						w.room[r.Name] = r.Replicas
					}
					fault.happens(w, b, "a")
					p := w.plan()
					want := c.want
					switch refused := c.room == "b=0 c=0" || c.room == "b=1 c=1"; {
					case !need: // nothing that takes room
						want = "b"
					case kind == "components" && c.room == "b=1 c=1", kind == "components" && c.room == "b=1 c=2":
						return // one set fits
					case refused && (schedule.Divided(&b.Spec) || kind == "components"):
						if len(p.Evictions) > 0 && len(p.Evictions[0].Placement) == 1 {
							t.Errorf("planned %q, though it has no room", planText(p))
						}
						return
					}
					if len(p.Evictions) != 1 || strings.Join(names(p.Evictions[0].Placement), " ") != want {
						t.Errorf("planned %q, want %s", planText(p), want)
					}
				})
			}
		}
	}
}

func TestWholeTermIsLeftForTheReasonOfEachCluster(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	b := w.configMap("web", "a b", terms("a b", "c"))
	b.Status.SchedulerObservedAffinityName = "first"
	w.in.BrakeShare = 1
	w.taint("a", "maintenance")
	w.lose("b")
	w.pass(10 * time.Minute)
	w.execute(w.plans("web -b,a: c"))
	for cluster, taint := range map[string]string{"a": "maintenance:NoExecute", "b": clusterv1alpha1.TaintNotReady} {
		i := slices.IndexFunc(b.Spec.GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool {
			return t.FromCluster == cluster && strings.Contains(t.Message, taint)
		})
		if i < 0 {
			t.Errorf("no task says that %s is left for the taint %s: %+v", cluster, taint, b.Spec.GracefulEvictionTasks)
		}
	}
}

func TestWorkloadsOfEveryTypeFailBackToTheFirstTerm(t *testing.T) {
	for kind, workload := range workloads {
		for name, p := range map[string]policyv1alpha1.Placement{
			"ordered terms": terms("a", "b"), "with spread constraints": upTo(terms("a d", "b"), 1),
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c", "d")
				w.taint("d", "closed")
				w.in.Facts = func(workv1alpha2.Binding) (Facts, error) { return Facts{FailbackAfter: time.Minute}, nil }
				b := workload(w, []string{"a"}, p)
				b.Status.SchedulerObservedAffinityName = "first"
				w.lose("a")
				w.pass(10 * time.Minute)
				w.lives(b)
				w.back("a")
				w.pass(time.Second)
				w.lives(b)
				if got := strings.Join(names(b.Spec.Clusters), " "); got != "b" {
					t.Fatalf("it is at %s before the stabilization window ends, want b", got)
				}
				w.pass(time.Minute)
				w.execute(w.plan())
				w.healthy(b)
				w.lives(b)
				if got := strings.Join(names(b.Spec.Clusters), " "); got != "a" ||
					b.Status.SchedulerObservedAffinityName != "first" || len(b.Spec.GracefulEvictionTasks) > 0 {
					t.Errorf("it is at %s by term %s with the tasks %v, want a by the first term", got,
						b.Status.SchedulerObservedAffinityName, b.Spec.GracefulEvictionTasks)
				}
			})
		}
	}
}

func TestDependenciesFollowToTheNextAffinityTerm(t *testing.T) {
	for kind, workload := range workloads {
		w := newWorld(t, "a", "b")
		b := workload(w, []string{"a"}, terms("a", "b"))
		b.Status.SchedulerObservedAffinityName = "first"
		w.taint("a", "maintenance")
		w.execute(w.plan())
		if got := strings.Join(slices.Sorted(slices.Values(names(dependency.Occupied(&b.Spec)))), " "); got != "a b" {
			t.Errorf("%s: while the old copy is kept, its dependencies are in %s, want a b", kind, got)
		}
		w.healthy(b)
		w.lives(b)
		if got := strings.Join(names(dependency.Occupied(&b.Spec)), " "); got != "b" {
			t.Errorf("%s: in the end, its dependencies are in %s, want b", kind, got)
		}
	}
}
