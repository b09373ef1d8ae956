package fleet

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

// cloneSets is a fleet of simulated CloneSets: what is written arrives when it arrives, and is reported when it is.
type cloneSets struct {
	ro      rollout
	members []*clones
	order   []string
}

type clones struct {
	replicas int64
	template int // wanted by the user
	// written is what the Work says; there is false until it is created.
	there           bool
	written         share
	note            Note
	writtenTemplate int
	// live is what the member's controller acts on.
	live         share
	liveTemplate int
	seen         bool // the member's report is of what is written
	reachable    bool
	pods         []clone
	// reported is the last status.
	reported struct{ pods, updated, updatedAvailable, available int64 }
	known    bool
}

type clone struct {
	template int
	up       bool
	// taken is true if its update took it down, and it is not up again.
	taken bool
}

func newFleet(partition any, unavailable, surge int64, replicas ...int64) *cloneSets {
	w, _ := workloadOf(cloneSetKind)
	f := &cloneSets{}
	for i, r := range replicas {
		f.order = append(f.order, fmt.Sprintf("c%d", i+1))
		f.members = append(f.members, &clones{replicas: r, reachable: true, template: 1})
	}
	f.ro = rollout{partition: partition, kept: w.kept, unavailable: unavailable, surge: surge}
	f.ro.targets = options{order: inProportion}.targets(f.order)
	return f
}

// look decides, and writes what was decided.
func (f *cloneSets) look(t testing.TB) (writes int, halted []string) {
	t.Helper()
	parties := make([]party, len(f.members))
	for i, m := range f.members {
		p := party{cluster: f.order[i], replicas: m.replicas, reachable: m.reachable, hasWork: m.there,
			written:      m.written,
			sameTemplate: m.writtenTemplate == m.template, known: m.known, fresh: m.seen, pods: m.reported.pods,
			updated:          m.reported.updated,
			updatedAvailable: m.reported.updatedAvailable, available: m.reported.available}
		if m.there {
			p.note = &m.note
		}
		parties[i] = p
	}
	outcomes, halted, err := f.ro.next(parties)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range f.members {
		if o := outcomes[i]; !m.there || o.share != m.written || m.template != m.writtenTemplate {
			m.written, m.writtenTemplate, m.there, m.seen = o.share, m.template, true, false
			m.note = o.note
			writes++
		} else if o.note != m.note {
			m.note = o.note
			writes++
		}
	}
	return writes, halted
}

// arrive brings what is written to the member.
func (m *clones) arrive() { m.live, m.liveTemplate = m.written, m.writtenTemplate }

func (m *clones) report() {
	m.reported.pods, m.reported.updated, m.reported.updatedAvailable, m.reported.available = 0, 0, 0, 0
	for _, p := range m.pods {
		m.reported.pods++
		if p.up {
			m.reported.available++
		}
		if p.template == m.liveTemplate {
			m.reported.updated++
			if p.up {
				m.reported.updatedAvailable++
			}
		}
	}
	m.known = true
	m.seen = m.live == m.written && m.liveTemplate == m.writtenTemplate
}

// work is one step of the member's controller: it scales, or takes as many pods down for their update as it may.
func (m *clones) work() {
	keep := m.live.replicas - m.live.released
	for int64(len(m.pods)) < m.live.replicas {
		m.pods = append(m.pods, clone{template: m.liveTemplate})
	}
	if int64(len(m.pods)) > m.live.replicas {
		slices.SortStableFunc(m.pods, func(a, b clone) int {
			return b2i(a.template != m.liveTemplate) - b2i(b.template != m.liveTemplate)
		})
		m.pods = m.pods[:m.live.replicas]
	}
	var old, down int64
	for _, p := range m.pods {
		if p.template != m.liveTemplate {
			old++
		}
		if !p.up {
			down++
		}
	}
	for i := range m.pods {
		p := &m.pods[i]
		if old <= keep || p.template == m.liveTemplate {
			continue
		}
		taken := p.taken || p.up
		if p.up {
			if down >= m.live.unavailable {
				continue
			}
			down++
		}
		*p = clone{template: m.liveTemplate, taken: taken}
		old--
	}
}

