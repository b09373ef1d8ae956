package up

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// sometimes are the metrics that exist only in some states; each is registered by the hub, and test/docs has a line
// for it.
var sometimes = map[string]bool{
	"argosy_releases_waiting":                   true, // while a release waits for a person
	"argosy_store_finding":                      true, // something is wrong with the store
	"argosy_orphans":                            true, // a cluster has some
	"argosy_descheduled_replicas_total":         true, // replicas were moved
	"argosy_backup_covered_timestamp_seconds":   true, // there is a backup
	"controller_runtime_reconcile_errors_total": true,
}

var (
	quoted     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	matchers   = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]`)
	grouping   = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)`)
	identifier = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\b\s*\(?`)
)

// metricsIn are the metrics that an expression reads.
func metricsIn(expr string) []string {
	var found []string
	for _, pattern := range []*regexp.Regexp{quoted, matchers, grouping} {
		expr = pattern.ReplaceAllString(expr, " ")
	}
	for _, name := range identifier.FindAllString(expr, -1) {
		if name = strings.TrimSpace(name); strings.Contains(name, "_") && !strings.HasSuffix(name, "(") {
			found = append(found, name)
		}
	}
	return found
}

// expressions are those of the dashboard and the rules, by where they stand.
func expressions(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	read := func(file string, into any) {
		raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "monitoring", file))
		if err == nil {
			err = yaml.Unmarshal(raw, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	read("rules.yaml", &rules)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			found["alert "+r.Alert] = []string{r.Expr}
		}
	}
	var board struct {
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	read("argosy.json", &board)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			found["panel "+p.Title] = append(found["panel "+p.Title], target.Expr)
		}
	}
	for _, v := range board.Templating.List {
		if inside, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
			found["variable "+v.Name] = []string{inside[:strings.LastIndex(inside, ",")]}
		}
	}
	return found
}

func TestDashboardAndAlertMetricsExist(t *testing.T) {
	kit.Long(t)
	f, err := kit.StartWith(lab.Options{Dir: t.TempDir(), Members: []sim.Member{{Name: "eu", Nodes: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Lab.Stop(); err != nil {
			t.Error(err)
		}
	})
	f.Hub.Apply(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: settings}, {apiVersion: apps/v1, kind: Deployment, name: web}],
  placement: {clusterAffinity: {clusterNames: [eu]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
---
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: all, namespace: default}
spec: {overall: {cpu: "1"}}
---
# It uses enough of the quota that the hub tells the share.
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 900m}}}]}}
---
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: health}
spec:
  target: {apiVersion: v1, kind: ConfigMap}
  customizations: {healthInterpretation: {luaScript: "function InterpretHealth(o) return true end"}}`)
	c, err := kubernetes.NewForConfig(f.Hub.Config)
	if err != nil {
		t.Fatal(err)
	}
	wanted, total := expressions(t), 0
	kit.Eventually(t, "the hub tells all metrics", func() string {
		raw, err := c.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		if err != nil {
			return err.Error()
		}
		messages := map[string]bool{"up": true} // Prometheus' own
		for line := range strings.Lines(string(raw)) {
			if name, _, ok := strings.Cut(line, "{"); ok || !strings.HasPrefix(line, "#") {
				name, _, _ = strings.Cut(name, " ")
				messages[strings.TrimSpace(name)] = true
			}
		}
		total = 0
		for where, exprs := range wanted {
			for _, expr := range exprs {
				for _, name := range metricsIn(expr) {
					total++
					if !messages[name] && !sometimes[name] {
						return where + " reads " + name + ", which the hub does not tell"
					}
				}
			}
		}
		return ""
	})
	if total < 80 {
		t.Errorf("only %d metrics were found in the expressions", total)
	}
}

func TestMetricsAreFoundInExpressions(t *testing.T) {
	raw, err := json.Marshal(metricsIn(
		`histogram_quantile(0.99, sum by (job, le_x) (rate(a_bucket{job=~"b_c", x!="d_e"}[5m]))) / on (f_g) (h_i > 0) - time() and on (job) j_k == 1`))
	if want := `["a_bucket","h_i","j_k"]`; err != nil || string(raw) != want {
		t.Errorf("it finds %s, want %s", raw, want)
	}
}
