package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	values "github.com/argosy-io/argosy/internal/core/fields"
	"github.com/argosy-io/argosy/internal/core/fleet"
)

// MemberAdvice says what the webhooks of OpenKruise in the members will refuse of a template, in their words, as far as the template
// alone tells; old is what it was, nil for a new one. The hub stores it: a member may know better, and an override may change it.
func MemberAdvice(obj, old *unstructured.Unstructured) []string {
	judge := memberRules[obj.GroupVersionKind().GroupKind()]
	if judge == nil {
		return nil
	}
	t := &template{obj: obj.Object, spec: values.Object(obj.Object, "spec"), alpha: obj.GroupVersionKind().Version == "v1alpha1"}
	if old != nil {
		t.old = values.Object(old.Object, "spec")
	}
	judge(t)
	slices.Sort(t.advice)
	return t.advice
}

// template is one under judgement.
type template struct {
	obj, spec map[string]any
	old       map[string]any // the spec that it had, nil for a new one
	alpha     bool           // written in v1alpha1
	advice    []string
}

var memberRules = func() map[schema.GroupKind]func(*template) {
	const group = "apps.kruise.io"
	kept := func(text string, names ...string) func(*template) {
		return func(t *template) { t.fixed(text, names...) }
	}
	return map[schema.GroupKind]func(*template){
		{Group: group, Kind: "CloneSet"}:           cloneSetRules,
		{Group: group, Kind: "StatefulSet"}:        statefulSetRules,
		{Group: group, Kind: "DaemonSet"}:          daemonSetRules,
		{Group: group, Kind: "UnitedDeployment"}:   unitedDeploymentRules,
		{Group: group, Kind: "SidecarSet"}:         sidecarSetRules,
		{Group: group, Kind: "AdvancedCronJob"}:    advancedCronJobRules,
		{Group: group, Kind: "WorkloadSpread"}:     workloadSpreadRules,
		{Group: group, Kind: "PersistentPodState"}: kept("targetRef is immutable", "targetRef"),
		{Group: group, Kind: "ContainerRecreateRequest"}: func(t *template) {
			if t.old != nil && !reflect.DeepEqual(t.spec, t.old) {
				t.refuse(field.Forbidden(field.NewPath("spec"), "spec of ContainerRecreateRequest is immutable"))
			}
		},
		{Group: group, Kind: "ImagePullJob"}:                      pullSecretsRule,
		{Group: group, Kind: "ImageListPullJob"}:                  pullSecretsRule,
		{Group: "policy.kruise.io", Kind: "PodUnavailableBudget"}: podUnavailableBudgetRules,
	}
}()

// refuse tells one refusal.
func (t *template) refuse(err *field.Error) {
	t.advice = append(t.advice, err.Error()+": members reject it")
}

// invalid is the refusal of the value at a path below the spec.
func (t *template) invalid(detail string, path ...string) {
	at := field.NewPath("spec", path...)
	v := values.At(t.spec, path...)
	if v == nil {
		t.refuse(field.Required(at, detail))
		return
	}
	t.refuse(field.Invalid(at, v, detail))
}

// fixed refuses a change of these fields of the spec, of which a default may have been written since.
func (t *template) fixed(text string, names ...string) {
	for _, name := range names {
		if was := t.old[name]; was != nil && !reflect.DeepEqual(was, t.spec[name]) {
			t.refuse(field.Forbidden(field.NewPath("spec"), text))
			return
		}
	}
}

// selects judges the selector and the labels of the pods.
func (t *template) selects(labelsPath ...string) {
	var s metav1.LabelSelector
	raw := values.Object(t.spec, "selector")
	if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s) != nil {
		return // its definition says so
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		t.invalid(err.Error(), "selector")
		return
	}
	if selector.Empty() {
		t.invalid("empty selector is invalid", "selector")
		return
	}
	pods := labels.Set{}
	for key, v := range values.Object(t.spec, labelsPath...) {
		pods[key], _ = v.(string)
	}
	if !selector.Matches(pods) {
		t.invalid("`selector` does not match template `labels`", labelsPath...)
	}
}

