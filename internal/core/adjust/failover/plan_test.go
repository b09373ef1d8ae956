package failover

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestLostClusterIsEvictedAfterItsToleration(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	b := w.deployment("web", "a=2 b=2", byRoom())
	w.lose("a")
	p := w.plans("web !a Tolerated")
	if want := start.Add(5 * time.Minute); !p.Next.Equal(want) {
		t.Errorf("the plan is made again at %s, want %s", p.Next, want)
	}
	w.pass(5 * time.Minute)
	p = w.plans("web -a: b=3 c=1")
	w.execute(p)
	task := b.Spec.GracefulEvictionTasks[0]
	if task.Reason != ReasonTaintUntolerated || task.Producer != "TaintManager" || *task.Replicas != 2 ||
		strings.Join(task.ClustersBeforeFailover, " ") != "a b" {
		t.Errorf("the task is %+v", task)
	}
	w.reports(b, "c", workv1alpha1.ResourceUnknown, 0)
	w.plans("web !a ReplacementNotHealthy")
	w.healthy(b)
	w.execute(w.plans("web ~a"))
	if len(b.Spec.GracefulEvictionTasks) > 0 || len(Current(b)) > 0 {
		t.Errorf("tasks %v and record %q remain", b.Spec.GracefulEvictionTasks, b.Annotations[wellknown.FailoverAnnotation])
	}
	w.plans("")
}

func TestReplicasReadyCountBeforeTheTaskEnds(t *testing.T) {
	w := newWorld(t, "a", "b")
	b := w.deployment("web", "a=2 b=2", byRoom())
	w.lose("a")
	w.pass(6 * time.Minute)
	w.execute(w.plans("web -a: b=4"))
	w.reports(b, "b", workv1alpha1.ResourceHealthy, 2) // as it was before the move
	w.plans("web !a ReplacementNotHealthy")
}

func TestNewCopyWithoutCountersIsNotReady(t *testing.T) {
	w := newWorld(t, "a", "b")
	b := w.deployment("web", "a=2", upTo(byRoom(), 1))
	w.lose("a")
	w.pass(5 * time.Minute)
	w.execute(w.plans("web -a: b=2"))
	w.reportsStatus(b, "b", `{"observedGeneration":1}`) // such as a Deployment that was paused meanwhile
	w.plans("web !a ReplacementNotHealthy")
	w.healthy(b)
	w.plans("web ~a")
}

func TestPausedTemplateStays(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.deployment("web", "a=1", byRoom())
	template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"paused": true}}}
	w.in.Facts = func(b workv1alpha2.Binding) (Facts, error) { return FactsOf(b, template, nil), nil }
	w.lose("a")
	w.pass(5 * time.Minute)
	w.plans("web !a TemplatePaused")
	unstructured.RemoveNestedField(template.Object, "spec", "paused")
	w.plans("web -a: b=1")
}

func TestReportWithoutCountersMayBeFromBeforeTheMove(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	b := w.job("batch", "a=2 b=1", upTo(byRoom(), 2))
	fresh := w.job("fresh", "a=2", upTo(byRoom(), 1))
	w.room["c"] = 0
	w.lose("a")
	w.pass(5 * time.Minute)
	w.execute(w.plans("batch -a: b=3; fresh -a: b=2"))
	w.reportsStatus(fresh, "b", `{"active":2}`) // of a copy that was not there before
	w.execute(w.plans("fresh ~a; batch !a ReplacementNotHealthy"))
	w.pass(24 * time.Hour)
	w.plans("batch !a GracePeriodExceeded")
	w.reportsStatus(b, "b", complete)
	w.plans("batch ~a")
}

func TestLostReplacementIsReplacedFirst(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.job("batch", "a=1 b=1 c=1", byRoom())
	w.room["b"], w.room["c"] = 1, 0
	w.lose("a")
	w.pass(5 * time.Minute)
	w.execute(w.plans("batch -a: b=2 c=1"))
	w.room["c"] = 2
	w.pass(time.Minute)
	w.lose("b")
	w.pass(5 * time.Minute)
	w.execute(w.plans("batch -b: c=3; batch !a ReplacementNotHealthy"))
	// What c reports may be from before both moves.
	w.plans("batch !a ReplacementNotHealthy; batch !b ReplacementNotHealthy")
}

