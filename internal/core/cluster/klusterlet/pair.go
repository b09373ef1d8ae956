package klusterlet

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// The values of the annotation argosy.io/derived-from.
const (
	fromManagedCluster = "ManagedCluster"
	fromCluster        = "Cluster"
)

// Manages reports whether a klusterlet acts in the cluster, and not the hub or an agent of Karmada's API.
func Manages(c *clusterv1alpha1.Cluster) bool {
	return c.Annotations[wellknown.DerivedFromAnnotation] == fromManagedCluster
}

// Derived reports whether the hub writes a ManagedCluster from the Cluster of the same name.
func Derived(mc *clusterv1.ManagedCluster) bool {
	return mc.Annotations[wellknown.DerivedFromAnnotation] == fromCluster
}

// AppliesWorks reports whether a klusterlet, and not the hub, applies the ManifestWorks of a cluster. c and mc are its
// Cluster and its ManagedCluster; nil for none. mc matters only without a Cluster.
func AppliesWorks(c *clusterv1alpha1.Cluster, mc *clusterv1.ManagedCluster) bool {
	if c != nil {
		return Manages(c)
	}
	return mc != nil && !Derived(mc)
}

// Names of claims. Klusterlets report the first three; the hub reports all of them for a Cluster.
const (
	claimVersion  = "kubeversion.open-cluster-management.io"
	claimPlatform = "platform.open-cluster-management.io"
	claimRegion   = "region.open-cluster-management.io"
	claimID       = "id.k8s.io"
)

// derived has the names of what came from the other object, see wellknown.DerivedAnnotation.
type derived struct {
	Labels []string `json:"labels,omitempty"`
	Taints []string `json:"taints,omitempty"`
}

func derivedOf(obj metav1.Object) (d derived) {
	// An annotation that cannot be read says nothing about an origin: what is there stays.
	_ = json.Unmarshal([]byte(obj.GetAnnotations()[wellknown.DerivedAnnotation]), &d)
	return d
}

// mark sets labels that came from the other object, removes those that came from there before, and records both.
func mark(obj metav1.Object, from string, labels map[string]string, taints []string) {
	before, all := derivedOf(obj), maps.Clone(obj.GetLabels())
	if all == nil {
		all = map[string]string{}
	}
	for _, key := range before.Labels {
		delete(all, key)
	}
	maps.Copy(all, labels)
	obj.SetLabels(all)
	slices.Sort(taints)
	record, _ := json.Marshal(derived{slices.Sorted(maps.Keys(labels)), taints}) // texts only
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[wellknown.DerivedFromAnnotation] = from
	annotations[wellknown.DerivedAnnotation] = string(record)
	obj.SetAnnotations(annotations)
}

