package cli

import (
	"bytes"
	"context"
	"os"
	"regexp"
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

func TestTheTableOfSchedulerFlagsIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/scheduler.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range foreign {
		for _, name := range f.names {
			if !regexp.MustCompile("`--" + name + "`").Match(text) {
				t.Errorf("docs/scheduler.md does not say that --%s is ignored", name)
			}
		}
	}
}
