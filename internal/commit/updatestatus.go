package commit

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UpdateWithStatus updates want as Update does. If the server runs in this process, it stores the status in the same
// write, see AddStatus. status returns the wanted status at a generation, as a pointer to the kind's status type; it
// may be called more than once. withStatus reports whether the status was stored too.
func UpdateWithStatus(ctx context.Context, c client.Client, read, want client.Object,
	status func(generation int64) any) (wrote, withStatus bool, err error) {
	s := &statusUpdate{uid: read.GetUID(), status: status}
	wrote, err = Update(context.WithValue(ctx, statusKey{}, s), c, read, want)
	return wrote, wrote && s.stored, err
}

// statusUpdate is the status that belongs to an update. It travels in the context, which no client outside of this
// process can set.
type statusUpdate struct {
	uid    types.UID
	status func(generation int64) any
	stored bool
}

type statusKey struct{}

// StatusContextKey is the context key under which UpdateWithStatus passes the status to AddStatus. A transport to the
// server of this process that passes only some context values must pass this one.
var StatusContextKey any = statusKey{}

// AddStatus sets the status that belongs to an update in the object that the server of this process is about to store
// with its new generation.
func AddStatus(ctx context.Context, obj *unstructured.Unstructured) error {
	s, ok := ctx.Value(statusKey{}).(*statusUpdate)
	if !ok || obj.GetUID() != s.uid {
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
