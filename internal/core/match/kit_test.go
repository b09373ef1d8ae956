package match

import (
	"math/rand/v2"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// with changes a cluster.
type with func(*clusterv1alpha1.Cluster)

// cluster serves Deployments and ConfigMaps, as a complete discovery said.
func cluster(name string, changes ...with) *clusterv1alpha1.Cluster {
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

func labelled(key, value string) with {
	return func(c *clusterv1alpha1.Cluster) { metav1.SetMetaDataLabel(&c.ObjectMeta, key, value) }
}

func located(provider, region string, zones ...string) with {
	return func(c *clusterv1alpha1.Cluster) {
		c.Spec.Provider, c.Spec.Region, c.Spec.Zones = provider, region, zones
	}
}

// rng is seeded, so that a failure names the seed that shows it.
func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func shuffled[T any](r *rand.Rand, list []T) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
