package controller

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// absenceSeed, set to a number, has TestObjectsLeaveMembersOnlyWhenUsersDeleteThem go that sequence alone.
const absenceSeed = "ARGOSY_ABSENCE_SEED"

// Whatever happens to the hub, in whatever order, no object goes from a member that its user did not ask to delete.
func TestObjectsLeaveMembersOnlyWhenUsersDeleteThem(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}
	if text := os.Getenv(absenceSeed); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", absenceSeed, err)
		}
		seeds = []uint64{seed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newUpheaval(t, seed)
				for range 14 {
					w.step()
				}
				w.end()
			})
		})
	}
}

// upheaval is a hub to which things happen, and what its users have asked for. Names are never used twice.
type upheaval struct {
	*controllertest.Hub
	t       *testing.T
	random  *rand.Rand
	policy  policyv1alpha1.Propagation
	members map[string]*membertest.Server
	stop    func() // nil while no hub runs
	story   []string
	made    int

	// wanted are the templates, asked those that users deleted.
	wanted, asked map[string]bool
	// orphans are the objects that members must keep although the hub has no Work for them: member, name.
	orphans map[string]map[string]bool
	// out are the clusters that have left; emptied are those that are leaving now, and may lose everything.
	out, emptied map[string]bool
	// judged is the number of a member's writes that were looked at.
	judged map[string]int
}

func newUpheaval(t *testing.T, seed uint64) *upheaval {
	w := &upheaval{Hub: controllertest.New(t), t: t, random: rand.New(rand.NewPCG(seed, 0)),
		policy:  policy("shop", "v1", "ConfigMap"),
		members: map[string]*membertest.Server{}, wanted: map[string]bool{}, asked: map[string]bool{},
		orphans: map[string]map[string]bool{}, out: map[string]bool{}, emptied: map[string]bool{}, judged: map[string]int{}}
	for _, name := range []string{"m1", "m2"} {
		w.members[name] = w.Join(name)
		w.orphans[name] = map[string]bool{}
	}
	t.Cleanup(func() {
		if w.stop != nil {
			w.stop()
		}
		if t.Failed() {
			t.Logf("again: %s=%d; what happened:\n  %s", absenceSeed, seed, strings.Join(w.story, "\n  "))
		}
	})
	w.Make(w.policy)
	w.start()
	for range 4 {
		w.create()
	}
	w.settle()
	return w
}

// start has a hub process run.
func (w *upheaval) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, Options{Config: w.Config, DialMember: membertest.Dial}) }()
	// A manager of controller-runtime whose context ends while it starts spins until its caches are filled, and the clock
	// stands still.
	w.Advance(time.Second)
	w.stop = func() {
		w.Disconnected(func() {
			cancel()
			if err := <-ended; err != nil {
				w.t.Error(err)
			}
		})
		w.stop = nil
	}
}

// record adds a step to the story that a failure prints.
func (w *upheaval) record(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

// step has something happen, and looks at what the members lost.
func (w *upheaval) step() {
	happenings := []func(){
		w.create, w.create, w.remove, w.remove, w.removeWorks, w.removeBindings, w.loseDefinition, w.loseSpace,
		w.vanish, w.restart, w.restart, w.leave, w.rejoin, w.settle,
	}
	happenings[w.random.IntN(len(happenings))]()
	w.judge()
}

// judge holds what was deleted in members against what users asked for.
func (w *upheaval) judge() {
	w.t.Helper()
	for name, m := range w.members {
		writes := m.Writes()
		for _, write := range writes[w.judged[name]:] {
			verb, what, _ := strings.Cut(write, " ")
			of, is := strings.CutPrefix(what, "configmaps shop/")
			if verb != "delete" || w.emptied[name] || is && w.asked[of] {
				continue
			}
			w.t.Fatalf("%s: %s, and no user asked for that", name, write)
		}
		w.judged[name] = len(writes)
		for orphan := range w.orphans[name] {
			if m.Object(membertest.ConfigMap, "shop", orphan) == nil {
				w.t.Fatalf("%s lost %s, of which no hub knows anything", name, orphan)
			}
		}
	}
}

// settle waits until every template is in every cluster of the fleet, with a Work and a binding that stand.
func (w *upheaval) settle() {
	if w.stop == nil {
		return
	}
	w.record("all settles")
	w.Eventually("all settles", func() string {
		for name := range w.wanted {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-configmap"}}
			if !w.HasObject(b) || b.DeletionTimestamp != nil {
				return name + " has no binding"
			}
			for member, m := range w.members {
				if w.out[member] {
					continue
				}
				work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(member),
					Name: names.Work("ConfigMap", name, "shop")}}
				switch {
				case !w.HasObject(work) || work.DeletionTimestamp != nil:
					return name + " has no Work for " + member
				case m.Object(membertest.ConfigMap, "shop", name) == nil:
					return member + " lacks " + name
				}
			}
		}
		return ""
	})
}

