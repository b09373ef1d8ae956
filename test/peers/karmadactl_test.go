package peers

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// changing are the parts of an output that time changes.
var changing = regexp.MustCompile(`\b\d+(s|m|m\d+s|h|h\d+m|d)\b`)

// normal returns an output without what time and the width of columns change.
func normal(out string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if line = strings.Join(strings.Fields(changing.ReplaceAllString(line, "AGE")), " "); line != "" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines) // karmadactl prints clusters in the order in which they answer
	return strings.Join(lines, "\n")
}

// linkKarmadactl returns the path of the hub's binary under the name karmadactl.
func linkKarmadactl(t *testing.T) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "karmadactl")
	if err := os.Symlink(fleet.Lab.Hub.Binary, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// Scripts for karmadactl read what it prints.
func TestCommandLinesOfKarmadactlPrintTheSame(t *testing.T) {
	theirs, ours := kit.Peers(t, "karmadactl")[0], linkKarmadactl(t)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, app(ns, 2, "clusterAffinity: {clusterNames: [home, away]}"))
	for _, name := range []string{"home", "away"} {
		replicas(t, fleet.Members[name], ns, "2")
	}
	for _, line := range []string{
		"get deployments -n NS",
		"get deployments web -n NS -o wide",
		"get deployments -n NS -s members",
		"get deployments -n NS -s members -C away",
		"get deployments,services -n NS -s all -l app=web",
		"get deployment web -n NS -o jsonpath={.spec.replicas}",
		"get pods -n NS -s members -C home --no-headers",
		"get propagationpolicies -n NS",
		"get resourcebindings -n NS",
		"get clusters",
		"api-versions",
		"api-versions -s members --cluster home",
		"api-resources --api-group=policy.karmada.io",
		"api-resources -s members --cluster home --api-group=apps",
		"explain propagationpolicy.spec.placement",
		"explain deployment.spec.replicas -s members --cluster home",
		"describe deployment web -n NS -s members -C home",
		"create configmap x -n NS --from-literal=a=b --dry-run=client -o yaml",
		"label deployment web -n NS --list",
		"annotate deployment web -n NS a=b --dry-run=server",
		"patch deployment web -n NS -p {\"spec\":{\"paused\":true}} --dry-run=server",
		"delete deployment web -n NS --dry-run=server",
	} {
		args := strings.Fields(strings.ReplaceAll(line, "NS", ns))
		if want, got := normal(run(t, theirs, args...)), normal(run(t, ours, args...)); got != want {
			t.Errorf("karmadactl %s prints\n%s\nwant\n%s", line, got, want)
		}
	}
}

// Both write the same templates and policies.
func TestApplyAndPromoteOfKarmadactlWriteTheSame(t *testing.T) {
	theirs, ours := kit.Peers(t, "karmadactl")[0], linkKarmadactl(t)
	made := map[string][]string{}
	for name, program := range map[string]string{"theirs": theirs, "ours": ours} {
		ns := fleet.Namespace(t)
		file := filepath.Join(t.TempDir(), "app.yaml")
		text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}\n---\n" +
			"{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, program, "apply", "-n", ns, "-f", file, "-C", "home")
		kit.Eventually(t, "what "+name+" applied is in home", func() string {
			if fleet.Members["home"].Find(t, "v1", "ConfigMap", ns, "settings") == nil {
				return "it is not"
			}
			return ""
		})
		fleet.Members["home"].Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: legacy, namespace: "+ns+
			"}, data: {c: d}}")
		run(t, program, "promote", "configmap", "legacy", "-n", ns, "-C", "home")
		kit.Eventually(t, "what "+name+" promoted is managed", func() string {
			if u := fleet.Members["home"].Find(t, "v1", "ConfigMap", ns, "legacy"); u == nil ||
				u.GetLabels()["karmada.io/managed"] != "true" {
				return "it is not"
			}
			return ""
		})
		var policies policyv1alpha1.PropagationPolicyList
		if err := fleet.Hub.List(t.Context(), &policies, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		for _, p := range policies.Items {
			selected, affinity := p.Spec.ResourceSelectors[0], p.Spec.Placement.ClusterAffinity
			// The hash in a name depends on the namespace.
			made[name] = append(made[name], strings.Join(append([]string{p.Name[:strings.LastIndex(p.Name, "-")],
				selected.Kind, selected.Name}, affinity.ClusterNames...), " "))
		}
	}
	if a, b := strings.Join(made["theirs"], "\n"), strings.Join(made["ours"], "\n"); a != b || len(made["ours"]) != 3 {
		t.Errorf("karmadactl writes the policies\n%s\nand argosy\n%s", a, b)
	}
}
