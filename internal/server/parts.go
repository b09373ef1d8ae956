package server

import (
	"context"

	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/core/convert"
)

// AllParts are the parts of a whole hub: the one place where they are put together.
func AllParts() Parts {
	return Parts{
		Convert: convert.Review,
		Controllers: func(ctx context.Context, d Deps) error {
			return controller.Run(ctx, controller.Options{Config: d.Config})
		},
	}
}
