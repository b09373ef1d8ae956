package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// unitedDeployment is OpenKruise's UnitedDeployment, v1alpha1 and v1beta1: one workload per subset from one template.
// The versions differ in the status fields of revision and partitions.
//
// Revise sets only the replicas. Those of subsets are divided where all clusters are known.
func unitedDeployment() *interpret.Hooks {
	counters := []string{"replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas", "reservedPods"}
	done := func(template *unstructured.Unstructured, status map[string]any) bool {
		wanted, err := unitedReplicas(template)
		return err == nil && number(status, "updatedReadyReplicas") >= wanted
	}
	return &interpret.Hooks{
		Replicas: func(_ context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
			n, err := unitedReplicas(obj)
			if err != nil {
				return 0, nil, err
			}
			req, err := interpret.Requirements(obj)
			return int32(n), req, err
		},
		Components: unitedComponents,
		Revise:     revise,
		Retain:     retainAll(retainReplicas, retainImmutable(immutableSubsets)),
		Reflect:    reflectNoting(podsReserved),
		Health:     unitedDeploymentHealth,
		Aggregate: counting(settled, counters, done,
			addCollisions, addConditions, addSelector, addUnitedRevisions, addSubsets),
		Dependencies: unitedDependencies,
	}
}

// unitedReplicas returns spec.replicas, or else the sum of the subsets' replicas, or else one.
func unitedReplicas(obj *unstructured.Unstructured) (int64, error) {
	total, err := specNumber(obj, -1, "replicas")
	if err != nil {
		return 0, err
	}
	if field(obj.Object, "spec", "replicas") == nil {
		asked := false
		total = 0
		for _, s := range objects(obj.Object, "spec", "topology", "subsets") {
			if s["replicas"] == nil {
				continue
			}
			n, ok := whole(s["replicas"])
			if !ok {
				return 0, fmt.Errorf("spec.replicas is not set, but subset %q has %v of it", text(s, "name"), s["replicas"])
			}
			total, asked = total+n, true
		}
		if !asked {
			total = 1
		}
	}
	if err := countable(total); err != nil {
		return 0, fmt.Errorf("spec.replicas: %w", err)
	}
	return total, nil
}

// unitedSpec returns the spec of the workload template; nil if there is none.
func unitedSpec(obj *unstructured.Unstructured) map[string]any {
	for _, t := range []string{"statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate",
		"deploymentTemplate"} {
		if spec := object(obj.Object, "spec", "template", t, "spec"); spec != nil {
			return spec
		}
	}
	return nil
}

// subset is a subset of a UnitedDeployment with its replicas.
type subset struct {
	name     string
	replicas int64
	spec     map[string]any
}

// subsetsOf returns the subsets in order. Subsets with a number or percentage get that, rounded half up. The rest goes
// first to minReplicas in order, then up to maxReplicas in order, then evenly to subsets without a maximum.
func subsetsOf(obj *unstructured.Unstructured) ([]subset, error) {
	total, err := unitedReplicas(obj)
	if err != nil {
		return nil, err
	}
	specs := objects(obj.Object, "spec", "topology", "subsets")
	shares, set := make([]int64, len(specs)), make([]bool, len(specs))
	left := total
	for k, spec := range specs {
		if set[k] = spec["replicas"] != nil; !set[k] {
			continue
		}
		n, err := fleet.Resolve(spec["replicas"], total, fleet.HalfUp)
		if err != nil {
			return nil, fmt.Errorf("replicas of subset %q: %w", text(spec, "name"), err)
		}
		shares[k] = min(max(n, 0), left)
		left -= shares[k]
	}
	if err := fleet.Fill(specs, shares, set, left); err != nil {
		return nil, err
	}
	subsets := make([]subset, len(specs))
	for k, spec := range specs {
		subsets[k] = subset{name: text(spec, "name"), replicas: shares[k], spec: spec}
	}
	return subsets, nil
}

// unitedComponents returns the subsets with their node requirements.
func unitedComponents(_ context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	subsets, err := subsetsOf(obj)
	if err != nil {
		return nil, err
	}
	paths := interpret.PodTemplates(obj)
	var components []workv1alpha2.Component
	for _, s := range subsets {
		var req *workv1alpha2.ReplicaRequirements
		if len(paths) > 0 {
			t, err := interpret.PodTemplate(obj, paths[0])
			if err != nil {
				return nil, err
			}
			if t, err = s.template(t); err != nil {
				return nil, err
			}
			req = interpret.PodRequirements(t, obj.GetNamespace())
		}
		components = append(components, component(componentName(s.name), int32(s.replicas), req))
	}
	slices.SortFunc(components, func(a, b workv1alpha2.Component) int { return cmp.Compare(a.Name, b.Name) })
	return components, nil
}

