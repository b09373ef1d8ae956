package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// The author of the release may approve releases, and not this one. Another editor may not approve at all.
func TestReleaseByWeightsStopsAtItsGates(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	for user, role := range map[string]string{"author": "admin", "lead": "admin", "editor": "edit"} {
		fleet.Hub.Apply(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "+user+
			", namespace: "+ns+"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "+role+
			"}, subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "+user+"-"+ns+"}]}")
	}
	author, lead := newPerson(t, "ada", "author-"+ns), newPerson(t, "lea", "lead-"+ns)
	editor := newPerson(t, "ed", "editor-"+ns)
	const group, own = "apps.kruise.io/v1alpha1", "release.argosy.io/v1alpha1"
	fleet.Hub.Apply(t, policy(ns, "p", group, "CloneSet", alike))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 10, "example.com/shop:1",
		"\n  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 10}"))
	are := func(n int, image string) {
		t.Helper()
		kit.Eventually(t, fmt.Sprintf("%d pods run %s", n, image), func() string {
			if got, ready := running(t, ns, "shop", image); got != n || ready != 10 {
				return fmt.Sprintf("%d pods do, and %d of all are ready; the release is %v", got, ready,
					kit.Field(fleet.Hub.Find(t, own, "Release", ns, "gray"), "status"))
			}
			return ""
		})
	}
	are(10, "example.com/shop:1")
	fleet.Hub.Change(t, group, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["argosy.io/release-strategy"] = "gray"
		u.SetAnnotations(annotations)
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = "example.com/shop:2"
	})
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: release.argosy.io/v1alpha1
kind: ReleaseStrategy
metadata: {name: gray, namespace: %s}
spec:
  stages:
  - {name: one, to: {weight: 1}}
  - {name: two, to: {weight: 2}, before: [{name: sign, approval: {count: 1, notAuthor: true}}]}
  - {name: seven, to: {weight: 7}, before: [{name: sign}]}
`, ns))
	kit.Eventually(t, "the author creates the release", func() string {
		return errorText(author.creates(`{apiVersion: release.argosy.io/v1alpha1, kind: Release, metadata: {name: gray,
			namespace: ` + ns + `}, spec: {strategyRef: {name: gray}, targets: [{name: shop, ref: {kind: CloneSet,
			apiVersion: apps.kruise.io/v1alpha1, name: shop}}]}}`))
	})
	phase := func(want, reason string) *unstructured.Unstructured {
		t.Helper()
		var r *unstructured.Unstructured
		kit.Eventually(t, "the release is "+want, func() string {
			r = fleet.Hub.Find(t, own, "Release", ns, "gray")
			if got := kit.Field(r, "status", "phase"); got != want || kit.Field(r, "status", "reason") != reason {
				return fmt.Sprint(kit.Field(r, "status"))
			}
			return ""
		})
		return r
	}
	approval := func(stage string) string {
		r := phase("Running", "WaitingForApproval")
		return fmt.Sprintf(`{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseApproval,
			metadata: {name: gray-%[2]s, namespace: %[1]s}, spec: {release: gray, releaseUID: "%[3]s", revision: "%[4]s",
			stage: %[2]s, gate: sign, verdict: Approve, by: {user: root}}}`, ns, stage, r.GetUID(),
			kit.Field(r, "status", "revision"))
	}
	refused := func(p person, why string) {
		t.Helper()
		err := p.creates(approval("two"))
		if p.shut("an approval", err); err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("the refusal is %v, want %q", err, why)
		}
	}
	are(1, "example.com/shop:2")
	refused(author, "ada created the release")
	refused(editor, `User "ed" cannot create resource "releaseapprovals"`)
	are(1, "example.com/shop:2")
	for i, p := range []person{lead, author} {
		stage := []string{"two", "seven"}[i]
		if err := p.creates(approval(stage)); err != nil {
			t.Fatal(err)
		}
		stored := fleet.Hub.Find(t, own, "ReleaseApproval", ns, "gray-"+stage)
		if by := kit.Field(stored, "spec", "by", "user"); by != []string{"lea", "ada"}[i] {
			t.Errorf("the approval of stage %s is by %v", stage, by)
		}
		if stage == "two" {
			kit.Eventually(t, "the release waits before the last stage", func() string {
				r := fleet.Hub.Find(t, own, "Release", ns, "gray")
				if kit.Field(r, "status", "stage") != "seven" || kit.Field(r, "status", "reason") != "WaitingForApproval" {
					return fmt.Sprint(kit.Field(r, "status"))
				}
				return ""
			})
			are(3, "example.com/shop:2")
		}
	}
	are(10, "example.com/shop:2")
	to := kit.Field(phase("Succeeded", "Completed"), "status", "targets").([]any)[0].(map[string]any)["to"]

	// Administrators of the hub block the revision, and allow it again.
	revision := kit.Object(t, fmt.Sprintf("{apiVersion: %s, kind: ReleaseRevision, metadata: {name: %v, namespace: %s}}",
		own, to, ns))
	for _, blocked := range []string{`{"reason":"DataLoss","at":"2026-01-01T12:00:00Z"}`, "null"} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"blocked":`+blocked+`}}`))
		for _, p := range []person{editor, lead} {
			p.shut("a block", p.Status().Patch(t.Context(), revision.DeepCopy(), patch))
		}
		if err := fleet.Hub.Status().Patch(t.Context(), revision.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
		stored := fleet.Hub.Find(t, own, "ReleaseRevision", ns, revision.GetName())
		if is := kit.Field(stored, "status", "blocked") != nil; is != (blocked != "null") {
			t.Errorf("after the patch %s, the revision has %v", blocked, stored.Object["status"])
		}
	}
}
