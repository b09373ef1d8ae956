// Package explaincli has the verbs that explain the fleet and change nothing: why, simulate and status.
package explaincli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/membercli"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	corewhy "github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/server"
	"github.com/argosy-io/argosy/internal/why"
)

// unwell is the error of status when checks failed, which were printed; its value is their number.
type unwell int

func (n unwell) Error() string {
	if n == 1 {
		return "1 check failed"
	}
	return fmt.Sprintf("%d checks failed", int(n))
}

func NewStatus(hub *hubcli.HubFlags) *cobra.Command {
	output, wait := "", time.Duration(0)
	cmd := &cobra.Command{
		Use:     "status",
		Aliases: []string{"check"},
		Short:   "Check the hub and its clusters",
		Long: `Checks the hub's API, its store, its controllers, and each cluster: whether it is ready, its response time
through the hub, and its version. For each failed check it shows the next step, and the exit code is 1.
Workloads that have no place, that a cluster lacks or does not run well, releases that wait for a person, and ManifestWorks that are
not applied are listed with the reason and the next step, and MultiClusterServices whose clusters stay in traffic against a Remedy, and
failovers with what they wait for; they do not fail a check.`,
		Example: "  argosy status\n  argosy status -o json\n  argosy status --wait 3m",
		Args:    hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output must be json, not %q", output)
			}
			h, err := healthWithin(cmd, hub, wait)
			if err != nil {
				return err
			}
			if output == "json" {
				err = hubcli.WriteJSON(cmd.OutOrStdout(), h)
			} else {
				out, flush := hubcli.ColoredOutput(cmd)
				err = h.print(out)
				flush()
			}
			if err == nil && !h.Healthy {
				err = h.failed()
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait until all checks pass, at most this long")
	return cmd
}

// healthWithin returns the health of the hub as soon as all checks pass, or what it is after the wait.
func healthWithin(cmd *cobra.Command, hub *hubcli.HubFlags, wait time.Duration) (health, error) {
	ctx, shown := cmd.Context(), hubcli.NewSteps(cmd.ErrOrStderr(), false)
	if wait > 0 {
		shown.Begin("Waiting until all checks pass")
	}
	for end := time.Now().Add(wait); ; {
		hub.Reached = nil // ask again
		config, err := hub.ToRESTConfig()
		if errors.Is(err, hubcli.ErrNotServing) {
			config, err = hub.Locate() // the checks show why it is not serving
		}
		var h health
		if err == nil {
			h = healthOf(ctx, config)
		}
		switch {
		case err == nil && h.Healthy:
			shown.Done("")
			h.checkWorkloads(ctx, config)
			return h, nil
		case !time.Now().Before(end):
			shown.Fail()
			if err == nil {
				h.checkWorkloads(ctx, config)
			}
			return h, err
		}
		select {
		case <-ctx.Done():
			return h, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// health is the output of status.
type health struct {
	Healthy bool   `json:"healthy"`
	API     string `json:"api"`
	// Parts are the parts of the hub, Clusters its members by name.
	Parts    []partHealth    `json:"parts"`
	Clusters []clusterHealth `json:"clusters"`
	// Attention are the workloads, releases and ManifestWorks that need attention, the worst first. MoreAttention is the
	// number of others.
	Attention     []overview.Item `json:"attention,omitempty"`
	MoreAttention int             `json:"moreAttention,omitempty"`
	// Failovers are the workloads that should leave a cluster, or are leaving it.
	Failovers []failover.Move `json:"failovers,omitempty"`
	// client reads the hub, and fleet are its clusters; each is nil if it is unknown.
	client client.Reader
	fleet  []clusterv1alpha1.Cluster
}

type partHealth struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	// Next is what to do; empty if there is no problem.
	Next string `json:"next,omitempty"`
	// missing is the right that hides it; nil for none.
	missing *roles.Missing
}

type clusterHealth struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Ready   string `json:"ready"`
	Mode    string `json:"mode"`
	Version string `json:"version,omitempty"`
	// Lag is the response time of the member's API through the hub, in milliseconds; absent if it did not respond.
	Lag    *int64 `json:"lagMilliseconds,omitempty"`
	Detail string `json:"detail,omitempty"`
	Next   string `json:"next,omitempty"`
	// Taints keep new workloads away, such as that of a cordoned cluster. Unschedulable is the number of the cluster's
	// pods without a node; absent if this user may not read it.
	Taints        []string `json:"taints,omitempty"`
	Unschedulable *int64   `json:"unschedulablePods,omitempty"`
	// Brakes are the namespaces in which the hub is stopped; kube-system is the whole cluster.
	Brakes []string `json:"brakes,omitempty"`
	// noLag is why Lag is absent, if the user can do something about it.
	noLag string
}

// notices returns what a user should know although the cluster is healthy, each with what to do.
func (c clusterHealth) notices() (out [][2]string) {
	if len(c.Taints) > 0 && c.OK {
		out = append(out, [2]string{"not used for new workloads, because it has the taint " + strings.Join(c.Taints, ", "),
			"remove the taint to allow new workloads again"})
	}
	for _, namespace := range c.Brakes {
		what, next := execute.Brake(namespace).Explain(c.Name)
		out = append(out, [2]string{what, next})
	}
	if c.Unschedulable != nil && *c.Unschedulable > 0 {
		out = append(out, [2]string{fmt.Sprintf("%s unschedulable", podsAre(*c.Unschedulable)),
			fmt.Sprintf("`argosy get pods -A -C %s` lists its pods; those that are Pending wait for a node", c.Name)})
	}
	return out
}

func podsAre(n int64) string {
	if n == 1 {
		return "1 pod is"
	}
	return fmt.Sprintf("%d pods are", n)
}

// healthOf checks all parts of the hub and all members in parallel.
func healthOf(ctx context.Context, config *rest.Config) health {
	h := health{API: config.Host, Clusters: []clusterHealth{}}
	config = rest.CopyConfig(config)
	config.Timeout = hubcli.Timeout(config, hubcli.AskTimeout)
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		h.Parts = append(h.Parts, partHealth{Name: "API server", Detail: err.Error(), Next: "check the kubeconfig"})
		return h
	}

	// 1. The API server and its own report.
	api, answers := askAPI(ctx, d)
	h.Parts = append(h.Parts, api)
	if !answers {
		return h
	}
	h.Parts = append(h.Parts, readiness(ctx, d)...)
	h.Parts = append(h.Parts, definitions(ctx, config))
	h.Parts = append(h.Parts, storeHealth(ctx, d)...)

	// 2. The controllers, and the clusters that they look after.
	c, err := client.New(config, client.Options{Scheme: hubcli.Scheme})
	var fleet []clusterv1alpha1.Cluster
	if err == nil {
		fleet, err = hubcli.Clusters(ctx, c, nil, "")
		fleet = append([]clusterv1alpha1.Cluster{}, fleet...) // not nil
	}
	if err != nil {
		p := unknownPart("clusters", err)
		p.OK, p.Next = false, "use a kubeconfig that may list clusters"
		h.Parts = append(h.Parts, p)
		if p.missing == nil {
			return h
		}
		fleet = nil // what else this user may not see is named with it
	}
	h.Parts = append(h.Parts, controllers(ctx, c, config, fleet))
	rows := make([]*overview.ClusterRow, len(fleet))
	for i := range fleet {
		rows[i] = new(overview.RowOfCluster(&fleet[i]))
	}
	if paused, is := overview.FailoverPaused(rows); is {
		h.Parts = append(h.Parts, partHealth{Name: paused.Name, Detail: paused.Message, Next: paused.Next})
	}
	h.Clusters = make([]clusterHealth, len(fleet))
	var asking sync.WaitGroup
	for i := range fleet {
		asking.Go(func() {
			h.Clusters[i] = clusterHealthOf(ctx, d, &fleet[i])
			h.Clusters[i].Unschedulable = unschedulable(ctx, config, fleet[i].Name)
		})
	}
	asking.Wait()
	h.Healthy, h.client, h.fleet = h.failed() == 0, c, fleet
	return h
}

// shownAttention is the maximum number of items of -o json: in an outage, every workload is one.
const shownAttention = 300

// checkWorkloads sets what needs attention among the workloads, and the failovers, and adds parts for what is unknown.
// It does nothing if the clusters are unknown.
func (h *health) checkWorkloads(ctx context.Context, config *rest.Config) {
	c, fleet := h.client, h.fleet
	if c == nil {
		return
	}
	config = rest.CopyConfig(config)
	config.Timeout = hubcli.Timeout(config, hubcli.AskTimeout)
	note := func(part string, err error) {
		if err != nil && !meta.IsNoMatchError(err) {
			h.Parts = append(h.Parts, unknownPart(part, err))
		}
	}
	facts := overview.Facts{}
	if troubled, err := why.PodsOf(ctx, config); apierrors.IsForbidden(err) {
		h.Parts = append(h.Parts, hiddenPart("pods", roles.LackPath(why.PodsPath)))
	} else if err == nil {
		facts.Troubled, h.MoreAttention = troubled.Workloads, troubled.More
	}
	bindings, err := scope.Bindings.List(ctx, c)
	note("workloads", err)
	if fleet == nil {
		bindings = nil // without the clusters their state is not known
	}
	byName := map[string]*clusterv1alpha1.Cluster{}
	for i := range fleet {
		byName[fleet[i].Name] = &fleet[i]
	}
	clusterOf := func(name string) *clusterv1alpha1.Cluster { return byName[name] }
	seen := state.Facts{Troubled: state.TroubledOf(facts.Troubled), Cluster: clusterOf}
	for _, b := range bindings {
		row := overview.RowOfWorkload(b, seen)
		facts.Workloads = append(facts.Workloads, &row)
	}
	var releases releasev1alpha1.ReleaseList
	note("releases", c.List(ctx, &releases))
	for i := range releases.Items {
		if item, waits := overview.ItemOfRelease(&releases.Items[i]); waits {
			facts.Others = append(facts.Others, item)
		}
	}
	var works ocmv1.ManifestWorkList
	note("manifestworks", c.List(ctx, &works))
	for i := range works.Items {
		if item, is := overview.ItemOfManifestWork(&works.Items[i]); is {
			facts.Others = append(facts.Others, item)
		}
	}
	facts.Others = append(facts.Others, keptTraffic(ctx, c, note)...)
	var more int
	h.Attention, more = overview.Attention(facts, shownAttention)
	h.MoreAttention += more

	if slices.ContainsFunc(bindings, func(b workv1alpha2.Binding) bool { return failover.MayLeave(b, clusterOf) }) {
		moves, _, err := membercli.FailoversOf(ctx, config, "")
		note("failovers", err)
		h.Failovers = slices.DeleteFunc(moves, func(m failover.Move) bool { return m.Ended != nil })
	}
}

// keptTraffic returns the items of what stays in traffic against a Remedy.
func keptTraffic(ctx context.Context, c client.Reader, note func(part string, err error)) (items []overview.Item) {
	add := func(kind, namespace, name string, conditions []metav1.Condition) {
		if item, is := overview.ItemOfTraffic(kind, namespace, name, conditions); is {
			items = append(items, item)
		}
	}
	var services networkingv1alpha1.MultiClusterServiceList
	note("multiclusterservices", c.List(ctx, &services))
	for _, s := range services.Items {
		add(networkingv1alpha1.MultiClusterServiceKind, s.Namespace, s.Name, s.Status.Conditions)
	}
	var ingresses networkingv1alpha1.MultiClusterIngressList
	note("multiclusteringresses", c.List(ctx, &ingresses))
	for _, i := range ingresses.Items {
		add("MultiClusterIngress", i.Namespace, i.Name, i.Status.Conditions)
	}
	return items
}

// failed returns the number of failed checks, of the hub's parts and of clusters.
func (h health) failed() (n unwell) {
	for _, p := range h.Parts {
		if !p.OK {
			n++
		}
	}
	for _, c := range h.Clusters {
		if !c.OK {
			n++
		}
	}
	return n
}

// askAPI also reports whether there is any use in asking more.
func askAPI(ctx context.Context, d *discovery.DiscoveryClient) (partHealth, bool) {
	p := partHealth{Name: "API server"}
	began := time.Now()
	answer := d.RESTClient().Get().AbsPath("/version").Do(ctx)
	raw, _ := answer.Raw()
	err := answer.Error()
	var status apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		p.Detail, p.Next = err.Error(), "use a kubeconfig of this hub: `argosy up` prints where it writes one"
		return p, false
	case errors.As(err, &status):
		p.Detail = "cannot serve requests now: " + err.Error()
		p.Next = "a hub that has just started needs a few seconds; otherwise look at the hub's log (docs/logs.md)"
		return p, false
	case err != nil:
		p.Detail, p.Next = "not responding: "+hubcli.NoResponseCause(err, hubcli.AskTimeout),
			"start the hub, or name another kubeconfig; the hub's log has the reason why it ended (docs/logs.md)"
		return p, false
	}
	var v version.Info
	if err := json.Unmarshal(raw, &v); err != nil {
		p.Detail, p.Next = fmt.Sprintf("the response is not a version: %v", err),
			"check the address: another server may listen there"
		return p, false
	}
	p.OK, p.Detail = true, fmt.Sprintf("Kubernetes %s, responds in %d ms", v.GitVersion, time.Since(began).Milliseconds())
	return p, true
}

