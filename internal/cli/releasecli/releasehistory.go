package releasecli

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/why"
)

// historyQuery is a question to the release history of a hub.
type historyQuery struct {
	everywhere bool
	output     string
	// since, until and at are times, or durations before now.
	since, until, at string
	// workload is KIND/NAME or NAME.
	workload string
	// fields are the other parameters, by flag.
	fields map[string]*string
	limit  int
	now    func() time.Time
}

// bind binds the flags that a question has: each is a parameter of the hub's path.
func (q *historyQuery) bind(cmd *cobra.Command, hub *hubcli.HubFlags, flags ...string) {
	q.fields, q.now = map[string]*string{}, time.Now
	fs := cmd.Flags()
	fs.BoolVarP(&q.everywhere, "all-namespaces", "A", false, "show all namespaces")
	fs.StringVarP(&q.output, "output", "o", "", "output format: json, yaml or csv")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml", "csv"},
		cobra.ShellCompDirectiveNoFileComp))
	for _, name := range flags {
		switch name {
		case "since":
			fs.StringVar(&q.since, name, "", "only after this time, such as 2026-03-01T12:00:00Z, or 24h for the last day")
		case "until":
			fs.StringVar(&q.until, name, "", "only before this time, in the same format")
		case "at":
			fs.StringVar(&q.at, name, "", "what ran at this time, such as 2026-03-01T14:05:00Z, or 24h for a day ago")
		case "workload":
			fs.StringVar(&q.workload, name, "", "only this workload, as NAME or KIND/NAME")
		case "limit":
			fs.IntVar(&q.limit, name, history.DefaultLimit, "the maximum number of lines")
		default:
			q.fields[name] = fs.String(name, "", historyFlags[name])
		}
	}
	if slices.Contains(flags, "cluster") {
		_ = cmd.RegisterFlagCompletionFunc("cluster", hubcli.CompleteNames(hub, "clusters.cluster.karmada.io"))
	}
}

// historyFlags are the flags that are parameters as they are, with their help.
var historyFlags = map[string]string{
	"author":      "only releases of this user",
	"cluster":     "only this cluster",
	"outcome":     "only releases that ended so: Succeeded, Failed, RolledBack, Aborted or Superseded",
	"trigger":     "only releases started by: User, Rollback (a user, to a stored revision), Template or Direct (the hub)",
	"image":       "only workloads with this image",
	"environment": "only stages of this environment",
}

// params returns the parameters for the hub.
func (q *historyQuery) params(namespace string) (url.Values, error) {
	v := url.Values{}
	if !q.everywhere {
		v.Set("namespace", namespace)
	}
	for name, value := range q.fields {
		if *value != "" {
			v.Set(name, *value)
		}
	}
	if kind, name, both := strings.Cut(q.workload, "/"); both {
		v.Set("kind", kind)
		v.Set("name", name)
	} else if q.workload != "" {
		v.Set("name", q.workload)
	}
	if q.limit != 0 {
		v.Set("limit", strconv.Itoa(q.limit))
	}
	for name, text := range map[string]string{"since": q.since, "until": q.until, "at": q.at} {
		if text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		if ago, wrong := time.ParseDuration(text); err != nil && wrong == nil && ago >= 0 {
			at, err = q.now().Add(-ago), nil
		}
		if err != nil {
			return nil, fmt.Errorf("--%s must be a time such as 2026-03-01T12:00:00Z or a duration such as 24h, not %q", name,
				text)
		}
		v.Set(name, at.UTC().Format(time.RFC3339))
	}
	return v, nil
}

// readAnswer reads the answer of a hub at a path of its release history.
func (q *historyQuery) readAnswer(ctx context.Context, config *rest.Config, path string, params url.Values,
	into any) error {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	request := d.RESTClient().Get().AbsPath(path)
	for name, values := range params {
		for _, value := range values {
			request = request.Param(name, value)
		}
	}
	raw, err := why.RawAnswer(ctx, request)
	if err != nil {
		return fmt.Errorf("read the release history: %w", why.NameRight(err, "list", params.Get("namespace")))
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read the answer of the hub at %s: %w", path, err)
	}
	return nil
}

type historyTable struct {
	columns []string
	rows    [][]string
}

