package why

import (
	"context"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/scope"
)

// RoomPath serves the room for a binding as JSON: GET /argosy/room?namespace=shop&binding=web-deployment returns how
// many more replicas fit in each cluster, and the limit in those that cannot take all, such as {"m1": {"replicas": 3,
// "limit": {"quota": "team", "resource": "cpu"}}}; clusters with unknown room are left out. A user with this
// nonResourceURL can read that of every binding.
const RoomPath = "/argosy/room"

// Room returns the scheduler's room for a binding, and what limits it; nil if the scheduler uses only the summaries of
// clusters.
type Room func(ctx context.Context, b workv1alpha2.Binding) (schedule.Capacity, why.Limits)

// answer is the room in a cluster.
type answer struct {
	Replicas int32           `json:"replicas"`
	Limit    *capacity.Limit `json:"limit,omitempty"`
}

// RoomHandler serves RoomPath with the scheduler of the same process, if it runs there.
func RoomHandler(connect Connector, room Room) http.Handler {
	return answering(connect, func(ctx context.Context, v url.Values, r client.Reader, _ meta.RESTMapper) (any, error) {
		b, err := scope.Bindings.Get(ctx, r, types.NamespacedName{Namespace: v.Get("namespace"), Name: v.Get("binding")})
		if err != nil {
			return nil, fail(metav1.StatusReasonNotFound, "read the binding: %v", err)
		}
		clusters, err := facts.ClusterList(ctx, r)
		if err != nil {
			return nil, err
		}
		of, limits := room(ctx, b)
		if of == nil {
			return nil, fail(metav1.StatusReasonServiceUnavailable, "the scheduler does not run in this replica of the hub")
		}
		answers := map[string]answer{}
		for _, c := range clusters {
			n, known := of(c.Name)
			if !known {
				continue
			}
			a := answer{Replicas: n}
			if int64(n) < schedule.Wanted(b.BindingSpec()) {
				if limit, known := limits(c.Name); known {
					a.Limit = &limit
				}
			}
			answers[c.Name] = a
		}
		return answers, nil
	})
}

// RoomOf queries a hub at RoomPath. If the hub or the user's rights do not allow it, the clusters' summaries are used.
func RoomOf(hub *rest.Config) Room {
	return func(ctx context.Context, b workv1alpha2.Binding) (schedule.Capacity, why.Limits) {
		var answers map[string]answer
		if AskHub(ctx, hub, RoomPath, map[string]string{"namespace": b.GetNamespace(), "binding": b.GetName()},
			&answers) != nil {
			return nil, nil
		}
		room := func(cluster string) (int32, bool) {
			a, known := answers[cluster]
			return a.Replicas, known
		}
		return room, func(cluster string) (capacity.Limit, bool) {
			limit := answers[cluster].Limit
			if limit == nil {
				return capacity.Limit{}, false
			}
			return *limit, true
		}
	}
}