// readiness returns the results of the server's own checks: that of the store, and all together.
func readiness(ctx context.Context, d *discovery.DiscoveryClient) []partHealth {
	check := func(path string) (code int) {
		d.RESTClient().Get().AbsPath(path).Do(ctx).StatusCode(&code)
		return code
	}
	store := partHealth{Name: "etcd", OK: true, Detail: "reads and writes work"}
	if check("/readyz") == http.StatusOK {
		return []partHealth{store, {Name: "readiness", OK: true, Detail: "all checks pass"}}
	}
	switch code := check("/readyz/etcd"); {
	case code == http.StatusForbidden:
		store = hiddenPart(store.Name, roles.LackPath("/readyz/etcd"))
	case code == 0 || code == http.StatusTooManyRequests:
		store.Detail = "unknown: the hub did not answer /readyz/etcd"
	case code != http.StatusOK:
		store.OK, store.Detail = false, "not responding"
		store.Next = "check the disk of the hub's data folder, or the servers of --etcd-servers"
	case check("/readyz/store") == http.StatusInternalServerError:
		store.OK, store.Detail, store.Next = false, "reads work, writes are rejected", "see below"
	}
	return []partHealth{store, {Name: "readiness", Detail: "not ready",
		Next: "a hub that has just started needs a few seconds; otherwise `argosy get --raw '/readyz?verbose'` lists the " +
			"checks, and the hub's log has the reasons (docs/logs.md)"}}
}

