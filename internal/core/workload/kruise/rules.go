package kruise

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

const (
	predownloadParallelism = "apps.kruise.io/image-predownload-parallelism"
	predownloadTimeout     = "apps.kruise.io/image-predownload-timeout-seconds"
	predownloadMinReady    = "apps.kruise.io/image-predownload-min-updated-ready-pods"
	excludePreparingDelete = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"
	customVersion          = "apps.kruise.io/sidecarset-custom-version"
	protectOperations      = "kruise.io/pub-protect-operations"
	protectTotalReplicas   = "pub.kruise.io/protect-total-replicas"
	rollingStyle           = "rollouts.kruise.io/rolling-style"
	trafficRouting         = "rollouts.kruise.io/trafficrouting"
)

// rules are of the kinds whose versions differ by more than fields that one of them lacks.
var rules = map[schema.GroupKind]rule{
	apps("CloneSet"): {
		up: func(o map[string]any) { cloneSetUp(o) }, down: func(o map[string]any) { cloneSetDown(o) },
		harmless: []string{"spec.updateStrategy.type=RollingUpdate"},
	},
	apps("StatefulSet"): {harmless: []string{
		"spec.persistentVolumeClaimRetentionPolicy.whenDeleted=Retain",
		"spec.persistentVolumeClaimRetentionPolicy.whenScaled=Retain",
	}},
	apps("SidecarSet"): {up: sidecarSetUp, down: sidecarSetDown, harmless: []string{"spec.namespace"}},
	apps("UnitedDeployment"): {
		up: unitedDeploymentUp, down: unitedDeploymentDown,
		harmless: []string{"spec.template.cloneSetTemplate.spec.updateStrategy.type=RollingUpdate"},
	},
	apps("DaemonSet"):                renames("status.daemonSetHash", "status.updateRevision"),
	apps("ContainerRecreateRequest"): {up: recreateUp, down: recreateDown},
	apps("ResourceDistribution"): renames("spec.targets.namespaceLabelSelector", "spec.targets.namespaceSelector",
		"status.conditions[].failedNamespace", "status.conditions[].failedNamespaces"),
	apps("WorkloadSpread"): renames("spec.subsets[].requiredNodeSelectorTerm", "spec.subsets[].requiredNodeSelector",
		"spec.subsets[].preferredNodeSelectorTerms", "spec.subsets[].preferredNodeSelector"),
	apps("PersistentPodState"): renames("spec.requiredPersistentTopology.nodeTopologyKeys",
		"spec.requiredPersistentTopology.keys",
		"spec.preferredPersistentTopology[].preference.nodeTopologyKeys",
		"spec.preferredPersistentTopology[].preference.keys"),
	{Group: "policy.kruise.io", Kind: "PodUnavailableBudget"}: {up: budgetUp, down: budgetDown},
	{Group: "rollouts.kruise.io", Kind: "Rollout"}:            {up: rolloutUp, down: rolloutDown},
	{Group: "rollouts.kruise.io", Kind: "BatchRelease"}: {
		up:   func(o map[string]any) { lift(o, "spec", "targetReference", "workloadRef") },
		down: func(o map[string]any) { lower(o, "spec", "targetReference", "workloadRef") },
	},
}

func apps(kind string) schema.GroupKind { return schema.GroupKind{Group: "apps.kruise.io", Kind: kind} }

// renames are of fields that have another name beside the same neighbours: a path of v1alpha1, then the one of v1beta1.
// A name followed by [] is a list, and its items are meant.
func renames(pairs ...string) rule {
	along := func(from, to int) func(map[string]any) {
		return func(o map[string]any) {
			for i := 0; i < len(pairs); i += 2 {
				path := strings.Split(pairs[i+from], ".")
				name := pairs[i+to][strings.LastIndexByte(pairs[i+to], '.')+1:]
				visit(o, path[:len(path)-1], func(parent map[string]any) { move(parent, path[len(path)-1], parent, name) })
			}
		}
	}
	return rule{up: along(0, 1), down: along(1, 0)}
}

