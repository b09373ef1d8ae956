package objectcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	kubectlapply "k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
)

// NewApply is kubectl's, which also writes a policy for each object, as karmadactl does.
func NewApply(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	a := &apply{Factory: cmdutil.NewFactory(hub), hub: hub, errOut: streams.ErrOut}
	flags := kubectlapply.NewApplyFlags(streams)
	cmd := &cobra.Command{
		Use:                   "apply (-f FILENAME | -k DIRECTORY) [-C CLUSTERS | --all-clusters]",
		DisableFlagsInUseLine: true,
		Short:                 "Apply objects of files on the hub, and propagate them to clusters",
		Long: `Applies the objects of files on the hub, as kubectl does.

With --cluster or --all-clusters, it also applies a policy for each object, which propagates the object to these
clusters. The policy is a PropagationPolicy in the namespace of the object, or a ClusterPropagationPolicy for an object
without a namespace. Its name is the name of the object and a hash, so that applying the object again updates it.
Objects that are never propagated get none. A policy in the files takes effect on the hub as always: it also applies to
objects that are created later, in the clusters that the policy names. A warning names each.`,
		Example: `  argosy apply -f web.yaml
  argosy apply -f web.yaml -C eu,us
  argosy apply -f web/ --all-clusters --dry-run=server`,
		Args:              hubcli.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.check(cmd.Context()); err != nil {
				return err
			}
			return hubcli.Fatal(func() {
				o, err := flags.ToOptions(a, cmd, hub.CalledBy, args)
				cmdutil.CheckErr(err)
				cmdutil.CheckErr(o.Validate())
				cmdutil.CheckErr(a.addPolicies(o))
				cmdutil.CheckErr(o.Run())
			})
		},
	}
	flags.AddFlags(cmd)
	cmd.Flags().BoolVar(&a.all, "all-clusters", false, "propagate the objects to all clusters")
	cmd.Flags().StringSliceVarP(&a.clusters, "cluster", "C", nil,
		"propagate the objects to these clusters, comma-separated")
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "clusters" {
			name = "cluster"
		}
		return pflag.NormalizedName(name)
	})
	return cmd
}

// apply adds policies to what is applied.
type apply struct {
	cmdutil.Factory
	hub      *hubcli.HubFlags
	all      bool
	clusters []string
	errOut   io.Writer
}

// check returns an error if the clusters contradict --all-clusters, or the fleet does not have them.
func (a *apply) check(ctx context.Context) error {
	if len(a.clusters) == 0 {
		return nil
	}
	if a.all {
		return errors.New("--all-clusters and --cluster cannot be used together")
	}
	c, err := a.hub.Client()
	if err != nil {
		return err
	}
	for _, name := range a.clusters {
		// Users may propagate to clusters that they may not read.
		if _, err := hubcli.GetCluster(ctx, c, name); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

// addPolicies adds a policy before each object, so that the object is claimed when it is created.
func (a *apply) addPolicies(o *kubectlapply.ApplyOptions) error {
	if !a.all && len(a.clusters) == 0 {
		return nil
	}
	infos, err := o.GetObjects()
	if err != nil {
		return err
	}
	var all []*resource.Info
	for _, info := range infos {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(info.Object)
		if err != nil {
			return err
		}
		template := &unstructured.Unstructured{Object: fields}
		object := text.Object(template.GetKind(), template.GetNamespace(), template.GetName())
		if why := propagate.ExclusionOf(match.TemplateOf(template)); isPolicy(template.GroupVersionKind()) {
			text.Fprintf(a.errOut, "Warning: %s stays on the hub, and is in effect there: it also applies to objects that are "+
				"created later, whatever clusters this command names\n", object)
		} else if why != "" {
			text.Fprintf(a.errOut, "%s stays on the hub: %s\n", object, why)
		} else {
			policy, err := a.policyInfo(o, template)
			if err != nil {
				return err
			}
			all = append(all, policy)
		}
		all = append(all, info)
	}
	o.SetObjects(all)
	return nil
}

// isPolicy reports whether objects of the kind propagate or override other objects.
func isPolicy(gvk schema.GroupVersionKind) bool {
	return gvk.Group == policyv1alpha1.GroupVersion.Group &&
		(strings.HasSuffix(gvk.Kind, "PropagationPolicy") || strings.HasSuffix(gvk.Kind, "OverridePolicy"))
}

// policyInfo returns the policy of a template in the form that kubectl applies.
func (a *apply) policyInfo(o *kubectlapply.ApplyOptions, template *unstructured.Unstructured) (*resource.Info, error) {
	policy := propagate.PolicyFor(template, adopt.PolicyName(template), a.clusters)
	gvk := policy.GetObjectKind().GroupVersionKind()
	mapping, err := o.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("find %s on the hub: %w", gvk.Kind, err)
	}
	c, err := a.UnstructuredClientForMapping(mapping)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(policy)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	return &resource.Info{Client: c, Mapping: mapping, Namespace: policy.GetNamespace(), Name: policy.GetName(),
		Object: &unstructured.Unstructured{Object: fields}}, nil
}
