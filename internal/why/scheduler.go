package why

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// SchedulerPath is where SchedulerHandler answers, as JSON: GET /argosy/scheduler is how the hub's scheduler is set,
// such as {"name": "default-scheduler", "plugins": ["*", "-TaintToleration"], "failover": {"brakeShare": 0.5}}.
const SchedulerPath = "/argosy/scheduler"

// Scheduler is how a hub's scheduler and its failover are set. The zero value is the default.
type Scheduler struct {
	schedule.Settings
	// Failover is how the hub fails over.
	Failover failover.Options
}

// schedulerJSON is a Scheduler on the wire.
type schedulerJSON struct {
	Name      string            `json:"name"`
	Plugins   []string          `json:"plugins"`
	KeepEmpty bool              `json:"keepEmpty,omitempty"`
	QuotasOff bool              `json:"quotasOff,omitempty"`
	Failover  *failover.Options `json:"failover,omitempty"`
}

// SchedulerHandler returns how the scheduler is set.
func SchedulerHandler(connect Connector, s Scheduler) http.Handler {
	return answering(connect, func(context.Context, url.Values, client.Reader, meta.RESTMapper) (any, error) {
		return schedulerJSON{Name: s.Name, Plugins: strings.Split(s.Plugins.String(), ","), KeepEmpty: s.KeepEmpty,
			QuotasOff: s.QuotasOff, Failover: &s.Failover}, nil
	})
}

// SchedulerOf reads the settings of a hub's scheduler at SchedulerPath. It returns the defaults if the hub does not
// answer or refuses.
func SchedulerOf(ctx context.Context, hub *rest.Config) Scheduler {
	var says schedulerJSON
	if AskHub(ctx, hub, SchedulerPath, nil, &says) != nil {
		return Scheduler{}
	}
	set := Scheduler{Settings: schedule.Settings{Name: says.Name, KeepEmpty: says.KeepEmpty, QuotasOff: says.QuotasOff}}
	if says.Failover != nil {
		set.Failover = *says.Failover
	}
	if plugins, err := schedule.ParsePlugins(says.Plugins); err == nil { // else it has a plugin of another release
		set.Plugins = plugins
	}
	return set
}
