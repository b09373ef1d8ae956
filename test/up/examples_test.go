package up

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/test/kit"
)

// onDemo starts the demo, and has its kubeconfig in KUBECONFIG.
const onDemo = `
set -o pipefail
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
export PATH=$PWD/bin:$PATH
argosy demo >demo.log 2>&1 &
until grep -q 'export KUBECONFIG=' demo.log; do kill -0 $! || { cat demo.log; exit 1; }; sleep 0.2; done
export KUBECONFIG=$(sed -n 's/^ *export KUBECONFIG=//p' demo.log)
`

// exampleRow matches a row of examples/README.md: the folder, and the cell with what to do next.
var exampleRow = regexp.MustCompile(`(?m)^\| \[([a-z0-9-]+)\]\(.*\| (.*) \|$`)

// Each folder of examples/ is applied to the hub of the demo as it stands, with the commands of its row in the README.
// No folder but its own brings a ReleaseGuard.
func TestExamplesApplyToTheDemo(t *testing.T) {
	kit.Long(t)
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("the examples are applied with kubectl, which this machine does not have")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "examples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	script, applied := onDemo, 0
	for _, row := range exampleRow.FindAllStringSubmatch(string(readme), -1) {
		folder, next := row[1], row[2]
		if folder == "migration" { // a list that argosy migrate reads
			continue
		}
		applied++
		script += fmt.Sprintf("kubectl apply -k examples/%s 2>&1 | tee applied\n"+
			"if grep -i warning applied; then exit 1; fi\n", folder)
		for _, code := range regexp.MustCompile("`((?:kubectl|argosy) [^`]*)`").FindAllStringSubmatch(next, -1) {
			script += code[1] + "\n"
		}
		script += fmt.Sprintf("echo guards after %s: $(kubectl get releaseguards -o name)\n", folder)
	}
	if applied < 5 {
		t.Fatalf("examples/README.md has %d folders to apply", applied)
	}
	output := runScript(t, clone(t, root), script+"until test \"$(kubectl get clonesets shop "+
		"-o 'jsonpath={.spec.replicas} {.status.readyReplicas}')\" = '8 8'; do sleep 1; done\n")
	for line := range strings.Lines(output) {
		folder, guards, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "guards after "), ":")
		if found && strings.HasPrefix(line, "guards after ") &&
			(strings.TrimSpace(guards) != "") != (folder == "release-guard") {
			t.Errorf("after examples/%s, the hub has the guards %q", folder, guards)
		}
	}
	if strings.Count(output, "\nguards after ") != applied {
		t.Errorf("not all folders were applied:\n%s", output)
	}
}
