package guides

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/test/kit"
)

// articles are the texts, by S000 to S004.
var articles map[string]*article

func TestGuidesWorkOrReportErrors(t *testing.T) {
	kit.Long(t)
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("the guides are not beside this repository: %v", err)
	}
	var err error
	if articles, err = readArticles(folder); err != nil {
		t.Fatal(err)
	}
	rows := slices.Concat(s000, s001, s002, s003)
	t.Run("rows", func(t *testing.T) { run(t, rows) })
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // some rows were chosen
	}

	// Every block with an object or a script has a row.
	for _, a := range articles {
		if testing.Short() {
			break // some rows are in the long suite
		}
		for _, d := range a.docs {
			if _, ok := taken.Load(fmt.Sprintf("%s:%d", a.name, d.first)); !ok && (d.language == "yaml" || a.name == "S003") {
				t.Errorf("no row is about the block at line %d of %s", d.first, a.name)
			}
		}
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.id] {
			t.Errorf("row %s is there twice", r.id)
		}
		seen[r.id] = true
	}
	for n := range 121 {
		if id := fmt.Sprint(n + 1); !seen[id] {
			t.Errorf("there is no row %s", id)
		}
	}
}
