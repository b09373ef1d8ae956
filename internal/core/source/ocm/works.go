// Package ocm decides the Works of a ManifestWork of Open Cluster Management, one per object, and its status.
// core/admission/validate validates ManifestWorks. core/execute applies Works.
package ocm

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Input is the input of Decide. It is read-only.
type Input struct {
	ManifestWork *ocmv1.ManifestWork
	// Items are the objects for the cluster.
	Items []Item
	// Cluster is the cluster that the namespace names.
	Cluster *clusterv1alpha1.Cluster
	// Existing are the Works of the ManifestWork, by name.
	Existing map[string]*workv1alpha1.Work
	// Others are the other ManifestWorks of the namespace.
	Others []ocmv1.ManifestWork
	// Standing are ordinary Works (of a policy or the hub) that may contain the objects in Existing, by name. They may
	// have a conflict and wait for the object.
	Standing map[string]*workv1alpha1.Work
	// NewID returns the permanent id for a new Work.
	NewID func() string
	// Convert is as in dispatch.Input.
	Convert dispatch.Convert
}

// Decision is the result of Decide.
type Decision struct {
	// Works are the Works to create or update, in the order of application.
	Works []*workv1alpha1.Work
	// Withdrawn are the Works to delete, with the content to write before the deletion.
	Withdrawn []*workv1alpha1.Work
	// Errs has the errors of objects without a Work, by index.
	Errs map[int]error
}

// Decide returns the Works of a ManifestWork. The other Works wait until the objects that they need, such as
// namespaces, are applied.
func Decide(in Input) Decision {
	d := Decision{Errs: map[int]error{}}
	if in.ManifestWork.DeletionTimestamp != nil {
		return in.withdraw(d, func(string) bool { return true })
	}
	items := slices.Clone(in.Items)
	slices.SortStableFunc(items, func(a, b Item) int { return a.rank() - b.rank() })
	wanted, taken := map[string]bool{}, map[string]int32{}
	awaited, unread := false, false
	for _, item := range items {
		name := item.WorkName(in.ManifestWork.Name, in.Existing)
		if item.Err != nil {
			d.Errs[int(item.Meta.Ordinal)] = item.Err
			wanted[name], unread = true, unread || item.Object == nil // keep the existing Works
			continue
		}
		if !item.Writes() {
			continue
		}
		if first, twice := taken[name]; twice {
			d.Errs[int(item.Meta.Ordinal)] = fmt.Errorf(
				"its Work would have the same name as that of spec.workload.manifests[%d]: move one of them to another ManifestWork", first)
			continue
		}
		wanted[name], taken[name] = true, item.Meta.Ordinal
		existing := in.Existing[name]
		if existing == nil && awaited && item.rank() > 0 {
			continue
		}
		w, err := in.work(item, existing)
		if err != nil {
			d.Errs[int(item.Meta.Ordinal)] = err
			continue
		}
		d.Works = append(d.Works, w)
		if item.rank() == 0 && (existing == nil ||
			meta.FindStatusCondition(existing.Status.Conditions, workv1alpha1.WorkApplied) == nil) {
			awaited = true
		}
	}
	return in.withdraw(d, func(name string) bool { return !wanted[name] && !unread })
}

// withdraw adds the Works to delete, unless they are being deleted already. It looks up other owners of the objects
// once for all.
func (in Input) withdraw(d Decision, goes func(name string) bool) Decision {
	var others map[ocmv1.OrphaningRule]bool
	for _, name := range slices.Sorted(maps.Keys(in.Existing)) {
		if w := in.Existing[name]; goes(name) && w.DeletionTimestamp == nil {
			if others == nil {
				others = in.wantedByOthers()
			}
			d.Withdrawn = append(d.Withdrawn, in.leaving(w, others))
		}
	}
	return d
}

// work returns the Work of an object.
func (in Input) work(item Item, existing *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	mw := in.ManifestWork
	if existing != nil && in.complete(item) {
		return existing, nil // complete objects do not change anymore
	}
	m, err := in.Convert.For(item.Object.DeepCopy(), in.Cluster)
	if err != nil {
		return nil, err
	}
	if err := identity.FromManifest(item.Object).Keeps(m); err != nil {
		return nil, err
	}
	interpret.Prune(m)
	execute.Unmark(m)
	w := execute.NewWork(mw.Namespace, item.WorkName(mw.Name, in.Existing), execute.PermanentID(existing, in.NewID))
	w.Annotations[wellknown.ManifestWorkAnnotation] = mw.Name
	// Adopt existing objects, as agents of Open Cluster Management do.
	w.Annotations[workv1alpha2.ConflictResolutionAnnotation] = workv1alpha2.ConflictResolutionOverwrite
	if s := item.updates(); s.Type == ocmv1.UpdateStrategyCreateOnly || s.Type == ocmv1.UpdateStrategyServerSideApply &&
		!forced(s) {
		w.Annotations[wellknown.UpdateStrategyAnnotation] = string(s.Type)
	}
	if ignored := ignoredFields(item.updates()); len(ignored) > 0 {
		w.Annotations[wellknown.IgnoredFieldsAnnotation] = text.JSON(ignored)
	}
	if in.stays(item.identity()) {
		w.Spec.PreserveResourcesOnDeletion = new(true)
	}

	fields.SetAnnotation(m, wellknown.ManifestWorkAnnotation, mw.Name)
	fields.SetAnnotation(m, workv1alpha2.TemplateUIDAnnotation, string(mw.UID))
	return w, execute.Seal(w, m)
}

