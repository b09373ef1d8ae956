package validate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/source/ocm"
	"github.com/argosy-io/argosy/internal/core/source/ocm/rollout"
)

const (
	// manifestLimit is the maximal size of all objects of a ManifestWork in bytes, the default of Open Cluster Management.
	manifestLimit = 500 * 1024
	// configLimit is the maximal number of options: each reconciliation compares each option with each object.
	configLimit = 1000
	// expressionLimit is the maximal number of expressions: compiling one takes a millisecond.
	expressionLimit = 500
)

// ManifestWork validates a ManifestWork. It rejects options that the hub cannot follow if the hub would do more than
// they allow. Clients of Open Cluster Management know the texts about manifests.
func ManifestWork(mw *ocmv1.ManifestWork) field.ErrorList {
	return manifestWork(mw, field.NewPath("spec"), "manifests should not be empty")
}

// ManifestWorkReplicaSet validates a ManifestWorkReplicaSet, and its template as ManifestWork does.
func ManifestWorkReplicaSet(set *workv1alpha1.ManifestWorkReplicaSet) field.ErrorList {
	spec := field.NewPath("spec")
	errs := manifestWork(&ocmv1.ManifestWork{Spec: set.Spec.ManifestWorkTemplate}, spec.Child("manifestWorkTemplate"),
		"Workload manifests should not be empty")
	seen := map[string]bool{}
	for i, ref := range set.Spec.PlacementRefs {
		at := spec.Child("placementRefs").Index(i)
		if seen[ref.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), ref.Name))
		}
		seen[ref.Name] = true
		if _, err := rollout.Parse(ref.RolloutStrategy); err != nil {
			errs = append(errs, field.Invalid(at.Child("rolloutStrategy"), "", err.Error()))
		}
	}
	return errs
}

func manifestWork(mw *ocmv1.ManifestWork, spec *field.Path, none string) field.ErrorList {
	var errs field.ErrorList
	path := spec.Child("workload", "manifests")
	if len(mw.Spec.Workload.Manifests) == 0 {
		errs = append(errs, field.Required(path, none))
	}
	size := 0
	type object struct{ group, kind, namespace, name string }
	first := map[object]int{}
	for i, m := range mw.Spec.Workload.Manifests {
		size += len(m.Raw)
		var is struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace, GenerateName string }
		}
		at := path.Index(i)
		if err := json.Unmarshal(m.Raw, &is); err != nil {
			errs = append(errs, field.Invalid(at, "", fmt.Sprintf("is not a Kubernetes object: %v", err)))
			continue
		}
		errs = append(errs, required(at.Child("apiVersion"), is.APIVersion, "must not be empty")...)
		errs = append(errs, required(at.Child("kind"), is.Kind, "must not be empty")...)
		errs = append(errs, required(at.Child("metadata", "name"), is.Metadata.Name, "name must be set in manifest")...)
		if is.Metadata.GenerateName != "" {
			errs = append(errs, field.Forbidden(at.Child("metadata", "generateName"),
				"generateName must not be set in manifest: set metadata.name instead"))
		}
		errs = append(errs, apiVersion(at.Child("apiVersion"), is.APIVersion)...)
		id := object{match.GroupKind(is.APIVersion, is.Kind).Group, is.Kind, is.Metadata.Namespace, is.Metadata.Name}
		if before, twice := first[id]; twice {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("duplicate manifest for resource %s/%s with resource type "+
				"%s.%s: it is also at %s", is.Metadata.Namespace, is.Metadata.Name, is.APIVersion, is.Kind, path.Index(before))))
		} else {
			first[id] = i
		}
	}
	if size > manifestLimit {
		errs = append(errs, &field.Error{Type: field.ErrorTypeTooLong, Field: path.String(),
			Detail: fmt.Sprintf("the size of manifests is %d bytes which exceeds the %d limit", size, manifestLimit)})
	}
	if mw.Spec.Executor != nil {
		errs = append(errs, field.Forbidden(spec.Child("executor"),
			"executors are not supported, since the hub applies with its own service account, which may have more permissions: remove it, "+
				"and use roles on the hub to control who may write ManifestWorks in the namespace of a cluster"))
	}
	if n := len(mw.Spec.ManifestConfigs); n > configLimit {
		errs = append(errs, field.TooMany(spec.Child("manifestConfigs"), n, configLimit))
		return errs
	}
	expressions := 0
	for i, config := range mw.Spec.ManifestConfigs {
		for j, rule := range config.ConditionRules {
			if expressions += len(rule.CelExpressions); rule.MessageExpression != "" {
				expressions++
			}
			if err := ocm.ConditionType(rule.Condition); err != nil {
				errs = append(errs, field.Invalid(spec.Child("manifestConfigs").Index(i).Child("conditionRules").Index(j).Child(
					"condition"), rule.Condition, err.Error()))
			}
		}
		if config.UpdateStrategy == nil || config.UpdateStrategy.ServerSideApply == nil {
			continue
		}
		at := spec.Child("manifestConfigs").Index(i).Child("updateStrategy", "serverSideApply", "ignoreFields")
		for j, ignore := range config.UpdateStrategy.ServerSideApply.IgnoreFields {
			if _, err := ocm.Ignored(ignore); err != nil {
				errs = append(errs, field.Invalid(at.Index(j), "",
					fmt.Sprintf("each must refer to one field, such as .spec.replicas: %v", err)))
			}
		}
	}
	if expressions > expressionLimit {
		errs = append(errs, field.Forbidden(spec.Child("manifestConfigs"),
			fmt.Sprintf("have %d expressions, more than %d: use one entry with * for several objects", expressions,
				expressionLimit)))
	}
	return errs
}

