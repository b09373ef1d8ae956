package why

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// UnhealthyWorkload is a template that is Unhealthy in a cluster.
type UnhealthyWorkload struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Cluster    string `json:"cluster"`
	// Reason summarizes the status in the cluster; empty if it has none.
	Reason string `json:"reason,omitempty"`
}

// UnhealthyWorkloads returns the templates of bindings that are Unhealthy, once for each cluster, by namespace, kind,
// name and cluster.
func UnhealthyWorkloads(bindings []workv1alpha2.Binding) (all []UnhealthyWorkload) {
	for _, b := range bindings {
		if b.GetDeletionTimestamp() != nil {
			continue
		}
		of := b.BindingSpec().Resource
		for _, item := range b.BindingStatus().AggregatedStatus {
			if item.Health != workv1alpha1.ResourceUnhealthy {
				continue
			}
			w := UnhealthyWorkload{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name,
				Cluster: item.ClusterName}
			if item.Status != nil {
				w.Reason = brief(item.Status.Raw)
			}
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b UnhealthyWorkload) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Cluster, b.Cluster))
	})
	return all
}

// messageMost is the most bytes of a message that a member reported.
const messageMost = 256

// failure quotes the condition by which a workload that runs once, such as a Job, reports that it failed; empty if it
// has not failed.
func failure(status map[string]any) string {
	for _, kind := range []string{"Failed", "FailureTarget"} {
		for _, c := range fields.Objects(status, "conditions") {
			if fields.Text(c, "type") != kind || fields.Text(c, "status") != "True" {
				continue
			}
			parts := []string{fields.Text(c, "reason"), strings.Join(strings.Fields(fields.Text(c, "message")), " ")}
			parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
			return text.Cut(strings.Join(parts, ": "), messageMost)
		}
	}
	return ""
}

// notes returns why a workload failed, and the notes that the hub adds to a status.
func notes(status json.RawMessage) []string {
	var reported map[string]any
	if json.Unmarshal(status, &reported) != nil {
		return nil
	}
	return append(slices.DeleteFunc([]string{failure(reported)}, func(s string) bool { return s == "" }),
		interpret.Notes(reported)...)
}
