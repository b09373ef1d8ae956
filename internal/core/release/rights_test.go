package release_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

// releaseAtProd is a release that waits for an approval before its stage prod.
func releaseAtProd(t *testing.T) *releasev1alpha1.Release {
	t.Helper()
	r := &releasev1alpha1.Release{}
	if err := yaml.UnmarshalStrict([]byte(`
metadata: {name: r1, namespace: shop, uid: u-1}
spec:
  createdBy: {user: alice, groups: [developers]}
  targets: [{name: web, ref: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}}]
  strategyRef: {name: s}
status:
  phase: Running
  revision: rev-2
  strategy:
    stages:
    - {name: test}
    - name: prod
      before: [{name: sign, approval: {notAuthor: true, from: [{kind: User, name: alice}, {kind: User, name: bob},
        {kind: Group, name: leads}, {kind: ServiceAccount, name: ci}]}}, {name: check}, {name: late}]
      after: [{name: accept}]
  stages:
  - {name: test, phase: Done, attempt: 1, endedAt: "2026-01-01T00:00:00Z"}
  - name: prod
    phase: Gated
    attempt: 2
    gates: [{name: sign, position: Before, phase: Waiting}, {name: check, position: Before, phase: Passed}]
`), r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEachChangeOfAReleaseNeedsItsVerb(t *testing.T) {
	const skip, retry = releasev1alpha1.SkipStageAnnotation, releasev1alpha1.RetryAnnotation
	annotated := func(key, value string) func(*releasev1alpha1.Release) {
		return func(r *releasev1alpha1.Release) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value) }
	}
	state := func(s releasev1alpha1.ReleaseState) func(*releasev1alpha1.Release) {
		return func(r *releasev1alpha1.Release) { r.Spec.State = s }
	}
	for _, c := range []struct {
		name    string
		was, is func(*releasev1alpha1.Release)
		verbs   []string
	}{
		{"nothing", state(""), state(releasev1alpha1.StateRun), nil},
		{"pause", state(releasev1alpha1.StateRun), state(releasev1alpha1.StatePause), []string{"pause"}},
		{"resume", state(releasev1alpha1.StatePause), state(""), []string{"resume"}},
		{"abort", state(""), state(releasev1alpha1.StateAbort), []string{"abort"}},
		{"rollback", state(releasev1alpha1.StateAbort), state(releasev1alpha1.StateRollback), []string{"rollback"}},
		{"skip", state(""), annotated(skip, "prod@1"), []string{"skip"}},
		{"another skip", annotated(skip, "test@1"), annotated(skip, "prod@1"), []string{"skip"}},
		{"no skip any more", annotated(skip, "prod@1"), state(""), []string{"skip"}},
		{"the same skip", annotated(skip, "prod@1"), annotated(skip, "prod@1"), nil},
		{"retry", state(""), annotated(retry, "prod@1"), []string{"retry"}},
		{"pause with a reason", annotated(releasev1alpha1.ReleaseReasonAnnotation, "a"), func(r *releasev1alpha1.Release) {
			annotated(releasev1alpha1.ReleaseReasonAnnotation, "b")(r)
			r.Spec.State = releasev1alpha1.StatePause
		}, []string{"pause"}},
		{"a reason alone", state(""), annotated(releasev1alpha1.ReleaseReasonAnnotation, "b"), []string{"update"}},
		{"another annotation", state(""), annotated("a", "b"), []string{"update"}},
		{"a label", state(""), func(r *releasev1alpha1.Release) { r.Labels = map[string]string{"a": "b"} },
			[]string{"update"}},
		{"a finalizer", func(r *releasev1alpha1.Release) { r.Finalizers = []string{"a"} }, state(""), []string{"update"}},
		{"supersede", state(""), func(r *releasev1alpha1.Release) { r.Spec.Supersede = releasev1alpha1.SupersedeReplace },
			[]string{"update"}},
		{"targets with a pause", state(""), func(r *releasev1alpha1.Release) {
			r.Spec.Targets[0].Ref.Name, r.Spec.State = "bank", releasev1alpha1.StatePause
		}, []string{"pause", "update"}},
		{"what the API server sets", state(""), func(r *releasev1alpha1.Release) {
			r.Generation, r.ResourceVersion, r.ManagedFields = 2, "2", []metav1.ManagedFieldsEntry{{Manager: "a"}}
			r.Status = releasev1alpha1.ReleaseStatus{}
		}, nil},
	} {
		old, r := releaseAtProd(t), releaseAtProd(t)
		c.was(old)
		c.is(r)
		var verbs []string
		for _, right := range release.RightsFor(old, r) {
			verbs = append(verbs, right.Verb)
		}
		if !slices.Equal(verbs, c.verbs) {
			t.Errorf("%s needs the verbs %v, want %v", c.name, verbs, c.verbs)
		}
	}

	r := releaseAtProd(t)
	r.Spec.State = releasev1alpha1.StatePause
	if rights := release.RightsFor(nil, r); len(rights) > 0 {
		t.Errorf("a new release that is paused needs %v", rights)
	}
	annotated(skip, "prod@1")(r)
	if rights := release.RightsFor(nil, r); len(rights) != 1 || rights[0].Verb != "skip" {
		t.Errorf("a new release that skips a stage needs %v, want skip", rights)
	}
}

