package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
)

// needsRetry is the delay before the next check of a Workflow whose dependencies are not there yet.
const needsRetry = 200 * time.Millisecond

// unmet returns the dependencies of a template that have not reached a cluster; empty if all have. It matters for a
// Workflow, which fails for good if its first pod is rejected, and for a workload that replaces a copy in another
// cluster. Other workloads retry their pods.
func (r *reconciler) unmet(ctx context.Context, b workv1alpha2.Binding, template *unstructured.Unstructured,
	cluster string) (string, error) {
	if !kind.Facts(template).IsWorkflow() && len(b.BindingSpec().GracefulEvictionTasks) == 0 ||
		!dependency.Distributes(b) {
		return "", nil
	}
	named, err := r.Interpreter.Dependencies(ctx, template)
	recorded, unread := propagate.RecordedDependencies(b)
	if err != nil || unread != nil {
		return "", nil // the dependency controller reports it
	}
	follows := false
	for _, ref := range slices.Concat(recorded, named) {
		if ref.Name == "" {
			continue
		}
		obj, found, err := r.Templates.Get(ctx, match.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
		if err != nil && !meta.IsNoMatchError(err) {
			return "", err
		}
		if !found || propagate.Excluded(match.TemplateOf(obj)) {
			continue
		}
		follows = true
		work, err := r.work(ctx, cluster, identity.FromManifest(obj))
		if err != nil {
			return "", err
		}
		if lacks := dispatch.Pending(work); lacks != "" {
			return fmt.Sprintf("%s %s, which it depends on, %s", ref.Kind, ref.Name, lacks), nil
		}
	}
	if follows && len(recorded) == 0 {
		return "its dependencies are not fully known yet", nil
	}
	return "", nil
}