func TestOldWorkloadIsKeptForTheGracePeriodIfMembersScale(t *testing.T) {
	w := newWorld(t, "a", "b")
	b := w.deployment("web", "a=2", upTo(byRoom(), 1))
	facts := Facts{OwnScale: true}
	w.in.Facts = func(workv1alpha2.Binding) (Facts, error) { return facts, nil }
	w.lose("a")
	w.pass(5 * time.Minute)
	w.execute(w.plans("web -a: b=2"))
	w.plans("web !a ReplacementNotHealthy")
	w.reports(b, "b", workv1alpha1.ResourceHealthy, 3)
	w.pass(time.Minute)
	p := w.plans("web !a GracePeriod") // though b is Healthy: it may have to scale up
	if want := start.Add(15 * time.Minute); !p.Next.Equal(want) || !p.Waiting[0].Until.Equal(want) {
		t.Errorf("the wait ends at %s, and the plan is made again at %s, want %s", p.Waiting[0].Until, p.Next, want)
	}
	w.now = p.Next
	w.reports(b, "b", workv1alpha1.ResourceUnknown, 2)
	w.plans("web !a GracePeriodExceeded")
	w.reports(b, "b", workv1alpha1.ResourceHealthy, 3)
	facts.Paused = true
	w.plans("web !a GracePeriodExceeded")
	facts.Paused = false
	w.plans("web ~a")
}

// The hub adds no replicas to copies that autoscalers of members scale.
func TestMembersThatScaleGainNoReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		at       string
		p        policyv1alpha1.Placement
		clusters []string
		kept     bool   // members do not scale
		to       string // where it moves
		waits    string // for what, when all clusters are healthy
	}{
		"divided, and others have copies": {at: "a=2 b=2", p: byRoom(), clusters: []string{"a", "b"}, waits: "GracePeriod"},
		"static weights":                  {at: "a=2 b=2", p: equally(), clusters: []string{"a", "b"}, waits: "GracePeriod"},
		"duplicated, and others have copies": {at: "a=2 b=2", p: duplicated(), clusters: []string{"a", "b"},
			waits: "GracePeriod"},
		"divided, and one is new": {at: "a=4 b=2", p: byRoom(), clusters: []string{"a", "b", "c"}, to: "c:2",
			waits: "GracePeriod"},
		"duplicated, and one is new": {at: "a=2", p: upTo(duplicated(), 1), clusters: []string{"a", "b"}, to: "b:2",
			waits: "GracePeriod"},
		"the hub sets the replicas": {at: "a=2 b=2", p: byRoom(), clusters: []string{"a", "b"}, kept: true, to: "b:2",
			waits: "ReplacementNotHealthy"},
	} {
		for cause, begin := range map[string]func(*world, *workv1alpha2.ResourceBinding){
			"drained": func(w *world, _ *workv1alpha2.ResourceBinding) { w.taint("a", "maintenance") },
			"lost":    func(w *world, _ *workv1alpha2.ResourceBinding) { w.lose("a") },
			"unhealthy": func(w *world, b *workv1alpha2.ResourceBinding) {
				b.Spec.Failover.Application = &policyv1alpha1.ApplicationFailoverBehavior{}
				w.reports(b, "a", workv1alpha1.ResourceUnhealthy, 0)
			},
		} {
			t.Run(name+", "+cause, func(t *testing.T) {
				w := newWorld(t, c.clusters...)
				b := w.deployment("web", c.at, c.p)
				w.in.Facts = func(workv1alpha2.Binding) (Facts, error) { return Facts{OwnScale: !c.kept}, nil }
				begin(w, b)
				w.pass(5 * time.Minute)
				p := w.plan()
				if cause != "drained" && len(p.Evictions) == 0 {
					return // copies everywhere: it stays
				}
				if got := (Move{To: p.Evictions[0].To}).Destination(); got != c.to {
					t.Errorf("it is about to move to %q, want %q", got, c.to)
				}
				w.execute(p)
				w.pass(time.Minute)
				for _, target := range b.Spec.Clusters { // one ready pod each: autoscalers decide
					w.reports(b, target.Name, workv1alpha1.ResourceHealthy, 1)
				}
				moves := w.moves()
				if want := fmt.Sprintf("web a>%s %s %s since", c.to, b.Spec.GracefulEvictionTasks[0].Reason,
					c.waits); !strings.HasPrefix(moves, want) {
					t.Errorf("the moves are %q, want %q", moves, want)
				}
			})
		}
	}
}

func TestReplacementHasNoMoreReplicasThanAQuotaHasPermitted(t *testing.T) {
	for name, c := range map[string]struct {
		at      string
		groups  int
		asked   int32 // by the template since; 0 for what it has
		refused bool
		want    string
	}{
		"nothing is refused":              {"a=2", 1, 0, false, "web -a: b=2"},
		"a quota has refused more":        {"a=2", 1, 4, true, "web -a: b=2"},
		"of several, more":                {"a=2 b=2", 2, 4, true, "web -a: b=2 c=2"},
		"a change to fewer has not ended": {"a=4", 1, 2, true, "web -a: b=2"},
		"an object without replicas":      {"a", 1, 0, false, "web -a: b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a", "b", "c")
			b := w.deployment("web", c.at, upTo(duplicated(), c.groups))
			if c.asked > 0 {
				b.Spec.Replicas = c.asked
			}
			if c.refused {
				b.Status.Conditions[0].Status = metav1.ConditionFalse
			}
			w.taint("a", "maintenance")
			w.plans(c.want)
		})
	}
}

