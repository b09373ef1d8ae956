package script

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

const (
	replicasOp     = configv1alpha1.InterpreterOperationInterpretReplica
	componentsOp   = configv1alpha1.InterpreterOperationInterpretComponent
	reviseOp       = configv1alpha1.InterpreterOperationReviseReplica
	retainOp       = configv1alpha1.InterpreterOperationRetain
	aggregateOp    = configv1alpha1.InterpreterOperationAggregateStatus
	statusOp       = configv1alpha1.InterpreterOperationInterpretStatus
	healthOp       = configv1alpha1.InterpreterOperationInterpretHealth
	dependenciesOp = configv1alpha1.InterpreterOperationInterpretDependency
)

// manifest returns an object as the API machinery has it.
func manifest(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("parse %q: %v", text, err)
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &u.Object); err != nil {
		t.Fatalf("parse %q: %v", text, err)
	}
	return u
}

// cloneSet returns an object as they are in clusters.
func cloneSet(t testing.TB) *unstructured.Unstructured {
	return manifest(t, `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {team: a}, generation: 3, uid: 0e2a, resourceVersion: "9007199254740993"}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  scaleStrategy: {podsToDelete: []}
  updateStrategy: {type: InPlaceIfPossible, partition: 2, maxUnavailable: 20%, inPlaceUpdateStrategy: {gracePeriodSeconds: 10}}
  revisionHistoryLimit: 10
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      nodeSelector: {disk: ssd}
      tolerations: [{key: spot, operator: Exists}]
      containers:
      - name: web
        image: nginx:1.27
        env: [{name: A, value: b}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: web, key: password}}}]
        resources: {requests: {cpu: 250m, memory: 64Mi}, limits: {cpu: "1", memory: 128Mi}}
        volumeMounts: [{name: config, mountPath: /etc/web}]
      - name: log
        image: fluentbit:3
        resources: {requests: {cpu: 50m, memory: 32Mi}}
      volumes: [{name: config, configMap: {name: web}}, {name: scratch, emptyDir: {}}]
status: {replicas: 5, readyReplicas: 4, conditions: []}
`)
}

// items are statuses by cluster, in JSON; an empty one is of a cluster that did not answer yet.
func items(clustersAndStatuses ...string) []workv1alpha2.AggregatedStatusItem {
	var all []workv1alpha2.AggregatedStatusItem
	for i := 0; i < len(clustersAndStatuses); i += 2 {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: clustersAndStatuses[i], Applied: true}
		if raw := clustersAndStatuses[i+1]; raw != "" {
			item.Status = &runtime.RawExtension{Raw: []byte(raw)}
		}
		all = append(all, item)
	}
	return all
}

type inputs = interpret.Inputs

// evaluated runs a script once and gives what is of interest of its outputs, as JSON.
func evaluated(t *testing.T, operation configv1alpha1.InterpreterOperation, source string, in inputs) (string, error) {
	t.Helper()
	p, err := Compile("ours", operation, source, nil)
	if err != nil {
		return "", err
	}
	out, err := p.Evaluate(context.Background(), in)
	if err != nil {
		return "", err
	}
	var v any
	switch operation {
	case replicasOp:
		v = map[string]any{"replicas": out.Replicas, "requirements": out.Requirements}
		if out.Requirements == nil {
			v = out.Replicas
		}
	case componentsOp:
		v = out.Components
	case reviseOp, retainOp:
		v = out.Object.Object
	case aggregateOp, statusOp:
		v = out.Status
	case healthOp:
		v = out.Health
	case dependenciesOp:
		v = out.Dependencies
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), nil
}

