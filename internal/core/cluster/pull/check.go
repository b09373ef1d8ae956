package pull

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// CheckNamespace returns why the registrar must not create a namespace; empty if it may.
func CheckNamespace(name string) string {
	if name == names.Clusters {
		return ""
	}
	if cluster, err := names.ClusterOf(name); err == nil && validName(cluster) {
		return ""
	}
	return fmt.Sprintf("a registration creates only execution spaces and the namespace %s", names.Clusters)
}

// CheckLease returns why the agent of a cluster must not create a Lease; empty if it may.
func CheckLease(cluster, namespace, name string) string {
	if namespace == names.Clusters && name == cluster {
		return ""
	}
	return fmt.Sprintf("the agent of cluster %q may create only the Lease %s/%s", cluster, names.Clusters, cluster)
}

// CheckSecret returns why the agent of a cluster must not create a Secret; empty if it may. The type is limited because
// the hub fills secrets of service accounts with tokens.
func CheckSecret(cluster, namespace, name string, kind corev1.SecretType) string {
	if namespace == names.Clusters && slices.Contains(SecretsOf(cluster), name) &&
		(kind == corev1.SecretTypeOpaque || kind == "") {
		return ""
	}
	return fmt.Sprintf("the agent of cluster %q may create only the Opaque Secrets %s in namespace %s", cluster,
		strings.Join(SecretsOf(cluster), " and "), names.Clusters)
}

// CheckCluster returns why the agent of a cluster must not create a Cluster; empty if it may. fleet are the registered
// clusters.
func CheckCluster(cluster string, c *clusterv1alpha1.Cluster, fleet []clusterv1alpha1.Cluster) string {
	switch {
	case c.Name != cluster:
		return fmt.Sprintf("the agent of cluster %q cannot create cluster %q", cluster, c.Name)
	case c.Spec.SyncMode != clusterv1alpha1.Pull:
		return "an agent can register its cluster only in Pull mode"
	case len(c.Spec.Taints) > 0 || len(c.Annotations) > 0 || len(c.Finalizers) > 0 || len(c.OwnerReferences) > 0:
		return "an agent registers its cluster without taints, annotations, finalizers and owners"
	}
	for _, ref := range []*clusterv1alpha1.LocalSecretReference{c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef} {
		if ref != nil && (ref.Namespace != names.Clusters || !slices.Contains(SecretsOf(cluster), ref.Name)) {
			return fmt.Sprintf("cluster %q cannot refer to Secret %s/%s", cluster, ref.Namespace, ref.Name)
		}
	}
	for i := range fleet {
		if other := &fleet[i]; c.Spec.ID != "" && other.Spec.ID == c.Spec.ID && other.Name != c.Name {
			return fmt.Sprintf("this cluster is a member under the name %q already (id %s): remove that first, or use that name",
				other.Name, other.Spec.ID)
		}
	}
	return ""
}

// Narrow limits lists that Karmada's agents request of all clusters and Services to those of their own cluster. Such
// requests of other users are not changed: RBAC decides about them. cluster is that of the requester's certificate,
// which is not verified yet.
func Narrow(cluster, path string, query url.Values) (narrowed string, changed bool) {
	switch path {
	case "/apis/cluster.karmada.io/v1alpha1/clusters":
		if query.Get("fieldSelector") == "" {
			query.Set("fieldSelector", "metadata.name="+cluster)
			return path, true
		}
	case "/api/v1/services":
		return "/api/v1/namespaces/" + names.ExecutionSpace(cluster) + "/services", true
	}
	return path, false
}
