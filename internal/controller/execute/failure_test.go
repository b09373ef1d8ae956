package execute

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestFailureReasonComesFromTheError(t *testing.T) {
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: `admission webhook "w" denied the request: cluster is not reachable: no answer in time; Unauthorized; resource(kind=a) is forbidden: User "x"`}}
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c",
		errors.New("it is terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for want, errs := range map[string][]error{
		workv1alpha1.ReasonClusterNotReady: {&awayError{cluster: "m1", why: "ClusterNotReachable"},
			fmt.Errorf("apply: %w", member.ErrNotOwner)},
		workv1alpha1.ReasonObjectUnmanaged: {&conflictError{execute.Action{Reason: "exists", Unmanaged: true}}},
		workv1alpha1.ReasonObjectOfAnother: {&conflictError{execute.Action{Reason: "belongs to another"}}},
		workv1alpha1.ReasonKindNotServed:   {fmt.Errorf("get: %w", member.ErrKindNotServed)},
		workv1alpha1.ReasonNamespaceMissing: {
			fmt.Errorf("create: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop")),
			fmt.Errorf("create: %w", terminating)},
		workv1alpha1.ReasonUnauthorized: {fmt.Errorf("apply: %w", apierrors.NewUnauthorized("Unauthorized"))},
		workv1alpha1.ReasonForbidden:    {fmt.Errorf("apply: %w", forbidden)},
		workv1alpha1.ReasonRejected: {fmt.Errorf("apply: %w", invalid), fmt.Errorf("apply: %w", denied),
			apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "namespaces \"shop\" not found")},
		workv1alpha1.ReasonServerError: {fmt.Errorf("apply: %w",
			apierrors.NewInternalError(errors.New("failed calling webhook"))),
			fmt.Errorf("apply: %w", apierrors.NewTooManyRequests("busy", 1)),
			fmt.Errorf("apply: %w", apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "c", nil))},
		workv1alpha1.ReasonNotSent: {&hubError{fmt.Errorf("read its secret: %w", forbidden)}, errors.New("Unauthorized"),
			errors.New("cluster is not reachable: no answer in time")},
	} {
		for _, err := range errs {
			if reason, message := failureOf(err); reason != want || message != err.Error() {
				t.Errorf("%q has reason %s and message %q, want %s", err, reason, message, want)
			}
		}
	}
}

func TestFailureIsRecordedUntilTheWorkIsApplied(t *testing.T) {
	t.Parallel()
	other := membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "demo.io", Version: "v1", Kind: "Thing"},
		Plural: "things", Namespaced: true}
	for want, c := range map[string]struct {
		kind    membertest.Kind
		fail    func(w *world) (mend func())
		message string
	}{
		workv1alpha1.ReasonRejected: {membertest.ConfigMap, func(w *world) func() {
			return w.refuses(membertest.ConfigMap, invalid)
		},
			`create ConfigMap shop/c in cluster "m1": ConfigMap "c" is invalid`},
		workv1alpha1.ReasonUnreachable: {membertest.ConfigMap, func(w *world) func() {
			w.applied(w.work(manifest(controllertest.ClusterRole, "", "1")))
			w.m1.Down(true)
			return func() { w.m1.Down(false) }
		}, "cluster is not reachable: "},
		workv1alpha1.ReasonObjectUnmanaged: {membertest.ConfigMap, func(w *world) func() {
			w.m1.Put(manifest(membertest.ConfigMap, "shop", "theirs"))
			return func() { w.m1.Remove(membertest.ConfigMap, "shop", "c") }
		}, "resource(kind=ConfigMap, shop/c) already exists"},
		workv1alpha1.ReasonKindNotServed: {other, func(w *world) func() { return func() { w.m1.Serve(other) } },
			`cluster "m1" does not serve the kind Thing of demo.io/v1`},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				mend := c.fail(w)
				work := w.work(manifest(c.kind, "shop", "1"))
				failure := w.condition(work, workv1alpha1.WorkFailure, metav1.ConditionTrue)
				if failure.Reason != want || len(failure.Message) < len(c.message) ||
					failure.Message[:len(c.message)] != c.message {
					t.Errorf("the failure is %s: %s, want %s: %s", failure.Reason, failure.Message, want, c.message)
				}
				if !meta.IsStatusConditionFalse(work.Status.Conditions, workv1alpha1.WorkApplied) {
					t.Errorf("Applied is not False: %+v", work.Status.Conditions)
				}
				mend()
				w.applied(work)
				if failure := execute.FailureOf(work); failure != nil {
					t.Errorf("the work is applied, and has the failure %+v", failure)
				}
			})
		})
	}
}