// unknownPart returns the result for a part that err hides, with the role that has a right that the user lacks.
func unknownPart(name string, err error) partHealth {
	if lacks := why.MissingOf(err, "list", ""); lacks != nil {
		return hiddenPart(name, *lacks)
	}
	return partHealth{Name: name, OK: true, Detail: "unknown: " + err.Error()}
}

// hiddenPart returns the result for a part that a missing right hides.
func hiddenPart(name string, lacks roles.Missing) partHealth {
	return partHealth{Name: name, OK: true, Detail: "unknown: " + roles.Sentence([]roles.Missing{lacks}), missing: &lacks}
}

// definitions reports whether all kinds of the hub are defined: without one, its objects seem to be gone.
func definitions(ctx context.Context, config *rest.Config) partHealth {
	p := partHealth{Name: "definitions"}
	broken, err := definition.BrokenNow(ctx, config)
	switch {
	case apierrors.IsForbidden(err):
		return unknownPart(p.Name, err)
	case err != nil:
		p.Detail, p.Next = err.Error(), "check the hub's log (docs/logs.md)"
	case len(broken) > 0:
		p.Detail = "missing or being deleted: " + strings.Join(broken, ", ") + "; nothing is deleted in clusters meanwhile"
		p.Next = "the hub recreates them within seconds; otherwise check which finalizer blocks the deletion, and the hub's log (docs/logs.md)"
	default:
		p.OK, p.Detail = true, "all of the hub's kinds are defined"
	}
	return p
}