// ManifestWorkAdvice warns about options of a ManifestWork that the hub ignores or follows differently. c is its
// cluster, nil if unknown; scoped reports whether a kind is namespaced, if the kind is known.
func ManifestWorkAdvice(mw *ocmv1.ManifestWork, c *clusterv1alpha1.Cluster,
	scoped func(schema.GroupKind) (namespaced, known bool)) (advice []string) {
	warn := func(at *field.Path, format string, args ...any) {
		advice = append(advice, at.String()+": "+fmt.Sprintf(format, args...))
	}
	items := ocm.Items(mw, c)
	for i, item := range items {
		if namespaced, _ := scoped(schema.GroupKind{Group: item.Meta.Group, Kind: item.Meta.Kind}); namespaced &&
			item.Meta.Namespace == "" {
			warn(field.NewPath("spec", "workload", "manifests").Index(i).Child("metadata", "namespace"),
				"a %s is namespaced: the cluster rejects one without a namespace", item.Meta.Kind)
		}
	}
	for i, config := range mw.Spec.ManifestConfigs {
		at := field.NewPath("spec", "manifestConfigs").Index(i)
		var named []ocm.Item
		for _, item := range items {
			if item.Named(config.ResourceIdentifier) {
				named = append(named, item)
			}
		}
		if len(named) == 0 {
			warn(at.Child("resourceIdentifier"),
				"matches none of the manifests, so this entry has no effect: resource is the plural name of a kind, such as deployments")
		}
		if u := config.UpdateStrategy; u != nil && u.ServerSideApply != nil {
			ssa := at.Child("updateStrategy", "serverSideApply")
			if u.Type != ocmv1.UpdateStrategyServerSideApply {
				warn(ssa, "has no effect with the type %s", u.Type)
			} else if m := u.ServerSideApply.FieldManager; m != "" && m != "work-agent" {
				warn(ssa.Child("fieldManager"), "the hub applies as argosy, not as %s", m)
			}
		}
		reported := map[string]bool{}
		for j, rule := range config.FeedbackRules {
			feedback := at.Child("feedbackRules").Index(j)
			if rule.Type == ocmv1.FeedbackWellKnownStatus {
				for _, item := range named {
					if kind := (schema.GroupKind{Group: item.Meta.Group, Kind: item.Meta.Kind}); !ocm.WellKnown(kind) {
						warn(feedback, "there are no well-known values for a %s: use the type JSONPaths; well-known values exist for %s",
							kind, strings.Join(ocm.WellKnownKinds(), ", "))
					}
				}
			}
			for k, path := range rule.JsonPaths {
				if _, err := ocm.ParsePath(path); err != nil {
					warn(feedback.Child("jsonPaths").Index(k).Child("path"), "%v", err)
				}
				if reported[path.Name] {
					warn(feedback.Child("jsonPaths").Index(k).Child("name"), "duplicate name %s: only the first value is reported",
						path.Name)
				}
				reported[path.Name] = true
			}
		}
		for j, rule := range config.ConditionRules {
			condition := at.Child("conditionRules").Index(j)
			for k, expression := range rule.CelExpressions {
				if _, err := ocm.Compile(expression, cel.BoolType); err != nil {
					warn(condition.Child("celExpressions").Index(k), "%v", err)
				}
			}
			if rule.MessageExpression != "" {
				if _, err := ocm.Compile(rule.MessageExpression, cel.StringType); err != nil {
					warn(condition.Child("messageExpression"), "%v", err)
				}
			}
		}
	}
	return advice
}