func TestSkipAndRetryNameTheStageUnderWay(t *testing.T) {
	for _, c := range []struct {
		annotation, value string
		change            func(*releasev1alpha1.Release)
		want              string
	}{
		{releasev1alpha1.SkipStageAnnotation, "prod@2", nil, ""},
		{releasev1alpha1.SkipStageAnnotation, "prod@1", nil, "must be prod@2: the release is at stage prod, attempt 2"},
		{releasev1alpha1.SkipStageAnnotation, "test@1", nil, "must be prod@2"},
		{releasev1alpha1.RetryAnnotation, "prod@2", nil, "stage prod has not failed: it is Gated"},
		{releasev1alpha1.RetryAnnotation, "prod@2", func(r *releasev1alpha1.Release) {
			r.Status.Phase, r.Status.Stages[1].Phase = releasev1alpha1.ReleasePaused, releasev1alpha1.StageFailed
		}, ""},
		{releasev1alpha1.SkipStageAnnotation, "prod@2", func(r *releasev1alpha1.Release) {
			r.Status.Phase = releasev1alpha1.ReleaseAborted
		}, "no stage is under way: the release is Aborted"},
		{releasev1alpha1.SkipStageAnnotation, "prod@2", func(r *releasev1alpha1.Release) {
			r.Status = releasev1alpha1.ReleaseStatus{}
		}, "the release has not started"},
	} {
		old := releaseAtProd(t)
		if c.change != nil {
			c.change(old)
		}
		r := old.DeepCopy()
		r.Annotations = map[string]string{c.annotation: c.value, releasev1alpha1.ReleaseReasonAnnotation: "a"}
		err := release.CheckAnnotations(old, r).ToAggregate()
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s in %s: %v, want %q", c.annotation, c.value, old.Status.Phase, err, c.want)
		}
		if err := release.CheckAnnotations(r, r).ToAggregate(); err != nil {
			t.Errorf("%s: %s is checked again: %v", c.annotation, c.value, err)
		}
	}
	for _, key := range []string{releasev1alpha1.SkipStageAnnotation, releasev1alpha1.RetryAnnotation} {
		old := releaseAtProd(t)
		old.Status.Stages[1].Phase = releasev1alpha1.StageFailed
		r := old.DeepCopy()
		r.Annotations = map[string]string{key: "prod@2"}
		if err := release.CheckAnnotations(old, r).ToAggregate(); err == nil ||
			!strings.Contains(err.Error(), "metadata.annotations[argosy.io/release-reason]: Required value") {
			t.Errorf("%s without a reason: %v", key, err)
		}
	}
	if release.CheckAnnotations(nil, &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{releasev1alpha1.SkipStageAnnotation: "prod@1"}}}).ToAggregate() == nil {
		t.Error("a new release skips a stage")
	}
}