// storeHealth returns what the hub reports about its store, its disk, its backups, and the state after a restore.
func storeHealth(ctx context.Context, d *discovery.DiscoveryClient) []partHealth {
	raw, err := d.RESTClient().Get().AbsPath(server.HealthPath).DoRaw(ctx)
	var health server.Health
	if err == nil {
		err = json.Unmarshal(raw, &health)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil // an older hub
	case apierrors.IsForbidden(err):
		return []partHealth{hiddenPart("store", roles.LackPath(server.HealthPath))}
	case err != nil:
		return []partHealth{{Name: "store", Detail: err.Error(), Next: "check the hub's log (docs/logs.md)"}}
	}
	s := health.Store
	detail := fmt.Sprintf("%.0f MiB of %.0f MiB", hubcli.Mib(s.Size), hubcli.Mib(s.Quota))
	if s.Disk > 0 {
		detail += fmt.Sprintf(", %.1f GiB of disk space free", hubcli.Mib(s.Free)/1024)
	}
	if s.Fsync > 0 {
		detail += fmt.Sprintf(", WAL fsync p99 %s", s.Fsync.Round(time.Millisecond))
	}
	if health.LastBackup != nil {
		detail += fmt.Sprintf(", backup %s ago", time.Since(*health.LastBackup).Round(time.Second))
	}
	parts := []partHealth{{Name: "store", OK: true, Detail: detail}}
	for _, f := range health.Problems() {
		parts = append(parts, partHealth{Name: f.Name, Detail: f.Message, Next: f.Next})
	}
	return parts
}

