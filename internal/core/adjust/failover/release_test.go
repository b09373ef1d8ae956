package failover

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// released is a plan of release web-2 from revision R1 to R2: canary first, then production.
func released(at int, change ...func(*fleet.Plan)) *fleet.Plan {
	p := &fleet.Plan{Release: "web-2", UID: "u-2", Revision: "R2", From: "R1", Unit: fleet.UnitPods, At: at,
		Joining: "Include", Stages: []fleet.PlanStage{
			{Name: "canary", Clusters: []string{"canary", "canary2"}, Part: [2]int64{1, 1}},
			{Name: "production", Clusters: []string{"prod1", "prod2"}, Part: [2]int64{1, 1}}}}
	for _, f := range change {
		f(p)
	}
	return p
}

// setPlan writes a plan into a binding; nil removes it.
func setPlan(b *workv1alpha2.ResourceBinding, p *fleet.Plan) {
	delete(b.Annotations, fleet.PlanAnnotation)
	if p != nil {
		b.Annotations[fleet.PlanAnnotation], b.Annotations[fleet.EffectiveRevisionAnnotation] = p.String(), p.Revision
	}
}

const (
	waits = " (release web-2 has not started stage production)"
	short = "no other cluster takes it: "
	only  = "; failover: SameRevision keeps the replicas in clusters that run revision R1" +
		waits + ": add room there, or let the release go on"
)

