package admission

import (
	"context"
	"slices"
	"strings"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// The rights of the users of these tests: alice creates releases, the others have what they are named for.
var releaseRights = map[string]bool{
	"alice update clonesets shop": true, "alice update releases shop": true,
	"pauser pause releases shop": true, "resumer resume releases shop": true, "aborter abort releases shop": true,
	"roller rollback releases shop": true, "skipper skip releases shop": true, "retrier retry releases shop": true,
	"breaker break-glass releases shop": true,
}

func releaseHub(t *testing.T, objects ...*unstructured.Unstructured) *hub {
	h := newHub(t, objects...)
	h.may = map[string]bool{}
	for right := range releaseRights {
		h.may[right] = true
	}
	h.users = map[string]*user.DefaultInfo{"alice": {Name: "alice", UID: "u-alice", Groups: []string{"developers"}}}
	return h
}

// releaseOf returns a release of the CloneSet web with more fields of its spec.
func releaseOf(t *testing.T, more string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: release.argosy.io/v1alpha1, kind: Release, metadata: {name: r1, namespace: shop},
		spec: {strategyRef: {name: s}, targets: [{name: web, ref: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}}]`+
		more+`}}`)
}

// storedRelease returns a release that alice has created and that waits for approvals before its stage prod.
func storedRelease(t *testing.T, h *hub) *unstructured.Unstructured {
	t.Helper()
	r, _, err := h.write("alice", releaseOf(t, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetUID("u-1")
	r.SetResourceVersion("1")
	r.Object["status"] = object(t, `{apiVersion: v1, kind: a, status: {phase: Running, stage: prod, revision: rev-2,
		conditions: [{type: Accepted, status: "True", reason: Planned, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}],
		strategy: {stages: [{name: prod, before: [{name: sign, approval: {count: 2, notAuthor: true, from: [
			{kind: User, name: alice}, {kind: User, name: bob}, {kind: Group, name: leads}]}}]}]},
		stages: [{name: prod, phase: Gated, attempt: 1, gates: [{name: sign, position: Before, phase: Waiting}]}]}}`).Object["status"]
	return r
}

// changed returns a copy of an object with a field set to a value.
func changed(t *testing.T, obj *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	t.Helper()
	obj = obj.DeepCopy()
	if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestANewReleaseIsKeptUntilItIsRecorded(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t)
		made, _, err := h.write("alice", releaseOf(t, ""), nil)
		if err != nil || !slices.Equal(made.GetFinalizers(), []string{releasev1alpha1.RecordedFinalizer}) {
			t.Fatalf("the finalizers are %v, %v", made.GetFinalizers(), err)
		}
		// The hub removes the finalizer, and nothing sets it again.
		recorded := made.DeepCopy()
		recorded.SetFinalizers(nil)
		updated, _, err := h.write("alice", recorded, made)
		if err != nil || len(updated.GetFinalizers()) > 0 {
			t.Errorf("after an update, the finalizers are %v, %v", updated.GetFinalizers(), err)
		}
	})
}

func TestReleaseRecordsItsCreator(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t)
		creator := func(obj *unstructured.Unstructured) releasev1alpha1.ReleaseUser {
			t.Helper()
			r := &releasev1alpha1.Release{}
			if err := into(obj, r); err != nil {
				t.Fatal(err)
			}
			if r.Spec.CreatedBy == nil {
				return releasev1alpha1.ReleaseUser{}
			}
			return *r.Spec.CreatedBy
		}
		isAlice := func(when string, obj *unstructured.Unstructured) {
			t.Helper()
			by := creator(obj)
			if by.User != "alice" || by.UID != "u-alice" || !slices.Equal(by.Groups, []string{"developers"}) {
				t.Errorf("%s, the release is created by %+v", when, by)
			}
		}
		stored, _, err := h.write("alice", releaseOf(t, `, createdBy: {user: bob, groups: [leads]}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		isAlice("at first", stored)
		forged := changed(t, changed(t, stored, "bob", "spec", "createdBy", "user"), int64(60), "spec",
			"ttlSecondsAfterFinished")
		updated, _, err := h.write("admin", forged, stored)
		if err != nil {
			t.Fatal(err)
		}
		isAlice("after an update with another user", updated)
		without := stored.DeepCopy()
		unstructured.RemoveNestedField(without.Object, "spec", "createdBy")
		if updated, _, err = h.write("admin", without, stored); err != nil {
			t.Fatal(err)
		}
		isAlice("after an update without a user", updated)
		// A release that is older than this rule gets no creator.
		if updated, _, err = h.write("admin", changed(t, without, int64(60), "spec", "ttlSecondsAfterFinished"),
			without); err != nil {
			t.Fatal(err)
		}
		if by := creator(updated); by.User != "" {
			t.Errorf("an update makes %s the creator", by.User)
		}
		// The hub may create releases for users.
		ours, _, err := h.write(user.APIServerUser, releaseOf(t, `, createdBy: {user: bob}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if by := creator(ours); by.User != "bob" {
			t.Errorf("a release of the hub is created by %q", by.User)
		}
	})
}

func TestTheUserOfAVerbIsStamped(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t)
		stored := storedRelease(t, h)
		paused := changed(t, stored, "Pause", "spec", "state")
		paused.SetAnnotations(map[string]string{release.VerbsAnnotation: `{"state":{"value":"Pause","user":"boss"}}`,
			releasev1alpha1.ReleaseReasonAnnotation: "lunch"})
		now, _, err := h.write("pauser", paused, stored)
		if err != nil {
			t.Fatal(err)
		}
		const want = `{"state":{"value":"Pause","user":"pauser","reason":"lunch"}}`
		if got := now.GetAnnotations()[release.VerbsAnnotation]; got != want {
			t.Errorf("after a pause, it has %s, want %s", got, want)
		}
		forged := now.DeepCopy()
		forged.SetAnnotations(map[string]string{release.VerbsAnnotation: `{}`,
			releasev1alpha1.ReleaseReasonAnnotation: "lunch"})
		if now, _, err = h.write("alice", forged, now); err != nil {
			t.Fatal(err)
		}
		if got := now.GetAnnotations()[release.VerbsAnnotation]; got != want {
			t.Errorf("after a write of another user, it has %s, want %s", got, want)
		}
	})
}

func TestTheCreatorOfAReleaseMayUpdateItsTargets(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t)
		h.may["bob update releases shop"], h.may["bob update clonesets bank"] = true, true
		h.refuses("bob", releaseOf(t, ""), nil, "spec.targets[0]", "you need permission to update clonesets.apps.kruise.io",
			`"web" in the namespace "shop"`)
		stored, _, err := h.write("alice", releaseOf(t, ""), nil)
		if err != nil {
			t.Fatal(err)
		}
		targets, _, _ := unstructured.NestedSlice(stored.Object, "spec", "targets")
		targets = append(targets, map[string]any{"name": "db", "to": map[string]any{"current": map[string]any{}},
			"ref": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "db"}})
		h.refuses("alice", changed(t, stored, targets, "spec", "targets"), stored, "spec.targets[1]",
			"you need permission to update deployments.apps")
		if _, _, err := h.write("bob", changed(t, stored, int64(60), "spec", "ttlSecondsAfterFinished"), stored); err != nil {
			t.Errorf("a change of something else: %v", err)
		}
	})
}

func TestAReleaseIsValidated(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t)
		for more, words := range map[string][]string{
			`, strategy: {stages: [{name: a, soak: soon}]}`: {"soon"},
			`, strategy: {stages: [{name: a, to: {percent: 50}}, {name: b, to: {weight: 1}}]}`: {
				`Release.release.argosy.io "r1" is invalid: spec.strategy.stages[1].to`, "a weight or none"},
		} {
			h.refuses("alice", releaseOf(t, more), nil, words...)
		}
		strategy := func(stages string) *unstructured.Unstructured {
			return object(t, `{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseStrategy, metadata: {name: s, namespace: shop},
				spec: {stages: `+stages+`}}`)
		}
		h.refuses("alice", strategy(`[{name: a, to: {percent: 50}}, {name: b, to: {percent: 20}}]`), nil,
			`ReleaseStrategy.release.argosy.io "s" is invalid: spec.stages[1].to`, "which has 50 percent")
		if _, _, err := h.write("alice", strategy(`[{name: a, to: {percent: 50}}, {name: b}]`), nil); err != nil {
			t.Error(err)
		}

		// A release that was stored before a rule can be paused.
		stored, _, err := h.write("alice", object(t, `{apiVersion: release.argosy.io/v1alpha1, kind: Release,
			metadata: {name: r1, namespace: shop}, spec: {strategy: {stages: [{name: a, to: {percent: 50}}, {name: b}]},
			targets: [{name: web, ref: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}}]}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		stages, _, _ := unstructured.NestedSlice(stored.Object, "spec", "strategy", "stages")
		stages[1].(map[string]any)["to"] = map[string]any{"weight": int64(1)}
		stored = changed(t, stored, stages, "spec", "strategy", "stages")
		if _, _, err := h.write("pauser", changed(t, stored, "Pause", "spec", "state"), stored); err != nil {
			t.Errorf("pause of an older release: %v", err)
		}
	})
}