func (w *upheaval) create() {
	w.made++
	name := fmt.Sprintf("c%d", w.made)
	w.record("a user makes %s", name)
	w.wanted[name] = true
	w.Make(claimed(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Data: map[string]string{"a": "b"}}, w.policy))
}

// pick is one of the templates; empty if there is none.
func (w *upheaval) pick() string {
	all := slices.Sorted(maps.Keys(w.wanted))
	if len(all) == 0 {
		return ""
	}
	return all[w.random.IntN(len(all))]
}

func (w *upheaval) remove() {
	// What is deleted while everything is in order goes for certain; in an upheaval something may be left behind.
	orderly := w.stop != nil && w.random.IntN(2) == 0
	if orderly {
		w.settle()
	}
	name := w.pick()
	if name == "" {
		return
	}
	w.record("a user deletes %s", name)
	delete(w.wanted, name)
	w.asked[name] = true
	w.Gone(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	if !orderly {
		return
	}
	w.record("and it goes")
	w.Eventually(name+" goes", func() string {
		for member, m := range w.members {
			if !w.out[member] && !w.orphans[member][name] && m.Object(membertest.ConfigMap, "shop", name) != nil {
				return member + " still has it"
			}
		}
		return ""
	})
}

// works are those of a cluster; all if it is empty.
func (w *upheaval) works(cluster string) []workv1alpha1.Work {
	var works workv1alpha1.WorkList
	var in []client.ListOption
	if cluster != "" {
		in = append(in, client.InNamespace(names.ExecutionSpace(cluster)))
	}
	if err := w.List(w.t.Context(), &works, in...); err != nil {
		w.t.Fatal(err)
	}
	return works.Items
}

func (w *upheaval) bindings() []workv1alpha2.ResourceBinding {
	var bindings workv1alpha2.ResourceBindingList
	if err := w.List(w.t.Context(), &bindings); err != nil {
		w.t.Fatal(err)
	}
	return bindings.Items
}

// member is one of the clusters of the fleet, empty if there is none.
func (w *upheaval) member() string {
	in := slices.DeleteFunc(slices.Sorted(maps.Keys(w.members)), func(name string) bool { return w.out[name] })
	if len(in) == 0 {
		return ""
	}
	return in[w.random.IntN(len(in))]
}

// delete asks as somebody with kubectl does.
func (w *upheaval) delete(obj client.Object) {
	if err := w.Delete(w.t.Context(), obj); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
}

func (w *upheaval) removeWorks() {
	cluster := w.member()
	w.record("somebody deletes all Works of %s", cluster)
	for _, work := range w.works(cluster) {
		w.delete(&work)
	}
}

func (w *upheaval) removeBindings() {
	w.record("somebody deletes all bindings")
	for _, b := range w.bindings() {
		w.delete(&b)
	}
}

// deletedWith deletes Works as their API server does when their definition, or their namespace, is deleted, and waits
// until they are gone.
func (w *upheaval) deletedWith(works []workv1alpha1.Work) {
	for _, work := range works {
		w.delete(&work)
	}
	if w.stop == nil {
		return
	}
	w.Eventually("the Works are gone", func() string {
		left := map[types.UID]bool{}
		for _, work := range w.works("") {
			left[work.UID] = true
		}
		for _, work := range works {
			if left[work.UID] {
				return work.Name
			}
		}
		return ""
	})
}

func (w *upheaval) loseDefinition() {
	w.record("the definition of Works is deleted, and all Works with it")
	was := w.Server.Object(controllertest.Definition, "", definition.Works)
	w.Server.Remove(controllertest.Definition, "", definition.Works)
	if w.stop == nil {
		w.Server.Put(was)
		w.deletedWith(w.works(""))
		return
	}
	w.deletedWith(w.works(""))
	w.record("it is back")
	w.Server.Put(was)
}

func (w *upheaval) loseSpace() {
	cluster := w.member()
	if cluster == "" {
		return
	}
	w.record("the execution space of %s is deleted", cluster)
	w.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ExecutionSpace(cluster)}})
	w.deletedWith(w.works(cluster))
}

