package joincli

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// taintsOf returns a cluster's taints as kubectl prints them.
func taintsOf(t *testing.T, s *clitest.Seeing, name string) string {
	t.Helper()
	hub, err := (&hubcli.HubFlags{Kubeconfig: s.File}).Client()
	if err != nil {
		t.Fatal(err)
	}
	c := &clusterv1alpha1.Cluster{}
	if err := hub.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, taint := range c.Spec.Taints {
		out = append(out, taint.ToString())
	}
	return strings.Join(out, " ")
}

func TestTaintCommands(t *testing.T) {
	s := clitest.See(t, map[string]*membertest.Server{"eu": nil, "us": nil})
	for _, step := range []struct {
		line   string
		says   string // on standard output
		fails  string
		eu, us string
	}{
		{"taint clusters eu dedicated=gpu:NoSchedule", "cluster/eu tainted\n", "", "dedicated=gpu:NoSchedule", ""},
		{"taint clusters eu dedicated=ai:NoSchedule", "",
			`cluster "eu": it already has the taint dedicated=gpu:NoSchedule, and --overwrite is not set`,
			"dedicated=gpu:NoSchedule", ""},
		{"taint clusters eu dedicated=ai:NoSchedule --overwrite", "cluster/eu tainted\n", "", "dedicated=ai:NoSchedule", ""},
		{"taint cluster eu us drain:NoExecute dedicated-", "cluster/eu modified\n",
			`cluster "us": taint "dedicated" not found`, "drain:NoExecute", ""},
		{"taint clusters eu drain:NoExecute-", "cluster/eu untainted\n", "", "", ""},
		{"taint clusters asia drain:NoExecute", "", `there is no cluster "asia"`, "", ""},
		{"taint nodes eu drain:NoExecute", "", "only clusters can be tainted", "", ""},
		{"taint clusters drain:NoExecute", "", "name at least one cluster", "", ""},
		{"taint clusters eu", "", "at least one taint is required", "", ""},
		{"cordon eu us", "eu cluster cordoned\nus cluster cordoned\n", "", "cluster.karmada.io/unschedulable:NoSchedule",
			"cluster.karmada.io/unschedulable:NoSchedule"},
		{"cordon eu", "eu cluster already cordoned\n", "", "cluster.karmada.io/unschedulable:NoSchedule",
			"cluster.karmada.io/unschedulable:NoSchedule"},
		{"uncordon eu", "eu cluster uncordoned\n", "", "", "cluster.karmada.io/unschedulable:NoSchedule"},
		{"uncordon eu", "eu cluster already uncordoned\n", "", "", "cluster.karmada.io/unschedulable:NoSchedule"},
	} {
		args := strings.Fields(step.line)
		verb := map[string]func(*hubcli.HubFlags) *cobra.Command{"taint": NewTaint, "cordon": NewCordon,
			"uncordon": NewUncordon}[args[0]]
		out, _, err := s.Run(func(hub *hubcli.HubFlags, _ genericiooptions.IOStreams) *cobra.Command { return verb(hub) }, "",
			args[1:]...)
		if out != step.says || (err == nil) != (step.fails == "") || err != nil &&
			!strings.Contains(err.Error(), step.fails) {
			t.Errorf("%s: %q, %v; want %q, %q", step.line, out, err, step.says, step.fails)
		}
		if eu, us := taintsOf(t, s, "eu"), taintsOf(t, s, "us"); eu != step.eu || us != step.us {
			t.Fatalf("after %s: eu has %q and us %q, want %q and %q", step.line, eu, us, step.eu, step.us)
		}
	}
}

func TestDryRunOfATaintAsksTheHub(t *testing.T) {
	s := clitest.See(t, map[string]*membertest.Server{"eu": nil})
	var dry atomic.Bool
	s.Api.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			dry.Store(r.URL.Query().Get("dryRun") == "All")
		}
		return false
	})
	out, _, err := s.Run(func(hub *hubcli.HubFlags,
		_ genericiooptions.IOStreams) *cobra.Command {
		return NewCordon(hub)
	}, "",
		"eu", "--dry-run")
	if err != nil || out != "eu cluster cordoned (dry run)\n" || !dry.Load() {
		t.Errorf("%q, %v, asked with dryRun: %t", out, err, dry.Load())
	}
}