// controllers reports whether a hub runs them: by the lease of the leader election, or by the scheduler's state of this
// process. fleet is nil if the clusters are unknown.
func controllers(ctx context.Context, c client.Client, config *rest.Config,
	fleet []clusterv1alpha1.Cluster) partHealth {
	p := partHealth{Name: "controllers"}
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, types.NamespacedName{Namespace: "karmada-system", Name: "argosy"}, lease)
	switch {
	case err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" &&
		lease.Spec.RenewTime != nil && lease.Spec.LeaseDurationSeconds != nil:
		leader, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
		age := time.Since(lease.Spec.RenewTime.Time).Round(time.Second)
		p.OK = age <= time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second
		p.Detail = fmt.Sprintf("leader %s, renewed %s ago", leader, age)
		if !p.OK {
			p.Next = "the lease expired: check that a hub on this etcd is running with its controllers"
		}
		return p
	case err == nil:
		p.Detail, p.Next = "no hub is the leader", "check that a hub on this etcd is running with its controllers"
		return p
	case apierrors.IsForbidden(err):
		return hiddenPart(p.Name, roles.Lack("get", coordinationv1.GroupName, "leases", "karmada-system"))
	case !apierrors.IsNotFound(err):
		p.Detail, p.Next = err.Error(), "check the hub's log (docs/logs.md)"
		return p
	case fleet == nil:
		p.OK, p.Detail = true, "unknown: it depends on the clusters"
		return p
	}
	if len(fleet) == 0 {
		p.OK, p.Detail = true, "one hub, the leader; no clusters are joined yet"
		return p
	}
	switch _, err := why.NodesOf(ctx, config, fleet[0].Name); {
	case err == nil:
		p.OK, p.Detail = true, "one hub, the leader"
	case apierrors.IsForbidden(err):
		return hiddenPart(p.Name, roles.LackPath(why.NodesPath))
	case apierrors.IsServiceUnavailable(err):
		p.Detail, p.Next = "not running, or still starting",
			"a hub that has just started needs a few seconds; otherwise check --components of `argosy up`"
	default:
		p.Detail, p.Next = err.Error(), "a hub that has just started needs a few seconds; otherwise check --components of `argosy up`"
	}
	return p
}

