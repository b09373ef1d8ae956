package kruise

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (d Defaulter) sidecarSet(u *unstructured.Unstructured, spec map[string]any) error {
	setDefault(spec, int64(10), "revisionHistoryLimit")
	setDefault(spec, rollingUpdate, "updateStrategy", "type")
	if t, _, _ := unstructured.NestedString(spec, "updateStrategy", "type"); t == rollingUpdate {
		setDefault(spec, int64(0), "updateStrategy", "partition")
		setDefault(spec, int64(1), "updateStrategy", "maxUnavailable")
	}
	if _, found, _ := unstructured.NestedMap(spec, "injectionStrategy", "revision"); found {
		setDefault(spec, always, "injectionStrategy", "revision", "policy")
	}
	for _, name := range []string{"containers", "initContainers"} {
		list, found, err := unstructured.NestedSlice(spec, name)
		if err != nil || !found {
			continue
		}
		for i := range list {
			c, ok := list[i].(map[string]any)
			if !ok {
				return fmt.Errorf("spec.%s[%d]: not an object", name, i)
			}
			if err := d.container(c); err != nil {
				return fmt.Errorf("spec.%s[%d]: %w", name, i, err)
			}
			if name == "containers" {
				setDefault(c, "BeforeAppContainer", "podInjectPolicy")
			}
			setDefault(c, "ColdUpgrade", "upgradeStrategy", "upgradeType")
			setDefault(c, "disabled", "shareVolumePolicy", "type")
		}
		spec[name] = list
	}
	u.Object["spec"] = spec
	set, err := read[SidecarSet](u)
	if err != nil {
		return err
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[sidecarHashAnnotation], annotations[sidecarHashNoImageAnnotation] = set.Spec.hashes()
	u.SetAnnotations(annotations)
	return nil
}

// container gives c the defaults of a container, and leaves alone what is a sidecar's own.
func (d Defaulter) container(c map[string]any) error {
	var typed corev1.Container
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c, &typed); err != nil {
		return err
	}
	t := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{typed}}}
	d.Template(t)
	filled, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&t.Spec.Containers[0])
	if err != nil {
		return err
	}
	maps.Copy(c, filled)
	return nil
}

func validateSidecarSet(u *unstructured.Unstructured, find Finder) field.ErrorList {
	spec := field.NewPath("spec")
	set, err := read[SidecarSet](u)
	if err != nil {
		return field.ErrorList{field.Invalid(spec, nil, err.Error())}
	}
	var errs field.ErrorList
	if s := set.Spec.Selector; s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		errs = append(errs, field.Required(spec.Child("selector"), "no selector defined for SidecarSet"))
	} else if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		errs = append(errs, field.Invalid(spec.Child("selector"), s, err.Error()))
	}
	if len(set.Spec.Containers)+len(set.Spec.InitContainers) == 0 {
		errs = append(errs, field.Required(spec.Root(), "no initContainer or container defined for SidecarSet"))
	}
	if t := set.Spec.UpdateStrategy.Type; t != "" && t != rollingUpdate && t != notUpdate {
		errs = append(errs, field.Invalid(spec.Child("updateStrategy", "type"), t,
			fmt.Sprintf("must be '%s' or '%s'", rollingUpdate, notUpdate)))
	}
	if _, err := keepOld(set.Spec.UpdateStrategy.Partition, 1); err != nil {
		errs = append(errs, field.Invalid(spec.Child("updateStrategy", "partition"),
			set.Spec.UpdateStrategy.Partition.String(), err.Error()))
	}
	if r := set.Spec.InjectionStrategy.Revision; r != nil {
		path := spec.Child("injectionStrategy", "revision")
		if r.CustomVersion == "" && r.RevisionName == "" {
			errs = append(errs, field.Invalid(path, nil, "revisionName and customVersion cannot be empty simultaneously"))
		} else if err := find.SidecarRevision(set.Name, r.CustomVersion, r.RevisionName); err != nil {
			errs = append(errs, field.Invalid(path, fmt.Sprintf("%s%s", r.CustomVersion, r.RevisionName),
				fmt.Sprintf("Cannot find specific ControllerRevision, err: %v", err)))
		}
	}
	if others, err := find.SidecarSets(); err == nil {
		for i := range others {
			other, err := read[SidecarSet](&others[i])
			if err == nil && other.Name != set.Name && overlap(set, other) {
				errs = append(errs, conflicts(set, other, spec)...)
			}
		}
	}
	return errs
}

// overlap reports whether a pod may be selected by both: only labels that must equal are looked at.
func overlap(a, b *SidecarSet) bool {
	if a.Spec.Namespace != "" && b.Spec.Namespace != "" && a.Spec.Namespace != b.Spec.Namespace {
		return false
	}
	excludes := func(a, b *metav1.LabelSelector) bool {
		if a == nil || b == nil {
			return false
		}
		for k, v := range a.MatchLabels {
			if w, there := b.MatchLabels[k]; there && v != w {
				return true
			}
		}
		return false
	}
	return !excludes(a.Spec.Selector, b.Spec.Selector) && !excludes(a.Spec.NamespaceSelector, b.Spec.NamespaceSelector)
}

func conflicts(set, other *SidecarSet, spec *field.Path) (errs field.ErrorList) {
	taken := map[string]bool{}
	for _, c := range append(other.Spec.Containers, other.Spec.InitContainers...) {
		taken[c.Name] = true
	}
	for _, c := range append(set.Spec.Containers, set.Spec.InitContainers...) {
		if taken[c.Name] {
			errs = append(errs, field.Invalid(spec.Child("containers"), c.Name,
				fmt.Sprintf("container %s is in conflict with sidecarset %s", c.Name, other.Name)))
		}
	}
	return errs
}
