package operatecli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// memberWith returns a member with these namespaces.
func memberWith(t *testing.T, namespaces ...string) *membertest.Server {
	m := membertest.New(t)
	for _, name := range namespaces {
		m.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"keep": "this"}}})
	}
	return m
}

func handsOffOf(m *membertest.Server, namespace string) string {
	return m.Object(membertest.Namespace, "", namespace).GetAnnotations()["argosy.io/hands-off"]
}

func runBrake(s *clitest.Seeing, args ...string) (out string, err error) {
	out, _, err = s.Run(func(hub *hubcli.HubFlags, _ genericiooptions.IOStreams) *cobra.Command {
		cmd := NewBrake(hub)
		cmd.PersistentFlags().StringVarP(&hub.Namespace, "namespace", "n", "", "")
		return cmd
	}, "", args...)
	return out, err
}

func TestBrakeCommands(t *testing.T) {
	eu, us := memberWith(t, "kube-system", "shop"), memberWith(t, "kube-system")
	s := clitest.See(t, map[string]*membertest.Server{"eu": eu, "us": us, "down": nil})
	for _, step := range []struct {
		line, says, fails string
		eu, shop, us      string // the annotation afterwards
	}{
		{"on --cluster eu", "cluster/eu brake on\n", "", "true", "", ""},
		{"on --cluster eu,us", "cluster/eu brake already on\ncluster/us brake on\n", "", "true", "", "true"},
		{"off -C us,eu", "cluster/us brake off\ncluster/eu brake off\n", "", "", "", ""},
		{"on -C eu,us -n shop", "cluster/eu brake on for namespace shop\n", `no namespace "shop" in cluster "us"`, "",
			"true", ""},
		{"on", "cluster/eu brake on\ncluster/us brake on\n", `annotate namespace kube-system in cluster "down"`, "true",
			"true", "true"},
		{"off", "cluster/eu brake off\ncluster/us brake off\n", `cluster "down"`, "", "true", ""},
		{"off -C eu", "cluster/eu brake already off\n", "", "", "true", ""},
		{"on -C asia", "", `there is no cluster "asia"`, "", "true", ""},
	} {
		out, err := runBrake(s, strings.Fields(step.line)...)
		if out != step.says || (err == nil) != (step.fails == "") || err != nil &&
			!strings.Contains(err.Error(), step.fails) {
			t.Errorf("%s: %q, %v; want %q, %q", step.line, out, err, step.says, step.fails)
		}
		got := []string{handsOffOf(eu, "kube-system"), handsOffOf(eu, "shop"), handsOffOf(us, "kube-system")}
		if want := []string{step.eu, step.shop, step.us}; !slices.Equal(got, want) {
			t.Fatalf("after %s: the annotations are %q, want %q", step.line, got, want)
		}
	}
	ns := eu.Object(membertest.Namespace, "", "shop")
	if ns.GetAnnotations()["keep"] != "this" {
		t.Error("other annotations of the namespace are gone")
	}
	// The hub removes fields of its own manager that a template does not have.
	for _, entry := range ns.GetManagedFields() {
		if entry.Manager == "argosy" {
			t.Errorf("the annotation belongs to the field manager of the hub: %+v", entry)
		}
	}
}

func TestBrakeWithoutTheRightIsRefused(t *testing.T) {
	eu := memberWith(t, "kube-system")
	eu.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		status := apierrors.NewForbidden(corev1.Resource("namespaces"), "kube-system",
			errors.New(`User "alice" cannot patch resource "namespaces"`)).Status()
		status.APIVersion, status.Kind = "v1", "Status"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
		return true
	})
	s := clitest.See(t, map[string]*membertest.Server{"eu": eu})
	for _, verb := range []string{"on", "off"} {
		if verb == "off" {
			ns := eu.Object(membertest.Namespace, "", "kube-system")
			ns.SetAnnotations(map[string]string{"argosy.io/hands-off": "true"})
			eu.Put(ns)
		}
		before := handsOffOf(eu, "kube-system")
		out, err := runBrake(s, verb, "--cluster", "eu")
		if out != "" || err == nil || !strings.Contains(err.Error(), `in cluster "eu"`) ||
			!strings.Contains(err.Error(), "cannot patch") || handsOffOf(eu, "kube-system") != before {
			t.Errorf("%s: %q, %v; the annotation is %q", verb, out, err, handsOffOf(eu, "kube-system"))
		}
	}
}

func TestBrakeWorksWithoutTheHub(t *testing.T) {
	eu := memberWith(t, "kube-system")
	// A client sends no token without TLS.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+membertest.Token)
		eu.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	kubeconfig := func(name, url string) (file string) {
		file = filepath.Join(t.TempDir(), name)
		config := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, url)
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	s := &clitest.Seeing{T: t, File: kubeconfig("hub", "http://127.0.0.1:1")} // no server listens there
	_, err := runBrake(s, "on", "--cluster", "eu")
	if err == nil || !strings.Contains(err.Error(), "--cluster-kubeconfig") ||
		!strings.Contains(err.Error(), "kubectl annotate namespace kube-system argosy.io/hands-off=true --overwrite") {
		t.Errorf("without the hub, the error is %v: it does not say what to do", err)
	}
	file := kubeconfig("eu", server.URL)
	for _, verb := range []string{"on", "off"} {
		out, err := runBrake(s, verb, "--cluster", "eu", "--cluster-kubeconfig", file)
		if err != nil || out != "cluster/eu brake "+verb+"\n" || (handsOffOf(eu, "kube-system") == "true") != (verb == "on") {
			t.Errorf("%s: %q, %v; the annotation is %q", verb, out, err, handsOffOf(eu, "kube-system"))
		}
	}
	if _, err := runBrake(s, "on", "--cluster", "eu,us", "--cluster-kubeconfig", file); err == nil {
		t.Error("one kubeconfig is used for two clusters")
	}
}