func TestAnAcceptedReleaseChangesItsStateOnly(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t)
		stored := storedRelease(t, h)
		h.refuses("alice", changed(t, stored, "other", "spec", "strategyRef", "name"), stored,
			"spec.strategyRef: Forbidden: cannot be changed once the release is accepted")
		h.refuses("admin", changed(t, stored, map[string]any{"ticket": "1"}, "spec", "change"), stored,
			"spec.change: Forbidden")
		if _, _, err := h.write("alice", changed(t, changed(t, stored, "Replace", "spec", "supersede"), int64(60), "spec",
			"ttlSecondsAfterFinished"), stored); err != nil {
			t.Error(err)
		}
	})
}

// A user with patch on releases, and one verb more, can do what the verb is for and nothing else.
func TestEachVerbOnAReleasePermitsItsChangeAndNoOther(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t)
		stored := storedRelease(t, h)
		failed := storedRelease(t, h)
		failed.Object["status"].(map[string]any)["stages"].([]any)[0].(map[string]any)["phase"] = "Failed"
		waits := storedRelease(t, h)
		waits.Object["status"].(map[string]any)["guard"] = map[string]any{"name": "nights"}
		paused := changed(t, stored, "Pause", "spec", "state")
		annotate := func(obj *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
			obj = obj.DeepCopy()
			obj.SetAnnotations(map[string]string{key: value, releasev1alpha1.ReleaseReasonAnnotation: "a"})
			return obj
		}
		writes := map[string]struct{ obj, old *unstructured.Unstructured }{
			"pause":       {paused, stored},
			"resume":      {stored, paused},
			"abort":       {changed(t, stored, "Abort", "spec", "state"), stored},
			"rollback":    {changed(t, stored, "Rollback", "spec", "state"), stored},
			"skip":        {annotate(stored, releasev1alpha1.SkipStageAnnotation, "prod@1"), stored},
			"retry":       {annotate(failed, releasev1alpha1.RetryAnnotation, "prod@1"), failed},
			"break-glass": {annotate(waits, releasev1alpha1.BreakGlassAnnotation, "prod@1"), waits},
			"update":      {changed(t, stored, "Replace", "spec", "supersede"), stored},
		}
		users := map[string]string{"pauser": "pause", "resumer": "resume", "aborter": "abort", "roller": "rollback",
			"skipper": "skip", "retrier": "retry", "breaker": "break-glass", "alice": "update"}
		for name, has := range users {
			for verb, w := range writes {
				_, _, err := h.write(name, w.obj, w.old)
				switch {
				case verb == has && err != nil:
					t.Errorf("%s, who may %s, is refused: %v", name, verb, err)
				case verb != has && (!apierrors.IsForbidden(err) ||
					!strings.Contains(err.Error(), "you need permission to "+verb+" releases.release.argosy.io \"r1\"")):
					t.Errorf("%s, who may only %s, may %s: %v", name, has, verb, err)
				}
			}
		}

		// One write that does two things needs both.
		h.refuses("pauser", changed(t, paused, int64(1), "spec", "ttlSecondsAfterFinished"), stored, "to update releases")
		h.refuses("pauser", annotate(paused, releasev1alpha1.SkipStageAnnotation, "prod@1"), stored, "to skip releases")
		h.refuses("pauser", annotate(stored, "a", "b"), stored, "to update releases")
		// A new release cannot bring the annotation along.
		h.refuses("alice", annotate(releaseOf(t, ""), releasev1alpha1.SkipStageAnnotation, "prod@1"), nil, "to skip releases")
		// Nor one that is being deleted.
		going := changed(t, stored, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
		h.refuses("alice", annotate(going, releasev1alpha1.SkipStageAnnotation, "prod@1"), going, "to skip releases")

		h.refuses("skipper", annotate(stored, releasev1alpha1.SkipStageAnnotation, "prod@2"), stored,
			`metadata.annotations[argosy.io/skip-stage]: Invalid value: "prod@2": must be prod@1: the release is at stage prod, attempt 1`)
		h.refuses("retrier", annotate(stored, releasev1alpha1.RetryAnnotation, "prod@1"), stored, "stage prod has not failed")
		h.refuses("alice", annotate(going, releasev1alpha1.BreakGlassAnnotation, "prod@1"), going, "to break-glass releases")
		h.refuses("breaker", annotate(stored, releasev1alpha1.BreakGlassAnnotation, "prod@1"), stored,
			"the release does not wait for a ReleaseGuard")
		broken, _, err := h.write("breaker", annotate(waits, releasev1alpha1.BreakGlassAnnotation, "prod@1"), waits)
		const want = `{"argosy.io/break-glass":{"value":"prod@1","user":"breaker","reason":"a"}}`
		if err != nil || broken.GetAnnotations()[release.VerbsAnnotation] != want {
			t.Errorf("after breaking the glass, it has %v, %v; want %s", broken.GetAnnotations(), err, want)
		}
		bare := stored.DeepCopy()
		bare.SetAnnotations(map[string]string{releasev1alpha1.SkipStageAnnotation: "prod@1"})
		h.refuses("skipper", bare, stored, "to skip a stage needs a reason")
		h.refuses("pauser", annotate(stored, "a", "b"), annotate(stored, "a", "c"), "to update releases")

		for _, w := range writes { // the hub's controllers
			if _, _, err := h.write(user.APIServerUser, w.obj, w.old); err != nil {
				t.Error(err)
			}
		}
	})
}

