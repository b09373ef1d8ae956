package why

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/schedule"
)

// SchedulerPath is where SchedulerHandler answers, as JSON: GET /argosy/scheduler is how the hub's scheduler is set, such as
// {"name": "default-scheduler", "plugins": ["*", "-TaintToleration"]}.
const SchedulerPath = "/argosy/scheduler"

// Scheduler is how a hub's scheduler is set. The zero value is the default.
type Scheduler struct {
	Name    string
	Plugins schedule.Plugins
}

// schedulerJSON is a Scheduler on the wire.
type schedulerJSON struct {
	Name    string   `json:"name"`
	Plugins []string `json:"plugins"`
}

// SchedulerHandler says how the scheduler is set.
func SchedulerHandler(connect Connector, s Scheduler) http.Handler {
	return answering(connect, func(context.Context, url.Values, client.Reader, meta.RESTMapper) (any, error) {
		return schedulerJSON{Name: s.Name, Plugins: strings.Split(s.Plugins.String(), ",")}, nil
	})
}

// SchedulerOf asks a hub at SchedulerPath. A hub that gives no answer, or not to us, is taken for one that is set as by default.
func SchedulerOf(ctx context.Context, hub *rest.Config) Scheduler {
	var says schedulerJSON
	if askHub(ctx, hub, SchedulerPath, nil, &says) != nil {
		return Scheduler{}
	}
	plugins, err := schedule.ParsePlugins(says.Plugins)
	if err != nil {
		return Scheduler{Name: says.Name} // it has a plugin of another release
	}
	return Scheduler{Name: says.Name, Plugins: plugins}
}
