package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/test/kit"
)

// Admission, the schema and RBAC of a real API server together. The release waits before its first stage.
func TestUsersControlReleasesByTheirVerbs(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	bindTo := func(group, role string) {
		fleet.Hub.Apply(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "+group+
			", namespace: "+ns+"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: "+role+
			"}, subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "+group+"-"+ns+"}]}")
	}
	fleet.Hub.Apply(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: resume, namespace: "+ns+
		"}, rules: [{apiGroups: [release.argosy.io], resources: [releases, releaseapprovals], "+
		"verbs: [get, create, patch, resume]}]}")
	// The rights of operators, in this namespace alone.
	fleet.Hub.Apply(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: stop, namespace: "+ns+
		"}, rules: [{apiGroups: [release.argosy.io], resources: [releases], verbs: [get, patch, pause, abort, rollback]}]}")
	bindTo("editors", "ClusterRole, name: edit")
	bindTo("admins", "ClusterRole, name: admin")
	bindTo("resumers", "Role, name: resume")
	bindTo("operators", "Role, name: stop")
	editor, admin := newPerson(t, "ed", "editors-"+ns), newPerson(t, "ann", "admins-"+ns)
	resumer, operator := newPerson(t, "ray", "resumers-"+ns), newPerson(t, "oli", "operators-"+ns)

	release := func(more string) *unstructured.Unstructured {
		return kit.Object(t, `{apiVersion: release.argosy.io/v1alpha1, kind: Release, metadata: {name: r, namespace: `+ns+`},
			spec: {strategyRef: {name: s}, targets: [{name: web, ref: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet,
			name: web}}]`+more+`}}`)
	}
	approval := func(uid types.UID) *unstructured.Unstructured {
		return kit.Object(t, `{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseApproval,
			metadata: {name: a, namespace: `+ns+`}, spec: {release: r, releaseUID: "`+string(uid)+`", revision: x, stage: a, gate: g, verdict: Approve}}`)
	}
	patch := func(p person, body string) error {
		return p.Patch(t.Context(), release(""), client.RawPatch(types.MergePatchType, []byte(body)))
	}
	allowed := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	const group = "apps.kruise.io/v1alpha1"
	fleet.Hub.Apply(t, policy(ns, "p", group, "CloneSet", alike))
	fleet.Hub.Apply(t, cloneSet(ns, "web", 2, "example.com/web:1", ""))
	kit.Eventually(t, "pods run", func() string {
		n, ready := running(t, ns, "web", "example.com/web:1")
		if n != 2 || ready != 2 {
			return fmt.Sprintf("%d run, and %d are ready", n, ready)
		}
		return ""
	})
	fleet.Hub.Apply(t, `{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseStrategy, metadata: {name: s, namespace: `+ns+
		`}, spec: {stages: [{name: a, before: [{name: g}]}]}}`)
	fleet.Hub.Change(t, group, "CloneSet", ns, "web", func(u *unstructured.Unstructured) {
		fields.SetAnnotation(u, "argosy.io/release-strategy", "s")
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = "example.com/web:2"
	})
	stored := release(", createdBy: {user: ann}")
	kit.Eventually(t, "the hub knows the editors", func() string {
		if err := editor.Create(t.Context(), stored); err != nil {
			return err.Error()
		}
		return ""
	})
	if by, _, _ := unstructured.NestedString(stored.Object, "spec", "createdBy", "user"); by != "ed" {
		t.Errorf("the release is created by %q", by)
	}
	for _, p := range []person{admin, resumer, operator} {
		kit.Eventually(t, "the hub knows the others", func() string {
			return errorText(p.Get(t.Context(), client.ObjectKeyFromObject(stored), release("")))
		})
	}
	another := release("")
	another.SetName("another")
	resumer.shut("a release by a user who may not update its target", resumer.Create(t.Context(), another))

	state := func(s string) string { return fmt.Sprintf(`{"spec":{"state":%q}}`, s) }
	resumer.shut("pause, with resume", patch(resumer, state("Pause")))
	allowed("operators pause", patch(operator, state("Pause")))
	operator.shut("resume, with pause", patch(operator, state("Run")))
	editor.shut("resume, as editor", patch(editor, state("Run")))
	allowed("a user with resume and patch resumes", patch(resumer, state("Run")))
	for _, body := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"supersede":"Replace"}}`,
		`{"spec":{"state":"Pause","ttlSecondsAfterFinished":1}}`,
		`{"metadata":{"annotations":{"argosy.io/skip-stage":"a@1"}}}`,
		`{"metadata":{"annotations":{"argosy.io/retry":"a@1"}}}`,
		`{"metadata":{"annotations":{"argosy.io/break-glass":"a@1"}}}`} {
		operator.shut(body, patch(operator, body))
		resumer.shut(body, patch(resumer, body))
	}
	admin.shut("break-glass, as admin", patch(admin, `{"metadata":{"annotations":{"argosy.io/break-glass":"a@1"}}}`))
	allowed("editors change more", patch(editor, `{"spec":{"supersede":"Replace","state":"Pause"}}`))
	for _, p := range []person{editor, admin, operator} {
		p.shut("a status", p.Status().Patch(t.Context(), release(""),
			client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`))))
	}

	for _, p := range []person{editor, operator, resumer} {
		p.shut("an approval", p.Create(t.Context(), approval(stored.GetUID())))
	}
	if err := admin.Create(t.Context(), approval(stored.GetUID())); !apierrors.IsInvalid(err) {
		t.Errorf("an approval of another revision: %v, want it invalid", err)
	}
	root := newPerson(t, "root", "system:masters")
	root.shut("a revision", root.creates(`{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseRevision,
		metadata: {name: web-1, namespace: `+ns+`}, spec: {hash: h, podsHash: h, pods: [{path: spec.template}],
		target: {apiVersion: apps/v1, kind: Deployment, name: web}}}`))

	// Nor can the state be one that a release cannot have.
	allowed("operators abort", patch(operator, state("Abort")))
	kit.Eventually(t, "the release has ended", func() string {
		r := fleet.Hub.Find(t, "release.argosy.io/v1alpha1", "Release", ns, "r")
		if phase := kit.Field(r, "status", "phase"); phase != "Aborted" {
			return fmt.Sprint(phase)
		}
		return ""
	})
	for body, want := range map[string]string{state("Pause"): "release r has ended: it is Aborted",
		state("Rollback"): "release r cannot be rolled back: it has updated no pods"} {
		if err := patch(operator, body); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it invalid: %s", body, err, want)
		}
	}

	// Mistakes are refused by the name of the field.
	gate := func(text string) *unstructured.Unstructured {
		return kit.Object(t, `{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseStrategy,
			metadata: {name: s, namespace: `+ns+`}, spec: {stages: [{name: a, before: [{name: slo, `+text+`}]}]}}`)
	}
	for text, want := range map[string]string{
		"type: Check":           "spec.stages[0].before[0].checkRef: Required value",
		"checkRef: {name: slo}": "spec.stages[0].before[0].checkRef: Forbidden",
		"type: Vote":            `spec.stages[0].before[0].type: Unsupported value: "Vote"`,
		"slo: {name: slo}":      `unknown field "spec.stages[0].before[0].slo"`,
	} {
		err := root.Create(t.Context(), gate(text), client.FieldValidation("Strict"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a gate with %s: %v, want %q", text, err, want)
		}
	}
}