func TestPolicyTolerationsDecide(t *testing.T) {
	seconds := int64(30)
	for name, c := range map[string]struct {
		toleration corev1.Toleration
		after      time.Duration
		want       string
	}{
		"shorter": {corev1.Toleration{Key: clusterv1alpha1.TaintNotReady, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}, 30 * time.Second, "web -a: b=2"},
		"for ever": {corev1.Toleration{Key: clusterv1alpha1.TaintNotReady, Operator: corev1.TolerationOpExists},
			24 * time.Hour, ""},
		"of another effect": {corev1.Toleration{Key: clusterv1alpha1.TaintNotReady, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoSchedule}, time.Minute, "web !a Tolerated"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a", "b", "c")
			p := upTo(byRoom(), 1)
			p.ClusterTolerations = []corev1.Toleration{c.toleration}
			w.deployment("web", "a=2", p)
			w.lose("a")
			w.pass(c.after)
			w.plans(c.want)
		})
	}
}

func TestDrainedClusterIsLeftByEveryBinding(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.deployment("web", "a=2 b=1", byRoom()).Spec.Failover = nil
	w.taint("a", "maintenance")
	w.plans("web -a: b=2 c=1")
	w.room["b"], w.room["c"] = 1, 0
	w.plans("web !a NothingFits") // all or none, since the cluster responds
}

func TestDisabledFailoverEvictsNothing(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d")
	moved := w.deployment("moved", "a=1", upTo(byRoom(), 1))
	w.taint("a", "maintenance")
	w.execute(w.plans("moved -a: b=1"))

	w.in.Off, w.in.AllBindings = true, true
	w.deployment("lost", "c=1", byRoom())
	w.deployment("drained", "a=1", byRoom())
	ailing := w.deployment("ailing", "d=1", byRoom())
	ailing.Spec.Failover.Application = &policyv1alpha1.ApplicationFailoverBehavior{}
	w.reports(ailing, "d", workv1alpha1.ResourceUnhealthy, 0)
	w.lose("c")
	w.pass(time.Hour)
	w.reports(moved, "b", workv1alpha1.ResourceHealthy, 1)
	w.execute(w.plans("moved ~a"))
	w.plans("")
	w.in.Off = false
	w.taint("d", "maintenance")
	if p := w.plan(); len(p.Evictions) != 3 {
		t.Errorf("planned %q, want three evictions once failover is on", planText(p))
	}
}

func TestReadyClusterIsNotLeftForItsLossTaint(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.deployment("web", "a=2", byRoom())
	w.lose("a")
	w.pass(10 * time.Minute)
	w.ready("a", true) // and the hub has not removed the taint yet
	w.plans("")
	w.taint("a", "maintenance")
	w.plans("web -a: b=2")
}

func TestNothingFitsKeepsEverything(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.deployment("web", "a=2", byRoom())
	w.room["b"] = 0
	w.lose("a")
	w.pass(10 * time.Minute)
	w.plans("web !a NothingFits")
}

func TestAsManyReplicasMoveAsFit(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	b := w.deployment("web", "a=4", byRoom())
	w.room["b"], w.room["c"] = 2, 1
	w.lose("a")
	w.pass(10 * time.Minute)
	w.execute(w.plans("web -a: a=1 b=2 c=1; web !a NothingFits"))
	w.healthy(b)
	w.room["c"] = 1
	// The old copy stays while replicas of it have no replacement.
	w.execute(w.plans("web ~a"))
	w.execute(w.plans("web -a: b=2 c=2"))
}

func TestStaticWeightsTakeNothingFromOthers(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.deployment("web", "a=2 b=4", equally()) // c joined later
	w.lose("a")
	w.pass(10 * time.Minute)
	w.plans("web -a: b=4 c=2")
}

func TestCopyLeavesLostClusterOnlyForANewOne(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.configMap("everywhere", "a b c", duplicated())
	w.configMap("once", "a", upTo(duplicated(), 1))
	w.lose("a")
	w.pass(10 * time.Minute)
	w.plans("once -a: b; everywhere !a CopiesEverywhere")
	w.back("a")
	w.taint("a", "maintenance")
	w.plans("everywhere -a: b c; once -a: b")
}

