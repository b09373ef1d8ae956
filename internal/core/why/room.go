package why

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// leftOf is what a cluster has free of a resource; less than zero if more is requested there than it has.
func leftOf(s *clusterv1alpha1.ResourceSummary, name corev1.ResourceName) resource.Quantity {
	left := s.Allocatable[name].DeepCopy()
	for _, used := range []corev1.ResourceList{s.Allocated, s.Allocating} {
		if n, ok := used[name]; ok {
			left.Sub(n)
		}
	}
	return left
}

// split is what is left as what is free and what is over-committed; one of them is zero.
func split(left resource.Quantity) (free, over resource.Quantity) {
	zero := resource.Quantity{Format: left.Format}
	if left.Sign() < 0 {
		left.Neg()
		return zero, left
	}
	return left, zero
}

// A scale writes amounts of one resource in one unit, as people compare them.
type scale struct {
	// name of the unit, and how many decimals it has.
	name     string
	decimals int
	of       func(resource.Quantity) float64
}

var binaryUnits = []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}

// scaleOf is the scale of a resource of which there is about as much as that: cores of CPU, the largest unit of bytes, a count of others.
func scaleOf(name corev1.ResourceName, about resource.Quantity) scale {
	switch {
	case name == corev1.ResourceCPU:
		return scale{"", 3, func(q resource.Quantity) float64 { return float64(q.MilliValue()) / 1000 }}
	case name == corev1.ResourceMemory, strings.HasSuffix(string(name), "storage"), strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		size, unit := 1.0, 0
		for float64(about.Value()) >= size*1024 && unit < len(binaryUnits)-1 {
			size, unit = size*1024, unit+1
		}
		return scale{binaryUnits[unit], 2, func(q resource.Quantity) float64 { return float64(q.Value()) / size }}
	}
	return scale{"", 0, func(q resource.Quantity) float64 { return float64(q.Value()) }}
}

func (s scale) write(q resource.Quantity) string {
	number := strconv.FormatFloat(s.of(q), 'f', s.decimals, 64)
	if s.decimals > 0 {
		number = strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
	}
	return number + s.name
}

// roomLine is "cpu: 4 of 10 free", or "cpu: over-committed by 2 of 10".
func roomLine(name corev1.ResourceName, left, all resource.Quantity) string {
	s := scaleOf(name, all)
	free, over := split(left)
	if !over.IsZero() {
		return string(name) + ": over-committed by " + s.write(over) + ", has " + s.write(all)
	}
	return string(name) + ": " + s.write(free) + " of " + s.write(all) + " free"
}

// text is what is free of what a replica requests, in one line.
func (f Free) text() string {
	about := f.Free
	if f.OverCommitted != nil {
		about = *f.OverCommitted
	}
	if about.Cmp(f.Request) < 0 {
		about = f.Request
	}
	s := scaleOf(corev1.ResourceName(f.Resource), about)
	if f.OverCommitted != nil {
		return f.Resource + " over-committed by " + s.write(*f.OverCommitted) + ", a replica requests " + s.write(f.Request)
	}
	return s.write(f.Free) + " " + f.Resource + " free, a replica requests " + s.write(f.Request)
}
