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

	values "github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// MemberAdvice warns about what the webhooks of OpenKruise in the members will reject in a template, as far as the
// template alone shows. old is its previous state, nil for a new template. The hub stores the template anyway: a member
// may have a newer version that accepts it, and an override may change it.
func MemberAdvice(obj, old *unstructured.Unstructured) []string {
	judge := memberRules[obj.GroupVersionKind().GroupKind()]
	if judge == nil {
		return nil
	}
	t := &template{obj: obj.Object, spec: values.Object(obj.Object, "spec"),
		alpha: obj.GroupVersionKind().Version == "v1alpha1"}
	if old != nil {
		t.old = values.Object(old.Object, "spec")
	}
	judge(t)
	slices.Sort(t.advice)
	return t.advice
}

// template is the template that the rules check.
type template struct {
	obj, spec map[string]any
	old       map[string]any // the previous spec, nil for a new object
	alpha     bool           // written in v1alpha1
	advice    []string
}

var memberRules = func() map[schema.GroupKind]func(*template) {
	const group = "apps.kruise.io"
	return map[schema.GroupKind]func(*template){
		{Group: group, Kind: "CloneSet"}:           cloneSetRules,
		{Group: group, Kind: "StatefulSet"}:        statefulSetRules,
		{Group: group, Kind: "DaemonSet"}:          daemonSetRules,
		{Group: group, Kind: "UnitedDeployment"}:   unitedDeploymentRules,
		{Group: group, Kind: "SidecarSet"}:         sidecarSetRules,
		{Group: group, Kind: "AdvancedCronJob"}:    advancedCronJobRules,
		{Group: group, Kind: "WorkloadSpread"}:     workloadSpreadRules,
		{Group: group, Kind: "PersistentPodState"}: func(t *template) { t.fixed("targetRef") },
		{Group: group, Kind: "ContainerRecreateRequest"}: func(t *template) {
			if t.old != nil && !reflect.DeepEqual(t.spec, t.old) {
				t.refuse(field.Forbidden(field.NewPath("spec"), "cannot be changed"))
			}
		},
		{Group: group, Kind: "ImagePullJob"}:                      pullSecretsRule,
		{Group: group, Kind: "ImageListPullJob"}:                  pullSecretsRule,
		{Group: "policy.kruise.io", Kind: "PodUnavailableBudget"}: podUnavailableBudgetRules,
	}
}()

// refuse adds a warning that members reject the template.
func (t *template) refuse(err *field.Error) {
	t.advice = append(t.advice, err.Error()+": members reject it")
}

// invalid adds a warning that members reject the value at a path below the spec.
func (t *template) invalid(detail string, path ...string) {
	at := field.NewPath("spec", path...)
	v := values.Value(t.spec, path...)
	if v == nil {
		t.refuse(field.Required(at, detail))
		return
	}
	t.refuse(field.Invalid(at, v, detail))
}

// fixed warns about a change of these fields of the spec. A field that was empty may have got its default in the
// meantime.
func (t *template) fixed(names ...string) {
	for _, name := range names {
		if was := t.old[name]; was != nil && !reflect.DeepEqual(was, t.spec[name]) {
			t.refuse(field.Forbidden(field.NewPath("spec", name), "cannot be changed"))
			return
		}
	}
}

// selects judges the selector and the labels of the pods.
func (t *template) selects(labelsPath ...string) {
	var s metav1.LabelSelector
	raw := values.Object(t.spec, "selector")
	if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s) != nil {
		return // its definition requires it
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		t.invalid(err.Error(), "selector")
		return
	}
	if selector.Empty() {
		t.invalid("selects all pods", "selector")
		return
	}
	pods := labels.Set{}
	for key, v := range values.Object(t.spec, labelsPath...) {
		pods[key], _ = v.(string)
	}
	if !selector.Matches(pods) {
		t.invalid("spec.selector does not select these labels", labelsPath...)
	}
}

// amount resolves a number or a percentage at a path below the spec. It returns otherwise if the field is not set, and
// rejects other types.
func (t *template) amount(of int64, r fleet.Rounding, otherwise any, path ...string) (int64, bool) {
	v := values.Value(t.spec, path...)
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
		t.invalid("no pod can be updated, because maxSurge is 0 too", at("maxUnavailable")...)
		t.advice[len(t.advice)-1] += ", unless the hub divides the replicas: then one pod may be unavailable"
	}
	if d, ok := values.Whole(t.spec["progressDeadlineSeconds"]); ok && d <= values.Number(t.spec, "minReadySeconds") {
		t.invalid("must be greater than minReadySeconds", "progressDeadlineSeconds")
	}
	t.fixed("selector")
}

