package execute

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/member"
)

// eventDefinitionReleased: a definition that the hub created stays in the cluster, because objects of its kind exist.
//
//reference:event Normal on Cluster
const eventDefinitionReleased = "DefinitionReleased"

// definitionSettle is how long a definition waits for Works of its objects to be deleted as well: who deletes several
// templates, or sends them elsewhere, does so one after another.
const definitionSettle = 5 * time.Second

// endDefinition says whether a definition of a member is released instead of deleted, for the objects of its kind; or
// when to ask again.
func (r *reconciler) endDefinition(ctx context.Context, m *member.Member, cluster *clusterv1alpha1.Cluster,
	work *workv1alpha1.Work, observed *unstructured.Unstructured) (stays bool, after time.Duration, err error) {
	settles := r.Clock.Since(work.DeletionTimestamp.Time) < definitionSettle
	return r.endOf(ctx, cluster, work, observed, eventDefinitionReleased, settles,
		func(workOf worksOf) (execute.Fate, string, error) {
			objects, more, err := m.Instances(ctx, observed)
			if err != nil {
				return "", "", err
			}
			fate, reason := execute.EndDefinition(observed, objects, more, workOf)
			return fate, reason, nil
		})
}
