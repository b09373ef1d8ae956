package execute

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/member"
)

// contests are the Works whose objects somebody in the member changed after they were applied. A restart of the hub
// forgets them: the next repairs are then immediate again, a few times.
type contests struct {
	mu    sync.Mutex
	works map[types.NamespacedName]*contest
	// written are the versions that the hub wrote last, of objects that have not been seen since: an older look says
	// nothing of what somebody else did.
	written map[types.NamespacedName]string
}

type contest struct {
	execute.Contest
	// told is what users are told of it, once they are.
	told string
}

// of is the contest of a Work; the zero value if there is none.
func (c *contests) of(work types.NamespacedName, now time.Time) contest {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.works[work]
	if known == nil {
		return contest{}
	}
	if known.Over(now) {
		delete(c.works, work)
		return contest{}
	}
	return *known
}

// wrote takes note of what was written for an action, and counts it as a repair if it is one: one that put right what
// somebody did. One that was planned by a look from before the last write is none, nor one that changed nothing.
func (c *contests) wrote(work types.NamespacedName, action execute.Action, observed, after *unstructured.Unstructured,
	now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.works == nil {
		c.works, c.written = map[types.NamespacedName]*contest{}, map[types.NamespacedName]string{}
	}
	stale := c.stale(work, observed)
	if after != nil {
		c.written[work] = after.GetResourceVersion()
	}
	if !action.Repairs || stale || observed != nil && after != nil &&
		observed.GetResourceVersion() == after.GetResourceVersion() {
		return
	}
	c.repaired(work, action.Path, now)
}

// settled says that the object was seen as it is to be.
func (c *contests) settled(work types.NamespacedName, observed *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stale(work, observed) {
		delete(c.written, work)
	}
}

// stale says whether the object was observed before the hub wrote it last. It is called with mu held.
func (c *contests) stale(work types.NamespacedName, observed *unstructured.Unstructured) bool {
	written, known := c.written[work]
	if !known || observed == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(observed.GetResourceVersion(), written)
	return err == nil && order < 0
}

// repaired is called with mu held.
func (c *contests) repaired(work types.NamespacedName, path string, now time.Time) {
	known := c.works[work]
	if known == nil {
		known = &contest{}
		c.works[work] = known
	}
	known.Contest = known.Repaired(path, now)
}

func (c *contests) tell(work types.NamespacedName, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.works[work]; known != nil {
		known.told = text
	}
}

func (c *contests) forget(work types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.works, work)
	delete(c.written, work)
}

// contested returns the message of the condition Contested of a Work, empty for none, and emits the event. after is when
// to look again: when the next repair is due, or when the contest is over if nobody changes the object.
func (r *reconciler) contested(ctx context.Context, m *member.Member, work *workv1alpha1.Work,
	manifest *unstructured.Unstructured) (message string, after time.Duration) {
	key, now := client.ObjectKeyFromObject(work), r.Clock.Now()
	c := r.contests.of(key, now)
	if !c.Contested(now) {
		r.warnTemplate(work, manifest, workv1alpha1.ReasonChangedRepeatedly, nil)
		return "", 0
	}
	if c.told == "" {
		c.told = execute.Contested(m.Name, manifest, c.Path, r.contender(ctx, m, manifest, c.Path))
		r.contests.tell(key, c.told)
	}
	r.warnTemplate(work, manifest, workv1alpha1.ReasonChangedRepeatedly,
		fmt.Errorf("%s. To resolve: %s", c.told, execute.ContestedAdvice))
	if pause := c.Pause(now); pause > 0 {
		return c.told, pause
	}
	return c.told, c.Left(now)
}

// contender is the field manager that set the field last; empty if it is not known. The member is asked once per
// contest: who set what is not kept in memory.
func (r *reconciler) contender(ctx context.Context, m *member.Member, manifest *unstructured.Unstructured,
	path string) string {
	if path == "" {
		return ""
	}
	mapping, err := m.Mapping(ctx, manifest.GroupVersionKind())
	if err != nil {
		return ""
	}
	namespace := manifest.GetNamespace()
	if !mapping.Namespaced {
		namespace = ""
	}
	live, err := m.Client().Resource(mapping.Resource).Namespace(namespace).Get(ctx, manifest.GetName(),
		metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return execute.ManagerOf(live.GetManagedFields(), path, member.Manager)
}
