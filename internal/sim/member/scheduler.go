package member

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
)

// startScheduler places pods as kube-scheduler does by default, until ctx ends; it returns when its caches are filled.
func startScheduler(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	defaults, err := latest.Default()
	if err != nil {
		return fmt.Errorf("make the scheduler's configuration: %w", err)
	}
	recorders := events.NewEventBroadcasterAdapter(client)
	recorders.StartRecordingToSink(ctx.Done())
	informers := scheduler.NewInformerFactory(client, 0)
	dynamicInformers := dynamicinformer.NewFilteredDynamicSharedInformerFactory(objects, 0, "", nil)
	s, err := scheduler.New(ctx, client, informers, dynamicInformers, func(name string) events.EventRecorderLogger {
		return recorders.NewRecorder(name)
	},
		scheduler.WithComponentConfigVersion(defaults.TypeMeta.APIVersion),
		scheduler.WithKubeConfig(config),
		scheduler.WithProfiles(defaults.Profiles...),
		scheduler.WithParallelism(2),
	)
	if err != nil {
		return fmt.Errorf("make the scheduler: %w", err)
	}
	informers.Start(ctx.Done())
	dynamicInformers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	dynamicInformers.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		return fmt.Errorf("fill the scheduler's caches: %w", err)
	}
	go s.Run(ctx)
	return nil
}
