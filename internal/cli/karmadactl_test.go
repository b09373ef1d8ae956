package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/test/kit/clitest"
)

// karmadactl has the commands of Karmada's command line, each with its flags. "name/n" has the shorthand -n. Flags that
// come with kubectl's command are listed as far as scripts use them.
var karmadactl = map[string]string{
	// Basic
	"explain": "api-version output/o recursive/R operation-scope/s cluster",
	"get": "operation-scope/s clusters/C labels/l selector/l all-namespaces/A watch/w watch-only output-watch-events " +
		"ignore-not-found output/o label-columns/L no-headers show-kind show-labels show-managed-fields sort-by template " +
		"allow-missing-template-keys",
	"create": "filename/f kustomize/k recursive/R dry-run edit field-manager output/o raw save-config selector/l validate",
	"delete": "filename/f kustomize/k recursive/R all all-namespaces/A cascade dry-run field-selector force grace-period " +
		"ignore-not-found interactive/i now output/o raw selector/l timeout wait",
	"edit": "filename/f kustomize/k recursive/R field-manager output/o output-patch save-config subresource validate",

	// Registration
	"init": "config crds karmada-data/d karmada-pki karmada-apiserver-advertise-address port/p kube-image-tag " +
		"kube-image-registry private-image-registry image-pull-secrets etcd-storage-mode etcd-replicas external-etcd-servers " +
		"external-etcd-ca-cert-path external-etcd-client-cert-path external-etcd-client-key-path external-etcd-key-prefix " +
		"cert-external-ip cert-external-dns cert-validity-period ca-cert-file ca-key-file wait-component-ready-timeout " +
		"karmada-scheduler-image karmada-scheduler-replicas karmada-scheduler-priority-class karmada-scheduler-extra-args " +
		"host-cluster-domain context",
	"deinit":      "context dry-run force/f purge-namespace",
	"addons":      "",
	"addons list": "cluster/C karmada-kubeconfig context",
	"addons enable": "cluster/C member-kubeconfig member-context karmada-kubeconfig context private-image-registry " +
		"pod-timeout apiservice-timeout host-cluster-domain karmada-descheduler-image karmada-descheduler-replicas " +
		"descheduler-priority-class karmada-metrics-adapter-image karmada-metrics-adapter-replicas " +
		"metrics-adapter-priority-class karmada-scheduler-estimator-image karmada-estimator-replicas " +
		"estimator-priority-class karmada-search-image karmada-search-replicas search-priority-class",
	"addons disable": "cluster/C force/f karmada-kubeconfig context",
	"join": "cluster-kubeconfig cluster-context cluster-namespace cluster-provider cluster-region cluster-zones karmada-as " +
		"karmada-as-group karmada-as-uid dry-run",
	"unjoin":       "cluster-kubeconfig cluster-context cluster-namespace force wait dry-run",
	"token":        "",
	"token create": "ttl usages groups description print-register-command",
	"token list":   "",
	"token delete": "",
	"register": "token discovery-token-ca-cert-hash discovery-token-unsafe-skip-ca-verification discovery-timeout " +
		"cluster-name cluster-namespace cluster-provider cluster-region cluster-zones karmada-agent-image " +
		"karmada-agent-replicas enable-cert-rotation cert-expiration-seconds proxy-server-address dry-run context",
	"unregister": "cluster-kubeconfig cluster-context cluster-namespace karmada-config karmada-context agent-name wait dry-run",

	// Cluster management
	"cordon":   "dry-run",
	"uncordon": "dry-run",
	"taint":    "overwrite dry-run", // taint clusters NAME

	// Debugging
	"attach": "operation-scope/s cluster container/c stdin/i tty/t quiet/q pod-running-timeout",
	"exec":   "operation-scope/s cluster container/c filename/f stdin/i tty/t quiet/q pod-running-timeout",
	"logs": "cluster/C all-containers all-pods container/c follow/f ignore-errors insecure-skip-tls-verify-backend " +
		"limit-bytes max-log-requests pod-running-timeout prefix previous/p selector/l since since-time tail timestamps",
	"describe": "operation-scope/s cluster/C all-namespaces/A chunk-size filename/f kustomize/k recursive/R selector/l " +
		"show-events",
	"interpret": "filename/f operation check edit show-doc desired-file observed-file status-file desired-replica " +
		"recursive/R output/o template allow-missing-template-keys show-managed-fields",

	// Advanced
	"apply": "all-clusters cluster/C all cascade dry-run field-manager filename/f force force-conflicts grace-period " +
		"kustomize/k openapi-patch output/o overwrite prune prune-allowlist recursive/R selector/l server-side subresource " +
		"timeout validate wait",
	"promote": "cluster/C cluster-kubeconfig cluster-context auto-create-policy policy-name dependencies/d output/o dry-run",
	"top":     "",
	"top pod": "clusters/C selector/l sort-by containers sum no-headers all-namespaces/A field-selector " +
		"use-protocol-buffers",
	"top node": "clusters selector/l sort-by no-headers show-capacity use-protocol-buffers",
	"patch":    "patch/p patch-file type dry-run field-manager filename/f kustomize/k local output/o recursive/R subresource",

	// Settings and others
	"label": "all all-namespaces/A dry-run field-manager field-selector filename/f kustomize/k list local output/o " +
		"overwrite recursive/R resource-version selector/l",
	"annotate": "all all-namespaces/A dry-run field-manager field-selector filename/f kustomize/k list local output/o " +
		"overwrite recursive/R resource-version selector/l",
	"completion":    "",
	"api-resources": "operation-scope/s cluster api-group cached categories namespaced no-headers output/o sort-by verbs",
	"api-versions":  "operation-scope/s cluster",
	"options":       "",
	"version":       "",
}

