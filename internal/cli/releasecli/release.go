// Package releasecli has the verbs of releases and of rollouts.
package releasecli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/why"
)

// releases is what the verbs of `argosy release` work with.
type releases struct {
	client    client.WithWatch
	mapper    meta.RESTMapper
	namespace string
	out       io.Writer
	// answers is where a user answers questions; nil without a terminal. With yes, nothing is asked.
	answers io.Reader
	yes     bool
	// live is true if out is a terminal, so that output can be replaced.
	live bool
	now  func() time.Time
}

// reader returns a reader with the rights of the user.
func (r *releases) reader() *why.ReleaseReader {
	return &why.ReleaseReader{Client: r.client, Mapper: r.mapper, Namespace: r.namespace, Now: r.now}
}

// connect prepares r for a command.
func (r *releases) connect(cmd *cobra.Command, hub *hubcli.HubFlags) error {
	var err error
	r.client, r.mapper, err = hub.ClientOfAll()
	r.namespace, r.answers = hub.NamespaceOrDefault(), hubcli.ConfirmationInput(cmd)
	r.live = hubcli.IsTerminal(cmd.OutOrStdout())
	r.now = time.Now
	return err
}

func NewRelease(hub *hubcli.HubFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Release a change of a workload in stages over clusters",
		Long: `Release a change of a workload in stages over clusters: plan and start a release, watch it, approve its gates,
and stop it or go back. A Release does not write the template of the workload. See docs/releases.md.`,
		Args: hubcli.NoArgs,
	}
	cmd.AddCommand(
		newReleasePlan(hub), newReleaseStart(hub), newReleaseStatus(hub), newReleaseWatch(hub),
		newReleaseVerdict(hub, releasev1alpha1.VerdictApprove), newReleaseVerdict(hub, releasev1alpha1.VerdictReject),
		newReleaseState(hub, "pause", "Pause a release: no more pods are updated",
			"Pauses a release. Pods stay as they are, new and old, until `argosy release resume`.",
			releasev1alpha1.VerbPause),
		newReleaseState(hub, "resume", "Resume a release that a user paused",
			"Resumes a release that `argosy release pause` paused. A release that is paused because a stage has failed\n"+
				"needs `argosy release retry`, `argosy release skip` or `argosy release rollback` instead.",
			releasev1alpha1.VerbResume),
		newReleaseState(hub, "abort", "End a release and leave pods as they are",
			"Ends a release. Pods stay as they are, new and old. `argosy release rollback` can still go back afterwards.",
			releasev1alpha1.VerbAbort),
		newReleaseState(hub, "rollback", "Go back to the revision before a release",
			"Goes back to the revision that clusters had before the release, in the order that its strategy names. A\n"+
				"release that has succeeded or was aborted can be rolled back too, until another one follows. The revision\n"+
				"is then blocked.",
			releasev1alpha1.VerbRollback),
		newReleaseStage(hub, releasev1alpha1.VerbRetry, "Start a stage again that has failed", "",
			"the registry answers again"),
		newReleaseStage(hub, releasev1alpha1.VerbSkip, "End the stage under way and continue with the next one", "",
			"the registry answers again"),
		newReleaseStage(hub, releasev1alpha1.VerbBreakGlass,
			"Start a stage that waits for ReleaseGuards, in an emergency",
			"Starts the stage that waits, or the release with its first stage, though windows of ReleaseGuards are closed or their\n"+
				"limits are reached. Gates still need their approvals, and later stages wait again. The user and the reason are\n"+
				"recorded in the release, in an event and in the release history.", "checkout is down, INC-42"),
		newReleaseDiff(hub), newReleaseHistory(hub), newReleaseDeployments(hub),
		newReleaseDORA(hub), newReleaseExport(), newReleaseImport(),
	)
	return cmd
}

// nameOfRelease takes and completes the name of a release.
func nameOfRelease(cmd *cobra.Command, hub *hubcli.HubFlags) *cobra.Command {
	cmd.Args = hubcli.OneArg("the name of a release")
	cmd.ValidArgsFunction = hubcli.FirstArgument(hubcli.CompleteNames(hub, "releases.release.argosy.io"))
	return cmd
}