// unschedulable returns the number of a cluster's pods without a node; nil if the hub does not know it, or the user may
// not read it.
func unschedulable(ctx context.Context, config *rest.Config, cluster string) *int64 {
	record, err := why.NodesOf(ctx, config, cluster)
	if err != nil || record == nil {
		return nil
	}
	n := int64(0)
	for _, expected := range record.Expected {
		for _, w := range expected.Waiting {
			n += w.Pods
		}
	}
	return &n
}

// clusterHealthOf returns a member as the hub knows it, and as it answers now through the hub.
func clusterHealthOf(ctx context.Context, d *discovery.DiscoveryClient,
	cluster *clusterv1alpha1.Cluster) clusterHealth {
	c := clusterHealth{Name: cluster.Name, Ready: string(metav1.ConditionUnknown), Mode: string(cluster.Spec.SyncMode),
		Version: cluster.Status.KubernetesVersion, Taints: overview.Repelling(cluster), Brakes: cluster.Status.Brakes}
	next := "`argosy why cluster " + cluster.Name + "`"
	if ready := membership.Readiness(cluster); ready != nil {
		c.Ready = string(ready.Status)
	}
	v := overview.Judge(cluster)
	c.OK, c.Detail, c.Next = v.OK(), v.What, v.Next
	if v.State == overview.NotReady {
		since := time.Since(v.Condition.LastTransitionTime.Time)
		c.Detail = fmt.Sprintf("not ready for %s: %s", duration.HumanDuration(since), v.What)
	}
	began := time.Now()
	err := hubcli.AskVersion(ctx, d, cluster.Name)
	switch {
	case err == nil:
		lag := time.Since(began).Milliseconds()
		c.Lag = &lag
	case apierrors.IsForbidden(err):
		// That a user lacks the right is no problem of the cluster.
		if hubcli.ClusterErrorDetails(err) == nil {
			err = fmt.Errorf("cluster %q: %w", cluster.Name, err)
		}
		c.noLag = cmp.Or(roles.Denied(err.Error()), err.Error())
	case cluster.Spec.SyncMode == clusterv1alpha1.Pull:
		c.noLag = err.Error()
	case c.OK && hubcli.TimedOut(err):
		c.OK, c.Detail = false, fmt.Sprintf("slow: it did not answer through the hub within %s", hubcli.AskTimeout)
		c.Next = "check that its API server is not overloaded or suspended: " + next
	case c.OK:
		c.OK, c.Detail, c.Next = false, err.Error(), next
	}
	return c
}