func TestComponentsMoveTogetherWhereTheyFit(t *testing.T) {
	for name, p := range map[string]policyv1alpha1.Placement{"once": upTo(duplicated(), 1), "by room": byRoom()} {
		w := newWorld(t, "a", "b", "c")
		b := w.configMap("flink", "a", p)
		b.Spec.Components = []workv1alpha2.Component{{Name: "jobmanager", Replicas: 1}, {Name: "taskmanager", Replicas: 9}}
		b.Spec.Clusters[0].Components = []workv1alpha2.TargetComponent{{Name: "jobmanager", Replicas: 1},
			{Name: "taskmanager", Replicas: 9}}
		w.room["b"], w.room["c"] = 0, 0
		w.lose("a")
		w.pass(10 * time.Minute)
		w.plans("flink !a NothingFits")
		w.room["c"] = 1
		w.plans("flink -a: c")
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestNextAffinityTermTakesOver(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	p := byRoom()
	p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "primary", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}},
		{AffinityName: "backup", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b", "c"}}},
	}
	b := w.deployment("web", "a=2", p)
	b.Status.SchedulerObservedAffinityName = "primary"
	facts := Facts{FailbackAfter: 10 * time.Minute}
	w.in.Facts = func(workv1alpha2.Binding) (Facts, error) { return facts, nil }
	w.lose("a")
	w.pass(10 * time.Minute)
	w.execute(w.plans("web -a: b=1 c=1"))
	if b.Status.SchedulerObservedAffinityName != "backup" {
		t.Errorf("the affinity term is %s", b.Status.SchedulerObservedAffinityName)
	}
	w.healthy(b)
	w.execute(w.plans("web ~a"))
	w.plans("")
	w.back("a")
	p2 := w.plans("")
	if want := w.now.Add(10 * time.Minute); !p2.Next.Equal(want) {
		t.Errorf("failback is considered at %s, want %s", p2.Next, want)
	}
	w.pass(10 * time.Minute)
	w.execute(w.plans("web -b,c: a=2"))
	if b.Status.SchedulerObservedAffinityName != "primary" {
		t.Errorf("the affinity term is %s", b.Status.SchedulerObservedAffinityName)
	}
	w.reports(b, "a", workv1alpha1.ResourceUnknown, 0)
	w.plans("web !b ReplacementNotHealthy; web !c ReplacementNotHealthy")
	w.healthy(b)
	w.execute(w.plans("web ~b; web ~c"))
	w.plans("")
}

func TestWorkloadsStayWithoutFailback(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	b := w.deployment("web", "a=2", upTo(byRoom(), 1))
	w.lose("a")
	w.pass(10 * time.Minute)
	w.execute(w.plans("web -a: b=2"))
	w.back("a")
	w.healthy(b)
	w.execute(w.plans("web ~a"))
	w.pass(24 * time.Hour)
	w.plans("")
}

func TestReturnedClusterKeepsItsCopyUntilTheReplacementIsHealthy(t *testing.T) {
	w := newWorld(t, "a", "b")
	b := w.deployment("web", "a=2", upTo(byRoom(), 1))
	w.lose("a")
	w.pass(5 * time.Minute)
	w.execute(w.plans("web -a: b=2"))
	w.reports(b, "b", workv1alpha1.ResourceUnknown, 1)
	w.back("a")
	w.reports(b, "a", workv1alpha1.ResourceHealthy, 2) // it still runs there
	w.pass(time.Hour)
	w.plans("web !a GracePeriodExceeded")
	w.healthy(b)
	w.execute(w.plans("web ~a"))
	w.plans("")
}

func TestRebalancerReturnsWorkloadsAfterAFailover(t *testing.T) {
	w := newWorld(t, "a", "b")
	p := byRoom()
	p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "primary", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}},
		{AffinityName: "backup", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}}},
	}
	b := w.deployment("web", "a=2", p)
	b.Status.SchedulerObservedAffinityName = "primary"
	w.lose("a")
	w.pass(5 * time.Minute)
	w.execute(w.plans("web -a: b=2"))
	w.back("a")
	w.healthy(b)
	w.execute(w.plans("web ~a"))
	w.plans("")
	w.pass(time.Minute)
	b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: w.now}
	w.confirm()
	if got := targetsText(b.Spec.Clusters); got != "a=2" {
		t.Errorf("it is at %s", got)
	}
	w.plans("")
}

func TestClusterBeingDeletedTakesNoReplacement(t *testing.T) {
	for name, p := range map[string]policyv1alpha1.Placement{"divided": upTo(byRoom(), 1),
		"copied": upTo(duplicated(), 1)} {
		w := newWorld(t, "a", "b", "c")
		w.deployment("web", "a=1", p)
		w.cluster("b").DeletionTimestamp = &metav1.Time{Time: w.now}
		w.in.Registered = map[string]bool{"b": true}
		w.taint("c", "maintenance")
		w.lose("a")
		w.pass(5 * time.Minute)
		if got := planText(w.plan()); got != "web !a NothingFits" {
			t.Errorf("%s: planned %q while b is being deleted", name, got)
		}
		w.untaint("c", "maintenance")
		if got := planText(w.plan()); got != "web -a: c=1" {
			t.Errorf("%s: planned %q while b is being deleted", name, got)
		}
	}
}

