package search

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
)

// entry is an object of a member. It is not modified after it is stored.
type entry struct {
	namespace, name, cluster string
	uid                      types.UID
	// version is the resource version in the member; empty for some aggregated APIs.
	version string
	// created is in seconds since 1970.
	created int64
	// labels are pairs of key and value.
	labels pairs
	// node and phase are spec.nodeName and status.phase.
	node, phase string
	traits
	// raw is the object as JSON, without its resource version, which belongs at cut. It is nil in the log.
	raw []byte
	cut int
}

// entryBytes is the memory of an entry beside its JSON, with its place in the tree and in the log.
const entryBytes = 700

// bytes returns the memory of the entry. A member decides about the length of each text.
func (e *entry) bytes() int64 {
	n := len(e.raw) + entryBytes + len(e.namespace) + len(e.name) + len(e.uid) + len(e.node) + len(e.phase)
	for _, texts := range [][]string{e.labels, e.images, e.owners} {
		for _, text := range texts {
			n += 32 + len(text)
		}
	}
	return int64(n)
}

// json returns the object with a resource version.
func (e *entry) json(version string) []byte {
	return slices.Concat(e.raw[:e.cut], []byte(version), e.raw[e.cut:])
}

// stub returns the metadata of an object that is gone, as JSON.
func (e *entry) stub(apiVersion, kind, version string) []byte {
	labels := map[string]string{}
	for i := 0; i < len(e.labels); i += 2 {
		labels[e.labels[i]] = e.labels[i+1]
	}
	raw, _ := json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
		"namespace": e.namespace, "name": e.name, "uid": e.uid, "labels": labels, "resourceVersion": version,
		"annotations": map[string]string{searchv1alpha1.CachedFromAnnotation: e.cluster}}}) // texts always encode
	return raw
}

// pairs are labels: key, value, key, value. They need less memory than a map.
type pairs []string

// Has implements labels.Labels.
func (p pairs) Has(key string) bool { _, has := p.Lookup(key); return has }

// Get implements labels.Labels.
func (p pairs) Get(key string) string { value, _ := p.Lookup(key); return value }

// Lookup implements labels.Labels.
func (p pairs) Lookup(key string) (value string, has bool) {
	for i := 0; i < len(p); i += 2 {
		if p[i] == key {
			return p[i+1], true
		}
	}
	return "", false
}

// shared returns the text, in memory once for all objects.
func shared(text string) string { return unique.Make(text).Value() }

// versionMark stands for the resource version while an object is encoded. It is random, so that no member can guess it.
var versionMark = rand.Text()

// plainVersion matches the versions that can be put into JSON as they are. Those of Kubernetes are numbers.
var plainVersion = regexp.MustCompile(`^[0-9A-Za-z._-]{0,64}$`)

// newEntry returns what is kept of an object of a cluster. It modifies the object. The error is about an object that no
// API server of Kubernetes would send.
func newEntry(cluster string, u *unstructured.Unstructured) (*entry, error) {
	name, version := u.GetName(), u.GetResourceVersion()
	if name == "" || len(name)+len(u.GetNamespace()) > maxName || !plainVersion.MatchString(version) {
		return nil, fmt.Errorf("an object has the name %.300q and the resource version %.100q", name, version)
	}
	u.SetManagedFields(nil)
	annotations := u.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[searchv1alpha1.CachedFromAnnotation] = cluster
	u.SetAnnotations(annotations)
	e := &entry{namespace: shared(u.GetNamespace()), name: strings.Clone(u.GetName()), cluster: cluster,
		uid: types.UID(strings.Clone(string(u.GetUID()))), version: strings.Clone(u.GetResourceVersion()),
		created: u.GetCreationTimestamp().Unix(), traits: traitsOf(u)}
	for key, value := range u.GetLabels() {
		e.labels = append(e.labels, shared(key), shared(value))
	}
	node, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	e.node, e.phase = shared(node), shared(phase)
	u.SetResourceVersion(versionMark)
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	if e.cut = strings.Index(string(raw), versionMark); e.cut < 0 {
		return nil, fmt.Errorf("encode %s/%s: it has no metadata", u.GetNamespace(), u.GetName())
	}
	e.raw = append(make([]byte, 0, len(raw)-len(versionMark)), raw[:e.cut]...)
	e.raw = append(e.raw, raw[e.cut+len(versionMark):]...)
	return e, nil
}

// before is the order of lists: namespace, name, cluster.
func before(a, b *entry) bool {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name),
		strings.Compare(a.cluster, b.cluster)) < 0
}