// releaseRun returns the RunE of a verb that takes the name of a release.
func releaseRun(hub *hubcli.HubFlags, run func(ctx context.Context, r *releases,
	name string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		r := &releases{}
		if err := r.connect(cmd, hub); err != nil {
			return err
		}
		out, flush := hubcli.ColoredOutput(cmd)
		defer flush()
		r.out = out
		return run(cmd.Context(), r, args[0])
	}
}

func (r *releases) get(ctx context.Context, name string) (*releasev1alpha1.Release, error) {
	found := &releasev1alpha1.Release{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no release %q in namespace %q; `argosy get releases -n %s` lists all",
			name, r.namespace, r.namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read release %q: %w", name, err)
	}
	return found, nil
}

// draft is a release that is not created yet.
type draft struct {
	strategy, file, revision string
	supersede                string
	change                   releasev1alpha1.ReleaseChange
}

func (d *draft) bind(cmd *cobra.Command, hub *hubcli.HubFlags) {
	flags := cmd.Flags()
	flags.StringVar(&d.strategy, "strategy", "",
		"ReleaseStrategy in the namespace (default: that of the template's annotation "+
			releasev1alpha1.ReleaseStrategyAnnotation+")")
	flags.StringVarP(&d.file, "filename", "f", "", "file with a ReleaseStrategy for this release alone")
	flags.StringVar(&d.revision, "revision", "",
		"ReleaseRevision to release, such as an earlier one (default: what the template has now)")
	_ = cmd.RegisterFlagCompletionFunc("strategy", hubcli.CompleteNames(hub, "releasestrategies.release.argosy.io"))
	_ = cmd.RegisterFlagCompletionFunc("revision", hubcli.CompleteNames(hub, "releaserevisions.release.argosy.io"))
}

// check refuses flags that exclude each other. Cobra's own check would define the flags of Kubernetes' libraries first.
func (d *draft) check() error {
	if d.strategy != "" && d.file != "" {
		return errors.New("give either --strategy or -f, not both")
	}
	return nil
}

// release returns the release of an object of the hub as the flags describe it.
func (d *draft) release(ctx context.Context, r *releases, kind, name string) (*releasev1alpha1.Release, error) {
	gvk, err := r.mapper.KindFor(schema.ParseGroupResource(kind).WithVersion(""))
	if err != nil {
		return nil, fmt.Errorf("resolve %q: %w", kind, err)
	}
	ref := releasev1alpha1.ReleaseObjectReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name}
	template, err := r.reader().Template(ctx, ref)
	if err != nil {
		return nil, err
	}
	if template == nil {
		return nil, fmt.Errorf("the hub has no %s %q in namespace %q", gvk.Kind, name, r.namespace)
	}
	target := releasev1alpha1.ReleaseTarget{Name: release.LabelOf(name), Ref: ref}
	if target.To.Revision = d.revision; d.revision == "" {
		target.To.Current = &releasev1alpha1.CurrentRevision{}
	}
	out := &releasev1alpha1.Release{TypeMeta: metav1.TypeMeta{APIVersion: releasev1alpha1.GroupVersion.String(),
		Kind: releasev1alpha1.ReleaseKind.Kind}}
	out.Namespace, out.GenerateName = r.namespace, target.Name+"-"
	out.Spec = releasev1alpha1.ReleaseSpec{Targets: []releasev1alpha1.ReleaseTarget{target},
		State: releasev1alpha1.StateRun, Supersede: releasev1alpha1.SupersedeAction(d.supersede)}
	if d.change != (releasev1alpha1.ReleaseChange{}) {
		out.Spec.Change = &d.change
	}
	if d.file != "" {
		out.Spec.Strategy, err = strategyOf(d.file)
		return out, err
	}
	strategy := cmp.Or(d.strategy, template.GetAnnotations()[releasev1alpha1.ReleaseStrategyAnnotation])
	if strategy == "" {
		return nil, fmt.Errorf("%s has no annotation %s: name a strategy with --strategy or -f", hubcli.ObjectName(template),
			releasev1alpha1.ReleaseStrategyAnnotation)
	}
	out.Spec.StrategyRef = &releasev1alpha1.ReleaseStrategyReference{Name: strategy}
	return out, nil
}

