package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ownKinds are the kinds that neither Karmada nor Open Cluster Management has. All their fields are listed.
var ownKinds = []string{"EnclosedManifest", "ReplicaSchedulingPolicy"}

// differing are the fields of Karmada that behave differently here, by KIND.PATH, with the difference. A field that
// Karmada does not have needs no entry: its description contains addition or spelling.
var differing = map[string]string{
	"PropagationPolicy.spec.resourceSelectors[].apiVersion": "Any version of the group is matched.",

	"PropagationPolicy.spec.preemption": "Always in effect; Karmada has a feature gate for it, off by default.",

	"PropagationPolicy.spec.conflictResolution": "`Overwrite` is treated as `Abort` where an administrator forbids " +
		"overwriting.",

	"PropagationPolicy.spec.failover.cluster": "Always in effect; Karmada has feature gates for it. " +
		"Without it, workloads leave lost clusters as with `Gracefully`; `argosy up --cluster-failover` changes that.",

	"PropagationPolicy.spec.failover.application": "Always in effect; Karmada has a feature gate for it.",

	"PropagationPolicy.spec.placement.spreadConstraints": "`provider` and `zone` work as well, and replicas are in at " +
		"least `minGroups` groups.",

	"OverridePolicy.spec.overrideRules[].overriders.imageOverrider": "Works for all kinds with a pod template. With " +
		"`component: Registry` it also changes init containers and image volumes.",

	"OverridePolicy.spec.overrideRules[].overriders.commandOverrider": "Works for all kinds with a pod template.",

	"OverridePolicy.spec.overrideRules[].overriders.argsOverrider": "Works for all kinds with a pod template.",

	"OverridePolicy.spec.overrideRules[].overriders.labelsOverrider[].operator": "`addIfAbsent` is accepted as well.",

	"OverridePolicy.spec.overrideRules[].overriders.annotationsOverrider[].operator": "`addIfAbsent` is accepted as " +
		"well.",

	"MultiClusterService.spec.types": "Needs no feature gate. `LoadBalancer` is only stored, as in Karmada.",
}

// rejected are the additional fields that admission always rejects, by KIND.PATH: one path cannot answer the operation.
// The page leaves them out. They exist because all operations share one type.
var rejected = []string{
	"ResourceInterpreterCustomization.spec.customizations.componentResource.jsonPath",
	"ResourceInterpreterCustomization.spec.customizations.dependencyInterpretation.jsonPath",
	"ResourceInterpreterCustomization.spec.customizations.statusAggregation.jsonPath",
}

// addition and spelling are in the descriptions of fields that Karmada does not have.
const (
	addition = "Not in Karmada."
	spelling = "alternative spelling"
)

// field is a row of the page.
type field struct{ kind, path, text string }

// schema is the part of an OpenAPI schema that the page needs.
type schema struct {
	Description          string
	Properties           map[string]schema
	Items                *schema
	AdditionalProperties any
}

// walk calls visit for each field of the schema. visit returns false to leave out what is below the field.
func (s schema) walk(path string, visit func(path string, s schema) bool) {
	if s.Items != nil {
		s.Items.walk(path+"[]", visit)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below := s.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		if visit(at, below) {
			below.walk(at, visit)
		}
	}
}

// oneLine returns the description as the text of a cell.
func oneLine(description string) string {
	return cell(strings.Join(strings.Fields(description), " "))
}

func fieldsPage(root string) (string, error) {
	files, err := filepath.Glob(filepath.Join(root, "api", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no definitions in api/crds: %w", err)
	}
	var own, added, spelled, differ []field
	found := map[string]bool{}
	for _, file := range files {
		kind, root, err := readDefinition(file)
		if err != nil {
			return "", err
		}
		root.walk("", func(path string, s schema) bool {
			text := oneLine(s.Description)
			if s.Items != nil && strings.Contains(oneLine(s.Items.Description), addition) {
				text = oneLine(s.Items.Description)
			}
			// A cluster-scoped policy has the fields of the namespaced one.
			key := strings.TrimPrefix(kind, "Cluster") + "." + path
			switch {
			case path == "apiVersion" || path == "kind" || path == "metadata":
				return false
			case slices.Contains(ownKinds, kind):
				own = append(own, field{kind, path, text})
				return !strings.HasSuffix(path, ".conditions") && !strings.HasSuffix(path, ".labelSelector")
			case slices.Contains(rejected, key):
				found[key] = true
				return false
			case strings.Contains(text, addition):
				added = append(added, field{kind, path, strings.TrimSpace(strings.ReplaceAll(text, addition, ""))})
				return false
			case strings.Contains(text, spelling):
				spelled = append(spelled, field{kind, path, text})
				return false
			}
			if how := differing[key]; how != "" {
				found[key] = true
				differ = append(differ, field{kind, path, how})
			}
			return true
		})
	}
	var gone []error
	for _, key := range slices.Concat(slices.Sorted(maps.Keys(differing)), rejected) {
		if !found[key] {
			gone = append(gone, fmt.Errorf("no definition has the field %s that tools/reference/fields.go names", key))
		}
	}
	return "# API fields\n```\nkubectl explain propagationpolicy.spec.placement\n```\n" +
		"The hub serves the API of Karmada with all its fields; `kubectl explain` shows each. This page lists the fields that " +
		"Karmada does not have, and those that behave differently. [Differences from Karmada](../karmada-differences.md) " +
		"explains why.\n" +
		"\n## Fields that behave differently\n" + table("difference", differ) +
		"\n## Additional fields\nThe API of Karmada does not have these fields.\n\n" + table("meaning", added) +
		"\n## Other spellings\nPublic guides use these. The hub stores the spelling of the API and returns a warning.\n\n" +
		table("meaning", spelled) +
		"\n## Additional kinds\n" + table("meaning", own) + note, errors.Join(gone...)
}

// readDefinition returns the kind of a definition, and the schema of the version that is stored.
func readDefinition(file string) (kind string, root schema, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", root, err
	}
	var crd struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Storage bool
				Schema  struct {
					OpenAPIV3Schema schema
				}
			}
		}
	}
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return "", root, fmt.Errorf("%s: %w", file, err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return crd.Spec.Names.Kind, v.Schema.OpenAPIV3Schema, nil
		}
	}
	return "", root, fmt.Errorf("%s: no version is stored", file)
}

// table is a table of fields. Kinds with the same field and text share a row.
func table(head string, all []field) string {
	kinds := map[field][]string{}
	var order []field
	for _, f := range all {
		key := field{path: f.path, text: f.text}
		if kinds[key] == nil {
			order = append(order, key)
		}
		kinds[key] = append(kinds[key], f.kind)
	}
	slices.SortStableFunc(order, func(a, b field) int {
		return strings.Compare(strings.Join(kinds[a], " ")+" "+a.path, strings.Join(kinds[b], " ")+" "+b.path)
	})
	var out strings.Builder
	fmt.Fprintf(&out, "| kind | field | %s |\n|---|---|---|\n", head)
	for _, f := range order {
		fmt.Fprintf(&out, "| %s | `%s` | %s |\n", strings.Join(kinds[f], ", "), f.path, f.text)
	}
	return out.String()
}