func TestFailoverPrefersTheSameRevision(t *testing.T) {
	same := func(p *fleet.Plan) { p.SameRevision = true }
	hold := func(p *fleet.Plan) { p.Hold = true }
	lose := func(w *world, _ *workv1alpha2.ResourceBinding) { w.lose("prod1") }
	oneOf := upTo(duplicated(), 2)
	for name, c := range map[string]struct {
		at    string
		place policyv1alpha1.Placement
		room  map[string]int32
		plan  *fleet.Plan
		cause func(*world, *workv1alpha2.ResourceBinding)
		want  string
		// says is the end of the message of the task, or of the binding that waits.
		says string
	}{
		"all in a cluster with the old revision": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 10, "canary": 100, "new": 0}, plan: released(1),
			want: "web -prod1: canary=3 prod2=13"},
		"without room, the rest in a new one": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 4, "canary": 100, "new": 0}, plan: released(1),
			want: "web -prod1: canary=9 prod2=7",
			says: "; 6 replicas of cluster prod1 moved to canary, which runs revision R2" + waits},
		"never to another one, if the strategy says so": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 4, "canary": 100, "new": 0},
			plan: released(1, same),
			want: "web -prod1: canary=3 prod1=6 prod2=7; web !prod1 NothingFits", says: only},
		"nothing moves without room in the same one": {
			at: "canary=3 prod1=10", room: map[string]int32{"prod2": 0, "canary": 100, "new": 0}, plan: released(1, same),
			want: "web !prod1 NothingFits", says: only},
		"a spread constraint counts all clusters": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 10, "canary": 100, "new": 0}, plan: released(1),
			place: func() policyv1alpha1.Placement {
				p := upTo(byRoom(), 3)
				p.SpreadConstraints[0].MinGroups = 2
				return p
			}(),
			want: "web -prod1: canary=3 prod2=13"},
		"static weights": {
			at: "canary=3 prod1=10 prod2=3", place: equally(), plan: released(1),
			want: "web -prod1: canary=3 new=7 prod2=6"},
		"the release rolls the stage": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 4, "canary": 6, "new": 0}, plan: released(2),
			want: "web -prod1: canary=9 prod2=7"},
		"the release is paused": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 10, "canary": 100, "new": 0},
			plan: released(1, hold), want: "web -prod1: canary=3 prod2=13"},
		"before the first stage all run the same": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 0, "canary": 10, "new": 0}, plan: released(0),
			want: "web -prod1: canary=13 prod2=3"},
		"a canary is lost": {
			at: "canary=10 canary2=3 prod2=3", room: map[string]int32{"prod1": 0, "prod2": 100, "canary2": 4, "new": 0},
			plan:  released(1),
			cause: func(w *world, _ *workv1alpha2.ResourceBinding) { w.lose("canary") },
			want:  "web -canary: canary2=7 prod2=9",
			says:  "; 6 replicas of cluster canary moved to prod2, which runs revision R1" + waits},
		"a part of the stage is new": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 4, "canary": 100, "new": 0},
			plan: released(2, func(p *fleet.Plan) { p.Stages[1].Part = [2]int64{1, 10} }),
			want: "web -prod1: canary=9 prod2=7",
			says: "; 6 replicas of cluster prod1 moved to canary, which runs revision R2 (release web-2 keeps pods of two revisions)"},
		"it rolls back, the last stage first": {
			at:   "canary=3 canary2=3 prod1=10 prod2=3",
			room: map[string]int32{"prod2": 4, "canary": 100, "canary2": 100, "new": 0},
			plan: released(1, func(p *fleet.Plan) {
				p.Revision, p.RollsBack, p.Joining = "R1", "R2", "Defer"
				p.Stages[0], p.Stages[1] = p.Stages[1], p.Stages[0]
			}),
			want: "web -prod1: canary=6 canary2=6 prod2=7",
			says: "; 6 replicas of cluster prod1 moved to canary, canary2, which run revision R2" +
				" (release web-2 has not rolled back stage canary)"},
		"the release has ended": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 0, "canary": 10, "new": 0},
			want: "web -prod1: canary=13 prod2=3"},
		"a cluster outside of all stages gets the old revision": {
			at: "canary=3 prod1=10", room: map[string]int32{"prod2": 0, "canary": 100, "new": 10}, plan: released(1),
			want: "web -prod1: canary=3 new=10"},
		"a cluster that gets nothing before the end takes none": {
			at: "canary=3 prod1=10", room: map[string]int32{"prod2": 0, "canary": 100, "new": 10},
			plan: released(1, func(p *fleet.Plan) { p.Joining = "Hold" }),
			want: "web -prod1: canary=13",
			says: "; 10 replicas of cluster prod1 moved to canary, which runs revision R2" + waits},
		"and it stays, if there is no other": {
			at: "prod1=10", room: map[string]int32{"prod1": 0, "prod2": 0, "canary": 0, "new": 10},
			plan: released(1, func(p *fleet.Plan) { p.Joining = "Hold" }),
			want: "web !prod1 NothingFits", says: "; release web-2 sends nothing to new before it has ended"},
		"not divided": {
			at: "prod1=10 prod2=10", place: oneOf, plan: released(1),
			want: "web -prod1: new=10 prod2=10"},
		"not divided, and only a new one is left": {
			at: "prod1=10 prod2=10", place: only3("canary", "prod1", "prod2"), plan: released(1),
			want: "web -prod1: canary=10 prod2=10",
			says: "; 10 replicas of cluster prod1 moved to canary, which runs revision R2" + waits},
		"not divided, and never in another one": {
			at: "prod1=10 prod2=10", place: only3("canary", "prod1", "prod2"), plan: released(1, same),
			want: "web !prod1 NothingFits", says: only},
		"not divided, and a drained cluster gets a replacement": {
			at: "prod1=10 prod2=10", place: only3("canary", "prod1", "prod2"), plan: released(1),
			cause: func(w *world, _ *workv1alpha2.ResourceBinding) { w.taint("prod1", "maintenance") },
			want:  "web -prod1: canary=10 prod2=10",
			says:  "; 10 replicas of cluster prod1 moved to canary, which runs revision R2" + waits},
		"drained: all move, some to a new one": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 4, "canary": 6, "new": 0}, plan: released(1),
			cause: func(w *world, _ *workv1alpha2.ResourceBinding) { w.taint("prod1", "maintenance") },
			want:  "web -prod1: canary=9 prod2=7",
			says:  "; 6 replicas of cluster prod1 moved to canary, which runs revision R2" + waits},
		"drained: all or none": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 4, "canary": 5, "new": 0}, plan: released(1),
			cause: func(w *world, _ *workv1alpha2.ResourceBinding) { w.taint("prod1", "maintenance") },
			want:  "web !prod1 NothingFits", says: short},
		"drained, and never to another one": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 4, "canary": 100, "new": 0},
			plan:  released(1, same),
			cause: func(w *world, _ *workv1alpha2.ResourceBinding) { w.taint("prod1", "maintenance") },
			want:  "web !prod1 NothingFits", says: only},
		"unhealthy": {
			at: "canary=3 prod1=10 prod2=3", room: map[string]int32{"prod2": 4, "canary": 100, "new": 0}, plan: released(1),
			cause: func(w *world, b *workv1alpha2.ResourceBinding) {
				b.Spec.Failover.Application = &policyv1alpha1.ApplicationFailoverBehavior{}
				w.reports(b, "prod1", workv1alpha1.ResourceUnhealthy, 0)
			},
			want: "web -prod1: canary=9 prod2=7",
			says: "; 6 replicas of cluster prod1 moved to canary, which runs revision R2" + waits},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "canary", "canary2", "new", "prod1", "prod2")
			place := c.place
			if place.ReplicaScheduling == nil && place.SpreadConstraints == nil && place.ClusterAffinity == nil {
				place = byRoom()
			}
			w.room = map[string]int32{"canary2": 0}
			for cluster, n := range c.room {
				w.room[cluster] = n
			}
			b := w.deployment("web", c.at, place)
			setPlan(b, c.plan)
			if c.cause == nil {
				c.cause = lose
			}
			c.cause(w, b)
			w.pass(6 * time.Minute)
			p := w.plans(c.want)
			var message string
			for _, e := range p.Evictions {
				message = e.Tasks[0].Message
			}
			for _, wait := range p.Waiting {
				message = wait.Message
			}
			if c.says == short && strings.Contains(message, "SameRevision") || !strings.Contains(message, c.says) ||
				c.says == "" && strings.Contains(message, "revision") {
				t.Errorf("the message is %q, want %q in it", message, c.says)
			}
		})
	}
}

