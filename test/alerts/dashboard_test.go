package alerts

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// A dashboard that is imported asks for its data source and for nothing else, and each of its queries is one.
func TestTheDashboardCanBeImported(t *testing.T) {
	raw, err := os.ReadFile("../../deploy/monitoring/argosy.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID        string
		Templating struct {
			List []struct{ Name, Type string }
		}
		Panels []struct {
			ID         int
			Title      string
			Type       string
			Datasource struct{ UID string }
			Targets    []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	variables := map[string]bool{}
	for _, v := range board.Templating.List {
		variables["$"+v.Name] = true
	}
	if first := board.Templating.List[0]; first.Name != "datasource" || first.Type != "datasource" {
		t.Errorf("its first variable is %v", first)
	}
	ids, queries := map[int]bool{}, 0
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q has the number of another", p.Title)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q asks %q", p.Title, p.Datasource.UID)
		}
		for _, target := range p.Targets {
			queries++
			expr := strings.NewReplacer("$__rate_interval", "5m").Replace(target.Expr)
			for variable := range variables {
				expr = strings.ReplaceAll(expr, variable, "x")
			}
			if strings.Contains(expr, "$") {
				t.Errorf("panel %q uses a variable that is not there: %s", p.Title, target.Expr)
			}
			if _, err := parser.ParseExpr(expr); err != nil {
				t.Errorf("panel %q: %s: %v", p.Title, target.Expr, err)
			}
		}
	}
	if queries < 40 {
		t.Errorf("there are %d queries", queries)
	}
}
