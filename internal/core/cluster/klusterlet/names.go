// Package klusterlet decides about clusters with a klusterlet, the agent of Open Cluster Management: its certificates,
// its permissions on the hub, whether it is silent, and the sets of its cluster. It also writes the Cluster and the
// ManagedCluster of a cluster from each other. Names and texts that tools know are those of Open Cluster Management.
package klusterlet

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

const (
	// Group contains the klusterlets of all clusters.
	Group = userPrefix + "managed-clusters"
	// TokenGroup contains the users of bootstrap tokens for klusterlets.
	TokenGroup = "system:bootstrappers:managedcluster"
	// Agents is the namespace of BootstrapAccount, a service account whose tokens register klusterlets as well.
	Agents           = "open-cluster-management"
	BootstrapAccount = "agent-registration-bootstrap"
	// RegisterGroup is the API group of managedclusters/accept and managedclusters/clientcertificates, which exist only in
	// roles.
	RegisterGroup = "register.open-cluster-management.io"

	// userPrefix is the prefix of the users and groups of klusterlets.
	userPrefix = "system:open-cluster-management:"
	// hubNamespace is the namespace of a hub of Open Cluster Management. Tools expect it.
	hubNamespace = "open-cluster-management-hub"
)

// GroupOf returns the group that contains the klusterlets of one cluster.
func GroupOf(cluster string) string { return userPrefix + cluster }

// ClusterOf returns the cluster of a klusterlet, and the name that the agent has itself, by its user name. ok is false
// for other users.
func ClusterOf(user string) (cluster, agent string, ok bool) {
	rest, ok := strings.CutPrefix(user, userPrefix)
	cluster, agent, two := strings.Cut(rest, ":")
	if !ok || !two || cluster == "" || agent == "" || strings.Contains(agent, ":") {
		return "", "", false
	}
	return cluster, agent, true
}

// CheckName returns why a cluster with a klusterlet cannot have the name; empty if it can. The klusterlet gets
// permissions in the namespace of this name, and the names of its group and its ClusterRole contain it. A
// ManagedCluster that the hub writes from a Cluster has no klusterlet, and may have any name that a Cluster may have.
func CheckName(cluster string) string {
	switch {
	case len(cluster) > membership.NameLimit || len(validation.IsDNS1123Label(cluster)) > 0:
		return fmt.Sprintf("the name of a cluster must be a DNS label of at most %d characters, not %q", membership.NameLimit,
			text.Cut(cluster, 2*membership.NameLimit))
	case names.Reserved(cluster), cluster == Agents, cluster == hubNamespace, GroupOf(cluster) == Group,
		roleOf(cluster) == registrationRole, roleOf(cluster) == workRole:
		return fmt.Sprintf("a cluster with a klusterlet cannot have the name %q, because the hub uses it for its own objects: "+
			"choose another name", cluster)
	}
	return ""
}
