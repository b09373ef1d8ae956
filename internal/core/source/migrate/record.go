package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
)

// State is the state of one cluster in the migration of a workload.
type State string

// The states.
const (
	// Shadow: the hub has a Work for the cluster, and does not apply it.
	Shadow State = "Shadow"
	// Verifying: the hub applies the Work, and the pods are being compared with those before.
	Verifying State = "Verifying"
	// Own: the hub applies the Work, and the pods were the same afterwards.
	Own State = "Own"
	// Leaving: the hub releases the object, which stays in the cluster.
	Leaving State = "Leaving"
)

// Record is the state of the migration of one workload. It is an annotation of the policy of the workload, so that a
// migration continues where it stopped.
type Record struct {
	// Clusters are the clusters of the workload, by name.
	Clusters map[string]Cluster `json:"clusters"`
	// Changing is true while clusters join or leave. Nothing is applied in any cluster until the template has the Replicas
	// that remain.
	Changing bool   `json:"changing,omitempty"`
	Replicas *int64 `json:"replicas,omitempty"`
}

// Cluster is the state of one cluster.
type Cluster struct {
	State State `json:"state"`
	// Since is when the state began, in RFC 3339; empty for a state that only a Work shows.
	Since string `json:"since"`
	// Replicas of the cluster when it joined; 0 for kinds whose replicas are not divided.
	Replicas int64 `json:"replicas,omitempty"`
	// Before is the state of the cluster before the hub applied its Work. It is removed after the verification.
	Before *Snapshot `json:"before,omitempty"`
	// Verified is the number of pods that stayed unchanged.
	Verified *int `json:"verified,omitempty"`
	// Reason is why the cluster returned to Shadow, for users.
	Reason string `json:"reason,omitempty"`
}

// TextOf returns the record of a policy as it is stored; empty without a policy, and if it is of no migration.
func TextOf(p policyv1alpha1.Propagation) string {
	if p == nil {
		return ""
	}
	return p.GetAnnotations()[wellknown.MigrationAnnotation]
}

// RecordOf returns the record of a policy; nil if the policy is of no migration.
func RecordOf(p policyv1alpha1.Propagation) (*Record, error) {
	raw, ok := p.GetAnnotations()[wellknown.MigrationAnnotation]
	if !ok {
		return nil, nil
	}
	r := &Record{}
	if err := json.Unmarshal([]byte(raw), r); err != nil {
		return nil, fmt.Errorf("read annotation %s of policy %s: %w", wellknown.MigrationAnnotation, p.GetName(), err)
	}
	return r, nil
}

