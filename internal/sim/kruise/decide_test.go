package kruise

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// world is a member in memory: what was decided happens at once, what nodes do happens in tick, in any order.
type world struct {
	observed
	claims []string
	random *rand.Rand
	ids    int
}

func newWorld(seed uint64) *world {
	template := func(image string) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{
				Containers:     []corev1.Container{{Name: "main", Image: image}},
				ReadinessGates: []corev1.PodReadinessGate{{ConditionType: inPlaceReady}},
			},
		}
	}
	other := template("web:3")
	other.Spec.Hostname = "changed"
	return &world{
		observed: observed{
			now:       time.Unix(1_000_000, 0),
			current:   "v1",
			update:    "v1",
			revisions: map[string]*corev1.PodTemplateSpec{"v1": template("web:1"), "v2": template("web:2"), "v3": other},
		},
		random: rand.New(rand.NewPCG(seed, 0)),
	}
}

func (w *world) id() string {
	w.ids++
	return fmt.Sprintf("%05d", w.ids)
}

// act does what was decided.
func (w *world) act(t *testing.T, s steps) {
	t.Helper()
	for _, c := range s.create {
		if slices.ContainsFunc(w.pods, func(p *corev1.Pod) bool { return p.Name == c.pod.Name }) {
			t.Fatalf("pod %s is made twice", c.pod.Name)
		}
		p := c.pod.DeepCopy()
		p.UID = types.UID(w.id())
		p.Status.Phase = corev1.PodPending
		p.CreationTimestamp = metav1.NewTime(w.now)
		w.pods = append(w.pods, p)
		for _, claim := range c.claims {
			if !slices.Contains(w.claims, claim.Name) {
				w.claims = append(w.claims, claim.Name)
			}
		}
	}
	for _, d := range s.remove {
		w.pods = slices.DeleteFunc(w.pods, func(p *corev1.Pod) bool { return p.Name == d.Name })
	}
	replace := func(p *corev1.Pod) {
		for i := range w.pods {
			if w.pods[i].Name == p.Name {
				w.pods[i] = p
			}
		}
	}
	for _, p := range s.inPlace {
		down := p.DeepCopy()
		setPodCondition(down, inPlaceReady, corev1.ConditionFalse, "", w.now)
		setPodCondition(down, corev1.PodReady, corev1.ConditionFalse, "", w.now)
		replace(updatedInPlace(down, w.update, w.revisions[w.update], ""))
	}
	for _, p := range s.finish {
		up := p.DeepCopy()
		setPodCondition(up, inPlaceReady, corev1.ConditionTrue, "", w.now)
		replace(up)
	}
}

// tick lets one pod get on, if any can.
func (w *world) tick() bool {
	w.now = w.now.Add(time.Second)
	for _, i := range w.random.Perm(len(w.pods)) {
		p := w.pods[i].DeepCopy()
		var statuses []corev1.ContainerStatus
		for _, c := range p.Spec.Containers {
			statuses = append(statuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image})
		}
		gate := condition(p, inPlaceReady)
		switch {
		case p.Status.Phase == corev1.PodPending:
			p.Status.Phase, p.Status.ContainerStatuses, p.Spec.NodeName = corev1.PodRunning, statuses, "node"
			setPodCondition(p, inPlaceReady, corev1.ConditionTrue, "", w.now)
			setPodCondition(p, corev1.PodReady, corev1.ConditionTrue, "", w.now)
		case p.Spec.Containers[0].Image != p.Status.ContainerStatuses[0].Image:
			p.Status.ContainerStatuses = statuses
		case gate.Status == corev1.ConditionTrue && !ready(p):
			setPodCondition(p, corev1.PodReady, corev1.ConditionTrue, "", w.now)
		default:
			continue
		}
		w.pods[i] = p
		return true
	}
	return false
}

// settle decides and acts until nothing is left to do; check looks at every state on the way.
func (w *world) settle(t *testing.T, decide func() (steps, error), check func()) steps {
	t.Helper()
	for range 1000 {
		slices.SortFunc(w.pods, func(a, b *corev1.Pod) int { return w.random.IntN(3) - 1 })
		s, err := decide()
		if err != nil {
			t.Fatal(err)
		}
		w.act(t, s)
		check()
		idle := len(s.create)+len(s.remove)+len(s.inPlace)+len(s.finish) == 0
		moved := w.tick()
		check()
		if idle && !moved {
			return s
		}
	}
	t.Fatal("it never settles")
	return steps{}
}

// counts returns the counters of a status.
func (w *world) counts(minReady int32) SetStatus {
	return w.status(&metav1.ObjectMeta{}, nil, minReady, nil)
}

