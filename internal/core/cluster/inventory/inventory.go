// Package inventory decides what the ClusterProfile of a cluster says: whether the cluster is healthy, what it is, and
// how programs reach it through the hub.
package inventory

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// Manager is the cluster manager in the ClusterProfiles of this hub, the name of its access provider, and the name of
// its ClusterSet.
const Manager = "argosy"

// Access is the way to a cluster through the hub.
type Access struct {
	// Server is the URL of the cluster's proxy, and Authorities are the hub's certificate authorities in PEM.
	Server      string
	Authorities []byte
}

// Plugin has the data of a ClusterProfile for `argosy credential`.
type Plugin struct {
	// Cluster is the name of the cluster on the hub.
	Cluster string `json:"cluster"`
}

// IsOurs reports whether this hub writes the ClusterProfile.
func IsOurs(p *multiclusterv1alpha1.ClusterProfile) bool {
	return p.Spec.ClusterManager.Name == Manager
}

// Namespace is the namespace of the inventory. Members get none of that name.
func Namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		policyv1alpha1.NamespaceSkipAutoPropagationLabel: "true",
		multiclusterv1alpha1.ClusterSetLabel:             Manager, multiclusterv1alpha1.ClusterSetKEPLabel: Manager}}}
}

// Profile returns the ClusterProfile of a cluster in a namespace. mc is the ManagedCluster of the same name, whose
// claims are the properties; was is the present ClusterProfile. Both may be nil.
func Profile(namespace string, c *clusterv1alpha1.Cluster, mc *clusterv1.ManagedCluster,
	was *multiclusterv1alpha1.ClusterProfile, at Access, now time.Time) *multiclusterv1alpha1.ClusterProfile {
	p := &multiclusterv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.Name}}
	if was != nil {
		p = was.DeepCopy()
	}
	p.Labels = maps.Clone(c.Labels)
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels[multiclusterv1alpha1.ClusterManagerLabel] = Manager
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c,
		clusterv1alpha1.GroupVersion.WithKind("Cluster"))}
	p.Spec = multiclusterv1alpha1.ClusterProfileSpec{DisplayName: c.Name,
		ClusterManager: multiclusterv1alpha1.ClusterManager{Name: Manager}}
	p.Status.Version.Kubernetes = c.Status.KubernetesVersion
	p.Status.Properties = properties(mc, p.Status.Properties, now)
	p.Status.CredentialProviders = nil
	config, _ := json.Marshal(Plugin{c.Name}) // a text
	p.Status.AccessProviders = []multiclusterv1alpha1.AccessProvider{{Name: Manager,
		Cluster: multiclusterv1alpha1.AccessCluster{Server: at.Server,
			CertificateAuthorityData: at.Authorities,
			Extensions: []multiclusterv1alpha1.NamedExtension{{Name: multiclusterv1alpha1.ExecExtension,
				Extension: runtime.RawExtension{Raw: config}}}}}}
	for _, condition := range []metav1.Condition{healthy(c), joined(c)} {
		condition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		condition.ObservedGeneration = max(1, p.Generation) // a new object gets 1
		meta.SetStatusCondition(&p.Status.Conditions, condition)
	}
	return p
}

// healthy is the condition ControlPlaneHealthy: the condition Ready of the Cluster.
func healthy(c *clusterv1alpha1.Cluster) metav1.Condition {
	condition := metav1.Condition{Type: multiclusterv1alpha1.ConditionControlPlaneHealthy, Status: metav1.ConditionUnknown,
		Reason: clusterv1alpha1.ReasonClusterStatusNeverUpdated, Message: "the hub has not heard from the cluster yet"}
	if ready := membership.Readiness(c); ready != nil {
		condition.Status, condition.Message = ready.Status, ready.Message
		condition.Reason = cmp.Or(ready.Reason, string(ready.Status))
	}
	return condition
}

// joined is the condition Joined.
func joined(c *clusterv1alpha1.Cluster) metav1.Condition {
	condition := metav1.Condition{Type: multiclusterv1alpha1.ConditionJoined, Status: metav1.ConditionTrue,
		Reason: "Registered", Message: "the cluster is a member of the fleet"}
	if c.DeletionTimestamp != nil {
		condition.Status, condition.Reason = metav1.ConditionFalse, "Leaving"
		condition.Message = "the cluster is being removed from the fleet"
	}
	return condition
}

// The limits of properties, in characters.
const nameLimit, valueLimit = 253, 1024

// IsDerived reports whether a ClusterProfile is one that this hub wrote for the Cluster of its name.
func IsDerived(p *multiclusterv1alpha1.ClusterProfile) bool {
	of := metav1.GetControllerOf(p)
	return IsOurs(p) && of != nil && of.APIVersion == clusterv1alpha1.GroupVersion.String() && of.Kind == "Cluster" &&
		of.Name == p.Name
}

// properties are the claims of a ManagedCluster. A property whose value is the same keeps its time.
func properties(mc *clusterv1.ManagedCluster, were []multiclusterv1alpha1.Property,
	now time.Time) (all []multiclusterv1alpha1.Property) {
	if mc == nil {
		return were
	}
	for _, claim := range mc.Status.ClusterClaims {
		if claim.Value == "" || utf8.RuneCountInString(claim.Name) > nameLimit ||
			utf8.RuneCountInString(claim.Value) > valueLimit {
			continue
		}
		p := multiclusterv1alpha1.Property{Name: claim.Name, Value: claim.Value,
			LastObservedTime: metav1.NewTime(now).Rfc3339Copy()}
		if i := slices.IndexFunc(were, func(w multiclusterv1alpha1.Property) bool {
			return w.Name == p.Name && w.Value == p.Value
		}); i >= 0 {
			p = were[i]
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b multiclusterv1alpha1.Property) int { return strings.Compare(a.Name, b.Name) })
	// A klusterlet may report a name twice, which the API refuses.
	return slices.CompactFunc(all, func(a, b multiclusterv1alpha1.Property) bool { return a.Name == b.Name })
}