// Names returns the clusters in one of the states, sorted. Without states, it returns all clusters.
func (r *Record) Names(states ...State) []string {
	var names []string
	for name, c := range r.Clusters {
		if len(states) == 0 || slices.Contains(states, c.State) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Set changes the state of a cluster.
func (r *Record) Set(cluster string, to Cluster) {
	r.Clusters = maps.Clone(r.Clusters)
	if r.Clusters == nil {
		r.Clusters = map[string]Cluster{}
	}
	r.Clusters[cluster] = to
}

// Remove removes a cluster.
func (r *Record) Remove(cluster string) {
	r.Clusters = maps.Clone(r.Clusters)
	delete(r.Clusters, cluster)
}

// NewPolicy returns the policy of a workload by its record.
func NewPolicy(template *unstructured.Unstructured, r *Record) policyv1alpha1.Propagation {
	p := adopt.Policy(template, adopt.PolicyName(template), "")
	spec := p.PropagationSpec()
	spec.PreserveResourcesOnDeletion = new(true)
	place(spec, r)
	Store(p, r)
	return p
}

// Store writes the record into its policy, and suspends the clusters that the hub may not write.
func Store(p policyv1alpha1.Propagation, r *Record) {
	fields.SetAnnotation(p, wellknown.MigrationAnnotation, text.JSON(r))
	spec := p.PropagationSpec()
	shadows := r.Names(Shadow)
	switch {
	case r.Changing:
		spec.Suspension = &policyv1alpha1.Suspension{Dispatching: new(true)}
	case len(shadows) > 0:
		spec.Suspension = &policyv1alpha1.Suspension{
			DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: shadows}}
	default:
		spec.Suspension = nil
	}
}

// Place changes the placement of a policy to the clusters of its record, without leaving ones. It fails if users
// changed the placement, so that it no longer names each cluster with its share.
func Place(p policyv1alpha1.Propagation, r *Record) error {
	spec := p.PropagationSpec()
	placement := spec.Placement
	if placement.ClusterAffinity == nil || len(placement.ClusterAffinity.ClusterNames) == 0 ||
		len(placement.ClusterAffinities) > 0 || len(placement.SpreadConstraints) > 0 ||
		placement.ClusterAffinity.LabelSelector != nil || placement.ClusterAffinity.FieldSelector != nil {
		return fmt.Errorf("the placement of policy %s no longer names its clusters: change the placement yourself, or "+
			"take out all clusters", p.GetName())
	}
	s := placement.ReplicaScheduling
	if s != nil && s.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided &&
		(s.WeightPreference == nil || len(s.WeightPreference.StaticWeightList) == 0) {
		return fmt.Errorf("policy %s no longer divides replicas by static weights: change the placement yourself, or "+
			"take out all clusters", p.GetName())
	}
	place(spec, r)
	return nil
}

// place sets the clusters. If replicas are divided, the weight of a cluster is its replicas: the weights add up to the
// replicas of the template, so each division is exact.
func place(spec *policyv1alpha1.PropagationSpec, r *Record) {
	var clusters []string
	var weights []policyv1alpha1.StaticClusterWeight
	for _, name := range r.Names(Shadow, Verifying, Own) {
		clusters = append(clusters, name)
		if n := r.Clusters[name].Replicas; n > 0 {
			weights = append(weights, policyv1alpha1.StaticClusterWeight{Weight: n,
				TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}})
		}
	}
	if spec.Placement.ClusterAffinity == nil {
		spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{}
	}
	spec.Placement.ClusterAffinity.ClusterNames = clusters
	if len(weights) == 0 {
		return
	}
	spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference:          &policyv1alpha1.ClusterPreferences{StaticWeightList: weights},
	}
}

// NewOverrides returns the policy with the rules of the clusters; it applies to the workload alone.
func NewOverrides(template *unstructured.Unstructured,
	rules []policyv1alpha1.RuleWithCluster) policyv1alpha1.Override {
	name := adopt.PolicyName(template)
	spec := policyv1alpha1.OverrideSpec{OverrideRules: rules, ResourceSelectors: []policyv1alpha1.ResourceSelector{{
		APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Namespace: template.GetNamespace(),
		Name: template.GetName()}}}
	if template.GetNamespace() == "" {
		p := &policyv1alpha1.ClusterOverridePolicy{Spec: spec}
		p.Name = name
		return p
	}
	p := &policyv1alpha1.OverridePolicy{Spec: spec}
	p.Namespace, p.Name = template.GetNamespace(), name
	return p
}

// KeepRules returns rules, but with the earlier rules of the clusters in keep. The hub already writes those clusters.
func KeepRules(before, rules []policyv1alpha1.RuleWithCluster, keep []string) []policyv1alpha1.RuleWithCluster {
	kept := func(r policyv1alpha1.RuleWithCluster) bool {
		return r.TargetCluster == nil || len(r.TargetCluster.ClusterNames) != 1 ||
			slices.Contains(keep, r.TargetCluster.ClusterNames[0])
	}
	var all []policyv1alpha1.RuleWithCluster
	for _, r := range before {
		if kept(r) {
			all = append(all, r)
		}
	}
	for _, r := range rules {
		if !kept(r) {
			all = append(all, r)
		}
	}
	return all
}

// Batches returns the batch of each of n workloads, from 1, by weights: 1, 2, 7 puts the first tenth into the first
// batch. Without weights there is one batch.
func Batches(n int, weights []int64) []int {
	var total int64
	for _, w := range weights {
		total += w
	}
	batches := make([]int, n)
	for i := range batches {
		batches[i] = 1
	}
	var sum int64
	for i, w := range weights {
		sum += w
		end := int((int64(n)*sum + total - 1) / total) // rounded up, so that the first batch has a workload
		for k := range batches {
			if k >= end {
				batches[k] = i + 2
			}
		}
	}
	return batches
}
