package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFlagsOfKarmadasSchedulerAreTaken(t *testing.T) {
	var out, errOut bytes.Buffer
	args := []string{"argosy", "config", "--data-dir", t.TempDir(), "--bind-address=0.0.0.0", "--secure-port=10351",
		"--leader-elect", "--leader-elect-resource-namespace=karmada-system",
		"--enable-scheduler-estimator=true", "--scheduler-estimator-timeout=5s", "--scheduler-name=ours",
		"--plugins=*,-TaintToleration", "--kubeconfig=/etc/karmada/karmada.kubeconfig",
		"--feature-gates=PriorityBasedScheduling=true", "--v=4"}
	if code := Main(context.Background(), args, &out, &errOut); code != 0 {
		t.Fatalf("ended with %d: %s", code, errOut.String())
	}
	for _, want := range []string{"name: ours", "- -TaintToleration", "timeout: 5s", "level: 4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the configuration lacks %q:\n%s", want, out.String())
		}
	}
	for _, want := range []string{"--secure-port is ignored: metrics and health", "--leader-elect is ignored",
		"--leader-elect-resource-namespace is ignored", "--feature-gates is ignored", "--kubeconfig is ignored"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("it does not warn %q:\n%s", want, errOut.String())
		}
	}
	if code := Main(context.Background(), []string{"argosy", "config", "--plugins=*,-Nodes"}, &out, &errOut); code != 1 ||
		!strings.Contains(errOut.String(), `there is no scheduler plugin "Nodes": name one of APIEnablement`) {
		t.Errorf("a plugin that is not known: %d, %s", code, errOut.String())
	}
}

// The arguments are those of the Deployment that karmadactl register writes, and of guide 002.
func TestTheFlagsOfKarmadasAgentAreTaken(t *testing.T) {
	var out, errOut bytes.Buffer
	args := []string{"argosy", "agent", "--karmada-kubeconfig=/etc/kubeconfig/karmada-kubeconfig",
		"--karmada-context=karmada", "--cluster-name=eu", "--cluster-api-endpoint=https://eu:6443",
		"--cluster-provider=AWS", "--cluster-region=us-west-2", "--cluster-zones=",
		"--controllers=*", "--proxy-server-address=", "--leader-elect=true",
		"--leader-elect-resource-namespace=karmada-system", "--cluster-namespace=karmada-cluster",
		"--cluster-status-update-frequency=10s", "--metrics-bind-address=:8080", "--health-probe-bind-address=0.0.0.0:10357",
		"--v=2", "--cluster-kubeconfig", filepath.Join(t.TempDir(), "none")}
	if code := Main(context.Background(), args, &out, &errOut); code == 0 ||
		strings.Contains(errOut.String(), "unknown flag") {
		t.Fatalf("ended with %d: %s", code, errOut.String())
	}
	for _, want := range []string{"--karmada-kubeconfig is ignored: the credentials for the hub are in the Secret",
		"--cluster-region is ignored: set it with argosy register", "--leader-elect is ignored", "--controllers is ignored"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("it does not warn %q:\n%s", want, errOut.String())
		}
	}
}

// A flag of the connection to a hub has an effect or is refused.
func TestFlagsOfTheConnectionAreNeverIgnored(t *testing.T) {
	for _, verb := range withoutHub {
		var out bytes.Buffer
		cmd, _, err := newRoot("argosy").Find([]string{verb})
		if err != nil || cmd.Name() != verb {
			t.Errorf("there is no command %s", verb)
			continue
		}
		if cmd.HasSubCommands() || cmd.Args != nil && cmd.Args(cmd, nil) != nil {
			continue
		}
		if code := Main(t.Context(), []string{"argosy", verb, "--as", "root"}, &out, &out); code == 0 ||
			!strings.Contains(out.String(), "sends no requests to a hub: leave out --as") {
			t.Errorf("%s --as ends with %d and says:\n%s", verb, code, &out)
		}
	}
	root := newRoot("argosy")
	list, _, err := root.Find([]string{"addons", "list"})
	if err != nil {
		t.Fatal(err)
	}
	if err := list.ParseFlags([]string{"--context", "x"}); err != nil || !root.PersistentFlags().Changed("context") {
		t.Errorf("addons --context does not choose the hub: %v", err)
	}
}
