package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// mostKeys bounds the keys of an agent. One that renews its certificate needs two; whoever stole its credentials can
// request any number.
const mostKeys = 5

// KeyHash returns the hash of a DER-encoded public key, which a certificate request and its certificate share.
func KeyHash(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// RoleOf returns the name of the ClusterRole of a cluster's agent. It ends with the Cluster, and only the hub writes
// it: it records the keys in the agent's certificates.
func RoleOf(cluster string) string { return rolePrefix + cluster + agentSuffix }

// Keys returns the hashes of the keys that a ClusterRole records; nil for one of an earlier version.
func Keys(role metav1.Object) []string {
	text, recorded := role.GetAnnotations()[wellknown.AgentKeysAnnotation]
	if !recorded {
		return nil
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// RecordKeys sets the keys of a ClusterRole.
func RecordKeys(role metav1.Object, keys []string) {
	fields.SetAnnotation(role, wellknown.AgentKeysAnnotation, strings.Join(keys[max(0, len(keys)-mostKeys):], ","))
}

// Pending reports whether a token registered a cluster whose Cluster does not exist yet: it owns the ClusterRole from
// its creation on.
func Pending(role metav1.Object) bool {
	return len(Keys(role)) > 0 && !owned(role)
}

func owned(role metav1.Object) bool {
	return slices.ContainsFunc(role.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.Kind == "Cluster"
	})
}

// CheckCertificate returns why a certificate with a key is not that of the agent of a cluster; empty if it is. role is
// the ClusterRole of the agent, nil for none.
func CheckCertificate(cluster string, role metav1.Object, key string) string {
	if role == nil {
		return fmt.Sprintf("cluster %q is not registered: register it with `argosy register`", cluster)
	}
	if keys := Keys(role); slices.Contains(keys, key) || keys == nil && owned(role) {
		return ""
	}
	return notCurrent(cluster)
}

func notCurrent(cluster string) string {
	return fmt.Sprintf("the certificate is not of the current registration of cluster %q: to replace the credentials of "+
		"its agent, create a token with `argosy token create --cluster-name %[1]s` and run `argosy register`", cluster)
}

// CheckFirst returns why the agent of a cluster must not create its Cluster; empty if it may: once after each
// registration. role is the ClusterRole of the agent, nil for none.
func CheckFirst(cluster string, role metav1.Object) string {
	if role != nil && Pending(role) {
		return ""
	}
	return fmt.Sprintf("the agent of cluster %q cannot create its Cluster again: only a registration with a valid token "+
		"can; an administrator creates one with `argosy token create --cluster-name %[1]s`", cluster)
}

// Report marks a Secret that the agent of a cluster creates: another one with its name is not the agent's.
func Report(cluster string, secret metav1.Object) {
	fields.SetAnnotation(secret, wellknown.ReportedByAnnotation, cluster)
}

// ReportedBy returns the cluster whose agent created a Secret; empty for none.
func ReportedBy(secret metav1.Object) string {
	return secret.GetAnnotations()[wellknown.ReportedByAnnotation]
}

// CheckSecretUse returns why the agent of a cluster must not use a Secret; empty if it may. It may use those that it
// created, and those of its Cluster in Pull mode. c is that Cluster, nil for none.
func CheckSecretUse(cluster string, secret metav1.Object, c *clusterv1alpha1.Cluster) string {
	mine := ReportedBy(secret) == cluster
	if c != nil && c.Spec.SyncMode == clusterv1alpha1.Pull {
		for _, ref := range []*clusterv1alpha1.LocalSecretReference{c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef} {
			mine = mine || ref != nil && ref.Namespace == names.Clusters && ref.Name == secret.GetName()
		}
	}
	if mine {
		return ""
	}
	return fmt.Sprintf("Secret %s/%s is not of the agent of cluster %q", names.Clusters, secret.GetName(), cluster)
}

// CheckPulls returns why an agent must not act for its cluster; empty if it may. c is its Cluster, nil for none.
func CheckPulls(cluster string, c *clusterv1alpha1.Cluster) string {
	if c != nil && c.Spec.SyncMode == clusterv1alpha1.Pull {
		return ""
	}
	return fmt.Sprintf("cluster %q is not in the fleet in Pull mode", cluster)
}
