package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/test/kit"
)

// chart writes a chart with a Deployment, a CloneSet, a Service and a ConfigMap, and returns its folder.
func chart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const pods = `selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: main, image: "nginx:{{ .Values.tag }}"}]}}`
	for name, text := range map[string]string{
		"Chart.yaml":  "{apiVersion: v2, name: web, version: 0.1.0}\n",
		"values.yaml": "{tag: \"1\", deployment: true}\n",
		"templates/all.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {tag: "{{ .Values.tag }}"}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: clone}, spec: {replicas: 2, ` + fmt.Sprintf(pods, "clone") + `}}
{{- if .Values.deployment }}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, ` + fmt.Sprintf(pods, "web") + `}}
{{- end }}
`} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// placed is a policy that sends everything of a namespace to two members.
func placed(ns, scheduling string) string {
	return fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: %s},
 spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet},
  {apiVersion: v1, kind: Service}, {apiVersion: v1, kind: ConfigMap, name: settings}],
 placement: {clusterAffinity: {clusterNames: [home, away]}, replicaScheduling: {%s}}}}`, ns, scheduling)
}

const (
	divided    = "replicaSchedulingType: Divided, replicaDivisionPreference: Weighted"
	duplicated = "replicaSchedulingType: Duplicated"
)

// image returns the image of a workload in a member; empty if it is not there.
func image(t *testing.T, member, apiVersion, kind, ns, name string) string {
	t.Helper()
	u := fleet.Members[member].Find(t, apiVersion, kind, ns, name)
	if u == nil {
		return ""
	}
	containers, _ := kit.Field(u, "spec", "template", "spec", "containers").([]any)
	if len(containers) == 0 {
		return ""
	}
	text, _ := containers[0].(map[string]any)["image"].(string)
	return text
}

// runs waits until both workloads have an image in both members.
func runs(t *testing.T, ns, want string) {
	t.Helper()
	kit.Eventually(t, "both members run "+want, func() string {
		for _, member := range []string{"home", "away"} {
			for kind, name := range map[string]string{"Deployment": "web", "CloneSet": "clone"} {
				apiVersion := map[string]string{"Deployment": "apps/v1", "CloneSet": "apps.kruise.io/v1alpha1"}[kind]
				if got := image(t, member, apiVersion, kind, ns, name); got != want {
					return fmt.Sprintf("%s %s runs %q", member, kind, got)
				}
			}
		}
		return ""
	})
}

func TestHelmInstallsUpgradesAndRollsBack(t *testing.T) {
	for _, name := range []string{"helm3", "helm4"} {
		t.Run(name, func(t *testing.T) {
			helm := kit.Peers(t, name)[0]
			ns, dir := fleet.Namespace(t), chart(t)
			fleet.Hub.Apply(t, placed(ns, divided))
			var wait []string
			if name != "helm3" {
				wait = []string{"--wait", "--timeout", "2m"}
			}
			run(t, helm, append([]string{"install", "web", dir, "-n", ns}, wait...)...)
			runs(t, ns, "nginx:1")
			run(t, helm, append([]string{"upgrade", "web", dir, "-n", ns, "--set-string", "tag=2"}, wait...)...)
			runs(t, ns, "nginx:2")
			run(t, helm, append([]string{"rollback", "web", "1", "-n", ns}, wait...)...)
			runs(t, ns, "nginx:1")
			if out := run(t, helm, "history", "web", "-n", ns); strings.Count(out, "superseded") != 2 ||
				strings.Count(out, "deployed") != 1 {
				t.Errorf("the history is\n%s", out)
			}
			run(t, helm, "uninstall", "web", "-n", ns)
			runs(t, ns, "")
		})
	}
}

// docs/helm.md says which waits end, and which command to use instead of the others.
func TestHelmWaitsAsThePageSays(t *testing.T) {
	for name, c := range map[string]struct {
		helm, scheduling string
		args             []string
		ends             bool
	}{
		"3, without a Deployment": {"helm3", divided, []string{"--set", "deployment=false"}, true},
		"3, with a Deployment":    {"helm3", divided, nil, false},
		"4, divided":              {"helm4", divided, nil, true},
		"4, duplicated":           {"helm4", duplicated, nil, false},
		"4, duplicated CloneSets": {"helm4", duplicated, []string{"--set", "deployment=false"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			helm := kit.Peers(t, c.helm)[0]
			ns, dir, timeout := fleet.Namespace(t), chart(t), "15s"
			if c.ends {
				timeout = "2m"
			}
			fleet.Hub.Apply(t, placed(ns, c.scheduling))
			cmd := exec.CommandContext(t.Context(), helm, append([]string{"install", "web", dir, "-n", ns, "--wait", "--timeout",
				timeout}, c.args...)...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+fleet.Lab.Hub.Kubeconfig())
			if out, err := cmd.CombinedOutput(); (err == nil) != c.ends {
				t.Errorf("the wait ended with %v: correct docs/helm.md\n%s", err, out)
			}
			if kubectl, err := exec.LookPath("kubectl"); err == nil && len(c.args) == 0 {
				run(t, kubectl, "rollout", "status", "deployment/web", "-n", ns, "--timeout", "2m")
			}
			run(t, helm, "uninstall", "web", "-n", ns)
		})
	}
}
