package service

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Warnings about Services of several clusters.
//
//reference:event Warning on MultiClusterService
const (
	// EventSyncServiceFailed: the Service cannot be propagated.
	EventSyncServiceFailed = "SyncServiceFailed"
	// EventDispatchEndpointSliceFailed: a cluster does not get all endpoints.
	EventDispatchEndpointSliceFailed = "DispatchEndpointSliceFailed"
	// EventClusterNotFound: spec names clusters that have not joined.
	EventClusterNotFound = "ClusterNotFound"
	// EventSyncDerivedServiceFailed: the derived Service cannot be written.
	//
	//reference:event Warning on ServiceImport
	EventSyncDerivedServiceFailed = "SyncDerivedServiceFailed"
	// EventProviderLost: the endpoints of a lost cluster are withdrawn. It is also the reason of
	// EndpointSliceDispatched then.
	//
	//reference:event Warning on MultiClusterService and ServiceImport
	EventProviderLost = "ProviderLost"
)

// Successes of Services of several clusters.
//
//reference:event Normal on MultiClusterService
const (
	// EventSyncServiceSucceed: the Service is in all its clusters.
	EventSyncServiceSucceed = "SyncServiceSucceed"
	// EventDispatchEndpointSliceSucceed: the consumers have the endpoints of the providers.
	EventDispatchEndpointSliceSucceed = "DispatchEndpointSliceSucceed"
	// EventSyncDerivedServiceSucceed: the derived Service is written.
	//
	//reference:event Normal on ServiceImport
	EventSyncDerivedServiceSucceed = "SyncDerivedServiceSucceed"
)

// Reasons of ServiceApplied.
//
//reference:reason ServiceApplied of MultiClusterService
const (
	// reasonApplying: some clusters have not applied the Service yet. The message names them.
	reasonApplying = "Applying"
	// reasonServiceApplied: all clusters have the Service.
	reasonServiceApplied = "ServiceAppliedSucceed"
	// reasonServiceRefused: a cluster does not have the Service. The message has the error.
	reasonServiceRefused = "ServiceAppliedFailed"
)

// Reasons of EndpointSliceDispatched.
//
//reference:reason EndpointSliceDispatched of MultiClusterService
const (
	// reasonDispatched: the consumers have all endpoints.
	reasonDispatched = "EndpointSliceDispatchedSucceed"
	// reasonDispatchRefused: a consumer does not have all endpoints. The message has the error.
	reasonDispatchRefused = "EndpointSliceDispatchedFailed"
	// reasonProviderSilent: a provider has not reported since the hub started, or its agent is not connected; its
	// last known endpoints are used.
	reasonProviderSilent = "ProviderSilent"
)

// The reasons and messages of success, as Karmada's users know them.
const (
	messageServiceApplied = "Service is propagated to target clusters."
	messageDispatched     = "EndpointSlice are dispatched successfully"
)

// ImportStatus returns the status of a ServiceImport.
func ImportStatus(d Decision) multiclusterv1alpha1.ServiceImportStatus {
	var status multiclusterv1alpha1.ServiceImportStatus
	for _, c := range d.From {
		status.Clusters = append(status.Clusters, multiclusterv1alpha1.ClusterStatus{Cluster: c})
	}
	return status
}

// ServiceApplied returns the condition that reports whether the clusters have the Service. b is its binding or nil.
// trouble is the reason why it is not sent, or empty.
func ServiceApplied(clusters []string, b workv1alpha2.Binding, services map[string]*workv1alpha1.Work,
	trouble string) metav1.Condition {
	var refused, waiting []string
	out, why := unplaced(clusters, b)
	for _, c := range clusters {
		switch applied, why := Applied(services[c]); {
		case why != "":
			refused = append(refused, fmt.Sprintf("cluster %q: %s", c, why))
		case slices.Contains(out, c):
		case !applied:
			waiting = append(waiting, c)
		}
	}
	if len(out) > 0 {
		refused = append(refused, fmt.Sprintf("the Service is not placed in %s: %s", strings.Join(out, ", "), why))
	}
	c := metav1.Condition{Type: networkingv1alpha1.ServiceApplied, Status: metav1.ConditionTrue,
		Reason: reasonServiceApplied, Message: messageServiceApplied}
	if trouble = cmp.Or(trouble, shortened(refused)); trouble != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonServiceRefused, trouble
	} else if len(waiting) > 0 {
		c.Status, c.Reason = metav1.ConditionUnknown, reasonApplying
		c.Message = "The Service is not yet applied in " + strings.Join(waiting, ", ") + "."
	}
	return c
}

