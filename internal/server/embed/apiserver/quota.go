package apiserver

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	corev1informers "k8s.io/client-go/informers/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// QuotaPlugin is the name of the plugin that enforces the quotas that Options.Quotas selects.
const QuotaPlugin = "SelectedResourceQuota"

// quotaEvaluators is the number of parallel evaluations, as in Kubernetes.
const quotaEvaluators = 5

// quotas is Kubernetes' own plugin, limited to the selected quotas. Requests of this process are always allowed,
// because its loops follow what users wrote; they still count.
type quotas struct {
	*resourcequota.QuotaAdmission
	selected labels.Selector
}

func newQuotas(selected labels.Selector) func(io.Reader) (admission.Interface, error) {
	return func(io.Reader) (admission.Interface, error) {
		stock, err := resourcequota.NewResourceQuota(&resourcequotaapi.Configuration{}, quotaEvaluators)
		if err != nil {
			return nil, err
		}
		return &quotas{stock, selected}, nil
	}
}

// Validate implements admission.ValidationInterface.
func (q *quotas) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetUserInfo() != nil && a.GetUserInfo().GetName() == user.APIServerUser {
		return nil
	}
	return q.QuotaAdmission.Validate(ctx, a, o)
}

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (q *quotas) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	q.QuotaAdmission.SetExternalKubeInformerFactory(&selectedFactory{f, q.selected})
}

// selectedFactory, selectedV1 and selectedInformer lead to a lister that shows the selected quotas alone.
type selectedFactory struct {
	informers.SharedInformerFactory
	selected labels.Selector
}

// Core returns f itself, which has the only version of the group.
func (f *selectedFactory) Core() core.Interface { return f }

func (f *selectedFactory) V1() corev1informers.Interface {
	return &selectedV1{f.SharedInformerFactory.Core().V1(), f.selected}
}

type selectedV1 struct {
	corev1informers.Interface
	selected labels.Selector
}

func (v *selectedV1) ResourceQuotas() corev1informers.ResourceQuotaInformer {
	return &selectedInformer{v.Interface.ResourceQuotas(), v.selected}
}

type selectedInformer struct {
	corev1informers.ResourceQuotaInformer
	selected labels.Selector
}

func (i *selectedInformer) Lister() corev1listers.ResourceQuotaLister {
	return &selectedLister{i.ResourceQuotaInformer.Lister(), i.selected}
}

type selectedLister struct {
	corev1listers.ResourceQuotaLister
	selected labels.Selector
}

func (l *selectedLister) ResourceQuotas(namespace string) corev1listers.ResourceQuotaNamespaceLister {
	return &selectedNamespace{l.ResourceQuotaLister.ResourceQuotas(namespace), l.selected}
}

type selectedNamespace struct {
	corev1listers.ResourceQuotaNamespaceLister
	selected labels.Selector
}

// List returns all that the plugin calls, with no selector of its own.
func (l *selectedNamespace) List(also labels.Selector) ([]*corev1.ResourceQuota, error) {
	all, err := l.ResourceQuotaNamespaceLister.List(also)
	if err != nil {
		return nil, err
	}
	var selected []*corev1.ResourceQuota
	for _, quota := range all {
		if l.selected.Matches(labels.Set(quota.Labels)) {
			selected = append(selected, quota)
		}
	}
	return selected, nil
}
