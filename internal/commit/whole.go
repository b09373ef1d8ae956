package commit

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Whole updates want as Update does, and has the status written with it, in one write, where the server that is asked
// takes it: the one of this process does, see Amend. status is what is to stand there at a generation, as a pointer to
// the kind's own type; it may be asked more than once. whole reports whether the status was written, too.
func Whole(ctx context.Context, c client.Client, read, want client.Object,
	status func(generation int64) any) (wrote, whole bool, err error) {
	s := &companion{status: status,
		matches: func(obj *unstructured.Unstructured) bool { return obj.GetUID() == read.GetUID() }}
	wrote, err = Update(context.WithValue(ctx, companionKey{}, s), c, read, want)
	return wrote, wrote && s.taken, err
}

// Create creates want, and writes its status with it, in one write, where the server that is asked takes it, see Amend.
// Other servers drop the status. want has what was stored.
func Create(ctx context.Context, c client.Client, want client.Object) error {
	kind, name, namespace := reflect.TypeOf(want).Elem().Name(), want.GetName(), want.GetNamespace()
	status := reflect.New(statusOf(want).Type())
	status.Elem().Set(statusOf(want))
	s := &companion{
		matches: func(obj *unstructured.Unstructured) bool {
			return obj.GetKind() == kind && obj.GetName() == name && obj.GetNamespace() == namespace
		},
		status: func(int64) any { return status.Interface() },
	}
	if !status.Elem().IsZero() {
		ctx = context.WithValue(ctx, companionKey{}, s)
	}
	if err := c.Create(ctx, want); err != nil {
		return fmt.Errorf("create %s: %w", Name(want), err)
	}
	if !s.taken {
		statusOf(want).SetZero()
	}
	return nil
}

// companion is the status that goes with a write. It travels in the context, which no client outside of this process
// can forge.
type companion struct {
	// matches reports whether an object is the one that is written, since a server may write others for a request.
	matches func(*unstructured.Unstructured) bool
	status  func(generation int64) any
	taken   bool
}

type companionKey struct{}

// ContextKey is the key under which Whole passes the status to Amend in a context. A transport to the server of this
// process that passes few values has to pass this one.
var ContextKey any = companionKey{}

// Amend is for the server of this process: it puts the status that goes with a write into the object that is about to
// be stored, with its new generation.
func Amend(ctx context.Context, obj *unstructured.Unstructured) error {
	s, ok := ctx.Value(companionKey{}).(*companion)
	if !ok || !s.matches(obj) {
		return nil
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.status(obj.GetGeneration()))
	if err != nil {
		return fmt.Errorf("write the status of %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	obj.Object["status"] = status
	s.taken = true
	return nil
}
