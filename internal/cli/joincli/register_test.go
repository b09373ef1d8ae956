package joincli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/agent"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/test/kit/clitest"
)

// A real cluster needs two commands: the token on the hub, and the registration, whose output kubectl applies.
func TestPrintedManifestsRunTheAgent(t *testing.T) {
	out := &bytes.Buffer{}
	if err := printManifests(out, agent.Deployed{Cluster: "eu", Namespace: "agents", Image: "argosy:1",
		Kubeconfig: []byte("kubeconfig")}.Manifests()); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	found := map[string]map[string]any{}
	for text := range strings.SplitSeq(strings.TrimPrefix(out.String(), "---\n"), "---\n") {
		obj := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(text), &obj); err != nil {
			t.Fatal(err)
		}
		kind, _ := obj["kind"].(string)
		kinds, found[kind] = append(kinds, kind), obj
	}
	// The order is that in which they can be created.
	if want := []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Secret",
		"Deployment"}; !slices.Equal(kinds, want) {
		t.Fatalf("printed %q, want %q", kinds, want)
	}
	secret, deployment := &corev1.Secret{}, &appsv1.Deployment{}
	for kind, into := range map[string]any{"Secret": secret, "Deployment": deployment} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[kind], into); err != nil {
			t.Fatal(err)
		}
	}
	pod := deployment.Spec.Template.Spec
	args := pod.Containers[0].Args
	flag := func(name string) string {
		for _, arg := range args {
			if value, is := strings.CutPrefix(arg, name+"="); is {
				return value
			}
		}
		return ""
	}
	if args[0] != "agent" || flag("--cluster-name") != "eu" || pod.Containers[0].Image != "argosy:1" ||
		flag("--credentials-secret") != secret.Namespace+"/"+secret.Name ||
		string(secret.Data[agent.CredentialsKey]) != "kubeconfig" || pod.ServiceAccountName != agent.Account {
		t.Errorf("the agent runs as %+v with Secret %s/%s", pod, secret.Namespace, secret.Name)
	}
}

func TestRegistrationsWithoutWhatTheyNeedAreRefused(t *testing.T) {
	valid := register{}
	valid.Cluster, valid.Token, valid.Timeout, valid.Lifetime = "eu", "abcdef.0123456789abcdef", time.Second, time.Hour
	if err := valid.validate(); err != nil {
		t.Errorf("a valid registration: %v", err)
	}
	for want, change := range map[string]func(*register){
		"--cluster-name is missing": func(r *register) { r.Cluster = "" },
		"--token is missing":        func(r *register) { r.Token = "" },
		"--discovery-timeout is 0s": func(r *register) { r.Timeout = 0 },
		"--cert-lifetime is 1m0s":   func(r *register) { r.Lifetime = time.Minute },
		`cluster name "EU":`:        func(r *register) { r.Cluster = "EU" },
	} {
		r := valid
		change(&r)
		if err := r.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestARegistrationCanBeTried(t *testing.T) {
	out := &bytes.Buffer{}
	r := register{member: clitest.FakeHub(), out: out, dryRun: true, namespace: agent.DefaultNamespace}
	r.Cluster = "eu"
	// It has no endpoint of a hub, which it would need to write anything.
	if err := r.run(t.Context()); err != nil || !strings.Contains(out.String(), "cluster(eu) can be registered (dry run") {
		t.Errorf("%v, %q", err, out)
	}
}

// Scripts for karmadactl expect that the agent is deployed.
func TestTheFlagsOfKarmadactlRegisterAreUsed(t *testing.T) {
	for calledBy, want := range map[string]string{"argosy": "false", "karmadactl": "true", "kubectl karmada": "true"} {
		cmd := NewRegister(&hubcli.HubFlags{CalledBy: calledBy})
		if apply := cmd.Flag("apply"); apply.DefValue != want {
			t.Errorf("called as %s, --apply is %s by default, want %s", calledBy, apply.DefValue, want)
		}
	}
	// A lifetime below the limit shows that the seconds are used.
	cmd := NewRegister(&hubcli.HubFlags{})
	cmd.SetArgs([]string{"h:1", "--cluster-name", "eu", "--token", "x", "--cert-expiration-seconds", "60"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "1m0s and must be at least 10m") {
		t.Errorf("a lifetime of 60 seconds: %v", err)
	}
	if f := cmd.Flag("context"); f == nil || f.Name != "cluster-context" {
		t.Errorf("--context is %v, want --cluster-context", f)
	}
}
