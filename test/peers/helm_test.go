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

// everything of a namespace goes to two members.
const everything = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: %s}, spec: {resourceSelectors: [
 {apiVersion: apps/v1, kind: Deployment}, {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}, {apiVersion: v1, kind: Service},
 {apiVersion: v1, kind: ConfigMap, name: settings}], placement: {clusterAffinity: {clusterNames: [home, away]}}}}`

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
			helm := programs(t, name)[0]
			ns, dir := fleet.Namespace(t), chart(t)
			fleet.Hub.Apply(t, fmt.Sprintf(everything, ns))
			// Helm 3 waits for a ReplicaSet of each Deployment, which the hub does not have.
			wait := []string{}
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

// docs/helm.md names the commands that wait.
func TestHelm3WaitsForWorkloadsExceptDeployments(t *testing.T) {
	helm := programs(t, "helm3")[0]
	ns, dir := fleet.Namespace(t), chart(t)
	fleet.Hub.Apply(t, fmt.Sprintf(everything, ns))
	run(t, helm, "install", "clones", dir, "-n", ns, "--set", "deployment=false", "--wait", "--timeout", "1m")
	run(t, helm, "uninstall", "clones", "-n", ns)
	cmd := exec.CommandContext(t.Context(), helm, "install", "web", dir, "-n", ns, "--wait", "--timeout", "10s")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+fleet.Lab.Hub.Kubeconfig())
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("helm 3 waits for Deployments now: say so in docs/helm.md\n%s", out)
	}
	if kubectl, err := exec.LookPath("kubectl"); err == nil {
		run(t, kubectl, "rollout", "status", "deployment/web", "-n", ns, "--timeout", "2m")
	}
}
