package joincli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/migration"
	"github.com/argosy-io/argosy/internal/scope"
)

func NewAdopt(hub *hubcli.HubFlags) *cobra.Command {
	a := &adoption{}
	flags := &hubcli.MemberFlags{}
	cmd := &cobra.Command{
		Use:     "adopt KIND NAME --cluster CLUSTER",
		Aliases: []string{"promote"},
		Short:   "Bring an object that runs in a cluster under the hub's management, without restarting a pod",
		Long: `Brings an object that runs in a member cluster under the hub's management: creates a template of it on the hub, and a policy that sends the
template to that cluster and takes over what is there.

Before anything is written, a dry run goes through the admission of the hub and of the member, with the overrides that
apply. If pods would be restarted, replaced or removed, the adoption is refused, and the command lists the fields. If the hub
already has a template of that name, it is compared and not changed. KIND is a kind, plural or short name, with
".group" if it is ambiguous. karmadactl calls this command promote.`,
		Example: `  argosy adopt cloneset web -n shop --cluster eu --dry-run
  argosy adopt cloneset web -n shop --cluster eu
  karmadactl promote deployment web -n shop -C eu --cluster-kubeconfig eu.kubeconfig`,
		ValidArgsFunction: hubcli.OneOfHub(hub),
		Args:              hubcli.OneObject("cloneset web"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := hubcli.CheckOutput(a.output); err != nil {
				return err
			}
			a.kind, a.name = hubcli.ObjectOf(args)
			a.out = cmd.OutOrStdout()
			return a.run(cmd.Context(), hub, flags)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&a.cluster, "cluster", "C", "", "cluster that the object lives in")
	_ = cmd.MarkFlagRequired("cluster") // fails only for an unknown flag
	f.StringVar(&flags.Kubeconfig, "cluster-kubeconfig", "",
		"kubeconfig of the member cluster (default: through the hub, which needs the right to use clusters/proxy)")
	f.StringVar(&flags.Context, "cluster-context", "",
		"context of the member cluster in its kubeconfig (default: the current one)")
	f.BoolVar(&a.createPolicy, "auto-create-policy", true,
		"create a policy that propagates the template to the cluster; if false, an annotation on the template allows it to take over the object")
	f.StringVar(&a.policyName, "policy-name", "", "name of that policy (default: NAME-KIND)")
	f.BoolVar(&a.dryRun, "dry-run", false, "show what would change, and write nothing")
	f.BoolVar(&a.force, "force", false, "adopt even if that restarts, replaces or removes pods")
	f.StringVarP(&a.output, "output", "o", "", "output format: json or yaml, with the changes and the objects written")
	return cmd
}

// adoption brings an object of a member under the hub's management.
type adoption struct {
	kind, name, namespace string
	cluster, policyName   string
	createPolicy          bool
	dryRun, force         bool
	output                string
	out                   io.Writer

	hub, member migration.API
	client      client.Client
}

// newAPI connects to the hub or a member.
func newAPI(config *rest.Config) (migration.API, error) {
	mapper, err := hubcli.MapperOf(hubcli.DiscoverOnce(config, nil))
	if err != nil {
		return migration.API{}, err
	}
	c, err := dynamic.NewForConfig(config)
	return migration.API{Dynamic: c, Mapper: mapper}, err
}

// adopted is the result of an adoption, for programs.
type adopted struct {
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

	live     *unstructured.Unstructured
	orphaned bool                       // it has the labels of a Work that the hub does not have
	there    *unstructured.Unstructured // the template on the hub
}

func (a *adoption) run(ctx context.Context, hub *hubcli.HubFlags, flags *hubcli.MemberFlags) error {
	if err := a.connect(ctx, hub, flags); err != nil {
		return err
	}
	result, err := a.plan(ctx)
	if err != nil {
		return err
	}
	var refused error
	if len(result.Disturbs) > 0 && !a.force {
		refused = fmt.Errorf("%s in cluster %q is not adopted, because its pods would not stay unchanged:\n  %s\nNothing was written. "+
			"Fix the template or the hub's overrides, or adopt it with --force", hubcli.ObjectName(result.live), a.cluster,
			strings.Join(result.Disturbs, "\n  "))
	}
	if refused == nil && !a.dryRun && !result.Managed {
		if err := a.write(ctx, result); err != nil {
			return err
		}
		result.Adopted = true
	}
	if a.output != "" {
		err = hubcli.WriteAs(a.out, a.output, result)
	} else {
		a.print(result)
	}
	if err != nil || refused != nil {
		return errors.Join(refused, err)
	}
	if result.Adopted {
		return a.arrived(ctx, result)
	}
	return nil
}

// connect reaches the hub and the member.
func (a *adoption) connect(ctx context.Context, hub *hubcli.HubFlags, flags *hubcli.MemberFlags) error {
	config, err := hub.ToRESTConfig()
	if err != nil {
		return err
	}
	a.namespace = hub.NamespaceOrDefault()
	if a.hub, err = newAPI(config); err != nil {
		return err
	}
	if a.client, err = client.New(config, client.Options{Scheme: hubcli.Scheme, Mapper: a.hub.Mapper}); err != nil {
		return err
	}
	there, err := memberConfig(ctx, a.client, config, a.cluster, flags)
	if err != nil {
		return err
	}
	if a.member, err = newAPI(there); err != nil {
		return Unreachable(a.cluster, there.Host, err)
	}
	return nil
}

// memberConfig returns the configuration of a client of a member: from its kubeconfig if given, otherwise through the
// hub, as the hub's user.
func memberConfig(ctx context.Context, hub client.Client, hubConfig *rest.Config, name string,
	flags *hubcli.MemberFlags) (*rest.Config, error) {
	if _, err := hubcli.Joined(ctx, hub, name); err != nil {
		return nil, err
	}
	var config *rest.Config
	if flags.Kubeconfig != "" {
		e, err := flags.Endpoint()
		if err != nil {
			return nil, err
		}
		config = rest.CopyConfig(e.Config)
	} else {
		config = proxy.Config(hubConfig, name)
	}
	config.Timeout, config.QPS = hubcli.RequestTimeout, -1
	return config, nil
}

// plan reads the objects and returns what the adoption would write and change.
func (a *adoption) plan(ctx context.Context) (*adopted, error) {
	// 1. The object, in a version that both know.
	live, err := a.find(ctx)
	if err != nil {
		return nil, err
	}
	gvk := live.GroupVersionKind()
	onHub, err := a.hub.Resource(gvk, a.namespace)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the hub does not know %s: create its CustomResourceDefinition on the hub first", gvk)
	}
	if err != nil {
		return nil, err
	}
	result := &adopted{Cluster: a.cluster, live: live}
	there, err := onHub.Get(ctx, a.name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("look for %s on the hub: %w", hubcli.ObjectName(live), err)
	} else if err == nil {
		result.there = there
	}

	// 2. The existing Work, or the one that the hub would create.
	var work *workv1alpha1.Work
	if result.there != nil {
		if work, err = a.standing(ctx, there); err != nil {
			return nil, err
		}
	}
	if work != nil && execute.Owns(work, live) {
		result.Managed = true
		return result, nil
	}
	free := live
	if result.orphaned, err = a.orphaned(ctx, live); err != nil {
		return nil, err
	}
	if result.orphaned {
		free = execute.Released(live) // its annotations are those of the restored hub
	}
	if err := adopt.Obstacle(free); err != nil {
		return nil, fmt.Errorf("%s in cluster %q cannot be adopted: %w", hubcli.ObjectName(live), a.cluster, err)
	}
	meaning, err := migration.Interpreter(ctx, a.client)
	if err != nil {
		return nil, err
	}
	if work != nil {
		if err := a.checkOnlyCluster(ctx, there); err != nil {
			return nil, err
		}
		result.Annotate = true
		metav1.SetMetaDataAnnotation(&work.ObjectMeta, workv1alpha2.ConflictResolutionAnnotation,
			workv1alpha2.ConflictResolutionOverwrite)
	} else if work, err = a.rehearse(ctx, result, meaning); err != nil {
		return nil, err
	}

	// 3. The result of the adoption, from a dry run in the member if possible.
	result.Report, result.Asked, err = a.member.Compare(ctx, a.cluster, work, live, meaning, false)
	return result, err
}