func TestNoEvictionFromClustersLostTogether(t *testing.T) {
	for name, c := range map[string]struct {
		fleet, lost int
		paused      bool
	}{
		"one of two": {2, 1, false}, "two of two": {2, 2, true}, "two of four": {4, 2, false}, "three of four": {4, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := []string{"a", "b", "c", "d"}[:c.fleet]
			w := newWorld(t, all...)
			w.deployment("web", "a=1 b=1", equally())
			w.lose(all[:c.lost]...)
			if got := len(w.plan().Paused); got > 0 != c.paused {
				t.Errorf("%d clusters are paused", got)
			}
		})
	}
	w := newWorld(t, "a", "b", "c", "d")
	w.deployment("web", "a=2", byRoom())
	w.lose("a", "b")
	w.pass(4 * time.Minute)
	w.lose("c")
	w.pass(10 * time.Minute)
	w.execute(w.plans("web !a FailoverPaused"))
	w.taint("a", "user") // the reason to evict the cluster
	w.plans("web -a: d=2")
	w.untaint("a", "user")
	w.back("c")
	p := w.plans("web !a FailoverPaused") // the others may become ready, too
	w.execute(p)
	w.pass(time.Minute)
	w.back("b")
	w.now = p.Next
	p = w.plans("web !a FailoverPaused")
	w.execute(p)
	w.now = p.Next
	w.plans("web -a: b=1 c=1")
}

func TestClustersLostTogetherAreCountedByOneNumber(t *testing.T) {
	for name, c := range map[string]struct {
		fleet  string
		share  float64
		groups []string // that are lost, one per minute
		want   string
	}{
		"at once":               {"a b c", 0.55, []string{"a b c"}, "3 of 3 clusters were lost"},
		"one after the other":   {"a b c d", 0.3, []string{"a", "b", "c"}, "3 of 4 clusters were lost"},
		"two, and two later":    {"a b c d", 0.3, []string{"a b", "c d"}, "4 of 4 clusters were lost"},
		"the share of a subset": {"a b c d e", 0.3, []string{"a", "b c d"}, "4 of 5 clusters were lost"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, strings.Fields(c.fleet)...)
			w.in.BrakeShare = c.share
			lost, targets := 0, ""
			for _, group := range c.groups {
				for _, cluster := range strings.Fields(group) {
					lost, targets = lost+1, targets+" "+cluster+"=1"
				}
			}
			w.deployment("web", strings.TrimSpace(targets), equally())
			for _, group := range c.groups {
				w.lose(strings.Fields(group)...)
				w.pass(time.Minute)
			}
			paused := w.plan().Paused
			if len(paused) != lost {
				t.Errorf("%d clusters are paused, want %d", len(paused), lost)
			}
			for cluster, message := range paused {
				if !strings.HasPrefix(message, c.want) {
					t.Errorf("%s: %q, want %q", cluster, message, c.want)
				}
			}
		})
	}
}

func TestLossLimitSeesTheTaintsOfAllLostClusters(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d")
	p := byRoom()
	p.ClusterTolerations = []corev1.Toleration{{Key: clusterv1alpha1.TaintNotReady, Operator: corev1.TolerationOpExists,
		Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64)}}
	w.deployment("web", "a=2", p)
	w.lose("a")
	w.pass(20 * time.Second)
	w.plans("web !a Tolerated")
	w.lose("b", "c")
	w.pass(10 * time.Second)
	w.plans("web !a FailoverPaused")
	w.back("b", "c")
	w.plans("web -a: b=1 c=1") // no pause was reported
}

func TestOnlyClustersWithEvictionsArePaused(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.in.AllBindings = false
	w.deployment("kept", "a=1 b=1", equally()).Spec.Failover = nil
	w.deployment("web", "a=1", byRoom())
	w.lose("a", "b")
	if p := w.plans("web !a FailoverPaused"); len(p.Paused) != 1 || p.Paused["a"] == "" {
		t.Errorf("paused are %v, want a alone", p.Paused)
	}
	w.bindings = w.bindings[:1]
	if p := w.plans(""); len(p.Paused) > 0 {
		t.Errorf("paused are %v, although no policy has failover", p.Paused)
	}
}