func approvalOf(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseApproval, metadata: {name: a1, namespace: shop}, spec: {
		release: r1, releaseUID: u-1, revision: rev-2, stage: prod, gate: sign, verdict: Approve`+spec+`}}`)
}

func TestAnApprovalNeedsTheVerbAndIsOfItsUser(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t, storedRelease(t, releaseHub(t)))
		for _, name := range []string{"alice", "bob", "carol", "eve"} {
			h.may[name+" approve releases shop"] = true
		}
		h.users["carol"] = &user.DefaultInfo{Name: "carol", Groups: []string{"leads"}}
		for _, c := range []struct{ who, refused string }{
			{"alice", "alice created the release: another user must approve it"},
			{"dave", `you need permission to approve releases.release.argosy.io "r1" in the namespace "shop"`},
			{"pauser", "you need permission to approve releases"},
			{"eve", "eve is none of those who may approve at this gate: User alice, User bob, Group leads"},
			{"bob", ""},
			{"carol", ""},
		} {
			for _, verdict := range []string{"Approve", "Reject"} {
				a := changed(t, approvalOf(t, `, by: {user: bob, groups: [leads]}`), verdict, "spec", "verdict")
				stored, _, err := h.write(c.who, a, nil)
				if c.refused != "" {
					if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.refused) {
						t.Errorf("%s by %s: %v, want %q", verdict, c.who, err, c.refused)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s by %s: %v", verdict, c.who, err)
					continue
				}
				if by, _, _ := unstructured.NestedString(stored.Object, "spec", "by", "user"); by != c.who {
					t.Errorf("the %s of %s is by %s", verdict, c.who, by)
				}
				owners := stored.GetOwnerReferences()
				if len(owners) != 1 || owners[0].UID != "u-1" || owners[0].Kind != "Release" {
					t.Errorf("the approval is deleted with %v", owners)
				}
			}
		}
	})
}

// It is unknown who changed the template, so no user who may have done so can approve it.
func TestUsersWithUpdateRightAreAuthorsOfReleasesOfTheHub(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		rel := storedRelease(t, releaseHub(t))
		unstructured.RemoveNestedField(rel.Object, "spec", "createdBy")
		rel = changed(t, rel, map[string]any{"type": "Template", "revision": "rev-2"}, "spec", "trigger")
		h := releaseHub(t, rel)
		h.may["alice approve releases shop"], h.may["bob approve releases shop"] = true, true
		h.refuses("alice", approvalOf(t, ""), nil, "the hub started the release",
			`every user who may update clonesets.apps.kruise.io "web" counts as its author`)
		if _, _, err := h.write("alice", changed(t, approvalOf(t, ""), "Reject", "spec", "verdict"), nil); err != nil {
			t.Errorf("a rejection: %v", err)
		}
		if _, _, err := h.write("bob", approvalOf(t, ""), nil); err != nil {
			t.Errorf("a user who may not update the target: %v", err)
		}
	})
}

// Admission asks the authorizer what core/release decides from.
func TestAnApprovalNeedsAnotherPerson(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		const deployer = "system:serviceaccount:shop:deployer"
		by := func(user string) *unstructured.Unstructured {
			return changed(t, storedRelease(t, releaseHub(t)), map[string]any{"user": user}, "spec", "createdBy")
		}
		hub := func(rel *unstructured.Unstructured, may ...string) *hub {
			secret := object(t, `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {
				namespace: shop, name: token, annotations: {kubernetes.io/service-account.name: deployer}}}`)
			h := releaseHub(t, rel, secret, object(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: shop,
				name: deployer}}`))
			h.may["bob approve releases shop"], h.may["alice approve releases shop"] = true, true
			for _, right := range may {
				h.may[right] = true
			}
			return h
		}
		if _, _, err := hub(by(deployer)).write("bob", approvalOf(t, ""), nil); err != nil {
			t.Errorf("bob may not act as the author: %v", err)
		}
		for _, right := range []string{"create serviceaccounts", "impersonate serviceaccounts", "create secrets",
			"list secrets"} {
			h := hub(by(deployer), "bob "+right+" shop")
			h.refuses("bob", approvalOf(t, ""), nil, deployer+" created the release: bob may "+right,
				"a user without such a right must approve it")
			if _, _, err := h.write("bob", changed(t, approvalOf(t, ""), "Reject", "spec", "verdict"), nil); err != nil {
				t.Errorf("a rejection: %v", err)
			}
		}
		hub(by("carol"), "bob impersonate users ").refuses("bob", approvalOf(t, ""), nil, "so act as carol")

		// Who may have changed the workload is a service account that bob may use.
		triggered := by("nobody")
		unstructured.RemoveNestedField(triggered.Object, "spec", "createdBy")
		triggered = changed(t, triggered, map[string]any{"type": "Template", "revision": "rev-2"}, "spec", "trigger")
		hub(triggered, "bob create serviceaccounts shop", deployer+" update clonesets shop").refuses("bob", approvalOf(t, ""),
			nil, deployer+" may update the workloads, so it counts as the author: bob may create serviceaccounts/token")

		// An approval that is there is of a user who may act as bob.
		first := changed(t, approvalOf(t, ""), map[string]any{"user": "alice"}, "spec", "by")
		first.SetName("first")
		h := releaseHub(t, by("carol"), first)
		h.may["bob approve releases shop"], h.may["alice impersonate users "] = true, true
		h.refuses("bob", approvalOf(t, ""), nil, "alice has approved: alice may impersonate users")
	})
}

