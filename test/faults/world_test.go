package faults

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit"
)

// worldLabel marks all templates of a world, here and in the members; its value is the world's name.
const worldLabel = "faults"

// template is what users want of one object.
type template struct {
	kind, namespace, name string
	// value is in the object somewhere; a Deployment has it as replicas in each member.
	value int
	gone  bool
}

func (t *template) key() string { return t.kind + " " + t.namespace + "/" + t.name }

// keyOf is the key of the template that an object was made from.
func keyOf(u *unstructured.Unstructured) string {
	return (&template{kind: u.GetKind(), namespace: u.GetNamespace(), name: u.GetName()}).key()
}

// world is a number of templates that users make, change and delete while things break, all sent to every member.
type world struct {
	t    *testing.T
	name string
	dice *rand.Rand // guarded by mu

	mu         sync.Mutex
	templates  map[string]*template
	namespaces []string
	// busy are templates that a user is at.
	busy map[string]bool

	created, updated, deleted, retried atomic.Int64
	// did holds a value after each deed.
	did chan struct{}
}

var seedFlag = flag.String("seed", "1", "the seed of the random choices: a number, or random")

// seeded returns the source of the random choices of a test.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if *seedFlag != "random" {
		var err error
		if seed, err = strconv.ParseUint(*seedFlag, 10, 64); err != nil {
			t.Fatalf("-seed: %v", err)
		}
	}
	t.Logf("-seed=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// worlds counts the worlds of this run, so that each has a name of its own.
var worlds atomic.Int64

// newWorld has its policy, and is taken away when the test ends.
func newWorld(t *testing.T) *world {
	w := &world{t: t, name: fmt.Sprintf("w%03d", worlds.Add(1)), did: make(chan struct{}, 1), dice: seeded(t),
		templates: map[string]*template{}, busy: map[string]bool{}}
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: %[1]s}
spec:
  resourceSelectors:
  - {apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {%[2]s: %[1]s}}}
  - {apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {%[2]s: %[1]s}}}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, labelSelector: {matchLabels: {%[2]s: %[1]s}}}
  placement: {clusterAffinity: {clusterNames: [%[3]s]}}`, w.name, worldLabel, strings.Join(members, ", ")))
	t.Cleanup(w.clear)
	return w
}

func (w *world) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*kit.Timeout)
	defer cancel()
	for _, tmpl := range w.templates {
		if tmpl.kind == "ClusterRole" && !tmpl.gone {
			_ = fleet.Hub.Delete(ctx, w.object(tmpl))
		}
	}
	for _, ns := range w.namespaces {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind("Namespace")
		u.SetName(ns)
		if err := fleet.Hub.Delete(ctx, u); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
	}
	if w.t.Failed() {
		return
	}
	// The next test may break the hub, which then deletes nothing: what is still there would stay, as an orphan.
	kit.Eventually(w.t, "nothing is left of the world", func() string {
		for _, c := range []kit.Cluster{fleet.Hub, fleet.Members[members[0]], fleet.Members[members[1]]} {
			objs, err := w.objects(ctx, c)
			if err != nil {
				return err.Error()
			}
			for _, u := range objs {
				return c.Name + " has " + keyOf(&u)
			}
			for _, ns := range w.namespaces {
				if err := c.Get(ctx, client.ObjectKey{Name: ns}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
					return fmt.Sprintf("%s has the namespace %s (%v)", c.Name, ns, err)
				}
			}
		}
		return ""
	})
}

func (w *world) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.IntN(n)
}

// object is the template as users write it.
func (w *world) object(tmpl *template) *unstructured.Unstructured {
	head := fmt.Sprintf("metadata: {name: %s, namespace: %q, labels: {%s: %s}}\n", tmpl.name, tmpl.namespace, worldLabel,
		w.name)
	switch tmpl.kind {
	case "ConfigMap":
		return kit.Object(w.t, "apiVersion: v1\nkind: ConfigMap\n"+head+
			fmt.Sprintf("data: {value: %q}", fmt.Sprint(tmpl.value)))
	case "ClusterRole":
		return kit.Object(w.t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"+head+
			fmt.Sprintf("rules: [{apiGroups: [example.com], resources: [r%d], verbs: [get]}]", tmpl.value))
	default:
		return kit.Object(w.t, "apiVersion: apps/v1\nkind: Deployment\n"+head+fmt.Sprintf(`
