package pull

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// CheckNamespace returns why the registrar must not create a namespace; empty if it may.
func CheckNamespace(name string) string {
	if name == names.Clusters || name == names.System {
		return ""
	}
	if cluster, err := names.ClusterOf(name); err == nil && validName(cluster) {
		return ""
	}
	return fmt.Sprintf("a registration creates only execution spaces and the namespaces %s and %s", names.Clusters,
		names.System)
}

// CheckLease returns why the agent of a cluster must not create a Lease; empty if it may.
func CheckLease(cluster, namespace, name string) string {
	if namespace == names.Clusters && name == cluster || namespace == names.System && name == electionLease(cluster) {
		return ""
	}
	return fmt.Sprintf("the agent of cluster %q may create only the Leases %s/%s and %s/%s", cluster, names.Clusters,
		cluster, names.System, electionLease(cluster))
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

// CheckSecretMeta returns why the agent of a cluster must not change the metadata of a Secret like this; empty if it
// may. was is the Secret before, empty for a new one. Finalizers and owners decide when a Secret goes, which makes room
// for that of a join. Karmada's agent makes its own Cluster the owner.
func CheckSecretMeta(cluster string, was, is metav1.Object) string {
	foreign := slices.ContainsFunc(is.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		mine := o.APIVersion == clusterv1alpha1.GroupVersion.String() && o.Kind == "Cluster" && o.Name == cluster
		return !mine && !slices.ContainsFunc(was.GetOwnerReferences(), func(p metav1.OwnerReference) bool {
			return equality.Semantic.DeepEqual(o, p)
		})
	})
	if !foreign && equality.Semantic.DeepEqual(was.GetFinalizers(), is.GetFinalizers()) {
		return ""
	}
	return fmt.Sprintf("the agent of cluster %q cannot set finalizers or owners of Secret %s/%s: it may only make its own "+
		"Cluster the owner", cluster, names.Clusters, is.GetName())
}

// CheckCluster returns why the agent of a cluster must not create a Cluster; empty if it may. fleet are the registered
// clusters.
func CheckCluster(cluster string, c *clusterv1alpha1.Cluster, fleet []clusterv1alpha1.Cluster) string {
	switch {
	case c.Name != cluster:
		return fmt.Sprintf("the agent of cluster %q cannot create cluster %q", cluster, c.Name)
	case c.Spec.SyncMode != clusterv1alpha1.Pull:
		return "an agent can register its cluster only in Pull mode"
	case len(c.Spec.Taints) > 0 || len(c.Labels) > 0 || len(c.Annotations) > 0 || len(c.OwnerReferences) > 0 ||
		slices.ContainsFunc(c.Finalizers, func(f string) bool { return f != workv1alpha2.ClusterFinalizer }):
		return "an agent registers its cluster without taints, labels, annotations, finalizers and owners"
	}
	if why := checkSecretRefs(c); why != "" {
		return why
	}
	for i := range fleet {
		if other := &fleet[i]; c.Spec.ID != "" && other.Spec.ID == c.Spec.ID && other.Name != c.Name {
			return fmt.Sprintf("this cluster is a member under the name %q already (id %s): remove that first, or use that name",
				other.Name, other.Spec.ID)
		}
	}
	return ""
}

func checkSecretRefs(c *clusterv1alpha1.Cluster) string {
	for _, ref := range []*clusterv1alpha1.LocalSecretReference{c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef} {
		if ref != nil && (ref.Namespace != names.Clusters || !slices.Contains(SecretsOf(c.Name), ref.Name)) {
			return fmt.Sprintf("cluster %q cannot refer to Secret %s/%s", c.Name, ref.Namespace, ref.Name)
		}
	}
	return ""
}

// KeepPlace restores the provider, region and zones that a Cluster had before its agent updates it. The agent sets them
// only where they are empty: users may have corrected them, and policies select clusters by them. It reports whether it
// restored one.
func KeepPlace(was, is *clusterv1alpha1.Cluster) (restored bool) {
	before := is.Spec.DeepCopy()
	if was.Spec.Provider != "" {
		is.Spec.Provider = was.Spec.Provider
	}
	if was.Spec.Region != "" {
		is.Spec.Region = was.Spec.Region
	}
	if was.Spec.Zone != "" || len(was.Spec.Zones) > 0 {
		is.Spec.Zone, is.Spec.Zones = was.Spec.Zone, slices.Clone(was.Spec.Zones)
	}
	return !equality.Semantic.DeepEqual(before, &is.Spec)
}

// CheckUpdate returns why the agent of a cluster must not change a Cluster like this; empty if it may. It may set how
// the hub and users reach its cluster, and what KeepPlace leaves.
func CheckUpdate(cluster string, was, is *clusterv1alpha1.Cluster) string {
	rest := is.DeepCopy()
	rest.Spec.APIEndpoint, rest.Spec.ProxyURL = was.Spec.APIEndpoint, was.Spec.ProxyURL
	rest.Spec.InsecureSkipTLSVerification = was.Spec.InsecureSkipTLSVerification
	rest.Spec.SecretRef, rest.Spec.ImpersonatorSecretRef = was.Spec.SecretRef, was.Spec.ImpersonatorSecretRef
	rest.Spec.Provider, rest.Spec.Region = was.Spec.Provider, was.Spec.Region
	rest.Spec.Zone, rest.Spec.Zones = was.Spec.Zone, was.Spec.Zones
	same := equality.Semantic.DeepEqual(rest.Spec, was.Spec) &&
		equality.Semantic.DeepEqual(is.Labels, was.Labels) &&
		equality.Semantic.DeepEqual(is.Annotations, was.Annotations) &&
		equality.Semantic.DeepEqual(is.Finalizers, was.Finalizers) &&
		equality.Semantic.DeepEqual(is.OwnerReferences, was.OwnerReferences)
	if is.Name != cluster || was.Spec.SyncMode != clusterv1alpha1.Pull || !same {
		return fmt.Sprintf("the agent of cluster %q may change only the address, proxy, secrets, provider, region and zones of "+
			"its own Cluster in Pull mode", cluster)
	}
	return checkSecretRefs(is)
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