func TestPauseLastsWhileATaskEnds(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	b := w.deployment("web", "a=1 b=1", equally())
	w.taint("b", "maintenance")
	w.execute(w.plans("web -b: a=1 c=1"))
	w.healthy(b)
	w.untaint("b", "maintenance")
	b.Spec.GracefulEvictionTasks[0].SuppressDeletion = new(false)
	w.lose("a", "b")
	if p := w.plans("web ~b"); p.Paused["a"] == "" {
		t.Errorf("paused are %v, want a", p.Paused)
	}
}

func TestClustersLostFarApartAreEvicted(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.deployment("web", "a=1", byRoom())
	w.lose("a")
	w.pass(10 * time.Minute)
	w.lose("b")
	w.pass(10 * time.Minute)
	w.plans("web -a: c=1")
}

func TestEvictionsPerMinuteAreBounded(t *testing.T) {
	w := newWorld(t, "a", "b")
	for _, name := range []string{"one", "three", "two"} {
		w.deployment(name, "a=1", byRoom())
	}
	w.in.EvictionsPerMinute = 2
	w.lose("a")
	w.pass(10 * time.Minute)
	p := w.plans("one -a: b=1; three -a: b=1; two !a EvictionBudget")
	w.execute(p)
	p = w.plan()
	if want := w.now.Add(time.Minute); !p.Next.Equal(want) || len(p.Evictions) > 0 {
		t.Errorf("%s, again at %s, want %s", planText(p), p.Next, want)
	}
	w.pass(time.Minute)
	if p := w.plan(); len(p.Evictions) != 1 {
		t.Errorf("%s", planText(p))
	}
}

func TestOneRespondingClusterIsLeftAtATime(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d")
	b := w.deployment("web", "a=1 b=1", byRoom())
	w.taint("a", "maintenance")
	w.taint("b", "maintenance")
	w.execute(w.plans("web -a: b=1 c=1; web !b OneClusterAtATime"))
	w.plans("web !a ReplacementNotHealthy; web !b OneClusterAtATime")
	w.healthy(b)
	w.execute(w.plans("web ~a"))
	w.plans("web -b: c=2")
}

func TestSeveralLostClustersAreLeftOneByOne(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d")
	w.deployment("web", "a=1 b=1", byRoom())
	w.lose("a", "b")
	w.pass(10 * time.Minute)
	w.execute(w.plans("web -a: b=1 c=1; web !b OneClusterAtATime"))
	w.execute(w.plans("web -b: c=2; web !a ReplacementNotHealthy"))
}

func TestUnhealthyApplicationMovesAfterItsToleration(t *testing.T) {
	w := newWorld(t, "a", "b")
	b := w.deployment("web", "a=2", upTo(byRoom(), 1))
	seconds := int32(60)
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
		DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: &seconds},
		PurgeMode:          policyv1alpha1.PurgeModeNever,
		StatePreservation: &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{
			{AliasLabelName: "from-checkpoint", JSONPath: "{.checkpoint}"}, {AliasLabelName: "lost", JSONPath: "{.nothing}"}}},
	}}
	w.reports(b, "a", workv1alpha1.ResourceUnhealthy, 0)
	p := w.plans("web !a Tolerated")
	if at := w.now.Add(time.Minute); !p.Next.Equal(at) || !p.Waiting[0].Since.Equal(w.now) ||
		p.Waiting[0].Message != "unless it is healthy before, it leaves at "+at.Format(time.RFC3339) {
		t.Errorf("it waits for %+v, and the next plan is at %s", p.Waiting[0], p.Next)
	}
	w.pass(time.Minute)
	w.reports(b, "a", workv1alpha1.ResourceUnknown, 0) // a rollout is no failure
	w.plans("")
	w.reports(b, "a", workv1alpha1.ResourceUnhealthy, 0)
	w.plans("web !a Tolerated")
	w.pass(time.Minute)
	p = w.plans("web -a: b=2")
	if len(p.Evictions[0].Warnings) != 1 || !strings.Contains(p.Evictions[0].Warnings[0], "{.nothing}") {
		t.Errorf("warnings: %q", p.Evictions[0].Warnings)
	}
	w.execute(p)
	task := &b.Spec.GracefulEvictionTasks[0]
	if task.PreservedLabelState["from-checkpoint"] != "s3-7" || len(task.PreservedLabelState) != 1 ||
		!*task.SuppressDeletion {
		t.Errorf("the task is %+v", task)
	}
	w.healthy(b)
	w.plans("web !a KeptByPolicy")
	task.SuppressDeletion = new(false)
	w.plans("web ~a")
}