// only3 allows three clusters, and two copies.
func only3(names ...string) policyv1alpha1.Placement {
	p := upTo(duplicated(), 2)
	p.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: names}
	return p
}

func TestMovesNameReplicasOfAnotherRevision(t *testing.T) {
	w := newWorld(t, "canary", "prod1", "prod2")
	w.room = map[string]int32{"prod2": 4, "canary": 100}
	b := w.deployment("web", "canary=3 prod1=10 prod2=3", byRoom())
	setPlan(b, released(1))
	w.lose("prod1")
	w.pass(6 * time.Minute)
	message := func() string {
		all := Moves([]workv1alpha2.Binding{b}, w.plan(), w.now)
		if len(all) != 1 {
			t.Fatalf("moves are %+v", all)
		}
		return all[0].Message
	}
	const change = "6 replicas of cluster prod1 moved to canary, which runs revision R2" + waits
	if got := message(); got != "the hub is about to move it; "+change {
		t.Errorf("before the move, the message is %q", got)
	}
	w.execute(w.plan())
	if got := message(); !strings.HasSuffix(got, "; "+change) {
		t.Errorf("while replicas start, the message is %q", got)
	}
	w.healthy(b)
	w.execute(w.plans("web ~prod1"))
	w.pass(24 * time.Hour)
	if got := message(); got != change {
		t.Errorf("a day later, the message is %q", got)
	}
	setPlan(b, released(2))
	if lines := RevisionChanges(b); len(lines) > 0 {
		t.Errorf("production has the revision, and still %q", lines)
	}
	if all := Moves([]workv1alpha2.Binding{b}, w.plan(), w.now); len(all) > 0 {
		t.Errorf("the move is no longer of interest: %+v", all)
	}
}