func TestAnApprovalIsForWhatTheReleaseWaitsFor(t *testing.T) {
	const present = "the release is at stage prod, attempt 2, revision rev-2, and has the uid u-1"
	for _, c := range []struct {
		name   string
		change func(*releasev1alpha1.Release, *releasev1alpha1.ReleaseApprovalSpec)
		want   []string
	}{
		{"all is right", func(*releasev1alpha1.Release, *releasev1alpha1.ReleaseApprovalSpec) {}, nil},
		{"a former release of the name", func(_ *releasev1alpha1.Release, a *releasev1alpha1.ReleaseApprovalSpec) {
			a.ReleaseUID = "u-0"
		}, []string{"spec.releaseUID", "u-0", present}},
		{"another revision", func(_ *releasev1alpha1.Release, a *releasev1alpha1.ReleaseApprovalSpec) {
			a.Revision = "rev-1"
		}, []string{"spec.revision", "rev-1", present}},
		{"another stage", func(_ *releasev1alpha1.Release, a *releasev1alpha1.ReleaseApprovalSpec) {
			a.Stage = "test"
		}, []string{"spec.stage", present}},
		{"a former attempt", func(_ *releasev1alpha1.Release, a *releasev1alpha1.ReleaseApprovalSpec) {
			a.Attempt = 0
		}, []string{"spec.attempt", present}},
		{"no such gate", func(_ *releasev1alpha1.Release, a *releasev1alpha1.ReleaseApprovalSpec) {
			a.Gate = "accept"
		}, []string{"spec.gate", "stage prod has no gate of this name before it"}},
		{"a gate that is not open", func(_ *releasev1alpha1.Release, a *releasev1alpha1.ReleaseApprovalSpec) {
			a.Gate, a.Position = "accept", releasev1alpha1.GateAfter
		}, []string{"the gate does not wait for approvals yet: stage prod is Gated"}},
		{"a gate that has passed", func(_ *releasev1alpha1.Release, a *releasev1alpha1.ReleaseApprovalSpec) {
			a.Gate = "check"
		}, []string{"the gate does not wait for approvals any more: it is Passed"}},
		{"a release that has ended", func(r *releasev1alpha1.Release, _ *releasev1alpha1.ReleaseApprovalSpec) {
			r.Status.Phase = releasev1alpha1.ReleaseRolledBack
		}, []string{"spec.release", "no stage is under way: the release is RolledBack"}},
		{"a release that has not started", func(r *releasev1alpha1.Release, _ *releasev1alpha1.ReleaseApprovalSpec) {
			r.Status = releasev1alpha1.ReleaseStatus{}
		}, []string{"the release has not started"}},
	} {
		r := releaseAtProd(t)
		a := &releasev1alpha1.ReleaseApproval{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"},
			Spec: releasev1alpha1.ReleaseApprovalSpec{Release: "r1", ReleaseUID: "u-1", Revision: "rev-2", Stage: "prod",
				Gate: "sign", Attempt: 2}}
		c.change(r, &a.Spec)
		gate, err := release.CheckApproval(r, a)
		if (err == nil) != (len(c.want) == 0) || (gate == nil) != (err != nil) {
			t.Errorf("%s: %v, gate %v", c.name, err, gate)
		}
		for _, want := range c.want {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: %q does not say %q", c.name, err, want)
			}
		}
	}
}

func TestAGateSaysWhoMayApprove(t *testing.T) {
	r := releaseAtProd(t)
	rule := r.Status.Strategy.Stages[1].Before[0].Approval
	for _, c := range []struct {
		by   releasev1alpha1.ReleaseUser
		want string
	}{
		{releasev1alpha1.ReleaseUser{User: "bob"}, ""},
		{releasev1alpha1.ReleaseUser{User: "carol", Groups: []string{"leads"}}, ""},
		{releasev1alpha1.ReleaseUser{User: "system:serviceaccount:shop:ci"}, ""},
		{releasev1alpha1.ReleaseUser{User: "system:serviceaccount:bank:ci"}, "is none of those who may approve"},
		{releasev1alpha1.ReleaseUser{User: "alice", Groups: []string{"leads"}},
			"alice created the release: another user must approve it"},
		{releasev1alpha1.ReleaseUser{User: "dave", Groups: []string{"developers"}},
			"dave is none of those who may approve at this gate: User alice, User bob, Group leads, ServiceAccount ci"},
	} {
		if why := release.MayApprove(r, rule, c.by); c.want == "" && why != "" || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want %q", c.by.User, why, c.want)
		}
	}
	if why := release.MayApprove(r, nil, releasev1alpha1.ReleaseUser{User: "alice"}); why != "" {
		t.Errorf("without a rule: %s", why)
	}
}
