// Package adopt decides whether the hub can take over an existing object of a member without a restart of pods. It
// computes the template, the policy, the applied manifest and its differences from the object. Callers read and write.
package adopt

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// memberKeys are annotations of controllers and tools in members. A key that ends in / is a prefix.
var memberKeys = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"rollout.argoproj.io/revision",
	"pv.kubernetes.io/",
	"volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner",
	wellknown.HandsOffAnnotation,
	wellknown.VersionOfAnnotation, // users may not set it on a hub
}

// Template returns live as a template, without fields of the member and labels of an earlier hub. Node ports stay:
// otherwise the member would allocate others. live is not changed.
func Template(live *unstructured.Unstructured) *unstructured.Unstructured {
	t := execute.Released(live)
	interpret.Prune(t)
	if annotations := t.GetAnnotations(); annotations != nil {
		maps.DeleteFunc(annotations, func(key, _ string) bool {
			return slices.ContainsFunc(memberKeys, func(k string) bool {
				return key == k || strings.HasSuffix(k, "/") && strings.HasPrefix(key, k)
			})
		})
		if len(annotations) == 0 {
			annotations = nil
		}
		t.SetAnnotations(annotations)
	}
	switch t.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Service"}:
		unstructured.RemoveNestedField(t.Object, "spec", "healthCheckNodePort")
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		unstructured.RemoveNestedField(t.Object, "spec", "volumeName")
	}
	return t
}

// Obstacle returns why live cannot be adopted with any template; nil if it can.
func Obstacle(live *unstructured.Unstructured) error {
	annotations := live.GetAnnotations()
	switch owner := metav1.GetControllerOfNoCopy(live); {
	case live.GetDeletionTimestamp() != nil:
		return fmt.Errorf("it is being deleted")
	case owner != nil:
		return fmt.Errorf("%s %s is its controller: adopt that instead", owner.Kind, owner.Name)
	case live.GetLabels()[workv1alpha2.ManagedLabel] == "true" && annotations[workv1alpha2.WorkNameAnnotation] != "":
		return fmt.Errorf("it belongs to the work %s/%s of a hub: release it there with preserveResourcesOnDeletion, or remove its label %s if that hub no longer exists",
			annotations[workv1alpha2.WorkNamespaceAnnotation], annotations[workv1alpha2.WorkNameAnnotation],
			workv1alpha2.ManagedLabel)
	case annotations["rollouts.kruise.io/in-progressing"] != "",
		annotations["batchrelease.rollouts.kruise.io/control-info"] != "":
		return fmt.Errorf("a Kruise Rollout of it is in progress and has changed its fields: adopt it when the rollout has ended")
	case ofService(live):
		return fmt.Errorf("the cluster makes it for the Service %s: adopt that instead", live.GetName())
	case live.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"},
		propagate.Excluded(match.TemplateOf(live)):
		return fmt.Errorf("objects like this are never propagated")
	}
	return nil
}

// ofService reports whether a controller of the member makes live for the Service of the same name. It sets no owner.
func ofService(live *unstructured.Unstructured) bool {
	return live.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Endpoints"} &&
		(live.GetLabels()["endpoints.kubernetes.io/managed-by"] == "endpoint-controller" ||
			live.GetAnnotations()["endpoints.kubernetes.io/last-change-trigger-time"] != "")
}

// Policy returns a policy for the template only. It sends the template to the cluster unchanged and takes over the
// existing object.
func Policy(template *unstructured.Unstructured, name, cluster string) policyv1alpha1.Propagation {
	p := propagate.PolicyFor(template, name, []string{cluster})
	p.PropagationSpec().ConflictResolution = policyv1alpha1.ConflictOverwrite
	return p
}

// Sends returns why an existing policy does not send the template of the cluster's object to the cluster unchanged; nil
// if it does.
func Sends(p policyv1alpha1.Propagation, replicas int32, c *clusterv1alpha1.Cluster) error {
	name := text.Path(p.GetNamespace(), p.GetName())
	placement := p.PropagationSpec().Placement
	means := placement.ClusterAffinity == nil && len(placement.ClusterAffinities) == 0
	if a := placement.ClusterAffinity; a != nil {
		means = match.Affinity(a, c)
	}
	for _, term := range placement.ClusterAffinities {
		means = means || match.Affinity(&term.ClusterAffinity, c)
	}
	if !means {
		return fmt.Errorf("the policy %s would claim it and does not propagate it to cluster %q: change the policy's placement, then adopt the object", name, c.Name)
	}
	if s := placement.ReplicaScheduling; replicas > 0 && s != nil &&
		s.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDuplicated {
		return fmt.Errorf("the policy %s would claim it and divides the replicas of its template among clusters: apply the template with the replicas of all clusters, which takes over the object", name)
	}
	return nil
}

// Rival returns another policy that claims the template, or would claim it although policy exists; nil for none. claims
// tells which of the two. propagate.Decide decides, as if all override policies existed that policies depend on: a
// policy that waits for some claims the template later.
func Rival(template *unstructured.Unstructured, policy policyv1alpha1.Propagation,
	policies []policyv1alpha1.Propagation) (other policyv1alpha1.Propagation, claims bool) {
	all := []policyv1alpha1.Propagation{}
	for _, p := range policies {
		if SamePolicy(p, policy) {
			policy = p
			continue
		}
		all = append(all, p)
	}
	if propagate.ID(policy) == "" { // it is only planned
		policy = policy.DeepCopyObject().(policyv1alpha1.Propagation)
		policy.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "planned",
			policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "planned"})
	}
	d := propagate.Decide(propagate.Observed{Template: template, Policies: append(all, policy),
		OverrideExists: func(types.NamespacedName) bool { return true }})
	if d.Policy == nil || SamePolicy(d.Policy, policy) {
		return nil, false
	}
	claim, claimed := propagate.Claimed(template)
	return d.Policy, claimed && propagate.ClaimOf(d.Policy) == claim
}