func (w *world) names() []string {
	var names []string
	for _, p := range w.pods {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

func newCloneSet(replicas int32) *CloneSet {
	cs := &CloneSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1", Generation: 1}}
	cs.Spec.Replicas = &replicas
	cs.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	cs.Spec.UpdateStrategy.Type = recreate
	return cs
}

func (w *world) cloneSet(t *testing.T, cs *CloneSet, check func()) steps {
	t.Helper()
	return w.settle(t, func() (steps, error) { return decideCloneSet(cs, w.observed, w.id) }, check)
}

func TestCloneSetSettlesAtItsSpec(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(seed)
		r := w.random
		cs := newCloneSet(int32(r.IntN(8)))
		w.cloneSet(t, cs, func() {})
		if got := int32(len(w.pods)); got != *cs.Spec.Replicas {
			t.Fatalf("seed %d: %d pods, want %d", seed, got, *cs.Spec.Replicas)
		}

		choose := func(options ...string) *intstr.IntOrString { return value(options[r.IntN(len(options))]) }
		strategy := &cs.Spec.UpdateStrategy
		strategy.Type = []string{recreate, inPlaceIfPossible}[r.IntN(2)]
		strategy.Partition = choose("", "0", "2", "50%", "100%")
		strategy.MaxUnavailable = choose("", "1", "2", "50%")
		strategy.MaxSurge = choose("", "0", "1", "50%")
		w.update = []string{"v2", "v3"}[r.IntN(2)]
		if r.IntN(2) == 0 {
			*cs.Spec.Replicas = int32(r.IntN(8))
		}
		replicas := *cs.Spec.Replicas
		keep, err := keepOld(strategy.Partition, replicas)
		if err != nil {
			t.Fatal(err)
		}
		surge, unavailable, err := surgeAndUnavailable(strategy.MaxSurge, strategy.MaxUnavailable, false, replicas)
		if err != nil {
			t.Fatal(err)
		}
		old := int32(len(w.pods))
		floor := min(old, replicas) - unavailable
		most := max(old, replicas+surge)
		w.cloneSet(t, cs, func() {
			if up := w.counts(0).AvailableReplicas; up < floor {
				t.Fatalf("seed %d: %d pods are available, at least %d must be", seed, up, floor)
			}
			if n := int32(len(w.pods)); n > most {
				t.Fatalf("seed %d: %d pods, at most %d may be", seed, n, most)
			}
		})
		status, err := cloneSetStatus(cs, w.observed, nil)
		if err != nil {
			t.Fatal(err)
		}
		if status.AvailableReplicas != replicas || status.Replicas != replicas {
			t.Errorf("seed %d: %d of %d pods available, want %d", seed, status.AvailableReplicas, status.Replicas, replicas)
		}
		if status.UpdatedAvailableReplicas != replicas-keep || status.ExpectedUpdatedReplicas != replicas-keep {
			t.Errorf("seed %d: %d updated, %d expected, want %d (partition %v of %d, before %d)", seed,
				status.UpdatedAvailableReplicas, status.ExpectedUpdatedReplicas, replicas-keep, strategy.Partition, replicas, old)
		}
	}
}

func TestAnImageChangesInPlaceAndOtherChangesDoNot(t *testing.T) {
	for _, tt := range []struct {
		update, strategy string
		samePods         bool
		updated          int32
		blocked          bool
	}{
		{"v2", recreate, false, 3, false},
		{"v2", inPlaceIfPossible, true, 3, false},
		{"v2", inPlaceOnly, true, 3, false},
		{"v3", inPlaceIfPossible, false, 3, false},
		{"v3", inPlaceOnly, true, 0, true},
	} {
		w := newWorld(1)
		cs := newCloneSet(3)
		cs.Spec.UpdateStrategy.Type = tt.strategy
		w.cloneSet(t, cs, func() {})
		before := w.names()
		w.update = tt.update
		last := w.cloneSet(t, cs, func() {})
		if same := slices.Equal(before, w.names()); same != tt.samePods {
			t.Errorf("%s to %s: pods %v, before %v", tt.strategy, tt.update, w.names(), before)
		}
		if n := w.counts(0).UpdatedReadyReplicas; n != tt.updated {
			t.Errorf("%s to %s: %d pods updated and ready, want %d", tt.strategy, tt.update, n, tt.updated)
		}
		if (last.blocked != "") != tt.blocked {
			t.Errorf("%s to %s: blocked %q", tt.strategy, tt.update, last.blocked)
		}
	}
}

func TestPodsNamedForDeletionGoFirst(t *testing.T) {
	w := newWorld(1)
	cs := newCloneSet(4)
	w.cloneSet(t, cs, func() {})
	before := w.names()
	cs.Spec.ScaleStrategy.PodsToDelete = []string{before[0], before[2], "absent"}
	*cs.Spec.Replicas = 3

	s, err := decideCloneSet(cs, w.observed, w.id)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.remove) != 1 || !slices.Contains(cs.Spec.ScaleStrategy.PodsToDelete, s.remove[0].Name) {
		t.Fatalf("removes %v first, want one of those named", s.remove)
	}
	if !slices.Equal(s.toDelete, []string{before[0], before[2]}) {
		t.Errorf("keeps %v named, want those that exist", s.toDelete)
	}
	w.cloneSet(t, cs, func() {})
	after := w.names()
	if len(after) != 3 || slices.Contains(after, before[0]) || slices.Contains(after, before[2]) {
		t.Errorf("pods %v after, before %v: both named ones must be gone, one replaced", after, before)
	}
}

