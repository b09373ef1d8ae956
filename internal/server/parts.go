package server

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/controller/admission"
	"github.com/argosy-io/argosy/internal/core/convert"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
	"github.com/argosy-io/argosy/internal/why"
)

// AllParts are the parts of a whole hub: the one place where they are put together.
func AllParts() Parts {
	return Parts{
		Admission: func(Deps) []apiserver.AdmissionPlugin {
			var plugins []apiserver.AdmissionPlugin
			for _, p := range admission.Plugins() {
				plugins = append(plugins, apiserver.AdmissionPlugin{Name: p.Name, New: p.New})
			}
			return plugins
		},
		Handler: func(d Deps, next http.Handler) http.Handler { return explained(d, admission.KeepNamespace(next)) },
		Convert: convert.Review,
		Controllers: func(ctx context.Context, d Deps) error {
			o := controller.Options{
				Config:                 d.Config,
				ClusterStatusFrequency: d.Members.StatusUpdateFrequency.Duration,
				ClusterThresholds:      membership.Thresholds{Failure: d.Members.FailureThreshold.Duration, Success: d.Members.SuccessThreshold.Duration},
				Estimator:              d.Members.Estimator.options(),
			}
			if d.Descheduler != nil {
				o.Descheduling = &controller.Descheduling{Interval: d.Descheduler.Interval.Duration, Unschedulable: d.Descheduler.UnschedulableThreshold.Duration}
			}
			return controller.Run(ctx, o)
		},
	}
}

// explained answers why.Path, and leaves all else to next.
func explained(d Deps, next http.Handler) http.Handler {
	explain := why.Handler(func() (client.Reader, meta.RESTMapper, error) { return why.Connect(d.Config) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == why.Path {
			explain.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