// karmadactlGlobal are the flags of each of these commands.
const karmadactlGlobal = "kubeconfig karmada-context namespace/n v/v vmodule logtostderr alsologtostderr stderrthreshold " +
	"log-dir log-file log-file-max-size log-backtrace-at skip-headers skip-log-headers add-dir-header one-output"

// leftOut are the flags that are not there, each with the reason. "COMMAND *" means all flags of a command, which
// accepts any flag, does nothing, and explains what to do.
var leftOut = map[string]string{
	"init *":                                "a hub is one binary: argosy up, argosy install and the Helm chart start it",
	"deinit *":                              "a hub is one binary: argosy uninstall and helm uninstall remove it",
	"interpret template":                    "results are text, JSON or YAML: another program can format the JSON",
	"interpret allow-missing-template-keys": "there are no templates",
	"interpret show-managed-fields":         "results have no managed fields",
}

// hasFlag reports whether a command has a flag, as karmadactl spells it: NAME or NAME/SHORTHAND.
func hasFlag(cmd *cobra.Command, spelling string) bool {
	name, shorthand, _ := strings.Cut(spelling, "/")
	f := cmd.Flag(name)
	return f != nil && (shorthand == "" || f.Shorthand == shorthand)
}

func TestCommandsAndFlagsOfKarmadactlExist(t *testing.T) {
	for _, binary := range []string{"argosy", "karmadactl", "kubectl-karmada"} {
		root := newRoot(binary)
		used := map[string]bool{}
		for line, flags := range karmadactl {
			cmd, rest, err := root.Find(strings.Fields(line))
			if err != nil || len(rest) > 0 {
				t.Errorf("%s has no command %q: %v, %q", binary, line, err, rest)
				continue
			}
			for flag := range strings.FieldsSeq(karmadactlGlobal) {
				if !hasFlag(cmd, flag) {
					t.Errorf("%s %s has no --%s", binary, line, flag)
				}
			}
			every := line + " *"
			if leftOut[every] != "" && !cmd.FParseErrWhitelist.UnknownFlags {
				t.Errorf("%s %s does not accept every flag", binary, line)
			}
			for flag := range strings.FieldsSeq(flags) {
				name, _, _ := strings.Cut(flag, "/")
				one := line + " " + name
				absent := leftOut[every] != "" || leftOut[one] != ""
				if has := hasFlag(cmd, flag); has == absent && root.PersistentFlags().Lookup(name) == nil {
					t.Errorf("%s %s: it has --%s: %v; it is left out: %v", binary, line, flag, has, absent)
				}
				used[every], used[one] = true, true
			}
		}
		for key := range leftOut {
			if !used[key] {
				t.Errorf("%q is left out and not in the table", key)
			}
		}
	}
	if wrong := newRoot("argosy"); hasFlag(wrong, "namespace/x") || hasFlag(wrong, "namespaces") ||
		!hasFlag(wrong, "namespace/n") {
		t.Error("flags are not compared")
	}
}