func TestOnlyTheHubSetsTheTriggerOfARelease(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t)
		const trigger = `, trigger: {type: Template, revision: rev-2}`
		trigged := func(obj *unstructured.Unstructured) bool {
			_, has, _ := unstructured.NestedMap(obj.Object, "spec", "trigger")
			return has
		}
		forged, _, err := h.write("alice", releaseOf(t, trigger), nil)
		if err != nil || trigged(forged) {
			t.Errorf("a user sets the trigger: %v", err)
		}
		ours, _, err := h.write(user.APIServerUser, releaseOf(t, trigger), nil)
		if err != nil || !trigged(ours) {
			t.Fatalf("the hub cannot set the trigger: %v", err)
		}
		without := ours.DeepCopy()
		unstructured.RemoveNestedField(without.Object, "spec", "trigger")
		if updated, _, err := h.write("alice", without, ours); err != nil || !trigged(updated) {
			t.Errorf("a user removes the trigger: %v", err)
		}
	})
}

func TestARecordOfADirectChangeCannotBeRolledBack(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t)
		rel := changed(t, storedRelease(t, h), map[string]any{"type": "Direct", "revision": "rev-2"}, "spec", "trigger")
		h.refuses("roller", changed(t, rel, "Rollback", "spec", "state"), rel, "spec.state", "revert the template")
		h.refuses("pauser", changed(t, rel, "Pause", "spec", "state"), rel, "spec.state", "revert the template")
		if _, _, err := h.write("aborter", changed(t, rel, "Abort", "spec", "state"), rel); err != nil {
			t.Errorf("an abort: %v", err)
		}
	})
}

