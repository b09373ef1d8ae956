package membercli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/logs"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
)

// followed is the default of --max-log-requests per cluster. kubectl's default of five is meant for one cluster.
const followed = 50

// NewLogs is kubectl's logs for one member or several.
func NewLogs(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	in, where := &place{HubFlags: hub}, &ScopeFlags{}
	cmd := logs.NewCmdLogs(cmdutil.NewFactory(in), streams)
	cmd.Use = "logs (POD | KIND/NAME | -l SELECTOR) (-C CLUSTER | --all-clusters) [-c CONTAINER] [-f]"
	cmd.Short = "Print the logs of pods in member clusters"
	cmd.Long = `Prints the logs of a pod, of all pods of a workload, or of those that a selector matches.

For one cluster the output is that of kubectl. For several, or with --all-clusters, each line starts with its cluster, and
KIND/NAME means all pods of the workload, each line with its pod; clusters without that workload are skipped.`
	cmd.Example = `  argosy logs web-1 -n shop -C eu -f
  argosy logs deployment/web -n shop --all-clusters --tail 20
  argosy logs cloneset/web -n shop --all-clusters -f
  argosy logs -l app=web -n shop -C eu,us -f`
	where.Bind(cmd)
	cmd.Flags().BoolVar(&where.all, "all-clusters", false,
		"print the logs of all clusters, each line prefixed with its cluster")
	kubectl := cmd.Run
	cmd.Run = nil
	cmd.ValidArgsFunction = hubcli.KubectlCompletion(hub, completion.PodResourceNameAndContainerCompletionFunc)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !where.all && len(where.Clusters) == 0 {
			return errors.New("name the cluster with --cluster, or use --all-clusters: pods run in member clusters")
		}
		places, err := where.Places(cmd.Context(), hub, true)
		if err != nil {
			return err
		}
		if !where.all && len(places) == 1 {
			*in = *places[0]
			if err := in.answers(cmd.Context()); err != nil {
				return err
			}
			selector, err := in.podsOf(cmd.Context(), args)
			if err != nil {
				return in.explain(err)
			}
			if selector != "" {
				args = nil
				if err := cmd.Flags().Set("selector", selector); err != nil {
					return err
				}
			}
			return in.explain(hubcli.Fatal(func() { kubectl(cmd, args) }))
		}
		return logsOf(cmd, args, places, streams)
	}
	return cmd
}

// logsOf prints the logs of several places at once, each line with its place. Errors are printed as they occur, because
// the other logs may be followed for long.
func logsOf(cmd *cobra.Command, args []string, places []*place, streams genericiooptions.IOStreams) error {
	var running sync.WaitGroup
	var found found
	var mu sync.Mutex
	for _, at := range places {
		running.Go(func() {
			out := &lines{prefix: "[" + at.String() + "] ", mu: &mu, out: streams.Out}
			errOut := &lines{prefix: out.prefix, mu: &mu, out: streams.ErrOut}
			err := at.explain(at.logs(cmd, args, genericiooptions.IOStreams{In: streams.In, Out: out, ErrOut: errOut}))
			out.end()
			errOut.end()
			if err != nil && !at.lacks(err) {
				fmt.Fprintln(errOut, hubcli.Harmless(hubcli.NameRights(err).Error()))
				err = fmt.Errorf("the logs of cluster %q are not complete", at)
			}
			found.note(at, err)
		})
	}
	running.Wait()
	return found.err()
}