// template returns the pod template for the subset: with its nodes, tolerations and patch.
func (s subset) template(t *corev1.PodTemplateSpec) (*corev1.PodTemplateSpec, error) {
	var nodes struct {
		NodeSelectorTerm corev1.NodeSelectorTerm `json:"nodeSelectorTerm"`
		Tolerations      []corev1.Toleration     `json:"tolerations"`
	}
	raw := map[string]any{}
	for _, key := range []string{"nodeSelectorTerm", "tolerations"} {
		if v := s.spec[key]; v != nil {
			raw[key] = v
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &nodes); err != nil {
		return nil, fmt.Errorf("read the nodes of subset %q: %w", s.name, err)
	}
	out := t.DeepCopy()
	if term := nodes.NodeSelectorTerm; len(term.MatchExpressions)+len(term.MatchFields) > 0 {
		require(&out.Spec, term)
	}
	out.Spec.Tolerations = append(out.Spec.Tolerations, nodes.Tolerations...)

	patch := object(s.spec, "patch")
	if patch == nil {
		return out, nil
	}
	out, err := patched(out, patch)
	if err != nil {
		return nil, fmt.Errorf("apply the patch of subset %q: %w", s.name, err)
	}
	return out, nil
}

// patched returns t with a strategic merge patch applied.
func patched(t *corev1.PodTemplateSpec, patch map[string]any) (out *corev1.PodTemplateSpec, err error) {
	// The library panics if a merge key is not a string, and users write the patch.
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("it is not a valid patch of a pod template: %v", p)
		}
	}()
	before, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	change, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, change, corev1.PodTemplateSpec{})
	if err != nil {
		return nil, err
	}
	out = &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(after, out); err != nil {
		return nil, err
	}
	return out, nil
}

// require adds the term to the required node affinity. Terms are alternatives, so it is added to each.
func require(pod *corev1.PodSpec, term corev1.NodeSelectorTerm) {
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if pod.Affinity.NodeAffinity == nil {
		pod.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	nodes := pod.Affinity.NodeAffinity
	if nodes.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		nodes.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	selector := nodes.RequiredDuringSchedulingIgnoredDuringExecution
	if len(selector.NodeSelectorTerms) == 0 {
		selector.NodeSelectorTerms = []corev1.NodeSelectorTerm{term}
		return
	}
	for i := range selector.NodeSelectorTerms {
		have := &selector.NodeSelectorTerms[i]
		have.MatchExpressions = append(have.MatchExpressions, term.MatchExpressions...)
		have.MatchFields = append(have.MatchFields, term.MatchFields...)
	}
}

// unitedDependencies returns the dependencies of the template and of the subsets' patches.
func unitedDependencies(ctx context.Context,
	obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	deps, err := podDependencies(ctx, obj)
	if err != nil {
		return nil, err
	}
	for _, spec := range objects(obj.Object, "spec", "topology", "subsets") {
		s := subset{name: text(spec, "name"), spec: spec}
		if object(spec, "patch") == nil {
			continue
		}
		// Apply the patch to an empty template to get only what it adds.
		t, err := s.template(&corev1.PodTemplateSpec{})
		if err != nil {
			return nil, err
		}
		deps = append(deps, interpret.PodDependencies(t, obj.GetNamespace())...)
	}
	return interpret.SortDependencies(deps), nil
}

// immutableSubsets keeps the member's nodes and tolerations of subsets.
func immutableSubsets(desired, observed map[string]any) []clash {
	path := []string{"spec", "topology", "subsets"}
	var why []string
	wanted := slices.Clone(list(desired, path...))
	for i, w := range wanted {
		want, ok := w.(map[string]any)
		name := text(want, "name")
		have := withName(objects(observed, path...), name, "name")
		if !ok || have == nil {
			continue
		}
		keep := func(key string, same func(a, b any) bool) {
			if same(want[key], have[key]) {
				return
			}
			want = runtime.DeepCopyJSON(want)
			delete(want, key)
			if v := have[key]; v != nil {
				want[key] = runtime.DeepCopyJSONValue(v)
			}
			wanted[i] = want
			why = append(why, fmt.Sprintf("%s of subset %q is unchanged, but the template has another", key, name))
		}
		keep("nodeSelectorTerm", sameDecoded[corev1.NodeSelectorTerm])
		keep("tolerations", sameDecoded[[]corev1.Toleration])
	}
	if why == nil {
		return nil
	}
	return []clash{{path, wanted, strings.Join(why, "; ")}}
}

// unitedDeploymentHealth uses the numbers, as rolling does.
func unitedDeploymentHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	wanted, err := unitedReplicas(observed)
	if err != nil {
		return interpret.Unknown, err
	}
	if !fresh(observed) {
		return interpret.Progressing, nil
	}
	status, workload := object(observed.Object, "status"), unitedSpec(observed)
	partitions := object(observed.Object, "spec", "updateStrategy", "manualUpdate", "partitions")
	var keptOld int64
	for name, s := range foldedSubsets([]report{{status: status}}) {
		keptOld += min(max(number(partitions, name), 0), number(s, "replicas"))
	}
	health := rolling{
		wanted: wanted, keptOld: keptOld,
		there: number(status, "replicas"), available: number(status, "readyReplicas"),
		updated: number(status, "updatedReplicas"), updatedAvailable: number(status, "updatedReplicas"),
		// A Deployment is paused in its spec, other workloads in their strategy.
		paused: yes(workload, "paused") || yes(workload, "updateStrategy", "paused") ||
			yes(workload, "updateStrategy", "rollingUpdate", "paused"),
		onDelete: onDelete(workload),
	}.health()
	if reserved := number(status, "reservedPods"); reserved > 0 && health != interpret.Degraded {
		return interpret.Progressing, nil // some pods are unschedulable
	}
	return health, nil
}