// amount resolves a number or a percentage at a path below the spec, otherwise if it is not set; what is neither is refused.
func (t *template) amount(of int64, r fleet.Rounding, otherwise any, path ...string) (int64, bool) {
	v := values.At(t.spec, path...)
	if v == nil {
		v = otherwise
	}
	n, err := fleet.Resolve(v, of, r)
	if err != nil {
		t.invalid(err.Error(), path...)
	}
	return n, err == nil
}

func cloneSetRules(t *template) {
	t.selects("template", "metadata", "labels")
	at := func(name string) []string {
		if t.alpha {
			return []string{"updateStrategy", name}
		}
		return []string{"updateStrategy", "rollingUpdate", name}
	}
	replicas := int64(1)
	if n, ok := values.Whole(t.spec["replicas"]); ok {
		replicas = n
	}
	t.amount(replicas, fleet.Up, int64(0), at("partition")...)
	surge, known := t.amount(replicas, fleet.Up, int64(0), at("maxSurge")...)
	rounding := fleet.Up
	if surge > 0 {
		rounding = fleet.Down
	}
	unavailable, ok := t.amount(replicas, rounding, "20%", at("maxUnavailable")...)
	if known && ok && replicas > 0 && surge < 1 && unavailable < 1 {
		t.invalid("maxUnavailable and maxSurge should not both be less than 1", at("maxUnavailable")...)
		t.advice[len(t.advice)-1] += ", unless the hub divides the replicas: then one pod may be unavailable"
	}
	if d, ok := values.Whole(t.spec["progressDeadlineSeconds"]); ok && d <= values.Number(t.spec, "minReadySeconds") {
		t.invalid("must be greater than minReadySeconds", "progressDeadlineSeconds")
	}
	t.fixed("updates to cloneset spec for fields other than 'replicas', 'template', 'lifecycle', 'scaleStrategy', 'updateStrategy', "+
		"'minReadySeconds', 'volumeClaimTemplates', 'progressDeadlineSeconds' and 'revisionHistoryLimit' are forbidden", "selector")
}

func statefulSetRules(t *template) {
	t.selects("template", "metadata", "labels")
	rolling := []string{"updateStrategy", "rollingUpdate"}
	in := func(name string) []string { return append(slices.Clone(rolling), name) }
	if v := values.At(t.spec, in("maxUnavailable")...); v != nil && fmt.Sprint(v) != "1" && values.Text(t.spec, "podManagementPolicy") != "Parallel" {
		t.invalid("can only work with Parallel PodManagementPolicyType", in("maxUnavailable")...)
	}
	const gate = "InPlaceUpdateReady"
	if policy := values.Text(t.spec, in("podUpdatePolicy")...); strings.HasPrefix(policy, "InPlace") {
		gates := values.Objects(t.spec, "template", "spec", "readinessGates")
		if !slices.ContainsFunc(gates, func(g map[string]any) bool { return values.Text(g, "conditionType") == gate }) {
			t.invalid(fmt.Sprintf("must contains %s when podUpdatePolicy is %s", gate, policy), "template", "spec", "readinessGates")
		}
	}
	t.fixed("updates to statefulset spec for fields other than 'replicas', 'template', 'reserveOrdinals', 'lifecycle', 'revisionHistoryLimit', "+
		"'persistentVolumeClaimRetentionPolicy', 'volumeClaimTemplates', 'VolumeClaimUpdateStrategy' and 'updateStrategy' are forbidden",
		"selector", "serviceName", "podManagementPolicy")
	names := func(spec map[string]any) (all []string) {
		for _, c := range values.Objects(spec, "volumeClaimTemplates") {
			all = append(all, values.Text(c, "metadata", "name"))
		}
		return all
	}
	if t.old != nil && !slices.Equal(names(t.spec), names(t.old)) {
		t.invalid("volumeClaimTemplate name can not be modified", "volumeClaimTemplates")
	}
}

