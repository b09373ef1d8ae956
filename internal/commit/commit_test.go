package commit

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// writes returns a client and the number of its updates.
func writes(t *testing.T, objs ...client.Object) (client.Client, *int) {
	t.Helper()
	s := runtime.NewScheme()
	if err := workv1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	n := new(int)
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithStatusSubresource(&workv1alpha1.Work{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				*n++
				return c.Update(ctx, obj, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object,
				opts ...client.SubResourceUpdateOption) error {
				*n++
				return c.SubResource(sub).Update(ctx, obj, opts...)
			},
		}).Build(), n
}

func read(t *testing.T, c client.Client, name string) *workv1alpha1.Work {
	t.Helper()
	w := &workv1alpha1.Work{}
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "karmada-es-a", Name: name}, w); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestStatusIsWrittenOnlyIfItChanged(t *testing.T) {
	c, n := writes(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-a", Name: "w"}})
	for range 3 {
		was := read(t, c, "w")
		want := was.DeepCopy()
		want.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
		if _, err := Status(context.Background(), c, was, want); err != nil {
			t.Fatal(err)
		}
	}
	if *n != 1 {
		t.Errorf("three equal statuses were written %d times, want 1", *n)
	}
}

func TestStatusSendsOnlyTheStatus(t *testing.T) {
	c, _ := writes(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-a", Name: "w",
		Labels: map[string]string{"a": "b"}},
		Spec: workv1alpha1.WorkSpec{SuspendDispatching: new(true)}})
	var sent *workv1alpha1.Work
	watched := interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object,
			opts ...client.SubResourceUpdateOption) error {
			sent = obj.DeepCopyObject().(*workv1alpha1.Work)
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
	})
	was := read(t, c, "w")
	want := was.DeepCopy()
	want.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	if _, err := Status(context.Background(), watched, was, want); err != nil {
		t.Fatal(err)
	}
	if sent.Labels != nil || sent.Spec.SuspendDispatching != nil || len(sent.Status.Conditions) != 1 ||
		sent.ResourceVersion != was.ResourceVersion {
		t.Errorf("sent %+v, want only the status and the identity", sent)
	}
	now := read(t, c, "w")
	if now.Labels["a"] != "b" || now.Spec.SuspendDispatching == nil || len(now.Status.Conditions) != 1 ||
		want.ResourceVersion != now.ResourceVersion {
		t.Errorf("the server has %+v and %q was returned, want no other change", now, want.ResourceVersion)
	}
}

func TestStatusBasedOnAnOldReadIsStale(t *testing.T) {
	c, _ := writes(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-a", Name: "w"}})
	old := read(t, c, "w")
	newer := old.DeepCopy()
	newer.Labels = map[string]string{"a": "b"}
	if _, err := Update(context.Background(), c, old, newer); err != nil {
		t.Fatal(err)
	}
	want := old.DeepCopy()
	want.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	if _, err := Status(context.Background(), c, old, want); !Stale(err) {
		t.Errorf("writing over an old read gave %v, want a conflict", err)
	}
}

func TestUpdateSkipsUnchangedObjects(t *testing.T) {
	c, n := writes(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-a", Name: "w"}})
	was := read(t, c, "w")
	if wrote, err := Update(context.Background(), c, was, was.DeepCopy()); wrote || err != nil || *n != 0 {
		t.Errorf("wrote=%v err=%v after %d writes, want none", wrote, err, *n)
	}
}

func TestDeleteHasThePreconditionOfTheReadUID(t *testing.T) {
	c, _ := writes(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-a", Name: "w", UID: "seen"}})
	// The fake server ignores preconditions, so the test reads them from the request.
	var named types.UID
	watched := interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			var o client.DeleteOptions
			o.ApplyOptions(opts)
			if o.Preconditions != nil && o.Preconditions.UID != nil {
				named = *o.Preconditions.UID
			}
			return apierrors.NewConflict(workv1alpha1.Resource("works"), "w", errors.New("another UID"))
		},
	})
	if err := Delete(context.Background(), watched, read(t, c, "w")); err != nil {
		t.Errorf("a later object of the same name: error %v, want none", err)
	}
	if named != "seen" {
		t.Errorf("the deletion named UID %q, want the one that was read", named)
	}
}

// The API refuses a status with a message of more than 32768 characters.
func TestStatusCutsLongMessages(t *testing.T) {
	c, n := writes(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-a", Name: "w"}})
	for range 2 {
		was := read(t, c, "w")
		want := was.DeepCopy()
		want.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse,
			Message: strings.Repeat("é", 100_000)},
			{Type: workv1alpha1.WorkProgressing, Status: metav1.ConditionTrue, Message: "short"}}
		if _, err := Status(context.Background(), c, was, want); err != nil {
			t.Fatal(err)
		}
	}
	got := read(t, c, "w").Status.Conditions
	if len(got) != 2 || len(got[0].Message) > 32768 || !strings.HasPrefix(got[0].Message, "éé") ||
		!strings.HasSuffix(got[0].Message, "…") || got[1].Message != "short" {
		t.Errorf("written are %.200v", got)
	}
	if *n != 1 {
		t.Errorf("the same was written %d times, want once", *n)
	}
}
