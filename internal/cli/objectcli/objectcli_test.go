package objectcli

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

type verb = func(*hubcli.HubFlags, genericiooptions.IOStreams) *cobra.Command

var (
	clusterRole = membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io",
		Version: "v1", Kind: "ClusterRole"}, Plural: "clusterroles"}
	deployment = membertest.Kind{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Plural: "deployments", Namespaced: true}
	policy = membertest.Kind{GroupVersionKind: policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"),
		Plural: "propagationpolicies", Namespaced: true}
)

// hub returns a hub with the clusters eu and us, and a run of a verb that must succeed.
func hub(t *testing.T) (*clitest.Seeing, func(verb, ...string) string) {
	s := clitest.See(t, map[string]*membertest.Server{"eu": membertest.New(t), "us": membertest.New(t)})
	s.ServeBindings()
	s.Api.Serve(clusterRole)
	return s, func(v verb, args ...string) string {
		t.Helper()
		out, errOut, err := s.Run(v, "", args...)
		if err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, out, errOut)
		}
		return out + errOut
	}
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, labels: {tier: front}}
spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}
`

// The names are those that karmadactl apply gives.
const ofWeb, ofRole = "web-6d7f8d5f5b", "team.reader-54499c54c"

func TestApplyWritesAPolicyForEachObject(t *testing.T) {
	s, run := hub(t)
	file := clitest.WriteFile(t, t.TempDir(), "web.yaml", web+`---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "team:reader"}, rules: []}
---
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: own}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}}
`)
	apply := func(args ...string) string {
		t.Helper()
		return run(NewApply, append([]string{"-f", file, "--validate=false", "--openapi-patch=false"}, args...)...)
	}
	if apply("-C", "eu", "--dry-run=client"); len(s.Api.Writes()) > 0 {
		t.Fatalf("a dry run writes %q", s.Api.Writes())
	}

	out := apply("-C", "eu,us")
	for _, want := range []string{"Warning: PropagationPolicy shop/own stays on the hub, and is in effect there: it also applies",
		"propagationpolicy.policy.karmada.io/" + ofWeb + " created", "deployment.apps/web created"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %q:\n%s", want, out)
		}
	}
	// A template is claimed in its creation if its policy exists.
	if want := []string{"create propagationpolicies default/" + ofWeb, "create deployments default/web",
		"create clusterpropagationpolicies " + ofRole, "create clusterroles team:reader",
		"create propagationpolicies shop/own"}; !slices.Equal(s.Api.Writes(), want) {
		t.Errorf("it writes %q, want %q", s.Api.Writes(), want)
	}
	spec := func() map[string]any {
		return s.Api.Object(policy, "default", ofWeb).Object["spec"].(map[string]any)
	}
	selectors := []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default",
		"name": "web"}}
	affinity := map[string]any{"clusterNames": []any{"eu", "us"}}
	if got := spec(); !reflect.DeepEqual(got["resourceSelectors"], selectors) || !reflect.DeepEqual(got["placement"],
		map[string]any{"clusterAffinity": affinity}) || got["conflictResolution"] != nil {
		t.Errorf("the policy is %v", got)
	}
	out = apply("--all-clusters")
	if got, _, _ := unstructured.NestedSlice(spec(), "placement", "clusterAffinity", "clusterNames"); len(got) > 0 ||
		!strings.Contains(out, ofWeb+" configured") || !strings.Contains(out, "deployment.apps/web unchanged") {
		t.Errorf("the policy is %v\n%s", spec(), out)
	}
	s.Api.Remove(policy, "default", ofWeb)
	if apply(); s.Api.Object(policy, "default", ofWeb) != nil {
		t.Error("without clusters, it writes a policy")
	}
	if _, _, err := s.Run(NewApply, "", "-f", file, "-C", "eu,jp"); err == nil ||
		!strings.Contains(err.Error(), `cluster "jp" is not joined`) {
		t.Errorf("a cluster that is not there: %v", err)
	}
}

func TestVerbsOfKubectlWriteOnTheHub(t *testing.T) {
	s, run := hub(t)
	file := clitest.WriteFile(t, t.TempDir(), "web.yaml", strings.Replace(web, "default", "shop", 1))
	s.Api.Put(&policyv1alpha1.PropagationPolicy{TypeMeta: metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(),
		Kind: "PropagationPolicy"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
		Labels: map[string]string{"tier": "front"}}})
	t.Setenv("KUBE_EDITOR", "sed -i s/front/back/")
	one := func() *unstructured.Unstructured { return s.Api.Object(deployment, "shop", "web") }
	for _, step := range []struct {
		verb verb
		line string
		want string
		is   func() bool
	}{
		{NewCreate, "-f " + file + " --validate=false", "deployment.apps/web created", func() bool { return one() != nil }},
		{NewCreate, "configmap settings --from-literal=color=blue --dry-run=client -o yaml", "color: blue",
			func() bool { return true }},
		{NewLabel, "deployment web team=a", "deployment.apps/web labeled",
			func() bool { return one().GetLabels()["team"] == "a" }},
		{NewAnnotate, "deployment web note=hi", "deployment.apps/web annotated",
			func() bool { return one().GetAnnotations()["note"] == "hi" }},
		{NewPatch, `deployment web --type=merge -p {"spec":{"replicas":3}}`, "deployment.apps/web patched",
			func() bool {
				n, _, _ := unstructured.NestedInt64(one().Object, "spec", "replicas")
				return n == 3
			}},
		{NewEdit, "propagationpolicy web --validate=false", "propagationpolicy.policy.karmada.io/web edited",
			func() bool { return s.Api.Object(policy, "shop", "web").GetLabels()["tier"] == "back" }},
		{NewDelete, "deployment web --wait=false", `deployment.apps "web" deleted`,
			func() bool { return one() == nil }},
	} {
		if out := run(step.verb, strings.Fields(step.line)...); !strings.Contains(out, step.want) || !step.is() {
			t.Errorf("%s: it prints %q and leaves %v", step.line, out, one())
		}
	}
}

// What a user may not do fails as it does with kubectl.
func TestMissingRightsAreNamed(t *testing.T) {
	s, run := hub(t)
	file := clitest.WriteFile(t, t.TempDir(), "web.yaml", strings.Replace(web, "default", "shop", 1))
	run(NewCreate, "-f", file, "--validate=false")
	s.Api.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			return false
		}
		err := apierrors.NewForbidden(appsv1.Resource("deployments"), "web", nil)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = unstructured.UnstructuredJSONScheme.Encode(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1",
			"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": int64(403),
			"message": err.ErrStatus.Message}}, w)
		return true
	})
	for line, v := range map[string]verb{
		"deployment web --wait=false":                     NewDelete,
		"deployment web team=a":                           NewLabel,
		"deployment web note=hi":                          NewAnnotate,
		`deployment web --type=merge -p {"spec":{"a":1}}`: NewPatch,
		"-f " + file + " --validate=false":                NewCreate,
		"-f " + file + " --validate=false --all-clusters": NewApply,
	} {
		_, _, err := s.Run(v, "", strings.Fields(line)...)
		if err == nil || !strings.Contains(err.Error(), `deployments.apps "web" is forbidden`) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if one := s.Api.Object(deployment, "shop", "web"); one == nil || one.GetLabels()["team"] != "" {
		t.Errorf("it is now %v", one)
	}
}
