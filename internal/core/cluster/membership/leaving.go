package membership

import (
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// Answers reports whether objects in the cluster are deleted when it leaves. An unreachable cluster keeps them.
func Answers(c *clusterv1alpha1.Cluster) bool {
	return IsReady(c)
}