// unplaced returns the clusters that the scheduler left out, and the reason. It returns none until the binding is
// scheduled.
func unplaced(clusters []string, b workv1alpha2.Binding) (out []string, why string) {
	if b == nil || b.BindingStatus().SchedulerObservedGeneration < b.GetGeneration() {
		return nil, ""
	}
	placed := dispatch.Targets(b)
	out = slices.DeleteFunc(slices.Clone(clusters), func(c string) bool { return workv1alpha2.HasTarget(placed, c) })
	if c := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.Scheduled); c != nil &&
		c.Status == metav1.ConditionFalse {
		return out, c.Message
	}
	ref := b.BindingSpec().Resource
	return out, fmt.Sprintf("it may be cordoned or tainted; see `argosy why service/%s -n %s`", ref.Name, ref.Namespace)
}

// Dispatched returns the condition that reports whether the consumers have the endpoints. was is the previous condition
// for the same generation, or nil. It stays while all missing data is expected soon.
func Dispatched(d Decision, standing []*workv1alpha1.Work, trouble string, was *metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: networkingv1alpha1.EndpointSliceDispatched, Status: metav1.ConditionTrue,
		Reason: reasonDispatched, Message: messageDispatched}
	silent := cmp.Or(strings.Join(d.Silent, ", "), strings.Join(d.Soon, ", "))
	trouble = cmp.Or(trouble, shortened(Refused(d, standing)))
	switch {
	case trouble != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonDispatchRefused, trouble
	case len(d.Withdrawn) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, EventProviderLost, WithdrawnMessage(d)
	case len(d.Silent) == 0 && len(d.Soon) > 0 && was != nil:
		return *was
	case silent != "":
		c.Status, c.Reason = metav1.ConditionUnknown, reasonProviderSilent
		c.Message = "No report from " + silent + "; its last known state is used."
	}
	return c
}

// WithdrawnMessage describes the withdrawn providers; empty if there are none.
func WithdrawnMessage(d Decision) string {
	if len(d.Withdrawn) == 0 {
		return ""
	}
	return "The endpoints of " + strings.Join(d.Withdrawn, ", ") +
		" are withdrawn from the other clusters, because the hub does not reach these clusters; they return when it does."
}

// Refused returns one line per cluster that refused Works of the decision or exceeds the limits, sorted.
func Refused(d Decision, standing []*workv1alpha1.Work) []string {
	wanted := map[string]bool{}
	for _, w := range d.Works {
		wanted[w.Namespace+"/"+w.Name] = true
	}
	by := map[string]string{}
	for _, w := range standing {
		cluster, err := names.ClusterOf(w.Namespace)
		if _, why := Applied(w); err == nil && why != "" && wanted[w.Namespace+"/"+w.Name] &&
			(by[cluster] == "" || why < by[cluster]) {
			by[cluster] = why
		}
	}
	out := slices.Clone(d.Cut)
	for cluster, why := range by {
		out = append(out, fmt.Sprintf("cluster %q: %s", cluster, why))
	}
	slices.Sort(out)
	return out
}

// shortened joins the first lines, to keep the message readable with many clusters.
func shortened(lines []string) string { return text.Lines(lines, 3) }

// SetConditions sets the conditions in a status. The transition time changes with the status.
func SetConditions(all []metav1.Condition, generation int64, now metav1.Time,
	set ...metav1.Condition) []metav1.Condition {
	all = slices.Clone(all)
	for _, c := range set {
		c.ObservedGeneration, c.LastTransitionTime = generation, now
		meta.SetStatusCondition(&all, c)
	}
	return all
}
