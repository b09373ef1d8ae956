package interpretcli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/interpret/shipped"
	"github.com/argosy-io/argosy/internal/core/interpret/tiers"
)

// patience is how long a hub is waited for.
const patience = 10 * time.Second

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{configv1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake in our types
		}
	}
	return s
}()

func newExplain(hub Hub) *cobra.Command {
	var output string
	var template bool
	cmd := &cobra.Command{
		Use:   "explain KIND",
		Short: "Say which tier answers each operation for a kind now",
		Long: `Say which tier answers each operation for a kind now.

KIND is a kind, a plural, or one of them with its group: CloneSet, clonesets.apps.kruise.io,
apps.kruise.io/v1alpha1/CloneSet. The hub is asked for its customizations and webhooks; without one, what is said is what Argosy
knows by itself. Tiers are asked in this order, for each operation: ResourceInterpreterCustomization, webhook, shipped script,
built in.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			machine, err := asJSON(output)
			if err != nil {
				return err
			}
			if template {
				return printShipped(cmd.OutOrStdout(), args[0])
			}
			e, err := explained(cmd.Context(), hub, args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if machine {
				return printJSON(cmd.OutOrStdout(), e)
			}
			return printExplained(cmd.OutOrStdout(), e)
		},
	}
	cmd.Flags().BoolVar(&template, "shipped", false, "print the customization that Argosy ships for the kind, as a start for one of your own")
	outputFlag(cmd, &output)
	return cmd
}

// explanation is what is said of one kind.
type explanation struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Hub says whether one was asked.
	Hub        bool     `json:"hub"`
	Operations []answer `json:"operations"`
}

type answer struct {
	Operation configv1alpha1.InterpreterOperation `json:"operation"`
	// Tier that answers; empty when none does: then Default holds.
	Tier    string   `json:"tier,omitempty"`
	By      []string `json:"by,omitempty"`
	Default string   `json:"default,omitempty"`
}

func explained(ctx context.Context, hub Hub, name string, errOut io.Writer) ([]explanation, error) {
	var customizations configv1alpha1.ResourceInterpreterCustomizationList
	var webhooks configv1alpha1.ResourceInterpreterWebhookConfigurationList
	asked, found := false, hub.Named()
	c, err := clientOf(hub)
	if err == nil {
		found = true
		if err = c.List(ctx, &customizations); err == nil {
			err = c.List(ctx, &webhooks)
		}
		asked = err == nil
	}
	if err != nil && found {
		fmt.Fprintf(errOut, "Warning: the hub cannot be asked, so this is what Argosy knows by itself: %v\n", err)
	}
	var kinds []schema.GroupVersionKind
	if asked {
		mapper, err := hub.ToRESTMapper()
		if err != nil {
			return nil, err
		}
		kinds = servedAs(mapper, name)
	}
	if len(kinds) == 0 {
		known, err := named(name, customizations.Items)
		if err != nil {
			return nil, err
		}
		kinds = known
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("%s is a kind of neither Kubernetes nor OpenKruise nor Argo, nor one that Argosy ships scripts for: "+
			"name it in full, as example.org/v1/Widget, or name a hub that serves it with --kubeconfig", name)
	}
	var all []explanation
	for _, kind := range kinds {
		e := explanation{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Hub: asked}
		for _, a := range tiers.Explain(kind, pointers(customizations.Items), pointers(webhooks.Items)) {
			e.Operations = append(e.Operations, answer{Operation: a.Operation, Tier: a.Tier, By: a.By, Default: a.Default})
		}
		all = append(all, e)
	}
	return all, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// servedAs are the kinds of a hub that go by a name, in the version that the hub prefers.
func servedAs(mapper meta.RESTMapper, name string) []schema.GroupVersionKind {
	if gvk, ok := inFull(name); ok {
		return []schema.GroupVersionKind{gvk}
	}
	resource, group, _ := strings.Cut(strings.ToLower(name), ".")
	kinds, err := mapper.KindsFor(schema.GroupVersionResource{Group: group, Resource: resource})
	if err != nil {
		return nil
	}
	var first []schema.GroupVersionKind
	for _, k := range kinds {
		if !slices.ContainsFunc(first, func(other schema.GroupVersionKind) bool { return other.GroupKind() == k.GroupKind() }) {
			first = append(first, k)
		}
	}
	return first
}

// inFull reads group/version/Kind and version/Kind.
func inFull(name string) (schema.GroupVersionKind, bool) {
	target, err := parseTarget(name)
	if err != nil || name == "" {
		return schema.GroupVersionKind{}, false
	}
	return schema.FromAPIVersionAndKind(target.APIVersion, target.Kind), true
}

// named are the kinds that Argosy knows, or that customizations are about, and that go by a name, sorted.
func named(name string, customizations []configv1alpha1.ResourceInterpreterCustomization) ([]schema.GroupVersionKind, error) {
	if gvk, ok := inFull(name); ok {
		return []schema.GroupVersionKind{gvk}, nil
	}
	set, err := schemas.Builtin()
	if err != nil {
		return nil, err
	}
	all := set.Kinds()
	ours, err := shipped.Customizations()
	if err != nil {
		return nil, err
	}
	for _, c := range append(ours, pointers(customizations)...) {
		all = append(all, schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind))
	}
	wanted, group, _ := strings.Cut(strings.ToLower(name), ".")
	newest := map[schema.GroupKind]schema.GroupVersionKind{}
	for _, gvk := range all {
		plural, singular := meta.UnsafeGuessKindToResource(gvk)
		if wanted != strings.ToLower(gvk.Kind) && wanted != plural.Resource && wanted != singular.Resource || group != "" && group != gvk.Group {
			continue
		}
		if was, ok := newest[gvk.GroupKind()]; !ok || version.CompareKubeAwareVersionStrings(was.Version, gvk.Version) < 0 {
			newest[gvk.GroupKind()] = gvk
		}
	}
	var found []schema.GroupVersionKind
	for _, gvk := range newest {
		found = append(found, gvk)
	}
	slices.SortFunc(found, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.Group, b.Group) })
	return found, nil
}

// printShipped prints a customization that has all it needs in it.
func printShipped(out io.Writer, name string) error {
	kinds, err := named(name, nil)
	if err != nil {
		return err
	}
	all, err := shipped.Customizations()
	if err != nil {
		return err
	}
	for _, c := range all {
		kind := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind).GroupKind()
		if !slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return k.GroupKind() == kind }) {
			continue
		}
		text, err := yaml.Marshal(map[string]any{
			"apiVersion": configv1alpha1.GroupVersion.String(), "kind": "ResourceInterpreterCustomization",
			"metadata": map[string]any{"name": strings.TrimPrefix(c.Name, "shipped-")}, "spec": c.Spec,
		})
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	return fmt.Errorf("no script is shipped for %s; `argosy interpret explain %s` says who answers", name, name)
}

func printExplained(out io.Writer, all []explanation) error {
	for i, e := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		where := "as this hub has it"
		if !e.Hub {
			where = "without a hub"
		}
		fmt.Fprintf(out, "%s %s, %s\n", schema.GroupVersion{Group: e.Group, Version: e.Version}, e.Kind, where)
		tabs := printers.GetNewTabWriter(out)
		fmt.Fprintln(tabs, "OPERATION\tTIER\tBY")
		for _, a := range e.Operations {
			tier, by := a.Tier, strings.Join(a.By, ", ")
			if tier == "" {
				tier, by = "<none>", a.Default
			}
			fmt.Fprintf(tabs, "%s\t%s\t%s\n", a.Operation, tier, by)
		}
		if err := tabs.Flush(); err != nil {
			return err
		}
	}
	return nil
}
