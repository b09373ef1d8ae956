package propagate

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// fails tells the users of a template what keeps it back: once, until that changes.
func (r *reconciler) fails(k key, template *unstructured.Unstructured, reason string, err error) {
	if r.failures.news(k, reason+": "+err.Error()) {
		r.events.Event(template, corev1.EventTypeWarning, reason, err.Error())
	}
}

// failures are the last messages by template. An event that repeats is a write each time.
type failures struct {
	mu   sync.Mutex
	last map[key]string
}

func (f *failures) news(k key, message string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last[k] == message {
		return false
	}
	if f.last == nil {
		f.last = map[key]string{}
	}
	f.last[k] = message
	return true
}

func (f *failures) forget(k key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.last, k)
}

// describe is how messages name a policy.
func describe(p policyv1alpha1.Propagation) string {
	if propagate.Namespaced(p) {
		return "policy(" + p.GetNamespace() + "/" + p.GetName() + ")"
	}
	return "cluster policy(" + p.GetName() + ")"
}
