package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// metric is a name of ours, or one that is Karmada's, as a literal of the code or between backticks of a page.
var metric = regexp.MustCompile("[\"`]((?:argosy|karmada_scheduler|cluster|scheduler)_[a-z0-9_]+)[\"`]")

// registered are the metrics that the code makes: the literals of files that use Prometheus' client.
func registered(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), `"github.com/prometheus/client_golang/prometheus"`) {
			for _, m := range metric.FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = true
			}
		}
		return err
	})
	if err != nil || len(found) < 30 {
		t.Fatalf("%d metrics are found in the code: %v", len(found), err)
	}
	return found
}

func TestEachMetricHasALine(t *testing.T) {
	all := pages(t)
	gotText := map[string]bool{}
	for _, page := range []string{"metrics.md", "backup.md"} {
		for _, line := range strings.Split(all[filepath.Join("docs", page)], "\n") {
			if strings.HasPrefix(line, "| `") {
				for _, m := range metric.FindAllStringSubmatch(line, -1) {
					gotText[m[1]] = true
				}
			}
		}
	}
	made := registered(t)
	for name := range made {
		if !gotText[name] {
			t.Errorf("neither docs/metrics.md nor docs/backup.md has a line for %s", name)
		}
	}
	for name := range gotText {
		if !made[name] {
			t.Errorf("the pages have a line for %s, which nothing registers", name)
		}
	}
}

// Each alert has a line, with its severity, and each line is of one.
func TestEachAlertHasALine(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join(root, "deploy", "monitoring", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	page := pages(t)[filepath.Join("docs", "metrics.md")]
	alerts := regexp.MustCompile(`(?s)- alert: (\w+)\n.*?severity: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	for _, m := range alerts {
		if !strings.Contains(page, "| `"+m[1]+"` | "+m[2]+" |") {
			t.Errorf("docs/metrics.md has no line for %s of severity %s", m[1], m[2])
		}
	}
	if lines := len(regexp.MustCompile("(?m)^\\| `Argosy\\w+` \\|").FindAllString(page, -1)); lines != len(alerts) ||
		lines < 20 {
		t.Errorf("there are %d alerts, and lines for %d", len(alerts), lines)
	}
	for name, text := range pages(t) {
		for _, m := range regexp.MustCompile("`(Argosy[A-Z]\\w+)`").FindAllStringSubmatch(text, -1) {
			if !strings.Contains(string(rules), "- alert: "+m[1]+"\n") {
				t.Errorf("%s names the alert %s, which is not there", name, m[1])
			}
		}
	}
}
