// Package guides applies the YAML of public articles about workloads over many clusters and checks the results that the
// articles describe. The articles lie beside the repository and are no part of it.
package guides

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// fleet is what all tests share: a hub, and the members that the articles call member1 and member2 or otherwise (see
// stands), and a third.
var fleet *kit.Fleet

// parallel is how many chains of rows run side by side: they mostly wait.
const parallel = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	kit.MainLong("guides", func(dir string) (_ *kit.Fleet, err error) {
		if fleet, err = kit.Start(dir, "member1", "member2", "member3"); err != nil {
			return nil, err
		}
		if err := furnish(); err != nil {
			return nil, errors.Join(err, fleet.Stop())
		}
		return fleet, nil
	}, func() int {
		defer printTable(os.Stdout)
		return m.Run()
	})
}

// furnish gives clusters and nodes the labels that the articles select by.
func furnish() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i, region := range []string{"us-west", "us-east", "eu-west"} {
		name := fmt.Sprintf("member%d", i+1)
		c := &clusterv1alpha1.Cluster{}
		if err := fleet.Hub.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
			return err
		}
		before := client.MergeFrom(c.DeepCopy())
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels["environment"] = "production"
		c.Labels["region"] = region
		c.Labels["topology.kubernetes.io/zone"] = region + "-a"
		if err := fleet.Hub.Patch(ctx, c, before); err != nil {
			return err
		}
		var nodes corev1.NodeList
		if err := fleet.Members[name].List(ctx, &nodes); err != nil {
			return err
		}
		for n := range nodes.Items {
			node := &nodes.Items[n]
			before := client.MergeFrom(node.DeepCopy())
			node.Labels[corev1.LabelTopologyZone] = []string{"zone-a", "zone-b"}[n%2]
			if err := fleet.Members[name].Patch(ctx, node, before); err != nil {
				return err
			}
		}
	}
	// The kinds of the articles are defined once the hub has reported all its kinds.
	for _, crd := range []string{"clonesets.apps.kruise.io", "sidecarsets.apps.kruise.io", "statefulsets.apps.kruise.io",
		"uniteddeployments.apps.kruise.io", "broadcastjobs.apps.kruise.io", "workflows.argoproj.io"} {
		if err := established(ctx, crd); err != nil {
			return err
		}
	}
	return nil
}

func established(ctx context.Context, crd string) error {
	for {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("apiextensions.k8s.io/v1")
		u.SetKind("CustomResourceDefinition")
		err := fleet.Hub.Get(ctx, client.ObjectKey{Name: crd}, u)
		if err == nil {
			conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			for _, c := range conditions {
				if c := c.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
					return nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %v, %w", crd, err, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
