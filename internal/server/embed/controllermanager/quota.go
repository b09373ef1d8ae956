package controllermanager

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
)

// selectedQuotas returns Kubernetes' resource quota controller for selected quotas. It starts when the first quota
// exists, because its watches of all countable kinds are expensive. It does not count the resources in Options.Unowned.
func selectedQuotas(cc app.ControllerContext, o Options) (app.Controller, error) {
	client, err := cc.NewClient("resourcequota-controller")
	if err != nil {
		return nil, err
	}
	chosen := informers.NewSharedInformerFactoryWithOptions(client, cc.ResyncPeriod(),
		informers.WithTransform(dropManagedFields),
		informers.WithTweakListOptions(func(l *metav1.ListOptions) { l.LabelSelector = o.Quotas.String() }))
	quotas := chosen.Core().V1().ResourceQuotas()
	first := make(chan struct{}, 1)
	if _, err := quotas.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		select {
		case first <- struct{}{}:
		default:
		}
	}}); err != nil {
		return nil, fmt.Errorf("watch quotas: %w", err)
	}
	return loop{names.ResourceQuotaController, func(ctx context.Context) {
		chosen.Start(ctx.Done())
		defer chosen.Shutdown()
		select {
		case <-ctx.Done():
			return
		case <-first:
		}
		if err := runQuotas(ctx, cc, o, chosen); err != nil {
			klog.FromContext(ctx).Error(err, "ResourceQuotas are not enforced")
		}
	}}, nil
}

func runQuotas(ctx context.Context, cc app.ControllerContext, o Options, chosen informers.SharedInformerFactory) error {
	client, err := cc.NewClient("resourcequota-controller")
	if err != nil {
		return err
	}
	discovery, err := cc.ClientBuilder.DiscoveryClient("resourcequota-controller")
	if err != nil {
		return err
	}
	discover := func() ([]*metav1.APIResourceList, error) {
		lists, err := discovery.ServerPreferredNamespacedResources()
		return without(lists, o.Unowned), err
	}
	configuration, err := quotainstall.NewQuotaConfigurationForControllers(
		generic.ListerFuncForResourceFunc(cc.InformerFactory.ForResource), cc.InformerFactory)
	if err != nil {
		return err
	}
	quotas, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:           client.CoreV1(),
		ResourceQuotaInformer: chosen.Core().V1().ResourceQuotas(),
		ResyncPeriod: controller.StaticResyncPeriodFunc(
			cc.ComponentConfig.ResourceQuotaController.ResourceQuotaSyncPeriod.Duration),
		InformerFactory:           cc.ObjectOrMetadataInformerFactory,
		ReplenishmentResyncPeriod: cc.ResyncPeriod,
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      configuration.IgnoredResources,
		InformersStarted:          cc.InformersStarted,
		Registry:                  generic.NewRegistry(configuration.Evaluators()),
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return err
	}
	cc.InformerFactory.Start(ctx.Done()) // what the evaluators of pods and claims read
	const rediscover = 30 * time.Second
	done := make(chan struct{})
	go func() {
		defer close(done)
		quotas.Sync(ctx, discover, rediscover)
	}()
	quotas.Run(ctx, int(cc.ComponentConfig.ResourceQuotaController.ConcurrentResourceQuotaSyncs))
	<-done
	return nil
}

// without returns the lists without some resources.
func without(lists []*metav1.APIResourceList, unwanted []schema.GroupResource) []*metav1.APIResourceList {
	out := make([]*metav1.APIResourceList, 0, len(lists))
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		kept := *list
		kept.APIResources = slices.DeleteFunc(slices.Clone(list.APIResources), func(r metav1.APIResource) bool {
			return slices.Contains(unwanted, schema.GroupResource{Group: gv.Group, Resource: r.Name})
		})
		out = append(out, &kept)
	}
	return out
}