func daemonSetRules(t *template) {
	t.selects("template", "metadata", "labels")
	at := func(name string) []string { return []string{"updateStrategy", "rollingUpdate", name} }
	const many = 1000 // of how many nodes a percentage is nobody knows here
	surge, known := t.amount(many, fleet.Up, int64(0), at("maxSurge")...)
	otherwise := any(int64(1))
	if surge > 0 {
		otherwise = int64(0)
	}
	unavailable, ok := t.amount(many, fleet.Up, otherwise, at("maxUnavailable")...)
	t.amount(many, fleet.Down, int64(0), at("partition")...)
	switch {
	case !known || !ok:
	case surge == 0 && unavailable == 0:
		t.invalid("cannot be 0 when maxSurge is 0", at("maxUnavailable")...)
	case surge > 0 && unavailable > 0:
		t.invalid("may not be set when maxUnavailable is non-zero", at("maxSurge")...)
	case surge > 0 && values.Text(t.spec, at("rollingUpdateType")...) == "InPlaceIfPossible":
		t.invalid("must be 0 for InPlaceIfPossible type", at("maxSurge")...)
	}
	t.fixed("updates to daemonset spec: selector is immutable", "selector")
}

// pullSecretsRule tells of secrets that come too late: no member has them changed, and the hub sends the rest without them.
func pullSecretsRule(t *template) {
	was, is := values.List(t.old, "pullSecrets"), values.List(t.spec, "pullSecrets")
	if t.old == nil || len(was)+len(is) == 0 || reflect.DeepEqual(was, is) {
		return
	}
	t.advice = append(t.advice, field.Forbidden(field.NewPath("spec", "pullSecrets"), "pullSecrets is immutable").Error()+
		": members that have the object reject this change and keep the original pullSecrets, and all other changes are applied; to use other pullSecrets, delete and recreate the object")
}

func unitedDeploymentRules(t *template) {
	kinds := []string{"statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate", "deploymentTemplate"}
	var given []string
	for _, kind := range kinds {
		if values.Object(t.spec, "template", kind) != nil {
			given = append(given, kind)
		}
	}
	if len(given) != 1 {
		t.invalid("should provide one of statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate, or deploymentTemplate", "template")
	} else {
		t.selects("template", given[0], "metadata", "labels")
	}
	total, set := values.Whole(t.spec["replicas"])
	subsets := values.Objects(t.spec, "topology", "subsets")
	var sum int64
	all, numbers, unlimited := len(subsets) > 0, true, false
	for _, s := range subsets {
		n, whole := values.Whole(s["replicas"])
		sum += n
		all, numbers = all && s["replicas"] != nil, numbers && (whole || s["replicas"] == nil)
		unlimited = unlimited || s["maxReplicas"] == nil
		if s["replicas"] != nil && (s["minReplicas"] != nil || s["maxReplicas"] != nil) {
			t.invalid(fmt.Sprintf("subset %q has replicas, which cannot be combined with minReplicas or maxReplicas", values.Text(s, "name")), "topology", "subsets")
		}
	}
	switch {
	case len(subsets) > 0 && !unlimited:
		t.invalid("at least one subset must not have maxReplicas", "topology", "subsets")
	case !set || !numbers: // percentages are made numbers where replicas are divided
	case all && sum != total:
		t.invalid(fmt.Sprintf("if replicas of all subsets are provided, the sum of indicated subset replicas %d should equal UnitedDeployment replicas %d", sum, total), "topology", "subsets")
	case sum > total:
		t.invalid(fmt.Sprintf("the sum of indicated subset replicas %d should not be greater than UnitedDeployment replicas %d", sum, total), "topology", "subsets")
	}
}

