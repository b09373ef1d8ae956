package why

import (
	"context"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
)

// NodesPath is where NodesHandler answers, as JSON: GET /argosy/nodes?cluster=m1 is what the scheduler counts the room
// of a cluster by, a capacity.Record, or null where it goes by the cluster's summary. Who may get it as a
// nonResourceURL learns of nodes, quotas, and what runs on them in every cluster: by default administrators.
const NodesPath = "/argosy/nodes"

// Nodes is what the scheduler knows of a cluster, and whether it does; running is false while no scheduler does.
type Nodes func(cluster string) (r capacity.Record, known, running bool)

// NodesHandler answers for the scheduler of the same process, if it runs there.
func NodesHandler(connect Connector, nodes Nodes) http.Handler {
	return answering(connect, func(_ context.Context, v url.Values, _ client.Reader, _ meta.RESTMapper) (any, error) {
		if v.Get("cluster") == "" {
			return nil, fail(metav1.StatusReasonBadRequest, "name the cluster, as ?cluster=m1")
		}
		r, known, running := nodes(v.Get("cluster"))
		switch {
		case !running:
			return nil, fail(metav1.StatusReasonServiceUnavailable, "the scheduler does not run in this replica of the hub")
		case !known:
			return nil, nil
		}
		return r, nil
	})
}

// NodesOf asks a hub at NodesPath about a cluster; nil where it goes by the summary. The error is an API error where
// the hub refuses, or does not know the path.
func NodesOf(ctx context.Context, hub *rest.Config, cluster string) (*capacity.Record, error) {
	var r *capacity.Record
	err := AskHub(ctx, hub, NodesPath, map[string]string{"cluster": cluster}, &r)
	return r, err
}
