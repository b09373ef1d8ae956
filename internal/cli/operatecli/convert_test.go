package operatecli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mixed = `# a comment that stays
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec: {replicas: 3, customizations: {replicas: 1}} # as it is
---
# a comment that goes
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata:
  name: cloneset
spec:
  target:
    apiVersion: apps.kruise.io/v1alpha1
    kind: CloneSet
  customizations:
    replicas:
      luaScript: |
        function GetReplicas(obj)
          return obj.spec.replicas
        end
---
---
just: values
---
{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "member1"}, "spec": {"syncMode": "Push", "zone": "a"}},
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}]}
`

const mixedConverted = `# a comment that stays
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec: {replicas: 3, customizations: {replicas: 1}} # as it is
---
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata:
  name: cloneset
spec:
  customizations:
    replicaResource:
      luaScript: |
        function GetReplicas(obj)
          return obj.spec.replicas
        end
  target:
    apiVersion: apps.kruise.io/v1alpha1
    kind: CloneSet
---
just: values
---
apiVersion: v1
items:
- apiVersion: cluster.karmada.io/v1alpha1
  kind: Cluster
  metadata:
    name: member1
  spec:
    syncMode: Push
    zones:
    - a
- apiVersion: v1
  kind: Pod
  metadata:
    name: p
kind: List
`

func TestConvertRewritesOnlyAlternativeSpellings(t *testing.T) {
	out, warnings, err := convert(t, mixed, "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mixedConverted, out); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	want := "Warning: -: document 2, ResourceInterpreterCustomization cloneset: spec.customizations.replicas: stored as replicaResource\n" +
		"Warning: -: document 4, Cluster member1: spec.zone: stored as zones\n"
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	again, warnings, err := convert(t, out, "-f", "-")
	if err != nil || again != out || warnings != "" {
		t.Errorf("the second time: error %v, warnings %q, output (-once +twice):\n%s", err, warnings, cmp.Diff(out, again))
	}
}

func TestConvertReadsSeveralFilesInOrder(t *testing.T) {
	dir := t.TempDir()
	var args []string
	for _, name := range []string{"b", "a"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("kind: "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-f", file)
	}
	out, _, err := convert(t, "", args...)
	if want := "kind: b\n---\nkind: a\n"; err != nil || out != want {
		t.Errorf("output %q, error %v, want %q", out, err, want)
	}
}

func TestConvertPrintsNothingAfterAnError(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"a contradiction": {mixed + `---
{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: r}, spec: {customizations: {replicas: {luaScript: a}, replicaResource: {luaScript: b}}}}`,
			"-: document 5: ResourceInterpreterCustomization r: spec.customizations.replicas: duplicates replicaResource"},
		"no YAML":                   {mixed + "---\na: b: c\n", "-: document 5: "},
		"a key that is there twice": {"kind: a\nkind: b\n", `key "kind" already set`},
	} {
		out, _, err := convert(t, c.in, "-f", "-")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want one with %q", name, err, c.want)
		}
		if out != "" {
			t.Errorf("%s: printed %q", name, out)
		}
	}
	if _, _, err := convert(t, ""); err == nil || !strings.Contains(err.Error(), `"filename" not set`) {
		t.Errorf("without a file: %v", err)
	}
	if _, _, err := convert(t, "", "-f", "missing"); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func convert(t *testing.T, in string, args ...string) (out, warnings string, err error) {
	t.Helper()
	cmd := NewConvert()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var stdout, stderr bytes.Buffer
	cmd.SetIn(strings.NewReader(in))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	err = cmd.Execute()
	return stdout.String(), stderr.String(), err
}
