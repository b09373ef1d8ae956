package lint_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/interpretcli/lint"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
)

// guides are articles about multi-cluster workloads, whose scripts people copy. They lie beside the repository.
const guides = "../../../../../shared/guides"

// blocks returns the fenced blocks of a text that hold operations of a customization. Lines before each are blank, so
// that the line of a finding is the one in the text.
func blocks(text string) []string {
	var found []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "```") {
			continue
		}
		end := i + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "```") {
			end++
		}
		block := strings.Join(lines[i+1:end], "\n")
		if strings.Contains(block, "luaScript") || strings.Contains(block, "kind: ResourceInterpreterCustomization") {
			found = append(found, strings.Repeat("\n", i+1)+block+"\n")
		}
		i = end
	}
	return found
}

// The faults of the scripts in the guides, by the line of each guide, as careful readers found them.
func TestMistakesOfPublicGuidesAreFound(t *testing.T) {
	if _, err := os.Stat(guides); err != nil {
		t.Skipf("the guides are not beside this repository: %v", err)
	}
	set, err := schemas.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	type fault struct {
		line     int
		rule     lint.Rule
		wantText string
	}
	for _, c := range []struct {
		guide  string
		blocks int
		// fragments of blocks that name no kind are about this one, or about a Workflow where they speak of suspend or of
		// phases.
		faults []fault
	}{
		{"000", 4, []fault{
			{194, lint.Spelling, "the operation is called replicaResource"},
			{197, lint.Result, "obj.spec.replicas or 1"},
			{202, lint.Spelling, "the operation is called replicaRevision"},
			{210, lint.Result, "a status without its object"},
			{210, lint.Dropped, "observedGeneration, updateRevision, updatedAvailableReplicas"},
			{217, lint.NilCheck, "the items are nil"},
			{238, lint.UnknownField, "CloneSet has no field spec.suspend"},
			{242, lint.MemberOwned, "the status is a subresource"},
			{248, lint.Generation, "status.observedGeneration"},
			{248, lint.FalseHealth, "scaled to 0 replicas is unhealthy"},
			{248, lint.FalseHealth, "just created"},
			{287, lint.NoRequirement, "does not return the requirements of a replica"},
			{298, lint.Dropped, "availableReplicas, collisionCount"},
			{328, lint.FalseHealth, "none of its 3 replicas is healthy"},
			{328, lint.Generation, "status.observedGeneration"},
			{354, lint.Dropped, "latestRevision, observedGeneration, updatedReadyPods"},
			{372, lint.Dropped, "latestRevision, observedGeneration, updatedReadyPods"},
			{382, lint.Result, "without its spec"},
			{401, lint.FalseHealth, "a canary that its partition pauses is unhealthy"},
			{401, lint.Generation, "status.observedGeneration"},
			{428, lint.Namespace, "SidecarSet is cluster-scoped"},
			{430, lint.Syntax, "'end' expected near <eof>"},
			{456, lint.Result, "a status without its object"},
			{459, lint.NilCheck, "the items are nil"},
			{471, lint.Generation, "status.observedGeneration"},
		}},
		{"001", 2, []fault{
			{62, lint.Spelling, "the operation is called replicaResource"},
			{64, lint.Spelling, "the operation is called replicaRevision"},
			{70, lint.MemberOwned, ".spec.updateStrategy keeps the value of the member"},
			{71, lint.MemberOwned, ".spec.scaleStrategy keeps the value of the member"},
			{116, lint.MemberOwned, ".spec.updateStrategy keeps the value of the member"},
		}},
		{"002", 1, []fault{
			{925, lint.FunctionName, "ReplicasCount; Karmada calls GetReplicas"},
			{963, lint.Generation, "status.observedGeneration"},
			{963, lint.FalseHealth, "nil equals nil"},
			{963, lint.FalseHealth, "none of its 3 replicas is healthy"},
			{978, lint.MemberOwned, "once it is set in the member, neither scaling on the hub nor the division of replicas has any effect there"},
		}},
		{"003", 4, []fault{
			{230, lint.Folded, "code after a comment becomes part of it"},
			{233, lint.Global, "replica is global"},
			{234, lint.Global, "requirement is global"},
			{251, lint.Global, "replicas is global"},
			{275, lint.Syntax, "'end' expected near <eof>"},
			{288, lint.MemberOwned, "the hub can neither suspend nor resume it"},
			{307, lint.UnknownField, "Workflow has no field status.failed"},
			{302, lint.FalseHealth, "just created"},
		}},
	} {
		t.Run(c.guide, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(guides, c.guide+"_*.txt"))
			if err != nil || len(files) != 1 {
				t.Fatalf("find guide %s: %v, %v", c.guide, files, err)
			}
			text, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			all := blocks(string(text))
			if len(all) != c.blocks {
				t.Errorf("%d blocks with scripts, want %d", len(all), c.blocks)
			}
			var findings []lint.Finding
			for _, block := range all {
				o := lint.Options{Schemas: set, Target: configv1alpha1.CustomizationTarget{APIVersion: "apps.kruise.io/v1alpha1",
					Kind: "CloneSet"}}
				if strings.Contains(block, "spec.suspend") || strings.Contains(block, "status.phase") {
					o.Target = configv1alpha1.CustomizationTarget{APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow"}
				}
				found, n := lint.File(context.Background(), c.guide, []byte(block), o)
				if n != 1 {
					t.Errorf("%d customizations in a block", n)
				}
				findings = append(findings, found...)
			}
			for _, want := range c.faults {
				if !slices.ContainsFunc(findings, func(f lint.Finding) bool {
					return f.Line == want.line && f.Rule == want.rule && strings.Contains(f.Message, want.wantText)
				}) {
					t.Errorf("line %d: no %s finding with %q", want.line, want.rule, want.wantText)
				}
			}
			for _, f := range findings {
				// What is not a fault of the script must not be called an error: only these cannot run.
				if expected := f.Rule == lint.Syntax; (f.Severity == lint.Error) != expected {
					t.Errorf("line %d is %s: %s", f.Line, f.Severity, f.Message)
				}
				if f.Fix == "" {
					t.Errorf("line %d: %q says not what to do", f.Line, f.Message)
				}
			}
			if t.Failed() {
				for _, f := range findings {
					t.Logf("%s:%d: %s %s: %s", f.File, f.Line, f.Severity, f.Rule, f.Message)
				}
			}
		})
	}
}
