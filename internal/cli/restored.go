package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/names"
)

// heldWork is one that is held since the hub was restored.
type heldWork struct {
	Cluster   string      `json:"cluster"`
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	Since     metav1.Time `json:"since"`
	Message   string      `json:"message"`
	Accepted  bool        `json:"accepted,omitempty"`

	work *workv1alpha1.Work
}

// why is the part of the message that is about this one.
func (h *heldWork) why() string {
	_, rest, _ := strings.Cut(h.Message, " in cluster "+h.Cluster+": ")
	why, _, _ := strings.Cut(rest, ". To have it")
	return why
}

// restoreState is what follows from a restore of the hub.
type restoreState struct {
	// Backup is the one that the hub was restored from, while nobody has accepted all of it.
	Backup map[string]string `json:"backup,omitempty"`
	Held   []heldWork        `json:"held"`
}

func restoreStateOf(ctx context.Context, c client.Client) (restoreState, error) {
	s := restoreState{Held: []heldWork{}}
	mark := &corev1.ConfigMap{}
	err := c.Get(ctx, types.NamespacedName{Namespace: names.System, Name: execute.RestoreMark}, mark)
	if client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("ask whether the hub was restored: %w", err)
	}
	if err == nil {
		s.Backup = mark.Data
	}
	for o := (client.ListOptions{Limit: pageSize}); ; {
		var page workv1alpha1.WorkList
		if err := c.List(ctx, &page, &o); err != nil {
			return s, fmt.Errorf("list works: %w", err)
		}
		for i := range page.Items {
			w := &page.Items[i]
			held := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkHeldAfterRestore)
			if held == nil || held.Status != metav1.ConditionTrue {
				continue
			}
			manifest, err := execute.Manifest(w)
			cluster, errSpace := names.ClusterOf(w.Namespace)
			if errors.Join(err, errSpace) != nil {
				continue
			}
			s.Held = append(s.Held, heldWork{Cluster: cluster, Kind: manifest.GetKind(), Namespace: manifest.GetNamespace(), Name: manifest.GetName(),
				Since: held.LastTransitionTime, Message: held.Message, Accepted: execute.Accepted(w), work: w})
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return s, nil
		}
	}
}

func newRestoreStatus(hub *hubFlags) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List what the hub leaves alone in its clusters since it was restored",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			c, err := hub.client()
			if err != nil {
				return err
			}
			s, err := restoreStateOf(cmd.Context(), c)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			switch output {
			case "json":
				return writeJSON(out, s)
			case "yaml":
				return writeYAML(out, s)
			}
			if s.Backup == nil && len(s.Held) == 0 {
				fmt.Fprintln(out, "The hub holds nothing: it was not restored, or what followed was accepted.")
				return nil
			}
			if s.Backup != nil {
				fmt.Fprintf(out, "The hub was restored %s from a backup of %s (%s).\n", s.Backup["restored"], s.Backup["taken"], s.Backup["file"])
			}
			if len(s.Held) == 0 {
				fmt.Fprintln(out, "Nothing is held. `argosy restore accept --all` ends the restore.")
				return nil
			}
			table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Cluster", Type: "string"}, {Name: "Namespace", Type: "string"},
				{Name: "Kind", Type: "string"}, {Name: "Name", Type: "string"}, {Name: "Held since", Type: "string"}, {Name: "Why", Type: "string"}}}
			for i := range s.Held {
				h := &s.Held[i]
				table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{h.Cluster, orNone(h.Namespace), h.Kind, h.Name, h.Since.UTC().Format(time.RFC3339), h.why()}})
			}
			return printTable(out, table, printers.PrintOptions{})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml, for programs")
	return cmd
}

func newRestoreAccept(hub *hubFlags) *cobra.Command {
	var all bool
	var only []string
	cmd := &cobra.Command{
		Use:   "accept [KIND NAME]",
		Short: "Have clusters follow the restored hub: what is held is rolled back, or made again",
		Long: `Has clusters follow the restored hub: what is held of the object, or with --all everything that is held, is rolled back to what the hub
says, or made again. With --all the restore is over, and drift is put right as ever. What the hub does not know stays: see "argosy get orphans".`,
		Example: "  argosy restore accept deployment web -n shop\n  argosy restore accept deployment web -n shop -C eu\n  argosy restore accept --all",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name := "", ""
			if len(args) > 0 {
				kind, name = objectOf(args)
			}
			if all == (name != "") || all && len(only) > 0 {
				return errors.New("name an object, as in `argosy restore accept deployment web -n shop`, or give --all")
			}
			c, err := hub.client()
			if err != nil {
				return err
			}
			namespace := hub.namespaceOrDefault()
			s, err := restoreStateOf(cmd.Context(), c)
			if err != nil {
				return err
			}
			n := 0
			for i := range s.Held {
				h := &s.Held[i]
				if !all && !h.meant(kind, name, namespace, only) {
					continue
				}
				patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, workv1alpha2.AcceptRestoredAnnotation, execute.Acceptance(h.work)))
				if err := c.Patch(cmd.Context(), h.work, patch); client.IgnoreNotFound(err) != nil {
					return fmt.Errorf("accept %s %s in cluster %q: %w", h.Kind, h.Name, h.Cluster, err)
				}
				n++
			}
			if !all && n == 0 {
				return fmt.Errorf("nothing is held of %s %s: see `argosy restore status`", kind, name)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d accepted: their clusters follow the hub\n", n)
			if !all {
				return nil
			}
			err = c.Delete(cmd.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: names.System, Name: execute.RestoreMark}})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "The restore is over")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "everything that is held, and end the restore")
	cmd.Flags().StringSliceVarP(&only, "clusters", "C", nil, "clusters that are to follow (default: all)")
	return cmd
}

// meant says whether the object is the one named, or the namespace that it cannot be made again without.
func (h *heldWork) meant(kind, name, namespace string, clusters []string) bool {
	if len(clusters) > 0 && !slices.Contains(clusters, h.Cluster) {
		return false
	}
	if h.Kind == "Namespace" && h.Name == namespace && !strings.EqualFold(kind, "namespace") {
		return true
	}
	manifest, err := execute.Manifest(h.work)
	if err != nil {
		return false
	}
	o := orphan{Kind: h.Kind, resource: manifest.GroupVersionKind().GroupVersion().WithResource("")}
	guessed, _ := meta.UnsafeGuessKindToResource(manifest.GroupVersionKind())
	o.resource.Resource = guessed.Resource
	return isKind(kind, o) && h.Name == name && (h.Namespace == "" || h.Namespace == namespace)
}
