package execute

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/member"
)

// drift delays repairs of objects that a member changes repeatedly. After a restart of the hub, the
// first repairs are immediate again.
type drift struct {
	memory *memory
	clock  clock.PassiveClock
}

// pause returns how long the next repair of the Work's object must wait.
func (d *drift) pause(work *workv1alpha1.Work) time.Duration {
	return d.memory.factsOf(client.ObjectKeyFromObject(work)).drift.Pause(d.clock.Now())
}

// wrote records a write of the Work's object, and counts it as a repair if it changed the object and was not planned on
// a state from before our last write. after is nil if the state after the write is unknown.
func (d *drift) wrote(work *workv1alpha1.Work, action execute.Action, observed, after *unstructured.Unstructured) {
	d.memory.update(client.ObjectKeyFromObject(work), func(r *workRecord) {
		stale := isBefore(observed, r.lastWrite)
		if after != nil {
			r.lastWrite = after.GetResourceVersion()
		}
		unchanged := observed != nil && after != nil && observed.GetResourceVersion() == after.GetResourceVersion()
		if action.Repairs && !stale && !unchanged {
			now := d.clock.Now()
			if r.drift.Over(now) {
				r.driftMessage = ""
			}
			r.drift = r.drift.Repaired(action.Path, now)
		}
	})
}

// settled records that the object was observed as desired.
func (d *drift) settled(work *workv1alpha1.Work, observed *unstructured.Unstructured) {
	d.memory.update(client.ObjectKeyFromObject(work), func(r *workRecord) {
		if !isBefore(observed, r.lastWrite) {
			r.lastWrite = ""
		}
	})
}

// isBefore reports whether an object is older than a resource version; empty for none.
func isBefore(observed *unstructured.Unstructured, version string) bool {
	if version == "" || observed == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(observed.GetResourceVersion(), version)
	return err == nil && order < 0
}

// message returns the message of the condition Contested of a Work, empty for none. after is when to check again: when
// the next repair is due, or when the condition ends if the object is not changed again.
func (d *drift) message(ctx context.Context, m *member.Member, work *workv1alpha1.Work,
	manifest *unstructured.Unstructured) (message string, after time.Duration) {
	key, now := client.ObjectKeyFromObject(work), d.clock.Now()
	facts := d.memory.factsOf(key)
	if facts.drift.Repairs > 0 && facts.drift.Over(now) {
		d.memory.update(key, func(r *workRecord) { r.drift, r.driftMessage = execute.Contest{}, "" })
	}
	if !facts.drift.Contested(now) {
		return "", 0
	}
	if message = facts.driftMessage; message == "" {
		message = execute.Contested(m.Name, manifest, facts.drift.Path, fieldManager(ctx, m, manifest, facts.drift.Path))
		d.memory.update(key, func(r *workRecord) { r.driftMessage = message })
	}
	if pause := facts.drift.Pause(now); pause > 0 {
		return message, pause
	}
	return message, facts.drift.Left(now)
}

// fieldManager returns the field manager that set the field at path last; empty if it is not known. It reads the
// object from the member, as the cache does not keep managed fields.
func fieldManager(ctx context.Context, m *member.Member, manifest *unstructured.Unstructured,
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
