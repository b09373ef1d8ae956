// Package commit writes to the hub for all controllers. It writes nothing if nothing changed, and it separates errors
// that a retry resolves from errors that a user must see. The core decides what to write.
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
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Status writes the status of want unless it equals the status of read, the object as it was last read. It reports
// whether it wrote; want then has the new resourceVersion. It sends only the status: the server ignores the rest, and
// to decode a whole object is expensive. It cuts messages of conditions to the length that the API accepts.
func Status(ctx context.Context, c client.Client, read, want client.Object) (bool, error) {
	cutMessages(statusOf(want))
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

// Update writes want unless it equals read, the object as it was last read. The server ignores the status. It reports
// whether it wrote.
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

// RemoveFinalizer removes finalizers from an object. It is no error if the object does not exist any more.
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

// Recall ends the deletion of a Work that the hub sends again, without an effect on the member: see
// execute.Recallable.
func Recall(ctx context.Context, c client.Client, read *workv1alpha1.Work) error {
	return RemoveFinalizer(ctx, c, read, workv1alpha2.ExecutionFinalizer, execute.OrderedFinalizer)
}

// Delete deletes the object that was read, but no later object of the same name. It is no error if the object does not
// exist any more. The deletion of a Work is marked as requested by the hub in the same write, see execute.Ordered, also
// if another user has deleted the Work before.
func Delete(ctx context.Context, c client.Client, read client.Object) error {
	work, isWork := read.(*workv1alpha1.Work)
	if read.GetDeletionTimestamp() != nil && (!isWork || execute.Ordered(work)) {
		return nil
	}
	uid := read.GetUID()
	options := []client.DeleteOption{client.Preconditions{UID: &uid}}
	if isWork && len(read.GetFinalizers()) > 0 { // the mark alone would keep a Work without finalizers
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

// DeleteEach deletes each object as Delete does, whatever became of the others.
func DeleteEach[T client.Object](ctx context.Context, c client.Client, objects []T) error {
	errs := make([]error, len(objects))
	for i, obj := range objects {
		errs[i] = Delete(ctx, c, obj)
	}
	return errors.Join(errs...)
}

// DeleteAll deletes objects by their names. It is no error if they do not exist.
func DeleteAll[T client.Object](ctx context.Context, c client.Client, objects []T) error {
	for _, obj := range objects {
		if err := c.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s: %w", Name(obj), err)
		}
	}
	return nil
}

// Absent reports whether an error means that an object does not exist. It is false if the server does not serve the
// kind, which is "not found" too.
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

// Stale reports whether a write failed because it was based on an old state. The next event or read resolves it.
func Stale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// Transient reports whether a write that failed probably succeeds soon without a change: it was based on an old state,
// or the server is busy or does not answer.
func Transient(err error) bool {
	return Stale(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err)
}

// Requeue returns the result of a reconciliation: after, or StaleRetry if err is Stale.
func Requeue(after time.Duration, err error) (reconcile.Result, error) {
	if Stale(err) {
		return reconcile.Result{RequeueAfter: StaleRetry}, nil
	}
	return reconcile.Result{RequeueAfter: after}, err
}

// CreateInNamespace creates an object, and before it its namespace if that is missing.
func CreateInNamespace(ctx context.Context, c client.Client, obj client.Object, space *corev1.Namespace) error {
	err := c.Create(ctx, obj)
	if !apierrors.IsNotFound(err) || !NamespaceMissing(err) {
		return err
	}
	if err := c.Create(ctx, space); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", space.Name, err)
	}
	return c.Create(ctx, obj)
}

// NamespaceMissing reports whether an object was refused because its namespace does not exist or is being deleted.
func NamespaceMissing(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces"
}

// Name returns the name of an object for messages: "ResourceBinding ns/name", or "Cluster name" without a namespace.
func Name(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(obj).Elem().Name()
	}
	return text.Object(kind, obj.GetNamespace(), obj.GetName())
}

// cutMessages cuts the messages of a status's conditions to the length that the API accepts, in place.
func cutMessages(status reflect.Value) {
	field := status.FieldByName("Conditions")
	if !field.IsValid() {
		return
	}
	conditions, _ := field.Interface().([]metav1.Condition)
	for i := range conditions {
		conditions[i].Message = text.Message(conditions[i].Message)
	}
}

// statusOf returns the field Status of an API type. It panics if there is none.
func statusOf(obj client.Object) reflect.Value {
	v := reflect.ValueOf(obj).Elem().FieldByName("Status")
	if !v.IsValid() {
		panic(fmt.Sprintf("%T has no status", obj))
	}
	return v
}
