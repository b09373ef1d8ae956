package ocm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// Mode is what a klusterlet does to the object of a ManifestWork that the hub renders from a Work.
type Mode int

// The modes. Look is the zero value: a klusterlet would take over and later delete any object of the name, so it first
// reports whose the object is.
const (
	// Look reports the object, and changes nothing.
	Look Mode = iota
	// Apply applies and owns the object: it is deleted with the ManifestWork.
	Apply
	// Keep gives up the object, which stays when the ManifestWork is deleted.
	Keep
)

// FieldManager is the manager of the fields that a klusterlet applies for the hub.
const FieldManager = "work-agent-argosy"

// RenderedName returns the name of the ManifestWork of a Work: klusterlets put 65 characters in front of it.
func RenderedName(work string) string { return names.Label(work) }

// Rendered reports whether the hub writes a ManifestWork from the Work of a name.
func Rendered(mw *ocmv1.ManifestWork, work string) bool {
	of, is := mw.Annotations[wellknown.WorkAnnotation]
	return is && of == work
}

// ModeOf returns the mode of a rendered ManifestWork.
func ModeOf(mw *ocmv1.ManifestWork) Mode {
	if len(mw.Spec.ManifestConfigs) == 0 || mw.Spec.ManifestConfigs[0].UpdateStrategy == nil {
		return Look
	}
	switch mw.Spec.ManifestConfigs[0].UpdateStrategy.Type {
	case ocmv1.UpdateStrategyServerSideApply:
		return Apply
	case ocmv1.UpdateStrategyCreateOnly:
		return Keep
	}
	return Look
}

// Render returns the ManifestWork with which a klusterlet carries out a Work in a mode. desired is the object to apply,
// resource the plural name of its kind. was is the present one; nil for none. It is not changed.
func Render(w *workv1alpha1.Work, cluster string, desired *unstructured.Unstructured, resource string, mode Mode,
	was *ocmv1.ManifestWork) (*ocmv1.ManifestWork, error) {
	mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: RenderedName(w.Name)}}
	if was != nil {
		mw = was.DeepCopy()
	}
	metav1.SetMetaDataAnnotation(&mw.ObjectMeta, wellknown.WorkAnnotation, w.Name)
	strategy := &ocmv1.UpdateStrategy{Type: ocmv1.UpdateStrategyReadOnly}
	orphan := &ocmv1.DeleteOption{PropagationPolicy: ocmv1.DeleteOrphan}
	var deleted *ocmv1.DeleteOption
	var rules []ocmv1.ConditionRule
	switch mode {
	case Apply:
		if execute.Preserved(w) || execute.TakesAlong(desired.GroupVersionKind().GroupKind()) {
			deleted = orphan // whatever happens to the ManifestWork
		}
		rules = rulesOf(desired)
		strategy.Type = ocmv1.UpdateStrategyServerSideApply
		strategy.ServerSideApply = &ocmv1.ServerSideApplyConfig{Force: true, FieldManager: FieldManager}
		if path := retainedReplicas(desired); path != nil {
			strategy.ServerSideApply.IgnoreFields = []ocmv1.IgnoreField{{Condition: ocmv1.IgnoreOnSpokeChange,
				JSONPaths: []string{"." + strings.Join(path, ".")}}}
		}
	case Keep:
		strategy.Type = ocmv1.UpdateStrategyCreateOnly
		deleted = orphan
	}
	raw, err := json.Marshal(desired.Object) // as the API server returns it: no newline, keys sorted
	if err != nil {
		return nil, fmt.Errorf("encode the manifest of work %s: %w", w.Name, err)
	}
	gvk := desired.GroupVersionKind()
	option := ocmv1.ManifestConfigOption{UpdateStrategy: strategy, FeedbackRules: feedbackOf(desired),
		FeedbackScrapeType: ocmv1.FeedbackPoll,
		ResourceIdentifier: ocmv1.ResourceIdentifier{Group: gvk.Group, Resource: resource, Name: desired.GetName(),
			Namespace: desired.GetNamespace()}, ConditionRules: rules}
	if hasStatus(gvk.Group, gvk.Kind) {
		option.FeedbackScrapeType = ocmv1.FeedbackWatch
	}
	mw.Spec = ocmv1.ManifestWorkSpec{DeleteOption: deleted, ManifestConfigs: []ocmv1.ManifestConfigOption{option},
		Workload: ocmv1.ManifestsTemplate{Manifests: []ocmv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}}}
	return mw, nil
}

// retainedReplicas returns the path of the replicas of an object that an autoscaler in the cluster sets; nil for
// others.
func retainedReplicas(obj *unstructured.Unstructured) []string {
	if obj.GetLabels()[policyv1alpha1.RetainReplicasLabel] != "true" {
		return nil
	}
	return kind.Facts(obj).Replicas
}