// An earlier version of the hub, or another program, wrote the status.
func TestUnhealthySinceAnUnknownTimeIsNotEvicted(t *testing.T) {
	w := newWorld(t, "a", "b")
	b := w.deployment("web", "a=2", upTo(byRoom(), 1))
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
	w.reports(b, "a", workv1alpha1.ResourceUnhealthy, 0)
	itemOf(b, "a").UnhealthySince = nil
	w.pass(time.Hour)
	w.plans("")
	w.reports(b, "a", workv1alpha1.ResourceUnhealthy, 0) // aggregate sees it
	w.plans("web !a Tolerated")
	w.pass(defaultUnhealthy)
	w.plans("web -a: b=2")
}

func TestBindingsThatMayLeaveAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, b *workv1alpha2.ResourceBinding)
		want   bool
	}{
		"healthy":      {func(*world, *workv1alpha2.ResourceBinding) {}, false},
		"tainted":      {func(w *world, _ *workv1alpha2.ResourceBinding) { w.taint("a", "maintenance") }, true},
		"other taints": {func(w *world, _ *workv1alpha2.ResourceBinding) { w.taint("b", "maintenance") }, false},
		"unhealthy": {func(w *world, b *workv1alpha2.ResourceBinding) {
			w.reports(b, "a", workv1alpha1.ResourceUnhealthy, 0)
		}, false},
		"unhealthy with application failover": {func(w *world, b *workv1alpha2.ResourceBinding) {
			w.reports(b, "a", workv1alpha1.ResourceUnhealthy, 0)
			b.Spec.Failover.Application = &policyv1alpha1.ApplicationFailoverBehavior{}
		}, true},
		"leaving": {func(w *world, b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "b"}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a", "b")
			b := w.deployment("web", "a=2", duplicated())
			c.change(w, b)
			if got := MayLeave(b, w.snapshot().Cluster); got != c.want {
				t.Errorf("it may leave: %t, want %t", got, c.want)
			}
		})
	}
}

func TestUnhealthyCopyIsRemovedOnlyForANewOne(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	everywhere := w.deployment("everywhere", "a=2 b=2 c=2", duplicated())
	once := w.deployment("once", "a=2", upTo(duplicated(), 1))
	for _, b := range []*workv1alpha2.ResourceBinding{everywhere, once} {
		b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
		w.reports(b, "a", workv1alpha1.ResourceUnhealthy, 0)
	}
	w.pass(5 * time.Minute)
	w.plans("once -a: b=2; everywhere !a NothingFits")
}

func TestTaskOfARemovedClusterEnds(t *testing.T) {
	w := newWorld(t, "b")
	b := w.deployment("web", "b=2", byRoom())
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "a",
		PurgeMode: policyv1alpha1.PurgeModeNever, SuppressDeletion: new(true)}}
	w.in.Registered = map[string]bool{"a": true}
	w.plans("web !a KeptByPolicy")
	w.in.Registered = nil
	if p := w.plans("web ~a"); p.Finishes[0].Tasks[0].Result != ClusterRemoved {
		t.Errorf("it ends for %s", p.Finishes[0].Tasks[0].Result)
	}
}

func TestGracePeriodRemovesNothing(t *testing.T) {
	w := newWorld(t, "a", "b")
	b := w.deployment("web", "a=1", byRoom())
	w.lose("a")
	w.pass(5 * time.Minute)
	w.execute(w.plans("web -a: b=1"))
	p := w.plans("web !a ReplacementNotHealthy")
	if want := w.now.Add(10 * time.Minute); !p.Next.Equal(want) {
		t.Errorf("again at %s, want %s", p.Next, want)
	}
	w.pass(24 * time.Hour)
	w.plans("web !a GracePeriodExceeded")
	w.healthy(b)
	w.plans("web ~a")
}

func TestReplacementLostKeepsTheOldCopy(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	b := w.deployment("web", "a=1", upTo(byRoom(), 1))
	w.taint("a", "maintenance")
	w.execute(w.plans("web -a: b=1"))
	w.healthy(b)
	w.lose("b")
	w.plans("web !a ReplacementNotHealthy; web !b Tolerated")
	w.pass(10 * time.Minute)
	w.plans("web !a GracePeriodExceeded; web !b OneClusterAtATime")
}

func TestDirectlyWaitsUntilTheOldCopyIsGone(t *testing.T) {
	w := newWorld(t, "a", "b")
	b := w.deployment("web", "a=1", upTo(byRoom(), 1))
	b.Spec.Failover.Cluster.PurgeMode = policyv1alpha1.PurgeModeDirectly
	exists := true
	w.in.HasWork = func(_ workv1alpha2.Binding, cluster string) bool { return cluster == "a" && exists }
	w.taint("a", "maintenance")
	w.execute(w.plans("web -a: b=1"))
	w.plans("web !a OldCopyNotDeleted")
	exists = false
	w.plans("web !a ReplacementNotHealthy")
	w.reports(b, "b", workv1alpha1.ResourceUnhealthy, 0) // it is there
	w.plans("web ~a")
}