// complete reports whether an object is complete, or the whole ManifestWork.
func (in Input) complete(item Item) bool {
	status := in.ManifestWork.Status
	if meta.IsStatusConditionTrue(status.Conditions, ocmv1.Complete) {
		return true
	}
	for _, m := range status.ResourceStatus.Manifests {
		if sameResource(m.ResourceMeta, item.Meta) {
			return meta.IsStatusConditionTrue(m.Conditions, ocmv1.Complete)
		}
	}
	return false
}

// Reopened reports whether the new status makes an object incomplete whose Work was not updated because it was
// complete.
func (in Input) Reopened(want *ocmv1.ManifestWork) bool {
	next := in
	next.ManifestWork = want
	return slices.ContainsFunc(in.Items, func(item Item) bool {
		return in.Existing[item.WorkName(want.Name, in.Existing)] != nil && in.complete(item) && !next.complete(item)
	})
}

// stays reports whether an object stays in the cluster when the ManifestWork no longer contains it.
func (in Input) stays(id ocmv1.OrphaningRule) bool {
	option := in.ManifestWork.Spec.DeleteOption
	if option == nil {
		return false
	}
	switch option.PropagationPolicy {
	case ocmv1.DeleteOrphan:
		return true
	case ocmv1.DeleteSelectivelyOrphan:
		return option.SelectivelyOrphan != nil && slices.Contains(option.SelectivelyOrphan.OrphaningRules, id)
	}
	return false
}

// wantedByOthers returns the objects in other ManifestWorks of the cluster.
func (in Input) wantedByOthers() map[ocmv1.OrphaningRule]bool {
	wanted := map[ocmv1.OrphaningRule]bool{}
	for i := range in.Others {
		other := &in.Others[i]
		if other.Name == in.ManifestWork.Name || other.DeletionTimestamp != nil || other.Spec.Executor != nil {
			continue
		}
		for _, item := range Items(other, in.Cluster) {
			if item.Err == nil && item.Writes() {
				wanted[item.identity()] = true
			}
		}
	}
	return wanted
}

// Ordinary returns the possible names of a policy's or the hub's Work for the same object; none if w is invalid.
func Ordinary(w *workv1alpha1.Work) []string {
	m, err := execute.Manifest(w)
	if err != nil {
		return nil
	}
	return names.Works(m.GroupVersionKind().GroupKind(), m.GetName(), m.GetNamespace())
}

// standing reports whether an ordinary Work exists for the object. Kinds of two groups may share the name.
func (in Input) standing(m *unstructured.Unstructured) bool {
	for _, name := range names.Works(m.GroupVersionKind().GroupKind(), m.GetName(), m.GetNamespace()) {
		w := in.Standing[name]
		if w == nil || w.DeletionTimestamp != nil {
			continue
		}
		if its, err := execute.Manifest(w); err == nil && identityOf(its, in.Cluster) == identityOf(m, in.Cluster) {
			return true
		}
	}
	return false
}

// leaving returns the content of a Work before its deletion. Its object stays if the delete option requests it, if it
// became ReadOnly, or if another Work or ManifestWork of the cluster contains it too and takes it over.
func (in Input) leaving(w *workv1alpha1.Work, others map[ocmv1.OrphaningRule]bool) *workv1alpha1.Work {
	m, err := execute.Manifest(w)
	if err != nil {
		return w // an invalid manifest was never applied
	}
	id := identityOf(m, in.Cluster)
	stays := in.stays(id) || others[id] || in.standing(m)
	if in.ManifestWork.DeletionTimestamp == nil {
		stays = stays || slices.ContainsFunc(in.Items, func(item Item) bool { return item.identity() == id })
	}
	if stays == (w.Spec.PreserveResourcesOnDeletion != nil && *w.Spec.PreserveResourcesOnDeletion) {
		return w
	}
	w = w.DeepCopy()
	w.Spec.PreserveResourcesOnDeletion = new(stays)
	return w
}

// errExecutor is why a ManifestWork with an executor is not applied.
var errExecutor = errors.New("spec.executor is not supported: the hub applies with its own service account, which may have more permissions; remove it")

func forced(s ocmv1.UpdateStrategy) bool { return s.ServerSideApply != nil && s.ServerSideApply.Force }
