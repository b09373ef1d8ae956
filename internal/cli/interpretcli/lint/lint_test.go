package lint_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/interpretcli/lint"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
)

// deployment returns a customization with one operation; its script begins in line 12.
func deployment(operation, script string) string {
	return `apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata:
  name: web
spec:
  target:
    apiVersion: apps/v1
    kind: Deployment
  customizations:
    ` + operation + `:
      luaScript: |
        ` + strings.ReplaceAll(strings.TrimSpace(script), "\n", "\n        ") + "\n"
}

func findings(t *testing.T, text string) []string {
	t.Helper()
	set, err := schemas.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := lint.File(context.Background(), "x.yaml", []byte(text), lint.Options{Schemas: set})
	var out []string
	for _, f := range found {
		out = append(out, fmt.Sprintf("%d %s %s: %s", f.Line, f.Severity, f.Rule, f.Message))
		if f.Fix == "" {
			t.Errorf("%q says not what to do", f.Message)
		}
	}
	return out
}

func TestGoodScriptHasNoFindings(t *testing.T) {
	for operation, script := range map[string]string{
		"replicaResource": `
function GetReplicas(obj)
  local kube = require("kube")
  return obj.spec.replicas or 1, kube.accuratePodRequirements(obj.spec.template)
end`,
		"replicaRevision": `
function ReviseReplica(obj, desiredReplica)
  obj.spec.replicas = desiredReplica
  return obj
end`,
		"retention": `
function Retain(desiredObj, observedObj)
  if desiredObj.spec.replicas == nil then
    desiredObj.spec.replicas = observedObj.spec.replicas
  end
  return desiredObj
end`,
		"statusReflection": `
function ReflectStatus(observedObj)
  return observedObj.status or {}
end`,
		"healthInterpretation": `
function InterpretHealth(observedObj)
  local status = observedObj.status
  if status == nil or (status.observedGeneration or 0) < observedObj.metadata.generation then
    return "Progressing"
  end
  return (status.availableReplicas or 0) >= (observedObj.spec.replicas or 1)
end`,
		"dependencyInterpretation": `
function GetDependencies(desiredObj)
  return require("kube").getPodDependencies(desiredObj.spec.template, desiredObj.metadata.namespace)
end`,
	} {
		if got := findings(t, deployment(operation, script)); got != nil {
			t.Errorf("%s: %s", operation, strings.Join(got, "\n"))
		}
	}
}

