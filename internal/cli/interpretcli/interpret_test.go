package interpretcli

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// cloneset is a customization as a guide has it, with its spellings.
const cloneset = `apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: cloneset}
spec:
  target: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}
  customizations:
    replicas:
      luaScript: |
        local kube = require("kube")
        function GetReplicas(obj)
          print("asked for", obj.metadata.name)
          return obj.spec.replicas, kube.accuratePodRequirements(obj.spec.template)
        end
    reviseReplica:
      luaScript: |
        function ReviseReplica(obj, desiredReplica)
          obj.spec.replicas = desiredReplica
          return obj
        end
    statusAggregation:
      luaScript: |
        function AggregateStatus(desiredObj, statusItems)
          local n = 0
          for _, item in ipairs(statusItems or {}) do
            n = n + ((item.status or {}).replicas or 0)
          end
          desiredObj.status = {replicas = n}
          return desiredObj
        end
    retention:
      luaScript: |
        function Retain(desiredObj, observedObj)
          desiredObj.spec.replicas = observedObj.spec.replicas
          return desiredObj
        end
    healthInterpretation:
      luaScript: |
        function InterpretHealth(observedObj)
          if observedObj.status == nil then
            return "Progressing"
          end
          return observedObj.status.readyReplicas == observedObj.spec.replicas
        end
`

const object = `apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}
`

// noHub is an address without a hub.
type noHub struct{}

func (noHub) ToRESTConfig() (*rest.Config, error)    { return nil, errors.New("no hub found") }
func (noHub) ToRESTMapper() (meta.RESTMapper, error) { return nil, errors.New("no hub found") }
func (noHub) Named() bool                            { return false }

// run returns the command in a folder with these files.
func run(t *testing.T, hub HubClients, files map[string]string, args ...string) (out, errOut string, err error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	cmd := New(hub)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var stdout, stderr bytes.Buffer
	cmd.SetIn(strings.NewReader(files["-"]))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	err = cmd.Execute()
	return stdout.String(), stderr.String(), err
}

var files = map[string]string{
	"ric.yaml": cloneset, "web.yaml": object,
	"member.yaml": strings.Replace(object, "replicas: 3", "replicas: 5", 1) + "status: {readyReplicas: 5}\n",
	"beta.yaml":   strings.Replace(object, "v1alpha1", "v1beta1", 1),
	"items.yaml":  "clusterName: m1\nstatus: {replicas: 2}\n---\nclusterName: m2\nstatus: {replicas: 3}\nhealth: Healthy\n",
	"list.yaml":   "- {clusterName: m1, status: {replicas: 2}}\n- {clusterName: m2}\n",
	"rb.yaml":     "kind: ResourceBinding\nstatus: {aggregatedStatus: [{clusterName: m1, status: {replicas: 7}}]}\n",
}

func TestAnOperationIsRunOnObjectsInFiles(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"--operation InterpretReplica --desired-file web.yaml",
			"---\n# [1/2] replica:\n3\n---\n# [2/2] requires:\nnamespace: shop\nresourceRequest:\n  cpu: 500m\n"},
		{"--operation ReviseReplica --desired-file web.yaml --desired-replica 2",
			"---\n# [1/1] revised:\n" + revised("2", "")},
		{"--operation Retain --desired-file web.yaml --observed-file member.yaml",
			"---\n# [1/1] retained:\n" + revised("5", "")},
		{"--operation AggregateStatus --desired-file web.yaml --status-file items.yaml",
			"---\n# [1/1] aggregatedStatus:\n" + revised("3", "status:\n  replicas: 5\n")},
		{"--operation AggregateStatus --desired-file web.yaml --status-file list.yaml",
			"---\n# [1/1] aggregatedStatus:\n" + revised("3", "status:\n  replicas: 2\n")},
		{"--operation AggregateStatus --observed-file web.yaml --status-file rb.yaml",
			"---\n# [1/1] aggregatedStatus:\n" + revised("3", "status:\n  replicas: 7\n")},
		{"--operation InterpretHealth --observed-file member.yaml", "---\n# [1/1] healthy:\ntrue # Healthy\n"},
		{"--operation InterpretHealth --observed-file web.yaml", "---\n# [1/1] healthy:\nfalse # Progressing\n"},
		// The script is written for the other version, and given what it knows.
		{"--operation InterpretReplica --desired-file beta.yaml",
			"---\n# [1/2] replica:\n3\n---\n# [2/2] requires:\nnamespace: shop\nresourceRequest:\n  cpu: 500m\n"},
	} {
		out, errOut, err := run(t, noHub{}, files, append([]string{"-f", "ric.yaml"}, strings.Fields(c.args)...)...)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
		if diff := cmp.Diff(c.want, out); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, diff)
		}
		if !strings.Contains(errOut, "spec.customizations.replicas: stored as replicaResource") {
			t.Errorf("%s: nothing is said of the spelling: %q", c.args, errOut)
		}
		if strings.Contains(c.args, "InterpretReplica") && !strings.Contains(errOut, "cloneset: asked for\tweb") {
			t.Errorf("%s: what the script prints is not seen: %q", c.args, errOut)
		}
	}
}

