package why

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/scope"
)

// RoomPath is where RoomHandler answers, as JSON: GET /argosy/room?namespace=shop&binding=web-deployment is for how many
// more replicas each cluster has room, such as {"m1": 3}; clusters of which that is not known are left out. Who may get it as
// a nonResourceURL learns that of every binding: by default administrators.
const RoomPath = "/argosy/room"

// Room is what the scheduler knows of the room for a binding; nil if it knows no more than the clusters' summaries say.
type Room func(ctx context.Context, b workv1alpha2.Binding) schedule.Capacity

// RoomHandler answers for the scheduler of the same process, if it runs there.
func RoomHandler(connect func() (client.Reader, meta.RESTMapper, error), room Room) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "ask with GET")
			return
		}
		reader, _, err := connect()
		if err != nil {
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, fmt.Sprintf("reach the hub's API: %v", err))
			return
		}
		key := types.NamespacedName{Namespace: req.URL.Query().Get("namespace"), Name: req.URL.Query().Get("binding")}
		b, err := scope.Bindings.Get(req.Context(), reader, key)
		if err != nil {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("read the binding: %v", err))
			return
		}
		clusters := &clusterv1alpha1.ClusterList{}
		if err := reader.List(req.Context(), clusters); err != nil {
			refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, fmt.Sprintf("list the clusters: %v", err))
			return
		}
		of := room(req.Context(), b)
		if of == nil {
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the scheduler does not run in this replica of the hub")
			return
		}
		answers := map[string]int32{}
		for i := range clusters.Items {
			if n, known := of(clusters.Items[i].Name); known {
				answers[clusters.Items[i].Name] = n
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answers) // who asked is gone if it fails
	})
}

// RoomOf asks a hub at RoomPath. A hub that gives no answer, or not to us, leaves what its clusters' summaries say.
func RoomOf(hub *rest.Config) Room {
	return func(ctx context.Context, b workv1alpha2.Binding) schedule.Capacity {
		d, err := discovery.NewDiscoveryClientForConfig(hub)
		if err != nil {
			return nil
		}
		raw, err := d.RESTClient().Get().AbsPath(RoomPath).Param("namespace", b.GetNamespace()).Param("binding", b.GetName()).DoRaw(ctx)
		var answers map[string]int32
		if err != nil || json.Unmarshal(raw, &answers) != nil {
			return nil
		}
		return schedule.Answers(answers)
	}
}
