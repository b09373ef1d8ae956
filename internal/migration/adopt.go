package migration

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
	"github.com/argosy-io/argosy/internal/scope"
)

// Adoption brings the object of one cluster under the hub's management at once: it has no record and no Shadow, and the
// hub may have a template already.
type Adoption struct {
	// Policy is the name of the policy to create; empty for the default name. With NoPolicy none is created, and an
	// annotation of the template lets the hub take over the object.
	Policy   string
	NoPolicy bool
	// Preserve keeps the object in the cluster if the template is deleted.
	Preserve bool
	// Dependencies adopts what the object refers to by name as well. The policy propagates it with the object.
	Dependencies bool
}

// Adopted is the result of an adoption, for programs.
type Adopted struct {
	Cluster string `json:"cluster"`
	// Adopted: the template was written. Managed: the fleet managed the object already.
	Adopted bool `json:"adopted"`
	Managed bool `json:"managed,omitempty"`
	// Asked: the member checked the result in a dry run.
	Asked        bool `json:"askedMember"`
	adopt.Report `json:",inline"`
	// Template and Policy are the objects to write; nil for those that are on the hub already.
	Template *unstructured.Unstructured `json:"template,omitempty"`
	Policy   policyv1alpha1.Propagation `json:"policy,omitempty"`
	// Annotate: the template on the hub gets the annotation that lets it take over existing objects.
	Annotate bool `json:"annotate,omitempty"`
	// Dependencies are adopted together with the object. LeftOut are those that are not, each with the reason.
	Dependencies []*Adopted `json:"dependencies,omitempty"`
	LeftOut      []string   `json:"dependenciesLeftOut,omitempty"`
	// There is the template that the hub has already.
	There *unstructured.Unstructured `json:"-"`

	workload Workload
	live     *unstructured.Unstructured
	orphaned bool // it has the labels of a Work that the hub does not have
}

// PlanAdoption reads a workload of one cluster, and determines what its adoption would write and change. It writes
// nothing.
func (m *Migration) PlanAdoption(ctx context.Context, w Workload, o Adoption) (*Adopted, error) {
	// 1. The object, in a version that both know, and its template.
	if err := m.useCommonVersion(ctx, &w); err != nil {
		return nil, err
	}
	a := &Adopted{Cluster: w.Clusters[0], workload: w}
	var err error
	if a.live, err = m.live(ctx, a.Cluster, w); err != nil {
		return nil, err
	}
	if a.live == nil {
		return nil, fmt.Errorf("cluster %q has no %s", a.Cluster, w)
	}
	if a.There, _, err = m.template(ctx, w); err != nil {
		return nil, err
	}

	// 2. The existing Work, or the one that the hub would create.
	var work *workv1alpha1.Work
	if a.There != nil {
		if work, err = m.work(ctx, a.Cluster, w); err != nil {
			return nil, err
		}
	}
	if a.Managed = work != nil && execute.Owns(work, a.live); a.Managed {
		return a, nil
	}
	free := a.live
	if a.orphaned, err = m.orphaned(ctx, a.Cluster, a.live); err != nil {
		return nil, err
	}
	if a.orphaned {
		free = execute.Released(a.live) // its annotations are those of the restored hub
	}
	if err := adopt.Obstacle(free); err != nil {
		return nil, fmt.Errorf("%s in cluster %q cannot be adopted: %w", w, a.Cluster, err)
	}
	if work != nil {
		if err := m.checkOnlyCluster(ctx, w); err != nil {
			return nil, err
		}
		a.Annotate = true
		fields.SetAnnotation(work, workv1alpha2.ConflictResolutionAnnotation, workv1alpha2.ConflictResolutionOverwrite)
	} else if work, err = m.rehearseAdoption(ctx, a, o); err != nil {
		return nil, err
	}

	// 3. The result of the adoption, from a dry run in the member if possible.
	if a.Report, a.Asked, err = m.compare(ctx, a.Cluster, work, a.live, false); err != nil || !o.Dependencies {
		return a, err
	}
	return a, m.planDependencies(ctx, a)
}

// String returns the adopted object, for users.
func (a *Adopted) String() string { return a.workload.String() }

