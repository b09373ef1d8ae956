package history

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/usage"
	"github.com/argosy-io/argosy/internal/history"
)

// sample records once a day what workloads request. sampled has the time of the last sample that is known.
func (r *recorder) sample(ctx context.Context, sampled *time.Time) error {
	now := r.Clock.Now()
	if now.Sub(*sampled) < history.UsagePeriod {
		return nil
	}
	var bindings workv1alpha2.ResourceBindingList
	if err := r.client.List(ctx, &bindings, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ResourceBindings: %w", err)
	}
	all := make([]workv1alpha2.Binding, len(bindings.Items))
	for i := range bindings.Items {
		all[i] = &bindings.Items[i]
	}
	samples := usage.Samples(all)
	if len(samples) == 0 && r.Source.Opened() == nil {
		return nil // the database need not be opened
	}
	return r.write(ctx, func(store *history.Store) error {
		// Another process may have written it.
		last, err := store.UsageSampled(ctx, now)
		if err != nil {
			return err
		}
		if before, err := time.Parse(time.RFC3339, last); err == nil && now.Sub(before) < history.UsagePeriod {
			*sampled = before
			return nil
		}
		if err := store.RecordUsage(ctx, samples, now); err != nil {
			return err
		}
		*sampled = now
		return nil
	})
}
