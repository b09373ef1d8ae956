package kruise

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Defaulter fills the parts that Kubernetes itself has defaults for.
type Defaulter struct {
	Template func(*corev1.PodTemplateSpec)
	Claim    func(*corev1.PersistentVolumeClaim)
}

// Default writes into u what the webhook of the real manager writes: the defaults of the kind, and the full defaults
// of the pod template and the claim templates. Kinds that are not simulated are left alone.
func (d Defaulter) Default(u *unstructured.Unstructured) error {
	if !simulated(u) {
		return nil
	}
	spec, _, err := unstructured.NestedMap(u.Object, "spec")
	if err != nil {
		return err
	}
	if spec == nil {
		spec = map[string]any{}
	}
	var policy []string
	switch u.GroupVersionKind().GroupKind() {
	case SidecarSetKind:
		return d.sidecarSet(u, spec)
	case UnitedDeploymentKind:
		if err := d.unitedDeployment(spec); err != nil {
			return err
		}
		u.Object["spec"] = spec
		return nil
	case BroadcastJobKind:
		setDefault(spec, int64(math.MaxInt32), "parallelism")
		setDefault(spec, always, "completionPolicy", "type")
		setDefault(spec, failFast, "failurePolicy", "type")
	case CloneSetKind.GroupKind():
		setDefault(spec, int64(1), "replicas")
		setDefault(spec, int64(10), "revisionHistoryLimit")
		// v1beta1 has the same one level deeper.
		at, policyField := []string{"updateStrategy"}, "type"
		if u.GroupVersionKind().Version != "v1alpha1" {
			setDefault(spec, rollingUpdate, "updateStrategy", "type")
			at, policyField = []string{"updateStrategy", "rollingUpdate"}, "podUpdatePolicy"
		}
		if t, _, _ := unstructured.NestedString(spec, "updateStrategy", "type"); t != onDelete {
			field := func(name string) []string { return append(slices.Clone(at), name) }
			policy = field(policyField)
			setDefault(spec, recreate, policy...)
			setDefault(spec, int64(0), field("partition")...)
			setDefault(spec, "20%", field("maxUnavailable")...)
			setDefault(spec, int64(0), field("maxSurge")...)
		}
	case StatefulSetKind.GroupKind():
		setDefault(spec, int64(1), "replicas")
		setDefault(spec, int64(10), "revisionHistoryLimit")
		setDefault(spec, orderedReady, "podManagementPolicy")
		setDefault(spec, rollingUpdate, "updateStrategy", "type")
		if strategy, _, _ := unstructured.NestedString(spec, "updateStrategy", "type"); strategy == rollingUpdate {
			setDefault(spec, int64(0), "updateStrategy", "rollingUpdate", "partition")
			setDefault(spec, int64(1), "updateStrategy", "rollingUpdate", "maxUnavailable")
			setDefault(spec, recreate, "updateStrategy", "rollingUpdate", "podUpdatePolicy")
			setDefault(spec, int64(0), "updateStrategy", "rollingUpdate", "minReadySeconds")
		}
		if u.GroupVersionKind().Version != "v1alpha1" {
			setDefault(spec, retain, "persistentVolumeClaimRetentionPolicy", "whenDeleted")
			setDefault(spec, retain, "persistentVolumeClaimRetentionPolicy", "whenScaled")
		}
		policy = []string{"updateStrategy", "rollingUpdate", "podUpdatePolicy"}
	}
	if p, _, _ := unstructured.NestedString(spec, policy...); p == inPlaceIfPossible || p == inPlaceOnly {
		setDefault(spec, map[string]any{}, append(policy[:len(policy)-1:len(policy)-1], "inPlaceUpdateStrategy")...)
	}

	if template, found, _ := unstructured.NestedMap(spec, "template"); found {
		if spec["template"], err = refill(template, d.Template); err != nil {
			return fmt.Errorf("spec.template: %w", err)
		}
	}
	if claims, found, _ := unstructured.NestedSlice(spec, "volumeClaimTemplates"); found {
		for i := range claims {
			claim, ok := claims[i].(map[string]any)
			if !ok {
				return fmt.Errorf("spec.volumeClaimTemplates[%d]: not an object", i)
			}
			if claims[i], err = refill(claim, d.Claim); err != nil {
				return fmt.Errorf("spec.volumeClaimTemplates[%d]: %w", i, err)
			}
		}
		spec["volumeClaimTemplates"] = claims
	}
	u.Object["spec"] = spec
	return nil
}

var podUpdatePolicies = []string{recreate, inPlaceIfPossible, inPlaceOnly}

func simulated(u *unstructured.Unstructured) bool {
	gk := u.GroupVersionKind().GroupKind()
	switch gk {
	case CloneSetKind.GroupKind(), StatefulSetKind.GroupKind(), SidecarSetKind, UnitedDeploymentKind, BroadcastJobKind:
		return true
	}
	return false
}