// change is a change of an object: what it was without its JSON, nil if it is new, and its place in the tree.
type change struct {
	seq uint64
	was *entry
	at  *entry // only namespace, name and cluster count
}

const (
	// logSize is the number of changes for which a watch can resume. logMemory bounds their bytes, which members decide
	// about.
	logSize, logMemory = 2000, 32 << 20
	// maxName bounds a namespace and a name together in bytes, as Kubernetes does.
	maxName = 2 * 253
)

// store has the objects of a resource in all members, with a log of changes. Its versions are numbers of the log.
type store struct {
	gvr  schema.GroupVersionResource
	kind string
	// epoch differs for each store: versions of another process, or of a former store, mean nothing here.
	epoch string

	mu   sync.Mutex
	tree *btree.BTreeG[*entry]
	seq  uint64
	// log is sorted by seq. It has all changes after seq first.
	log   []change
	first uint64
	// logged is the memory of the log in bytes.
	logged int64
	// watches is the number of open watches.
	watches int
	// sources are the clusters with a cache.
	sources map[string]*source
	// changed is closed when the state of a source changes, and soon after objects change. waking is true until then.
	changed chan struct{}
	waking  bool
}

func newStore(gvr schema.GroupVersionResource, kind string) *store {
	return &store{gvr: gvr, kind: kind, epoch: rand.Text()[:8], tree: btree.NewG(32, before),
		sources: map[string]*source{}, changed: make(chan struct{})}
}

func (s *store) apiVersion() string { return s.gvr.GroupVersion().String() }

// put stores an object, or deletes it if it is nil. logged is false for the first list of a cluster. It must be called
// with the lock.
func (s *store) put(at, now *entry, logged bool) {
	was, known := s.tree.Get(at)
	if known {
		s.count(was, -1)
	}
	switch {
	case now != nil:
		s.count(now, 1)
		s.tree.ReplaceOrInsert(now)
	case known:
		s.tree.Delete(at)
	default:
		return
	}
	if !logged {
		return
	}
	s.seq++
	c := change{seq: s.seq, at: &entry{namespace: at.namespace, name: at.name, cluster: at.cluster}}
	if known {
		former := *was
		former.raw = nil
		c.was, c.at = &former, &former
	}
	s.log = append(s.log, c)
	s.logged += c.at.bytes()
	if len(s.log) >= 2*logSize || s.logged > logMemory {
		s.cutLog()
	}
	if !s.waking && s.watches > 0 {
		s.waking = true
		time.AfterFunc(wakeAfter+time.Duration(s.watches)*wakeEach, s.wake)
	}
}

// cutLog drops the older half of the log. It must be called with the lock.
func (s *store) cutLog() {
	s.log = slices.Clone(s.log[len(s.log)-len(s.log)/2:])
	s.first, s.logged = s.seq-uint64(len(s.log)), 0
	for _, c := range s.log {
		s.logged += c.at.bytes()
	}
}

const (
	// Watches are woken together, after a pause that grows with their number: many changes, or many watches, cost little.
	wakeAfter, wakeEach = 20 * time.Millisecond, 100 * time.Microsecond
)

// wake wakes all watches.
func (s *store) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waking = false
	s.notify()
}

// open counts a watch until leave is called.
func (s *store) open() (leave func()) {
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches += n
	}
	count(1)
	return func() { count(-1) }
}

// next returns a channel that is closed after the next change.
func (s *store) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// count counts an object n times. It must be called with the lock.
func (s *store) count(e *entry, n int) {
	if c := s.sources[e.cluster]; c != nil {
		c.objects += n
		c.bytes += int64(n) * e.bytes()
	}
}

// snapshot is the state of a store at a time.
type snapshot struct {
	tree    *btree.BTreeG[*entry]
	seq     uint64
	changes []change
}

// changesAfter returns the state with the changes after seq; ok is false if some are not known any more.
func (s *store) changesAfter(seq uint64) (now snapshot, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = snapshot{tree: s.tree.Clone(), seq: s.seq}
	if seq < s.first || seq > s.seq {
		return now, false
	}
	i, _ := slices.BinarySearchFunc(s.log, seq+1, func(c change, seq uint64) int { return cmp.Compare(c.seq, seq) })
	now.changes = slices.Clone(s.log[i:])
	return now, true
}

// state returns the current state.
func (s *store) state() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return snapshot{tree: s.tree.Clone(), seq: s.seq}
}