func (p *place) logs(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) error {
	if err := p.answers(cmd.Context()); err != nil {
		return err
	}
	o := logs.NewLogsOptions(streams)
	o.MaxFollowConcurrency = followed
	own := &cobra.Command{Use: cmd.Use}
	o.AddFlags(own)
	if err := copyFlags(cmd.Flags(), own.Flags()); err != nil {
		return err
	}
	selector, err := p.podsOf(cmd.Context(), args)
	if err != nil {
		return err
	}
	if selector != "" {
		o.Selector, args = selector, nil
	}
	if len(args) == 1 && strings.Contains(args[0], "/") && !own.Flags().Changed("all-pods") {
		kind, _, _ := strings.Cut(args[0], "/")
		o.AllPods = !slices.Contains([]string{"po", "pod", "pods"}, strings.ToLower(kind))
	}
	o.Prefix = o.Prefix || o.Selector != ""
	if err := o.Complete(cmdutil.NewFactory(p), own, args); err != nil {
		return err
	}
	o.ConsumeRequestFn = wholeLines
	if err := o.Validate(); err != nil {
		return err
	}
	if err := o.RunLogsContext(cmd.Context()); err != nil {
		return &logError{err}
	}
	return nil
}

// logError means that a log could not be read after its pod was found, whatever the cluster answered.
type logError struct{ error }

func (e *logError) Unwrap() error { return e.error }

// wholeLines writes a log line by line. It completes an incomplete last line, because the next line is from another
// pod.
func wholeLines(ctx context.Context, request rest.ResponseWrapper, out io.Writer) error {
	body, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	for log := bufio.NewReader(body); ; {
		line, err := log.ReadBytes('\n')
		if err != nil && len(line) > 0 {
			line = append(line, '\n')
		}
		if _, failed := out.Write(line); failed != nil {
			return failed
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// podsOf returns a selector for the pods of an object KIND/NAME, if kubectl does not know how to find them; empty
// otherwise.
func (p *place) podsOf(ctx context.Context, args []string) (string, error) {
	if len(args) == 0 || strings.Count(args[0], "/") != 1 {
		return "", nil
	}
	kind, name, _ := strings.Cut(args[0], "/")
	mapper, err := p.ToRESTMapper()
	if err != nil {
		return "", err
	}
	full, short := schema.ParseResourceArg(strings.ToLower(kind))
	gvr := short.WithVersion("")
	if full != nil {
		gvr = *full
	}
	gvk, err := mapper.KindFor(gvr)
	if err != nil && full != nil {
		gvk, err = mapper.KindFor(short.WithVersion(""))
	}
	if err != nil {
		return "", err
	}
	switch gvk.Group {
	case "", "apps", "batch", "extensions":
		return "", nil
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return "", err
	}
	namespace, _, err := p.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", err
	}
	config, err := p.ToRESTConfig()
	if err != nil {
		return "", err
	}
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return "", err
	}
	u, err := c.Resource(mapping.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return selectorOf(u)
}

// selectorOf returns the selector of a workload's pods, from its spec or status.
func selectorOf(u *unstructured.Unstructured) (string, error) {
	if fields, ok, _ := unstructured.NestedMap(u.Object, "spec", "selector"); ok && len(fields) > 0 {
		if selector, err := match.ParseSelector(fields); err == nil && !selector.Empty() {
			return selector.String(), nil
		}
	}
	if label := kind.Facts(u).Pods.Label; label != "" {
		return label + "=" + u.GetName(), nil
	}
	if selector, _, _ := unstructured.NestedString(u.Object, "status", "labelSelector"); selector != "" {
		return selector, nil
	}
	return "", fmt.Errorf("%s %q has no selector for its pods: name the pods, or select them with -l", u.GetKind(),
		u.GetName())
}

// lines writes whole lines with a prefix, for many who share out.
type lines struct {
	prefix string
	mu     *sync.Mutex
	out    io.Writer
	rest   []byte // an incomplete line
}

// Write implements io.Writer. It is called by one at a time.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, after, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if _, err := fmt.Fprintf(l.out, "%s%s\n", l.prefix, line); err != nil {
			return 0, err
		}
		l.rest = after
	}
}

// end writes a last line that has no end.
func (l *lines) end() {
	if len(l.rest) > 0 {
		_, _ = l.Write([]byte("\n")) // fails only if the reader is gone
	}
}
