package operatecli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/membercli"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// heldWork is a Work that the hub does not carry out since it was restored.
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

// why returns the reason without the advice. A hub of an earlier version did not record it: then it is the whole
// message.
func (h *heldWork) why() string {
	if failure := execute.FailureOf(h.work); failure != nil && failure.Reason == workv1alpha1.ReasonRestored {
		return failure.Message
	}
	return h.Message
}

// restoreState is the state after a restore of the hub.
type restoreState struct {
	// Backup describes the backup that the hub was restored from, until a user has accepted everything.
	Backup map[string]string `json:"backup,omitempty"`
	Held   []heldWork        `json:"held"`
	// Unseen is the number of Works per cluster that the hub has not compared yet since the restore. It is valid if
	// Counted is set.
	Unseen  map[string]int `json:"pending,omitempty"`
	Counted bool           `json:"unseenCounted,omitempty"`
	// notReady are clusters with such Works that do not answer.
	notReady map[string]bool
}

// pendingWorks returns a sentence about the Works that the hub has not compared yet since the restore; empty if none.
func (s *restoreState) pendingWorks() string {
	if s.Backup == nil {
		return ""
	}
	if !s.Counted {
		return "The hub has not yet counted the Works that it has not checked: it counts them at startup."
	}
	if len(s.Unseen) == 0 {
		return ""
	}
	var of []string
	for _, cluster := range slices.Sorted(maps.Keys(s.Unseen)) {
		text := fmt.Sprintf("%d in %s", s.Unseen[cluster], cluster)
		if s.notReady[cluster] {
			text += " (not Ready)"
		}
		of = append(of, text)
	}
	return "Not checked yet: " + strings.Join(of, ", ") + "."
}

func restoreStateOf(ctx context.Context, c client.Client) (restoreState, error) {
	s := restoreState{Held: []heldWork{}}
	mark := &corev1.ConfigMap{}
	err := c.Get(ctx, types.NamespacedName{Namespace: names.System, Name: execute.RestoreMark}, mark)
	if client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("check whether the hub was restored: %w", err)
	}
	if err == nil {
		s.Backup = mark.Data
		if err := s.count(ctx, c, mark.Annotations[wellknown.RestoreUnseenAnnotation]); err != nil {
			return s, err
		}
	}
	for o := (client.ListOptions{Limit: membercli.PageSize}); ; {
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
			s.Held = append(s.Held, heldWork{Cluster: cluster, Kind: manifest.GetKind(), Namespace: manifest.GetNamespace(),
				Name:  manifest.GetName(),
				Since: held.LastTransitionTime, Message: held.Message, Accepted: execute.Accepted(w), work: w})
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return s, nil
		}
	}
}

// count reads from the hub how many Works it has not compared yet.
func (s *restoreState) count(ctx context.Context, c client.Client, counted string) error {
	if counted == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(counted), &s.Unseen); err != nil {
		return fmt.Errorf("read annotation %s of ConfigMap %s/%s: %w", wellknown.RestoreUnseenAnnotation, names.System,
			execute.RestoreMark, err)
	}
	s.Counted, s.notReady = true, map[string]bool{}
	for name := range s.Unseen {
		cluster := &clusterv1alpha1.Cluster{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, cluster); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get cluster %q: %w", name, err)
		}
		s.notReady[name] = !membership.IsReady(cluster)
	}
	return nil
}

// seenTimeout is how long `accept --all` waits until the hub has compared all Works; a variable for tests.
var seenTimeout = 15 * time.Second

// seen returns the state once the hub has compared all Works, or the last state after timeout: right after a start,
// clusters are not Ready for a moment.
func seen(ctx context.Context, c client.Client, timeout time.Duration) (s restoreState, err error) {
	waited := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, func(context.Context) (bool, error) {
		s, err = restoreStateOf(ctx, c)
		return err != nil || s.pendingWorks() == "", nil
	})
	if err == nil && waited != nil {
		err = ctx.Err() // the state shows that the time is over
	}
	return s, err
}