// ClusterFrom returns the Cluster of a cluster with a klusterlet. was is the present one; nil for none. docs/ocm.md has
// a table of the fields.
func ClusterFrom(mc *clusterv1.ManagedCluster, was *clusterv1alpha1.Cluster, now time.Time) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: mc.Name}}
	if was != nil {
		c = was.DeepCopy()
	}
	c.Spec.SyncMode = clusterv1alpha1.Pull
	for _, claim := range mc.Status.ClusterClaims {
		if !isValue(claim.Value) {
			continue
		}
		switch claim.Name { // policies select clusters by these, so a value of a user stays
		case claimPlatform:
			c.Spec.Provider = cmp.Or(c.Spec.Provider, claim.Value)
		case claimRegion:
			c.Spec.Region = cmp.Or(c.Spec.Region, claim.Value)
		}
	}
	labels := maps.Clone(mc.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, clusterv1.AddonLabelPrefix) })
	// NoSelect ends selections of Placements. Its counterpart would evict workloads, so it only keeps new ones away.
	var wanted []corev1.Taint
	for _, t := range mc.Spec.Taints {
		if !isHubTaint(t.Key) && t.Effect != clusterv1.PreferNoSelect && isValue(t.Value) {
			wanted = append(wanted, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	var names []string
	c.Spec.Taints, names = merge(c.Spec.Taints, wanted, derivedOf(c).Taints,
		func(t corev1.Taint) (string, string) { return t.Key + ":" + string(t.Effect), t.Value })
	mark(c, fromManagedCluster, labels, names)
	c.Status.KubernetesVersion = mc.Status.Version.Kubernetes
	if len(mc.Status.Allocatable) > 0 {
		if c.Status.ResourceSummary == nil {
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{}
		}
		c.Status.ResourceSummary.Allocatable = corev1.ResourceList(mc.Status.Allocatable)
	}
	meta.SetStatusCondition(&c.Status.Conditions, readiness(mc, now))
	return c
}

// readiness is the condition Ready of the Cluster of a cluster with a klusterlet.
func readiness(mc *clusterv1.ManagedCluster, now time.Time) metav1.Condition {
	ready := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonClusterReady, Message: "cluster is healthy and ready to accept workloads",
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy()}
	available := meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ClusterAvailable)
	switch {
	case !mc.Spec.HubAcceptsClient:
		ready.Status, ready.Reason = metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReady
		ready.Message = "the hub denies the klusterlet of the cluster: set spec.hubAcceptsClient of the ManagedCluster to true"
	case available == nil:
		ready.Status, ready.Reason = metav1.ConditionUnknown, clusterv1alpha1.ReasonClusterStatusNeverUpdated
		ready.Message = "the klusterlet of the cluster has never reported: check that it runs in the cluster and reaches the " +
			"hub, and that its certificate request is approved"
	case available.Status == metav1.ConditionFalse:
		ready.Status, ready.Reason = metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReachable
		ready.Message = "the klusterlet does not reach the API server of the cluster: " + available.Message
	case available.Status != metav1.ConditionTrue:
		ready.Status, ready.Reason = metav1.ConditionUnknown, clusterv1alpha1.ReasonClusterStatusUnknown
		ready.Message = "the klusterlet of the cluster has stopped reporting: check that it runs in the cluster and reaches " +
			"the hub, and read its log"
	}
	return ready
}

// ManagedFrom returns the ManagedCluster of a cluster that is registered by its Cluster. was is the present one; nil
// for none. docs/ocm.md has a table of the fields.
func ManagedFrom(c *clusterv1alpha1.Cluster, was *clusterv1.ManagedCluster, now time.Time) *clusterv1.ManagedCluster {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}
	if was != nil {
		mc = was.DeepCopy()
	}
	mc.Spec.HubAcceptsClient = true
	mc.Spec.ManagedClusterClientConfigs = nil
	if strings.HasPrefix(c.Spec.APIEndpoint, "https://") {
		mc.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: c.Spec.APIEndpoint}}
	}
	// Who may label a Cluster does not need the right to join a ManagedClusterSet.
	labels := maps.Clone(c.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return key == clusterv1.ClusterSetLabel || strings.HasPrefix(key, clusterv1.AddonLabelPrefix)
	})
	var wanted []clusterv1.Taint
	for _, t := range c.Spec.Taints {
		if !membership.IsReadinessTaint(t) {
			wanted = append(wanted, managedTaint(t, now))
		}
	}
	var names []string
	mc.Spec.Taints, names = merge(mc.Spec.Taints, wanted, derivedOf(mc).Taints,
		func(t clusterv1.Taint) (string, string) { return t.Key + ":" + string(t.Effect), t.Value })
	mark(mc, fromCluster, labels, names)
	mc.Status.Version.Kubernetes = c.Status.KubernetesVersion
	mc.Status.Allocatable, mc.Status.Capacity = nil, nil
	if s := c.Status.ResourceSummary; s != nil {
		mc.Status.Allocatable, mc.Status.Capacity = quantities(s.Allocatable), quantities(s.Allocatable)
	}
	mc.Status.ClusterClaims = nil
	for _, claim := range []clusterv1.ManagedClusterClaim{{Name: claimID, Value: c.Spec.ID},
		{Name: claimVersion, Value: c.Status.KubernetesVersion}, {Name: claimPlatform, Value: c.Spec.Provider},
		{Name: claimRegion, Value: c.Spec.Region}} {
		if claim.Value != "" && len(claim.Value) <= claimLimit {
			mc.Status.ClusterClaims = append(mc.Status.ClusterClaims, claim)
		}
	}
	for _, condition := range conditionsFrom(c) {
		condition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		meta.SetStatusCondition(&mc.Status.Conditions, condition)
	}
	mc.Spec.Taints = Taints(mc, now)
	return mc
}

