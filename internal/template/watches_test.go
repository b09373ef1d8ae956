package template_test

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// watches tracks the watches of a fake client. Unlike an API server the fake loses changes between a list and its
// watch, so a test must wait until everything is watched before it writes.
type watches struct {
	mu sync.Mutex
	// open are the resources that were listed, and are not watched since.
	open map[schema.GroupVersionResource]bool
}

// newWatches tracks an unused client. The resources are those that will be listed in any case.
func newWatches(client *fake.FakeDynamicClient, resources ...schema.GroupVersionResource) *watches {
	w := &watches{open: map[schema.GroupVersionResource]bool{}}
	for _, r := range resources {
		w.open[r] = true
	}
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open[action.GetResource()] = true
		return false, nil, nil
	})
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		watched, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, action.GetResource())
		return true, watched, err
	})
	return w
}

// allWatched reports whether everything that was or will be listed is watched.
func (w *watches) allWatched() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open) == 0
}
