package joincli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

const runningWeb = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 1,
	selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x,
	envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: absent, optional: true}}]}]}}}}`

// karmadactl promote prints manifests with -o, which a user may edit and apply.
func TestPromoteWithAnOutputFormatWritesNothing(t *testing.T) {
	deployment := membertest.Kind{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Plural: "deployments", Namespaced: true}
	secret := membertest.Kind{Plural: "secrets", Namespaced: true}
	secret.Version, secret.Kind = "v1", "Secret"
	eu := membertest.New(t, deployment, secret)
	for _, text := range []string{"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}", runningWeb,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {color: blue}}"} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		eu.Put(u)
	}
	s := clitest.See(t, map[string]*membertest.Server{"eu": eu})
	s.ServeBindings()
	s.Api.Serve(secret)
	for _, k := range []membertest.Kind{{GroupVersionKind: configv1alpha1.GroupVersion.WithKind(
		"ResourceInterpreterCustomization"), Plural: "resourceinterpretercustomizations"},
		{GroupVersionKind: policyv1alpha1.GroupVersion.WithKind("OverridePolicy"), Plural: "overridepolicies",
			Namespaced: true},
		{GroupVersionKind: policyv1alpha1.GroupVersion.WithKind("ClusterOverridePolicy"),
			Plural: "clusteroverridepolicies"}} {
		s.Api.Serve(k)
	}
	run := func(args ...string) (string, error) {
		out, _, err := s.Run(func(hub *hubcli.HubFlags, _ genericiooptions.IOStreams) *cobra.Command {
			return NewPromote(hub)
		}, "", append([]string{"deployment", "web", "-C", "eu"}, args...)...)
		return out, err
	}
	for line, want := range map[string][]string{
		"-o yaml":                            {"PropagationPolicy", "Deployment"},
		"-o yaml -d":                         {"ConfigMap", "PropagationPolicy", "Deployment"},
		"-o yaml --auto-create-policy=false": {"Deployment"},
		"-o yaml --policy-name mine":         {"PropagationPolicy", "Deployment"},
	} {
		out, err := run(strings.Fields(line)...)
		var kinds []string
		for text := range strings.SplitSeq(out, "---\n") {
			u := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(text), &u.Object); err != nil {
				t.Fatalf("%s prints %s: %v", line, text, err)
			}
			kinds = append(kinds, u.GetKind())
			if u.GetKind() != "PropagationPolicy" {
				continue
			}
			name := "web-7fd7ff5bf5"
			if strings.Contains(line, "mine") {
				name = "mine"
			}
			preserved, _, _ := unstructured.NestedBool(u.Object, "spec", "preserveResourcesOnDeletion")
			deps, _, _ := unstructured.NestedBool(u.Object, "spec", "propagateDeps")
			if u.GetAPIVersion() != "policy.karmada.io/v1alpha1" || u.GetName() != name || !preserved ||
				deps != strings.HasSuffix(line, "-d") {
				t.Errorf("%s prints the policy %v", line, u.Object)
			}
		}
		if err != nil || strings.Join(kinds, " ") != strings.Join(want, " ") {
			t.Errorf("%s prints %q, %v; want %q", line, kinds, err, want)
		}
	}
	out, err := run("-d", "--dry-run")
	if err != nil || !strings.Contains(out, "Its dependency ConfigMap shop/settings is adopted with it.") ||
		!strings.Contains(out, `Not adopted with it is Secret shop/absent: cluster "eu" does not have it`) {
		t.Errorf("a dry run: %v\n%s", err, out)
	}
	for _, write := range append(s.Api.Writes(), eu.Writes()...) {
		t.Errorf("it writes: %s", write)
	}
}
