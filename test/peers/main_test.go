// Package peers runs programs that others wrote, unmodified, against the hub. They are built outside the repository, in
// the folder of PEERS (default ~/.cache/argosy-peers). A story whose program is missing is skipped.
package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// fleet is a hub, and the members home and away in Push mode.
var fleet *kit.Fleet

// hubArgs shorten the times of the hub, and let clusters export Services.
var hubArgs = []string{"--cluster-failure-threshold=4s", "--cluster-success-threshold=4s",
	"--cluster-status-update-frequency=2s", "--mcs=auto"}

func TestMain(m *testing.M) {
	if programs, err := os.ReadDir(kit.PeersFolder()); err != nil || len(programs) == 0 {
		os.Exit(m.Run()) // each story is skipped, with its programs
	}
	kit.MainLong("peers", func(dir string) (_ *kit.Fleet, err error) {
		fleet, err = kit.StartWith(lab.Options{Dir: dir, HubArgs: hubArgs,
			Members: []sim.Member{{Name: "home", Nodes: 2}, {Name: "away", Nodes: 2}}})
		return fleet, err
	}, m.Run)
}

// bareMember starts a member without simulated kinds, and creates the definitions and webhook configurations of files
// there. It does not join: what serves them may not run yet.
func bareMember(t *testing.T, name string, files ...string) (*kit.Member, kit.Cluster) {
	t.Helper()
	m, c := fleet.StartMemberWith(t, sim.Member{Name: name, Nodes: 2, Bare: true})
	var definitions []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(data), "\n---") {
			u := kit.Object(t, doc)
			switch u.GetKind() {
			case "CustomResourceDefinition":
				definitions = append(definitions, u.GetName())
			case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			default:
				continue // the program runs here, and is no pod
			}
			if err := c.Create(t.Context(), u); err != nil {
				t.Fatalf("create %s %s in %s: %v", u.GetKind(), u.GetName(), name, err)
			}
		}
	}
	for _, definition := range definitions {
		kit.Eventually(t, definition+" is served", func() string {
			u := c.Find(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", definition)
			conditions, _ := kit.Field(u, "status", "conditions").([]any)
			for _, c := range conditions {
				if c := c.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
					return ""
				}
			}
			return fmt.Sprintf("its conditions are %v", conditions)
		})
	}
	return m, c
}

// join has a member join the fleet until the test ends.
func join(t *testing.T, m *kit.Member) {
	t.Helper()
	run(t, fleet.Lab.Hub.Binary, "join", m.Name, "--cluster-kubeconfig", m.Kubeconfig, "--kubeconfig",
		fleet.Lab.Hub.Kubeconfig())
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if out, err := fleet.Argosy(ctx, "unjoin", m.Name, "--yes", "--keep-workloads"); err != nil {
			t.Errorf("unjoin %s: %v\n%s", m.Name, err, out)
		}
	})
	ready(t, m.Name, "True")
}

// run runs a program that must succeed, and returns its output.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+fleet.Lab.Hub.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}
