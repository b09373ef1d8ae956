package validate

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
)

// DefaultRescheduleInterval is the default interval of a ReplicaSchedulingPolicy.
const DefaultRescheduleInterval = time.Minute

// defaultMaxMoved is the default share of a workload's replicas that move at a time.
const defaultMaxMoved = "25%"

// shortestInterval protects the hub from typing errors such as 60ms; members report their usage every ten seconds.
const shortestInterval = time.Second

// DefaultReplicaScheduling sets the defaults that the schema cannot.
func DefaultReplicaScheduling(p *configv1alpha1.ReplicaSchedulingPolicy) {
	r := &p.Spec.ReschedulePolicy
	r.Enabled = cmp.Or(r.Enabled, new(true))
	r.Interval = cmp.Or(r.Interval, &metav1.Duration{Duration: DefaultRescheduleInterval})
	r.MaxMoved = cmp.Or(r.MaxMoved, new(intstr.FromString(defaultMaxMoved)))
}

// ReplicaScheduling validates a ReplicaSchedulingPolicy.
func ReplicaScheduling(p *configv1alpha1.ReplicaSchedulingPolicy) field.ErrorList {
	errs := selectors(p.Spec.ResourceSelectors, "", field.NewPath("spec", "resourceSelectors"))
	r, path := &p.Spec.ReschedulePolicy, field.NewPath("spec", "reschedulePolicy")
	if r.Interval != nil && r.Interval.Duration < shortestInterval {
		errs = append(errs, field.Invalid(path.Child("interval"), r.Interval.Duration.String(),
			fmt.Sprintf("must be %s or more, such as 60s", shortestInterval)))
	}
	if r.Threshold.CPUUtilization == nil && r.Threshold.MemoryUtilization == nil {
		errs = append(errs, field.Required(path.Child("threshold"),
			"must set cpuUtilization, memoryUtilization or both, in percent"))
	}
	if m := r.MaxMoved; m != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(m, 100, true)
		switch percent := m.Type == intstr.String; {
		case err != nil, percent && (n < 1 || n > 100):
			errs = append(errs, field.Invalid(path.Child("maxMoved"), m.String(),
				"must be a number of replicas, or a percentage from 1% to 100%"))
		case n < 1:
			errs = append(errs, field.Invalid(path.Child("maxMoved"), m.String(),
				"must be at least 1: to stop moving replicas, set enabled to false"))
		}
	}
	return errs
}
