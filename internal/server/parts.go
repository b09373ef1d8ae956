package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/console"
	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/controller/admission"
	core "github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	explain "github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/member/fleetmetrics"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/member/tunnel"
	"github.com/argosy-io/argosy/internal/search"
	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
	"github.com/argosy-io/argosy/internal/why"
)

// AllParts returns the parts of a whole hub: the one place where they are put together.
func AllParts() Parts {
	// fleet is the scheduler's view of the fleet, once the scheduler runs.
	var fleet atomic.Pointer[capacity.Fleet]
	// cache is the controllers' cache while they run here.
	var cache atomic.Pointer[console.Cache]
	// engine has the caches of search, once the API server is built.
	var engine atomic.Pointer[search.Engine]
	// restored counts what a restore left, once the loops run.
	var restored atomic.Pointer[func() (map[string]int, int)]
	synced := func() *capacity.Fleet {
		if f := fleet.Load(); f != nil && f.Synced() {
			return f
		}
		return nil
	}
	room := func(_ context.Context, b workv1alpha2.Binding) (schedule.Capacity, explain.Limits) {
		if f := synced(); f != nil {
			return f.RoomAndLimits(b, f.Snapshot())
		}
		return nil, nil
	}
	nodes := func(cluster string) (r core.Record, known, running bool) {
		f := synced()
		if f == nil {
			return core.Record{}, false, false
		}
		r, known = f.Record(cluster)
		return r, known, true
	}
	troubled := func(ctx context.Context, namespace string, b workv1alpha2.Binding) ([]pods.Workload, bool, error) {
		f := synced()
		if f == nil {
			return nil, false, nil
		}
		all, err := f.Troubled(ctx, namespace)
		if b != nil {
			all = f.AddRefusals(ctx, b, all)
		}
		return all, true, err
	}
	var follow sync.Once
	var grants acting.Source
	// of returns the users who act under their own name in members. It is watched once for the proxy and the loops.
	of := func(d Deps) acting.Source {
		follow.Do(func() { grants = acting.Follow(d.Config, d.Done) })
		return grants
	}
	var open sync.Once
	var tunnels *tunnel.Tunnels
	// reach returns the tunnels of agents, which the proxy and the loops use.
	reach := func(d Deps) *tunnel.Tunnels {
		open.Do(func() {
			tunnels = tunnel.New(d.Replicated)
			go func() { <-d.Done; tunnels.Close() }()
		})
		return tunnels
	}
	return Parts{
		Admission: func(d Deps) []apiserver.AdmissionPlugin {
			var plugins []apiserver.AdmissionPlugin
			tolerations := d.Settings.Taints.tolerations()
			for _, p := range admission.Plugins(admission.Options{ForbidOverwrite: d.Settings.ForbidOverwrite,
				QuotasOff: d.Scheduler.QuotasOff, Scheme: controller.Scheme,
				NoExecuteTaintPolicies: d.Settings.Taints.AllowNoExecutePolicy, Tolerations: &tolerations}) {
				plugins = append(plugins, apiserver.AdmissionPlugin{Name: p.Name, New: p.New})
			}
			return plugins
		},
		Handler: func(d Deps, next http.Handler) http.Handler {
			hub := reader(d.Config)
			identity := func(ctx context.Context) (string, error) {
				r, err := hub()
				if err != nil {
					return "", err
				}
				return member.Identity(ctx, r)
			}
			agents, err := newRegistered(d.Config, hub, d.Done)
			if err != nil { // the configuration is the hub's own
				return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { apistatus.Write(w, err) })
			}
			tunnels := reach(d)
			members := proxy.New(proxy.Options{Hub: hub, Grants: of(d), Identity: identity,
				Requests: d.Settings.Members.ProxyRequests, Tunnels: tunnels})
			searches, err := newSearch(d, hub, members, tunnels)
			if err != nil {
				return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { apistatus.Write(w, err) })
			}
			engine.Store(searches)
			return agents.handler(tunnels.Handler(hub, members.Handler(searches.Handler(
				fleetMetrics(d, hub, members, historyHandler(d, explained(d, room, nodes, troubled,
					consoleHandler(d, &cache, room, troubled,
						podRequests(unregistering(admission.KeepNamespace(next)))))))))))
		},
		Searched: func() search.Usage {
			if e := engine.Load(); e != nil {
				return e.Usage()
			}
			return search.Usage{}
		},
		Restored: func() (map[string]int, int) {
			if count := restored.Load(); count != nil {
				return (*count)()
			}
			return nil, 0
		},
		Controllers: func(ctx context.Context, d Deps) error {
			networks, err := d.Settings.ReleaseChecks.networks()
			if err != nil {
				return err
			}
			o := controller.Options{
				Scheduler:              d.Scheduler,
				CheckNetworks:          networks,
				Config:                 d.Config,
				Tunnels:                reach(d),
				ClusterStatusFrequency: d.Settings.Members.StatusUpdateFrequency.Duration,
				MemberLimits:           d.Settings.Members.limits(),
				Successes:              commit.SuccessEvents(d.Settings.SuccessEvents),
				ClusterThresholds: membership.Thresholds{Failure: d.Settings.Members.FailureThreshold.Duration,
					Success: d.Settings.Members.SuccessThreshold.Duration},
				NoExecuteTaintPolicies: d.Settings.Taints.AllowNoExecutePolicy,
				WorkDeletions:          d.Settings.Members.WorkDeletions,
				LastReported:           d.Settings.Members.StaleStatus == StaleAsLastReported,
				Fleet:                  fleet.Store,
				Cache: func(c ctrlcache.Cache) {
					if c == nil {
						cache.Store(nil)
						return
					}
					cache.Store(new(console.Cache(c)))
				},
				Restored:        func(count func() (map[string]int, int)) { restored.Store(&count) },
				Estimator:       d.Settings.Members.Estimator.options(),
				Failover:        d.Settings.Failover.options(d.Settings.Members, d.Settings.Taints),
				Autoscaling:     d.Settings.Autoscaling.options(),
				Grants:          of(d),
				ForbidOverwrite: d.Settings.ForbidOverwrite,
				ClusterSet:      d.Settings.MCS == MCSAuto,
				Turn:            d.Turn,
				Inventory:       d.Inventory,
				History:         d.History,
			}
			if e := engine.Load(); e != nil {
				o.Caches = e
			}
			if c := d.Settings.Descheduler; d.Settings.runs("descheduler") {
				o.Descheduling = &controller.Descheduling{Interval: c.Interval.Duration,
					Unschedulable: c.UnschedulableThreshold.Duration}
			}
			return controller.Run(ctx, o)
		},
	}
}