func TestDirectlyKeepsTheCopyInALostCluster(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	b := w.deployment("web", "a=1 b=1", byRoom())
	b.Spec.Failover.Cluster.PurgeMode = policyv1alpha1.PurgeModeDirectly
	w.lose("a")
	w.pass(10 * time.Minute)
	w.plans("web !a OldCopyNotDeleted")
	w.taint("b", "maintenance") // which responds
	w.plans("web -b: a=1 c=1; web !a OldCopyNotDeleted")
	w.untaint("b", "maintenance")
	w.back("a")
	w.plans("")
}

func TestVolumesStayUnlessPolicyMovesThem(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.deployment("db", "a=1", byRoom())
	facts := Facts{Volumes: true}
	w.in.Facts = func(workv1alpha2.Binding) (Facts, error) { return facts, nil }
	w.lose("a")
	w.pass(10 * time.Minute)
	w.plans("db !a PersistentVolumes")
	facts.MoveVolumes = true
	w.plans("db -a: b=1")
}

func TestConfigurationStaysWhileAWorkloadOfItsPolicyDoes(t *testing.T) {
	w := newWorld(t, "a", "b")
	b := w.deployment("web", "a=1", byRoom())
	w.room["b"] = 0
	c := w.configMap("config", "a b", duplicated())
	w.taint("a", "maintenance")
	w.plans("config !a WorkloadFirst; web !a NothingFits")
	w.room["b"] = 1
	w.execute(w.plans("web -a: b=1; config -a: b"))
	w.healthy(c)
	w.plans("config !a WorkloadFirst; web !a ReplacementNotHealthy")
	w.healthy(b)
	w.execute(w.plans("web ~a; config !a WorkloadFirst"))
	w.plans("config ~a")
}

func TestConfigurationReachesTheNewClusterWithItsWorkload(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.deployment("web", "a=1", upTo(byRoom(), 1))
	c := w.configMap("config", "a", upTo(duplicated(), 1))
	w.lose("a")
	w.pass(5 * time.Minute)
	w.execute(w.plans("web -a: b=1; config -a: b"))
	// The pods of web need config in b before they are healthy.
	w.healthy(c)
	w.plans("config !a WorkloadFirst; web !a ReplacementNotHealthy")
}

func TestFinishedJobDoesNotRunAgain(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	done, running := w.job("done", "a=1", upTo(byRoom(), 1)), w.job("running", "a=1", upTo(byRoom(), 1))
	w.configMap("config", "a b c", duplicated())
	w.reportsStatus(done, "a", complete)
	w.taint("a", "maintenance")
	w.execute(w.plans("running -a: b=1; config -a: b c"))
	w.reportsStatus(running, "b", complete)
	w.execute(w.plans("running ~a; config !a WorkloadFirst"))
	w.plans("config ~a")
}

func TestFinishedJobDoesNotFailBack(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.in.Facts = func(workv1alpha2.Binding) (Facts, error) { return Facts{FailbackAfter: time.Minute}, nil }
	p := byRoom()
	p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "primary", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}},
		{AffinityName: "backup", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}}},
	}
	b := w.job("batch", "a=1", p)
	b.Status.SchedulerObservedAffinityName = "primary"
	w.lose("a")
	w.pass(5 * time.Minute)
	w.execute(w.plans("batch -a: b=1"))
	w.reportsStatus(b, "b", complete)
	w.execute(w.plans("batch ~a"))
	w.back("a")
	w.pass(time.Minute)
	w.execute(w.plans("batch forgets"))
}

func TestClusterBeingDeletedIsNotEvicted(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.deployment("web", "a=1", byRoom())
	w.lose("a")
	w.pass(10 * time.Minute)
	now := *w.deployment("other", "b=1", byRoom()).Status.LastScheduledTime
	w.cluster("a").DeletionTimestamp = &now
	w.in.Registered = map[string]bool{"a": true}
	w.plans("")
}

func TestSuspendedWorkloadStays(t *testing.T) {
	w := newWorld(t, "a", "b")
	b := w.deployment("web", "a=1", byRoom())
	b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: new(true)}}
	w.lose("a")
	w.pass(10 * time.Minute)
	w.plans("web !a DispatchingSuspended")
}

func TestLostTermIsLeftAsAWhole(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d", "e")
	p := byRoom()
	p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "primary", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a", "b"}}},
		{AffinityName: "backup", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"c", "d"}}},
	}
	b := w.deployment("web", "a=1 b=1", p)
	b.Status.SchedulerObservedAffinityName = "primary"
	w.lose("a", "b")
	w.pass(10 * time.Minute)
	w.execute(w.plans("web -a,b: c=1 d=1"))
	w.healthy(b)
	w.plans("web ~a; web ~b")
}