// revised returns the object with so many replicas, as it is printed.
func revised(replicas, rest string) string {
	return "apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  replicas: " + replicas + `
  selector:
    matchLabels:
      app: web
  template:
    spec:
      containers:
      - name: c
        resources:
          requests:
            cpu: 500m
` + rest
}

func TestTheAnswerIsThereForPrograms(t *testing.T) {
	out, _, err := run(t, noHub{}, files, "-f", "ric.yaml", "--operation", "InterpretReplica", "--desired-file",
		"web.yaml", "-o", "json")
	var got map[string]any
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || got["replica"] != 3.0 {
		t.Errorf("output %s, error %v", out, err)
	}
}

func TestInvalidArgumentsAreExplained(t *testing.T) {
	broken := strings.Replace(cloneset, "return obj.spec.replicas,", "return obj.spec.nothing.replicas,", 1)
	more := map[string]string{"broken.yaml": broken, "pod.yaml": "apiVersion: v1\nkind: Pod\n", "two.yaml": object +
		"---\n" + object, "bad.yaml": "a: b: c\n", "nameless.yaml": "status: {}\n"}
	for name, text := range files {
		more[name] = text
	}
	for _, c := range []struct{ args, want string }{
		{"", "give the customizations with -f"},
		{"-f ric.yaml", "use either --check, or --operation"},
		{"-f ric.yaml --operation Heal --desired-file web.yaml",
			`operation "Heal" is not known; there is Retain, InterpretReplica`},
		{"-f ric.yaml --operation Retain --desired-file web.yaml", "Retain needs --desired-file and --observed-file"},
		{"-f ric.yaml --operation ReviseReplica --desired-file web.yaml", "ReviseReplica needs --desired-replica"},
		{"-f ric.yaml --operation InterpretHealth", "set --desired-file or --observed-file"},
		{"-f ric.yaml --operation InterpretHealth --desired-file web.yaml --observed-file web.yaml", "not both"},
		{"-f ric.yaml --operation InterpretStatus --observed-file web.yaml", "defines InterpretStatus for CloneSet"},
		{"-f ric.yaml --operation InterpretHealth --observed-file pod.yaml",
			"the object is v1 Pod, but the customizations are for apps.kruise.io/v1alpha1 CloneSet"},
		{"-f ric.yaml --operation InterpretHealth --observed-file two.yaml",
			"must contain exactly one object with a kind; it contains 2"},
		{"-f ric.yaml --operation InterpretHealth --observed-file bad.yaml", "bad.yaml: document 1"},
		{"-f ric.yaml --operation InterpretHealth --observed-file none.yaml", "no such file"},
		{"-f ric.yaml --operation AggregateStatus --desired-file web.yaml --status-file nameless.yaml",
			"item 1 has no clusterName"},
		{"-f broken.yaml --operation InterpretReplica --desired-file web.yaml",
			`customization "cloneset", InterpretReplica, line 4`},
		{"-f web.yaml --check", "there is no ResourceInterpreterCustomization in web.yaml"},
		{"-f https://example.org/ric.yaml --check", "download it first"},
		{"-f ric.yaml --check -o xml", "-o xml is not supported"},
		{"-f ric.yaml --edit --check", "--edit requires exactly one file"},
		{"-f none.yaml --check", "none.yaml: no such file or folder"},
		{"-f - --check", "there is no ResourceInterpreterCustomization in standard input"},
		{"-f - --operation Retain --desired-file - --observed-file web.yaml",
			"-f, --desired-file all use standard input, which can be read only once"},
		{"-f ric.yaml --check --operation Retain", "use either --check, or --operation"},
		{"-f ric.yaml --operation ReviseReplica --desired-file web.yaml --desired-replica=-1",
			"--desired-replica -1: there are no fewer than 0 replicas"},
		{"ric.yaml", `unknown command "ric.yaml" for "interpret"; give a file with -f`},
		{"lint", `unknown command "lint" for "interpret"; give a file with -f`},
		{"test", "give the folders or files with cases"},
		{"test none", "none: no such file or folder"},
		{"explain", "name one kind, such as CloneSet"},
		{"explain Clonset", "(did you mean CloneSet?)"},
		{"explain apps/v1", "apps/v1: a name with / must be a full kind"},
		{"explain ./web.yaml", "a name with / must be a full kind"},
	} {
		out, _, err := run(t, noHub{}, more, strings.Fields(c.args)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want one with %q", c.args, err, c.want)
		}
		if out != "" {
			t.Errorf("%s: printed %q", c.args, out)
		}
	}
}