// updateFields of a CloneSet are below updateStrategy in v1alpha1 and below rollingUpdate there in v1beta1.
var updateFields = []string{"partition", "maxUnavailable", "maxSurge", "paused", "priorityStrategy", "scatterStrategy",
	"inPlaceUpdateStrategy"}

func cloneSetUp(o map[string]any) {
	spec := object(o, "spec")
	if spec == nil {
		return
	}
	if update := object(spec, "updateStrategy"); update != nil {
		rolling := map[string]any{}
		for _, name := range updateFields {
			move(update, name, rolling, name)
		}
		if move(update, "type", rolling, "podUpdatePolicy") {
			update["type"] = "RollingUpdate"
		}
		if len(rolling) > 0 {
			update["rollingUpdate"] = rolling
		}
	}
	inPlace := func() map[string]any {
		return fields.Ensure(spec, "updateStrategy", "rollingUpdate", "inPlaceUpdateStrategy")
	}
	takeMark(o, "annotations", predownloadParallelism, func(text string) bool {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			inPlace()["imagePreDownloadParallelism"] = n
		} else {
			inPlace()["imagePreDownloadParallelism"] = text
		}
		return true
	})
	takeMark(o, "annotations", predownloadTimeout,
		number(func(n int64) { inPlace()["imagePreDownloadTimeoutSeconds"] = n }))
	takeMark(o, "annotations", predownloadMinReady,
		number(func(n int64) { inPlace()["imagePreDownloadMinUpdatedReadyPods"] = n }))
	takeMark(o, "labels", excludePreparingDelete, func(text string) bool {
		if text == "true" {
			fields.Ensure(spec, "scaleStrategy")["excludePreparingDelete"] = true
		}
		return text == "true"
	})
	invert(spec, "disablePVCReuse", "enablePVCReuse")
}

func cloneSetDown(o map[string]any) {
	spec := object(o, "spec")
	if spec == nil {
		return
	}
	if update := object(spec, "updateStrategy"); update != nil {
		delete(update, "type")
		rolling := object(update, "rollingUpdate")
		for _, name := range updateFields {
			move(rolling, name, update, name)
		}
		move(rolling, "podUpdatePolicy", update, "type")
		delete(update, "rollingUpdate")
		if inPlace := object(update, "inPlaceUpdateStrategy"); inPlace != nil {
			giveMark(o, "annotations", predownloadParallelism, inPlace, "imagePreDownloadParallelism")
			giveMark(o, "annotations", predownloadTimeout, inPlace, "imagePreDownloadTimeoutSeconds")
			giveMark(o, "annotations", predownloadMinReady, inPlace, "imagePreDownloadMinUpdatedReadyPods")
			fields.DropEmpty(update, "inPlaceUpdateStrategy")
		}
		fields.DropEmpty(spec, "updateStrategy")
	}
	scale := object(spec, "scaleStrategy")
	if scale["excludePreparingDelete"] == true {
		giveMark(o, "labels", excludePreparingDelete, scale, "excludePreparingDelete")
	}
	invert(spec, "enablePVCReuse", "disablePVCReuse")
}

// invert turns one flag of a CloneSet's scaleStrategy into its opposite: to is true where from is not.
func invert(spec map[string]any, from, to string) {
	scale := object(spec, "scaleStrategy")
	set := scale[from] == true
	delete(scale, from)
	switch {
	case !set:
		fields.Ensure(spec, "scaleStrategy")[to] = true
	case len(scale) == 0:
		delete(spec, "scaleStrategy")
	}
}

