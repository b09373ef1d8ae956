// Package rebalance decides what a WorkloadRebalancer requests from the bindings of its workloads, its status, and
// when it expires. core/schedule decides the fresh schedule.
package rebalance

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

func Workload(w appsv1alpha1.ObjectReference) identity.Object {
	gk := match.GroupKind(w.APIVersion, w.Kind)
	return identity.Object{Group: gk.Group, Kind: gk.Kind, Namespace: w.Namespace, Name: w.Name}
}

// Pending returns the workloads of the spec whose binding was not found yet: sorted, each once.
func Pending(r *appsv1alpha1.WorkloadRebalancer) []appsv1alpha1.ObjectReference {
	done := map[appsv1alpha1.ObjectReference]bool{}
	for _, o := range r.Status.ObservedWorkloads {
		done[o.Workload] = o.Result == appsv1alpha1.RebalanceSuccessful
	}
	pending := slices.Clone(r.Spec.Workloads)
	slices.SortFunc(pending, compare)
	return slices.DeleteFunc(slices.Compact(pending), func(w appsv1alpha1.ObjectReference) bool { return done[w] })
}

// Trigger requests a fresh schedule for b, the binding of a workload; nil for none. want equals b if a request at least
// as late exists. found is false if b belongs to another template or is being deleted.
func Trigger(r *appsv1alpha1.WorkloadRebalancer, w appsv1alpha1.ObjectReference,
	b workv1alpha2.Binding) (want workv1alpha2.Binding, found bool) {
	if b == nil || b.GetDeletionTimestamp() != nil {
		return nil, false
	}
	if propagate.TemplateOfBinding(b) != Workload(w) {
		return nil, false
	}
	if asked := b.BindingSpec().RescheduleTriggeredAt; asked != nil && !asked.Before(&r.CreationTimestamp) {
		return b, true
	}
	want = b.DeepCopyObject().(workv1alpha2.Binding)
	want.BindingSpec().RescheduleTriggeredAt = new(r.CreationTimestamp)
	if created := b.GetCreationTimestamp(); created.Unix() <= r.CreationTimestamp.Unix() {
		schedule.KeepRequest(want)
	}
	return want, true
}

// Observe returns the status of r with the results of found: true for workloads whose binding was triggered. A workload
// that is neither in found nor in the status has no result. A rebalanced workload keeps its result if the spec drops
// it.
func Observe(r *appsv1alpha1.WorkloadRebalancer, found map[appsv1alpha1.ObjectReference]bool,
	now metav1.Time) appsv1alpha1.WorkloadRebalancerStatus {
	before := map[appsv1alpha1.ObjectReference]appsv1alpha1.ObservedWorkload{}
	for _, o := range r.Status.ObservedWorkloads {
		before[o.Workload] = o
	}
	status := appsv1alpha1.WorkloadRebalancerStatus{ObservedGeneration: r.Generation, FinishTime: r.Status.FinishTime}
	finished, news, result := true, status.FinishTime == nil, appsv1alpha1.RebalanceSuccessful
	wanted := map[appsv1alpha1.ObjectReference]bool{}
	for _, w := range r.Spec.Workloads {
		if wanted[w] {
			continue
		}
		wanted[w] = true
		o := appsv1alpha1.ObservedWorkload{Workload: w}
		if there, looked := found[w]; !looked {
			o = cmp.Or(before[w], o)
		} else if there {
			o.Result = appsv1alpha1.RebalanceSuccessful
		} else {
			o.Result, o.Reason = appsv1alpha1.RebalanceFailed, appsv1alpha1.RebalanceObjectNotFound
		}
		finished = finished && o.Result != ""
		if o.Result == appsv1alpha1.RebalanceFailed {
			result = appsv1alpha1.RebalanceFailed
		}
		news = news || o != before[w]
		status.ObservedWorkloads = append(status.ObservedWorkloads, o)
	}
	for _, o := range r.Status.ObservedWorkloads {
		if !wanted[o.Workload] && o.Result == appsv1alpha1.RebalanceSuccessful {
			status.ObservedWorkloads = append(status.ObservedWorkloads, o)
		}
	}
	slices.SortFunc(status.ObservedWorkloads, func(a, b appsv1alpha1.ObservedWorkload) int {
		return compare(a.Workload, b.Workload)
	})
	switch {
	case !finished:
		status.FinishTime = nil
	case news:
		status.FinishTime = &now
	}
	if finished {
		status.Result = result
	}
	return status
}

// Remaining returns how long to keep r; 0 if it has expired. ok is false if it does not expire: it has no TTL, its
// status is not up to date with its spec, or a workload has no result.
func Remaining(r *appsv1alpha1.WorkloadRebalancer, now time.Time) (time.Duration, bool) {
	ttl, finish := r.Spec.TTLSecondsAfterFinished, r.Status.FinishTime
	if ttl == nil || finish == nil || r.Status.ObservedGeneration != r.Generation {
		return 0, false
	}
	return max(0, finish.Add(time.Duration(*ttl)*time.Second).Sub(now)), true
}

func compare(a, b appsv1alpha1.ObjectReference) int {
	return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