func TestCheckReportsTheOperationsOfAHub(t *testing.T) {
	out, _, err := run(t, noHub{}, files, "-f", "ric.yaml", "--check")
	want := `-----------------------------------
SOURCE: ric.yaml
TARGET: apps.kruise.io/v1alpha1 CloneSet
RULERS:
    Retain:                  PASS
        warning: the member's spec.replicas always wins: the hub cannot change it any more
    InterpretReplica:        PASS
        warning: fails on an object that has only required fields: GetReplicas returned nil; it must return the number of replicas, followed by the requirements of one replica. If the field may be unset, give a default: obj.spec.replicas or 1
    InterpretComponent:      UNSET
    ReviseReplica:           PASS
    InterpretStatus:         UNSET
    AggregateStatus:         PASS
        warning: leaves out availableReplicas, collisionCount, conditions, currentRevision, expectedUpdatedReplicas, observedGeneration, readyReplicas, updateRevision, updatedAvailableReplicas, updatedReadyReplicas, updatedReplicas: Argosy fills them in, Karmada does not
    InterpretHealth:         PASS
        warning: does not check status.observedGeneration: after a change, it judges the old status
        warning: an object with an empty status is healthy: give counters a default, such as (status.readyReplicas or 0)
    InterpretDependency:     UNSET
`
	if diff := cmp.Diff(want, out); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}

	cut := strings.Replace(cloneset, "          return obj\n        end\n", "          return obj\n", 1)
	second := strings.Replace(cloneset, "{name: cloneset}", "{name: other}", 1)
	out, _, err = run(t, noHub{}, map[string]string{"a/cut.yaml": cut, "a/b/second.yaml": second}, "-R", "-f", "a",
		"--check")
	if err == nil || !strings.Contains(err.Error(), "the hub would refuse this") {
		t.Errorf("error is %v", err)
	}
	for _, want := range []string{"ReviseReplica:           ERROR: ", "'end' expected near <eof>",
		"conflicting with InterpreterOperation(Retain) of existing ResourceInterpreterCustomization(cloneset)"} {
		if !strings.Contains(out, want) {
			t.Errorf("output has no %q:\n%s", want, out)
		}
	}
	if out, _, err = run(t, noHub{}, map[string]string{"a/cut.yaml": cut, "a/b/second.yaml": second}, "-f", "a",
		"--check"); err == nil || strings.Contains(out, "second.yaml") {
		t.Errorf("a folder in a folder was read without -R: %v\n%s", err, out)
	}
}