func sidecarSetUp(o map[string]any) {
	spec := object(o, "spec")
	if spec == nil {
		return
	}
	takeMark(o, "labels", customVersion, func(text string) bool { spec["customVersion"] = text; return true })
	// Without it the containers would be injected everywhere.
	if namespace, ok := spec["namespace"].(string); ok && namespace != "" && spec["namespaceSelector"] == nil {
		spec["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}}
	}
}

func sidecarSetDown(o map[string]any) {
	if spec := object(o, "spec"); spec != nil {
		giveMark(o, "labels", customVersion, spec, "customVersion")
	}
}

func unitedDeploymentUp(o map[string]any) {
	// v1alpha1 has the CloneSet inside in either shape, depending on the release: one that is in the newer shape stays so.
	if clone := embedded(o); clone != nil && !newShape(object(clone, "spec")) {
		cloneSetUp(clone)
	}
	lift(o, "status", "updateStatus", "updatedRevision")
}

func embedded(unitedDeployment map[string]any) map[string]any {
	return object(unitedDeployment, "spec", "template", "cloneSetTemplate")
}

// newShape reports whether the spec of a CloneSet can only be of v1beta1.
func newShape(spec map[string]any) bool {
	update, scale := object(spec, "updateStrategy"), object(spec, "scaleStrategy")
	_, reuse := scale["enablePVCReuse"]
	_, exclude := scale["excludePreparingDelete"]
	return reuse || exclude || update["rollingUpdate"] != nil || update["type"] == "RollingUpdate" ||
		update["type"] == "OnDelete"
}

// oldShape reports whether it can only be of v1alpha1.
func oldShape(spec map[string]any) bool {
	update := object(spec, "updateStrategy")
	_, reuse := object(spec, "scaleStrategy")["disablePVCReuse"]
	return reuse || update["type"] != nil && !newShape(spec) ||
		slices.ContainsFunc(updateFields, func(field string) bool { return update[field] != nil })
}

func unitedDeploymentDown(o map[string]any) {
	if clone := embedded(o); clone != nil && !oldShape(object(clone, "spec")) {
		cloneSetDown(clone)
	}
	lower(o, "status", "updateStatus", "updatedRevision")
	status := object(o, "status")
	// v1alpha1 repeats by name what v1beta1 has in the status of each subset.
	visit(o, []string{"status", "subsetStatuses[]"}, func(s map[string]any) {
		name, _ := s["name"].(string)
		if n, ok := s["replicas"]; ok && name != "" {
			fields.Ensure(status, "subsetReplicas")[name] = n
		}
		if n, ok := s["partition"]; ok && name != "" {
			fields.Ensure(status, "updateStatus", "currentPartitions")[name] = n
		}
	})
}

func recreateUp(o map[string]any) {
	visit(o, []string{"spec", "containers[]"}, func(c map[string]any) {
		run, ok := c["statusContext"].(map[string]any)
		if !ok {
			return
		}
		delete(c, "statusContext")
		run["name"] = c["name"]
		status := fields.Ensure(o, "status")
		list, _ := status["containerStatusSnapshot"].([]any)
		status["containerStatusSnapshot"] = append(list, run)
	})
}

func recreateDown(o map[string]any) {
	visit(o, []string{"status", "containerStatusSnapshot[]"}, func(run map[string]any) {
		visit(o, []string{"spec", "containers[]"}, func(c map[string]any) {
			if !reflect.DeepEqual(c["name"], run["name"]) {
				return
			}
			context := fields.Ensure(c, "statusContext")
			for _, field := range []string{"containerID", "restartCount"} {
				if v, ok := run[field]; ok {
					context[field] = v
				}
			}
		})
	})
}

func budgetUp(o map[string]any) {
	spec := object(o, "spec")
	if spec == nil {
		return
	}
	takeMark(o, "annotations", protectOperations, func(text string) bool {
		var list []any
		for operation := range strings.SplitSeq(text, ",") {
			list = append(list, strings.TrimSpace(operation))
		}
		spec["protectOperations"] = list
		return true
	})
	takeMark(o, "annotations", protectTotalReplicas, number(func(n int64) { spec["protectTotalReplicas"] = n }))
}

func budgetDown(o map[string]any) {
	spec := object(o, "spec")
	if spec == nil {
		return
	}
	if list, ok := spec["protectOperations"].([]any); ok && len(list) > 0 {
		texts := make([]string, len(list))
		for i := range list {
			texts[i], _ = list[i].(string)
		}
		fields.Ensure(o, "metadata", "annotations")[protectOperations] = strings.Join(texts, ",")
	}
	giveMark(o, "annotations", protectTotalReplicas, spec, "protectTotalReplicas")
}

func rolloutUp(o map[string]any) {
	lift(o, "spec", "objectRef", "workloadRef")
	visit(o, []string{"spec", "strategy", "canary", "steps[]"}, func(step map[string]any) {
		weight, ok := step["weight"].(int64)
		if !ok {
			return
		}
		delete(step, "weight")
		percent := strconv.FormatInt(weight, 10) + "%"
		step["traffic"] = percent
		if step["replicas"] == nil {
			step["replicas"] = percent
		}
	})
	if canary := object(o, "spec", "strategy", "canary"); canary != nil {
		partition := false
		takeMark(o, "annotations", rollingStyle, func(text string) bool {
			partition = strings.EqualFold(text, "partition")
			return true
		})
		if !partition {
			canary["enableExtraWorkloadForCanary"] = true
		}
		takeMark(o, "annotations", trafficRouting, func(text string) bool { canary["trafficRoutingRef"] = text; return true })
	}
	status := object(o, "status")
	for _, field := range []string{"currentStepIndex", "currentStepState"} {
		if v, ok := object(status, "canaryStatus")[field]; ok {
			status[field] = v
		}
	}
}

func rolloutDown(o map[string]any) {
	lower(o, "spec", "objectRef", "workloadRef")
	visit(o, []string{"spec", "strategy", "canary", "steps[]"}, func(step map[string]any) {
		text, _ := step["traffic"].(string)
		if n, err := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 32); err == nil {
			step["weight"] = n
		}
	})
	if canary := object(o, "spec", "strategy", "canary"); canary != nil {
		if canary["enableExtraWorkloadForCanary"] != true {
			fields.Ensure(o, "metadata", "annotations")[rollingStyle] = "partition"
		}
		delete(canary, "enableExtraWorkloadForCanary")
		giveMark(o, "annotations", trafficRouting, canary, "trafficRoutingRef")
	}
}

