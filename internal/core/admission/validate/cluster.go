package validate

import (
	"fmt"
	"math"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// DefaultCluster sets the defaults that the schema cannot. The time of a NoExecute taint starts now.
func DefaultCluster(c *clusterv1alpha1.Cluster, now metav1.Time) {
	if c.Spec.Zone != "" && len(c.Spec.Zones) == 0 {
		c.Spec.Zones, c.Spec.Zone = []string{c.Spec.Zone}, ""
	}
	for i := range c.Spec.Taints {
		if t := &c.Spec.Taints[i]; t.Effect == corev1.TaintEffectNoExecute && t.TimeAdded == nil {
			t.TimeAdded = &now
		}
	}
	models := c.Spec.ResourceModels
	if len(models) == 0 {
		return
	}
	slices.SortStableFunc(models, func(a, b clusterv1alpha1.ResourceModel) int { return int(a.Grade) - int(b.Grade) })
	for i := range models[0].Ranges {
		if r := &models[0].Ranges[i]; !r.Min.IsZero() {
			r.Min.Set(0)
		}
	}
	last := models[len(models)-1]
	for i := range last.Ranges {
		if r := &last.Ranges[i]; r.Max.Value() != math.MaxInt64 {
			r.Max.Set(math.MaxInt64)
		}
	}
}

// DefaultGrades returns the nine grades of nodes that a cluster has which brings none of its own.
func DefaultGrades() []clusterv1alpha1.ResourceModel {
	const gi = 1 << 30
	cpu := []int64{0, 1, 2, 4, 8, 16, 32, 64, 128, math.MaxInt64}
	memory := []int64{0, 4 * gi, 16 * gi, 32 * gi, 64 * gi, 128 * gi, 256 * gi, 512 * gi, 1024 * gi, math.MaxInt64}
	models := make([]clusterv1alpha1.ResourceModel, len(cpu)-1)
	for i := range models {
		models[i] = clusterv1alpha1.ResourceModel{Grade: uint(i), Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: corev1.ResourceCPU, Min: *resource.NewQuantity(cpu[i], resource.DecimalSI),
				Max: *resource.NewQuantity(cpu[i+1], resource.DecimalSI)},
			{Name: corev1.ResourceMemory, Min: *resource.NewQuantity(memory[i], resource.BinarySI),
				Max: *resource.NewQuantity(memory[i+1], resource.BinarySI)},
		}}
	}
	return models
}

// Cluster validates a member cluster.
func Cluster(c *clusterv1alpha1.Cluster) field.ErrorList {
	spec, path := &c.Spec, field.NewPath("spec")
	errs := ClusterName(c.Name, field.NewPath("metadata", "name"))
	if spec.APIEndpoint != "" {
		errs = append(errs, endpoint(spec.APIEndpoint, path.Child("apiEndpoint"))...)
	}
	if spec.ProxyURL != "" {
		errs = append(errs, proxy(spec.ProxyURL, path.Child("proxyURL"))...)
	}
	errs = append(errs, labelValue(spec.Provider, path.Child("provider"))...)
	errs = append(errs, labelValue(spec.Region, path.Child("region"))...)
	if spec.Zone != "" && len(spec.Zones) > 0 {
		errs = append(errs, field.Invalid(path.Child("zone"), spec.Zone, "zone and zones cannot be set at the same time"))
	}
	errs = append(errs, labelValue(spec.Zone, path.Child("zone"))...)
	for i, zone := range spec.Zones {
		errs = append(errs, labelValue(zone, path.Child("zones").Index(i))...)
	}
	errs = append(errs, taints(spec.Taints, path.Child("taints"))...)
	errs = append(errs, resourceModels(spec.ResourceModels, path.Child("resourceModels"))...)
	return errs
}

// ClusterName validates the name of a cluster.
func ClusterName(name string, path *field.Path) field.ErrorList {
	if len(name) > membership.NameLimit {
		return field.ErrorList{field.Invalid(path, text.Cut(name, 2*membership.NameLimit),
			fmt.Sprintf("must be no more than %d characters", membership.NameLimit))}
	}
	return valid(path, name, validation.IsDNS1123Label)
}

