package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"

	"github.com/argosy-io/argosy/internal/core/propagate"
)

// claim marks a new template as its policy's in the write that creates it, which saves a controller's write. A
// controller claims what this misses: the index is not filled yet, the policy waits for overrides, or the template is
// older than the policy. Updates are the controller's: only it knows whether a missing claim was forgotten or just
// removed.
type claim struct {
	*admission.Handler
	index *index
}

func newClaim(index *index) *claim { return &claim{admission.NewHandler(admission.Create), index} }

var _ admission.MutationInterface = &claim{}

func (c *claim) SetDynamicClient(client dynamic.Interface) { c.index.feed(client) }

func (c *claim) SetDrainedNotification(done <-chan struct{}) { c.index.endWith(done) }

func (c *claim) ValidateInitialization() error {
	if !c.index.fed() {
		return fmt.Errorf("%s needs a client", ClaimPlugin)
	}
	return nil
}

// Admit claims a template that is being created.
func (c *claim) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || !c.index.synced.Load() {
		return nil
	}
	gk := a.GetKind().GroupKind()
	c.index.expected.settle(ctx, gk)
	obj, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil // a request that is no object is no template
	}
	policies := c.index.selecting(gk, obj.GetNamespace(), obj.GetName())
	if len(policies) == 0 {
		return nil
	}
	template := &unstructured.Unstructured{} // as far as a claim depends on it
	template.SetGroupVersionKind(a.GetKind())
	template.SetNamespace(obj.GetNamespace())
	template.SetName(obj.GetName())
	template.SetLabels(obj.GetLabels())
	template.SetAnnotations(obj.GetAnnotations())
	d := propagate.Decide(propagate.Observed{Template: template, Creating: true, Policies: policies,
		OverrideExists: c.index.overrideExists,
		Exposed:        c.index.exposes(gk, types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()})})
	if d.Claimed != nil && d.Preempted == nil { // a controller records an event about a preemption
		propagate.Claim(obj, d.Policy)
	}
	return nil
}
