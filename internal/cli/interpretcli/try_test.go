package interpretcli

import (
	"encoding/json"
	"strings"
	"testing"
)

// customizationOf returns a customization of a kind with one script.
func customizationOf(apiVersion, kind, operation, script string) string {
	return `apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: own}
spec:
  target: {apiVersion: ` + apiVersion + `, kind: ` + kind + `}
  customizations:
    ` + operation + `:
      luaScript: |
        ` + strings.ReplaceAll(strings.TrimSpace(script), "\n", "\n        ") + "\n"
}

func TestCheckRunsScriptsOnSamples(t *testing.T) {
	for name, c := range map[string]struct{ operation, script, want string }{
		"a good GetReplicas": {"replicaResource", `
function GetReplicas(obj)
  return obj.spec.replicas or 1, require("kube").accuratePodRequirements(obj.spec.template)
end`, ""},
		"a good ReviseReplica": {"replicaRevision", `
function ReviseReplica(obj, desiredReplica)
  obj.spec.replicas = desiredReplica
  return obj
end`, ""},
		"a good Retain": {"retention", `
function Retain(desiredObj, observedObj)
  if desiredObj.spec.replicas == nil then
    desiredObj.spec.replicas = observedObj.spec.replicas
  end
  return desiredObj
end`, ""},
		"a good ReflectStatus": {"statusReflection", "function ReflectStatus(o) return o.status or {} end", ""},
		"a good InterpretHealth": {"healthInterpretation", `
function InterpretHealth(observedObj)
  local status = observedObj.status or {}
  if (status.observedGeneration or 0) < observedObj.metadata.generation then
    return false
  end
  return (status.availableReplicas or 0) >= (observedObj.spec.replicas or 1)
end`, ""},
		"a good AggregateStatus": {"statusAggregation", `
function AggregateStatus(desiredObj, statusItems)
  local sum = {}
  for _, item in ipairs(statusItems or {}) do
    for name, value in pairs(item.status or {}) do
      sum[name] = type(value) == "number" and value + (sum[name] or 0) or value
    end
  end
  desiredObj.status = sum
  return desiredObj
end`, ""},
		"a good GetDependencies": {"dependencyInterpretation", `
function GetDependencies(desiredObj)
  return require("kube").getPodDependencies(desiredObj.spec.template, desiredObj.metadata.namespace)
end`, ""},
		"a field that may be missing": {"dependencyInterpretation", `
function GetDependencies(desiredObj)
  local claim = desiredObj.spec.template.spec.volumes[1]
  return {}
end`, "fails on an object that has only required fields: line 2: "},
		"a missing status": {"statusReflection", `
function ReflectStatus(observedObj)
  local status = observedObj.status
  status.conditions = status.conditions or {}
  return status
end`, "fails on an object that has only required fields: line 3: "},
		"a cluster without status": {"statusAggregation", `
function AggregateStatus(desiredObj, statusItems)
  for _, item in ipairs(statusItems or {}) do
    if item.status.readyReplicas then print("ready") end
  end
  return desiredObj
end`, "fails on an object of which a cluster has no status yet: line 3: "},
		"another name": {"replicaRevision", "function Revise(obj, n) return obj end",
			"Karmada only calls ReviseReplica(obj, desiredReplica)"},
		"a part of the status": {"statusReflection", `
function ReflectStatus(observedObj)
  return {readyReplicas = (observedObj.status or {}).readyReplicas}
end`, "leaves out observedGeneration"},
		"an old status": {"healthInterpretation", `
function InterpretHealth(observedObj)
  return ((observedObj.status or {}).readyReplicas or 0) >= (observedObj.spec.replicas or 1)
end`, "does not check status.observedGeneration"},
		"nil equals nil": {"healthInterpretation", `
function InterpretHealth(observedObj)
  local status = observedObj.status or {}
  if status.observedGeneration ~= nil and status.observedGeneration < observedObj.metadata.generation then
    return false
  end
  return status.readyReplicas == observedObj.spec.replicas
end`, "an object with an empty status is healthy"},
		"replicas of the member": {"retention", `
function Retain(desiredObj, observedObj)
  desiredObj.spec.replicas = observedObj.spec.replicas
  return desiredObj
end`, "the member's spec.replicas always wins"},
		"no requirements": {"replicaResource", "function GetReplicas(obj) return obj.spec.replicas or 1 end",
			"does not return the requirements of a replica"},
		"a field that the kind does not have": {"replicaResource", `
function GetReplicas(obj)
  local all = (obj.spec.parallelism or 0) + (obj.spec.replicas or 1)
  return all, require("kube").accuratePodRequirements(obj.spec.template)
end`, "Deployment has no field spec.parallelism"},
		"a field of a list that the kind does not have": {"dependencyInterpretation", `
function GetDependencies(desiredObj)
  for _, volume in ipairs(desiredObj.spec.template.spec.volumes or {}) do
    if volume.configmap then print(volume.configMap.name) end
  end
  return {}
end`, "Deployment has no field spec.template.spec.volumes[].configmap"},
		"a global": {"healthInterpretation", `
limit = 1
function enough(status) return (status.availableReplicas or 0) >= limit end
function InterpretHealth(observedObj)
  status = observedObj.status or {}
  return (status.observedGeneration or 0) >= observedObj.metadata.generation and
    (enough(status) or observedObj.spec.replicas == 0)
end`, "status is global"},
		"no items": {"statusAggregation", `
function AggregateStatus(desiredObj, statusItems)
  if #statusItems > 0 then desiredObj.status = statusItems[1].status end
  return desiredObj
end`, "the items are nil, because no cluster has reported: line 2: "},
		"a bare status": {"statusAggregation", `
function AggregateStatus(desiredObj, statusItems)
  return (statusItems and statusItems[1] or {}).status or {}
end`, "a status without its object"},
		"no spec": {"statusAggregation", `
function AggregateStatus(o, statusItems)
  o.status = (statusItems and statusItems[1] or {}).status
  return {apiVersion = o.apiVersion, kind = o.kind, metadata = o.metadata, status = o.status}
end`, "returned the object without its spec"},
		"a part of the aggregated status": {"statusAggregation", `
function AggregateStatus(desiredObj, statusItems)
  desiredObj.status = {}
  for _, item in ipairs(statusItems or {}) do
    for name, value in pairs(item.status or {}) do desiredObj.status[name] = value end
  end
  desiredObj.status.updatedReplicas = nil
  return desiredObj
end`, "leaves out updatedReplicas: "},
		"not healthy without replicas": {"healthInterpretation", `
function InterpretHealth(observedObj)
  local status = observedObj.status or {}
  return (status.observedGeneration or 0) >= observedObj.metadata.generation and
    (status.readyReplicas or 0) >= (observedObj.spec.replicas or 1) and observedObj.spec.replicas ~= 0
end`, "an object that is scaled to 0 replicas is unhealthy"},
		"healthy without pods": {"healthInterpretation", `
function InterpretHealth(observedObj)
  local status = observedObj.status or {}
  return (status.observedGeneration or 0) >= observedObj.metadata.generation and
    (status.readyReplicas or 0) >= (status.replicas or 0)
end`, "an object with none of its 3 replicas is healthy"},
		"a paused canary": {"healthInterpretation", `
function InterpretHealth(observedObj)
  local status = observedObj.status or {}
  return (status.observedGeneration or 0) >= observedObj.metadata.generation and
    (status.updatedReadyReplicas or 0) >= (observedObj.spec.replicas or 1)
end`, "a canary that its partition pauses is unhealthy"},
		"a new Workflow": {"healthInterpretation", `
function InterpretHealth(observedObj)
  return (observedObj.status or {}).phase ~= nil and observedObj.status.phase ~= "Failed"
end`, "an object that was just created is unhealthy"},
		"a status that a Workflow does not have": {"healthInterpretation", `
function InterpretHealth(observedObj)
  return (observedObj.status or {}).failed ~= "Error"
end`, "Workflow has no field status.failed"},
	} {
		t.Run(name, func(t *testing.T) {
			target := [2]string{"apps/v1", "Deployment"}
			if strings.Contains(name, "Workflow") {
				target = [2]string{"argoproj.io/v1alpha1", "Workflow"}
			} else if strings.Contains(name, "canary") {
				target = [2]string{"apps.kruise.io/v1alpha1", "CloneSet"}
			}
			ric := customizationOf(target[0], target[1], c.operation, c.script)
			out, _, err := run(t, noHub{}, map[string]string{"ric.yaml": ric}, "-f", "ric.yaml", "--check")
			want := 0
			if c.want != "" {
				want = 1
			}
			if err != nil || strings.Count(out, "        warning: ") != want || !strings.Contains(out, c.want) {
				t.Errorf("error %v, want a warning with %q:\n%s", err, c.want, out)
			}
		})
	}
}