// reader returns a client for reads with all permissions, once the hub's API server is created.
func reader(config *rest.Config) proxy.HubReader {
	return sync.OnceValues(func() (client.Reader, error) {
		s := runtime.NewScheme()
		if err := errors.Join(clusterv1alpha1.AddToScheme(s), corev1.AddToScheme(s)); err != nil {
			return nil, err
		}
		// The kinds are known; no discovery is needed.
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
		return client.New(config, client.Options{Scheme: s, Mapper: mapper})
	})
}

// explained answers why.Path, why.RoomPath, why.NodesPath, why.PodsPath, why.SchedulerPath and the pods of a
// ResourceBinding, and leaves all else to next.
func explained(d Deps, room why.Room, nodes why.Nodes, troubled why.Troubled, next http.Handler) http.Handler {
	connect := func() (client.Reader, meta.RESTMapper, error) { return why.Connect(d.Config) }
	scheduler := d.scheduler()
	served := map[string]http.Handler{
		why.Path:          why.Handler(connect, room, scheduler, troubled),
		why.RoomPath:      why.RoomHandler(connect, room),
		why.NodesPath:     why.NodesHandler(connect, nodes),
		why.PodsPath:      why.PodsHandler(connect, troubled),
		why.SchedulerPath: why.SchedulerHandler(connect, scheduler),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := served[r.URL.Path]
		if binding, is := podsAsked(r); is {
			h = why.BindingPodsHandler(connect, troubled, binding)
		} else if h == nil {
			h = next
		}
		h.ServeHTTP(w, r)
	})
}

// fleetMetrics answers requests for the metrics of members, and leaves all else to next.
func fleetMetrics(d Deps, hub proxy.HubReader, members *proxy.Proxy, next http.Handler) http.Handler {
	return fleetmetrics.Handler(fleetmetrics.Options{Hub: hub, Members: members, Config: d.Config,
		Authorizer: d.Authorizer, Discovery: d.Discovery, Limits: d.Settings.Members.limits()}, next)
}

// scheduler returns the settings of the scheduler and of failover.
func (d Deps) scheduler() why.Scheduler {
	c := d.Settings
	return why.Scheduler{Settings: d.Scheduler, Failover: c.Failover.options(c.Members, c.Taints).Options}
}

// podsAsked returns the ResourceBinding of a request for pods. The hub has authorized the request as one for that
// subresource.
func podsAsked(r *http.Request) (binding types.NamespacedName, is bool) {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest || info.APIGroup != workv1alpha2.GroupVersion.Group ||
		info.APIVersion != workv1alpha2.GroupVersion.Version ||
		info.Resource != "resourcebindings" || info.Subresource != why.BindingPods || info.Namespace == "" ||
		info.Name == "" {
		return binding, false
	}
	return types.NamespacedName{Namespace: info.Namespace, Name: info.Name}, true
}

// consoleHandler answers console.Paths if this hub serves the console, and leaves all else to next.
func consoleHandler(d Deps, cache *atomic.Pointer[console.Cache], room why.Room, troubled why.Troubled,
	next http.Handler) http.Handler {
	if d.Console == nil {
		return next
	}
	return console.NewAPI(console.Options{Config: d.Config, Authorizer: d.Authorizer, Troubled: troubled, Room: room,
		Cached: func() console.Cache {
			if c := cache.Load(); c != nil {
				return *c
			}
			return nil
		},
		Findings:   d.Findings,
		HealthPath: HealthPath, Join: d.Join, Simulate: d.Simulate, URL: d.URL, Done: d.Done,
		History:   d.History,
		Scheduler: d.scheduler(),
	}, d.Console).Handler(next)
}