// A rollback gives a cluster without a copy the former revision at once, also if its stage has not been rolled back.
func TestRollbackNamesOnlyClustersThatHadACopy(t *testing.T) {
	back := func(p *fleet.Plan) {
		p.Revision, p.RollsBack, p.Joining = "R1", "R2", "Defer"
		p.Stages[0], p.Stages[1] = p.Stages[1], p.Stages[0]
	}
	const gets = " of cluster prod1 moved to canary, which runs revision R2 (release web-2 has not rolled back stage canary)"
	for name, c := range map[string]struct {
		at    string
		place policyv1alpha1.Placement
		room  map[string]int32
		want  string
	}{
		"it had a copy":          {at: "canary=3 prod1=10", place: byRoom(), want: "10 replicas" + gets},
		"it had none":            {at: "prod1=10", place: byRoom()},
		"it had none, of copies": {at: "prod1=3", place: upTo(duplicated(), 1)},
		"one of two clusters had none": {at: "canary2=3 prod1=10", place: byRoom(),
			room: map[string]int32{"canary": 6, "canary2": 100},
			want: strings.Replace("4 replicas"+gets, "canary,", "canary2,", 1)},
	} {
		w := newWorld(t, "canary", "canary2", "prod1")
		if w.room = c.room; w.room == nil {
			w.room = map[string]int32{"canary": 100, "canary2": 0}
		}
		b := w.deployment("web", c.at, c.place)
		setPlan(b, released(1, back))
		w.lose("prod1")
		w.pass(6 * time.Minute)
		plan := w.plan()
		if len(plan.Evictions) != 1 {
			t.Errorf("%s: the plan is %s", name, planText(plan))
			continue
		}
		message := plan.Evictions[0].Tasks[0].Message
		before := Moves([]workv1alpha2.Binding{b}, plan, w.now)[0].Message
		w.execute(plan)
		lines := strings.Join(RevisionChanges(b), "; ")
		w.healthy(b)
		w.execute(w.plan())
		later := strings.Join(RevisionChanges(b), "; ")
		if lines != c.want || later != c.want || strings.Contains(message, "revision R2") != (c.want != "") ||
			strings.Contains(before, "revision R2") != (c.want != "") {
			t.Errorf("%s: the lines are %q and later %q, want %q; the task says %q, the move %q", name, lines, later, c.want,
				message, before)
		}
		// A later release reaches the cluster as any other.
		setPlan(b, released(1))
		if lines := RevisionChanges(b); len(lines) == 0 {
			t.Errorf("%s: the next release has reached canary alone, and no line says so", name)
		}
	}
}

func TestReplicasMoveWhenTheReleaseContinues(t *testing.T) {
	w := newWorld(t, "canary", "prod1", "prod2")
	w.room = map[string]int32{"prod2": 4, "canary": 100}
	b := w.deployment("web", "canary=3 prod1=10 prod2=3", byRoom())
	same := func(p *fleet.Plan) { p.SameRevision = true }
	setPlan(b, released(1, same))
	w.lose("prod1")
	w.pass(6 * time.Minute)
	w.execute(w.plans("web -prod1: canary=3 prod1=6 prod2=7; web !prod1 NothingFits"))
	w.reports(b, "prod2", workv1alpha1.ResourceHealthy, 7)
	w.execute(w.plans("web ~prod1"))
	w.plans("web !prod1 NothingFits")
	setPlan(b, released(2, same))
	w.plans("web -prod1: canary=9 prod2=7")
}

func TestReleaseNeverReducesWhatMoves(t *testing.T) {
	moved, held := 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t, "canary", "canary2", "new", "prod1", "prod2")
		var at []string
		for _, name := range []string{"canary", "canary2", "new", "prod1", "prod2"} {
			if w.room[name] = r.Int32N(8); name == "prod1" || r.IntN(2) == 0 {
				at = append(at, fmt.Sprintf("%s=%d", name, 1+r.IntN(9)))
			}
		}
		place := [](func() policyv1alpha1.Placement){byRoom, equally, duplicated}[r.IntN(3)]()
		if r.IntN(2) == 0 {
			place = upTo(place, len(at)+r.IntN(2))
			place.SpreadConstraints[0].MinGroups = 1 + r.IntN(2)
		}
		if w.lose("prod1"); r.IntN(3) == 0 {
			w.back("prod1")
			w.taint("prod1", "maintenance")
		}
		b := w.deployment("web", strings.Join(at, " "), place)
		w.pass(6 * time.Minute)
		// gains returns the replicas, or copies, that other clusters get, and those that get another revision.
		gained := func(p *fleet.Plan) (all, other int32) {
			setPlan(b, p)
			for _, e := range w.plan().Evictions {
				for _, t := range gains(b.Spec.Clusters, e.Placement) {
					all += t.Replicas
					if released(1).PodsIn(t.Name, true) != released(1).PodsIn("prod1", true) {
						other += t.Replicas
					}
				}
			}
			return all, other
		}
		want, _ := gained(nil)
		all, other := gained(released(1))
		_, none := gained(released(1, func(p *fleet.Plan) { p.SameRevision = true }))
		if all != want || none > 0 {
			t.Errorf("seed %d: %s: %d move without a release, and %d with one; %d run another revision with SameRevision",
				seed, strings.Join(at, " "), want, all, none)
		}
		if all > 0 {
			moved++
		}
		if other > 0 {
			held++
		}
	}
	if moved < 300 || held < 50 {
		t.Errorf("hardly anything happened: %d move, %d of them to another revision", moved, held)
	}
}
