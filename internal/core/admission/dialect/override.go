package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// OverrideReplicasForce is the value of wellknown.OverrideReplicasAnnotation that has an effect.
const OverrideReplicasForce = "force"

// SetsReplicas reports whether an override policy, not yet normalised, uses replicasOverrider,
// which is refused where the scheduler divides the replicas.
func SetsReplicas(obj *unstructured.Unstructured) bool {
	spec := child(obj.Object, "spec")
	return slices.ContainsFunc(append(objects(spec, "overrideRules"), spec), func(rule map[string]any) bool {
		return child(rule, "overriders")["replicasOverrider"] != nil
	})
}

func (r *rewrite) override() {
	if overriders := child(r.spec, "overriders"); overriders != nil {
		r.replicas(overriders, "spec.overriders")
	}
	for i, rule := range objects(r.spec, "overrideRules") {
		if overriders := child(rule, "overriders"); overriders != nil {
			r.replicas(overriders, fmt.Sprintf("spec.overrideRules[%d].overriders", i))
		}
	}
}

// replicas turns replicasOverrider into the plaintext overrider that does the same.
func (r *rewrite) replicas(overriders map[string]any, path string) {
	submitted, ok := overriders["replicasOverrider"]
	if _, isList := submitted.([]any); !ok || submitted != nil && !isList {
		return // no list: left to the schema, which refuses it
	}
	list := objects(overriders, "replicasOverrider")
	delete(overriders, "replicasOverrider")
	r.changed = true
	path += ".replicasOverrider"
	if len(list) == 0 {
		return
	}
	pointer, err := r.replicaPath()
	if err != nil {
		r.refuse(path, "%v", err)
		return
	}
	plaintext, _ := overriders["plaintext"].([]any)
	for i, item := range list {
		operator, value := item["operator"], item["value"]
		if operator != nil && operator != "" && operator != "replace" {
			r.refuse(fmt.Sprintf("%s[%d].operator", path, i), "%v is not supported; use replace", operator)
			return
		}
		if n, ok := fields.Float(value); !ok || n < 0 {
			r.refuse(fmt.Sprintf("%s[%d].value", path, i), "must be a number of replicas")
			return
		}
		plaintext = setPlaintext(plaintext, pointer, value)
	}
	overriders["plaintext"] = plaintext
	r.rewritten(path, submitted, "plaintext, replacing "+pointer)
}

// setPlaintext replaces the value of an overrider of that path, or appends one, so that the same policy applied again
// grows no second one.
func setPlaintext(list []any, pointer string, value any) []any {
	for _, item := range list {
		if o, ok := item.(map[string]any); ok && o["path"] == pointer && o["operator"] == "replace" {
			o["value"] = value
			return list
		}
	}
	return append(list, map[string]any{"path": pointer, "operator": "replace", "value": value})
}

// replicaPath returns the common path of the replicas in all kinds that the policy selects.
func (r *rewrite) replicaPath() (string, error) {
	selectors := objects(r.spec, "resourceSelectors")
	if len(selectors) == 0 {
		return "", errors.New("requires resourceSelectors, because the path of the replicas depends on the kind; select the workloads, or use plaintext")
	}
	var pointer string
	for _, s := range selectors {
		apiVersion, _ := s["apiVersion"].(string)
		name, _ := s["kind"].(string)
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return "", fmt.Errorf("apiVersion %q: %w", apiVersion, err)
		}
		path := kind.Lookup(gv.WithKind(name).GroupKind()).Replicas
		p := "/" + strings.Join(path, "/")
		switch {
		case path == nil:
			return "", fmt.Errorf("the path of the replicas of kind %s is unknown; use plaintext", name)
		case pointer != "" && p != pointer:
			return "", fmt.Errorf("the selected kinds have their replicas at different paths, %s and %s; use a separate policy for each", pointer, p)
		}
		pointer = p
	}
	return pointer, nil
}