// hostile is a YAML text that moves the cursor, rings the bell, changes the direction of writing and starts a line.
const hostile = `"x\e[2Jy\a\b\x9b\u202ez\nfake"`

// Files, and the scripts in them, come from others. A text in them is one line that does not control a terminal.
func TestNoOutputControlsATerminal(t *testing.T) {
	ric := customizationOf("apps/v1", hostile, "healthInterpretation", `
function InterpretHealth(o)
  o.status.ready = nil
  error("failed \27[2J\7\226\128\174")
end`)
	ric = strings.Replace(ric, "{name: own}", "{name: "+hostile+"}", 1)
	deployment := strings.Replace(ric, "kind: "+hostile, "kind: Deployment", 1)
	unknown := strings.Replace(ric, "luaScript:", "script: x\n      luaScript:", 1)
	cases := func(name, want string) string {
		return "customization: ric.yaml\nobject: {apiVersion: apps/v1, kind: Deployment}\ncases:\n" +
			"- {name: " + name + ", operation: InterpretHealth, " + want + "}\n"
	}
	for name, c := range map[string]struct {
		files map[string]string
		args  string
		want  string
	}{
		"a kind and an error": {map[string]string{"ric.yaml": ric}, "-f ric.yaml --check", "TARGET: apps/v1 x"},
		"an error on samples": {map[string]string{"ric.yaml": deployment}, "-f ric.yaml --check", "line 3: "},
		"a failed case": {map[string]string{"cases.yaml": cases(hostile, "want: {healthy: true}"), "ric.yaml": deployment},
			"test .", "FAIL  cases.yaml: x"},
		"a passed case": {map[string]string{"cases.yaml": cases(hostile, "wantError: attempt"), "ric.yaml": deployment},
			"test . -v", "ok    cases.yaml: x"},
		"a wrong file of cases": {map[string]string{"cases.yaml": cases(hostile, "want: 1, wantError: "+hostile)},
			"test .", "FAIL  cases.yaml: case 1"},
		"the prints and the name of a script": {map[string]string{
			"ric.yaml": strings.ReplaceAll(cloneset, "{name: cloneset}", "{name: "+hostile+"}"),
			"web.yaml": "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: " + hostile +
				"}, spec: {replicas: 1, template: {spec: {containers: []}}}}"},
			"-f ric.yaml --operation InterpretReplica --desired-file web.yaml", ": asked for"},
		"a warning": {map[string]string{"ric.yaml": strings.ReplaceAll(cloneset, "{name: cloneset}", "{name: "+hostile+"}")},
			"-f ric.yaml --check", "Warning: ric.yaml: x"},
		"an unknown field": {map[string]string{"ric.yaml": unknown}, "-f ric.yaml --check", ""},
	} {
		out, errOut, _ := run(t, noHub{}, c.files, strings.Fields(c.args)...) // most fail
		for line := range strings.Lines(out + errOut) {
			if strings.HasPrefix(line, "fake") || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool {
				return r != '\t' && !unicode.IsPrint(r)
			}) {
				t.Errorf("%s: prints %q", name, line)
			}
		}
		if !strings.Contains(out+errOut, c.want) {
			t.Errorf("%s: want %q in %q %q", name, c.want, out, errOut)
		}
	}
}

func TestDocumentationNamesEveryOperation(t *testing.T) {
	out, _, err := run(t, noHub{}, nil, "--show-doc")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range script.Operations {
		if !strings.Contains(out, "spec.customizations."+o.Field+".luaScript\n  function "+o.Signature()+"\n") {
			t.Errorf("nothing is said of %s", o.Field)
		}
	}
}

