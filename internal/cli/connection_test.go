package cli

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// kubectlFlags are kubectl's flags of every command, except --cluster, which names members here.
var kubectlFlags = []string{"as", "as-group", "as-uid", "context", "server", "token", "user", "request-timeout",
	"certificate-authority", "client-certificate", "client-key", "insecure-skip-tls-verify", "tls-server-name"}

func TestEveryCommandHasTheFlagsOfKubectl(t *testing.T) {
	// own has the commands that have another use for a flag, as kubectl's or karmadactl's, or that talk to no hub.
	own := map[string]string{"install": "user", "kubeconfig": "server", "register": "token context",
		"create clusterrolebinding": "user", "create rolebinding": "user", "addons list": "context",
		"addons enable": "context", "addons disable": "context"}
	root := newRoot("argosy")
	for _, cmd := range everyCommand(root) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		for _, name := range kubectlFlags {
			f := cmd.Flag(name)
			if f == nil {
				t.Errorf("argosy %s has no flag --%s", path, name)
			} else if f != root.PersistentFlags().Lookup(name) && !slices.Contains(strings.Fields(own[path]), name) {
				t.Errorf("argosy %s has another flag --%s: %s", path, name, f.Usage)
			}
		}
	}
}

// Each command acts as the user of --as, whichever client it makes.
func TestEveryCommandActsAsAnotherUser(t *testing.T) {
	for _, line := range []string{
		"status", "get clusters", "get deployments -n shop", "get failovers", "get orphans", "get pods -C eu",
		"describe deployment web -n shop", "logs web -n shop -C eu", "top pods", "usage", "why deployment web -n shop",
		"why cluster eu", "search pods",
		"simulate --cluster-down eu", "simulate record", "release status r1 -n shop", "release start deployment/web -n shop",
		"rollout status deployment/web -n shop", "brake on -C eu", "cordon eu", "label cluster eu a=b", "delete cluster eu",
		"api-resources", "explain deployment", "migrate status", "addons list", "access list", "unjoin eu --dry-run",
		"token list", "secrets status", "restore status", "interpret explain deployment",
		"adopt deployment web -C eu -n shop",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			s := clitest.See(t, map[string]*membertest.Server{"eu": membertest.New(t)})
			s.ServeBindings()
			var asked atomic.Int32
			s.Refuse = func(_ http.ResponseWriter, r *http.Request) bool {
				asked.Add(1)
				if r.Header.Get("Impersonate-User") != "jane" || r.Header.Get("Impersonate-Group") != "ops" ||
					r.Header.Get("Impersonate-Uid") != "7" {
					t.Errorf("%s %s is not sent as jane: %v", r.Method, r.URL, r.Header)
				}
				return false
			}
			var out, errOut bytes.Buffer
			Main(t.Context(), append(append([]string{"argosy"}, strings.Fields(line)...), "--kubeconfig", s.File, "--as=jane",
				"--as-group=ops", "--as-uid=7"), &out, &errOut)
			if asked.Load() == 0 {
				t.Errorf("it sends no request: %s%s", &out, &errOut)
			}
		})
	}
}

func TestFlagsOfTheConnectionReplaceWhatTheKubeconfigHas(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	file := clitest.WriteFile(t, t.TempDir(), "hub", clitest.KubeconfigOf("https://hub"))
	get := "get ns --kubeconfig " + file
	for line, want := range map[string]string{
		get + " --server=https://127.0.0.1:1":              "the hub at https://127.0.0.1:1 is not responding",
		"get ns --server=https://127.0.0.1:1":              "the hub at https://127.0.0.1:1 is not responding",
		get + " --context=three":                           "context was not found for specified context: three",
		get + " --user=nobody":                             `auth info "nobody" does not exist`,
		get + " --request-timeout=soon":                    `invalid timeout value`,
		get + " --as-group=ops --server=https://127.0.0.1": "without impersonating a user",
	} {
		var out, errOut bytes.Buffer
		if code := Main(t.Context(), append([]string{"argosy"}, strings.Fields(line)...), &out, &errOut); code != 1 ||
			!strings.Contains(strings.ToLower(errOut.String()), strings.ToLower(want)) {
			t.Errorf("argosy %s exits with %d and prints %q, want %q", line, code, &errOut, want)
		}
	}
}