func TestCheckFailsForScriptsThatNeverWork(t *testing.T) {
	for name, c := range map[string]struct{ kind, operation, script, result, want string }{
		"no end": {"Deployment", "healthInterpretation", "function InterpretHealth(o)\n  while true do end\nend",
			"FAIL", "line 2: ran longer than 1s"},
		"no end on some objects": {"Deployment", "statusReflection",
			"function ReflectStatus(o)\n  while o.status do end\n  return {}\nend", "FAIL", "line 2: ran longer than 1s"},
		"no end for an unknown kind": {"Widget", "healthInterpretation",
			"function InterpretHealth(o)\n  while true do end\nend", "FAIL", "line 2: ran longer than 1s"},
		"endless recursion": {"Deployment", "healthInterpretation",
			"function InterpretHealth(o)\n  return 1 + InterpretHealth(o)\nend", "FAIL", "look for infinite recursion"},
		"an error on each call": {"Deployment", "retention", "function Retain(a, b) error('not yet') end", "FAIL",
			"line 1: not yet"},
		"a library that is not loaded": {"Deployment", "replicaResource",
			"function GetReplicas(o)\n  return 1, kube.accuratePodRequirements(o.spec.template)\nend", "FAIL",
			`warning: uses kube without loading it: start the function with local kube = require("kube")`},
		"warnings beside an error": {"Deployment", "retention",
			"function Retain(a, b)\n  local n = a.spec.parallelism\n  error('not yet')\nend", "FAIL",
			"warning: reads a field that is always nil: Deployment has no field spec.parallelism"},
		"errors in different lines": {"Deployment", "statusReflection",
			"function ReflectStatus(o)\n  if o.status then error('a') end\n  error('b')\nend", "FAIL", "line 3: b; "},
		"another type": {"Deployment", "replicaResource", "function GetReplicas(obj) return 'three' end", "FAIL",
			"it must return the number of replicas"},
		"an error on some objects": {"Deployment", "statusReflection",
			"function ReflectStatus(o)\n  if not o.status then error('a') end\n  return o.status\nend", "PASS",
			"warning: fails on an object that has only required fields: line 2: a"},
		"fields of an unknown kind": {"Widget", "replicaResource", "function GetReplicas(o) return o.spec.size.n end",
			"PASS", "warning: fails on an object that has only required fields: line 1: "},
	} {
		given := map[string]string{"ric.yaml": customizationOf("apps/v1", c.kind, c.operation, c.script)}
		out, _, err := run(t, noHub{}, given, "-f", "ric.yaml", "--check")
		if (err != nil) != (c.result == "FAIL") || strings.Count(out, " "+c.result) != 1 || !strings.Contains(out, c.want) ||
			err != nil && !strings.Contains(err.Error(), "1 operation with a script that fails") {
			t.Errorf("%s: error %v, want %s with %q:\n%s", name, err, c.result, c.want, out)
		}
	}
}