// planDependencies plans the adoption of the objects to which an adopted object refers by name. Their templates have
// no policy: they are propagated as dependencies.
func (m *Migration) planDependencies(ctx context.Context, a *Adopted) error {
	refs, err := m.Meaning.Dependencies(ctx, a.live)
	if err != nil {
		return fmt.Errorf("determine the dependencies of %s: %w", a, err)
	}
	for _, ref := range refs {
		if ref.Name == "" {
			continue
		}
		w := Workload{GVK: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), Namespace: ref.Namespace, Name: ref.Name,
			Clusters: a.workload.Clusters}
		live, err := m.live(ctx, a.Cluster, w)
		if err != nil {
			return err
		}
		if live == nil {
			a.LeftOut = append(a.LeftOut, fmt.Sprintf("%s: cluster %q does not have it", w, a.Cluster))
			continue
		}
		if err := adopt.Obstacle(live); err != nil {
			a.LeftOut = append(a.LeftOut, fmt.Sprintf("%s: %v", w, err))
			continue
		}
		d, err := m.PlanAdoption(ctx, w, Adoption{NoPolicy: true})
		if err != nil {
			return err
		}
		if d.There != nil && len(d.Differences) > 0 && !m.Force {
			return fmt.Errorf("%s differs between the hub and cluster %q: make them the same, or adopt %s without dependencies",
				d, a.Cluster, a)
		}
		a.Dependencies = append(a.Dependencies, d)
	}
	return nil
}

