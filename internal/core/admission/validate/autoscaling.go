package validate

import (
	"fmt"
	"maps"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/crontab"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

const (
	// defaultUtilization is the share of the CPU that pods request at which a FederatedHPA without metrics keeps them, in
	// percent.
	defaultUtilization = 80
	// longestWindow and longestPeriod are the limits of a HorizontalPodAutoscaler, in seconds.
	longestWindow, longestPeriod = 3600, 1800
)

// DefaultFederatedHPA sets the defaults of a HorizontalPodAutoscaler.
func DefaultFederatedHPA(f *autoscalingv1alpha1.FederatedHPA) {
	if f.Spec.MinReplicas == nil {
		one := int32(1)
		f.Spec.MinReplicas = &one
	}
	if len(f.Spec.Metrics) == 0 {
		percent := int32(defaultUtilization)
		f.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType,
					AverageUtilization: &percent}}}}
	}
	f.Spec.Behavior = autoscale.Behavior(f.Spec.Behavior)
}

// FederatedHPA validates a FederatedHPA.
func FederatedHPA(f *autoscalingv1alpha1.FederatedHPA) field.ErrorList {
	spec := field.NewPath("spec")
	errs := scaleTarget(f.Spec.ScaleTargetRef, spec.Child("scaleTargetRef"))
	if gv, err := schema.ParseGroupVersion(f.Spec.ScaleTargetRef.APIVersion); err == nil &&
		gv.Group == autoscalingv1alpha1.GroupVersion.Group {
		errs = append(errs, field.Invalid(spec.Child("scaleTargetRef", "kind"), f.Spec.ScaleTargetRef.Kind,
			"a FederatedHPA scales a workload: give its name"))
	}
	errs = append(errs, bounds(f.Spec.MinReplicas, &f.Spec.MaxReplicas, spec.Child("minReplicas"),
		spec.Child("maxReplicas"))...)
	for i := range f.Spec.Metrics {
		errs = append(errs, metric(f.Spec.Metrics[i], spec.Child("metrics").Index(i))...)
	}
	if b := f.Spec.Behavior; b != nil {
		errs = append(errs, scalingRules(b.ScaleUp, spec.Child("behavior", "scaleUp"))...)
		errs = append(errs, scalingRules(b.ScaleDown, spec.Child("behavior", "scaleDown"))...)
	}
	if mode, set := f.Annotations[wellknown.AutoscalingModeAnnotation]; set {
		errs = append(errs, supported(field.NewPath("metadata", "annotations").Key(wellknown.AutoscalingModeAnnotation),
			mode, autoscalingv1alpha1.ModeCentral, autoscalingv1alpha1.ModeDistributed)...)
	}
	return errs
}

// scaleTarget validates the reference to a workload.
func scaleTarget(ref autoscalingv2.CrossVersionObjectReference, path *field.Path) field.ErrorList {
	errs := required(path.Child("kind"), ref.Kind, "the kind of the workload, such as Deployment")
	errs = append(errs, required(path.Child("name"), ref.Name, "the name of the workload")...)
	if wrong := apiVersion(path.Child("apiVersion"), ref.APIVersion); wrong != nil {
		return append(errs, wrong...)
	}
	if gk := match.GroupKind(ref.APIVersion, ref.Kind); ref.Kind != "" &&
		gk.Group != autoscalingv1alpha1.GroupVersion.Group && !propagate.Propagable(gk) {
		errs = append(errs, field.Invalid(path.Child("kind"), ref.Kind,
			fmt.Sprintf("a %s is not propagated by policies: specify the workload itself", gk)))
	}
	return errs
}

// bounds validates a minimum and a maximum, nil if unset.
func bounds(lowest, highest *int32, minPath, maxPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if lowest != nil && *lowest < 1 {
		errs = append(errs, field.Invalid(minPath, *lowest,
			"must be 1 or more: a workload without pods has no load to measure"))
	}
	if highest != nil && *highest < 1 {
		errs = append(errs, field.Invalid(maxPath, *highest, "must be 1 or more"))
	}
	if lowest != nil && highest != nil && *highest >= 1 && *highest < *lowest {
		errs = append(errs, field.Invalid(maxPath, *highest, fmt.Sprintf("must be greater than or equal to the minimum, %d",
			*lowest)))
	}
	return errs
}

