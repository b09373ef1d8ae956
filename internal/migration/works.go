package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/source/migrate"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
)

// pageSize bounds one page of a list of Works, which have whole manifests.
const pageSize = 500

// Migrated returns all workloads with a record, in a namespace or, if it is empty, in all. With leftovers, it also
// returns those of which the hub has only Works that preserve their objects: the template was deleted, and the policy.
// These name their clusters.
func (m *Migration) Migrated(ctx context.Context, namespace string, leftovers bool) ([]Workload, error) {
	all, _, err := m.recorded(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if leftovers {
		left, err := m.leftovers(ctx, namespace, all)
		if err != nil {
			return nil, err
		}
		for _, l := range left {
			if l.unknown != nil {
				return nil, l.unknown
			}
			all = append(all, l.Workload)
		}
	}
	slices.SortFunc(all, func(a, b Workload) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}

// leftover is a workload that has Works and no template.
type leftover struct {
	// Workload names the clusters of its Works.
	Workload
	// states are those of its clusters.
	states map[string]migrate.State
	// unknown is why it is unknown whether the template exists: the user may not read it, or the hub does not serve its
	// kind now. It is nil if the template does not exist.
	unknown error
}

// leftovers returns the workloads that have Works and no template, but not those that are known. Works that would
// delete their objects are left out: a user may have deleted the template to delete the objects.
func (m *Migration) leftovers(ctx context.Context, namespace string, known []Workload) ([]leftover, error) {
	owners, err := m.bindingOwners(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var all []leftover
	page := &client.ListOptions{Limit: pageSize}
	for {
		var works workv1alpha1.WorkList // a new one: decoding leaves fields of a former page in place
		if err := m.Client.List(ctx, &works, page); err != nil {
			return nil, fmt.Errorf("list Works: %w", err)
		}
		for i := range works.Items {
			cluster, w, ok := workOf(&works.Items[i])
			if !ok || !execute.Preserved(&works.Items[i]) || namespace != "" && w.Namespace != namespace ||
				slices.ContainsFunc(known, w.IsSame) {
				continue
			}
			at := slices.IndexFunc(all, func(l leftover) bool { return l.IsSame(w) })
			if at < 0 {
				at, all = len(all), append(all, leftover{Workload: w, states: map[string]migrate.State{}})
			}
			all[at].Clusters = append(all[at].Clusters, cluster)
			all[at].states[cluster] = migrate.StateOf(&works.Items[i])
		}
		if page.Continue = works.Continue; page.Continue == "" {
			break
		}
	}
	var left []leftover
	for _, l := range all {
		if owners.contain(l.Workload) {
			// Only while the hub serves a kind does the garbage collector look for objects of it.
			if _, err := m.Hub.AnyVersion(l.GVK, l.Namespace); err == nil {
				continue
			}
		}
		template, _, err := m.template(ctx, l.Workload)
		if err != nil && !apierrors.IsForbidden(err) && !errors.Is(err, errNotServed) {
			return nil, err
		}
		if l.unknown = err; template == nil {
			left = append(left, l)
		}
	}
	return left, nil
}

// owners has the group, kind, namespace and name of objects that own a binding. The garbage collector of the hub takes
// an owner that does not exist from its binding, or deletes the binding.
type owners map[[4]string]bool

func (o owners) contain(w Workload) bool {
	return o[[4]string{w.GVK.Group, w.GVK.Kind, w.Namespace, w.Name}]
}

// bindingOwners returns the owners of the bindings in a namespace or, if it is empty, of all bindings, so that their
// templates need not be read one by one. It returns none for a user who may not list bindings.
func (m *Migration) bindingOwners(ctx context.Context, namespace string) (owners, error) {
	found := owners{}
	kinds := []string{"ResourceBinding", "ClusterResourceBinding"}
	if namespace != "" {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(workv1alpha2.GroupVersion.WithKind(kind + "List"))
		err := m.Client.List(ctx, &list, client.InNamespace(namespace))
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list bindings: %w", err)
		}
		for i := range list.Items {
			b := &list.Items[i]
			if b.DeletionTimestamp != nil {
				continue
			}
			for _, owner := range b.OwnerReferences {
				group := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group
				found[[4]string{group, owner.Kind, b.Namespace, owner.Name}] = true
			}
		}
	}
	return found, nil
}

// workOf returns the cluster and the workload of a Work; ok is false if it is not the Work of a template.
func workOf(work *workv1alpha1.Work) (cluster string, w Workload, ok bool) {
	cluster, err := names.ClusterOf(work.Namespace)
	obj := migrate.TemplateOf(work)
	if err != nil || obj == nil {
		return "", Workload{}, false
	}
	return cluster, Workload{GVK: obj.GroupVersionKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}, true
}

// clustersWithWork returns the clusters that have a Work of a workload, sorted.
func (m *Migration) clustersWithWork(ctx context.Context, w Workload) ([]string, error) {
	var clusters []string
	for _, name := range names.Works(w.GVK.GroupKind(), w.Name, w.Namespace) {
		var works workv1alpha1.WorkList
		if err := m.Client.List(ctx, &works, client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
			return nil, fmt.Errorf("list the Works of %s: %w", w, err)
		}
		for i := range works.Items {
			if cluster, of, ok := workOf(&works.Items[i]); ok && of.IsSame(w) {
				clusters = append(clusters, cluster)
			}
		}
	}
	slices.Sort(clusters)
	return slices.Compact(clusters), nil
}

// remainingWork returns the Work of a workload for a cluster, also if its binding was deleted; nil for none.
func (m *Migration) remainingWork(ctx context.Context, cluster string, w Workload) (*workv1alpha1.Work, error) {
	work, err := m.work(ctx, cluster, w)
	if err != nil || work != nil {
		return work, err
	}
	for _, name := range names.Works(w.GVK.GroupKind(), w.Name, w.Namespace) {
		work := &workv1alpha1.Work{}
		err := m.Client.Get(ctx, types.NamespacedName{Namespace: names.ExecutionSpace(cluster), Name: name}, work)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the Work of %s for cluster %q: %w", w, cluster, err)
		}
		if _, of, ok := workOf(work); err == nil && ok && of.IsSame(w) {
			return work, nil
		}
	}
	return nil, nil
}

// takeOutWorks ends the management of a workload that has neither a template nor a policy, in the clusters that it
// names or in all. It returns the clusters that the workload is to leave.
func (m *Migration) takeOutWorks(ctx context.Context, w Workload, shadow bool) ([]string, error) {
	leaving, err := m.clustersWithWork(ctx, w)
	if err != nil {
		return nil, err
	}
	leaving = slices.DeleteFunc(leaving, func(cluster string) bool {
		return len(w.Clusters) > 0 && !slices.Contains(w.Clusters, cluster)
	})
	switch {
	case len(leaving) == 0:
		m.Progress("%s: it is not migrated\n", w)
		return nil, nil
	case shadow:
		return leaving, errors.New("its template and its policy were deleted on the hub, so it cannot go back to Shadow: " +
			"take it out without --shadow")
	}
	m.Progress("%s: its template and its policy were deleted on the hub: leaving %s\n", w, strings.Join(leaving, ", "))
	before, err := m.snapshots(ctx, w, leaving)
	if err != nil {
		return leaving, err
	}
	if err := m.leaveWorks(ctx, w, leaving); err != nil {
		return leaving, err
	}
	return leaving, m.verifyLeft(ctx, w, before)
}

// leaveWorks deletes the Works of a workload without a template in some clusters, so that the hub releases their
// objects, and waits until that is done. It writes nothing if one of the objects belongs to another hub or Work.
func (m *Migration) leaveWorks(ctx context.Context, w Workload, clusters []string) error {
	// 1. Check all before the first write. The hub already deletes some if it has just seen that the template is gone.
	var works []*workv1alpha1.Work
	for _, cluster := range clusters {
		work, err := m.remainingWork(ctx, cluster, w)
		if err != nil {
			return err
		}
		if work == nil || work.DeletionTimestamp != nil && execute.Preserved(work) {
			continue
		}
		live, err := m.live(ctx, cluster, w)
		if err != nil {
			return err
		}
		if err := m.checkOwner(ctx, work, live); err != nil {
			return fmt.Errorf("cluster %q: %w", cluster, err)
		}
		works = append(works, work)
	}
	// 2. Delete them.
	for _, work := range works {
		if err := m.leaveWork(ctx, work); err != nil {
			return fmt.Errorf("delete the Work %s/%s on the hub: %w", work.Namespace, work.Name, err)
		}
	}
	if err := m.awaitReleased(ctx, w, clusters); err != nil {
		return err
	}
	return m.deleteBinding(ctx, w)
}

// checkOwner returns an error if the hub would not release the object of a Work; live is nil for none.
func (m *Migration) checkOwner(ctx context.Context, work *workv1alpha1.Work, live *unstructured.Unstructured) error {
	if err := m.checkHub(ctx, live); err != nil {
		return err
	}
	if live != nil && migrate.Marked(live) && (!execute.Owns(work, live) || execute.Anothers(work, live)) {
		return errors.New("the object has labels or annotations of a hub, but not those that this hub set: if no other " +
			"hub manages it, remove them with `kubectl label` and `kubectl annotate`")
	}
	return nil
}

// checkHub returns an error if another hub wrote an object last; live is nil for none.
func (m *Migration) checkHub(ctx context.Context, live *unstructured.Unstructured) error {
	if live == nil || !migrate.Marked(live) {
		return nil
	}
	by := live.GetAnnotations()[wellknown.HubAnnotation]
	if by == "" {
		return nil
	}
	hub, err := member.Identity(ctx, m.Client)
	if err != nil || by == hub {
		return err
	}
	return fmt.Errorf("another hub (%s) wrote the object last: end its management there", by)
}

// checkHubs returns an error if another hub wrote the object of a workload last in one of the clusters: this hub would
// keep it as it is. It finds nothing for a user who may not read the identity of the hub.
func (m *Migration) checkHubs(ctx context.Context, w Workload, clusters []string) error {
	for _, cluster := range clusters {
		live, err := m.live(ctx, cluster, w)
		if err != nil {
			return err
		}
		if err := m.checkHub(ctx, live); err != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("cluster %q: %w", cluster, err)
		}
	}
	return nil
}