func endpoint(address string, path *field.Path) field.ErrorList {
	u, err := url.Parse(address)
	if err != nil {
		return field.ErrorList{field.Invalid(path, address, fmt.Sprintf("must be a valid URL: %v", err))}
	}
	var errs field.ErrorList
	if u.Host == "" {
		errs = append(errs, field.Invalid(path, address, "host must be provided"))
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(path, address, "user information is not permitted"))
	}
	if u.Fragment != "" {
		errs = append(errs, field.Invalid(path, address, "fragments are not permitted"))
	}
	if u.RawQuery != "" {
		errs = append(errs, field.Invalid(path, address, "query parameters are not permitted"))
	}
	return errs
}

func proxy(address string, path *field.Path) field.ErrorList {
	u, err := url.Parse(address)
	if err != nil {
		return field.ErrorList{field.Invalid(path, address, fmt.Sprintf("must be a valid URL: %v", err))}
	}
	switch u.Scheme {
	case "http", "https", "socks5":
		return nil
	}
	return field.ErrorList{field.Invalid(path, address,
		fmt.Sprintf("unsupported scheme %q, must be http, https, or socks5", u.Scheme))}
}

func taints(list []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[identity]bool{}
	for i, t := range list {
		at := path.Index(i)
		errs = append(errs, labelKey(t.Key, at.Child("key"))...)
		errs = append(errs, labelValue(t.Value, at.Child("value"))...)
		if t.Effect == "" {
			errs = append(errs, field.Required(at.Child("effect"), ""))
		} else {
			errs = append(errs, supported(at.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule,
				corev1.TaintEffectNoExecute)...)
		}
		id := identity{t.Key, t.Effect}
		if seen[id] {
			duplicate := field.Duplicate(at, t.Key+":"+string(t.Effect))
			duplicate.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, duplicate)
		}
		seen[id] = true
	}
	return errs
}

// resourceModels: the grades cut the range of each resource into pieces that touch, in order, without a gap.
func resourceModels(models []clusterv1alpha1.ResourceModel, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, m := range models {
		at := path.Index(i)
		if i > 0 && m.Grade == models[i-1].Grade {
			errs = append(errs, field.Duplicate(at.Child("grade"), m.Grade))
		}
		names := map[string]bool{}
		for j, r := range m.Ranges {
			if names[string(r.Name)] {
				errs = append(errs, field.Duplicate(at.Child("ranges").Index(j).Child("name"), r.Name))
			}
			names[string(r.Name)] = true
			if r.Min.Cmp(r.Max) >= 0 {
				errs = append(errs, field.Invalid(at.Child("ranges").Index(j).Child("max"), r.Max.String(),
					"max value must be greater than min value"))
			}
		}
		if i == 0 {
			continue
		}
		previous := models[i-1].Ranges
		if len(previous) != len(m.Ranges) {
			names := joined(m.Ranges, func(r clusterv1alpha1.ResourceModelRange) string { return string(r.Name) })
			errs = append(errs, field.Invalid(at.Child("ranges"), names,
				"the number of resource types must be the same in each grade"))
			continue
		}
		for j, r := range m.Ranges {
			k := slices.IndexFunc(previous, func(p clusterv1alpha1.ResourceModelRange) bool { return p.Name == r.Name })
			switch {
			case k < 0:
				errs = append(errs, field.Invalid(at.Child("ranges").Index(j).Child("name"), r.Name,
					"the resource types must be the same in each grade"))
			case previous[k].Max.Cmp(r.Min) != 0:
				errs = append(errs, field.Invalid(at.Child("ranges").Index(j).Child("min"), r.Min.String(),
					fmt.Sprintf("must equal the max of the previous grade, %s", previous[k].Max.String())))
			}
		}
	}
	return errs
}