func (m *clones) heal() {
	for i := range m.pods {
		m.pods[i].up, m.pods[i].taken = true, false
	}
}

func (f *cloneSets) down() (n int64) {
	for _, m := range f.members {
		n += m.isDown()
	}
	return n
}

func (m *clones) isDown() int64 {
	up := int64(0)
	for _, p := range m.pods {
		if p.up {
			up++
		}
	}
	return max(0, m.replicas-up)
}

func (f *cloneSets) updated() (n int64) {
	for _, m := range f.members {
		for _, p := range m.pods {
			if p.template == m.template {
				n++
			}
		}
	}
	return n
}

// settle lets everything happen until nothing is written any more.
func (f *cloneSets) settle(t testing.TB) {
	t.Helper()
	for range 400 {
		before := f.String()
		writes, _ := f.look(t)
		for _, m := range f.members {
			m.arrive()
			m.work()
			m.heal()
			m.report()
		}
		if writes == 0 && f.String() == before {
			return
		}
	}
	t.Fatal("it never ends")
}

func (f *cloneSets) change(template int) {
	for _, m := range f.members {
		m.template = template
	}
}

func (f *cloneSets) partitions() (p []int64) {
	for _, m := range f.members {
		p = append(p, m.written.replicas-m.written.released)
	}
	return p
}