func TestAStateThatAReleaseCannotHaveIsRefused(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		setup := releaseHub(t)
		ended := changed(t, storedRelease(t, setup), "Succeeded", "status", "phase")
		ended = changed(t, ended, "2026-01-01T11:00:00Z", "status", "endedAt")
		ended = changed(t, ended, []any{map[string]any{"name": "prod", "phase": "Done", "attempt": int64(1),
			"startedAt": "2026-01-01T10:00:00Z", "endedAt": "2026-01-01T11:00:00Z"}}, "status", "stages")
		ended = changed(t, ended, []any{map[string]any{"name": "web", "from": "web-1", "to": "web-2"}}, "status", "targets")
		next := changed(t, storedRelease(t, setup), "2026-01-01T12:00:00Z", "status", "startedAt")
		next.SetName("r2")

		h := releaseHub(t, ended)
		h.refuses("pauser", changed(t, ended, "Pause", "spec", "state"), ended,
			`Release.release.argosy.io "r1" is invalid: spec.state: Forbidden: release r1 has ended: it is Succeeded`)
		h.refuses("aborter", changed(t, ended, "Abort", "spec", "state"), ended, "release r1 has ended")
		h.refuses("pauser", changed(t, ended, "Rollback", "spec", "state"), ended, "you need permission to rollback")
		back, _, err := h.write("roller", changed(t, ended, "Rollback", "spec", "state"), ended)
		if err != nil {
			t.Fatalf("a rollback that is possible: %v", err)
		}
		// A file with state: Run can be applied again.
		if _, warnings, err := h.write("resumer", changed(t, back, "Run", "spec", "state"), back); err != nil ||
			len(warnings) != 1 || !strings.Contains(warnings[0], "release r1 is not paused: it is Succeeded") {
			t.Errorf("the end of a request: %q, %v", warnings, err)
		}

		h = releaseHub(t, ended, next)
		h.refuses("roller", changed(t, ended, "Rollback", "spec", "state"), ended,
			"spec.state: Forbidden: release r1 cannot be rolled back: release r2 of CloneSet web has followed")
		going := next.DeepCopy()
		now := metav1.Now()
		going.SetDeletionTimestamp(&now)
		h = releaseHub(t, ended, going)
		if _, _, err := h.write("roller", changed(t, ended, "Rollback", "spec", "state"), ended); err != nil {
			t.Errorf("a rollback after a release that is being deleted: %v", err)
		}
	})
}

