package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/convert/kruise"
	"github.com/argosy-io/argosy/internal/core/dispatch"
)

// tellVersions keeps the condition VersionServed of a binding: clusters that cannot be sent the template, because the
// version of its kind that they serve lacks what it says. There is none before there was such a cluster. The binding
// returned is the one to go on with.
func (r *reconciler) tellVersions(ctx context.Context, b workv1alpha2.Binding,
	results []dispatch.Result) (workv1alpha2.Binding, error) {
	var refused []string
	for _, res := range results {
		if lossy := lossyOf(res.Err); lossy != nil {
			refused = append(refused, fmt.Sprintf("cluster %q: %v", res.Cluster, lossy))
		}
	}
	c := metav1.Condition{Type: workv1alpha2.VersionServed, Status: metav1.ConditionTrue,
		Reason: workv1alpha2.ReasonVersionServed, Message: "every cluster serves a version with all fields of the template"}
	if len(refused) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, workv1alpha2.ReasonFieldsNotServed, strings.Join(refused, "\n")
	}
	return r.setCondition(ctx, b, c)
}

// lossyOf is the error of a conversion that cannot say all, if err is of one. Trying again changes nothing: that the
// template or what the cluster serves changes is an event.
func lossyOf(err error) *kruise.Lossy {
	var lossy *kruise.Lossy
	if errors.As(err, &lossy) {
		return lossy
	}
	return nil
}