// write writes an answer in the format that the user wants. The columns of CSV are the same as those of the table.
func (q *historyQuery) write(out io.Writer, answer any, table historyTable, empty string) error {
	switch {
	case q.output == "csv":
		w := csv.NewWriter(out)
		_ = w.Write(table.columns)
		_ = w.WriteAll(table.rows)
		return w.Error()
	case q.output != "":
		return hubcli.WriteAs(out, q.output, answer)
	case len(table.rows) == 0:
		_, err := fmt.Fprintln(out, empty)
		return err
	}
	printed := hubcli.TextTable(table.columns...)
	for _, row := range table.rows {
		cells := make([]any, len(row))
		for i, cell := range row {
			cells[i] = hubcli.OrNone(cell)
		}
		hubcli.AddRow(printed, cells...)
	}
	return hubcli.PrintTable(out, printed, printers.PrintOptions{})
}

// historyRun returns the RunE of a command that asks a question.
func historyRun(hub *hubcli.HubFlags, q *historyQuery, run func(ctx context.Context, config *rest.Config,
	params url.Values,
	args []string, out io.Writer) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if q.output != "csv" && hubcli.CheckOutput(q.output) != nil {
			return fmt.Errorf("--output must be json, yaml or csv, not %q", q.output)
		}
		params, err := q.params(hub.NamespaceOrDefault())
		if err != nil {
			return err
		}
		config, err := hub.ToRESTConfig()
		if err != nil {
			return err
		}
		out, flush := hubcli.ColoredOutput(cmd)
		defer flush()
		return run(cmd.Context(), config, params, args, out)
	}
}