func TestEditAcceptsOnlyValidCustomizations(t *testing.T) {
	for name, c := range map[string]struct {
		script    string // of the editor, which has the file in $1
		args      []string
		want, err string
		changed   bool
	}{
		"a change":           {`sed -i 's/name: cloneset/name: renamed/' "$1"`, nil, "ric.yaml edited\n", "", true},
		"a change with docs": {`grep -q '#| spec.customizations.retention' "$1" && sed -i 's/name: cloneset/name: renamed/' "$1"`, []string{"--show-doc"}, "ric.yaml edited\n", "", true},
		"no change":          {`true`, nil, "", "", false},
		"an emptied file":    {`: > "$1"`, nil, "", "ric.yaml was not changed: the new text is empty", false},
		"no Lua":             {`sed -i 's/return obj$/return return/' "$1"`, nil, "", "replicaRevision", false},
		"a mistake that is corrected": {`if grep -q '^#| cloneset: replicaRevision' "$1"; then sed -i 's/return return/return obj/; s/name: cloneset/name: renamed/' "$1"; else sed -i 's/return obj$/return return/' "$1"; fi`,
			nil, "ric.yaml edited\n", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			editor := filepath.Join(t.TempDir(), "editor")
			if err := os.WriteFile(editor, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("KUBE_EDITOR", editor)
			out, _, err := run(t, noHub{}, files, append([]string{"-f", "ric.yaml", "--edit"}, c.args...)...)
			if out != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("output %q, error %v", out, err)
			}
			after, err := os.ReadFile("ric.yaml")
			if err != nil {
				t.Fatal(err)
			}
			want := cloneset
			if c.changed {
				want = strings.Replace(cloneset, "{name: cloneset}", "{name: renamed}", 1)
			}
			if diff := cmp.Diff(want, string(after)); diff != "" {
				t.Errorf("the file (-want +got):\n%s", diff)
			}
		})
	}
}

const cases = `customization: ../ric.yaml
object: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web}, spec: {replicas: 3, template: {spec: {containers: []}}}}
cases:
- {name: the replicas are set, operation: ReviseReplica, desiredReplica: 2, wantChange: {spec: {replicas: 2}}}
- {name: all ready, operation: InterpretHealth, observed: {status: {readyReplicas: 3}}, want: {health: Healthy}}
- {name: what it does not say is built in, operation: InterpretDependency, want: []}
`

func TestFilesOfCasesAreRun(t *testing.T) {
	given := map[string]string{"ric.yaml": cloneset, "cases/good.yaml": cases, "cases/ric.yaml": cloneset}
	out, _, err := run(t, noHub{}, given, "test", "cases")
	if want := "ok    cases/good.yaml: 3 cases\n3 cases in 1 file, 0 failed\n"; out != want || err != nil {
		t.Errorf("output %q, error %v", out, err)
	}

	given["cases/bad.yaml"] = strings.Replace(cases, "replicas: 2}}}", "replicas: 4}}}", 1)
	given["cases/broken.yaml"] = "cases: [{name: x}]\n"
	given["cases/typo.yaml"] = "cases: [{name: x, wnat: {}}]\n"
	given["cases/lost.yaml"] = strings.Replace(cases, "../ric.yaml", "../none.yaml", 1)
	out, _, err = run(t, noHub{}, given, "test", "cases")
	if err == nil || err.Error() != "4 failed" {
		t.Errorf("error is %v", err)
	}
	for _, want := range []string{
		"FAIL  cases/bad.yaml: the replicas are set (ReviseReplica)\n    (-want +got)\n",
		"    -  \"replicas\": 4,\n    +  \"replicas\": 2,\n",
		"FAIL  cases/broken.yaml: case 1, \"x\": set exactly one of want",
		"FAIL  cases/lost.yaml: customization: open none.yaml",
		"FAIL  cases/typo.yaml: unknown field \"wnat\"\n",
		"6 cases in 5 files, 4 failed\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("output has no %q:\n%s", want, out)
		}
	}

	out, _, err = run(t, noHub{}, given, "test", "cases/bad.yaml", "-o", "json")
	var got []tested
	if err == nil || json.Unmarshal([]byte(out), &got) != nil || len(got) != 1 || len(got[0].Results) != 3 ||
		got[0].Results[0].Failure == "" {
		t.Errorf("output %s, error %v", out, err)
	}
	if _, _, err := run(t, noHub{}, map[string]string{"x/ric.yaml": cloneset}, "test", "x"); err == nil ||
		!strings.Contains(err.Error(), "there are no files with cases") {
		t.Errorf("a folder without cases: %v", err)
	}
}