func metric(m autoscalingv2.MetricSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	given := map[autoscalingv2.MetricSourceType]bool{
		autoscalingv2.ResourceMetricSourceType:          m.Resource != nil,
		autoscalingv2.ContainerResourceMetricSourceType: m.ContainerResource != nil,
		autoscalingv2.PodsMetricSourceType:              m.Pods != nil,
		autoscalingv2.ObjectMetricSourceType:            m.Object != nil,
		autoscalingv2.ExternalMetricSourceType:          m.External != nil}
	maps.DeleteFunc(given, func(_ autoscalingv2.MetricSourceType, there bool) bool { return !there })
	switch {
	case m.Type == autoscalingv2.ExternalMetricSourceType:
		return supported(path.Child("type"), m.Type, autoscalingv2.ResourceMetricSourceType,
			autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.PodsMetricSourceType,
			autoscalingv2.ObjectMetricSourceType)
	case !given[m.Type] || len(given) != 1:
		return append(errs, field.Invalid(path.Child("type"), m.Type,
			"must be Resource, ContainerResource, Pods or Object, and only the field of that name must be set"))
	}
	named := func(value, name string, example string) {
		errs = append(errs, required(path.Child(name), value, example)...)
	}
	// A name of a metric or selector becomes part of a URL.
	segment := func(value, name, example string) {
		named(value, name, example)
		if why := content.IsPathSegmentName(value); len(why) > 0 {
			errs = append(errs, field.Invalid(path.Child(name), value, strings.Join(why, ", ")))
		}
	}
	switch m.Type {
	case autoscalingv2.ResourceMetricSourceType:
		named(string(m.Resource.Name), "resource.name", "such as cpu")
		errs = append(errs, resourceTarget(m.Resource.Target, path.Child("resource", "target"))...)
	case autoscalingv2.ContainerResourceMetricSourceType:
		named(string(m.ContainerResource.Name), "containerResource.name", "such as cpu")
		named(m.ContainerResource.Container, "containerResource.container", "the name of a container of the pods")
		errs = append(errs, resourceTarget(m.ContainerResource.Target, path.Child("containerResource", "target"))...)
	case autoscalingv2.PodsMetricSourceType:
		segment(m.Pods.Metric.Name, "pods.metric.name", "the name of a metric of custom.metrics.k8s.io")
		target := path.Child("pods", "target", "averageValue")
		if m.Pods.Target.AverageValue == nil {
			errs = append(errs, field.Required(target, "a quantity above 0"))
		}
		errs = append(errs, aboveNothing(m.Pods.Target.AverageValue, target)...)
	case autoscalingv2.ObjectMetricSourceType:
		segment(m.Object.Metric.Name, "object.metric.name", "the name of a metric of custom.metrics.k8s.io")
		named(m.Object.DescribedObject.Kind, "object.describedObject.kind", "the kind of the object, such as Ingress")
		segment(m.Object.DescribedObject.Name, "object.describedObject.name", "the name of the object")
		target := path.Child("object", "target")
		if (m.Object.Target.Value == nil) == (m.Object.Target.AverageValue == nil) {
			errs = append(errs, field.Required(target, "must set either value or averageValue (the value per pod)"))
		}
		errs = append(errs, aboveNothing(m.Object.Target.Value, target.Child("value"))...)
		errs = append(errs, aboveNothing(m.Object.Target.AverageValue, target.Child("averageValue"))...)
	}
	return errs
}

func resourceTarget(t autoscalingv2.MetricTarget, path *field.Path) field.ErrorList {
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		return field.ErrorList{field.Required(path,
			"must set either averageUtilization (a percentage of the pods' requests) or averageValue")}
	case t.AverageUtilization != nil && t.AverageValue != nil:
		return field.ErrorList{field.Forbidden(path.Child("averageValue"), "may not be set when averageUtilization is set")}
	case t.AverageUtilization != nil && *t.AverageUtilization < 1:
		return field.ErrorList{field.Invalid(path.Child("averageUtilization"), *t.AverageUtilization,
			"must be 1 or more, in percent")}
	}
	return aboveNothing(t.AverageValue, path.Child("averageValue"))
}

func aboveNothing(q *resource.Quantity, path *field.Path) field.ErrorList {
	if q == nil || q.Sign() > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, q.String(), "must be greater than 0")}
}