// SamePolicy reports whether two policies have the same name and namespace.
func SamePolicy(a, b policyv1alpha1.Propagation) bool {
	return a.GetNamespace() == b.GetNamespace() && a.GetName() == b.GetName()
}

// PolicyName returns the default name of the policy of a template. It is the same as Karmada's.
func PolicyName(template *unstructured.Unstructured) string {
	return names.PromotedPolicy(template.GroupVersionKind(), template.GetName(), template.GetNamespace())
}

// Target is a cluster with its replicas of a template.
type Target struct {
	Cluster  *clusterv1alpha1.Cluster
	Replicas int32
}

// Works returns the Works, by cluster, that the template would have in these clusters. They have no permanent ID.
func Works(ctx context.Context, template *unstructured.Unstructured, policy policyv1alpha1.Propagation,
	targets []Target, overrides []policyv1alpha1.Override,
	i interpret.Interpreter) (map[string]*workv1alpha1.Work, error) {
	m := propagate.Meaning{ID: "rehearsed"}
	if err := m.Interpret(ctx, i, template); err != nil {
		return nil, err
	}
	b, err := propagate.Binding(template, policy, m, nil)
	if err != nil {
		return nil, err
	}
	in := dispatch.Input{Binding: b, Template: template, Clusters: map[string]*clusterv1alpha1.Cluster{},
		Overrides: overrides, Convert: kruise.ForMember}
	for _, t := range targets {
		in.Clusters[t.Cluster.Name] = t.Cluster
		b.BindingSpec().Clusters = append(b.BindingSpec().Clusters,
			workv1alpha2.TargetCluster{Name: t.Cluster.Name, Replicas: t.Replicas})
	}
	works := map[string]*workv1alpha1.Work{}
	for _, r := range dispatch.Works(ctx, in, i) {
		if r.Err != nil {
			return nil, r.Err
		}
		works[r.Cluster] = r.Work
	}
	return works, nil
}

// Desired returns the object that the hub applies for w. Fields that w does not set stay as in live.
func Desired(ctx context.Context, w *workv1alpha1.Work, live *unstructured.Unstructured,
	i interpret.Interpreter) (*unstructured.Unstructured, error) {
	return execute.Desired(w, live, func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured,
		error) {
		return i.Retain(ctx, desired, observed)
	})
}

// Report lists the changes by an adoption.
type Report struct {
	// Differences are the fields that would change: from Have to Want. Labels and annotations of the hub are left out.
	Differences []execute.Difference `json:"differences,omitempty"`
	// Disturbs are the differences that would restart, replace or remove pods, with the reason. If there are any, the
	// adoption must be refused.
	Disturbs []string `json:"disturbs,omitempty"`
}

// Compare returns the changes if live became after. whole is true if after is the whole object as the member would
// have it, not just the applied fields.
func Compare(live, after *unstructured.Unstructured, whole bool) Report {
	r := Report{Differences: execute.Differences(execute.Released(after), live)}
	kind := live.GroupVersionKind().GroupKind()
	report := func(d execute.Difference, why string) {
		r.Disturbs = append(r.Disturbs, d.Path+": "+why)
	}
	seen := map[string]bool{}
	for _, d := range r.Differences {
		seen[d.Path] = true
		if why := disturbance(kind, d); why != "" {
			report(d, why)
		}
	}
	if whole {
		// Fields that would be removed are only found in this direction.
		for _, d := range execute.Differences(live, after) {
			d.Want, d.Have = d.Have, d.Want
			if d.Want != nil || seen[d.Path] || isMetadata(d.Path) {
				continue
			}
			r.Differences = append(r.Differences, d)
			if why := disturbance(kind, d); why != "" {
				report(d, why)
			}
		}
	}
	return r
}

// isMetadata reports whether the path is in the metadata, where changes do not disturb pods.
func isMetadata(path string) bool { return strings.HasPrefix(path, "metadata.") }

// disturbance returns the effect of a difference on running pods; empty for none.
func disturbance(kind schema.GroupKind, d execute.Difference) string {
	for _, path := range podPaths(kind) {
		if within(d.Path, path) {
			return "pods would be recreated, because their template changes"
		}
	}
	switch {
	case d.Path == "spec.replicas":
		want, ok := d.Want.(int64)
		have, known := d.Have.(int64)
		if !ok || known && want >= have {
			return ""
		}
		return "pods would be removed, because the number of replicas decreases"
	case within(d.Path, "spec.selector"), within(d.Path, "spec.volumeClaimTemplates"):
		return "pods would be recreated, because their identity or storage changes"
	case strings.HasSuffix(d.Path, ".partition"), strings.HasSuffix(d.Path, ".paused"), d.Path == "spec.paused":
		return "the settings that limit the replacement of pods change"
	}
	return ""
}

// podPaths returns the dotted paths of fields that determine the pods of a kind.
func podPaths(gk schema.GroupKind) []string {
	of := kind.Lookup(gk)
	paths := of.Pods.Templates
	if of.IsWorkflow() || of.Pods.Injected != nil { // containers are replaced in running pods
		paths = [][]string{{"spec"}}
	}
	var dotted []string
	for _, p := range paths {
		if len(p) == 0 {
			p = []string{"spec"} // a Pod is its own template, and its metadata may change
		}
		dotted = append(dotted, strings.Join(p, "."))
	}
	return dotted
}

func within(path, in string) bool { return path == in || strings.HasPrefix(path, in+".") }