// Scripts for karmadactl run, and learn what has no effect.
func TestIgnoredFlagsOfKarmadactlAreWarnedOf(t *testing.T) {
	for line, want := range map[string]string{
		"unregister eu --agent-name x":                               "--agent-name is ignored: the agent has one name",
		"addons enable karmada-search --karmada-search-image x":      "--karmada-search-image is ignored: the addons of Karmada",
		"addons list --karmada-kubeconfig x":                         "--karmada-kubeconfig is ignored: the addons of Karmada",
		"addons disable karmada-search -C eu --karmada-kubeconfig x": "--karmada-kubeconfig is ignored",
		"register h:1 --karmada-agent-image x --context c": "--karmada-agent-image is ignored: the agent is that of " +
			"Argosy; --agent-image",
		"register h:1 --enable-cert-rotation": "--enable-cert-rotation is ignored: the agent always renews",
	} {
		var out, errOut bytes.Buffer
		args := append([]string{"karmadactl", "--kubeconfig", t.TempDir() + "/none"}, strings.Fields(line)...)
		if code := Main(t.Context(), args, &out, &errOut); code != 1 || !strings.Contains(errOut.String(), want) {
			t.Errorf("karmadactl %s exits with %d and prints %q, want %q", line, code, errOut.String(), want)
		}
	}
}

// The user of the kubeconfig acts on the hub as another one, if the hub permits it.
func TestJoinActsAsAnotherUser(t *testing.T) {
	var asked http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/apis/cluster.karmada.io") {
			asked = r.Header.Clone()
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	kubeconfig := clitest.WriteFile(t, t.TempDir(), "kubeconfig", clitest.KubeconfigOf(server.URL))
	for line, want := range map[string]string{
		"":                   "[] [] []",
		"--karmada-as alice": "[alice] [] []",
		"--karmada-as alice --karmada-as-group ops --karmada-as-group dev --karmada-as-uid 7": "[alice] [ops dev] [7]",
	} {
		asked = nil
		args := append([]string{"karmadactl", "join", "eu", "--cluster-kubeconfig", kubeconfig, "--kubeconfig", kubeconfig},
			strings.Fields(line)...)
		if code := Main(t.Context(), args, io.Discard, io.Discard); code != 1 {
			t.Fatalf("%s: it exits with %d", line, code)
		}
		if got := fmt.Sprint(asked["Impersonate-User"], asked["Impersonate-Group"], asked["Impersonate-Uid"]); got != want {
			t.Errorf("%s: the hub is asked as %s, want %s", line, got, want)
		}
	}
}

func TestLogFlagsShowRequests(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := Main(t.Context(), []string{"karmadactl", "options"}, &out, &errOut); code != 0 || errOut.Len() > 0 {
		t.Fatalf("it exits with %d: %s", code, &errOut)
	}
	for _, want := range []string{"--karmada-context", "-n, --namespace", "-v, --v", "--vmodule", "--log-file-max-size"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("options does not list %s:\n%s", want, &out)
		}
	}
	for line, want := range map[string]string{"interpret test": "verbose", "up": "log-level", "get": "v"} {
		cmd, _, err := newRoot("argosy").Find(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if f := cmd.Flags().ShorthandLookup("v"); f == nil || f.Name != want {
			t.Errorf("-v of %s is %v, want --%s", line, f, want)
		}
	}

	t.Cleanup(func() {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		klog.InitFlags(fs)
		for name, value := range map[string]string{"v": "0", "log_file": "", "logtostderr": "true"} {
			if err := fs.Set(name, value); err != nil {
				t.Error(err)
			}
		}
	})
	dir := t.TempDir()
	kubeconfig := clitest.WriteFile(t, dir, "kubeconfig", clitest.KubeconfigOf("https://127.0.0.1:1"))
	for _, verbosity := range []string{"0", "6"} {
		log := filepath.Join(dir, "log"+verbosity)
		Main(t.Context(), []string{"karmadactl", "get", "pods", "--kubeconfig", kubeconfig, "--logtostderr=false",
			"--log-file", log, "-v", verbosity}, &out, &errOut)
		klog.Flush()
		text, err := os.ReadFile(log)
		if err != nil && verbosity == "6" {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), "https://127.0.0.1:1/apis/"); got != (verbosity == "6") {
			t.Errorf("-v %s logs requests: %v\n%s", verbosity, got, text)
		}
	}
}