func TestAnApprovalIsForThePresentStateOfItsRelease(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t, storedRelease(t, releaseHub(t)))
		h.may["bob approve releases shop"], h.may["bob approve releases bank"] = true, true
		const present = "the release is at stage prod, attempt 1, revision rev-2"
		for _, c := range []struct {
			field string
			value any
			words []string
		}{
			{"revision", "rev-1", []string{`spec.revision: Invalid value: "rev-1"`, present}},
			{"stage", "test", []string{`spec.stage: Invalid value: "test"`, present}},
			{"attempt", int64(2), []string{`spec.attempt: Invalid value: 2`, present}},
			{"releaseUID", "u-0", []string{"spec.releaseUID", "has the uid u-1"}},
			{"gate", "other", []string{"spec.gate", "stage prod has no gate of this name before it"}},
			{"position", "After", []string{"stage prod has no gate of this name after it"}},
		} {
			h.refuses("bob", changed(t, approvalOf(t, ""), c.value, "spec", c.field), nil, c.words...)
		}
		elsewhere := approvalOf(t, "")
		elsewhere.SetNamespace("bank")
		h.refuses("bob", elsewhere, nil, `spec.release: Not found: "r1"`)
	})
}

func TestAnApprovalCannotBeChanged(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t, storedRelease(t, releaseHub(t)))
		if _, _, err := h.write("admin", approvalOf(t, ""), nil); err == nil {
			t.Fatal("admin is none of those who may approve")
		}
		h.may["bob approve releases shop"] = true
		stored, _, err := h.write("bob", approvalOf(t, ""), nil)
		if err != nil {
			t.Fatal(err)
		}
		stored.SetResourceVersion("1")
		// Another user is not stored, so the same file can be applied again.
		for _, by := range []any{map[string]any{"user": "carol"}, map[string]any{}} {
			again, _, err := h.write("admin", changed(t, stored, by, "spec", "by"), stored)
			if err != nil {
				t.Fatal(err)
			}
			if errs := rulesOf(t, again, stored); len(errs) > 0 {
				t.Errorf("an update that changes nothing: %v", errs)
			}
		}
		for field, value := range map[string]any{"verdict": "Reject", "revision": "rev-3", "comment": "fine"} {
			updated, _, err := h.write("admin", changed(t, stored, value, "spec", field), stored)
			if err != nil {
				t.Fatal(err)
			}
			if errs := rulesOf(t, updated, stored); len(errs) != 1 ||
				!strings.Contains(errs[0], "a ReleaseApproval cannot be changed") {
				t.Errorf("another %s: %v", field, errs)
			}
		}
	})
}