func TestAPartitionMeansTheFleet(t *testing.T) {
	ten := slices.Repeat([]int64{1}, 10)
	for _, c := range []struct {
		replicas  []int64
		partition any
		want      []int64
	}{
		{[]int64{3, 3, 3}, "50%", []int64{1, 2, 2}},
		{[]int64{3, 3, 3}, "90%", []int64{2, 3, 3}},
		{[]int64{3, 3, 3}, int64(8), []int64{2, 3, 3}},
		{[]int64{3, 3, 3}, int64(2), []int64{0, 1, 1}},
		{[]int64{5, 3, 2}, "10%", []int64{1, 0, 0}},
		{[]int64{6, 3, 1}, "20%", []int64{1, 1, 0}},
		{ten, "10%", []int64{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
	} {
		t.Run(fmt.Sprintf("%v of %v", c.partition, c.replicas), func(t *testing.T) {
			f := newFleet(nil, 2, 0, c.replicas...)
			f.settle(t)
			f.ro.partition = c.partition
			f.change(2)
			f.settle(t)
			if got := f.partitions(); !slices.Equal(got, c.want) {
				t.Errorf("partitions are %v, want %v", got, c.want)
			}
			kept, err := f.ro.kept(c.partition, sum(c.replicas))
			if err != nil {
				t.Fatal(err)
			}
			if got := f.updated(); got != sum(c.replicas)-kept {
				t.Errorf("%d pods are new, want %d", got, sum(c.replicas)-kept)
			}
		})
	}
}

func TestARolloutNeverTakesDownMoreThanTheFleetAllows(t *testing.T) {
	rounds := int64(400)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		random := rand.New(rand.NewSource(seed))
		replicas := make([]int64, 1+random.Intn(6))
		for i := range replicas {
			replicas[i] = random.Int63n(6)
		}
		budget := 1 + random.Int63n(4)
		f := newFleet(nil, budget, 0, replicas...)
		if random.Intn(3) == 0 {
			f.ro.options.order = oneByOne
			f.ro.targets = options{order: oneByOne}.targets(f.order)
		}
		f.settle(t)
		if d := f.down(); d != 0 {
			t.Fatalf("seed %d: %d pods are down at the start", seed, d)
		}
		template := 1
		for step := range 150 {
			switch random.Intn(12) {
			case 0:
				template++
				f.change(template)
			case 1:
				total := sum(replicas)
				f.ro.partition = []any{nil, "50%", "90%", "10%", "100%", total / 2, total}[random.Intn(7)]
			default:
			}
			for range 1 + random.Intn(8) {
				m := f.members[random.Intn(len(f.members))]
				switch random.Intn(5) {
				case 0:
					m.arrive()
				case 1:
					m.work()
				case 2:
					for i := range m.pods {
						if !m.pods[i].up {
							m.pods[i].up, m.pods[i].taken = true, false
							break
						}
					}
				case 3:
					m.report()
				case 4:
					f.look(t)
				}
				if d := f.down(); d > budget {
					t.Fatalf("seed %d, step %d: %d pods are down where %d may be; %s", seed, step, d, budget, f)
				}
			}
		}
		// Whatever happened, it ends where the template wants it, and with what members accept.
		f.settle(t)
		total := sum(replicas)
		kept, err := f.ro.kept(f.ro.partition, total)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.updated(); got < total-kept {
			t.Fatalf("seed %d: %d pods of %d are new, want %d; %s", seed, got, total, total-kept, f)
		}
		for _, m := range f.members {
			if m.written.unavailable+m.written.surging < 1 || m.written.released < 0 || m.written.released > m.replicas {
				t.Fatalf("seed %d: a member refuses %+v", seed, m.written)
			}
		}
	}
}

func TestRolloutKeepsMaxUnavailableOfAllClusters(t *testing.T) {
	rounds := int64(600)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		random := rand.New(rand.NewSource(seed))
		replicas := make([]int64, 1+random.Intn(5))
		for i := range replicas {
			replicas[i] = random.Int63n(6)
		}
		budget := 1 + random.Int63n(3)
		f := newFleet(nil, budget, 0, replicas...)
		f.ro.options.ignoreLost = random.Intn(4) == 0
		f.settle(t)
		template := 1
		for step := range 200 {
			m := f.members[random.Intn(len(f.members))]
			switch random.Intn(30) {
			case 0:
				template++
				f.change(template)
			case 1: // back to an older one
				f.change(1 + random.Intn(template))
			case 2:
				f.ro.partition = []any{nil, "50%", "90%", int64(3)}[random.Intn(4)]
			case 3:
				m.replicas = random.Int63n(6)
			case 4:
				m.reachable = !m.reachable && !f.ro.options.ignoreLost || f.ro.options.ignoreLost
			case 5, 6: // a pod breaks by itself
				if len(m.pods) > 0 {
					m.pods[random.Intn(len(m.pods))].up = false
				}
			}
			switch random.Intn(5) {
			case 0:
				m.arrive()
			case 1:
				m.work()
			case 2:
				if len(m.pods) > 0 {
					p := &m.pods[random.Intn(len(m.pods))]
					p.up, p.taken = true, false
				}
			case 3:
				m.report()
			case 4:
				f.look(t)
			}
			if taken := f.taken(); taken > budget {
				t.Fatalf("seed %d, step %d: the rollout has taken down %d pods where %d may be; %s", seed, step, taken, budget, f)
			}
		}
		// When all is well again, it ends.
		for _, m := range f.members {
			m.reachable = true
		}
		f.settle(t)
		var total int64
		for _, m := range f.members {
			total += m.replicas
		}
		kept, err := f.ro.kept(f.ro.partition, total)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.updated(); got < total-kept {
			t.Fatalf("seed %d: %d pods of %d are new, want %d; %s", seed, got, total, total-kept, f)
		}
	}
}

// taken returns the pods that are down for their update.
func (f *cloneSets) taken() (n int64) {
	for _, m := range f.members {
		for _, p := range m.pods {
			if p.taken {
				n++
			}
		}
	}
	return n
}

