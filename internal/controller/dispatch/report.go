package dispatch

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// annotate writes to the binding what the Works alone do not record. It is the only write of the binding before its
// Works. It returns the binding as it is then.
func (r *reconciler) annotate(ctx context.Context, b workv1alpha2.Binding,
	d dispatch.Decision) (workv1alpha2.Binding, error) {
	annotations := d.Annotations(b.GetAnnotations())
	if maps.Equal(annotations, b.GetAnnotations()) {
		return b, nil
	}
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	want.SetAnnotations(annotations)
	_, err := commit.Update(ctx, r.client, b, want)
	return want, err
}

// report writes the conditions of the binding if they changed. It is the only write of the binding after its Works.
// errs are the results of writing them.
func (r *reconciler) report(ctx context.Context, b workv1alpha2.Binding, d dispatch.Decision, waiting []string,
	errs ...error) error {
	var refused []string
	for _, err := range errs {
		if isLasting(err) {
			line := err.Error()
			if d.Err == nil {
				line = text.Printable(line) // one line per cluster
			}
			refused = append(refused, line)
		}
	}
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	status := want.BindingStatus()
	status.Conditions = d.Report(status.Conditions, waiting, refused, metav1.NewTime(r.Clock.Now()))
	_, err := commit.Status(ctx, r.client, b, want)
	return err
}

// isLasting reports whether the condition WorksWritten reports err: a retry does not change it, and no other condition
// reports it.
func isLasting(err error) bool {
	return err != nil && !commit.Transient(err) && !dispatch.HasOwnCondition(err)
}