func setDefault(spec map[string]any, v any, path ...string) {
	if have, found, err := unstructured.NestedFieldNoCopy(spec, path...); err == nil && (!found || have == nil) {
		_ = unstructured.SetNestedField(spec, v, path...)
	}
}

// refill sends an object through its type and back, with defaults; what the type does not know is lost on the way.
func refill[T any](object map[string]any, fill func(*T)) (map[string]any, error) {
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &typed); err != nil {
		return nil, err
	}
	fill(&typed)
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
}

// Finder finds in the member what objects name.
type Finder struct {
	Pod func(namespace, name string) (*corev1.Pod, error)
	// SidecarRevision looks for a revision of a SidecarSet, of that name or else of that custom version.
	SidecarRevision func(set, customVersion, name string) error
	SidecarSets     func() ([]unstructured.Unstructured, error)
}

// Validate returns why the webhook of the real manager would refuse u; old is nil for a new object.
func Validate(u, old *unstructured.Unstructured, find Finder) field.ErrorList {
	switch u.GroupVersionKind().GroupKind() {
	case CloneSetKind.GroupKind():
		return validateCloneSet(u, old, find.Pod)
	case StatefulSetKind.GroupKind():
		return validateStatefulSet(u, old)
	case UnitedDeploymentKind:
		return validateUnitedDeployment(u, old)
	case SidecarSetKind:
		return validateSidecarSet(u, find)
	}
	return nil
}

func validateCloneSet(u, old *unstructured.Unstructured,
	getPod func(namespace, name string) (*corev1.Pod, error)) field.ErrorList {
	spec := field.NewPath("spec")
	cs, err := readCloneSet(u)
	if err != nil {
		return field.ErrorList{field.Invalid(spec, nil, err.Error())}
	}
	errs := validateSelector(cs.Spec.Selector, cs.Spec.Template.Labels, spec)
	replicas := orDefault(cs.Spec.Replicas, 1)
	if replicas < 0 {
		errs = append(errs, field.Invalid(spec.Child("replicas"), replicas, "must be greater than or equal to 0"))
	}
	strategy := spec.Child("updateStrategy")
	alpha := u.GroupVersionKind().Version == "v1alpha1"
	written, _, _ := unstructured.NestedString(u.Object, "spec", "updateStrategy", "type")
	switch {
	case !alpha:
		if written != "" && written != rollingUpdate && written != onDelete {
			errs = append(errs, field.Invalid(strategy.Child("type"), written,
				fmt.Sprintf("must be '%s' or '%s'", rollingUpdate, onDelete)))
		}
		strategy = strategy.Child("rollingUpdate")
		if p := cs.Spec.UpdateStrategy.Type; p != "" && p != onDelete && p != written &&
			!slices.Contains(podUpdatePolicies, p) {
			errs = append(errs, field.Invalid(strategy.Child("podUpdatePolicy"), p,
				fmt.Sprintf("must be '%s', %s or '%s'", recreate, inPlaceIfPossible, inPlaceOnly)))
		}
	case written != "" && !slices.Contains(podUpdatePolicies, written):
		errs = append(errs, field.Invalid(strategy.Child("type"), cs.Spec.UpdateStrategy.Type,
			fmt.Sprintf("must be '%s', %s or '%s'", recreate, inPlaceIfPossible, inPlaceOnly)))
	}
	if _, err := keepOld(cs.Spec.UpdateStrategy.Partition, replicas); err != nil {
		errs = append(errs, field.Invalid(strategy.Child("partition"), cs.Spec.UpdateStrategy.Partition.String(),
			err.Error()))
	}
	surge, unavailable, err := surgeAndUnavailable(cs.Spec.UpdateStrategy.MaxSurge, cs.Spec.UpdateStrategy.MaxUnavailable,
		false, replicas)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(strategy, nil, err.Error()))
	case replicas > 0 && surge < 1 && unavailable < 1:
		errs = append(errs, field.Invalid(strategy.Child("maxUnavailable"), cs.Spec.UpdateStrategy.MaxUnavailable.String(),
			"maxUnavailable and maxSurge should not both be less than 1"))
	}
	if d := cs.Spec.ProgressDeadlineSeconds; d != nil && *d <= cs.Spec.MinReadySeconds {
		errs = append(errs, field.Invalid(spec.Child("progressDeadlineSeconds"), *d, "must be greater than minReadySeconds"))
	}

	var before *CloneSet
	if old != nil {
		if before, err = readCloneSet(old); err != nil {
			return append(errs, field.Invalid(spec, nil, err.Error()))
		}
		if !apiequality.Semantic.DeepEqual(before.Spec.Selector, cs.Spec.Selector) {
			errs = append(errs, field.Forbidden(spec,
				"updates to cloneset spec for fields other than 'replicas', 'template', 'lifecycle', "+
					"'scaleStrategy', 'updateStrategy', 'minReadySeconds', 'volumeClaimTemplates', 'progressDeadlineSeconds' and 'revisionHistoryLimit' are forbidden"))
		}
	}
	path := spec.Child("scaleStrategy", "podsToDelete")
	for i, name := range cs.Spec.ScaleStrategy.PodsToDelete {
		if !alpha {
			if slices.Contains(cs.Spec.ScaleStrategy.PodsToDelete[:i], name) {
				errs = append(errs, field.Duplicate(path, name))
			}
			continue
		}
		if before != nil && slices.Contains(before.Spec.ScaleStrategy.PodsToDelete, name) {
			continue
		}
		pod, err := getPod(u.GetNamespace(), name)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("find pod %s failed: %v", name, err)))
		case pod.DeletionTimestamp != nil:
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("pod %s already terminating", name)))
		case !metav1.IsControlledBy(pod, u):
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("pod %s owner is not this CloneSet", name)))
		}
	}
	return errs
}