func (f *cloneSets) String() string {
	text := ""
	for i, m := range f.members {
		text += fmt.Sprintf("\n%s: written %+v of %d %+v, live %+v of %d, seen %v, reported %v, pods %v", f.order[i],
			m.written, m.writtenTemplate, m.note, m.live, m.liveTemplate, m.seen, m.reported, m.pods)
	}
	return text
}

func TestLoweredBudgetAppliesOnceMembersObservedIt(t *testing.T) {
	f := newFleet(nil, 6, 0, 6, 6)
	f.settle(t)
	f.change(2)
	f.look(t)
	if got := f.members[0].written.unavailable + f.members[1].written.unavailable; got != 6 {
		t.Fatalf("%d may be down", got)
	}
	for _, m := range f.members {
		m.arrive()
		m.report()
	}
	f.ro.unavailable = 2
	f.look(t)
	for i, m := range f.members {
		if m.written.unavailable != 1 || m.note.Grant != 1 || m.note.Pending != 3 {
			t.Errorf("c%d is written %+v with %+v, want one of three that may still be in use", i+1, m.written, m.note)
		}
	}
	// c1 has seen it and is done: c2 may have all of the two, and as long as it may be using three, a third cluster would
	// have none.
	c1 := f.members[0]
	c1.arrive()
	for range 6 {
		c1.work()
		c1.heal()
	}
	c1.report()
	f.look(t)
	if m := f.members[1]; m.written.unavailable != 2 || m.note.Grant != 2 || m.note.Pending != 3 {
		t.Errorf("c2 is written %+v with %+v", m.written, m.note)
	}
	f.settle(t)
	if n := f.updated(); n != 12 {
		t.Errorf("%d pods are new", n)
	}
}

// A member that has yet to report about its Work may have only old pods.
func TestScalingUpdatesNoPodWithoutAGrant(t *testing.T) {
	for _, c := range []struct {
		name          string
		was           share
		pods, updated int64
		fresh         bool
		replicas      int64
		want          int64
	}{
		{"scaled down before it was scaled up", share{replicas: 6, released: 3}, 2, 0, false, 2, 0},
		{"scaled down while it was scaled up", share{replicas: 5, released: 3}, 3, 1, true, 2, 1},
		{"scaled up before it was scaled down", share{replicas: 1, released: 0}, 4, 0, false, 2, 0},
		{"scaled up", share{replicas: 4, released: 1}, 4, 1, true, 6, 3},
		{"scaled down", share{replicas: 6, released: 3}, 6, 3, true, 4, 3},
		{"scaled down, all new", share{replicas: 6, released: 6}, 6, 6, false, 2, 2},
	} {
		c.was.unavailable = 1
		ro := newFleet(nil, 1, 0, c.replicas).ro
		p := party{cluster: "c1", replicas: c.replicas, reachable: true, hasWork: true, sameTemplate: true, known: true,
			fresh: c.fresh, written: c.was, note: &Note{}, pods: c.pods, updated: c.updated, updatedAvailable: c.updated,
			available: c.pods}
		floor := min(c.was.released, c.replicas)
		if got := ro.withoutGrant(p, goal{}, c.replicas, floor).to.released; got != c.want {
			t.Errorf("%s: %d pods are released, want %d", c.name, got, c.want)
		}
	}
}

// The template changes while the partition stays as it was: what is written with it is what is in use from then on.
func TestRewrittenWorkHasTheGrantOfNow(t *testing.T) {
	for rewritten, want := range map[bool]int64{true: 0, false: 1} {
		was := share{replicas: 3, released: 1, unavailable: 1}
		s := step{party: party{cluster: "c1", replicas: 3, hasWork: true, sameTemplate: true, rewritten: rewritten,
			written: was, note: &Note{Grant: 1}}, to: outcome{share: was}}
		ro := newFleet(nil, 1, 0, 3).ro
		if got := ro.outcomes([]step{s})[0].note.Grant; got != want {
			t.Errorf("rewritten %v: %d pods are granted, want %d", rewritten, got, want)
		}
	}
}
