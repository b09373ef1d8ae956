package member

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	kwok "sigs.k8s.io/kwok/pkg/kwok/controllers"
)

//go:embed stages/pod.yaml
var podStages string

// startKubelets gives every node a kubelet that only pretends, until ctx ends.
func startKubelets(ctx context.Context, config *rest.Config) error {
	stages, err := readStages(nodefast.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodDelete, podStages)
	if err != nil {
		return err
	}
	typed, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	c, err := kwok.NewController(kwok.Config{
		DynamicClient:  objects,
		RESTClient:     typed.Discovery().RESTClient(),
		TypedClient:    typed,
		ManageAllNodes: true,
		CIDR:           "10.128.0.1/9",
		NodeIP:         "10.127.0.1",
		LocalStages:    stages,
		// No leases: the nodes' status alone is their heartbeat, far more often than the grace period asks.
		NodePlayStageParallelism:  2,
		PodPlayStageParallelism:   8,
		PodsOnNodeSyncParallelism: 2,
		ID:                        "sim",
	})
	if err != nil {
		return err
	}
	return c.Start(ctx)
}

// readStages groups the stages in YAML documents by what they act on.
func readStages(documents ...string) (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range documents {
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
		for {
			var stage v1alpha1.Stage
			err := decoder.Decode(&stage)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("read stages: %w", err)
			}
			v1alpha1.SetObjectDefaults_Stage(&stage)
			s, err := internalversion.ConvertToInternalStage(&stage)
			if err != nil {
				return nil, fmt.Errorf("read stage %s: %w", stage.Name, err)
			}
			stages[s.Spec.ResourceRef] = append(stages[s.Spec.ResourceRef], s)
		}
	}
	return stages, nil
}