// orphaned reports whether the object is marked as that of a Work which this hub would make of its template, and does
// not have.
func (m *Migration) orphaned(ctx context.Context, cluster string, live *unstructured.Unstructured) (bool, error) {
	key, ok := execute.WorkOf(live, cluster)
	if !ok || !slices.Contains(names.Works(live.GroupVersionKind().GroupKind(), live.GetName(), live.GetNamespace()),
		key.Name) {
		return false, nil
	}
	err := m.Client.Get(ctx, key, &workv1alpha1.Work{})
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// checkOnlyCluster returns an error if the template is placed in other clusters too: it would take over objects there
// as well.
func (m *Migration) checkOnlyCluster(ctx context.Context, w Workload) error {
	b, _, err := scope.BindingFor(ctx, m.Client, w.GVK.GroupKind(), w.Namespace, w.Name)
	switch {
	case err != nil:
		return err
	case b == nil:
		return fmt.Errorf("%s has no binding: see `argosy why`", w)
	case m.Force:
		return nil
	}
	applied := slices.Clone(w.Clusters)
	for _, item := range b.BindingStatus().AggregatedStatus {
		if item.Applied {
			applied = append(applied, item.ClusterName)
		}
	}
	for _, target := range b.BindingSpec().Clusters {
		if !slices.Contains(applied, target.Name) {
			return fmt.Errorf("the hub's %s is also propagated to cluster %q and is not applied there: adopting it would take over the object there as well. "+
				"Fix what `argosy why` shows and adopt it then, or use --force", w, target.Name)
		}
	}
	return nil
}

// rehearseAdoption returns the Work that the hub would make, of the template that it has or would have.
func (m *Migration) rehearseAdoption(ctx context.Context, a *Adopted, o Adoption) (*workv1alpha1.Work, error) {
	template := a.There
	if template == nil {
		a.Template = adopt.Template(a.live)
		if o.NoPolicy {
			fields.SetAnnotation(a.Template, workv1alpha2.ConflictResolutionAnnotation,
				workv1alpha2.ConflictResolutionOverwrite)
		}
		var err error
		template, err = m.Hub.PreviewTemplate(ctx, a.Template)
		if meta.IsNoMatchError(err) {
			return nil, unknownKind(a.Template.GroupVersionKind())
		}
		if err != nil {
			return nil, err
		}
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := m.Client.Get(ctx, types.NamespacedName{Name: a.Cluster}, cluster); err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", a.Cluster, err)
	}
	replicas, _, _, err := m.Meaning.Replicas(ctx, template)
	if err != nil {
		return nil, err
	}
	policy := adopt.Policy(template, cmp.Or(o.Policy, adopt.PolicyName(template)), a.Cluster)
	policy.PropagationSpec().PropagateDeps = o.Dependencies
	if o.Preserve {
		policy.PropagationSpec().PreserveResourcesOnDeletion = new(true)
	}
	if !o.NoPolicy {
		made, other, err := m.missingPolicy(ctx, template, policy)
		switch {
		case err != nil:
			return nil, err
		case other != nil && a.orphaned && a.There == nil:
			// It is of a template that this policy, or the one before it, had sent.
			if err := adopt.Sends(other, replicas, cluster); err != nil {
				return nil, err
			}
			policy = other
		case other != nil:
			return nil, fmt.Errorf("the policy %s claims %s and does not propagate it to cluster %q: change the policy's placement, then adopt the object",
				text.Path(other.GetNamespace(), other.GetName()), a.workload, a.Cluster)
		case made:
			a.Policy = policy
		}
	}
	a.Annotate = o.NoPolicy && a.There != nil
	overrides, err := scope.Overrides.List(ctx, m.Client)
	if err != nil {
		return nil, fmt.Errorf("list override policies: %w", err)
	}
	works, err := adopt.Works(ctx, template, policy, []adopt.Target{{Cluster: cluster, Replicas: replicas}}, overrides,
		m.Meaning)
	if err == nil && works[a.Cluster] == nil {
		err = fmt.Errorf("nothing would be sent to cluster %q", a.Cluster)
	}
	if err != nil {
		return nil, fmt.Errorf("render what the hub would send: %w", err)
	}
	return works[a.Cluster], nil
}

// missingPolicy reports whether the policy must be created: false if the same policy exists. other is another policy
// that would claim the template.
func (m *Migration) missingPolicy(ctx context.Context, template *unstructured.Unstructured,
	policy policyv1alpha1.Propagation) (made bool, other policyv1alpha1.Propagation, err error) {
	policies, err := m.policies(ctx)
	if err != nil {
		return false, nil, err
	}
	made = true
	for _, p := range policies {
		if !adopt.SamePolicy(p, policy) {
			continue
		}
		have, want := p.PropagationSpec(), policy.PropagationSpec()
		if !equality.Semantic.DeepEqual(have.ResourceSelectors, want.ResourceSelectors) ||
			have.ConflictResolution != want.ConflictResolution || want.PropagateDeps && !have.PropagateDeps {
			return false, nil, fmt.Errorf("the policy %s exists with other content: choose another name with --policy-name",
				policy.GetName())
		}
		made, policy = false, p
	}
	other, _ = adopt.Rival(template, policy, policies)
	return made, other, nil
}

// Adopt writes the objects of a plan: dependencies first, and the policy before the template, so that it is claimed at
// once.
func (m *Migration) Adopt(ctx context.Context, a *Adopted) error {
	for _, d := range a.Dependencies {
		if err := m.Adopt(ctx, d); err != nil {
			return err
		}
	}
	if a.Template != nil {
		if err := CreateNamespace(ctx, m.Client, a.workload.Namespace); err != nil {
			return err
		}
	}
	if a.Policy != nil {
		if err := m.Client.Create(ctx, a.Policy); err != nil {
			return fmt.Errorf("create policy %s on the hub: %w", a.Policy.GetName(), err)
		}
	}
	if a.Template != nil {
		onHub, err := m.Hub.Resource(a.Template.GroupVersionKind(), a.workload.Namespace)
		if err != nil {
			return err
		}
		if _, err := onHub.Create(ctx, a.Template, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s on the hub: %w", a.workload, err)
		}
	}
	if a.Annotate {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`,
			workv1alpha2.ConflictResolutionAnnotation, workv1alpha2.ConflictResolutionOverwrite))
		if err := m.Client.Patch(ctx, a.There, patch); err != nil {
			return fmt.Errorf("let %s on the hub take over the object: %w", a.workload, err)
		}
	}
	a.Adopted = true
	return nil
}

// AwaitAdopted waits until the hub manages an object that was adopted, and its dependencies.
func (m *Migration) AwaitAdopted(ctx context.Context, a *Adopted) error {
	for _, d := range a.Dependencies {
		if err := m.AwaitAdopted(ctx, d); err != nil {
			return err
		}
	}
	err := await(ctx, compareTimeout, func(ctx context.Context) (string, error) {
		work, err := m.work(ctx, a.Cluster, a.workload)
		if err != nil {
			return "", err
		}
		live, err := m.live(ctx, a.Cluster, a.workload)
		if err != nil || work != nil && live != nil && execute.Owns(work, live) {
			return "", err
		}
		return "the hub has not taken over the object: `argosy why` shows the reason", nil
	})
	if err != nil {
		return fmt.Errorf("%s is on the hub, but not adopted in cluster %q: %w", a.workload, a.Cluster, err)
	}
	return nil
}