// find returns the object in the member, of the kind that the user names. If the name is ambiguous, the hub's kind is
// used.
func (a *adoption) find(ctx context.Context) (*unstructured.Unstructured, error) {
	resource := schema.ParseGroupResource(a.kind).WithVersion("")
	gvk, err := a.hub.Mapper.KindFor(resource)
	if meta.IsNoMatchError(err) {
		gvk, err = a.member.Mapper.KindFor(resource)
	}
	if err != nil {
		return nil, fmt.Errorf("resolve %q: %w", a.kind, err)
	}
	mapping, err := a.member.Mapper.RESTMapping(gvk.GroupKind())
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", a.cluster, err)
	}
	in, err := a.member.Resource(mapping.GroupVersionKind, a.namespace)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		a.namespace = ""
	}
	live, err := in.Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read it in cluster %q: %w", a.cluster, err)
	}
	return live, nil
}

// orphaned reports whether the object is marked as that of a Work which this hub would make of its template, and does
// not have.
func (a *adoption) orphaned(ctx context.Context, live *unstructured.Unstructured) (bool, error) {
	key, ok := execute.WorkOf(live, a.cluster)
	if !ok || !slices.Contains(names.Works(live.GroupVersionKind().GroupKind(), live.GetName(), live.GetNamespace()),
		key.Name) {
		return false, nil
	}
	err := a.client.Get(ctx, key, &workv1alpha1.Work{})
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// standing returns the Work of a template for the cluster, nil if the hub sends it nothing.
func (a *adoption) standing(ctx context.Context, template *unstructured.Unstructured) (*workv1alpha1.Work, error) {
	b, err := a.binding(ctx, template)
	if err != nil {
		return nil, err
	}
	return scope.WorkOf(ctx, a.client, a.cluster, dispatch.WorkName(b, template), identity.FromManifest(template))
}

// binding returns the binding of a template; nil if there is none.
func (a *adoption) binding(ctx context.Context, template *unstructured.Unstructured) (workv1alpha2.Binding, error) {
	b, _, err := scope.BindingFor(ctx, a.client, template.GroupVersionKind().GroupKind(), template.GetNamespace(),
		template.GetName())
	return b, err
}

// checkOnlyCluster returns an error if the template is placed in other clusters too: it would take over objects there
// as well.
func (a *adoption) checkOnlyCluster(ctx context.Context, template *unstructured.Unstructured) error {
	b, err := a.binding(ctx, template)
	if err != nil {
		return err
	}
	if b == nil {
		return fmt.Errorf("%s has no binding: see `argosy why`", hubcli.ObjectName(template))
	}
	applied := map[string]bool{a.cluster: true}
	for _, item := range b.BindingStatus().AggregatedStatus {
		applied[item.ClusterName] = applied[item.ClusterName] || item.Applied
	}
	for _, target := range b.BindingSpec().Clusters {
		if !applied[target.Name] && !a.force {
			return fmt.Errorf("the hub's %s is also propagated to cluster %q and is not applied there: adopting it would take over the object there as well. "+
				"Fix what `argosy why` shows and adopt it then, or use --force", hubcli.ObjectName(template), target.Name)
		}
	}
	return nil
}

// rehearse returns the Work that the hub would make, of the template that it has or would have.
func (a *adoption) rehearse(ctx context.Context, result *adopted,
	meaning interpret.Interpreter) (*workv1alpha1.Work, error) {
	template := result.there
	if template == nil {
		made := adopt.Template(result.live)
		if !a.createPolicy {
			fields.SetAnnotation(made, workv1alpha2.ConflictResolutionAnnotation, workv1alpha2.ConflictResolutionOverwrite)
		}
		result.Template = made
		var err error
		if template, err = a.hub.PreviewTemplate(ctx, made); err != nil {
			return nil, err
		}
	}

	name := a.policyName
	if name == "" {
		name = adopt.PolicyName(template)
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := a.client.Get(ctx, types.NamespacedName{Name: a.cluster}, cluster); err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", a.cluster, err)
	}
	policy := adopt.Policy(template, name, a.cluster)
	if a.createPolicy {
		made, other, err := a.missingPolicy(ctx, template, policy)
		switch {
		case err != nil:
			return nil, err
		case other != nil && result.orphaned && result.there == nil:
			// It is of a template that this policy, or the one before it, had sent.
			replicas, _, _, err := meaning.Replicas(ctx, template)
			if err != nil {
				return nil, err
			}
			if err := adopt.Sends(other, replicas, cluster); err != nil {
				return nil, err
			}
			policy = other
		case other != nil:
			return nil, fmt.Errorf("the policy %s claims %s and does not propagate it to cluster %q: change the policy's placement, then adopt the object",
				text.Path(other.GetNamespace(), other.GetName()), hubcli.ObjectName(template), a.cluster)
		case made:
			result.Policy = policy
		}
	} else if result.there != nil {
		result.Annotate = true
	}

	overrides, err := scope.Overrides.List(ctx, a.client)
	if err != nil {
		return nil, fmt.Errorf("list override policies: %w", err)
	}
	w, err := adopt.Work(ctx, adopt.Input{Template: template, Policy: policy, Cluster: cluster, Overrides: overrides},
		meaning)
	if err != nil {
		return nil, fmt.Errorf("render what the hub would send: %w", err)
	}
	return w, nil
}

// missingPolicy reports whether the policy must be created: false if the same policy exists. other is another policy
// that would claim the template.
func (a *adoption) missingPolicy(ctx context.Context, template *unstructured.Unstructured,
	policy policyv1alpha1.Propagation) (made bool, other policyv1alpha1.Propagation, err error) {
	policies, err := scope.Propagations.List(ctx, a.client)
	if err != nil {
		return false, nil, fmt.Errorf("list policies: %w", err)
	}
	made = true
	for _, p := range policies {
		if !adopt.SamePolicy(p, policy) {
			continue
		}
		have, want := p.PropagationSpec(), policy.PropagationSpec()
		if !equality.Semantic.DeepEqual(have.ResourceSelectors, want.ResourceSelectors) ||
			have.ConflictResolution != want.ConflictResolution {
			return false, nil, fmt.Errorf("the policy %s exists with other content: choose another name with --policy-name",
				policy.GetName())
		}
		made, policy = false, p
	}
	other, _ = adopt.Rival(template, policy, policies)
	return made, other, nil
}

// write writes the objects of the plan: the policy before the template, so that it is claimed at once.
func (a *adoption) write(ctx context.Context, result *adopted) error {
	if result.Template != nil {
		if err := migration.CreateNamespace(ctx, a.client, a.namespace); err != nil {
			return err
		}
	}
	if result.Policy != nil {
		if err := a.client.Create(ctx, result.Policy); err != nil {
			return fmt.Errorf("create policy %s on the hub: %w", result.Policy.GetName(), err)
		}
	}
	if result.Template != nil {
		onHub, err := a.hub.Resource(result.Template.GroupVersionKind(), a.namespace)
		if err != nil {
			return err
		}
		if _, err := onHub.Create(ctx, result.Template, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s on the hub: %w", hubcli.ObjectName(result.Template), err)
		}
	}
	if result.Annotate {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`,
			workv1alpha2.ConflictResolutionAnnotation, workv1alpha2.ConflictResolutionOverwrite))
		if err := a.client.Patch(ctx, result.there, patch); err != nil {
			return fmt.Errorf("let %s on the hub take over the object: %w", hubcli.ObjectName(result.there), err)
		}
	}
	return nil
}

// arrivalTimeout bounds the wait until the hub manages the object.
const arrivalTimeout = 30 * time.Second

// arrived waits until the object is the fleet's.
func (a *adoption) arrived(ctx context.Context, result *adopted) error {
	if !a.createPolicy {
		return nil // the user must create what sends it
	}
	in, err := a.member.Resource(result.live.GroupVersionKind(), a.namespace)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, arrivalTimeout, true,
		func(ctx context.Context) (bool, error) {
			w, err := a.standing(ctx, result.live)
			if err != nil || w == nil {
				return false, err
			}
			now, err := in.Get(ctx, a.name, metav1.GetOptions{})
			return err == nil && execute.Owns(w, now), err
		})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s is on the hub, but is not adopted in cluster %q after %s: `argosy why` shows the reason",
			hubcli.ObjectName(result.live), a.cluster, arrivalTimeout)
	}
	return err
}

func (a *adoption) print(result *adopted) {
	what := hubcli.ObjectName(result.live)
	if result.Managed {
		fmt.Fprintf(a.out, "%s in cluster %q is adopted already\n", what, a.cluster)
		return
	}
	switch {
	case result.there != nil:
		fmt.Fprintf(a.out, "The hub already has a template of that name; it is not changed.\n")
	case len(result.Differences) == 0:
		fmt.Fprintf(a.out, "The template is a copy of the object.\n")
	}
	if !result.Asked {
		fmt.Fprintf(a.out, "Cluster %q does not support a dry run for it, so only the applied fields are compared.\n",
			a.cluster)
	}
	if len(result.Differences) == 0 {
		fmt.Fprintf(a.out, "Only the labels and annotations of the hub change in %s.\n", what)
	}
	for _, d := range result.Differences {
		fmt.Fprintf(a.out, "  %s: %s → %s\n", d.Path, shown(d.Have), shown(d.Want))
	}
	switch {
	case len(result.Disturbs) > 0 && !a.force:
	case a.dryRun:
		fmt.Fprintf(a.out, "%s in cluster %q can be adopted (dry run: nothing was written)\n", what, a.cluster)
	default:
		fmt.Fprintf(a.out, "%s in cluster %q is adopted\n", what, a.cluster)
		if !a.createPolicy {
			fmt.Fprintln(a.out, "No policy was created: the template is propagated when a policy selects it.")
		}
	}
}

// shown returns a value on one line.
func shown(v any) string { return migration.Shown(v) }
