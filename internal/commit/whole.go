package commit

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Whole updates want as Update does, and has the status written with it, in one write, where the server that is asked
// takes it: the one of this process does, see Amend. status is what is to stand there at a generation, as a pointer to
// the kind's own type; it may be asked more than once. whole reports whether the status was written, too.
func Whole(ctx context.Context, c client.Client, read, want client.Object,
	status func(generation int64) any) (wrote, whole bool, err error) {
	s := &companion{uid: read.GetUID(), status: status}
	wrote, err = Update(context.WithValue(ctx, companionKey{}, s), c, read, want)
	return wrote, wrote && s.taken, err
}

// companion is the status that goes with an update. It travels in the context, which no client outside of this process
// can forge.
type companion struct {
	uid    types.UID
	status func(generation int64) any
	taken  bool
}

type companionKey struct{}

// ContextKey is the key under which Whole passes the status to Amend in a context. A transport to the server of this
// process that passes few values has to pass this one.
var ContextKey any = companionKey{}

// Amend is for the server of this process: it puts the status that goes with an update into the object that is about to
// be stored, with its new generation.
func Amend(ctx context.Context, obj *unstructured.Unstructured) error {
	s, ok := ctx.Value(companionKey{}).(*companion)
	if !ok || obj.GetUID() != s.uid {
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