func newRestoreStatus(hub *hubcli.HubFlags) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List what the hub leaves unchanged in its clusters since it was restored",
		Args:  hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := hub.Client()
			if err != nil {
				return err
			}
			s, err := restoreStateOf(cmd.Context(), c)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if output != "" {
				return hubcli.WriteAs(out, output, s)
			}
			if s.Backup == nil && len(s.Held) == 0 {
				fmt.Fprintln(out, "Nothing is held: the hub was not restored, or the restore was accepted.")
				return nil
			}
			if s.Backup != nil {
				fmt.Fprintf(out, "The hub was restored %s from a backup of %s (%s).\n", s.Backup["restored"], s.Backup["taken"],
					s.Backup["file"])
			}
			pending := s.pendingWorks()
			if pending != "" {
				fmt.Fprintln(out, pending)
			}
			switch {
			case len(s.Held) == 0 && pending != "":
				fmt.Fprintln(out, "Nothing is held so far.")
				return nil
			case len(s.Held) == 0:
				fmt.Fprintln(out, "Nothing is held. `argosy restore accept --all` ends the restore.")
				return nil
			}
			table := hubcli.TextTable("Cluster", "Namespace", "Kind", "Name", "Held since", "Why")
			for i := range s.Held {
				h := &s.Held[i]
				hubcli.AddRow(table, h.Cluster, hubcli.OrNone(h.Namespace), h.Kind, h.Name,
					h.Since.UTC().Format(time.RFC3339), h.why())
			}
			return hubcli.PrintTable(out, table, printers.PrintOptions{})
		},
	}
	hubcli.OutputFlag(cmd, &output, "output format: json or yaml")
	return cmd
}

func newRestoreAccept(hub *hubcli.HubFlags) *cobra.Command {
	var all, force bool
	var only []string
	cmd := &cobra.Command{
		Use:   "accept [KIND NAME]",
		Short: "Make clusters follow the restored hub: held objects are rolled back, recreated or deleted",
		Long: `Makes clusters follow the restored hub. An object that is held in some clusters, or with --all every held object, is rolled back to the
hub's state, recreated, or deleted if the hub is deleting it.
--all also ends the restore; from then on the hub corrects drift as usual. It is refused while there are Works that the hub has not
checked since the restore, for example in a cluster that is not responding. Objects that the hub does not know are kept: see
"argosy get orphans".`,
		Example: "  argosy restore accept deployment web -n shop\n  argosy restore accept deployment web -n shop -C eu\n  argosy restore accept --all",
		Args:    hubcli.OptionalObject,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name := "", ""
			if len(args) > 0 {
				kind, name = hubcli.ObjectOf(args)
			}
			if all == (name != "") || all && len(only) > 0 {
				return errors.New("name an object, as in `argosy restore accept deployment web -n shop`, or give --all")
			}
			if force && !all {
				return errors.New("--force requires --all; a named object is accepted without it")
			}
			c, err := hub.Client()
			if err != nil {
				return err
			}
			namespace := hub.NamespaceOrDefault()
			s, err := restoreStateOf(cmd.Context(), c)
			if err == nil && all && !force && s.pendingWorks() != "" {
				s, err = seen(cmd.Context(), c, seenTimeout)
			}
			if err != nil {
				return err
			}
			if pending := s.pendingWorks(); all && !force && pending != "" {
				return fmt.Errorf("some Works were not checked since the restore. %s Newer objects there would be rolled back or deleted without a check. Wait until that is "+
					"done (the hub must run, and the clusters must be Ready), name what to accept, or use --force", pending)
			}
			n := 0
			for i := range s.Held {
				h := &s.Held[i]
				if !all && !h.meant(kind, name, namespace, only) {
					continue
				}
				patch := client.RawPatch(types.MergePatchType,
					fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, wellknown.AcceptRestoredAnnotation,
						execute.Acceptance(h.work)))
				if err := c.Patch(cmd.Context(), h.work, patch); client.IgnoreNotFound(err) != nil {
					return fmt.Errorf("accept %s %s in cluster %q: %w", h.Kind, h.Name, h.Cluster, err)
				}
				n++
			}
			if !all && n == 0 {
				return fmt.Errorf("no held object matches %s %s: see `argosy restore status`", kind, name)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d accepted: their clusters now follow the hub\n", n)
			if !all {
				return nil
			}
			err = c.Delete(cmd.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: names.System,
				Name: execute.RestoreMark}})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "The restore is complete")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "accept everything that is held, and end the restore")
	cmd.Flags().BoolVar(&force, "force", false,
		"with --all, also accept Works that the hub has not checked since the restore")
	cmd.Flags().StringSliceVarP(&only, "clusters", "C", nil, "clusters to apply this to (default: all)")
	return cmd
}

// meant reports whether the object is the named one, or its namespace, without which it cannot be created again.
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
	o := membercli.Orphan{Kind: h.Kind, Resource: manifest.GroupVersionKind().GroupVersion().WithResource("")}
	guessed, _ := meta.UnsafeGuessKindToResource(manifest.GroupVersionKind())
	o.Resource.Resource = guessed.Resource
	return membercli.IsKind(kind, o) && h.Name == name && (h.Namespace == "" || h.Namespace == namespace)
}