// addUnitedRevisions adds the common revisions of the clusters, in the field of the template's version.
func addUnitedRevisions(status map[string]any, template *unstructured.Unstructured, rs []report) error {
	either := make([]report, len(rs))
	for i, r := range rs {
		either[i] = r
		if r.status != nil {
			either[i].status = map[string]any{
				"currentRevision": text(r.status, "currentRevision"),
				"updateRevision":  cmp.Or(text(r.status, "updatedRevision"), text(r.status, "updateStatus", "updatedRevision")),
			}
		}
	}
	named := map[string]any{}
	revisions(named, either)
	status["currentRevision"] = text(named, "currentRevision") // required by the schema
	updated := text(named, "updateRevision")
	if !oldVersion(template) {
		setText(status, "updatedRevision", updated)
		return nil
	}
	if updated != "" {
		status["updateStatus"] = map[string]any{"updatedRevision": updated}
	}
	return nil
}

// addSubsets adds the aggregated status of each subset by name.
func addSubsets(status map[string]any, template *unstructured.Unstructured, rs []report) error {
	folded := foldedSubsets(rs)
	if len(folded) == 0 {
		return nil
	}
	var subsets []any
	replicas, partitions := map[string]any{}, map[string]any{}
	for name, s := range folded {
		subsets = append(subsets, s)
		replicas[name], partitions[name] = s["replicas"], s["partition"]
	}
	sortBy(subsets, "name")
	status["subsetStatuses"] = subsets
	if oldVersion(template) {
		status["subsetReplicas"] = replicas
		update := object(status, "updateStatus")
		if update == nil {
			update = map[string]any{}
			status["updateStatus"] = update
		}
		update["currentPartitions"] = partitions
	}
	return nil
}

// foldedSubsets returns the statuses of subsets by name, added up over the clusters. Before OpenKruise 1.6 a status had
// only maps of replicas and partitions.
func foldedSubsets(rs []report) map[string]map[string]any {
	folded := map[string]map[string]any{}
	for name, of := range byName(rs, func(r report) []map[string]any {
		known := objects(r.status, "subsetStatuses")
		if known == nil {
			for name, n := range object(r.status, "subsetReplicas") {
				known = append(known, map[string]any{
					"name": name, "replicas": n, "partition": field(r.status, "updateStatus", "currentPartitions", name),
				})
			}
		}
		return known
	}) {
		s := sums(of, "replicas", "readyReplicas", "partition", "reservedPods")
		s["name"] = name
		setConditions(s, of, func(string) bool { return false }, "lastTransitionTime")
		folded[name] = s
	}
	return folded
}