spec:
  replicas: %d
  selector: {matchLabels: {app: %[2]s}}
  template: {metadata: {labels: {app: %[2]s}}, spec: {containers: [{name: c, image: example.com/i}]}}`, tmpl.value, tmpl.name))
	}
}

// valueOf is the value that an object holds.
func valueOf(u *unstructured.Unstructured) string {
	switch u.GetKind() {
	case "ConfigMap":
		return fmt.Sprint(kit.Field(u, "data", "value"))
	case "ClusterRole":
		rules, _ := kit.Field(u, "rules").([]any)
		if len(rules) != 1 {
			return fmt.Sprint(rules)
		}
		return strings.Trim(fmt.Sprint(rules[0].(map[string]any)["resources"]), "[r]")
	default:
		return fmt.Sprint(kit.Field(u, "spec", "replicas"))
	}
}

// persist repeats what a user does until the hub accepts it.
func (w *world) persist(what string, do func(context.Context) error) {
	var last error
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, kit.Timeout, true,
		func(ctx context.Context) (bool, error) {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			if last = do(ctx); last == nil {
				return true, nil
			}
			if apierrors.IsInvalid(last) || apierrors.IsBadRequest(last) || apierrors.IsForbidden(last) {
				return false, last
			}
			w.retried.Add(1)
			return false, nil
		})
	if err != nil {
		w.t.Errorf("%s: %v: %v", what, err, last)
	}
}

// deeds is how many deeds of users the hub has accepted.
func (w *world) deeds() int64 { return w.created.Load() + w.updated.Load() + w.deleted.Load() }

// waitForDeeds waits until the hub has accepted n more deeds, or users have finished.
func (w *world) waitForDeeds(n int, finished <-chan struct{}) {
	for target := w.deeds() + int64(n); w.deeds() < target; {
		select {
		case <-w.did:
		case <-finished:
			return
		}
	}
}

func (w *world) namespace() string {
	name := fmt.Sprintf("%s-%d", w.name, len(w.namespaces))
	w.namespaces = append(w.namespaces, name)
	ns := kit.Object(w.t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}")
	w.persist("create namespace "+name, func(ctx context.Context) error {
		return exists(fleet.Hub.Create(ctx, ns.DeepCopy()))
	})
	return name
}

func (w *world) create(kind, namespace string) {
	w.mu.Lock()
	tmpl := &template{kind: kind, namespace: namespace, name: fmt.Sprintf("%s-%d", w.name, len(w.templates)), value: 1}
	if kind == "ClusterRole" {
		tmpl.namespace = ""
	}
	w.templates[tmpl.key()] = tmpl
	w.busy[tmpl.key()] = true
	w.mu.Unlock()
	w.persist("create "+tmpl.key(), func(ctx context.Context) error {
		return exists(fleet.Hub.Create(ctx, w.object(tmpl)))
	})
	w.created.Add(1)
	w.done(tmpl)
}

// exists takes what is there for made: the answer to the creation may have been lost with the hub.
func exists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// take gives a user a random template that no other user works on; nil if there is none.
func (w *world) take() *template {
	w.mu.Lock()
	defer w.mu.Unlock()
	var free []string
	for key, tmpl := range w.templates {
		if !tmpl.gone && !w.busy[key] {
			free = append(free, key)
		}
	}
	if len(free) == 0 {
		return nil
	}
	slices.Sort(free)
	key := free[w.dice.IntN(len(free))]
	w.busy[key] = true
	return w.templates[key]
}

func (w *world) done(tmpl *template) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.busy, tmpl.key())
	select {
	case w.did <- struct{}{}:
	default:
	}
}

func (w *world) update() {
	tmpl := w.take()
	if tmpl == nil {
		return
	}
	defer w.done(tmpl)
	next := tmpl.value + 1
	if tmpl.kind == "Deployment" {
		next = 1 + tmpl.value%3
	}
	w.persist("update "+tmpl.key(), func(ctx context.Context) error {
		u := w.object(tmpl)
		if err := fleet.Hub.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		want := w.object(&template{kind: tmpl.kind, namespace: tmpl.namespace, name: tmpl.name, value: next})
		for _, field := range []string{"data", "rules", "spec"} {
			if v, ok := want.Object[field]; ok {
				u.Object[field] = v
			}
		}
		return fleet.Hub.Update(ctx, u)
	})
	tmpl.value = next
	w.updated.Add(1)
}

func (w *world) delete() {
	tmpl := w.take()
	if tmpl == nil {
		return
	}
	defer w.done(tmpl)
	w.mu.Lock()
	tmpl.gone = true
	w.mu.Unlock()
	w.persist("delete "+tmpl.key(), func(ctx context.Context) error {
		return client.IgnoreNotFound(fleet.Hub.Delete(ctx, w.object(tmpl)))
	})
	w.deleted.Add(1)
}

// work has four users create that many templates in a namespace, changing and deleting others meanwhile, and returns
// when the hub has accepted all of it.
func (w *world) work(namespace string, creations int) {
	deeds := make(chan func())
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for deed := range deeds {
				deed()
			}
		})
	}
	for i := range creations {
		kind := "ConfigMap"
		switch i % 10 {
		case 3:
			kind = "Deployment"
		case 7:
			kind = "ClusterRole"
		}
		deeds <- func() { w.create(kind, namespace) }
		if i%3 == 1 {
			deeds <- w.update
		}
		if i%5 == 4 {
			deeds <- w.delete
		}
	}
	close(deeds)
	users.Wait()
}

// wrong returns what has not converged: in the hub bindings, Works and statuses, in the members the objects. One look
// lists everything.
func (w *world) wrong() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	live := w.live()
	for _, name := range members {
		if wrong := w.compare(ctx, name, live); wrong != "" {
			return wrong
		}
	}
	if wrong := w.bindingsWrong(ctx, live); wrong != "" {
		return wrong
	}
	if wrong := w.worksWrong(ctx, live); wrong != "" {
		return wrong
	}
	return w.statusWrong(ctx, live)
}

// live are the templates that were not deleted. It is called with mu locked.
func (w *world) live() map[string]*template {
	live := map[string]*template{}
	for key, tmpl := range w.templates {
		if !tmpl.gone {
			live[key] = tmpl
		}
	}
	return live
}

// memberWrong returns what a member does not hold as it should.
func (w *world) memberWrong(member string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return w.compare(ctx, member, w.live())
}

// found is an object in a member as it was at one look.
type found struct {
	uid     types.UID
	version string
	value   string
}

// look finds the world's objects in a member that answers, or will soon, by template key.
func (w *world) look(member string) map[string]found {
	w.t.Helper()
	all := map[string]found{}
	kit.Eventually(w.t, "a look at "+member, func() string {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		objs, err := w.objects(ctx, fleet.Members[member])
		if err != nil {
			return err.Error()
		}
		for _, u := range objs {
			all[keyOf(&u)] = found{u.GetUID(), u.GetResourceVersion(), valueOf(&u)}
		}
		return ""
	})
	return all
}

// objects are those of the world in a cluster.
func (w *world) objects(ctx context.Context, c kit.Cluster) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range []string{"v1 ConfigMapList", "apps/v1 DeploymentList",
		"rbac.authorization.k8s.io/v1 ClusterRoleList"} {
		var list unstructured.UnstructuredList
		apiVersion, name, _ := strings.Cut(kind, " ")
		list.SetAPIVersion(apiVersion)
		list.SetKind(name)
		if err := c.List(ctx, &list, client.MatchingLabels{worldLabel: w.name}); err != nil {
			return nil, fmt.Errorf("list in %s: %w", c.Name, err)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

func (w *world) compare(ctx context.Context, member string, live map[string]*template) string {
	objs, err := w.objects(ctx, fleet.Members[member])
	if err != nil {
		return err.Error()
	}
	got := map[string]string{}
	for i := range objs {
		key := keyOf(&objs[i])
		got[key] = valueOf(&objs[i])
		if live[key] == nil {
			return fmt.Sprintf("%s still holds %s", member, key)
		}
	}
	for key, tmpl := range live {
		if value, ok := got[key]; !ok || value != fmt.Sprint(tmpl.value) {
			return fmt.Sprintf("%s holds %s with %q (there: %t), want %d", member, key, value, ok, tmpl.value)
		}
	}
	return ""
}

func (w *world) bindingsWrong(ctx context.Context, live map[string]*template) string {
	want := map[string]bool{}
	for _, tmpl := range live {
		want[tmpl.namespace+"/"+names.Binding(tmpl.kind, tmpl.name)] = true
	}
	var all workv1alpha2.ResourceBindingList
	var whole workv1alpha2.ClusterResourceBindingList
	if err := fleet.Hub.List(ctx, &all); err != nil {
		return err.Error()
	}
	if err := fleet.Hub.List(ctx, &whole); err != nil {
		return err.Error()
	}
	var bindings []workv1alpha2.Binding
	for i := range all.Items {
		bindings = append(bindings, &all.Items[i])
	}
	for i := range whole.Items {
		bindings = append(bindings, &whole.Items[i])
	}
	seen := 0
	for _, b := range bindings {
		if !strings.HasPrefix(b.GetName(), w.name+"-") {
			continue
		}
		key := b.GetNamespace() + "/" + b.GetName()
		if !want[key] {
			return "a binding too many: " + key
		}
		seen++
		if status := b.BindingStatus(); !meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.FullyApplied) ||
			len(status.AggregatedStatus) != len(members) {
			return fmt.Sprintf("binding %s is not fully applied: %+v", key, status)
		}
	}
	if seen != len(want) {
		return fmt.Sprintf("%d bindings, want %d", seen, len(want))
	}
	return ""
}

func (w *world) worksWrong(ctx context.Context, live map[string]*template) string {
	want := map[string]bool{}
	for _, tmpl := range live {
		want[names.Work(tmpl.kind, tmpl.name, tmpl.namespace)] = true
	}
	for _, ns := range w.namespaces {
		want[names.Work("Namespace", ns, "")] = true
	}
	for _, member := range members {
		var works workv1alpha1.WorkList
		if err := fleet.Hub.List(ctx, &works, client.InNamespace(names.ExecutionSpace(member))); err != nil {
			return err.Error()
		}
		seen := 0
		for i := range works.Items {
			work := &works.Items[i]
			if !strings.HasPrefix(work.Name, w.name+"-") {
				continue
			}
			if !want[work.Name] {
				return fmt.Sprintf("a Work too many: %s/%s", work.Namespace, work.Name)
			}
			seen++
			applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
			if applied == nil || applied.Status != metav1.ConditionTrue || applied.ObservedGeneration != work.Generation {
				return fmt.Sprintf("Work %s/%s of generation %d: %+v", work.Namespace, work.Name, work.Generation, applied)
			}
		}
		if seen != len(want) {
			return fmt.Sprintf("%d Works for %s, want %d", seen, member, len(want))
		}
	}
	return ""
}

// statusWrong returns which Deployment's status on the hub is not the sum of the members'.
func (w *world) statusWrong(ctx context.Context, live map[string]*template) string {
	objs, err := w.objects(ctx, fleet.Hub)
	if err != nil {
		return err.Error()
	}
	for _, u := range objs {
		if u.GetKind() != "Deployment" {
			continue
		}
		tmpl := live[keyOf(&u)]
		if tmpl == nil {
			return fmt.Sprintf("the hub still holds %s", keyOf(&u))
		}
		if want := int64(tmpl.value * len(members)); kit.Field(&u, "status", "readyReplicas") != want ||
			kit.Field(&u, "status", "observedGeneration") != u.GetGeneration() {
			return fmt.Sprintf("Deployment %s of generation %d says %v, want %d ready", u.GetName(), u.GetGeneration(),
				u.Object["status"], want)
		}
	}
	return ""
}

// witness watches the objects of a world in one member, and remembers what appeared and what left.
type witness struct {
	member string
	mu     sync.Mutex
	// came and left count, by template key.
	came, left map[string]int
}

// witness watches a member until the test ends. It sees every change as long as the member runs.
func (w *world) witness(member string) *witness {
	seen := &witness{member: member, came: map[string]int{}, left: map[string]int{}}
	c := dynamic.NewForConfigOrDie(fleet.Members[member].Config)
	mapper := fleet.Members[member].RESTMapper()
	for kind, group := range map[string]string{"ConfigMap": "", "Deployment": "apps",
		"ClusterRole": "rbac.authorization.k8s.io"} {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
		if err != nil {
			w.t.Fatal(err)
		}
		only := labels.Set{worldLabel: w.name}.String()
		list, err := c.Resource(mapping.Resource).List(w.t.Context(), metav1.ListOptions{LabelSelector: only})
		if err != nil {
			w.t.Fatal(err)
		}
		events, err := watchtools.NewRetryWatcherWithContext(w.t.Context(), list.GetResourceVersion(), &cache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.LabelSelector = only
				return c.Resource(mapping.Resource).Watch(ctx, o)
			},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		go func() {
			for e := range events.ResultChan() {
				u, ok := e.Object.(*unstructured.Unstructured)
				if !ok {
					w.t.Errorf("the watch of %s in %s says %v", kind, member, e)
					return
				}
				key := keyOf(u)
				seen.mu.Lock()
				switch e.Type {
				case watch.Added:
					seen.came[key]++
				case watch.Deleted:
					seen.left[key]++
				}
				seen.mu.Unlock()
			}
		}()
	}
	return seen
}

// testimony returns the violations that the witness saw: an object that was deleted without a deletion of its
// template, or created twice.
func (s *witness) testimony(w *world) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.left)) {
		if tmpl := w.templates[key]; tmpl == nil || !tmpl.gone {
			return fmt.Sprintf("%s left %s although its template was never deleted", key, s.member)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.came)) {
		if s.came[key] > 1 {
			return fmt.Sprintf("%s was made %d times in %s", key, s.came[key], s.member)
		}
	}
	return ""
}
