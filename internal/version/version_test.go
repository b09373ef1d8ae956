package version

import (
	"encoding/json"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	apiversion "k8s.io/apimachinery/pkg/version"
)

func TestMakefileSetsTheVersion(t *testing.T) {
	if exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Run() != nil {
		t.Skip("these are sources without their history: nothing says which commit they are")
	}
	flags := output(t, "make", "--no-print-directory", "-s", "-C", "../..", "ldflags")
	var said struct {
		Argosy     Build
		Kubernetes apiversion.Info
	}
	if err := json.Unmarshal([]byte(output(t, "go", "run", "-ldflags", flags, "./testdata/print")), &said); err != nil {
		t.Fatal(err)
	}
	commit := output(t, "git", "rev-parse", "HEAD")
	if b := said.Argosy; b.Commit != commit || b.Version == "" || b.Version == unknown || b.TreeState != "clean" &&
		b.TreeState != "dirty" {
		t.Errorf("the binary says %+v, want commit %s", b, commit)
	}
	if !strings.HasPrefix(said.Argosy.Date, "20") || !strings.HasSuffix(said.Argosy.Date, "Z") {
		t.Errorf("the date is %q, want that of the commit in RFC 3339 and UTC", said.Argosy.Date)
	}
	if k := said.Kubernetes; !strings.HasPrefix(k.GitVersion, "v1.") || k.GitCommit != commit ||
		k.BuildDate != said.Argosy.Date || k.GitTreeState != said.Argosy.TreeState {
		t.Errorf("Kubernetes' libraries are told %#v", k)
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var wrong strings.Builder
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, wrong.String())
	}
	return strings.TrimSpace(string(out))
}

func TestVersionWithoutMakefileIsFromTheToolchain(t *testing.T) {
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"},
			{Key: "vcs.time", Value: "2026-01-31T23:00:00Z"}, {Key: "vcs.modified", Value: modified}}
	}
	for story, tc := range map[string]struct {
		told Build
		info debug.BuildInfo
		want string
	}{
		"a working copy": {info: debug.BuildInfo{Settings: vcs("false")},
			want: "0123456789ab (commit of 2026-01-31)"},
		"a changed working copy": {info: debug.BuildInfo{Settings: vcs("true")},
			want: "0123456789ab-dirty (commit of 2026-01-31)"},
		"a working copy that has a tag": {info: debug.BuildInfo{Main: debug.Module{Version: "v1.2.0"},
			Settings: vcs("false")}, want: "v1.2.0 (commit 0123456789ab of 2026-01-31)"},
		"a module, of which no commit is": {info: debug.BuildInfo{Main: debug.Module{Version: "v1.2.0"}}, want: "v1.2.0"},
		"a module that was replaced":      {info: debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, want: ""},
		"what the linker was told counts": {told: Build{Version: "v1.3.0", Commit: "fedcba9876543210",
			Date: "2026-02-01T00:00:00Z"}, info: debug.BuildInfo{Settings: vcs("true")},
			want: "v1.3.0 (commit fedcba987654 of 2026-02-01)"},
		"the linker was told a commit alone": {told: Build{Version: "fedcba987654-dirty", Commit: "fedcba9876543210"},
			want: "fedcba987654-dirty (commit)"},
	} {
		t.Run(story, func(t *testing.T) {
			tc.told.complete(&tc.info)
			if got := tc.told.String(); got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}