// The samples cannot have the fields that a schema does not name.
func TestCheckDoesNotFailForFieldsThatASchemaLeavesOpen(t *testing.T) {
	const open = "x-kubernetes-preserve-unknown-fields: true"
	for spec, want := range map[string]string{
		"{type: object, properties: {size: {type: object, properties: {n: {type: string}}}}}": "FAIL",
		"{type: object, " + open + "}":                                     "PASS",
		"{type: object, properties: {size: {type: object, " + open + "}}}": "PASS",
	} {
		given := map[string]string{"crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    schema: {openAPIV3Schema: {type: object, required: [spec], properties: {metadata: {type: object}, spec: ` + spec + `}}}
`, "ric.yaml": customizationOf("example.org/v1", "Widget", "replicaResource",
			"function GetReplicas(obj) return obj.spec.size.n.m end")}
		out, _, err := run(t, noHub{}, given, "-f", "ric.yaml", "-f", "crd.yaml", "--check")
		if (err != nil) != (want == "FAIL") || strings.Count(out, " "+want) != 1 {
			t.Errorf("%s: error %v, want %s:\n%s", spec, err, want, out)
		}
	}
}

func TestCheckWarnsOfFoldedScripts(t *testing.T) {
	ric := customizationOf("apps/v1", "Deployment", "healthInterpretation",
		"function InterpretHealth(o) return o.metadata.generation == (o.status or {}).observedGeneration end")
	for style, want := range map[string]int{"|": 0, "|-": 0, ">": 1, ">-": 1} {
		given := map[string]string{"ric.yaml": strings.Replace(ric, "luaScript: |", "luaScript: "+style, 1)}
		_, warnings, err := run(t, noHub{}, given, "-f", "ric.yaml", "--check")
		if err != nil || strings.Count(warnings, "line 8: > joins lines") != want {
			t.Errorf("luaScript: %s: error %v, want %d warnings:\n%s", style, err, want, warnings)
		}
	}
}

func TestCheckWarnsOfRetainedPaths(t *testing.T) {
	ric := strings.Replace(customizationOf("apps/v1", "Deployment", "retention", "x"), "luaScript: |\n        x",
		"jsonPaths: [.spec.strategy, \".metadata.labels['team']\"]", 1)
	out, _, err := run(t, noHub{}, map[string]string{"ric.yaml": ric}, "-f", "ric.yaml", "--check")
	if err != nil || strings.Count(out, "keeps the value of the member") != 1 || !strings.Contains(out, ".spec.strategy") {
		t.Errorf("error %v, want a warning of .spec.strategy:\n%s", err, out)
	}
}

func TestCheckKnowsDefinitionsInFiles(t *testing.T) {
	const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`
	given := map[string]string{"crd.yaml": crd, "ric.yaml": customizationOf("example.org/v1", "Widget", "replicaResource",
		"function GetReplicas(obj) return obj.spec.size or 1 end")}
	for args, want := range map[string]int{"-f ric.yaml": 0, "-f ric.yaml -f crd.yaml": 1} {
		out, _, err := run(t, noHub{}, given, append(strings.Fields(args), "--check", "-o", "json")...)
		var got []checked
		if err != nil || json.Unmarshal([]byte(out), &got) != nil || len(got) != 1 {
			t.Fatalf("%s: error %v:\n%s", args, err, out)
		}
		warnings := 0
		for _, v := range got[0].Rules {
			warnings += len(v.Warnings)
		}
		// The definition requires no spec.
		if warnings != want {
			t.Errorf("%s: %d warnings, want %d:\n%s", args, warnings, want, out)
		}
	}
}

func TestCheckTakesDefinitionsOfAnyType(t *testing.T) {
	for _, schema := range []string{"string", "integer", "number", "boolean", "array", "object"} {
		given := map[string]string{"crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, schema: {openAPIV3Schema: {type: ` + schema + `}}}]
`, "ric.yaml": customizationOf("example.org/v1", "Widget", "replicaResource", "function GetReplicas(obj) return 1 end")}
		if out, _, err := run(t, noHub{}, given, "-f", "ric.yaml", "-f", "crd.yaml", "--check"); err != nil {
			t.Errorf("%s: error %v:\n%s", schema, err, out)
		}
	}
}
