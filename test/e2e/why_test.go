package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/test/kit"
)

// explain is what `argosy why` prints, and what it complains about.
func explain(t *testing.T, args ...string) (out, complaint string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), fleet.Lab.Hub.Binary,
		append([]string{"--kubeconfig=" + fleet.Lab.Hub.Kubeconfig(), "why"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", strings.TrimSpace(fmt.Sprintf("%v: %s", err, stderr.String()))
	}
	return stdout.String(), ""
}

// Somebody looks for a Deployment that does not arrive, and follows what `argosy why` says until all is well.
func TestWhyLeadsFromOneTroubleToTheNextUntilAllIsWell(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	wantText := func(what string, want ...string) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			out, complaint := explain(t, "deploy", "web", "-n", ns)
			for _, w := range want {
				if !strings.Contains(out, w) {
					return fmt.Sprintf("it does not say %q:\n%s%s", w, out, complaint)
				}
			}
			return ""
		})
	}

	if _, complaint := explain(t, "deploy", "web", "-n", ns); !strings.Contains(complaint,
		fmt.Sprintf(`the hub has no deployments.apps "web" in namespace %q`, ns)) {
		t.Errorf("of what is not there it says %q", complaint)
	}
	fleet.Hub.Apply(t, deployment(ns, "web", 3, "example.com/web:1"))
	wantText("that nobody wants it", "✗ no policy selects it", "create a PropagationPolicy in namespace "+ns)

	fleet.Hub.Apply(t, propagation(ns, "p",
		`{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], placement: {clusterAffinity: {labelSelector: {matchLabels: {nobody: has}}}}}`))
	wantText("that it fits nowhere", "clusters are available", "its labels do not match nobody=has",
		"no cluster has label nobody: label one with nobody=has, or correct the labelSelector")

	// In m1 there is one of that name, and in m2 an override fails.
	kit.Eventually(t, "the namespace is in m1", func() string {
		if fleet.Members["m1"].Find(t, "v1", "Namespace", "", ns) == nil {
			return "it is not"
		}
		return ""
	})
	fleet.Members["m1"].Apply(t, deployment(ns, "web", 1, "example.com/theirs:1"))
	fleet.Hub.Apply(t, override(ns, "o", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overrideRules: [
		{targetCluster: {clusterNames: [m2]}, overriders: {plaintext: [{path: /spec/nothing/here, operator: replace, value: 1}]}},
		{targetCluster: {clusterNames: [m3]}, overriders: {imageOverrider: [{component: Tag, operator: replace, value: "3"}]}}]}`))
	changeSpec(t, "PropagationPolicy", ns, "p", map[string]any{
		"clusterAffinity":   map[string]any{"clusterNames": []any{"m1", "m2", "m3"}},
		"replicaScheduling": map[string]any{"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
	}, "placement")
	wantText("what each cluster makes of it", "✗ m1: the hub leaves the member's object alone",
		"conflictResolution: Overwrite in PropagationPolicy "+ns+"/p",
		"✗ m2: an override fails, so nothing new is sent: apply OverridePolicy "+ns+
			"/o, spec.overrideRules[0].overriders.plaintext[0]",
		"3 replicas by static weights m1 1 (share 1.00), m2 1 (share 1.00), m3 1 (share 1.00)",
		"healthy in 1 of 3 clusters")

	out, complaint := explain(t, "Deployment.apps/web", "-n", ns, "--cluster", "m3")
	for _, want := range []string{"Cluster m3", "override: OverridePolicy " + ns + "/o", "Applied=True",
		"status reported by the member"} {
		if !strings.Contains(out, want) || strings.Contains(out, "✗ m1") {
			t.Errorf("of m3 alone it says, without %q:\n%s%s", want, out, complaint)
		}
	}

	changeSpec(t, "PropagationPolicy", ns, "p", "Overwrite", "conflictResolution")
	fleet.Hub.Remove(t, "policy.karmada.io/v1alpha1", "OverridePolicy", ns, "o")
	kit.Eventually(t, "all is well, for programs too", func() string {
		out, complaint := explain(t, "deployments", "web", "-n", ns, "-o", "json")
		var a why.Answer
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			return fmt.Sprintf("%v: %s%s", err, out, complaint)
		}
		if len(a.Findings) > 0 || a.Summary != "healthy in 3 of 3 clusters" || a.Policy.ClaimedBy != "PropagationPolicy "+ns+
			"/p" {
			return fmt.Sprintf("%s, findings %+v", a.Summary, a.Findings)
		}
		return ""
	})
	sameOverHTTP(t, ns)
}

// sameOverHTTP asks the hub itself, as a dashboard would.
func sameOverHTTP(t *testing.T, ns string) {
	t.Helper()
	transport, err := rest.TransportFor(fleet.Hub.Config)
	if err != nil {
		t.Fatal(err)
	}
	get := func(query url.Values, into any) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fleet.Hub.Config.Host+"/argosy/why?"+
			query.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
	var a why.Answer
	if code := get(url.Values{"kind": {"deploy"}, "namespace": {ns}, "name": {"web"}, "cluster": {"m2"}},
		&a); code != http.StatusOK || a.Only != "m2" || len(a.Clusters) != 1 || a.Clusters[0].State != state.Healthy {
		t.Errorf("over HTTP it is %d, %+v", code, a)
	}
	var wrong metav1.Status
	if code := get(url.Values{"kind": {"deploy"}, "namespace": {ns}, "name": {"nobody"}},
		&wrong); code != http.StatusNotFound || !strings.Contains(wrong.Message, `"nobody"`) {
		t.Errorf("of what is not there it says %d, %+v", code, wrong)
	}
	anybody := rest.AnonymousClientConfig(fleet.Hub.Config)
	if transport, err = rest.TransportFor(anybody); err != nil {
		t.Fatal(err)
	}
	if code := get(url.Values{"kind": {"deploy"}, "namespace": {ns}, "name": {"web"}},
		&wrong); code != http.StatusForbidden && code != http.StatusUnauthorized {
		t.Errorf("who is nobody gets %d", code)
	}
}

func TestWhyExplainsInvalidQueries(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, configMap(ns, "here", "1"))
	for _, tt := range []struct{ name, args, want string }{
		{"a kind that nobody knows", "widget x", `the hub serves no kind "widget"`},
		{"a namespace that it is not in", "cm here -n default", "there is one in namespace " + ns},
		{"a name that two kinds may mean", "statefulset nobody -n " + ns,
			"no statefulsets.apps and no statefulsets.apps.kruise.io"},
		{"a cluster that is not there", "cm here -n " + ns + " --cluster m9", `there is no cluster "m9": the fleet has `},
		{"no name", "cm", "name one object"},
		{"an output that is not there", "cm here -o table", "--output must be json or yaml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if out, complaint := explain(t, strings.Fields(tt.args)...); !strings.Contains(complaint, tt.want) {
				t.Errorf("it says %q, %q, want %q", complaint, out, tt.want)
			}
		})
	}
}
