package addon_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/source/addon"
)

func manifests(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	for part := range strings.SplitSeq(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &u.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}

func known(gvk schema.GroupVersionKind) (bool, bool) {
	switch gvk.Kind {
	case "Deployment", "Secret", "Job", "ServiceAccount":
		return true, true
	case "Namespace", "ClusterRole", "MutatingWebhookConfiguration", "CustomResourceDefinition":
		return false, true
	}
	return false, false
}

const operator = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: hooks}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager}, spec: {replicas: 2}}
---
{apiVersion: v1, kind: Secret, metadata: {name: kruise-webhook-certs, namespace: kruise-system}, data: {tls.key: eA==}}
---
{apiVersion: trains.example/v1, kind: Train, metadata: {name: t}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:kruise", namespace: mistaken}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: trains.trains.example, creationTimestamp: null}, spec: {group: trains.example, scope: Namespaced, names: {kind: Train}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: migrate, annotations: {helm.sh/hook: pre-delete}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: kruise-system}}`

func TestAnAddonIsEnclosedInStagesAndNamedByItsPolicies(t *testing.T) {
	all, warnings, err := addon.Enclose("openkruise", "kruise-system", manifests(t, operator), known)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, o := range all {
		m := fields.Object(o.Template.Object, "spec", "manifest")
		shown = append(shown, fmt.Sprintf("%d %s %s/%s", o.Stage, o.Template.GetName(),
			fields.Text(m, "metadata", "namespace"), fields.Text(m, "metadata", "name")))
		if o.Template.GetLabels()[wellknown.AddonLabel] != "openkruise" {
			t.Errorf("%s is not labelled", o.Template.GetName())
		}
		if fields.Text(m, "kind") == "Secret" && fields.Value(m, "data") != nil {
			t.Error("a certificate is sent to all clusters")
		}
	}
	want := `0 openkruise.customresourcedefinition.trains.trains.example /trains.trains.example
0 openkruise.namespace.kruise-system /kruise-system
1 openkruise.clusterrole.system.kruise /system:kruise
1 openkruise.deployment.kruise-system.manager kruise-system/manager
1 openkruise.secret.kruise-system.kruise-webhook-certs kruise-system/kruise-webhook-certs
1 openkruise.train.kruise-system.t kruise-system/t
2 openkruise.mutatingwebhookconfiguration.hooks /hooks`
	if got := strings.Join(shown, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "Job migrate is a Helm hook (pre-delete)") {
		t.Errorf("warnings: %q", warnings)
	}

	selected := map[string]string{}
	for _, p := range addon.Policies("openkruise", all, addon.Options{Clusters: []string{"eu"}}) {
		for _, s := range p.Spec.ResourceSelectors {
			if s.Name == "" || s.Kind != "EnclosedManifest" || selected[s.Name] != "" {
				t.Errorf("%s selects %+v", p.Name, s)
			}
			selected[s.Name] = p.Name
		}
		if stays := p.Spec.PreserveResourcesOnDeletion != nil &&
			*p.Spec.PreserveResourcesOnDeletion; stays != (p.Name == "openkruise-foundation") {
			t.Errorf("%s: what it sent stays: %v", p.Name, stays)
		}
		if p.Spec.ConflictResolution != policyv1alpha1.ConflictAbort ||
			len(p.Spec.Placement.ClusterAffinity.ClusterNames) != 1 {
			t.Errorf("%s: %+v", p.Name, p.Spec)
		}
	}
	if len(selected) != len(all) || selected["openkruise.namespace.kruise-system"] != "openkruise-foundation" ||
		selected["openkruise.mutatingwebhookconfiguration.hooks"] != "openkruise" {
		t.Errorf("selected: %v", selected)
	}
	if p := addon.Policies("x", all, addon.Options{Overwrite: true})[0].Spec; p.Placement.ClusterAffinity != nil ||
		p.ConflictResolution != policyv1alpha1.ConflictOverwrite {
		t.Errorf("in all clusters, taking over: %+v", p)
	}
}

func TestInvalidManifestsAreRefused(t *testing.T) {
	for want, text := range map[string]string{
		"twice":            "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}",
		"no metadata.name": "{apiVersion: batch/v1, kind: Job, metadata: {generateName: a-}}",
		"nothing":          "{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {helm.sh/hook: test}}}",
	} {
		if _, _, err := addon.Enclose("x", "default", manifests(t, text), known); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, _, err := addon.Enclose("A b", "default", manifests(t, operator), known); err == nil {
		t.Error("a name that is none")
	}
	if _, warnings, _ := addon.Enclose("x", "default",
		manifests(t, "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: gone}}"), known); len(warnings) != 1 ||
		!strings.Contains(warnings[0], "namespace gone") {
		t.Errorf("warnings: %q", warnings)
	}
}