func statefulSetRules(t *template) {
	t.selects("template", "metadata", "labels")
	rolling := []string{"updateStrategy", "rollingUpdate"}
	in := func(name string) []string { return append(slices.Clone(rolling), name) }
	if v := values.Value(t.spec, in("maxUnavailable")...); v != nil && fmt.Sprint(v) != "1" &&
		values.Text(t.spec, "podManagementPolicy") != "Parallel" {
		t.invalid("must be 1 unless podManagementPolicy is Parallel", in("maxUnavailable")...)
	}
	const gate = "InPlaceUpdateReady"
	if policy := values.Text(t.spec, in("podUpdatePolicy")...); strings.HasPrefix(policy, "InPlace") {
		gates := values.Objects(t.spec, "template", "spec", "readinessGates")
		if !slices.ContainsFunc(gates, func(g map[string]any) bool { return values.Text(g, "conditionType") == gate }) {
			t.invalid(fmt.Sprintf("podUpdatePolicy %s requires the readiness gate %s", policy, gate), "template", "spec",
				"readinessGates")
		}
	}
	t.fixed("selector", "serviceName", "podManagementPolicy")
	names := func(spec map[string]any) (all []string) {
		for _, c := range values.Objects(spec, "volumeClaimTemplates") {
			all = append(all, values.Text(c, "metadata", "name"))
		}
		return all
	}
	if t.old != nil && !slices.Equal(names(t.spec), names(t.old)) {
		t.refuse(field.Forbidden(field.NewPath("spec", "volumeClaimTemplates"), "the names cannot be changed"))
	}
}

func daemonSetRules(t *template) {
	t.selects("template", "metadata", "labels")
	at := func(name string) []string { return []string{"updateStrategy", "rollingUpdate", name} }
	const many = 1000 // the number of nodes is unknown here
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
		t.invalid("no pod can be updated, because maxSurge is 0 too", at("maxUnavailable")...)
	case surge > 0 && unavailable > 0:
		t.invalid("must be 0 unless maxUnavailable is 0", at("maxSurge")...)
	case surge > 0 && values.Text(t.spec, at("rollingUpdateType")...) == "InPlaceIfPossible":
		t.invalid("must be 0 if rollingUpdateType is InPlaceIfPossible", at("maxSurge")...)
	}
	t.fixed("selector")
}

// pullSecretsRule warns of changed pull secrets: members reject the change, and the hub sends the rest without it.
func pullSecretsRule(t *template) {
	was, is := values.List(t.old, "pullSecrets"), values.List(t.spec, "pullSecrets")
	if t.old == nil || len(was)+len(is) == 0 || reflect.DeepEqual(was, is) {
		return
	}
	t.advice = append(t.advice, field.Forbidden(field.NewPath("spec", "pullSecrets"), "cannot be changed").Error()+
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
		t.invalid("exactly one of "+strings.Join(kinds, ", ")+" must be set", "template")
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
			t.invalid(fmt.Sprintf("subset %q has replicas, which cannot be combined with minReplicas or maxReplicas",
				values.Text(s, "name")), "topology", "subsets")
		}
	}
	switch {
	case len(subsets) > 0 && !unlimited:
		t.invalid("at least one subset must not have maxReplicas", "topology", "subsets")
	case !set || !numbers: // percentages become numbers if replicas are divided
	case all && sum != total:
		t.invalid(fmt.Sprintf("the replicas of all subsets are set and add up to %d, but spec.replicas is %d", sum, total),
			"topology", "subsets")
	case sum > total:
		t.invalid(fmt.Sprintf("the replicas of the subsets add up to %d, more than spec.replicas, %d", sum, total),
			"topology", "subsets")
	}
}

func sidecarSetRules(t *template) {
	if selector := values.Object(t.spec, "selector"); len(values.Object(selector, "matchLabels"))+
		len(values.List(selector, "matchExpressions")) == 0 {
		t.invalid("selects all pods", "selector")
	}
	if len(values.List(t.spec, "containers"))+len(values.List(t.spec, "initContainers")) == 0 {
		t.invalid("the SidecarSet has no containers and no initContainers", "containers")
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
		if !reflect.DeepEqual(values.Value(t.spec, "template", kind), values.Value(t.old, "template", kind)) {
			t.refuse(field.Forbidden(field.NewPath("spec", "template", kind), "cannot be changed"))
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
		t.invalid("maxReplicas must be a number in all subsets, or a percentage in all", "subsets")
	case percents > 0 && of == "StatefulSet":
		t.invalid("the maxReplicas of subsets must be a number for a StatefulSet", "subsets")
	case percents > 0 && !open && hundred != 100:
		t.invalid(fmt.Sprintf("the maxReplicas of all subsets add up to %d%%, and must add up to 100%% unless the last subset has none", hundred), "subsets")
	}
	t.fixed("targetRef")
}

func podUnavailableBudgetRules(t *template) {
	if t.spec["selector"] != nil && t.spec["targetRef"] != nil || t.spec["selector"] == nil && t.spec["targetRef"] == nil {
		t.invalid("exactly one of selector and targetRef must be set", "targetRef")
	}
	if t.spec["maxUnavailable"] != nil && t.spec["minAvailable"] != nil || t.spec["maxUnavailable"] == nil &&
		t.spec["minAvailable"] == nil {
		t.invalid("exactly one of maxUnavailable and minAvailable must be set", "maxUnavailable")
	}
	t.fixed("selector", "targetRef")
}
