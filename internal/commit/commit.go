// Package commit is the only code that writes to the hub on behalf of controllers: it writes nothing when nothing
// changed, and tells errors that another look will mend from those that a user must see. What to write is decided by
// the core.
package commit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/text"
)

// Status writes the status of want unless it equals that of read, the object as it was last read. It reports whether it
// wrote; want carries the new resourceVersion then. Nothing else of want is sent: the server takes the rest from what
// it has, and to take apart a whole object to throw most of it away is a good part of the cost. A condition's message
// that the API would refuse is cut, since the refusal would keep all else from being told.
func Status(ctx context.Context, c client.Client, read, want client.Object) (bool, error) {
	storable(statusOf(want))
	if equality.Semantic.DeepEqual(statusOf(read).Interface(), statusOf(want).Interface()) {
		return false, nil
	}
	sent := reflect.New(reflect.TypeOf(want).Elem()).Interface().(client.Object)
	sent.GetObjectKind().SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
	sent.SetNamespace(want.GetNamespace())
	sent.SetName(want.GetName())
	sent.SetUID(want.GetUID())
	sent.SetResourceVersion(read.GetResourceVersion())
	statusOf(sent).Set(statusOf(want))
	if err := c.Status().Update(ctx, sent); err != nil {
		return false, fmt.Errorf("write status of %s: %w", Name(want), err)
	}
	want.SetResourceVersion(sent.GetResourceVersion())
	return true, nil
}

// Update writes want unless it equals read, the object as it was last read. The status is not compared and not written.
func Update(ctx context.Context, c client.Client, read, want client.Object) (bool, error) {
	want.SetResourceVersion(read.GetResourceVersion())
	if equality.Semantic.DeepEqual(read, want) {
		return false, nil
	}
	if err := c.Update(ctx, want); err != nil {
		return false, fmt.Errorf("update %s: %w", Name(want), err)
	}
	return true, nil
}

// RemoveFinalizer lets an object go; an object that is gone already is no error.
func RemoveFinalizer(ctx context.Context, c client.Client, read client.Object, finalizers ...string) error {
	want := read.DeepCopyObject().(client.Object)
	want.SetFinalizers(slices.DeleteFunc(want.GetFinalizers(), func(f string) bool {
		return slices.Contains(finalizers, f)
	}))
	if len(want.GetFinalizers()) == len(read.GetFinalizers()) {
		return nil
	}
	if err := c.Update(ctx, want); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer %s from %s: %w", strings.Join(finalizers, ", "), Name(want), err)
	}
	return nil
}

// Delete deletes exactly the object that was read, not one that took its name since; one that is gone already is no
// error. The deletion of a Work is marked as the hub's order in the same write, see execute.Ordered, also if somebody
// else has deleted it before.
func Delete(ctx context.Context, c client.Client, read client.Object) error {
	work, is := read.(*workv1alpha1.Work)
	if read.GetDeletionTimestamp() != nil && (!is || execute.Ordered(work)) {
		return nil
	}
	uid := read.GetUID()
	options := []client.DeleteOption{client.Preconditions{UID: &uid}}
	if is {
		options = append(options, client.PropagationPolicy(metav1.DeletePropagationForeground))
	}
	err := c.Delete(ctx, read, options...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", Name(read), err)
	}
	return nil
}

// Absent says that an object is not there, of a kind that is served: the answer to an address that nobody serves is
// "not found", too.
func Absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

const (
	// StaleRetry is when to requeue after an error that is Stale: the cache is milliseconds behind the API server.
	StaleRetry = 20 * time.Millisecond
	// SlowRetry is when to requeue after an error that is Stale, or for an object that is not found, where the event of
	// the newer state usually arrives first.
	SlowRetry = 200 * time.Millisecond
)

// Stale reports whether an error comes from a read of an old state. The next event, or another read, mends it.
func Stale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// Requeue returns the result of a reconciliation: after, or StaleRetry if err is Stale.
func Requeue(after time.Duration, err error) (reconcile.Result, error) {
	if Stale(err) {
		return reconcile.Result{RequeueAfter: StaleRetry}, nil
	}
	return reconcile.Result{RequeueAfter: after}, err
}

// NamespaceMissing says whether an object was refused because its namespace is not there, or is going.
func NamespaceMissing(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces"
}

// Name is how messages call an object: "ResourceBinding ns/name", without the namespace where there is none.
func Name(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(obj).Elem().Name()
	}
	if ns := obj.GetNamespace(); ns != "" {
		return kind + " " + ns + "/" + obj.GetName()
	}
	return kind + " " + obj.GetName()
}

// storable cuts, in place, the messages of a status's conditions that the API would refuse.
func storable(status reflect.Value) {
	field := status.FieldByName("Conditions")
	if !field.IsValid() {
		return
	}
	conditions, _ := field.Interface().([]metav1.Condition)
	for i := range conditions {
		conditions[i].Message = text.Message(conditions[i].Message)
	}
}

// statusOf is the field Status of an API type; all of ours that have a status have that field.
func statusOf(obj client.Object) reflect.Value {
	v := reflect.ValueOf(obj).Elem().FieldByName("Status")
	if !v.IsValid() {
		panic(fmt.Sprintf("%T has no status", obj))
	}
	return v
}
