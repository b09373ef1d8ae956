package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/test/kit"
)

// The hub does not call its own machine, so the check has no answer, and the release goes back.
func TestACheckWithoutAnAnswerRollsAReleaseBack(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	const group, own = "apps.kruise.io/v1alpha1", "release.argosy.io/v1alpha1"
	fleet.Hub.Apply(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: editor, namespace: "+
		ns+"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}, subjects: "+
		"[{kind: Group, apiGroup: rbac.authorization.k8s.io, name: editor-"+ns+"}]}")
	editor := newPerson(t, "ed", "editor-"+ns)
	var calls atomic.Int64
	judge := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer judge.Close()
	check := fmt.Sprintf(`{apiVersion: %s, kind: ReleaseCheck, metadata: {name: judge, namespace: %s}, spec: {interval: 1s,
		inconclusiveLimit: 1, webhook: {url: "%s"}}}`, own, ns, judge.URL)
	if err := editor.creates(check); err == nil ||
		!strings.Contains(err.Error(), `User "ed" cannot create resource "releasechecks"`) {
		t.Errorf("an editor creates a check: %v", err)
	}
	fleet.Hub.Apply(t, check)
	fleet.Hub.Apply(t, policy(ns, "p", group, "CloneSet", alike))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 6, "example.com/shop:1",
		"\n  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 6}"))
	are := func(n int, image string) {
		t.Helper()
		kit.Eventually(t, fmt.Sprintf("%d pods run %s", n, image), func() string {
			if got, ready := running(t, ns, "shop", image); got != n || ready != 6 {
				return fmt.Sprintf("%d pods do, and %d of all are ready; the release is %v", got, ready,
					kit.Field(fleet.Hub.Find(t, own, "Release", ns, "r1"), "status"))
			}
			return ""
		})
	}
	are(6, "example.com/shop:1")
	fleet.Hub.Change(t, group, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["argosy.io/release-strategy"] = "checked"
		u.SetAnnotations(annotations)
		kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"] = "example.com/shop:2"
	})
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: %s, kind: ReleaseStrategy, metadata: {name: checked, namespace: %s},
		spec: {stages: [{name: canary, to: {percent: 50}, after: [{name: judge, type: Check, checkRef: {name: judge},
		onInconclusive: Fail}]}, {name: rest}]}}`, own, ns))
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: %s, kind: Release, metadata: {name: r1, namespace: %s},
		spec: {strategyRef: {name: checked}, targets: [{name: shop, ref: {kind: CloneSet, apiVersion: %s, name: shop}}]}}`,
		own, ns, group))
	var r *unstructured.Unstructured
	kit.Eventually(t, "the release goes back", func() string {
		r = fleet.Hub.Find(t, own, "Release", ns, "r1")
		if kit.Field(r, "status", "phase") != "RolledBack" {
			return fmt.Sprint(kit.Field(r, "status"))
		}
		return ""
	})
	are(6, "example.com/shop:1")
	if status := fmt.Sprint(kit.Field(r, "status", "stages")); !strings.Contains(status, "--release-check-networks") ||
		!strings.Contains(status, "verdict:Error") {
		t.Errorf("the stages lack the evidence: %s", status)
	}
	if n := calls.Load(); n > 0 {
		t.Errorf("the hub called its own machine %d times", n)
	}
}
