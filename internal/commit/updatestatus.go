package commit

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UpdateWithStatus updates want as Update does. If the server runs in this process, it stores the status in the same
// write, see AddStatus. status returns the wanted status at a generation, as a pointer to the kind's status type; it
// may be called more than once. withStatus reports whether the status was stored too.
func UpdateWithStatus(ctx context.Context, c client.Client, read, want client.Object,
	status func(generation int64) any) (wrote, withStatus bool, err error) {
	s := &statusWrite{status: status,
		matches: func(obj *unstructured.Unstructured) bool { return obj.GetUID() == read.GetUID() }}
	wrote, err = Update(context.WithValue(ctx, statusKey{}, s), c, read, want)
	return wrote, wrote && s.stored, err
}

// Create creates want. If the server runs in this process, it stores the status of want in the same write, see
// AddStatus. Other servers drop the status. want then is what was stored.
func Create(ctx context.Context, c client.Client, want client.Object) error {
	kind, name, namespace := reflect.TypeOf(want).Elem().Name(), want.GetName(), want.GetNamespace()
	status := reflect.New(statusOf(want).Type())
	status.Elem().Set(statusOf(want))
	s := &statusWrite{
		matches: func(obj *unstructured.Unstructured) bool {
			return obj.GetKind() == kind && obj.GetName() == name && obj.GetNamespace() == namespace
		},
		status: func(int64) any { return status.Interface() },
	}
	if !status.Elem().IsZero() {
		ctx = context.WithValue(ctx, statusKey{}, s)
	}
	if err := c.Create(ctx, want); err != nil {
		return fmt.Errorf("create %s: %w", Name(want), err)
	}
	if !s.stored {
		statusOf(want).SetZero()
	}
	return nil
}

// statusWrite is the status that belongs to a write. It travels in the context, which no client outside of this process
// can set.
type statusWrite struct {
	// matches reports whether an object is the one that is written: a server may write others for a request.
	matches func(*unstructured.Unstructured) bool
	status  func(generation int64) any
	stored  bool
}

type statusKey struct{}

// StatusContextKey is the context key under which UpdateWithStatus and Create pass the status to AddStatus. A transport
// to the server of this process that passes only some context values must pass this one.
var StatusContextKey any = statusKey{}

// AddStatus sets the status that belongs to a write in the object that the server of this process is about to store,
// with its new generation.
func AddStatus(ctx context.Context, obj *unstructured.Unstructured) error {
	s, ok := ctx.Value(statusKey{}).(*statusWrite)
	if !ok || !s.matches(obj) {
		return nil
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.status(obj.GetGeneration()))
	if err != nil {
		return fmt.Errorf("convert the status of %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	obj.Object["status"] = status
	s.stored = true
	return nil
}