func validateStatefulSet(u, old *unstructured.Unstructured) field.ErrorList {
	spec := field.NewPath("spec")
	set, err := read[StatefulSet](u)
	if err != nil {
		return field.ErrorList{field.Invalid(spec, nil, err.Error())}
	}
	errs := validateSelector(set.Spec.Selector, set.Spec.Template.Labels, spec)
	replicas := orDefault(set.Spec.Replicas, 1)
	if replicas < 0 {
		errs = append(errs, field.Invalid(spec.Child("replicas"), replicas, "must be greater than or equal to 0"))
	} else if _, err := ordinals(replicas, set.Spec.ReserveOrdinals); err != nil {
		errs = append(errs, field.Invalid(spec.Child("reserveOrdinals"), nil, err.Error()))
	}
	if p := set.Spec.PodManagementPolicy; p != "" && p != orderedReady && p != parallel {
		errs = append(errs, field.Invalid(spec.Child("podManagementPolicy"), p,
			fmt.Sprintf("must be '%s' or '%s'", orderedReady, parallel)))
	}
	if t := set.Spec.UpdateStrategy.Type; t != "" && t != rollingUpdate && t != onDelete {
		errs = append(errs, field.Invalid(spec.Child("updateStrategy", "type"), t,
			fmt.Sprintf("must be '%s' or '%s'", rollingUpdate, onDelete)))
	}
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil {
		path := spec.Child("updateStrategy", "rollingUpdate")
		if r.MaxUnavailable != nil && set.Spec.PodManagementPolicy != parallel && r.MaxUnavailable.String() != "1" {
			errs = append(errs, field.Invalid(path.Child("maxUnavailable"), r.MaxUnavailable.String(),
				"can only work with Parallel PodManagementPolicyType"))
		}
		if p := r.PodUpdatePolicy; (p == inPlaceIfPossible || p == inPlaceOnly) &&
			!slices.ContainsFunc(set.Spec.Template.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
				return g.ConditionType == inPlaceReady
			}) {
			errs = append(errs, field.Invalid(spec.Child("template", "spec", "readinessGates"),
				set.Spec.Template.Spec.ReadinessGates,
				fmt.Sprintf("must contains %s when podUpdatePolicy is %s", inPlaceReady, p)))
		}
		if s := orDefault(r.MinReadySeconds, 0); s < 0 || s > 300 {
			errs = append(errs, field.Invalid(path.Child("minReadySeconds"), s, "must be between 0 and 300"))
		}
	}
	if old == nil {
		return errs
	}
	before, err := read[StatefulSet](old)
	if err != nil {
		return append(errs, field.Invalid(spec, nil, err.Error()))
	}
	if !apiequality.Semantic.DeepEqual(before.Spec.Selector, set.Spec.Selector) ||
		before.Spec.ServiceName != set.Spec.ServiceName || before.Spec.PodManagementPolicy != set.Spec.PodManagementPolicy {
		errs = append(errs, field.Forbidden(spec,
			"updates to statefulset spec for fields other than 'replicas', 'template', 'reserveOrdinals', "+
				"'lifecycle', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy', 'volumeClaimTemplates', 'VolumeClaimUpdateStrategy' and 'updateStrategy' are forbidden"))
	}
	return errs
}

func validateSelector(selector *metav1.LabelSelector, template map[string]string, spec *field.Path) field.ErrorList {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return field.ErrorList{field.Invalid(spec.Child("selector"), nil, err.Error())}
	}
	if selector == nil || s.Empty() {
		return field.ErrorList{field.Invalid(spec.Child("selector"), selector, "empty selector is invalid")}
	}
	if !s.Matches(labels.Set(template)) {
		return field.ErrorList{field.Invalid(spec.Child("template", "metadata", "labels"), template,
			"`selector` does not match template `labels`")}
	}
	return nil
}
