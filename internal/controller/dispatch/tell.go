package dispatch

import (
	"fmt"
	"slices"
	"strings"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/scope"
)

// emitWritten records events for the written Works and their overrides, one for all clusters. errs has the error of
// each result.
func (r *reconciler) emitWritten(b workv1alpha2.Binding, in dispatch.Input, results []dispatch.Result, errs []error) {
	written, failed := 0, 0
	var clusters, policies []string
	for i, res := range results {
		switch {
		case errs[i] != nil || res.Err != nil:
			failed++
			continue
		case !needed(in.Existing[res.Cluster], res.Work):
			continue
		}
		written++
		for j, rule := range res.Applied.Rules {
			name := "cluster override policy(" + rule.Policy + ")"
			if rule.Namespaced {
				name = "override policy(" + in.Template.GetNamespace() + "/" + rule.Policy + ")"
			}
			if !slices.Contains(policies, name) {
				policies = append(policies, name)
			}
			if j == 0 {
				clusters = append(clusters, res.Cluster)
			}
		}
	}
	if len(policies) > 0 {
		r.events.RecordSuccess(workv1alpha2.EventApplyOverridePolicySucceed,
			fmt.Sprintf("Apply %s for cluster(%s) succeed.", strings.Join(policies, ", "), text.Names(clusters, 10)),
			in.Template)
	}
	if written > 0 && failed == 0 {
		r.events.RecordStep(workv1alpha2.EventSyncWorkSucceed, "Sync work of "+scope.Describe(b)+" successful.", b,
			in.Template)
	}
}