// visit calls f for the objects of a namespace, or of all if it is empty, after a place, until f returns false.
func (s snapshot) visit(namespace string, after *entry, f func(*entry) bool) {
	start := &entry{namespace: namespace}
	if after != nil {
		start = after
	}
	s.tree.AscendGreaterOrEqual(start, func(e *entry) bool {
		if namespace != "" && e.namespace != namespace {
			return false
		}
		return after != nil && !before(after, e) || f(e)
	})
}

// source is the cache of a resource in one cluster: the mirror of member.Follow.
type source struct {
	store   *store
	cluster string
	// namespaces limit what is kept; nil for all.
	namespaces map[string]bool
	// registered is true for a registry, false for searches.
	registered bool
	stop       func()

	// The lock of the store guards the rest. err is nil while the source is up to date. generation is the number of the
	// log at the first list; 0 before.
	err        error
	listed     bool
	generation uint64
	objects    int
	bytes      int64
}

// Trim implements member.Mirror.
func (c *source) Trim(u *unstructured.Unstructured) (*entry, int64, error) {
	if c.namespaces != nil && !c.namespaces[u.GetNamespace()] {
		return nil, 0, nil
	}
	e, err := newEntry(c.cluster, u)
	if err != nil {
		return nil, 0, err
	}
	return e, e.bytes(), nil
}

func (c *source) placeOf(object types.NamespacedName) *entry {
	return &entry{namespace: object.Namespace, name: object.Name, cluster: c.cluster}
}

// Set implements member.Mirror.
func (c *source) Set(object types.NamespacedName, kept *entry) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	if c.current() && kept != nil {
		c.store.put(kept, kept, true)
	}
}

// Drop implements member.Mirror.
func (c *source) Drop(object types.NamespacedName) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	if c.current() {
		c.store.put(c.placeOf(object), nil, true)
	}
}

// Known implements member.Mirror.
func (c *source) Known(object types.NamespacedName) (*entry, bool) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	return c.store.tree.Get(c.placeOf(object))
}

// current reports whether the store still has this source. It must be called with the lock.
func (c *source) current() bool { return c.store.sources[c.cluster] == c }

// Replace implements member.Mirror. The changes of a later list are logged, with what was deleted in between.
func (c *source) Replace(all map[types.NamespacedName]*entry) {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.current() {
		return
	}
	var gone []*entry
	s.tree.Ascend(func(e *entry) bool {
		if e.cluster == c.cluster && all[types.NamespacedName{Namespace: e.namespace, Name: e.name}] == nil {
			gone = append(gone, e)
		}
		return true
	})
	for _, e := range gone {
		s.put(e, nil, c.listed)
	}
	for _, e := range all {
		if e == nil {
			continue
		}
		was, known := s.tree.Get(e)
		if known && was.version == e.version && was.uid == e.uid && e.version != "" {
			continue
		}
		s.put(e, e, c.listed)
	}
	if !c.listed {
		s.seq++ // a generation has a number of its own
		c.listed, c.generation = true, s.seq
		s.notify()
	}
}

// State implements member.Mirror.
func (c *source) State(err error) {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.current() || c.err == nil && err == nil {
		return
	}
	c.err = err
	s.notify()
}

// notify wakes those who wait. It must be called with the lock.
func (s *store) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// remove ends a source and deletes its objects. Watches notice that the cluster is gone. It must be called with the
// lock.
func (s *store) remove(c *source) {
	c.stop()
	delete(s.sources, c.cluster)
	var gone []*entry
	s.tree.Ascend(func(e *entry) bool {
		if e.cluster == c.cluster {
			gone = append(gone, e)
		}
		return true
	})
	for _, e := range gone {
		s.put(e, nil, false)
	}
	s.notify()
}

// registeredIn reports whether registries cache the resource of all clusters.
func (s *store) registeredIn(clusters []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(clusters, func(name string) bool {
		return s.sources[name] == nil || !s.sources[name].registered
	})
}

// sourceState is the state of the cache of a cluster, for readers.
type sourceState struct {
	generation uint64
	// err is nil if the source is up to date.
	err        error
	registered bool
	namespaces map[string]bool
	objects    int
	bytes      int64
}

// states returns the states of the sources, and a channel that is closed when one changes.
func (s *store) states() (map[string]sourceState, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]sourceState, len(s.sources))
	for name, c := range s.sources {
		state := sourceState{c.generation, c.err, c.registered, c.namespaces, c.objects, c.bytes}
		if !c.listed && c.err == nil {
			state.err = errNotListed
		}
		all[name] = state
	}
	return all, s.changed
}
