// Package pull decides what agents of clusters in Pull mode may do on the hub: which certificates they get, which
// permissions they have, and what they may create. Karmada uses the same names, so its agents can register.
package pull

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

const (
	// Group contains the agents of all clusters.
	Group = "system:karmada:agents"
	// userPrefix is the prefix of the users that agents are.
	userPrefix = "system:karmada:agent:"
	// Registrar is the user that grants an agent its permissions while its cluster is registered.
	Registrar = userPrefix + "rbac-generator"
	// TokenGroup contains the users of bootstrap tokens for agents.
	TokenGroup = "system:bootstrappers:karmada:default-cluster-token"
	// tokenUserPrefix is the prefix of the users of bootstrap tokens. The ID of the token follows.
	tokenUserPrefix = "system:bootstrap:"
	// TunnelSubresource is the subresource of its Cluster that an agent creates to connect the cluster for requests of the
	// hub.
	TunnelSubresource = "tunnel"
)

// User returns the user that the agent of a cluster is.
func User(cluster string) string { return userPrefix + cluster }

// ClusterOf returns the cluster of an agent by its user name. ok is false for other users.
func ClusterOf(user string) (cluster string, ok bool) {
	cluster, ok = strings.CutPrefix(user, userPrefix)
	return cluster, ok && user != Registrar && validName(cluster)
}

// TokenID returns the ID of the bootstrap token of a user. ok is false for other users.
func TokenID(user string) (id string, ok bool) { return strings.CutPrefix(user, tokenUserPrefix) }

// validName reports whether a cluster can have the name and be in Pull mode. A name with the suffix of impersonators is
// also that of another cluster's Secret.
func validName(name string) bool {
	return len(name) <= membership.NameLimit && len(validation.IsDNS1123Label(name)) == 0 && User(name) != Registrar &&
		!strings.HasSuffix(name, impersonatorSuffix)
}
