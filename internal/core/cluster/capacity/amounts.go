package capacity

import (
	"cmp"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts maps resources to amounts: CPU in millicores, other resources in whole units, rounded up as in the Kubernetes
// scheduler.
type Amounts map[corev1.ResourceName]int64

func AmountsOf(list corev1.ResourceList) Amounts {
	a := make(Amounts, len(list))
	for name, q := range list {
		a[canonical(name)] = Amount(name, q)
	}
	return a
}

// Amount returns a quantity of CPU in thousandths, of others in units.
func Amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU || name == corev1.ResourceLimitsCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// List returns the amounts as quantities. It omits zeros and host ports.
func (a Amounts) List() corev1.ResourceList {
	list := make(corev1.ResourceList, len(a))
	for name, n := range a {
		if n != 0 && !strings.HasPrefix(string(name), portPrefix) {
			list[name] = Quantity(name, n)
		}
	}
	return list
}

// Quantity is the inverse of Amount.
func Quantity(name corev1.ResourceName, n int64) resource.Quantity {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceLimitsCPU:
		return *resource.NewMilliQuantity(n, resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage,
		corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return *resource.NewQuantity(n, resource.BinarySI)
	}
	if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
		return *resource.NewQuantity(n, resource.BinarySI)
	}
	return *resource.NewQuantity(n, resource.DecimalSI)
}

// add adds the requests of the given number of pods. The number may be negative.
func (a Amounts) add(requests []request, times int64) {
	for _, r := range requests {
		a[r.name] += r.amount * times
	}
}

// addUpTo is add with saturation: a sum that overflows becomes math.MaxInt64.
func (a Amounts) addUpTo(requests []request, times int64) {
	for _, r := range requests {
		if times > 0 && r.amount > (math.MaxInt64-a[r.name])/times {
			a[r.name] = math.MaxInt64
			continue
		}
		a[r.name] += r.amount * times
	}
}

// Fit returns how many times all parts fit, at most math.MaxInt32. An absent resource has no room, but pod slots and
// host ports limit the result only if they are counted.
func (a Amounts) Fit(parts []Part) int32 {
	set, most := Amounts{}, int64(math.MaxInt32)
	for _, p := range parts {
		set.addUpTo(p.Need.requests, p.Replicas)
	}
	for name, n := range set {
		free, counted := a[name]
		if n > 0 && (counted || name != corev1.ResourcePods && !strings.HasPrefix(string(name), portPrefix)) {
			most = min(most, max(0, free)/n)
		}
	}
	return int32(most)
}

// Return adds the requests of all parts, several times, to those amounts that are counted. A negative number subtracts.
func (a Amounts) Return(parts []Part, times int64) {
	for _, p := range parts {
		for _, r := range p.Need.requests {
			if _, counted := a[r.name]; counted {
				// The bound keeps sums over many workloads from overflowing.
				pods := p.Replicas * times
				a[r.name] += min(r.amount, math.MaxInt64>>10/max(1, pods, -pods)) * pods
			}
		}
	}
}

// canonical returns a shared string for the names that every pod has, which saves memory.
func canonical(name corev1.ResourceName) corev1.ResourceName {
	if i := slices.Index(everyPod, name); i >= 0 {
		return everyPod[i]
	}
	return name
}

var everyPod = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	corev1.ResourcePods}

// request is a positive amount of a resource.
type request struct {
	name   corev1.ResourceName
	amount int64
}

// requestsOf returns what a pod requests, sorted by name, and one pod slot.
func requestsOf(list corev1.ResourceList) []request {
	requests := make([]request, 0, len(list)+1)
	for name, q := range list {
		// The bound keeps sums over many pods from overflowing.
		if n := min(Amount(name, q), math.MaxInt64>>10); n > 0 && name != corev1.ResourcePods {
			requests = append(requests, request{canonical(name), n})
		}
	}
	requests = append(requests, request{corev1.ResourcePods, 1})
	slices.SortFunc(requests, func(a, b request) int { return cmp.Compare(a.name, b.name) })
	return requests
}