func TestFindingsHaveLines(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a misspelled field": {deployment("replicaRevision", `
function ReviseReplica(obj, desiredReplica)
  local spec = obj.spec
  spec.replica = desiredReplica
  return obj
end`), []string{"14 warning unknown-field: Deployment has no field spec.replica: it is always nil"}},
		"a misspelled field in a loop": {deployment("dependencyInterpretation", `
function GetDependencies(desiredObj)
  local list = {}
  for _, container in ipairs(desiredObj.spec.template.spec.containers or {}) do
    if container.img ~= nil then
      table.insert(list, {apiVersion = "v1", kind = "ConfigMap", namespace = desiredObj.metadata.namespace, name = container.img})
    end
  end
  return list
end`), []string{"15 warning unknown-field: Deployment has no field spec.template.spec.containers[].img: it is always nil"}},
		"a value that may not be there": {deployment("dependencyInterpretation", `
function GetDependencies(desiredObj)
  local list = {}
  local claim = desiredObj.spec.template.spec.volumes[1]
  if claim ~= nil then
    table.insert(list, {apiVersion = "v1", kind = "ConfigMap", namespace = desiredObj.metadata.namespace, name = claim.name})
  end
  return list
end`), []string{"14 warning nil-check: fails on an object that has only required fields"}},
		"a status that is not there yet": {deployment("statusReflection", `
function ReflectStatus(observedObj)
  local status = observedObj.status
  status.conditions = status.conditions or {}
  return status
end`), []string{"14 warning nil-check: fails on an object that has only required fields"}},
		"a function of another operation": {deployment("healthInterpretation", `
local function InterpretHealth(observedObj)
  return true
end`), []string{"12 error function-name"}},
		"two functions, neither the operation's": {deployment("replicaResource", `
function A(obj) return 1 end
function B(obj) return 2 end`), []string{"error function-name"}},
		"too few parameters": {deployment("replicaRevision", `
function ReviseReplica(obj)
  return obj
end`), []string{"12 warning parameters: ReviseReplica declares 1 of the 2 arguments that it is called with"}},
		"a variable that outlives the call": {deployment("replicaResource", `
function GetReplicas(obj)
  n = obj.spec.replicas or 1
  return n, require("kube").accuratePodRequirements(obj.spec.template)
end`), []string{"13 warning global: n is global"}},
		"a library function that is not there": {deployment("replicaResource", `
local kube = require("kube")
function GetReplicas(obj)
  if obj.spec.paused then
    return 0, kube.podRequirements(obj.spec.template)
  end
  return obj.spec.replicas or 1, kube.accuratePodRequirements(obj.spec.template)
end`), []string{"15 error library: kube has no function podRequirements", "15 warning result: fails on an object"}},
		"a script that never ends": {deployment("healthInterpretation", `
function InterpretHealth(observedObj)
  while true do end
end`), []string{"error result"}},
		"no Lua": {deployment("healthInterpretation", `
function InterpretHealth(observedObj)
  return observedObj.status ?? {}
end`), []string{"13 error syntax"}},
		"a status field that is not there": {deployment("statusReflection", `
function ReflectStatus(observedObj)
  local status = observedObj.status or {}
  status.ready = true
  return status
end`), []string{"14 warning unknown-field: Deployment has no field status.ready", "12 warning unknown-field: it sets status.ready"}},
		"an operation that is none": {strings.Replace(deployment("replicaResource", "x"), "replicaResource",
			"replicaResources", 1), []string{"10 error spelling: replicaResources is not an operation"}},
		"two spellings of one": {deployment("replicaResource", "function GetReplicas(obj) return 1, {} end") +
			"    replicas: {jsonPath: .spec.replicas}\n",
			[]string{"13 warning spelling", "13 error spelling: replicas duplicates replicaResource"}},
		"a path that is not there": {strings.Replace(deployment("replicaResource", "x"), "luaScript: |\n        x",
			"jsonPath: .spec.replica", 1),
			[]string{"11 error unknown-field: Deployment: .spec.replica does not exist"}},
		"a path that is none": {strings.Replace(deployment("replicaResource", "x"), "luaScript: |\n        x",
			"jsonPath: spec replicas", 1),
			[]string{"11 error spelling"}},
		"nothing to run": {strings.Replace(deployment("replicaResource", "x"), "luaScript: |\n        x", "luaScript: ''", 1),
			[]string{"10 error incomplete: there is no script"}},
		"a version that is none": {strings.Replace(deployment("statusReflection",
			"function ReflectStatus(o) return o.status or {} end"), "apps/v1", "apps/v2", 1),
			[]string{"7 warning unknown-kind: Deployment has no version v2"}},
		"a kind that nobody knows": {strings.Replace(deployment("statusReflection",
			"function ReflectStatus(o) return o.status or {} end"), "apps/v1", "example.org/v1", 1),
			[]string{"7 info unknown-kind: the fields of example.org/v1 Deployment are not known"}},
		"no kind": {strings.Replace(deployment("statusReflection", "function ReflectStatus(o) return o.status or {} end"),
			"    kind: Deployment\n", "", 1),
			[]string{"7 error incomplete: the kind is not set"}},
		"a comment that swallows code": {strings.Replace(deployment("statusReflection", `
function ReflectStatus(observedObj)
-- there may be none
return observedObj.status or {}
end`), "|", ">", 1), []string{"13 error folded-scalar: YAML joins this line with the next"}},
		"lines that YAML joins": {strings.Replace(deployment("statusReflection", `
function ReflectStatus(observedObj)
return observedObj.status or {}
end`), "|", ">", 1), []string{"11 warning folded-scalar"}},
		"no YAML": {"a: b\n---\na: b: c\n", []string{"3 error yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := findings(t, c.text)
			for _, want := range c.want {
				found := false
				for _, g := range got {
					found = found || strings.Contains(g, want)
				}
				if !found {
					t.Errorf("no finding %q in:\n%s", want, strings.Join(got, "\n"))
				}
			}
			if len(got) > len(c.want) {
				t.Errorf("more than was wanted:\n%s", strings.Join(got, "\n"))
			}
		})
	}
}

func TestOtherDocumentsAreSkipped(t *testing.T) {
	found, n := lint.File(context.Background(), "x.yaml", []byte("kind: Deployment\n---\n---\n- a\n---\n"+
		"kind: List\nitems:\n- kind: Pod\n- {kind: ResourceInterpreterCustomization, metadata: {name: a}}\n"), lint.Options{})
	if n != 1 {
		t.Errorf("%d customizations", n)
	}
	var messages []string
	for _, f := range found {
		messages = append(messages, fmt.Sprintf("%d %s", f.Line, f.Message))
	}
	if diff := cmp.Diff([]string{"9 the kind is not set", "9 there are no operations"}, messages); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if worst := lint.Worst(found); worst != lint.Error {
		t.Errorf("the worst is %q", worst)
	}
	if worst := lint.Worst(nil); worst != "" {
		t.Errorf("the worst of nothing is %q", worst)
	}
}

func TestFixNamesMissingField(t *testing.T) {
	set, err := schemas.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := lint.File(t.Context(), "ric.yaml", []byte(`replicaResource:
  luaScript: |
    function GetReplicas(obj)
      return obj.spec.replicas or 1, require("kube").accuratePodRequirements(obj.spec.template)
    end
`), lint.Options{Schemas: set, Target: configv1alpha1.CustomizationTarget{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout"}})
	if len(found) != 1 || found[0].Fix != "call it only if there is a template: if obj.spec.template ~= nil" ||
		found[0].Line != 4 {
		t.Errorf("a Rollout may have no template; found %+v", found)
	}
}