// RetainReplicas sets, in place, the replicas of desired to those that the cluster has, if an autoscaler there sets
// them. was is the ManifestWork that was sent last: if nothing else changes, it stays as it is.
func RetainReplicas(desired, observed *unstructured.Unstructured, was *ocmv1.ManifestWork) {
	path := retainedReplicas(desired)
	if path == nil || was == nil || len(was.Spec.Workload.Manifests) == 0 {
		return
	}
	sent := &unstructured.Unstructured{}
	if sent.UnmarshalJSON(was.Spec.Workload.Manifests[0].Raw) != nil {
		return
	}
	wanted, _, _ := unstructured.NestedInt64(desired.Object, path...)
	take := func(from *unstructured.Unstructured) {
		if n, found, _ := unstructured.NestedInt64(from.Object, path...); found {
			_ = unstructured.SetNestedField(desired.Object, n, path...) // the parents are objects: desired has the field
		}
	}
	if take(sent); !reflect.DeepEqual(desired.Object, sent.Object) {
		_ = unstructured.SetNestedField(desired.Object, wanted, path...)
		if observed != nil {
			take(observed)
		}
	}
}

// marks are the labels and annotations by which core/execute decides whose an object is.
var marks = map[string][]string{
	"labels": {workv1alpha2.ManagedLabel, workv1alpha2.WorkPermanentIDLabel},
	"annotations": {workv1alpha2.WorkNamespaceAnnotation, workv1alpha2.WorkNameAnnotation, wellknown.HubAnnotation,
		wellknown.HandsOffAnnotation, wellknown.CreatedAnnotation, wellknown.ManifestWorkAnnotation,
		workv1alpha2.TemplateUIDAnnotation, workv1alpha2.TemplateGenerationAnnotation},
}

// reported are the fields of a status that interpreters read, beside the counters of the kind. What an object lacks is
// not reported.
var reported = []string{"observedGeneration", "replicas", "readyReplicas", "updatedReplicas", "availableReplicas",
	"unavailableReplicas", "currentReplicas", "desiredReplicas", "currentRevision", "updateRevision", "labelSelector",
	"selector", "phase", "message", "reason", "active", "ready", "succeeded", "failed", "desired", "startTime",
	"completionTime", "startedAt", "finishedAt", "progress", "HPAReplicas", "stableRS", "currentPodHash",
	"currentStepIndex", "abort", "currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed",
	"state.phase", "jobDeploymentStatus", "jobStatus", "applicationState.state", "currentStepState", "matchedPods",
	"updatedPods", "readyPods", "updatedReadyPods"}

// commonConditions are types that many kinds have, beside the failures of the kind.
var commonConditions = []string{"Ready", "Available", "Progressing", "Healthy", "Complete", "Failed", "Succeeded",
	"Completed", "InvalidSpec", "Synced"}

// hasStatus is false for kinds without a status.
func hasStatus(group, kind string) bool {
	switch {
	case group == "rbac.authorization.k8s.io", group == "admissionregistration.k8s.io":
		return false
	case group == "" && slices.Contains([]string{"ConfigMap", "Secret", "ServiceAccount", "LimitRange"}, kind):
		return false
	}
	return group != "networking.k8s.io" || kind != "NetworkPolicy"
}

// feedbackOf returns the rules for what the hub reads of an object. The name of a value is its place, see Observed.
func feedbackOf(obj *unstructured.Unstructured) []ocmv1.FeedbackRule {
	var paths []ocmv1.JsonPath
	add := func(name, path string) { paths = append(paths, ocmv1.JsonPath{Name: name, Path: path}) }
	for _, in := range []string{"labels", "annotations"} {
		for _, key := range marks[in] {
			add("metadata/"+in+"/"+strings.ReplaceAll(key, "/", "~"), ".metadata."+in+"."+strings.ReplaceAll(key, ".", `\.`))
		}
	}
	for _, field := range []string{"uid", "deletionTimestamp", "generation"} {
		add("metadata/"+field, ".metadata."+field)
	}
	k := kind.Facts(obj)
	if k.Replicas != nil {
		add(strings.Join(k.Replicas, "/"), "."+strings.Join(k.Replicas, "."))
	}
	if gvk := obj.GroupVersionKind(); hasStatus(gvk.Group, gvk.Kind) {
		for _, field := range statusFields(k) {
			add("status/"+strings.ReplaceAll(field, ".", "/"), ".status."+field)
		}
		for _, of := range conditionTypes(k) {
			for _, field := range []string{"status", "reason", "message", "lastTransitionTime"} {
				add("status/conditions/"+of+"/"+field, fmt.Sprintf(`.status.conditions[?(@.type=="%s")].%s`, of, field))
			}
		}
	}
	return []ocmv1.FeedbackRule{{Type: ocmv1.FeedbackJSONPaths, JsonPaths: paths}}
}

func statusFields(k *kind.Kind) []string {
	all := slices.Concat(reported, k.Counters.Existing, k.Counters.Others, []string{k.Counters.All, k.Counters.Updated,
		k.Counters.Ready, k.Counters.Available, k.Counters.UpdatedAvailable, k.Counters.Desired, k.Counters.Active})
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(field string) bool { return field == "" })
}