func TestExplainNamesTheInterpreterWithoutAHub(t *testing.T) {
	out, errOut, err := run(t, noHub{}, nil, "explain", "helmreleases")
	want := `helm.toolkit.fluxcd.io/v2beta1 HelmRelease, without a hub
OPERATION             TIER             BY
InterpretReplica      <none>           no replicas to divide
InterpretComponent    <none>           no components
ReviseReplica         <none>           unchanged in each cluster
Retain                shipped script   
InterpretStatus       shipped script   
AggregateStatus       shipped script   
InterpretHealth       shipped script   
InterpretDependency   shipped script   
`
	if diff := cmp.Diff(want, out); err != nil || errOut != "" || diff != "" {
		t.Errorf("error %v, %q (-want +got):\n%s", err, errOut, diff)
	}
	// The name of a kind may be ambiguous; the group makes it unique.
	out, _, err = run(t, noHub{}, nil, "explain", "StatefulSet", "-o", "json")
	var got []explanation
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || len(got) != 2 || got[0].Group != "apps" ||
		got[1].Version != "v1beta1" {
		t.Errorf("output %s, error %v", out, err)
	}
	if out, _, err = run(t, noHub{}, nil, "explain", "statefulsets.apps.kruise.io"); err != nil ||
		strings.Contains(out, "apps/v1 ") {
		t.Errorf("output %s, error %v", out, err)
	}
	if out, _, err = run(t, noHub{}, nil, "explain", "clonesets.v1alpha1.apps.kruise.io"); err != nil ||
		!strings.HasPrefix(out, "apps.kruise.io/v1alpha1 CloneSet") {
		t.Errorf("output %s, error %v", out, err)
	}
	if out, _, err = run(t, noHub{}, nil, "explain", "example.org/v1/Widget"); err != nil ||
		strings.Count(out, "<none>") != 5 || strings.Count(out, "standard conditions") != 3 {
		t.Errorf("output %s, error %v", out, err)
	}
	if _, _, err = run(t, noHub{}, nil, "explain", "Widget"); err == nil ||
		!strings.Contains(err.Error(), "give its full name") {
		t.Errorf("a kind that nobody knows: %v", err)
	}
}

func TestShippedScriptsPassTheCheck(t *testing.T) {
	out, _, err := run(t, noHub{}, nil, "explain", "RayService", "--shipped")
	if err != nil {
		t.Fatal(err)
	}
	out, _, err = run(t, noHub{}, map[string]string{"own.yaml": out}, "-f", "own.yaml", "--check")
	if err != nil || strings.Count(out, "PASS") != 5 {
		t.Errorf("error %v:\n%s", err, out)
	}
	if _, _, err := run(t, noHub{}, nil, "explain", "Pod", "--shipped"); err == nil ||
		!strings.Contains(err.Error(), "no script is shipped for Pod") {
		t.Errorf("a kind without a script: %v", err)
	}
}

// testHub answers as the API server of a hub does, with lists of customizations, webhooks and definitions.
type testHub struct{ url string }

func (h testHub) ToRESTConfig() (*rest.Config, error) { return &rest.Config{Host: h.url}, nil }
func (h testHub) ToRESTMapper() (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}, meta.RESTScopeNamespace)
	return m, nil
}
func (testHub) Named() bool { return true }