func TestAPausedCloneSetScalesButDoesNotUpdate(t *testing.T) {
	w := newWorld(1)
	cs := newCloneSet(2)
	w.cloneSet(t, cs, func() {})
	cs.Spec.UpdateStrategy.Paused = true
	cs.Spec.UpdateStrategy.MaxSurge = value("100%")
	w.update = "v2"
	*cs.Spec.Replicas = 3
	w.cloneSet(t, cs, func() {})
	if got := w.counts(0); got.Replicas != 3 || got.UpdatedReplicas != 1 {
		t.Errorf("%d pods, %d updated, want 3 and the new one alone updated", got.Replicas, got.UpdatedReplicas)
	}
}

func TestAPodOfACloneSetHasItsClaims(t *testing.T) {
	w := newWorld(1)
	cs := newCloneSet(2)
	cs.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	w.cloneSet(t, cs, func() {})
	var claims []string
	for _, name := range w.names() {
		claims = append(claims, "data-"+name)
	}
	slices.Sort(w.claims)
	if len(claims) != 2 || !slices.Equal(claims, w.claims) {
		t.Errorf("claims %v, want %v", w.claims, claims)
	}
}

func TestAvailableMeansReadyForLongEnough(t *testing.T) {
	w := newWorld(1)
	cs := newCloneSet(1)
	cs.Spec.MinReadySeconds = 30
	w.cloneSet(t, cs, func() {})
	s, err := decideCloneSet(cs, w.observed, w.id)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.counts(30); got.ReadyReplicas != 1 || got.AvailableReplicas != 0 || s.recheck <= 0 ||
		s.recheck > 30*time.Second {
		t.Errorf("ready %d, available %d, recheck in %v", got.ReadyReplicas, got.AvailableReplicas, s.recheck)
	}
	w.now = w.now.Add(s.recheck)
	if got := w.counts(30); got.AvailableReplicas != 1 {
		t.Errorf("not available after %v", s.recheck)
	}
}

// Like the real manager, the simulation writes a status only if more than its failures changes.
func TestFailuresAreReportedWithOtherChangesOnly(t *testing.T) {
	w := newWorld(1)
	cs := newCloneSet(1)
	set := newStatefulSet(t, `{kind: StatefulSet, metadata: {name: db}, spec: {replicas: 1}}`)
	getCondition := func(conditions []Condition, t string) *Condition {
		if i := slices.IndexFunc(conditions, func(c Condition) bool { return c.Type == t }); i >= 0 {
			return &conditions[i]
		}
		return nil
	}
	look := func(message string) map[string]*Condition {
		t.Helper()
		status, err := cloneSetStatus(cs, w.observed, map[string]string{"FailedUpdate": message})
		if err != nil {
			t.Fatal(err)
		}
		cs.Status = status
		if set.Status, err = statefulSetStatus(set, w.observed, map[string]string{"FailedUpdatePod": message}); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(time.Minute)
		return map[string]*Condition{
			"CloneSet":    getCondition(cs.Status.Conditions, "FailedUpdate"),
			"StatefulSet": getCondition(set.Status.Conditions, "FailedUpdatePod"),
		}
	}
	want := func(what string, got map[string]*Condition, message string, at time.Time) {
		t.Helper()
		for kind, c := range got {
			if (c == nil) != (message == "") || c != nil && (c.Message != message || !c.LastTransitionTime.Time.Equal(at)) {
				t.Errorf("%s, the %s has %+v, want %q at %v", what, kind, c, message, at)
			}
		}
	}
	const modified, refused = "the object has been modified", "denied by policy"
	start := w.now
	want("with a first status", look(modified), modified, start)
	want("after the failure is over", look(""), modified, start)
	want("after another failure", look(refused), modified, start)
	w.observed.update = "v2"
	want("with a new revision", look(""), "", start)
	want("with a new failure", look(refused), "", start)
	w.observed.update, start = "v3", w.now
	want("with a failure and a new revision", look(refused), refused, start)
}