func scalingRules(r *autoscalingv2.HPAScalingRules, path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if w := r.StabilizationWindowSeconds; w != nil && (*w < 0 || *w > longestWindow) {
		errs = append(errs, field.Invalid(path.Child("stabilizationWindowSeconds"), *w,
			fmt.Sprintf("must be from 0 to %d", longestWindow)))
	}
	if p := r.SelectPolicy; p != nil {
		errs = append(errs, supported(path.Child("selectPolicy"), *p, autoscalingv2.MaxChangePolicySelect,
			autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect)...)
	}
	if r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("tolerance"), r.Tolerance.String(), "must be 0 or more, such as 0.1"))
	}
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(path.Child("policies"), "give at least one, or leave all of "+path.String()+
			" out"))
	}
	for i, p := range r.Policies {
		path := path.Child("policies").Index(i)
		errs = append(errs, supported(path.Child("type"), p.Type, autoscalingv2.PodsScalingPolicy,
			autoscalingv2.PercentScalingPolicy)...)
		if p.Value < 1 {
			errs = append(errs, field.Invalid(path.Child("value"), p.Value,
				"must be 1 or more; selectPolicy: Disabled disables scaling in this direction"))
		}
		if p.PeriodSeconds < 1 || p.PeriodSeconds > longestPeriod {
			errs = append(errs, field.Invalid(path.Child("periodSeconds"), p.PeriodSeconds,
				fmt.Sprintf("must be from 1 to %d", longestPeriod)))
		}
	}
	return errs
}

// CronFederatedHPA validates a CronFederatedHPA.
func CronFederatedHPA(c *autoscalingv1alpha1.CronFederatedHPA) field.ErrorList {
	spec := field.NewPath("spec")
	target := c.Spec.ScaleTargetRef
	errs := scaleTarget(target, spec.Child("scaleTargetRef"))
	gv, err := schema.ParseGroupVersion(target.APIVersion)
	ofBounds := err == nil && gv.Group == autoscalingv1alpha1.GroupVersion.Group
	if ofBounds && (target.Kind != autoscalingv1alpha1.FederatedHPAKind || gv != autoscalingv1alpha1.GroupVersion) {
		errs = append(errs, field.Invalid(spec.Child("scaleTargetRef", "kind"), target.APIVersion+" "+target.Kind,
			fmt.Sprintf("in this group, only a %s of %s can be scaled", autoscalingv1alpha1.FederatedHPAKind,
				autoscalingv1alpha1.GroupVersion)))
	}
	seen := map[string]bool{}
	for i, rule := range c.Spec.Rules {
		path := spec.Child("rules").Index(i)
		if seen[rule.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), rule.Name))
		}
		seen[rule.Name] = true
		zone := ""
		if rule.TimeZone != nil {
			zone = *rule.TimeZone
			_, err := crontab.ParseZone(zone)
			if err == nil && zone == "" {
				err = fmt.Errorf("must not be empty: omit it to use the hub's time zone, or give one, such as Europe/Berlin")
			}
			if err != nil {
				errs = append(errs, field.Invalid(path.Child("timeZone"), zone, err.Error()))
				zone = ""
			}
		}
		if _, err := crontab.Parse(rule.Schedule, zone); err != nil {
			errs = append(errs, field.Invalid(path.Child("schedule"), rule.Schedule, err.Error()))
		}
		if ofBounds {
			if rule.TargetMinReplicas == nil && rule.TargetMaxReplicas == nil {
				errs = append(errs, field.Required(path.Child("targetMinReplicas"),
					"the target is a FederatedHPA: set targetMinReplicas, targetMaxReplicas or both"))
			}
			errs = append(errs, bounds(rule.TargetMinReplicas, rule.TargetMaxReplicas, path.Child("targetMinReplicas"),
				path.Child("targetMaxReplicas"))...)
			continue
		}
		switch n := rule.TargetReplicas; {
		case n == nil:
			errs = append(errs, field.Required(path.Child("targetReplicas"), "the number of replicas to scale the workload to"))
		case *n < 0:
			errs = append(errs, field.Invalid(path.Child("targetReplicas"), *n, "must be 0 or more"))
		}
	}
	return errs
}
