package admission

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/admission/convert"
	"github.com/argosy-io/argosy/internal/core/admission/quota"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
)

var (
	federatedQuotas  = policyv1alpha1.GroupVersion.WithResource("federatedresourcequotas")
	resourceBindings = workv1alpha2.GroupVersion.WithResource("resourcebindings")
)

// shipped interprets the kinds that the hub knows.
var shipped = sync.OnceValue(func() interpret.Interpreter { return interpret.New(tiers.WithoutUsers()...) })

func (o *objects) validateFederatedResourceQuota(ctx context.Context, r request,
	q, _ *policyv1alpha1.FederatedResourceQuota) error {
	if err := r.refuse(validate.FederatedResourceQuota(q)); err != nil || r.keepsSpec() {
		return err
	}
	var fleet clusterv1alpha1.ClusterList
	if list(ctx, o.client.Resource(clusters), metav1.ListOptions{ResourceVersion: "0"}, &fleet) != nil {
		return nil
	}
	bindings, err := o.bindingsIn(ctx, r.GetNamespace())
	if err != nil {
		return nil
	}
	var names []string
	for i := range fleet.Items {
		names = append(names, fleet.Items[i].Name)
	}
	warn(ctx, validate.FederatedResourceQuotaAdvice(q, propagate.Sum(bindings), names), nil)
	return nil
}

// refuseOverQuota refuses a write of a binding by a user that exceeds a FederatedResourceQuota. The client of the hub's
// controllers checks their writes, see controller/quota.
func (o *objects) refuseOverQuota(ctx context.Context, r request) error {
	if o.QuotasOff || r.fromHub() || r.GetNamespace() == "" || r.keepsSpec() {
		return nil
	}
	is, err := storedBinding(r.obj)
	if err != nil {
		return r.invalid(err)
	}
	var was *workv1alpha2.ResourceBindingSpec
	if r.old != nil {
		if was, err = storedBinding(r.old); err != nil {
			return r.invalid(err)
		}
	}
	quotas, err := o.quotasIn(ctx, r.GetNamespace())
	if err != nil || len(quotas) == 0 {
		return err
	}
	all, err := o.bindingsIn(ctx, r.GetNamespace())
	if err != nil {
		return err
	}
	delete(all, r.name())
	return quota.Check(quotas, propagate.Sum(all), was, is)
}

// storedBinding returns the spec of a binding of any version.
func storedBinding(b *unstructured.Unstructured) (*workv1alpha2.ResourceBindingSpec, error) {
	stored, err := convert.Binding(b, workv1alpha2.GroupVersion.String())
	if err != nil {
		return nil, err
	}
	typed := &workv1alpha2.ResourceBinding{}
	return &typed.Spec, into(stored, typed)
}

// adviseQuota warns a user of a write of a workload that a FederatedResourceQuota blocks. It does not refuse the write:
// users of Karmada rely on the conditions and events that follow.
func (o *objects) adviseQuota(ctx context.Context, a admission.Attributes, interfaces admission.ObjectInterfaces) {
	if o.QuotasOff || a.GetSubresource() != "" || a.GetNamespace() == "" ||
		a.GetUserInfo().GetName() == user.APIServerUser || len(interpret.PodTemplatePaths(a.GetKind().GroupKind())) == 0 {
		return
	}
	template, err := templateOf(a.GetObject(), a, interfaces)
	if err != nil || template == nil {
		return
	}
	if _, claimed := propagate.Claimed(template); !claimed {
		return
	}
	quotas, err := o.quotasIn(ctx, a.GetNamespace())
	if err != nil || len(quotas) == 0 {
		return
	}
	old, err := templateOf(a.GetOldObject(), a, interfaces)
	if err != nil {
		return
	}
	demand := propagate.Demand(ctx, shipped(), template)
	if old == nil {
		warn(ctx, quota.TemplateAdvice(quotas, nil, demand), nil)
		return
	}
	warn(ctx, quota.TemplateAdvice(quotas, propagate.Demand(ctx, shipped(), old), demand), nil)
}

func (o *objects) quotasIn(ctx context.Context, namespace string) ([]policyv1alpha1.FederatedResourceQuota, error) {
	var quotas policyv1alpha1.FederatedResourceQuotaList
	if err := list(ctx, o.client.Resource(federatedQuotas).Namespace(namespace), metav1.ListOptions{ResourceVersion: "0"},
		&quotas); err != nil {
		return nil, fmt.Errorf("list FederatedResourceQuotas: %w", err)
	}
	return quotas.Items, nil
}

// bindingsIn returns the bindings of a namespace by name, as they are stored.
func (o *objects) bindingsIn(ctx context.Context, namespace string) (map[string]*workv1alpha2.ResourceBinding, error) {
	var bindings workv1alpha2.ResourceBindingList
	if err := list(ctx, o.client.Resource(resourceBindings).Namespace(namespace), metav1.ListOptions{},
		&bindings); err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	all := map[string]*workv1alpha2.ResourceBinding{}
	for i := range bindings.Items {
		all[bindings.Items[i].Name] = &bindings.Items[i]
	}
	return all, nil
}
