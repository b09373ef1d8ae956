package kruise

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// keepOld is how many of replicas the partition of a CloneSet keeps at the old revision. A percentage rounds up, but
// below 100% it never means all of several pods; a nil partition keeps none.
func keepOld(partition *intstr.IntOrString, replicas int32) (int32, error) {
	if partition == nil {
		return 0, nil
	}
	n, err := share(partition, replicas, math.Ceil)
	if err != nil {
		return 0, fmt.Errorf("partition: %w", err)
	}
	if partition.Type == intstr.String && partition.StrVal != "100%" && replicas > 1 && n == replicas {
		n = replicas - 1
	}
	return min(max(n, 0), replicas), nil
}

// surgeAndUnavailable returns the pods of a CloneSet that an update may add and make unavailable. The surge rounds up
// and is none while paused; unavailability, 20% if not set, rounds down when there is a surge to make up for it.
func surgeAndUnavailable(surge, unavailable *intstr.IntOrString, paused bool, replicas int32) (int32, int32, error) {
	var s int32
	if surge != nil && !paused {
		var err error
		if s, err = share(surge, replicas, math.Ceil); err != nil {
			return 0, 0, fmt.Errorf("maxSurge: %w", err)
		}
	}
	if unavailable == nil {
		unavailable = &intstr.IntOrString{Type: intstr.String, StrVal: "20%"}
	}
	round := math.Ceil
	if s > 0 {
		round = math.Floor
	}
	u, err := share(unavailable, replicas, round)
	if err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	return max(s, 0), max(u, 0), nil
}

// atLeastOne returns the number of pods of a StatefulSet that may be unavailable: a percentage rounds down, never below
// 1.
func atLeastOne(unavailable *intstr.IntOrString, replicas int32) (int32, error) {
	if unavailable == nil {
		return 1, nil
	}
	n, err := share(unavailable, replicas, math.Floor)
	if err != nil {
		return 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	return max(n, 1), nil
}

// share is v itself, or that percentage of total. Fractions of a percent are allowed, a bare number as text is not.
func share(v *intstr.IntOrString, total int32, round func(float64) float64) (int32, error) {
	if v.Type == intstr.Int {
		return v.IntVal, nil
	}
	digits, isPercent := strings.CutSuffix(v.StrVal, "%")
	if !isPercent {
		return 0, fmt.Errorf("invalid value %q: neither a number nor a percentage", v.StrVal)
	}
	percent, err := strconv.ParseFloat(digits, 64)
	if err != nil || percent < 0 || math.IsInf(percent, 0) || math.IsNaN(percent) {
		return 0, fmt.Errorf("invalid value %q: not a percentage", v.StrVal)
	}
	// Rounding away the noise of binary fractions first: 7% of 100 is 7, not 7.000000000000001.
	exact := math.Round(percent*float64(total)*1e6) / 1e8
	return int32(round(exact)), nil
}
