package service

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/names"
)

// Event reasons, as the contract has them.
const (
	EventSyncDerivedServiceFailed    = "SyncDerivedServiceFailed"
	EventSyncServiceFailed           = "SyncServiceFailed"
	EventDispatchEndpointSliceFailed = "DispatchEndpointSliceFailed"
	EventClusterNotFound             = "ClusterNotFound"
)

// The reasons and messages of success, as Karmada's users know them.
const (
	messageServiceApplied = "Service is propagated to target clusters."
	messageDispatched     = "EndpointSlice are dispatched successfully"
)

// ImportStatus is the status of a ServiceImport.
func ImportStatus(d Decision) multiclusterv1alpha1.ServiceImportStatus {
	var status multiclusterv1alpha1.ServiceImportStatus
	for _, c := range d.From {
		status.Clusters = append(status.Clusters, multiclusterv1alpha1.ClusterStatus{Cluster: c})
	}
	return status
}

// ServiceApplied is the condition that says whether the clusters have the Service. trouble is why it is not even sent, empty if it is.
func ServiceApplied(clusters []string, services map[string]*workv1alpha1.Work, trouble string) metav1.Condition {
	var refused, waiting []string
	for _, c := range clusters {
		switch applied, why := Applied(services[c]); {
		case why != "":
			refused = append(refused, fmt.Sprintf("cluster %q: %s", c, why))
		case !applied:
			waiting = append(waiting, c)
		}
	}
	const kind = networkingv1alpha1.ServiceApplied
	switch {
	case trouble != "":
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: kind + "Failed", Message: trouble}
	case len(refused) > 0:
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: kind + "Failed", Message: shortened(refused)}
	case len(waiting) > 0:
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: "Applying", Message: "The Service is on its way to " + strings.Join(waiting, ", ") + "."}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind + "Succeed", Message: messageServiceApplied}
}

// Dispatched is the condition that says whether the consumers know the providers' endpoints. standing are the Works as they are.
func Dispatched(d Decision, standing []*workv1alpha1.Work, trouble string) metav1.Condition {
	const kind = networkingv1alpha1.EndpointSliceDispatched
	if trouble == "" {
		if refused := Refused(d, standing); len(refused) > 0 {
			trouble = shortened(refused)
		}
	}
	switch {
	case trouble != "":
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: kind + "Failed", Message: trouble}
	case len(d.Silent) > 0:
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: "ProviderSilent",
			Message: "Not heard from " + strings.Join(d.Silent, ", ") + " since the hub looks; what was known of it holds."}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind + "Succeed", Message: messageDispatched}
}

// Refused are the Works of the decision that their clusters refused, a line for each cluster, sorted.
func Refused(d Decision, standing []*workv1alpha1.Work) []string {
	wanted := map[string]bool{}
	for _, w := range d.Works {
		wanted[w.Namespace+"/"+w.Name] = true
	}
	by := map[string]string{}
	for _, w := range standing {
		cluster, err := names.ClusterOf(w.Namespace)
		if _, why := Applied(w); err == nil && why != "" && wanted[w.Namespace+"/"+w.Name] && (by[cluster] == "" || why < by[cluster]) {
			by[cluster] = why
		}
	}
	var out []string
	for cluster, why := range by {
		out = append(out, fmt.Sprintf("cluster %q: %s", cluster, why))
	}
	slices.Sort(out)
	return out
}

// shortened keeps a message readable however many clusters there are.
func shortened(lines []string) string {
	const most = 3
	text := strings.Join(lines[:min(len(lines), most)], "; ")
	if n := len(lines); n > most {
		text += fmt.Sprintf("; and %d more", n-most)
	}
	return text
}

// SetConditions puts the conditions into a status, dated when they change.
func SetConditions(all []metav1.Condition, generation int64, now metav1.Time, set ...metav1.Condition) []metav1.Condition {
	all = slices.Clone(all)
	for _, c := range set {
		c.ObservedGeneration, c.LastTransitionTime = generation, now
		if is := meta.FindStatusCondition(all, c.Type); is != nil && is.Status == c.Status {
			c.LastTransitionTime = is.LastTransitionTime
		}
		meta.SetStatusCondition(&all, c)
	}
	return all
}
