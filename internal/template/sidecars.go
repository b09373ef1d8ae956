package template

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/source/dependency"
)

// sidecars caches each parsed SidecarSet for all workloads.
type sidecars struct {
	mu   sync.Mutex
	read map[types.UID]readSidecars
}

type readSidecars struct {
	version string
	dependency.Sidecars
	counts bool
}

// SidecarSets returns the SidecarSets of the hub that inject containers, in no order. It does not start a watch:
// without one it returns none. It omits invalid ones, which members reject and whose status reports the error.
func (s *Store) SidecarSets() []dependency.Sidecars {
	if !s.Wanted(dependency.SidecarSetKind) {
		return nil
	}
	objs := s.List(dependency.SidecarSetKind, "", nil)
	s.sidecars.mu.Lock()
	defer s.sidecars.mu.Unlock()
	now := make(map[types.UID]readSidecars, len(objs))
	var out []dependency.Sidecars
	for _, obj := range objs {
		r, known := s.sidecars.read[obj.GetUID()]
		if !known || r.version != obj.GetResourceVersion() {
			r = readSidecars{version: obj.GetResourceVersion()}
			r.Sidecars, r.counts, _ = dependency.SidecarsOf(obj)
		}
		now[obj.GetUID()] = r
		if r.counts {
			out = append(out, r.Sidecars)
		}
	}
	s.sidecars.read = now
	return out
}

// Injecting returns the SidecarSets that inject into pods of a workload, sorted by name. namespaces is a cache for the
// labels of the namespace.
func (s *Store) Injecting(ctx context.Context, namespaces client.Reader,
	workload *unstructured.Unstructured) ([]dependency.Sidecars, error) {
	sets := s.SidecarSets()
	if len(sets) == 0 {
		return nil, nil
	}
	labels, _, err := NamespaceLabels(ctx, namespaces, workload.GetNamespace())
	if err != nil {
		return nil, err
	}
	return dependency.Injecting(sets, workload, labels), nil
}

// NamespaceLabels returns the labels of a namespace. found is false if it does not exist.
func NamespaceLabels(ctx context.Context, namespaces client.Reader,
	name string) (labels map[string]string, found bool, err error) {
	ns := &corev1.Namespace{}
	if err := namespaces.Get(ctx, types.NamespacedName{Name: name}, ns,
		client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("get namespace %s: %w", name, err)
	} else if err != nil {
		return nil, false, nil
	}
	return ns.Labels, true, nil
}