// leaveWork deletes a Work so that its object stays, and is released however many Works are deleted.
func (m *Migration) leaveWork(ctx context.Context, work *workv1alpha1.Work) error {
	patch := text.JSON(map[string]any{
		"metadata": map[string]any{"uid": work.UID, "annotations": map[string]any{wellknown.LeavingAnnotation: "true"}},
		"spec":     map[string]any{"preserveResourcesOnDeletion": true, "suspendDispatching": true},
	})
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		err := m.Client.Patch(ctx, work, client.RawPatch(types.MergePatchType, []byte(patch)))
		if err != nil || work.DeletionTimestamp != nil {
			return client.IgnoreNotFound(err)
		}
		// The version is that of the patch: a Work that no longer preserves its object is not deleted.
		err = m.Client.Delete(ctx, work,
			client.Preconditions{UID: &work.UID, ResourceVersion: &work.ResourceVersion})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
		return fmt.Errorf("delete Work %s/%s, which is suspended now; run the command again: %w", work.Namespace, work.Name,
			err)
	})
}

// deleteBinding deletes the binding of a workload that has no template and no Works.
func (m *Migration) deleteBinding(ctx context.Context, w Workload) error {
	remaining, err := m.clustersWithWork(ctx, w)
	if err != nil || len(remaining) > 0 {
		return err
	}
	b, _, err := scope.BindingFor(ctx, m.Client, w.GVK.GroupKind(), w.Namespace, w.Name)
	if err != nil || b == nil {
		return err
	}
	if template, _, err := m.template(ctx, w); err != nil || template != nil {
		return err // a template that was created again keeps its binding
	}
	uid := b.GetUID()
	err = m.Client.Delete(ctx, b, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the binding of %s on the hub: %w", w, err)
	}
	return nil
}