var object = fields.Object

// move takes a field from one object to another, and reports whether it existed.
func move(from map[string]any, field string, to map[string]any, as string) bool {
	v, ok := from[field]
	if ok {
		delete(from, field)
		to[as] = v
	}
	return ok
}

// lift moves the field part.from.field to part.field, where part is spec or status. lower moves it back.
func lift(o map[string]any, part, from, field string) {
	parent := object(o, part)
	move(object(parent, from), field, parent, field)
	fields.DropEmpty(parent, from)
}

func lower(o map[string]any, part, to, field string) {
	if parent := object(o, part); parent[field] != nil {
		move(parent, field, fields.Ensure(parent, to), field)
	}
}

// visit calls f with every object at the path, in which a name followed by [] is a list, and its items are meant.
func visit(m map[string]any, path []string, f func(map[string]any)) {
	if len(path) == 0 {
		f(m)
		return
	}
	name, list := strings.CutSuffix(path[0], "[]")
	if !list {
		if o := object(m, name); o != nil {
			visit(o, path[1:], f)
		}
		return
	}
	for _, o := range fields.Objects(m, name) {
		visit(o, path[1:], f)
	}
}

// takeMark removes a label or annotation if take could make something of it.
func takeMark(o map[string]any, in, name string, take func(text string) bool) {
	metadata := object(o, "metadata")
	marks := object(metadata, in)
	if text, ok := marks[name].(string); ok && take(text) {
		delete(marks, name)
		fields.DropEmpty(metadata, in)
	}
}

// giveMark makes a label or annotation of a field.
func giveMark(o map[string]any, in, name string, from map[string]any, field string) {
	var text string
	switch v := from[field].(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case bool:
		text = strconv.FormatBool(v)
	default:
		return
	}
	delete(from, field)
	fields.Ensure(o, "metadata", in)[name] = text
}

// number returns a function for takeMark that accepts whole numbers.
func number(set func(int64)) func(string) bool {
	return func(text string) bool {
		n, err := strconv.ParseInt(text, 10, 32)
		if err == nil {
			set(n)
		}
		return err == nil
	}
}
