package dispatch_test

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

func TestForbiddenOverwriteCountsAsAbort(t *testing.T) {
	const asks = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, annotations: {work.karmada.io/conflict-resolution: overwrite}}}"
	const byPolicy, silent = "conflictResolution: Overwrite\nclusters: [{name: eu}]", "clusters: [{name: eu}]"
	overridden := clusterOverride(t, "overrideRules: [{overriders: {annotationsOverrider: [{operator: add, value: {work.karmada.io/conflict-resolution: overwrite}}]}}]")
	const pp, cpp = policyv1alpha1.PropagationPolicyPermanentIDLabel,
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
	for _, c := range []struct {
		what, template, spec, claim string
		overrides                   []policyv1alpha1.Override
		want, messages              string
	}{
		{"a template", asks, silent, pp, nil, "abort",
			"the annotation work.karmada.io/conflict-resolution requests Overwrite, but namespace shop forbids it"},
		{"a policy of the namespace", configMap, byPolicy, pp, nil, "abort",
			"the policy's spec.conflictResolution requests Overwrite"},
		{"both", asks, byPolicy, pp, nil, "abort",
			"the annotation work.karmada.io/conflict-resolution and the policy's spec.conflictResolution"},
		{"an override", configMap, silent, pp, []policyv1alpha1.Override{overridden}, "abort", "the annotation"},
		{"what follows another", configMap, byPolicy, "", nil, "abort", "the policy's"},
		{"a ClusterPropagationPolicy, whose authors may", configMap, byPolicy, cpp, nil, "overwrite", ""},
		{"a template under such a one", asks, byPolicy, cpp, nil, "overwrite", "the annotation"},
		{"a template under one that does not overwrite", asks, silent, cpp, nil, "abort", "the annotation"},
		{"a binding that claims to be of both", configMap, byPolicy, pp + " " + cpp, nil, "abort", "the policy's"},
		{"what asks for nothing", configMap, silent, pp, nil, "abort", ""},
	} {
		in := input(t, c.template, c.spec)
		in.Overrides = c.overrides
		in.ForbidOverwrite = dispatch.Forbidden(false, "shop", map[string]string{wellknown.ForbidOverwriteLabel: "true"})
		labels := in.Binding.GetLabels()
		for label := range strings.FieldsSeq(c.claim) {
			labels[label] = "x"
		}
		d := dispatch.Decide(t.Context(), in, interpret.New(builtin.Tier()))
		if d.Err != nil || len(d.Results) != 1 || d.Results[0].Err != nil {
			t.Fatalf("%s: %+v", c.what, d)
		}
		w := d.Results[0].Work
		if got, inManifest := w.Annotations["work.karmada.io/conflict-resolution"],
			manifest(t, w).GetAnnotations()["work.karmada.io/conflict-resolution"]; got != c.want || inManifest != c.want {
			t.Errorf("%s: the Work says %q and its manifest %q, want %q", c.what, got, inManifest, c.want)
		}
		messages := ""
		for _, condition := range d.Conditions {
			if condition.Type == fleet.OverwriteForbidden {
				messages = condition.Message
			}
		}
		if (messages == "") != (c.messages == "") || !strings.Contains(messages, c.messages) {
			t.Errorf("%s: the message is %q, want %q", c.what, messages, c.messages)
		}
	}
}

func TestForbiddenOverwriteOfNamespaceAborts(t *testing.T) {
	in := input(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, annotations: {work.karmada.io/conflict-resolution: overwrite}}}", "{}")
	in.Binding, in.ForbidOverwrite = nil, dispatch.Forbidden(true, "shop", nil)
	for _, r := range dispatch.Namespaces(in) {
		if r.Err != nil || r.Work.Annotations["work.karmada.io/conflict-resolution"] != "abort" ||
			manifest(t, r.Work).GetAnnotations()["work.karmada.io/conflict-resolution"] != "abort" {
			t.Errorf("%+v", r)
		}
	}
}

func TestForbiddenOverwrite(t *testing.T) {
	label := func(value string) map[string]string { return map[string]string{wellknown.ForbidOverwriteLabel: value} }
	for _, c := range []struct {
		what   string
		hub    bool
		labels map[string]string
		want   string
	}{
		{"nobody", false, nil, ""},
		{"the hub", true, nil, "--forbid-overwrite"},
		{"the namespace", false, label("true"), "namespace shop"},
		{"a namespace with a typing error", false, label("yes"), "namespace shop"},
		{"a namespace that says nothing beside the key", false, label(""), "namespace shop"},
		{"a namespace that does not", false, label("false"), ""},
		{"a namespace cannot allow what the hub forbids", true, label("false"), "--forbid-overwrite"},
	} {
		if got := dispatch.Forbidden(c.hub, "shop", c.labels); (got == "") != (c.want == "") ||
			!strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