func (h health) print(out io.Writer) error {
	w := printers.GetNewTabWriter(out)
	fmt.Fprintf(w, "HUB %s\n", h.API)
	var missing []roles.Missing
	for _, p := range h.Parts {
		detail := p.Detail
		if p.missing != nil {
			detail, missing = "unknown", append(missing, *p.missing)
		}
		text.Fprintf(w, "%s\t%s\t%s\n", mark(p.OK), p.Name, detail)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(h.Clusters) > 0 {
		fmt.Fprintf(w, "\nCLUSTER\tREADY\tMODE\tVERSION\tLAG\tTAINTS\n")
		for _, c := range h.Clusters {
			lag := "<none>"
			if c.Lag != nil {
				lag = fmt.Sprintf("%d ms", *c.Lag)
			}
			text.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Ready, c.Mode, hubcli.OrNone(c.Version), lag,
				hubcli.OrNone(strings.Join(c.Taints, ",")))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		var reasons []string
		unknown := map[string][]string{}
		for _, c := range h.Clusters {
			if c.noLag != "" && unknown[c.noLag] == nil {
				reasons = append(reasons, c.noLag)
			}
			unknown[c.noLag] = append(unknown[c.noLag], c.Name)
		}
		for _, why := range reasons {
			text.Fprintf(out, "LAG is unknown for cluster %s: %s\n", text.Names(unknown[why], 10), why)
		}
	}
	first := true
	printRow := func(name, detail, next string) {
		if first {
			fmt.Fprintln(out, "\nFAILED CHECKS")
		}
		first = false
		text.Fprintf(out, "%s: %s\n  next: %s\n", name, detail, next)
	}
	for _, p := range h.Parts {
		switch {
		case !p.OK && p.missing != nil:
			printRow(p.Name, "unknown", p.Next)
		case !p.OK:
			printRow(p.Name, p.Detail, p.Next)
		}
	}
	for _, c := range h.Clusters {
		if !c.OK {
			printRow("cluster "+c.Name, c.Detail, c.Next)
		}
	}
	noticed := false
	for _, c := range h.Clusters {
		for _, n := range c.notices() {
			if !noticed {
				fmt.Fprintln(out, "\nWARNINGS")
			}
			noticed = true
			text.Fprintf(out, "cluster %s: %s\n  next: %s\n", c.Name, n[0], n[1])
		}
	}
	if err := h.printAttention(out); err != nil {
		return err
	}
	if err := h.printFailovers(out); err != nil {
		return err
	}
	if len(missing) > 0 {
		text.Fprintf(out, "\nUNKNOWN: %s\n", roles.Sentence(missing))
	}
	switch {
	case h.Healthy && h.problems() > 0:
		fmt.Fprintf(out, "\nNo check of the hub failed; %s of workloads: see NEEDS ATTENTION.\n",
			text.Count(h.problems(), "problem"))
	case h.Healthy && (noticed || len(h.Attention)+len(h.Failovers) > 0):
		fmt.Fprintln(out, "\nNo check failed.")
	case h.Healthy:
		fmt.Fprintln(out, "\nAll checks passed.")
	}
	return nil
}

// problems counts the workloads and ManifestWorks that have a problem.
func (h health) problems() (n int) {
	for _, item := range h.Attention {
		if item.Severity == corewhy.Problem && item.About != "release" {
			n++
		}
	}
	return n
}

// shownWorkloads is the number of workloads that are printed; -o json has more.
const shownWorkloads = 20

// printAttention prints a table of what needs attention, with the next step for each release, and for the first of each
// other kind.
func (h health) printAttention(out io.Writer) error {
	if len(h.Attention) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nNEEDS ATTENTION")
	shown := h.Attention[:min(len(h.Attention), shownWorkloads)]
	table := hubcli.TextTable("Severity", "Namespace", "Object", "Cluster", "Reason")
	var next []string
	told := map[string]bool{}
	for _, item := range shown {
		hubcli.AddRow(table, string(item.Severity), hubcli.OrNone(item.Object.Namespace),
			item.Object.Kind+" "+item.Object.Name,
			hubcli.OrNone(item.Cluster), item.What)
		switch kind := item.Object.Kind; {
		case item.About == "release":
			next = append(next, fmt.Sprintf("next (%s, %s): %s", item.Object.Name, item.Actor, item.Next))
		case !told[kind]:
			told[kind], next = true, append(next, "next: "+item.Next)
		}
	}
	if err := hubcli.PrintTable(out, table, printers.PrintOptions{}); err != nil {
		return err
	}
	if more := len(h.Attention) + h.MoreAttention - len(shown); more > 0 {
		fmt.Fprintf(out, "and %d more\n", more)
	}
	for _, step := range next {
		text.Fprintf(out, "  %s\n", step)
	}
	return nil
}

// printFailovers prints the workloads that should leave a cluster, or are leaving it.
func (h health) printFailovers(out io.Writer) error {
	if len(h.Failovers) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nFAILOVERS")
	all := h.Failovers[:min(len(h.Failovers), shownWorkloads)]
	if err := membercli.PrintFailovers(out, all, time.Now()); err != nil {
		return err
	}
	if more := len(h.Failovers) - len(all); more > 0 {
		fmt.Fprintf(out, "and %d more\n", more)
	}
	fmt.Fprintln(out, "  next: `argosy get failovers -o json` has the reason why each waits")
	return nil
}

func mark(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAIL"
}