func sidecarSetRules(t *template) {
	if selector := values.Object(t.spec, "selector"); len(values.Object(selector, "matchLabels"))+len(values.List(selector, "matchExpressions")) == 0 {
		t.invalid("no selector defined for SidecarSet", "selector")
	}
	if len(values.List(t.spec, "containers"))+len(values.List(t.spec, "initContainers")) == 0 {
		t.invalid("no initContainer or container defined for SidecarSet", "containers")
	}
	kind := values.Text(t.spec, "updateStrategy", "type")
	lasting := func(c map[string]any) bool { return values.Text(c, "restartPolicy") == "Always" }
	if kind != "NotUpdate" && slices.ContainsFunc(values.Objects(t.spec, "initContainers"), lasting) {
		t.invalid("the type must be NotUpdate for init containers with restartPolicy Always", "updateStrategy", "type")
	}
	if kind != "NotUpdate" && values.Text(t.obj, "metadata", "annotations", "apps.kruise.io/sidecarset-canary") == "true" {
		t.invalid("the type must be NotUpdate for a canary", "updateStrategy", "type")
	}
}

func advancedCronJobRules(t *template) {
	const text = "updates to advancedcronjob spec for fields other than 'schedule', 'timeZone', 'concurrencyPolicy', 'successfulJobsHistoryLimit', " +
		"'failedJobsHistoryLimit', 'startingDeadlineSeconds' and 'paused' are forbidden"
	given := 0
	for _, kind := range []string{"jobTemplate", "broadcastJobTemplate", "imageListPullJobTemplate"} {
		if values.Object(t.spec, "template", kind) != nil {
			given++
		}
	}
	if given != 1 {
		t.invalid("exactly one of jobTemplate, broadcastJobTemplate and imageListPullJobTemplate must be set", "template")
	}
	if t.old == nil {
		return
	}
	for _, kind := range []string{"jobTemplate", "broadcastJobTemplate"} {
		if !reflect.DeepEqual(values.At(t.spec, "template", kind), values.At(t.old, "template", kind)) {
			t.refuse(field.Forbidden(field.NewPath("spec"), text))
			return
		}
	}
}

func workloadSpreadRules(t *template) {
	subsets := values.Objects(t.spec, "subsets")
	var numbers, percents int
	var hundred int64
	open := false
	for i, s := range subsets {
		v := s["maxReplicas"]
		if _, ok := values.Whole(v); ok {
			numbers++
		} else if v != nil {
			percents++
			n, err := fleet.Resolve(v, 100, fleet.Up)
			if err != nil {
				t.invalid(err.Error(), "subsets")
				return
			}
			hundred += n
		} else {
			open = i == len(subsets)-1
		}
	}
	of := values.Text(t.spec, "targetRef", "kind")
	switch {
	case numbers > 0 && percents > 0:
		t.invalid("the maxReplicas type of all subsets must be the same", "subsets")
	case percents > 0 && of == "StatefulSet":
		t.invalid("the maxReplicas of subsets must be a number for a StatefulSet", "subsets")
	case percents > 0 && !open && hundred != 100:
		t.invalid(fmt.Sprintf("the maxReplicas of all subsets add up to %d%%, and must add up to 100%% unless the last subset has none", hundred), "subsets")
	}
	t.fixed("targetRef is immutable", "targetRef")
}

func podUnavailableBudgetRules(t *template) {
	if t.spec["selector"] != nil && t.spec["targetRef"] != nil || t.spec["selector"] == nil && t.spec["targetRef"] == nil {
		t.invalid("exactly one of selector and targetRef must be set", "targetRef")
	}
	if t.spec["maxUnavailable"] != nil && t.spec["minAvailable"] != nil || t.spec["maxUnavailable"] == nil && t.spec["minAvailable"] == nil {
		t.invalid("exactly one of maxUnavailable and minAvailable must be set", "maxUnavailable")
	}
	t.fixed("selector and targetRef are immutable", "selector", "targetRef")
}
