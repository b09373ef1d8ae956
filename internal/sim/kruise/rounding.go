package kruise

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// keepOld is how many of replicas the partition of a CloneSet keeps at the old revision. A percentage rounds up, but
// below 100% it never means all of several pods; a nil partition keeps none.
func keepOld(partition *intstr.IntOrString, replicas int32) (int32, error) {
	n, err := fleet.KeptOld(plain(partition), int64(replicas), fleet.Up)
	if err != nil {
		return 0, fmt.Errorf("partition: %w", err)
	}
	return int32(n), nil
}

// surgeAndUnavailable returns the pods of a CloneSet that an update may add and make unavailable. The surge rounds up
// and is none while paused; unavailability, 20% if not set, rounds down when there is a surge to make up for it.
func surgeAndUnavailable(surge, unavailable *intstr.IntOrString, paused bool, replicas int32) (s, u int32, err error) {
	if surge != nil && !paused {
		if s, err = share(surge, replicas, fleet.Up); err != nil {
			return 0, 0, fmt.Errorf("maxSurge: %w", err)
		}
	}
	if unavailable == nil {
		unavailable = &intstr.IntOrString{Type: intstr.String, StrVal: "20%"}
	}
	round := fleet.Up
	if s > 0 {
		round = fleet.Down
	}
	if u, err = share(unavailable, replicas, round); err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	return s, u, nil
}

// atLeastOne returns the number of pods of a StatefulSet that may be unavailable: a percentage rounds down, never below
// 1.
func atLeastOne(unavailable *intstr.IntOrString, replicas int32) (int32, error) {
	if unavailable == nil {
		return 1, nil
	}
	n, err := share(unavailable, replicas, fleet.Down)
	if err != nil {
		return 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	return max(n, 1), nil
}

// share is v itself, or that percentage of total.
func share(v *intstr.IntOrString, total int32, round fleet.Rounding) (int32, error) {
	n, err := fleet.Resolve(plain(v), int64(total), round)
	return int32(n), err
}

// plain is the value in JSON.
func plain(v *intstr.IntOrString) any {
	switch {
	case v == nil:
		return nil
	case v.Type == intstr.Int:
		return int64(v.IntVal)
	}
	return v.StrVal
}
