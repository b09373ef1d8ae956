package server

import (
	"context"
	"net/http"

	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/controller/admission"
	"github.com/argosy-io/argosy/internal/core/convert"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
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
		Handler: func(_ Deps, next http.Handler) http.Handler { return admission.KeepNamespace(next) },
		Convert: convert.Review,
		Controllers: func(ctx context.Context, d Deps) error {
			return controller.Run(ctx, controller.Options{
				Config:                 d.Config,
				ClusterStatusFrequency: d.Members.StatusUpdateFrequency.Duration,
				ClusterThresholds:      membership.Thresholds{Failure: d.Members.FailureThreshold.Duration, Success: d.Members.SuccessThreshold.Duration},
			})
		},
	}
}
