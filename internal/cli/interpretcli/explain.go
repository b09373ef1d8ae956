package interpretcli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/api/argo"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/api/definition"
	"github.com/argosy-io/argosy/api/kruise"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/customization"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/shipped"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/why"
)

// requestTimeout is the timeout of requests to a hub.
const requestTimeout = 10 * time.Second

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{configv1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two kinds with one name: a mistake in our types
		}
	}
	return s
}()

func newExplain(hub HubClients) *cobra.Command {
	var output string
	var template bool
	cmd := &cobra.Command{
		Use:   "explain KIND",
		Short: "Show which tier answers each operation for a kind",
		Long: `Show which tier answers each operation for a kind.

KIND is a kind or plural, with or without its group: CloneSet, clonesets.apps.kruise.io, apps.kruise.io/v1alpha1/CloneSet.
The command reads customizations and webhooks from the hub; without a hub, it shows only what is built into Argosy. For each
operation, the first tier that answers is used, in this order: ResourceInterpreterCustomization, webhook, shipped script,
built in.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return fmt.Errorf("name one kind, such as CloneSet, clonesets.apps.kruise.io or apps.kruise.io/v1alpha1/CloneSet")
			}
			if _, full := inFull(args[0]); strings.Contains(args[0], "/") && !full {
				return fmt.Errorf("%s: a name with / must be a full kind, such as apps.kruise.io/v1alpha1/CloneSet or v1/Pod",
					args[0])
			}
			return nil
		},
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
				return hubcli.WriteJSON(cmd.OutOrStdout(), e)
			}
			return printExplained(cmd.OutOrStdout(), e)
		},
	}
	cmd.Flags().BoolVar(&template, "shipped", false,
		"print the customization that Argosy ships for the kind, as a starting point for your own")
	outputFlag(cmd, &output)
	return cmd
}

// explanation is the answer for one kind.
type explanation struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Hub reports whether a hub was asked, and Served whether it serves the kind in this version.
	Hub        bool               `json:"hub"`
	Served     bool               `json:"served"`
	Operations []interpret.Answer `json:"operations"`
}

func (e *explanation) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: e.Group, Version: e.Version, Kind: e.Kind}
}

func explained(ctx context.Context, hub HubClients, name string, errOut io.Writer) ([]explanation, error) {
	var customizations configv1alpha1.ResourceInterpreterCustomizationList
	var webhooks configv1alpha1.ResourceInterpreterWebhookConfigurationList
	asked, found := false, hub.Named()
	c, err := clientOf(hub)
	var missing []roles.Missing
	if err == nil {
		found = true
		for _, list := range []client.ObjectList{&customizations, &webhooks} {
			if err = c.List(ctx, list); err == nil {
				continue
			}
			lacks := why.MissingOf(err, "list", "")
			if lacks == nil {
				break
			}
			missing, err = append(missing, *lacks), nil
		}
		asked = err == nil
	}
	if len(missing) > 0 {
		fmt.Fprintf(errOut, "Warning: %s; their rules on this hub are not shown\n", roles.Sentence(missing))
	}
	if err != nil && found {
		fmt.Fprintf(errOut, "Warning: the hub is not available, so this shows only what is built into Argosy: %v\n", err)
	}
	var kinds []schema.GroupVersionKind
	served := func(schema.GroupVersionKind) bool { return false }
	known := customization.Options{Schema: tiers.Schema, Convert: tiers.Convert}
	if asked {
		mapper, err := hub.ToRESTMapper()
		if err != nil {
			return nil, err
		}
		if kinds, err = servedAs(mapper, name); err != nil {
			return nil, err
		}
		served = func(kind schema.GroupVersionKind) bool {
			_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			return err == nil
		}
		if known, err = knownTo(ctx, c, mapper, kinds, known); err != nil {
			return nil, err
		}
	}
	if len(kinds) == 0 {
		if kinds, err = named(name, customizations.Items); err != nil {
			return nil, err
		}
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("%s is not a kind of Kubernetes, OpenKruise or Argo, and Argosy ships no scripts for it%s: "+
			"give its full name, such as example.org/v1/Widget, or the kubeconfig of a hub that serves it with --kubeconfig",
			name, perhaps(name))
	}
	var all []explanation
	for _, kind := range kinds {
		all = append(all, explanation{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Hub: asked,
			Served: served(kind), Operations: tiers.Explain(kind, scope.Pointers(customizations.Items),
				scope.Pointers(webhooks.Items), known)})
	}
	return all, nil
}

func clientOf(hub HubClients) (client.Client, error) {
	config, err := hub.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = cmp.Or(config.Timeout, requestTimeout)
	return client.New(config, client.Options{Scheme: scheme})
}

// knownTo adds the schemas of the definitions on a hub.
func knownTo(ctx context.Context, c client.Reader, mapper meta.RESTMapper, kinds []schema.GroupVersionKind,
	o customization.Options) (customization.Options, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range kinds {
		mapping, err := mapper.RESTMapping(kind.GroupKind())
		if err != nil || kind.Group == "" {
			continue // not served, or a kind of Kubernetes
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err = c.Get(ctx, client.ObjectKey{Name: mapping.Resource.GroupResource().String()}, crd)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue // the shipped schemas are used
		}
		if err != nil {
			return o, fmt.Errorf("read the definition of %s: %w", kind.Kind, err)
		}
		crds = append(crds, crd)
	}
	return interpreter.Known(crds, o), nil
}

// servedAs returns the kinds of a hub that go by a name, in the version that the hub prefers; a name in full is that
// kind whether or not it is served.
func servedAs(mapper meta.RESTMapper, name string) ([]schema.GroupVersionKind, error) {
	if gvk, ok := inFull(name); ok {
		return []schema.GroupVersionKind{gvk}, nil
	}
	kinds, err := mapper.KindsFor(spelled(name))
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("discover the kinds that the hub serves: %w", err)
	}
	var first []schema.GroupVersionKind
	for _, k := range kinds {
		if !slices.ContainsFunc(first, func(other schema.GroupVersionKind) bool {
			return other.GroupKind() == k.GroupKind()
		}) {
			first = append(first, k)
		}
	}
	return first, nil
}

var versionName = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// spelled parses resource, resource.group and resource.version.group, as kubectl does; missing parts are empty.
func spelled(name string) schema.GroupVersionResource {
	resource, rest, _ := strings.Cut(strings.ToLower(name), ".")
	if v, group, ok := strings.Cut(rest, "."); ok && versionName.MatchString(v) {
		return schema.GroupVersionResource{Group: group, Version: v, Resource: resource}
	}
	return schema.GroupVersionResource{Group: rest, Resource: resource}
}

// inFull reads group/version/Kind and version/Kind.
func inFull(name string) (schema.GroupVersionKind, bool) {
	at := strings.LastIndex(name, "/")
	if at <= 0 || at == len(name)-1 || name[at+1] < 'A' || name[at+1] > 'Z' {
		return schema.GroupVersionKind{}, false
	}
	gvk := schema.FromAPIVersionAndKind(name[:at], name[at+1:])
	return gvk, gvk.Version != "" && len(validation.IsDNS1035Label(gvk.Version)) == 0
}

// perhaps suggests the kind that the user probably meant; empty if no name is similar.
func perhaps(name string) string {
	set, err := schemas.Builtin()
	if err != nil {
		return ""
	}
	var kinds []string
	for _, k := range set.Kinds() {
		kinds = append(kinds, k.Kind)
	}
	slices.Sort(kinds)
	resource, _, _ := strings.Cut(name, ".")
	if meant := text.Meant(strings.TrimSuffix(resource, "s"), kinds); meant != "" {
		return " (did you mean " + meant + "?)"
	}
	return ""
}

// named returns the kinds that Argosy knows, or that customizations are about, and that go by a name, sorted.
func named(name string, customizations []configv1alpha1.ResourceInterpreterCustomization) ([]schema.GroupVersionKind,
	error) {
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
	for _, c := range append(ours, scope.Pointers(customizations)...) {
		all = append(all, schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind))
	}
	asked := spelled(name)
	newest := map[schema.GroupKind]schema.GroupVersionKind{}
	for _, gvk := range all {
		plural, singular := meta.UnsafeGuessKindToResource(gvk)
		if !slices.Contains([]string{strings.ToLower(gvk.Kind), plural.Resource, singular.Resource}, asked.Resource) ||
			asked.Group != "" && asked.Group != gvk.Group || asked.Version != "" && asked.Version != gvk.Version {
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
	return fmt.Errorf("no script is shipped for %s; `argosy interpret explain %s` shows which tier answers", name, name)
}

func printExplained(out io.Writer, all []explanation) error {
	for i, e := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s %s, %s\n", e.gvk().GroupVersion(), e.Kind, e.validFor())
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
		for _, a := range e.Operations {
			for _, b := range a.Besides {
				fmt.Fprintf(out, "%s is also answered by %s, for %s\n", a.Operation, b.By, b.Version)
			}
		}
		if slices.ContainsFunc(e.Operations, func(a interpret.Answer) bool { return len(a.Besides) > 0 }) {
			fmt.Fprintf(out, "The customization for the object's own version answers; otherwise the first by name whose version the object can be converted to.\n")
		}
	}
	return nil
}

// validFor returns where the explanation applies: a hub, or every hub.
func (e *explanation) validFor() string {
	switch {
	case !e.Hub:
		return "without a hub"
	case e.Served:
		return "as defined on this hub"
	}
	how := "apply its CustomResourceDefinition"
	if family := familyOf(e.gvk()); family != "" {
		how = "start it with " + family + " among --workload-kinds, or apply a CustomResourceDefinition"
	}
	return "which this hub does not serve; this is what would answer if it did (" + how + ")"
}

// familyOf returns the family in a hub's configuration that has a kind; empty for other kinds.
func familyOf(kind schema.GroupVersionKind) string {
	for family, known := range map[string]func() ([]definition.Kind, error){"openkruise": kruise.Kinds,
		"argo": argo.Kinds} {
		kinds, err := known()
		if err == nil && slices.ContainsFunc(kinds, func(k definition.Kind) bool {
			return k.Group == kind.Group && k.Kind == kind.Kind &&
				slices.ContainsFunc(k.Versions, func(v definition.Version) bool { return v.Name == kind.Version })
		}) {
			return family
		}
	}
	return ""
}
