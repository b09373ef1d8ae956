package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	"github.com/argosy-io/argosy/internal/commit"
)

// takenError is the error of a name under which another owner has PlacementDecisions.
type takenError struct{ decision, by string }

func (e *takenError) Error() string {
	return fmt.Sprintf("PlacementDecision %s belongs to %s: delete the PlacementDecision, or use another name", e.decision, e.by)
}

// owner is a Placement or a policy to which PlacementDecisions belong.
type owner struct {
	namespace string
	metav1.OwnerReference
}

// owns reports whether an object belongs to the owner, or to an object that had its name before.
func (o *owner) owns(d *placementv1beta1.PlacementDecision) bool {
	of := metav1.GetControllerOf(d)
	return of != nil && of.APIVersion == o.APIVersion && of.Kind == o.Kind && of.Name == o.Name &&
		(o.namespace == "" || o.namespace == d.Namespace)
}

// writer writes the PlacementDecisions of an owner.
type writer struct {
	client.Client
	owner owner
	// report records an event with a reason for each.
	report func(reason, name string)
}

// write brings the PlacementDecisions of the owner to what is wanted under a name, each in one write: a reader never
// sees an empty one. It stops at the first error, so that no object loses a cluster that
// another one does not list yet. It writes nothing if another owner has objects of that name, because a reader of the
// label would see the clusters of both.
func (w *writer) write(ctx context.Context, under types.NamespacedName, all,
	wanted []placementv1beta1.PlacementDecision) error {
	current, names := map[types.NamespacedName]*placementv1beta1.PlacementDecision{}, map[types.NamespacedName]bool{}
	for i := range wanted {
		names[client.ObjectKeyFromObject(&wanted[i])] = true
	}
	for i := range all {
		d, at := &all[i], client.ObjectKeyFromObject(&all[i])
		switch {
		case w.owner.owns(d):
			current[at] = d
		case names[at], d.Namespace == under.Namespace && d.Labels[placementv1beta1.PlacementLabel] == under.Name:
			by := "no Placement"
			if of := metav1.GetControllerOf(d); of != nil {
				by = of.Kind + " " + of.Name
			}
			return &takenError{at.String(), by}
		}
	}
	was := make([]*placementv1beta1.PlacementDecision, len(wanted))
	for i := range wanted {
		was[i] = current[client.ObjectKeyFromObject(&wanted[i])]
	}
	for _, next := range order(was, wanted) {
		want := wanted[next.index].DeepCopy()
		want.Status = next.PlacementDecisionStatus
		stored, reason, err := w.writeOne(ctx, was[next.index], want)
		if err != nil {
			return err
		}
		if was[next.index] = stored; reason != "" {
			w.report(reason, want.Name)
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(current), func(a, b types.NamespacedName) int {
		return strings.Compare(a.String(), b.String())
	}) {
		if names[at] {
			continue
		}
		if err := commit.Delete(ctx, w, current[at]); err != nil {
			return err
		}
		w.report(EventDecisionDelete, at.Name)
	}
	return nil
}

// write is one of a PlacementDecision of those wanted, with its clusters.
type write struct {
	index int
	placementv1beta1.PlacementDecisionStatus
}

// order returns the writes of PlacementDecisions in their order: an object that gains a cluster comes before the one
// that loses it, so that the cluster is in both for a moment and never in none. Where objects exchange clusters, one
// has the clusters of before and after for a moment.
func order(was []*placementv1beta1.PlacementDecision, wanted []placementv1beta1.PlacementDecision) (all []write) {
	clusters := func(d *placementv1beta1.PlacementDecision) map[string]bool {
		names := map[string]bool{}
		if d != nil {
			for _, of := range d.Status.Decisions {
				names[of.ClusterName] = true
			}
		}
		return names
	}
	gains, loses := map[string]int{}, make([][]placementv1beta1.ClusterDecision, len(wanted))
	for i := range wanted {
		before, after := clusters(was[i]), clusters(&wanted[i])
		for name := range after {
			if !before[name] {
				gains[name] = i
			}
		}
		if was[i] != nil {
			loses[i] = slices.DeleteFunc(slices.Clone(was[i].Status.Decisions), func(of placementv1beta1.ClusterDecision) bool {
				return after[of.ClusterName]
			})
		}
	}
	begun, done := make([]bool, len(wanted)), make([]bool, len(wanted))
	var again []write
	var visit func(i int)
	visit = func(i int) {
		begun[i] = true
		first := write{i, *wanted[i].Status.DeepCopy()}
		for _, of := range loses[i] {
			gainer, moves := gains[of.ClusterName]
			if moves && !begun[gainer] {
				visit(gainer)
			}
			if moves && !done[gainer] { // it waits for this one
				first.Decisions = append(first.Decisions, of)
			}
		}
		if all = append(all, first); len(first.Decisions) > len(wanted[i].Status.Decisions) {
			again = append(again, write{i, wanted[i].Status})
		}
		done[i] = true
	}
	for i := range wanted {
		if !begun[i] {
			visit(i)
		}
	}
	return append(all, again...)
}

// writeOne returns what is stored now, and the reason of the event; empty if the clusters are as before.
func (w *writer) writeOne(ctx context.Context, was,
	want *placementv1beta1.PlacementDecision) (is *placementv1beta1.PlacementDecision, reason string, err error) {
	if was == nil {
		status := want.Status
		if err := commit.Create(ctx, w, want); err != nil {
			return nil, "", err
		}
		is = want.DeepCopy()
		is.Status = status
		_, err := commit.Status(ctx, w, want, is)
		return is, EventDecisionCreate, err
	}
	is = was.DeepCopy()
	is.OwnerReferences = want.OwnerReferences
	for key, value := range want.Labels {
		metav1.SetMetaDataLabel(&is.ObjectMeta, key, value)
	}
	_, withStatus, err := commit.UpdateWithStatus(ctx, w, was, is, func(int64) any { return &want.Status })
	if err != nil || equality.Semantic.DeepEqual(was.Status, want.Status) {
		return is, "", err
	}
	before := is.DeepCopy()
	if is.Status = want.Status; !withStatus {
		_, err = commit.Status(ctx, w, before, is)
	}
	return is, EventDecisionUpdate, err
}