func newStatefulSet(t *testing.T, text string) *StatefulSet {
	t.Helper()
	u := object(t, text)
	set, err := read[StatefulSet](u)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func (w *world) statefulSet(t *testing.T, set *StatefulSet, check func()) steps {
	t.Helper()
	return w.settle(t, func() (steps, error) { return decideStatefulSet(set, w.observed) }, check)
}

func TestAStatefulSetMakesItsPodsInOrder(t *testing.T) {
	w := newWorld(1)
	set := newStatefulSet(t, `{kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3, reserveOrdinals: [1], podManagementPolicy: OrderedReady}}`)
	most := 0
	w.statefulSet(t, set, func() {
		var unready int
		for _, p := range w.pods {
			if !ready(p) {
				unready++
			}
		}
		most = max(most, unready)
	})
	if want := []string{"db-0", "db-2", "db-3"}; !slices.Equal(w.names(), want) {
		t.Errorf("pods %v, want %v", w.names(), want)
	}
	if most != 1 {
		t.Errorf("%d pods unready at once, want 1", most)
	}
	set.Spec.ReserveOrdinals = []any{"0-1"}
	*set.Spec.Replicas = 2
	w.statefulSet(t, set, func() {})
	if want := []string{"db-2", "db-3"}; !slices.Equal(w.names(), want) {
		t.Errorf("pods %v after, want %v", w.names(), want)
	}
}

func TestAStatefulSetUpdatesTheHighestOrdinalsFirst(t *testing.T) {
	for seed := range uint64(100) {
		w := newWorld(seed)
		replicas := w.random.IntN(7)
		partition := w.random.IntN(8)
		down := 1 + w.random.IntN(3)
		policy := []string{recreate, inPlaceIfPossible}[w.random.IntN(2)]
		management := parallel
		if w.random.IntN(2) == 0 {
			management, down = "OrderedReady", 1
		}
		set := newStatefulSet(t, fmt.Sprintf(`{kind: StatefulSet, metadata: {name: db}, spec: {replicas: %d, podManagementPolicy: %s,
			reserveOrdinals: ["1-3"], selector: {matchLabels: {app: db}},
			updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: %d, maxUnavailable: %d, podUpdatePolicy: %s}}}}`,
			replicas, management, partition, down, policy))
		w.statefulSet(t, set, func() {})
		before := w.names()
		w.update = []string{"v2", "v3"}[w.random.IntN(2)]
		w.statefulSet(t, set, func() {
			if up := int(w.counts(0).AvailableReplicas); up < replicas-down {
				t.Fatalf("seed %d: %d of %d available, %d may be down", seed, up, replicas, down)
			}
		})
		if !slices.Equal(before, w.names()) {
			t.Errorf("seed %d: pods %v, before %v", seed, w.names(), before)
		}
		byName := map[string]string{}
		for _, p := range w.pods {
			byName[p.Name] = revisionOf(p)
		}
		wanted, _ := fleet.FirstOrdinals(int64(replicas), set.Spec.ReserveOrdinals)
		for i, n := range wanted {
			want := w.update
			if i < partition {
				want = "v1"
			}
			if got := byName[fmt.Sprintf("db-%d", n)]; got != want {
				t.Errorf("seed %d: ordinal %d of %v has %s, want %s (partition %d)", seed, n, slices.Sorted(maps.Keys(byName)), got,
					want, partition)
			}
		}
		status, err := statefulSetStatus(set, w.observed, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(0, replicas-partition); int(status.UpdatedAvailableReplicas) != want {
			t.Errorf("seed %d: %d updated and available, want %d", seed, status.UpdatedAvailableReplicas, want)
		}
		if done := status.CurrentRevision == w.update; done != (partition == 0 || replicas == 0) {
			t.Errorf("seed %d: current revision %s with partition %d of %d", seed, status.CurrentRevision, partition, replicas)
		}
	}
}

func TestScaledDownStatefulSetKeepsItsClaims(t *testing.T) {
	w := newWorld(1)
	set := newStatefulSet(t, `{kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3, podManagementPolicy: Parallel,
		volumeClaimTemplates: [{metadata: {name: data}}]}}`)
	w.statefulSet(t, set, func() {})
	*set.Spec.Replicas = 1
	w.statefulSet(t, set, func() {})
	if want := []string{"data-db-0", "data-db-1", "data-db-2"}; len(w.pods) != 1 || !slices.Equal(w.claims, want) {
		t.Errorf("%d pods with the claims %v, want one with %v", len(w.pods), w.claims, want)
	}
}