// claimLimit is the maximum length of the value of a claim.
const claimLimit = 1024

// SetMissing sets the condition Ready of a Cluster whose ManagedCluster is gone although no user deleted it.
func SetMissing(c *clusterv1alpha1.Cluster, now time.Time) {
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
		Status: metav1.ConditionUnknown, Reason: clusterv1alpha1.ReasonClusterStatusUnknown,
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		Message:            "the ManagedCluster of the cluster is missing: register its klusterlet again, or delete this Cluster"})
}

// conditionsFrom returns the conditions of the ManagedCluster of a Cluster.
func conditionsFrom(c *clusterv1alpha1.Cluster) []metav1.Condition {
	available := metav1.Condition{Type: clusterv1.ClusterAvailable, Status: metav1.ConditionUnknown,
		Reason: clusterv1.ReasonLeaseStopped, Message: "The hub has not heard from the cluster yet."}
	if ready := membership.Readiness(c); ready != nil {
		available.Status, available.Message = ready.Status, ready.Message
	}
	switch available.Status {
	case metav1.ConditionTrue:
		available.Reason, available.Message = clusterv1.ReasonAvailable, "Managed cluster is available"
	case metav1.ConditionFalse:
		available.Reason = clusterv1.ReasonUnavailable
	}
	return []metav1.Condition{
		{Type: clusterv1.HubAccepted, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAccepted,
			Message: MessageAccepted},
		{Type: clusterv1.Joined, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonJoined,
			Message: "Managed cluster joined"},
		available,
	}
}

// quantities copies a list for the other type of list.
func quantities(of corev1.ResourceList) clusterv1.ResourceList {
	if len(of) == 0 {
		return nil
	}
	copied := make(map[corev1.ResourceName]resource.Quantity, len(of))
	for name, quantity := range of {
		copied[name] = quantity.DeepCopy()
	}
	return copied
}

// isHubTaint reports whether the hub sets the taint of a ManagedCluster by the condition Available.
func isHubTaint(key string) bool {
	return key == clusterv1.TaintUnavailable || key == clusterv1.TaintUnreachable
}

// isValue reports whether a Cluster accepts a value of a taint or a claim: it would refuse the whole object.
func isValue(text string) bool { return len(validation.IsValidLabelValue(text)) == 0 }

// managedTaint is the taint of a ManagedCluster for one of a Cluster.
func managedTaint(t corev1.Taint, now time.Time) clusterv1.Taint {
	taint := clusterv1.Taint{Key: t.Key, Value: t.Value, Effect: clusterv1.NoSelectIfNew,
		TimeAdded: metav1.NewTime(now).Rfc3339Copy()}
	switch t.Effect {
	case corev1.TaintEffectPreferNoSchedule:
		taint.Effect = clusterv1.PreferNoSelect
	case corev1.TaintEffectNoExecute:
		taint.Effect = clusterv1.NoSelect
	}
	return taint
}

// merge returns taints with those that are wanted from the other object, and the names of these. before are the names
// of those that came from there earlier: they go if they are not wanted any more. Taints of users stay, also instead of
// wanted ones. naming returns the name of a taint, by its key and effect, and its value.
func merge[T any](taints, wanted []T, before []string, naming func(T) (name, value string)) (all []T, names []string) {
	has := map[string]bool{}
	for _, t := range taints {
		name, value := naming(t)
		stays := !slices.Contains(before, name)
		if !stays && slices.ContainsFunc(wanted, func(w T) bool {
			n, v := naming(w)
			return n == name && v == value
		}) {
			stays, names = true, append(names, name)
		}
		if stays {
			all, has[name] = append(all, t), true
		}
	}
	for _, t := range wanted {
		if name, _ := naming(t); !has[name] {
			all, names, has[name] = append(all, t), append(names, name), true
		}
	}
	return all, names
}