// vanish has bindings, Works or both be gone without a trace, as after a restore of a part.
func (w *upheaval) vanish() {
	which := w.random.IntN(3)
	w.record("%s are gone without a trace", []string{"the Works", "the bindings", "the bindings and Works"}[which])
	if which != 1 {
		for _, work := range w.works("") {
			w.Server.Remove(controllertest.Works, work.Namespace, work.Name)
		}
	}
	if which != 0 {
		for _, b := range w.bindings() {
			w.Server.Remove(controllertest.Bindings, b.Namespace, b.Name)
		}
	}
}

// restart ends the hub's process, has things happen meanwhile, and starts it.
func (w *upheaval) restart() {
	w.record("the hub stops")
	w.stop()
	for range w.random.IntN(3) {
		[]func(){w.create, w.remove, w.removeWorks, w.removeBindings, w.loseDefinition, w.loseSpace, w.vanish,
			w.restore}[w.random.IntN(8)]()
	}
	w.record("the hub starts")
	w.start()
}

// restore puts the hub back to when it did not know of some templates: nothing is left of them, and members have what
// was sent.
func (w *upheaval) restore() {
	for range 1 + w.random.IntN(2) {
		name := w.pick()
		if name == "" {
			return
		}
		w.record("a restored store knows nothing of %s", name)
		delete(w.wanted, name)
		w.Server.Remove(membertest.ConfigMap, "shop", name)
		w.Server.Remove(controllertest.Bindings, "shop", name+"-configmap")
		for member, m := range w.members {
			w.Server.Remove(controllertest.Works, names.ExecutionSpace(member), names.Work("ConfigMap", name, "shop"))
			if m.Object(membertest.ConfigMap, "shop", name) != nil {
				w.orphans[member][name] = true
			}
		}
	}
}

// leave has a cluster leave the fleet, with its workloads or without.
func (w *upheaval) leave() {
	name := w.member()
	if name == "" {
		return
	}
	w.judge()
	keep := w.random.IntN(2) == 0
	w.record("%s leaves, and keeps its workloads: %v", name, keep)
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if keep {
		controllertest.Change(w.Hub, c, func(c *clusterv1alpha1.Cluster) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, wellknown.KeepWorkloadsAnnotation, "true")
		})
	}
	w.out[name], w.emptied[name] = true, !keep
	w.delete(c)
	w.Eventually(name+" leaves", func() string {
		if err := w.Get(w.t.Context(), client.ObjectKey{Name: name}, c); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%v, it is there, and %d Works", err, len(w.works(name)))
		}
		return ""
	})
	w.judge()
	w.emptied[name] = false
	if keep {
		for of := range w.wanted {
			if w.members[name].Object(membertest.ConfigMap, "shop", of) != nil {
				w.orphans[name][of] = true
			}
		}
	}
}

func (w *upheaval) rejoin() {
	for name := range w.out {
		w.record("%s joins again", name)
		w.JoinAgain(name, w.members[name])
		delete(w.out, name)
		return
	}
}

// end waits until all is in order, and looks a last time.
func (w *upheaval) end() {
	w.settle()
	w.Quiet()
	w.judge()
}
