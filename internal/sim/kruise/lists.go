package kruise

import (
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// listOf returns an empty list of a kind.
func listOf(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list
}

// requests asks for everything in the list.
func requests(list *unstructured.UnstructuredList) []reconcile.Request {
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return out
}

func pointers[T any](items []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range items {
			if !yield(&items[i]) {
				return
			}
		}
	}
}

// merged returns a with b over it.
func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}