func newReleaseHistory(hub *hubcli.HubFlags) *cobra.Command {
	q := &historyQuery{}
	cmd := &cobra.Command{
		Use:   "history [NAME]",
		Short: "Show releases of the past, or what happened in one",
		Long: `Show releases of the past, the newest first, also those that do not exist any more. With the name of a release,
show what happened in it. See docs/release-history.md.`,
		Example: `  argosy release history -n shop --workload cloneset/web
  argosy release history -A --since 24h --outcome RolledBack
  argosy release history web-x7k2p -n shop
  argosy release history -A --since 720h -o csv > releases.csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return hubcli.OneArg("the name of a release")(cmd, args)
		},
		ValidArgsFunction: hubcli.FirstArgument(hubcli.CompleteNames(hub, "releases.release.argosy.io")),
	}
	cmd.RunE = historyRun(hub, q, func(ctx context.Context, config *rest.Config, params url.Values, args []string,
		out io.Writer) error {
		if len(args) > 0 {
			return q.events(ctx, config, params, args[0], out)
		}
		var found []history.Release
		if err := q.readAnswer(ctx, config, history.ReleasesPath, params, &found); err != nil {
			return err
		}
		return q.write(out, found, releaseLines(found), noRelease(params.Get("namespace")))
	})
	q.bind(cmd, hub, "author", "cluster", "outcome", "trigger", "workload", "since", "until", "limit")
	return cmd
}

// noRelease returns the text for an empty history of a namespace; empty for all.
func noRelease(namespace string) string {
	if namespace == "" {
		return "no release is in the history that matches"
	}
	return "no release of namespace " + namespace + " is in the history that matches; -A shows all namespaces"
}

func releaseLines(found []history.Release) historyTable {
	t := historyTable{columns: []string{"NAMESPACE", "NAME", "WORKLOADS", "PHASE", "TRIGGER", "AUTHOR", "CREATED",
		"ENDED", "COMMIT", "REASON"}}
	for _, r := range found {
		var workloads []string
		for _, target := range r.Targets {
			workloads = append(workloads, target.Kind+"/"+target.Name)
		}
		t.rows = append(t.rows, []string{r.Namespace, r.Name, strings.Join(workloads, ","), r.Phase, r.Trigger, r.Author,
			r.CreatedAt, r.EndedAt, r.Commit, r.Reason})
	}
	return t
}

// events shows the journal of the newest release of a name.
func (q *historyQuery) events(ctx context.Context, config *rest.Config, params url.Values, name string,
	out io.Writer) error {
	if q.everywhere {
		return errors.New("a release has a namespace: give -n instead of --all-namespaces")
	}
	namespace := params.Get("namespace")
	var found []history.Release
	if err := q.readAnswer(ctx, config, history.ReleasesPath, url.Values{"namespace": {namespace}, "release": {name},
		"limit": {"1"}}, &found); err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("the history has no release %q in namespace %q; `argosy release history -n %s` lists all", name,
			namespace, namespace)
	}
	var events []history.Event
	if err := q.readAnswer(ctx, config, history.EventsPath, url.Values{"namespace": {namespace}, "uid": {found[0].UID}},
		&events); err != nil {
		return err
	}
	t := historyTable{columns: []string{"SEQ", "AT", "TYPE", "STAGE", "CLUSTER", "ACTOR", "REASON", "MESSAGE"}}
	for _, e := range events {
		t.rows = append(t.rows, []string{strconv.FormatInt(e.Seq, 10), e.At, e.Type, e.Stage, e.Cluster, e.Actor, e.Reason,
			e.Message})
	}
	return q.write(out, events, t, "nothing has happened in release "+name)
}

func newReleaseDeployments(hub *hubcli.HubFlags) *cobra.Command {
	q := &historyQuery{}
	cmd := &cobra.Command{
		Use:   "deployments",
		Short: "Show which revisions and images releases have brought to which clusters, now or at a time",
		Long: `Show which revisions and images run in which clusters, and since when, or which ones ran at a time. The history
knows what releases have brought; pods that members replaced on their own are not in it.`,
		Example: `  argosy release deployments -n shop
  argosy release deployments -A --cluster m3 --at 2026-03-01T14:05:00Z
  argosy release deployments -A --image registry.example.com/web:2 -o json`,
		Args: hubcli.NoArgs,
	}
	cmd.RunE = historyRun(hub, q, func(ctx context.Context, config *rest.Config, params url.Values, _ []string,
		out io.Writer) error {
		var found []history.Deployment
		if err := q.readAnswer(ctx, config, history.DeploymentsPath, params, &found); err != nil {
			return err
		}
		t := historyTable{columns: []string{"NAMESPACE", "WORKLOAD", "CLUSTER", "REVISION", "IMAGES", "RELEASE", "FROM",
			"TO"}}
		for _, d := range found {
			t.rows = append(t.rows, []string{d.Namespace, d.Kind + "/" + d.Name, d.Cluster, d.Revision,
				strings.Join(d.Images, ","), d.Release, d.From, d.To})
		}
		return q.write(out, found, t, "no release has brought anything")
	})
	q.bind(cmd, hub, "at", "cluster", "workload", "image", "limit")
	return cmd
}

func newReleaseDORA(hub *hubcli.HubFlags) *cobra.Command {
	q := &historyQuery{}
	cmd := &cobra.Command{
		Use:   "dora",
		Short: "Show how often releases are done, how long they take and how many fail",
		Long: `Show the figures of DORA: how often stages are done, how long a commit takes until a stage has it in all of its
clusters, how many releases fail, and how long it takes until the old revision is back. docs/release-history.md has
the formulas.`,
		Example: `  argosy release dora -n shop --environment prod
  argosy release dora -A --since 2160h -o json`,
		Args: hubcli.NoArgs,
	}
	cmd.RunE = historyRun(hub, q, func(ctx context.Context, config *rest.Config, params url.Values, _ []string,
		out io.Writer) error {
		var d history.DORA
		if err := q.readAnswer(ctx, config, history.DORAPath, params, &d); err != nil {
			return err
		}
		seconds := func(n int64) string {
			if n < 0 {
				return ""
			}
			return (time.Duration(n) * time.Second).String()
		}
		note := "the time from the commit"
		if d.LeadTimesFromStart > 0 {
			note = fmt.Sprintf("the time from the commit; for %s from the start of the release, which names no commit time",
				text.Count(d.LeadTimesFromStart, "stage"))
		}
		return q.write(out, d, historyTable{columns: []string{"FIGURE", "VALUE"}, rows: [][]string{
			{"period", d.Since + " to " + d.Until},
			{"stages done", strconv.Itoa(d.Deployments)},
			{"stages done per day", strconv.FormatFloat(d.PerDay, 'f', 2, 64)},
			{"lead time, median", seconds(d.LeadTimeMedian)},
			{"lead time, 90th percentile", seconds(d.LeadTimeP90)},
			{"lead time is", note},
			{"releases started", strconv.Itoa(d.Started)},
			{"releases failed", strconv.Itoa(d.Failed)},
			{"change failure rate", strconv.FormatFloat(100*d.FailureRate, 'f', 1, 64) + " %"},
			{"recovery time, median", seconds(d.RecoveryMedian)},
		}}, "")
	})
	q.bind(cmd, hub, "environment", "since", "until")
	return cmd
}
