package execute

import (
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// memory is all that the hub remembers of single Works. A restart of the hub loses it.
type memory struct {
	// pending are the Works whose status was written.
	pending commit.PendingWrites[*workv1alpha1.Work]
	// applied are the Works that were applied and whose status does not show it yet.
	applied commit.PendingWrites[*metav1.PartialObjectMetadata]
	// progress are the Works whose status waits to be written.
	progress commit.Pace[types.NamespacedName]

	mu      sync.Mutex
	records map[types.NamespacedName]*workRecord
	// waiting are the Works whose namespace is not in the member. workRecord.waitsFor is the reverse.
	waiting map[memberNamespace]map[types.NamespacedName]bool
	// sweepAt is the number of records from which turns of calm Works are removed.
	sweepAt int
}

func newMemory() *memory {
	return &memory{records: map[types.NamespacedName]*workRecord{},
		waiting: map[memberNamespace]map[types.NamespacedName]bool{}}
}

// workRecord has the facts and the warnings that the hub remembers of one Work.
type workRecord struct {
	facts
	// warnings are the last messages of the warnings in force, by reason.
	warnings map[string]string
}

type facts struct {
	// drift counts repairs of the object; driftMessage is the message for users, once there is one.
	drift        execute.Contest
	driftMessage string
	// lastWrite is the resource version that our last write gave the object, until the object is observed as desired.
	lastWrite string
	// finished is the last state of an object that ran once, has finished and is gone.
	finished *unstructured.Unstructured
	// missed means that the object of a Work that runs once was not found at the last attempt.
	missed bool
	// blockedSince is when the deletion of a namespace or definition began to wait for the objects in it.
	blockedSince time.Time
	// awaited is a Work of an object in it that it waited for at the last check; empty for none.
	awaited  types.NamespacedName
	waitsFor memberNamespace
	turns    *turns
	restore  restoreCheck
}

// memberNamespace is a namespace of a member.
type memberNamespace struct{ cluster, namespace string }

// turns counts the changes of health and conditions of a Work.
type turns struct {
	*rate.Limiter
	last time.Time
}

// A change of health or conditions is written at once, to the Work, its binding and its template. To bound the writes
// for an object that changes all the time, a Work may have turnsAtOnce such changes, and turnsASecond after that.
const turnsAtOnce, turnsASecond = 30, 1

// update calls change with the record of a Work, and drops the record if it is empty afterwards.
func (m *memory) update(work types.NamespacedName, change func(*workRecord)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[work]
	if r == nil {
		r = &workRecord{}
	}
	change(r)
	m.store(work, r)
}

// store must be called with mu locked.
func (m *memory) store(work types.NamespacedName, r *workRecord) {
	if r.facts == (facts{}) && len(r.warnings) == 0 {
		delete(m.records, work)
		return
	}
	m.records[work] = r
}

// updateAll calls change with each record.
func (m *memory) updateAll(change func(*workRecord)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for work, r := range m.records {
		change(r)
		m.store(work, r)
	}
	m.sweepAt = max(1000, 2*len(m.records))
}

// factsOf returns a copy of the facts of a Work.
func (m *memory) factsOf(work types.NamespacedName) facts {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.records[work]; r != nil {
		return r.facts
	}
	return facts{}
}

// forget removes all that is remembered of a Work.
func (m *memory) forget(work types.NamespacedName) {
	m.pending.Forget(work)
	m.applied.Forget(work)
	m.progress.Done(work)
	m.update(work, func(r *workRecord) {
		m.setWaitsFor(work, r, memberNamespace{})
		*r = workRecord{}
	})
}

// isNewWarning reports whether message differs from the last warning for that reason. An empty message ends the
// warning.
func (m *memory) isNewWarning(work types.NamespacedName, reason, message string) (isNew bool) {
	m.update(work, func(r *workRecord) {
		if message == "" {
			delete(r.warnings, reason)
			return
		}
		if r.warnings == nil {
			r.warnings = map[string]string{}
		}
		isNew = r.warnings[reason] != message
		r.warnings[reason] = message
	})
	return isNew
}

// waitFor sets the namespace of the member that a Work waits for; the zero value for none.
func (m *memory) waitFor(work types.NamespacedName, namespace memberNamespace) {
	m.update(work, func(r *workRecord) { m.setWaitsFor(work, r, namespace) })
}

// setWaitsFor must be called with mu locked.
func (m *memory) setWaitsFor(work types.NamespacedName, r *workRecord, namespace memberNamespace) {
	if r.waitsFor == namespace {
		return
	}
	delete(m.waiting[r.waitsFor], work)
	if len(m.waiting[r.waitsFor]) == 0 {
		delete(m.waiting, r.waitsFor)
	}
	r.waitsFor = namespace
	if namespace == (memberNamespace{}) {
		return
	}
	if m.waiting[namespace] == nil {
		m.waiting[namespace] = map[types.NamespacedName]bool{}
	}
	m.waiting[namespace][work] = true
}

// takeWaiting returns the Works that wait for a namespace, and ends their wait.
func (m *memory) takeWaiting(namespace memberNamespace) []types.NamespacedName {
	m.mu.Lock()
	works := slices.Collect(maps.Keys(m.waiting[namespace]))
	m.mu.Unlock()
	for _, work := range works {
		m.waitFor(work, memberNamespace{})
	}
	return works
}

// turn counts a change of the health or conditions of a Work, and reports whether it is written at once.
func (m *memory) turn(work types.NamespacedName, now time.Time) (atOnce bool) {
	m.sweepTurns(now)
	m.update(work, func(r *workRecord) {
		if r.turns == nil {
			r.turns = &turns{Limiter: rate.NewLimiter(turnsASecond, turnsAtOnce)}
		}
		r.turns.last = now
		atOnce = r.turns.AllowN(now, 1)
	})
	return atOnce
}

// sweepTurns forgets the turns of Works without a change for some time, if there are many records.
func (m *memory) sweepTurns(now time.Time) {
	m.mu.Lock()
	many := len(m.records) >= m.sweepAt
	m.mu.Unlock()
	if !many {
		return
	}
	m.updateAll(func(r *workRecord) {
		if r.turns != nil && now.Sub(r.turns.last) >= time.Second*turnsAtOnce/turnsASecond {
			r.turns = nil
		}
	})
}

// keepFinished remembers the last state of an object that is gone, if it ran once and had finished: the member may
// delete such an object before the hub reads it.
func (m *memory) keepFinished(work types.NamespacedName, last *unstructured.Unstructured) {
	status, _ := last.Object["status"].(map[string]any)
	if interpret.Finished(last.GroupVersionKind().GroupKind(), status) {
		m.update(work, func(r *workRecord) { r.finished = last })
	}
}

// finishedObject returns the last state of the Work's object that keepFinished remembers; nil if it is reported
// already, or is of an earlier Work of the same name.
func (m *memory) finishedObject(work *workv1alpha1.Work,
	manifest *unstructured.Unstructured) *unstructured.Unstructured {
	key := client.ObjectKeyFromObject(work)
	last := m.factsOf(key).finished
	if last == nil {
		return nil
	}
	const id, template = workv1alpha2.WorkPermanentIDLabel, workv1alpha2.TemplateUIDAnnotation
	if last.GetAnnotations()[template] != manifest.GetAnnotations()[template] || execute.Ended(work) ||
		last.GetLabels()[id] != work.Labels[id] || !execute.Owns(work, last) {
		m.update(key, func(r *workRecord) { r.finished = nil })
		return nil
	}
	return last
}