// strategyOf reads a file with one ReleaseStrategy. A field that does not exist is an error.
func strategyOf(file string) (*releasev1alpha1.ReleaseStrategySpec, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &releasev1alpha1.ReleaseStrategy{}
	if err := yaml.UnmarshalStrict(raw, s); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if s.Kind != "ReleaseStrategy" || s.APIVersion != releasev1alpha1.GroupVersion.String() {
		return nil, fmt.Errorf("%s has %s %s: want one ReleaseStrategy of %s", file, hubcli.OrNone(s.APIVersion),
			hubcli.OrNone(s.Kind),
			releasev1alpha1.GroupVersion)
	}
	return &s.Spec, nil
}

func newReleaseStart(hub *hubcli.HubFlags) *cobra.Command {
	d := &draft{}
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "start KIND NAME",
		Short: "Start a release of what the template of a workload has now",
		Long: `Starts a release of a workload and prints its name. "argosy release plan" with the same flags shows what it
will do.

With --wait it shows the progress until the release has ended. The exit code is 0 if it has succeeded, 1 if it
has failed, was refused, aborted or replaced, 2 if it was rolled back, and 3 if it has not ended within
--timeout. It then continues on the hub.`,
		Example: `  argosy release start cloneset/web -n shop --strategy 1-2-7
  argosy release start cloneset/web -n shop --commit 3f2c1a --change-url https://ci.example.com/42 --wait --timeout 1h
  argosy release start cloneset/web -n shop --revision cloneset-web-5d0c7f21aa10 --reason "web:7 is slow"`,
		Args:              hubcli.OneObject("cloneset web"),
		ValidArgsFunction: hubcli.OneOfHub(hub),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout > 0 && !wait {
				return errors.New("--timeout is for --wait: add --wait")
			}
			if !slices.Contains([]string{"Queue", "Replace", "Refuse"}, d.supersede) {
				return fmt.Errorf("--supersede is Queue, Replace or Refuse, not %q", d.supersede)
			}
			if err := d.check(); err != nil {
				return err
			}
			kind, name := hubcli.ObjectOf(args)
			return releaseRun(hub, func(ctx context.Context, r *releases, name string) error {
				return r.start(ctx, d, kind, name, wait, timeout)
			})(cmd, []string{name})
		},
	}
	d.bind(cmd, hub)
	flags := cmd.Flags()
	flags.StringVar(&d.supersede, "supersede", string(releasev1alpha1.SupersedeQueue),
		"what happens while another release of the workload is under way: Queue, Replace or Refuse")
	flags.StringVar(&d.change.URL, "change-url", "", "address of the change, such as a pull request")
	flags.StringVar(&d.change.Commit, "commit", "", "commit that is released")
	flags.StringVar(&d.change.Ticket, "ticket", "", "ticket of the change")
	flags.StringVar(&d.change.Reason, "reason", "", "reason for the change")
	flags.BoolVar(&wait, "wait", false, "show the progress until the release has ended")
	flags.DurationVar(&timeout, "timeout", 0, "how long --wait waits; 0 for without end")
	_ = cmd.RegisterFlagCompletionFunc("supersede", cobra.FixedCompletions([]string{"Queue", "Replace", "Refuse"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (r *releases) start(ctx context.Context, d *draft, kind, name string, wait bool, timeout time.Duration) error {
	created, err := d.release(ctx, r, kind, name)
	if err != nil {
		return err
	}
	strategy := cmp.Or(created.Spec.StrategyRef, &releasev1alpha1.ReleaseStrategyReference{}).Name
	if err := errors.Join(r.checkExists(ctx, "ReleaseStrategy", strategy),
		r.checkExists(ctx, "ReleaseRevision", d.revision)); err != nil {
		return err
	}
	if err := r.client.Create(ctx, created); err != nil {
		return fmt.Errorf("create a release of %s %s: %w", created.Spec.Targets[0].Ref.Kind, name, err)
	}
	fmt.Fprintf(r.out, "release %s is created\n", created.Name)
	r.nameConfiguration(ctx, d.revision)
	if !wait {
		fmt.Fprintf(r.out, "`argosy release watch %s -n %s` shows its progress\n", created.Name, r.namespace)
		return nil
	}
	return r.watch(ctx, created.Name, timeout)
}

// checkExists returns an error, with the names that exist, if the namespace has no object of the name. What the user
// may not list is left to the hub.
func (r *releases) checkExists(ctx context.Context, kind, name string) error {
	one, all := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
	one.SetGroupVersionKind(releasev1alpha1.GroupVersion.WithKind(kind))
	all.SetGroupVersionKind(releasev1alpha1.GroupVersion.WithKind(kind + "List"))
	if name == "" {
		return nil
	}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, one)
	if !apierrors.IsNotFound(err) {
		return readable(err)
	}
	if err := r.client.List(ctx, all, client.InNamespace(r.namespace)); err != nil {
		return readable(err)
	}
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	slices.Sort(names)
	return fmt.Errorf("there is no %s %q in namespace %q; there are: %s", kind, name, r.namespace,
		hubcli.OrNone(text.Names(names, 10)))
}

func readable(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

func newReleaseState(hub *hubcli.HubFlags, use, short, long, verb string) *cobra.Command {
	var reason string
	var yes bool
	cmd := nameOfRelease(&cobra.Command{Use: use + " NAME", Short: short,
		Long: long + "\n\nThe command asks for confirmation. Without a terminal, --yes is required.",
		Example: "  argosy release " + use + " web-x7k2p -n shop\n  argosy release " + use +
			` web-x7k2p -n shop --reason "see SHOP-17" --yes`,
		RunE: releaseRun(hub, func(ctx context.Context, r *releases, name string) error {
			r.yes = yes
			return r.setState(ctx, name, verb, reason)
		}),
	}, hub)
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for people")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// setState asks for a verb that changes spec.state.
func (r *releases) setState(ctx context.Context, name, verb, reason string) error {
	rel, err := r.get(ctx, name)
	if err != nil {
		return err
	}
	request, err := r.requestFor(ctx, rel, verb)
	switch {
	case err != nil:
		return err
	case request.Already != "":
		fmt.Fprintln(r.out, request.Already)
		return nil
	}
	if err := r.confirm(verb, fmt.Sprintf("%s\nIt will be %s. Continue?", titleOf(rel), request.Done)); err != nil {
		return err
	}
	if err := r.write(ctx, rel, request, reason); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "release %s will be %s\n", rel.Name, request.Done)
	switch verb {
	case releasev1alpha1.VerbRollback:
		var revisions []string
		for _, t := range rel.Status.Targets {
			revisions = append(revisions, t.From)
		}
		r.nameConfiguration(ctx, revisions...)
	case releasev1alpha1.VerbResume:
		if stage := release.StageUnderWay(rel); stage != nil && stage.Phase == releasev1alpha1.StageFailed {
			fmt.Fprintf(r.out, "stage %s has failed: `argosy release retry %s -n %s --reason TEXT` starts it again\n",
				stage.Name, name, r.namespace)
		}
	}
	return nil
}

// confirm asks the user before a verb, unless --yes is set.
func (r *releases) confirm(verb, question string) error {
	if r.yes {
		return nil
	}
	return hubcli.ConfirmOrYes(r.out, r.answers, verb, question)
}

// requestFor returns what a verb on a release writes.
func (r *releases) requestFor(ctx context.Context, rel *releasev1alpha1.Release, verb string) (release.Request, error) {
	in, err := r.reader().RequestInput(ctx, rel, verb)
	if err != nil {
		return release.Request{}, err
	}
	return release.RequestFor(in, verb)
}

// write asks the hub for a verb on a release.
func (r *releases) write(ctx context.Context, rel *releasev1alpha1.Release, request release.Request,
	reason string) error {
	for _, patch := range request.Patches(reason) {
		if err := mergePatch(ctx, r.client, rel.DeepCopy(), "release "+rel.Name, patch); err != nil {
			return err
		}
	}
	return nil
}

// mergePatch merges a patch into an object of the hub. A patch with a resourceVersion is a conflict if the object has
// changed since.
func mergePatch(ctx context.Context, c client.Client, obj client.Object, name string, patch map[string]any) error {
	raw, err := json.Marshal(patch)
	if err == nil {
		err = c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, raw))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// nameConfiguration names the ConfigMaps and Secrets that a rollback does not bring back. It names none of a revision
// that the user may not read.
func (r *releases) nameConfiguration(ctx context.Context, revisions ...string) {
	var names []string
	for _, name := range revisions {
		revision := &releasev1alpha1.ReleaseRevision{}
		if name == "" || r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, revision) != nil {
			continue
		}
		of, err := release.Configuration(revision, func(version string) bool {
			_, found, err := r.reader().Object(ctx, release.ConfigMapKind, r.namespace, version)
			return found || err != nil // named only if it is known to be missing
		})
		if err != nil {
			fmt.Fprintf(r.out, "warning: %v\n", err)
		}
		names = append(names, of...)
	}
	if slices.Sort(names); len(names) > 0 {
		fmt.Fprintf(r.out, "not part of a revision, and not brought back: %s\n", strings.Join(slices.Compact(names), ", "))
	}
}

func newReleaseStage(hub *hubcli.HubFlags, verb, short, long, example string) *cobra.Command {
	var reason string
	cmd := nameOfRelease(&cobra.Command{Use: verb + " NAME", Short: short, Long: long,
		Example: "  argosy release " + verb + " web-x7k2p -n shop --reason " + strconv.Quote(example),
		RunE: releaseRun(hub, func(ctx context.Context, r *releases, name string) error {
			return r.stage(ctx, name, verb, reason)
		}),
	}, hub)
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for people; required")
	_ = cmd.MarkFlagRequired("reason")
	return cmd
}

// stage retries, skips or starts the stage under way.
func (r *releases) stage(ctx context.Context, name, verb, reason string) error {
	rel, err := r.get(ctx, name)
	if err != nil {
		return err
	}
	if strings.TrimSpace(reason) == "" {
		return errors.New("--reason is empty: name the reason")
	}
	request, err := r.requestFor(ctx, rel, verb)
	if err != nil {
		return err
	}
	if err := r.write(ctx, rel, request, reason); err != nil {
		return err
	}
	stage, attempt, _ := strings.Cut(request.Writes[0].Value, "@")
	fmt.Fprintf(r.out, "release %s: stage %s (attempt %s) will be %s\n", name, stage, attempt, request.Done)
	if rel.Spec.State == releasev1alpha1.StatePause {
		fmt.Fprintf(r.out, "the release is paused: `argosy release resume %s -n %s`\n", name, r.namespace)
	}
	return nil
}

// gatesOf completes the gates that a release waits for.
func gatesOf(hub *hubcli.HubFlags) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		directive := cobra.ShellCompDirectiveNoFileComp
		q := hubcli.Quick{HubFlags: hub}
		if len(args) != 1 || !q.Answers() {
			return nil, directive
		}
		config, err := q.ToRESTConfig()
		if err != nil {
			return nil, directive
		}
		ctx, cancel := context.WithTimeout(context.Background(), hubcli.CompletionTimeout)
		defer cancel()
		c, err := client.New(config, client.Options{Scheme: hubcli.Scheme})
		if err != nil {
			return nil, directive
		}
		rel := &releasev1alpha1.Release{}
		if err := c.Get(ctx, types.NamespacedName{Namespace: hub.NamespaceOrDefault(), Name: args[0]}, rel); err != nil {
			return nil, directive
		}
		var names []string
		for _, g := range release.WaitingGates(rel) {
			names = append(names, g.Name)
		}
		return names, directive
	}
}