func conditionTypes(k *kind.Kind) []string {
	all := slices.Clone(commonConditions)
	for _, f := range k.Failures {
		all = append(all, f.Type)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// finished is true for a run that has ended, by the words of the kinds that run once.
const finished = `has(object.status) && (` +
	`object.status.?phase.orValue("") in ["Succeeded", "Failed", "Error", "Completed", "completed", "failed"] || ` +
	`object.status.?completionTime.hasValue() || ` +
	`object.status.?state.?phase.orValue("") in ["Completed", "Failed", "Terminated"] || ` +
	`object.status.?jobDeploymentStatus.orValue("") in ["Complete", "Failed"] || ` +
	`object.status.?applicationState.?state.orValue("") in ["COMPLETED", "FAILED"] || ` +
	`object.status.?conditions.orValue([]).exists(c, c.type in ["Complete", "Failed"] && c.status == "True"))`

// rulesOf returns the condition Complete for kinds that run once: a klusterlet does not create a complete object again
// after the cluster has deleted it.
func rulesOf(obj *unstructured.Unstructured) []ocmv1.ConditionRule {
	if kind.Facts(obj).Once == nil {
		return nil
	}
	return []ocmv1.ConditionRule{{Condition: ocmv1.Complete, Type: ocmv1.RuleCEL, CelExpressions: []string{finished}}}
}

// Answer is what a klusterlet reports about the object of a rendered ManifestWork.
type Answer struct {
	// Known is true if the klusterlet has looked for the object.
	Known bool
	// Current is true if it has carried out the present generation of the ManifestWork, and has read the object since.
	Current bool
	// Failed is why it could not; empty if it could.
	Failed string
	// Observed is the object with the fields that the hub reads, and otherwise the desired ones; nil if it is absent.
	Observed *unstructured.Unstructured
}

// Completed reports whether a klusterlet has stopped to apply a ManifestWork, because its run has ended.
func Completed(mw *ocmv1.ManifestWork) bool {
	return meta.IsStatusConditionTrue(mw.Status.Conditions, ocmv1.Complete)
}

// Read returns what a klusterlet reports. desired is the object that the hub wants.
func Read(mw *ocmv1.ManifestWork, desired *unstructured.Unstructured) (a Answer) {
	if len(mw.Status.ResourceStatus.Manifests) == 0 {
		return a
	}
	m := mw.Status.ResourceStatus.Manifests[0]
	if applied := meta.FindStatusCondition(m.Conditions, ocmv1.Applied); applied != nil {
		read := meta.FindStatusCondition(mw.Status.Conditions, ocmv1.Available) // set by another loop of the klusterlet
		a.Current = applied.ObservedGeneration == mw.Generation && read != nil && read.ObservedGeneration == mw.Generation
		if applied.Status == metav1.ConditionFalse {
			a.Failed = applied.Message
		}
	}
	available := meta.FindStatusCondition(m.Conditions, ocmv1.Available)
	switch {
	case available == nil:
		return a
	case available.Status == metav1.ConditionUnknown:
		a.Failed = cmp.Or(a.Failed, available.Message, available.Reason)
		return a
	}
	if a.Known = true; available.Status == metav1.ConditionTrue {
		a.Observed = rebuild(desired, m.StatusFeedbacks.Values)
	}
	return a
}

// rebuild returns desired with the values that a klusterlet reports instead of what may differ: the marks of the hub,
// the replicas and the status.
func rebuild(desired *unstructured.Unstructured, values []ocmv1.FeedbackValue) *unstructured.Unstructured {
	out := desired.DeepCopy()
	execute.Unmark(out)
	delete(out.Object, "status")
	types, asked := map[string]map[string]any{}, map[string]bool{}
	for _, path := range feedbackOf(desired)[0].JsonPaths {
		asked[path.Name] = true
	}
	for _, v := range values {
		var value any
		if !asked[v.Name] {
			continue // a klusterlet could name any field
		}
		switch {
		case v.Value.Integer != nil:
			value = *v.Value.Integer
		case v.Value.String != nil:
			value = *v.Value.String
		case v.Value.Boolean != nil:
			value = *v.Value.Boolean
		default:
			continue
		}
		path := strings.Split(v.Name, "/")
		if len(path) == 4 && path[1] == "conditions" {
			if types[path[2]] == nil {
				types[path[2]] = map[string]any{"type": path[2]}
			}
			types[path[2]][path[3]] = value
			continue
		}
		path[len(path)-1] = strings.ReplaceAll(path[len(path)-1], "~", "/")
		// The parents are objects, unless the klusterlet does not report what it was asked for.
		_ = unstructured.SetNestedField(out.Object, value, path...)
	}
	if len(types) > 0 {
		var list []any
		for _, name := range slices.Sorted(maps.Keys(types)) {
			list = append(list, types[name])
		}
		_ = unstructured.SetNestedSlice(out.Object, list, "status", "conditions")
	}
	return out
}