// rulesOf returns the complaints of the CEL rules in the schema of an object about an update.
func rulesOf(t *testing.T, obj, old *unstructured.Unstructured) (complaints []string) {
	t.Helper()
	props, _ := schemaOf(t, obj)
	s, err := structuralschema.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	errs, _ := cel.NewValidator(s, true, celconfig.PerCallLimit).Validate(context.Background(), nil, s, obj.Object,
		old.Object, celconfig.RuntimeCELCostBudget)
	for _, err := range errs {
		complaints = append(complaints, err.Error())
	}
	return complaints
}

func TestOnlyTheHubWritesReleaseRevisions(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := releaseHub(t)
		revision := object(t, `{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseRevision, metadata: {name: web-1, namespace: shop},
			spec: {hash: h, podsHash: h, pods: [{path: spec.template, value: {}}],
			target: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}}}`)
		for _, who := range []string{"alice", "admin"} {
			h.refuses(who, revision, nil, "only the hub writes ReleaseRevisions")
		}
		stored, _, err := h.write(user.APIServerUser, revision, nil)
		if err != nil {
			t.Fatal(err)
		}
		stored.SetResourceVersion("1")
		h.refuses("admin", changed(t, stored, "other", "spec", "hash"), stored, "only the hub writes ReleaseRevisions")
		labelled := stored.DeepCopy()
		labelled.SetLabels(map[string]string{"a": "b"})
		if _, _, err := h.write("admin", labelled, stored); err != nil { // such as by the garbage collector
			t.Error(err)
		}
	})
}
