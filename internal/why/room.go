package why

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/scope"
)

// RoomPath is where RoomHandler answers, as JSON: GET /argosy/room?namespace=shop&binding=web-deployment is for how
// many more replicas each cluster has room, such as {"m1": 3}; clusters of which that is not known are left out. Who
// may get it as a nonResourceURL learns that of every binding: by default administrators.
const RoomPath = "/argosy/room"

// Room is what the scheduler knows of the room for a binding; nil if it knows no more than the clusters' summaries say.
type Room func(ctx context.Context, b workv1alpha2.Binding) schedule.Capacity

// RoomHandler answers for the scheduler of the same process, if it runs there.
func RoomHandler(connect Connector, room Room) http.Handler {
	return answering(connect, func(ctx context.Context, v url.Values, r client.Reader, _ meta.RESTMapper) (any, error) {
		b, err := scope.Bindings.Get(ctx, r, types.NamespacedName{Namespace: v.Get("namespace"), Name: v.Get("binding")})
		if err != nil {
			return nil, fail(metav1.StatusReasonNotFound, "read the binding: %v", err)
		}
		clusters := &clusterv1alpha1.ClusterList{}
		if err := r.List(ctx, clusters); err != nil {
			return nil, fmt.Errorf("list the clusters: %w", err)
		}
		of := room(ctx, b)
		if of == nil {
			return nil, fail(metav1.StatusReasonServiceUnavailable, "the scheduler does not run in this replica of the hub")
		}
		answers := map[string]int32{}
		for i := range clusters.Items {
			if n, known := of(clusters.Items[i].Name); known {
				answers[clusters.Items[i].Name] = n
			}
		}
		return answers, nil
	})
}

// RoomOf asks a hub at RoomPath. A hub that gives no answer, or not to us, leaves what its clusters' summaries say.
func RoomOf(hub *rest.Config) Room {
	return func(ctx context.Context, b workv1alpha2.Binding) schedule.Capacity {
		var answers map[string]int32
		if askHub(ctx, hub, RoomPath, map[string]string{"namespace": b.GetNamespace(), "binding": b.GetName()},
			&answers) != nil {
			return nil
		}
		return schedule.Answers(answers)
	}
}
