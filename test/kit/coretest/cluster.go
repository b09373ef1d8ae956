package coretest

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// With changes a cluster.
type With = func(*clusterv1alpha1.Cluster)

// Cluster returns a cluster that serves Deployments and ConfigMaps, with complete discovery.
func Cluster(name string, changes ...With) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: clusterv1alpha1.ClusterStatus{
			APIEnablements: []clusterv1alpha1.APIEnablement{
				{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
				{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}},
			},
			Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements,
				Status: metav1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

// Labelled sets a label of a cluster.
func Labelled(key, value string) With {
	return func(c *clusterv1alpha1.Cluster) { metav1.SetMetaDataLabel(&c.ObjectMeta, key, value) }
}

// Located sets provider, region and zones of a cluster.
func Located(provider, region string, zones ...string) With {
	return func(c *clusterv1alpha1.Cluster) {
		c.Spec.Provider, c.Spec.Region, c.Spec.Zones = provider, region, zones
	}
}

// Targets reads "a=1 b=2"; a name alone has no replicas.
func Targets(text string) []workv1alpha2.TargetCluster {
	var list []workv1alpha2.TargetCluster
	for _, field := range strings.Fields(text) {
		name, n, _ := strings.Cut(field, "=")
		replicas, _ := strconv.Atoi(n)
		list = append(list, workv1alpha2.TargetCluster{Name: name, Replicas: int32(replicas)})
	}
	return list
}

// TargetsText formats clusters as Targets reads them: "a=1 b".
func TargetsText(list []workv1alpha2.TargetCluster) string {
	var fields []string
	for _, t := range list {
		if t.Replicas == 0 {
			fields = append(fields, t.Name)
			continue
		}
		fields = append(fields, fmt.Sprintf("%s=%d", t.Name, t.Replicas))
	}
	return strings.Join(fields, " ")
}
