package capacity

import (
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Unit is the unit in which to show amounts of a resource: cores of CPU, Mi or Gi of memory, a count of others.
type Unit struct {
	name string
	// size is the number of base units in one unit. CPU is read in millicores.
	size     float64
	milli    bool
	decimals int
}

var binaryUnits = []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}

// UnitOf returns the unit for amounts of a resource of about this size.
func UnitOf(name corev1.ResourceName, about resource.Quantity) Unit {
	switch {
	case name == corev1.ResourceCPU:
		return Unit{size: 1000, milli: true, decimals: 3}
	case name == corev1.ResourceMemory, strings.HasSuffix(string(name), "storage"),
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		size, unit := 1.0, 0
		for math.Abs(float64(about.Value())) >= size*1024 && unit < len(binaryUnits)-1 {
			size, unit = size*1024, unit+1
		}
		return Unit{name: binaryUnits[unit], size: size, decimals: 2}
	}
	return Unit{size: 1}
}

// Rounded returns the unit with at most one decimal.
func (u Unit) Rounded() Unit {
	u.decimals = min(u.decimals, 1)
	return u
}

// Write returns the amount in this unit, such as "7.5" or "62.91Gi". An amount below the last decimal is "<0.001",
// never zero.
func (u Unit) Write(q resource.Quantity) string {
	n := float64(q.Value())
	if u.milli {
		n = float64(q.MilliValue())
	}
	number := strconv.FormatFloat(n/u.size, 'f', u.decimals, 64)
	if u.decimals > 0 {
		number = strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
	}
	if number == "0" && n > 0 {
		number = "<" + strconv.FormatFloat(math.Pow10(-u.decimals), 'f', u.decimals, 64)
	}
	return number + u.name
}