func TestScriptsOfKarmadaAndOfTheGuidesWork(t *testing.T) {
	t.Parallel()
	deployment := manifest(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 3}}`)
	two := items("eu", `{"replicas":2,"readyReplicas":1,"phase":"Running"}`, "us",
		`{"replicas":3,"readyReplicas":3,"phase":"Running"}`)
	withSilent := append(two, items("asia", "")...)
	for _, c := range []struct {
		name      string
		operation configv1alpha1.InterpreterOperation
		source    string
		in        inputs
		want      string
	}{
		{"replicas and what one needs", replicasOp, `
			local kube = require("kube")
			function GetReplicas(obj)
			  local requirement = kube.accuratePodRequirements(obj.spec.template)
			  return obj.spec.replicas, requirement
			end`, inputs{Object: cloneSet(t)},
			`{"replicas":5,"requirements":{"nodeClaim":{"nodeSelector":{"disk":"ssd"},"tolerations":[{"key":"spot","operator":"Exists"}]},"resourceRequest":{"cpu":"300m","memory":"96Mi"},"namespace":"shop"}}`},
		{"a folded scalar, with globals", replicasOp,
			`local kube = require("kube") function GetReplicas(obj) replica = obj.spec.replicas requirement = kube.accuratePodRequirements(obj.spec.template) return replica, requirement end`,
			inputs{Object: cloneSet(t)},
			`{"replicas":5,"requirements":{"nodeClaim":{"nodeSelector":{"disk":"ssd"},"tolerations":[{"key":"spot","operator":"Exists"}]},"resourceRequest":{"cpu":"300m","memory":"96Mi"},"namespace":"shop"}}`},
		{"requirements that were looked at and added to", replicasOp, `
			local kube = require("kube")
			function GetReplicas(obj)
			  local r = kube.accuratePodRequirements(obj.spec.template)
			  r.resourceRequest.cpu = kube.resourceAdd(r.resourceRequest.cpu, "700m", nil)
			  r.nodeClaim = nil
			  return obj.spec.replicas * 2, r
			end`, inputs{Object: cloneSet(t)}, `{"replicas":10,"requirements":{"resourceRequest":{"cpu":"1","memory":"96Mi"},"namespace":"shop"}}`},
		{"a template that was changed", replicasOp, `
			local kube = require("kube")
			function GetReplicas(obj)
			  local template = obj.spec.template
			  template.spec.containers[2] = nil
			  template.spec.nodeSelector = nil
			  template.spec.tolerations = {}
			  return 1, kube.accuratePodRequirements(template)
			end`, inputs{Object: cloneSet(t)}, `{"replicas":1,"requirements":{"resourceRequest":{"cpu":"250m","memory":"64Mi"},"namespace":"shop"}}`},
		{"requirements that a script writes itself", replicasOp,
			`function GetReplicas(obj) return 2, {resourceRequest = {cpu = 1, memory = "1Gi"}, priorityClassName = "high"} end`,
			inputs{Object: cloneSet(t)}, `{"replicas":2,"requirements":{"resourceRequest":{"cpu":"1","memory":"1Gi"},"namespace":"shop","priorityClassName":"high"}}`},
		{"replicas alone", replicasOp, `function GetReplicas(obj) return obj.spec.replicas end`, inputs{Object: deployment},
			`3`},
		{"one function of another name", replicasOp,
			`function ReplicasCount(desiredObj) if desiredObj.spec.replicas then return desiredObj.spec.replicas end return 1 end`, inputs{Object: deployment}, `3`},
		{"helpers beside the function", replicasOp, `
			function twice(n) return 2 * n end
			local function thrice(n) return 3 * n end
			function GetReplicas(obj) return twice(thrice(obj.spec.replicas)) end`, inputs{Object: deployment}, `18`},
		{"a library with a function more", replicasOp, `
			function string.count(s, c) return select(2, s:gsub(c, c)) end
			math.twice = function(n) return 2 * n end
			function GetReplicas(obj) return math.twice(("a,b,c"):count(",")) + math.floor(1.5) end`, inputs{Object: deployment}, `5`},
		{"a function that is assigned", replicasOp, `GetReplicas = function(obj) return obj.spec.replicas end`,
			inputs{Object: deployment}, `3`},
		{"a function defined by _G", replicasOp,
			`_G["Get" .. "Replicas"] = function(obj) return _G.tostring(obj.spec.replicas) + 1 end`, inputs{Object: deployment},
			`4`},

		{"components, in any order", componentsOp, `
			local kube = require("kube")
			function GetComponents(obj)
			  return {
			    {name = "workers", replicas = 4, replicaRequirements = kube.accuratePodRequirements(obj.spec.template)},
			    {name = "head", replicas = 1, replicaRequirements = {resourceRequest = {cpu = "2"}}},
			  }
			end`, inputs{Object: cloneSet(t)},
			`[{"name":"head","replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"2"}}},{"name":"workers","replicas":4,"replicaRequirements":{"nodeClaim":{"nodeSelector":{"disk":"ssd"},"tolerations":[{"key":"spot","operator":"Exists"}]},"resourceRequest":{"cpu":"300m","memory":"96Mi"}}}]`},
		{"no components", componentsOp, `function GetComponents(obj) return {} end`, inputs{Object: cloneSet(t)}, `null`},

		{"revised replicas", reviseOp, `function ReviseReplica(obj, desiredReplica) obj.spec.replicas = desiredReplica return obj end`,
			inputs{Object: deployment, Replicas: 7},
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":7}}`},
		{"revised with a schema's empty list", reviseOp,
			`function ReviseReplica(obj, n) obj.spec.replicas = n obj.spec.unknown = {} return obj end`,
			inputs{Object: deployment, Replicas: 7},
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":7}}`},

		{"retained fields", retainOp, `
			function Retain(desiredObj, observedObj)
			  if observedObj.spec.suspend ~= nil then desiredObj.spec.suspend = observedObj.spec.suspend end
			  if observedObj.status ~= nil then desiredObj.status = observedObj.status end
			  return desiredObj
			end`,
			inputs{Object: deployment, Observed: manifest(t,
				`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {suspend: true}, status: {nodes: {}, list: [], size: 12345678901234567}}`)},
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":3,"suspend":true},"status":{"list":[],"nodes":{},"size":12345678901234567}}`},

		{"a whole object aggregated, as Karmada has it", aggregateOp, `
			function AggregateStatus(desiredObj, statusItems)
			  if statusItems == nil then return desiredObj end
			  local total = 0
			  for _, item in ipairs(statusItems) do
			    if item.status then total = total + (item.status.replicas or 0) end
			  end
			  desiredObj.status = desiredObj.status or {}
			  desiredObj.status.replicas = total
			  return desiredObj
			end`, inputs{Object: deployment, Items: withSilent}, `{"replicas":5}`},
		{"a bare status, as the guides have it", aggregateOp, `
			function AggregateStatus(desiredObj, statusItems)
			  local replicas, readyReplicas = 0, 0
			  for i = 1, #statusItems do
			    local status = statusItems[i].status or {}
			    replicas = replicas + (status.replicas or 0)
			    readyReplicas = readyReplicas + (status.readyReplicas or 0)
			  end
			  return {replicas = replicas, readyReplicas = readyReplicas}
			end`, inputs{Object: deployment, Items: withSilent}, `{"readyReplicas":4,"replicas":5}`},
		{"a bare status of no items at all", aggregateOp, `
			function AggregateStatus(desiredObj, statusItems)
			  local n = 0
			  for i = 1, #statusItems do n = n + statusItems[i].status.replicas end
			  return {replicas = n}
			end`, inputs{Object: deployment}, `{"replicas":0}`},
		{"an object built anew without its spec", aggregateOp, `
			function AggregateStatus(desiredObj, statusItems)
			  return {apiVersion = "apps.kruise.io/v1alpha1", kind = "SidecarSet", metadata = desiredObj.metadata, status = {matchedPods = #statusItems}}
			end`, inputs{Object: deployment, Items: two}, `{"matchedPods":2}`},
		{"the object's own status, changed and bare", aggregateOp,
			`function AggregateStatus(desiredObj, items) local s = desiredObj.status s.readyReplicas = nil return s end`,
			inputs{Object: cloneSet(t), Items: two}, `{"conditions":[],"replicas":5}`},
		{"a member's status as it is", aggregateOp, `function AggregateStatus(desiredObj, items) return items[2].status end`,
			inputs{Object: cloneSet(t), Items: two}, `{"phase":"Running","readyReplicas":3,"replicas":3}`},
		{"the object as it is", aggregateOp, `function AggregateStatus(desiredObj, items) return desiredObj end`,
			inputs{Object: cloneSet(t), Items: two}, `{"conditions":[],"readyReplicas":4,"replicas":5}`},

		{"some of the status", statusOp, `function ReflectStatus(observedObj) if observedObj.status == nil then return {} end return {readyReplicas = observedObj.status.readyReplicas, conditions = observedObj.status.conditions} end`,
			inputs{Object: cloneSet(t)}, `{"conditions":[],"readyReplicas":4}`},
		{"no status to be had", statusOp, `function ReflectStatus(observedObj) return observedObj.status end`,
			inputs{Object: deployment}, `null`},
		{"an empty status", statusOp, `function ReflectStatus(observedObj) return {} end`, inputs{Object: deployment},
			`{}`},

		{"healthy", healthOp, `function InterpretHealth(observedObj) return observedObj.status.replicas == observedObj.spec.replicas end`, inputs{Object: cloneSet(t)}, `"Healthy"`},
		{"unhealthy", healthOp, `function InterpretHealth(observedObj) return observedObj.status.readyReplicas == observedObj.spec.replicas end`, inputs{Object: cloneSet(t)}, `"Degraded"`},
		{"a finer health", healthOp, `function InterpretHealth(observedObj) return "Suspended" end`,
			inputs{Object: cloneSet(t)}, `"Suspended"`},

		{"dependencies of the pods", dependenciesOp, `
			local kube = require("kube")
			function GetDependencies(desiredObj)
			  return kube.getPodDependencies(desiredObj.spec.template, desiredObj.metadata.namespace)
			end`, inputs{Object: cloneSet(t)},
			`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"web"},{"apiVersion":"v1","kind":"Secret","namespace":"shop","name":"web"},{"apiVersion":"v1","kind":"ServiceAccount","namespace":"shop","name":"web"}]`},
		{"dependencies of the pods and others", dependenciesOp, `
			local kube = require("kube")
			function GetDependencies(obj)
			  local all = kube.getPodDependencies(obj.spec.template, obj.metadata.namespace)
			  local kept = {}
			  for _, d in ipairs(all) do
			    if d.kind ~= "Secret" then table.insert(kept, d) end
			  end
			  kept[#kept + 1] = {apiVersion = "v1", kind = "Service", namespace = obj.metadata.namespace, name = "a"}
			  kept[#kept + 1] = {apiVersion = "v1", kind = "Service", namespace = obj.metadata.namespace, name = "a"}
			  kept[#kept + 1] = {apiVersion = "v1", kind = "PersistentVolumeClaim", namespace = "shop", labelSelector = {matchLabels = {app = "web"}}}
			  return kept
			end`, inputs{Object: cloneSet(t)},
			`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"web"},{"apiVersion":"v1","kind":"PersistentVolumeClaim","namespace":"shop","labelSelector":{"matchLabels":{"app":"web"}}},{"apiVersion":"v1","kind":"Service","namespace":"shop","name":"a"},{"apiVersion":"v1","kind":"ServiceAccount","namespace":"shop","name":"web"}]`},
		{"no dependencies", dependenciesOp,
			`function GetDependencies(obj) local dependencies = {} if not obj.spec then return dependencies end return dependencies end`, inputs{Object: deployment}, `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := []*unstructured.Unstructured{c.in.Object.DeepCopy(), c.in.Observed.DeepCopy()}
			got, err := evaluated(t, c.operation, c.source, c.in)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			for i, u := range []*unstructured.Unstructured{c.in.Object, c.in.Observed} {
				if u != nil && cmp.Diff(before[i].Object, u.Object) != "" {
					t.Errorf("the script changed its input: %s", cmp.Diff(before[i].Object, u.Object))
				}
			}
		})
	}
}

func TestFaultMessages(t *testing.T) {
	t.Parallel()
	deployment := manifest(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 3}}`)
	for _, c := range []struct {
		name      string
		operation configv1alpha1.InterpreterOperation
		source    string
		reason    Reason
		want      string // of the text
	}{
		{"no end", replicasOp, "function GetReplicas(obj)\n return 1\n", Syntax,
			`customization "ours", InterpretReplica, line 2: 'end' expected near <eof>`},
		{"too long", replicasOp, strings.Repeat("-- a comment\n", 1<<20/13), Syntax,
			`the script has 1048567 bytes, more than 65536`},
		{"too many locals", replicasOp, "function GetReplicas(obj)\n" + strings.Repeat("local a = 1\n", 300) + "end", Syntax,
			`line 1: too many local variables`},
		{"nothing in it", replicasOp, `-- to do`, NoFunction,
			`the script defines no function; it must define GetReplicas(obj)`},
		{"no such function", aggregateOp, "function a() end function b() end", NoFunction,
			`the script defines a, b, but not AggregateStatus(desiredObj, statusItems); of several functions one must have that name`},
		{"a local function", healthOp, "\nlocal function InterpretHealth(o) return true end", NoFunction,
			`line 2: InterpretHealth is local, so it cannot be called; write function InterpretHealth(observedObj) without local`},
		{"no function at run time", replicasOp, `_G.x = 1`, NoFunction, `the script defines no function`},
		{"a value in place of the function", replicasOp, "function helper() end\nGetReplicas = 5", NoFunction,
			`GetReplicas is the number 5, not a function; define GetReplicas(obj)`},

		{"nil", replicasOp, `function GetReplicas(obj) return obj.spec.size end`, BadResult,
			`GetReplicas returned nil; it must return the number of replicas, followed by the requirements of one replica. If the field may be unset, give a default: obj.spec.replicas or 1`},
		{"nothing", replicasOp, `function GetReplicas(obj) local n = 1 end`, BadResult,
			`GetReplicas returned nothing; it must return the number of replicas`},
		{"a string", replicasOp, `function GetReplicas(obj) return "3" end`, BadResult,
			`GetReplicas returned the string "3"; it must return the number`},
		{"a broken number", replicasOp, `function GetReplicas(obj) return 1.5 end`, BadResult,
			`GetReplicas returned 1.5 replicas; it must return a whole number from 0 to 2147483647`},
		{"a large number", replicasOp, `function GetReplicas(obj) return 2^31 end`, BadResult,
			`GetReplicas returned 2147483648 replicas`},
		{"no requirements", replicasOp, `function GetReplicas(obj) return 1, "a" end`, BadResult,
			`GetReplicas returned as result 2 the string "a"; it must be a table of {nodeClaim,`},
		{"odd requirements", replicasOp, `function GetReplicas(obj) return 1, {resourceRequest = {cpu = "many"}} end`,
			BadResult, `GetReplicas returned an invalid result 2: quantities must match`},
		{"odd components", componentsOp, `function GetComponents(obj) return {{name = "a"}, {name = "a"}} end`, BadResult,
			`returned two components named "a"`},
		{"a part of the object", reviseOp, `function ReviseReplica(obj, n) return obj.spec end`, BadResult,
			`ReviseReplica returned a table without kind; it must return the whole object, not a part of it`},
		{"another object", retainOp, `function Retain(d, o) d.metadata.name = "other" return d end`, BadResult,
			`Retain returned apps/v1 Deployment "shop/other" in place of apps/v1 Deployment "shop/web"; apiVersion, kind, namespace and name must stay`},
		{"a list for an object", retainOp, `function Retain(d, o) return {1, 2} end`, BadResult,
			`Retain returned a list; it must return the whole object`},
		{"a number for an object", retainOp, `function Retain(d, o) return 4 end`, BadResult,
			`Retain returned the number 4; it must return the whole object`},
		{"no aggregate", aggregateOp, `function AggregateStatus(d, items) end`, BadResult,
			`AggregateStatus returned nothing; it must return the object with its status, or the status alone`},
		{"a function in the object", reviseOp,
			`function ReviseReplica(obj, n) obj.spec.replicas = function() end return obj end`, BadResult,
			`spec.replicas: is a function, which an object cannot contain`},
		{"a list with names", reviseOp, `function ReviseReplica(obj, n) obj.spec.list = {1, a = {2}} return obj end`,
			BadResult, `spec.list: has both numbers and names as keys`},
		{"an odd key", reviseOp, `function ReviseReplica(obj, n) obj.spec.list = {[0.5] = 1} return obj end`, BadResult,
			`spec.list: has the number 0.5 as a key`},
		{"no number", reviseOp, `function ReviseReplica(obj, n) obj.spec.replicas = 0/0 return obj end`, BadResult,
			`spec.replicas: is NaN, which is not a valid JSON number`},
		{"an object that holds itself", reviseOp, `function ReviseReplica(obj, n) obj.spec.self = obj return obj end`,
			BadResult, `has more than 500 nested tables; does one contain itself?`},
		{"a table that holds itself", statusOp, `function ReflectStatus(o) local t = {} t.t = t return t end`, BadResult,
			`not a Kubernetes object: t.t.t.t.t.t.t.t.t.t…: has more than 500 nested tables; does one contain itself?`},
		{"a small table that stands for a huge object", reviseOp,
			`function ReviseReplica(obj, n) local t = {1, 2, 3} for i = 1, 60 do t = {a = t, b = t} end obj.spec.t = t return obj end`, BadResult, `is larger than 4 MiB`},
		{"health that is a number", healthOp, `function InterpretHealth(o) return 1 end`, BadResult,
			`InterpretHealth returned the number 1; it must return true or false`},
		{"a dependency without a kind", dependenciesOp,
			`function GetDependencies(o) return {{apiVersion = "v1", name = "a"}} end`, BadResult,
			`returned a dependency, number 1, without kind`},
		{"dependencies by name", dependenciesOp, `function GetDependencies(o) return {a = 1} end`, BadResult,
			`GetDependencies returned a table with names as keys; it must return a list of {apiVersion,`},

		{"an endless loop", replicasOp, "function GetReplicas(obj)\n  while true do end\nend", DeadlineExceeded,
			`line 2: ran longer than 50ms; look for a loop that does not end`},
		{"an endless loop behind pcall", replicasOp,
			"function GetReplicas(obj)\n  while true do pcall(function() while true do end end) end\nend", DeadlineExceeded,
			`ran longer than 50ms`},
		{"an endless loop behind xpcall", replicasOp,
			"function GetReplicas(obj)\n  while true do xpcall(function() while true do end end, function() while true do end end) end\nend", DeadlineExceeded, `ran longer than 50ms`},
		{"an endless loop outside of any function", replicasOp, "while true do end function GetReplicas() end",
			DeadlineExceeded, `line 1: ran longer than 50ms`},
		{"an endless sort", replicasOp, `function GetReplicas() local t = {} for i = 1, 1000 do t[i] = i end while true do table.sort(t, function(a, b) return true end) end end`, DeadlineExceeded, `ran longer than 50ms`},
		{"an endless pattern", replicasOp,
			`function GetReplicas() return #string.match(string.rep("a", 10000), ".-.-.-.-.-b") end`, DeadlineExceeded,
			`line 1: ran longer than 50ms`},
		{"an endless pattern behind pcall", replicasOp,
			`function GetReplicas() while true do pcall(string.find, string.rep("a", 10000), "a*a*a*a*a*b") end end`,
			DeadlineExceeded, `ran longer than 50ms`},
		{"large strings compared without end", replicasOp,
			`function GetReplicas() local a, b = string.rep("a", 1e7), string.rep("a", 1e7) while true do local c = a <= b end end`, DeadlineExceeded, `ran longer than 50ms`},

		{"a string that doubles", replicasOp, "function GetReplicas()\n  local s = 'a'\n  while true do s = s .. s end\nend",
			MemoryExceeded, `line 3: uses more than 4 MiB; look for a table or a string that grows in a loop`},
		{"a string that doubles behind pcall", replicasOp,
			"function GetReplicas()\n  local s = 'a'\n  while true do pcall(function() s = s .. s end) end\nend", MemoryExceeded,
			`line 3: uses more than 4 MiB`},
		{"a repeated string", replicasOp, `function GetReplicas() return #string.rep("a", 1e12) end`, MemoryExceeded,
			`uses more than 4 MiB`},
		{"a method of a string", replicasOp, `function GetReplicas() return #("ab"):rep(1e8) end`, MemoryExceeded,
			`uses more than 4 MiB`},
		{"joined elements", replicasOp, `function GetReplicas() local t = {} for i = 1, 1000 do t[i] = string.rep("a", 1e4) end return #table.concat(t, string.rep("b", 1e6)) end`, MemoryExceeded, `uses more than 4 MiB`},
		{"a replaced string", replicasOp,
			`function GetReplicas() return #string.gsub(string.rep("a", 1e6), "a", string.rep("b", 1000)) end`, MemoryExceeded,
			`uses more than 4 MiB`},
		{"reversed strings", replicasOp, `function GetReplicas() local s, t = string.rep("a", 1e6), {} for i = 1, 100 do t[i] = s:reverse() end return #t end`, MemoryExceeded, `uses more than 4 MiB`},
		{"a format of huge width", replicasOp, `function GetReplicas() return #string.format("%999999999d", 1) end`, Runtime,
			`the directive "%999999999d" is wider than 99`},
		{"a formatted string", replicasOp,
			`function GetReplicas() local s = string.rep("a", 1e6) local f = string.rep("%s", 200) return #string.format(f, unpack((function() local t = {} for i = 1, 200 do t[i] = s end return t end)())) end`, MemoryExceeded, `uses more than 4 MiB`},
		{"many strings", replicasOp, `function GetReplicas() local t = {} for i = 1, 1e9 do t[i] = i .. "abcdefghij" end end`,
			MemoryExceeded, `uses more than 4 MiB`},
		{"a table that grows", replicasOp, "function GetReplicas()\n  local t = {}\n  while true do t[#t + 1] = {} end\nend",
			MemoryExceeded, `line 3: uses more than 4 MiB`},
		{"an object that grows", replicasOp,
			`function GetReplicas() local t, i = {}, 0 while true do i = i + 1 t["k" .. i] = {a = i} end end`, MemoryExceeded,
			`uses more than 4 MiB`},
		{"a global that grows", replicasOp, `t = {} function GetReplicas() while true do table.insert(t, {{}, {}}) end end`,
			MemoryExceeded, `uses more than 4 MiB`},
		{"nested tables", replicasOp, `function GetReplicas() local t = {} while true do t = {t} end end`, MemoryExceeded,
			`uses more than 4 MiB`},
		{"closures", replicasOp, `function GetReplicas() local f = function() end while true do local g = f f = function() return g() end end end`, MemoryExceeded, `uses more than 4 MiB`},
		{"keys that come and go", replicasOp,
			`function GetReplicas() local t, i = {}, 0 while true do i = i + 1 t["k" .. i] = 1 t["k" .. i] = nil end end`,
			MemoryExceeded, `uses more than 4 MiB`},
		{"lists of many values", replicasOp,
			`function GetReplicas() local big = {} for i = 1, 30000 do big[i] = i end local t = {} while true do t[#t + 1] = {unpack(big)} end end`, MemoryExceeded, `uses more than 4 MiB`},
		{"arguments of many values", replicasOp,
			`function GetReplicas() local big = {} for i = 1, 30000 do big[i] = i end local t = {} local function f(...) t[#t + 1] = {...} end while true do f(unpack(big)) end end`, MemoryExceeded, `uses more than 4 MiB`},
		{"a far index", replicasOp, "function GetReplicas()\n  local t = {}\n  t[6e7] = 1\nend", Runtime,
			`line 3: the index 60000000 is far beyond the end of the list, which has 0 elements`},
		{"a far index, written out", replicasOp, `function GetReplicas() local t = {[6e7] = 1} end`, Runtime,
			`the index 60000000 is too large`},
		{"far indexes of several", replicasOp, `function GetReplicas() local t = {} t[1], t[6e7] = 1, 2 end`, Runtime,
			`the index 60000000 is far beyond the end of the list`},
		{"a far position", replicasOp, `function GetReplicas() table.insert({}, 6e7, 1) end`, Runtime,
			`the position 60000000 is outside of the list`},
		{"unpacked without end", replicasOp, `function GetReplicas() return unpack({}, 1, 1e9) end`, TooDeep,
			`too many values at once`},

		{"recursion without end", replicasOp, "function f(n) return 1 + f(n) end\nfunction GetReplicas() return f(1) end",
			TooDeep, `more than 200 nested calls`},
		{"tail calls without end", replicasOp, "function f(n) return f(n) end\nfunction GetReplicas() return f(1) end",
			TooDeep, `more than 200 nested calls`},
		{"recursion through the library", replicasOp,
			"function f(n) return (string.gsub('a', 'a', f)) end\nfunction GetReplicas() return f(1) end", TooDeep,
			`more than 200 nested calls`},
		{"a deep pattern", replicasOp, `function GetReplicas() return string.find(string.rep("a", 1000), string.rep("a?", 1000)) end`, Runtime, `is too complex`},
		{"a malformed pattern", replicasOp, `function GetReplicas() return string.find("a", "[a") end`, Runtime,
			`the pattern "[a" is malformed: a set has no ]`},

		{"a field of nil", replicasOp, "function GetReplicas(obj)\n  return obj.spec.replicas + obj.status.replicas\nend",
			Runtime, `line 2: attempt to index a non-table object(nil) with key 'replicas'`},
		{"a sum with nil", replicasOp, `function GetReplicas(obj) local n = 1 return n + obj.spec.size end`, Runtime,
			`line 1: cannot perform add operation between number and nil`},
		{"a comparison with nil", healthOp, `function InterpretHealth(obj) return obj.spec.replicas > obj.spec.size end`,
			Runtime, `line 1: attempt to compare nil with number`},
		{"a string joined with nil", replicasOp, `function GetReplicas(obj) return "a" .. obj.spec.size .. "b" end`, Runtime,
			`line 1: cannot join nil to a string with ..`},
		{"the length of nil", replicasOp, `function GetReplicas(obj) return #obj.spec.list end`, Runtime,
			`line 1: # asks for the length of a value that is neither a table nor a string`},
		{"a function that is not there", replicasOp, `function GetReplicas(obj) return tostring(count(obj)) end`, Runtime,
			`line 1: attempt to call a non-function object`},
		{"an argument of the wrong type", replicasOp, `function GetReplicas(obj) return string.rep({}, 2) end`, Runtime,
			`line 1: bad argument #1 to rep (string expected, got table)`},
		{"a raised string", replicasOp, "function GetReplicas(obj)\n  error('no replicas here')\nend", Runtime,
			`customization "ours", InterpretReplica, line 2: no replicas here`},
		{"a raised string without end", replicasOp, `function GetReplicas(obj) error(string.rep("x", 100000)) end`, Runtime,
			"line 1: " + strings.Repeat("x", 3<<8) + "…" + strings.Repeat("x", 1<<8)},
		{"a raised table", replicasOp, `function GetReplicas(obj) error({message = "no replicas here"}) end`, Runtime,
			`no replicas here`},
		{"a failed assertion", replicasOp, `function GetReplicas(obj) assert(obj.spec.size, "no size") end`, Runtime,
			`line 1: no size`},
		{"the library changed", replicasOp, `local s = math s.floor = nil function GetReplicas(obj) return 1 end`, Runtime,
			`math cannot be changed`},
		{"the library sorted", replicasOp, `function GetReplicas(obj) table.insert(table, 1) end`, Runtime,
			`a library cannot be changed`},
		{"another module", replicasOp, `local http = require("http") function GetReplicas(obj) return 1 end`, Runtime,
			`there is no module "http"; the only module is "kube"`},
		{"no pod template", replicasOp, `local kube = require("kube") function GetReplicas(obj) return 1, kube.accuratePodRequirements(obj.spec.template) end`, Runtime, `kube.accuratePodRequirements takes a pod template, such as obj.spec.template; it got nil`},
		{"no quantity", replicasOp, `local kube = require("kube") function GetReplicas(obj) return kube.getResourceQuantity("ten") end`, Runtime, `kube.getResourceQuantity takes quantities such as "500m"; argument 1 is the string "ten"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := Compile("ours", c.operation, c.source, nil)
			if err == nil {
				// Smaller bounds are reached sooner, and a slow machine must find the same fault.
				if p.bounds = (bounds{time.Minute, 4 << 20}); c.reason == DeadlineExceeded {
					p.bounds = bounds{50 * time.Millisecond, MemoryLimit}
				}
				_, err = p.Evaluate(context.Background(), inputs{Object: deployment, Observed: deployment})
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a fault", err)
			}
			if e.Reason != c.reason || !strings.Contains(e.Error(), c.want) {
				t.Errorf("got  %s: %s\nwant %s: %s", e.Reason, e, c.reason, c.want)
			}
			if e.Customization != "ours" || e.Operation != c.operation {
				t.Errorf("the fault is of %q, %s", e.Customization, e.Operation)
			}
		})
	}
}