func TestExplainAsksTheHub(t *testing.T) {
	answers := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/apis/config.karmada.io/v1alpha1": `{"kind":"APIResourceList","groupVersion":"config.karmada.io/v1alpha1","resources":[
			{"name":"resourceinterpretercustomizations","kind":"ResourceInterpreterCustomization","verbs":["list"]},
			{"name":"resourceinterpreterwebhookconfigurations","kind":"ResourceInterpreterWebhookConfiguration","verbs":["list"]}]}`,
		"/apis/config.karmada.io":       `{"kind":"APIGroup","name":"config.karmada.io","versions":[{"groupVersion":"config.karmada.io/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"config.karmada.io/v1alpha1","version":"v1alpha1"}}`,
		"/apis/apiextensions.k8s.io":    `{"kind":"APIGroup","name":"apiextensions.k8s.io","versions":[{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}}`,
		"/apis/apiextensions.k8s.io/v1": `{"kind":"APIResourceList","groupVersion":"apiextensions.k8s.io/v1","resources":[{"name":"customresourcedefinitions","kind":"CustomResourceDefinition","verbs":["list"]}]}`,
		"/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations": `{"kind":"ResourceInterpreterCustomizationList","apiVersion":"config.karmada.io/v1alpha1","items":[
			{"metadata":{"name":"ours"},"spec":{"target":{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet"},"customizations":{"replicaResource":{"jsonPath":".spec.replicas"}}}},
			{"metadata":{"name":"newer"},"spec":{"target":{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet"},"customizations":{"replicaResource":{"jsonPath":".spec.replicas"}}}}]}`,
		"/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations": `{"kind":"ResourceInterpreterWebhookConfigurationList","apiVersion":"config.karmada.io/v1alpha1","items":[]}`,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","items":[
			{"metadata":{"name":"widgets.example.org"},"spec":{"group":"example.org","scope":"Namespaced","names":{"kind":"Widget","plural":"widgets"},"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(text, `{"kind":"Status"`) {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()

	out, errOut, err := run(t, testHub{server.URL}, nil, "explain", "clonesets")
	if err != nil || errOut != "" {
		t.Fatalf("error %v, %s", err, errOut)
	}
	for _, want := range []string{
		"apps.kruise.io/v1alpha1 CloneSet, as defined on this hub\n",
		"InterpretReplica      ResourceInterpreterCustomization   ours\n",
		"ReviseReplica         built in",
		"InterpretReplica is also answered by newer, for v1beta1\nThe customization for the object's own version answers",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("output has no %q:\n%s", want, out)
		}
	}
	for kind, want := range map[string]string{
		"Workflow":                        "argoproj.io/v1alpha1 Workflow, which this hub does not serve; this is what would answer if it did (start it with argo among --workload-kinds, or apply a CustomResourceDefinition)\n",
		"apps.kruise.io/v1beta1/CloneSet": "apps.kruise.io/v1beta1 CloneSet, which this hub does not serve; this is what would answer if it did (start it with openkruise among --workload-kinds",
		"example.org/v1/Widget":           "example.org/v1 Widget, which this hub does not serve; this is what would answer if it did (apply its CustomResourceDefinition)\n",
	} {
		if out, _, err = run(t, testHub{server.URL}, nil, "explain", kind); err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("explain %s: error %v, output\n%s", kind, err, out)
		}
	}

	// A user of a namespace may not read all rules, nor the definitions.
	const of = "/apis/config.karmada.io/v1alpha1/"
	answers["/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clonesets.apps.kruise.io"] =
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	for _, c := range []struct{ resource, role, shows string }{
		{"resourceinterpreterwebhookconfigurations", "argosy:operator", "ours"},
		{"resourceinterpretercustomizations", "argosy:view", "built in"},
	} {
		answers[of+c.resource] = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
			`"message":"no","details":{"group":"config.karmada.io","kind":"` + c.resource + `"}}`
		out, errOut, err = run(t, testHub{server.URL}, nil, "explain", "clonesets")
		if err != nil || strings.Contains(errOut, "not available") || !strings.Contains(out, c.shows) ||
			!strings.Contains(errOut, "you may not list "+c.resource+".config.karmada.io") ||
			!strings.Contains(errOut, "a ClusterRoleBinding to the ClusterRole "+c.role+" permits it") ||
			!strings.Contains(errOut, "their rules on this hub are not shown") {
			t.Errorf("without the right to list %s: error %v, %s\n%s", c.resource, err, errOut, out)
		}
	}

	server.Close()
	out, errOut, err = run(t, testHub{server.URL}, nil, "explain", "CloneSet")
	if err != nil || !strings.Contains(errOut, "Warning: the hub is not available") ||
		!strings.Contains(out, "without a hub") {
		t.Errorf("a hub that is down: error %v, %q\n%s", err, errOut, out)
	}
}
