package explaincli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/why"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestStatusCallsAClusterSlowAfterATimeout(t *testing.T) {
	d, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: "https://hub.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	meta.SetStatusCondition(&cluster.Status.Conditions, membership.Seen(membership.Probe{Code: http.StatusOK}))
	h := clusterHealthOf(late, d, cluster)
	if h.OK || !strings.HasPrefix(h.Detail, "slow: it did not answer") || !strings.Contains(h.Next, "not overloaded") {
		t.Errorf("status reports %+v", h)
	}
}

func TestStatusNamesWhyALagIsUnknown(t *testing.T) {
	s := clitest.See(t, map[string]*membertest.Server{"eu": membertest.New(t), "us": membertest.New(t)})
	s.ServeBindings()
	s.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/proxy/") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
			"details": {"group": "cluster.karmada.io", "kind": "clusters", "name": "eu"},
			"message": "clusters.cluster.karmada.io \"eu\" is forbidden: User \"dev\" cannot get resource \"clusters/proxy\" in API group \"cluster.karmada.io\" at the cluster scope"}`)
		return true
	}
	verb := func(hub *hubcli.HubFlags, _ genericiooptions.IOStreams) *cobra.Command { return NewStatus(hub) }
	out, _, _ := s.Run(verb, "")
	if strings.Count(out, "LAG is unknown") != 1 ||
		!strings.Contains(out, "LAG is unknown for cluster eu, us: you may not get clusters.cluster.karmada.io/proxy") {
		t.Errorf("status prints:\n%s", out)
	}
}

// failedJob returns the binding of a Job that failed in a cluster.
func failedJob(cluster string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1alpha2.GroupVersion.String(), Kind: "ResourceBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "load-job"},
	}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "load"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: cluster, Applied: true,
		Health: workv1alpha1.ResourceUnhealthy, Status: &runtime.RawExtension{Raw: []byte(`{"failed": 1, "conditions": [
			{"type": "Failed", "status": "True", "reason": "DeadlineExceeded",
				"message": "Job was active longer than specified deadline"}]}`)}}}
	return b
}

// ailing returns the binding of a Deployment that is Unhealthy in cluster us, and leaves it in five minutes.
func ailing() *workv1alpha2.ResourceBinding {
	b := clitest.BoundDeployment("web")
	b.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "us", Applied: true,
		Health: workv1alpha1.ResourceUnhealthy, UnhealthySince: new(metav1.Now())}}
	return b
}

// withCondition returns the binding of a Deployment in cluster eu with a condition that is False.
func withCondition(name, kind, message string) *workv1alpha2.ResourceBinding {
	b := clitest.BoundDeployment(name)
	b.Spec.Clusters[0].Name = "eu"
	b.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Message: message}}
	return b
}

// refusedIn returns the binding of a Deployment that a cluster refuses.
func refusedIn(name, cluster string) *workv1alpha2.ResourceBinding {
	b := clitest.BoundDeployment(name)
	b.Spec.Clusters[0].Name = cluster
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: cluster,
		AppliedMessage: "the object exists and the hub does not manage it"}}
	return b
}

// releaseFor returns a release that waits for a reason.
func releaseFor(name, reason string) *releasev1alpha1.Release {
	r := &releasev1alpha1.Release{
		TypeMeta:   metav1.TypeMeta{APIVersion: releasev1alpha1.GroupVersion.String(), Kind: "Release"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	r.Status.Phase = releasev1alpha1.ReleaseRunning
	r.Status.Conditions = []metav1.Condition{{Type: releasev1alpha1.ReleaseProgressing, Status: metav1.ConditionFalse,
		Reason: reason, Message: "the message", LastTransitionTime: metav1.Now()}}
	return r
}

func TestStatusReportsProblemsAndRemedies(t *testing.T) {
	t.Parallel()
	verb := func(hub *hubcli.HubFlags, _ genericiooptions.IOStreams) *cobra.Command { return NewStatus(hub) }
	for name, c := range map[string]struct {
		readyz  string // the check that fails there; forbidden if the user may not ask for single ones
		silent  bool   // one of the clusters
		ready   metav1.ConditionStatus
		stopped bool   // the controllers
		gone    string // one of the hub's definitions
		kept    metav1.ConditionStatus
		taint   string // of the cluster, by key
		brakes  []any  // namespaces of the cluster in which the hub is stopped
		waiting int    // pods of it without a node
		pods    string // templates with pods in trouble, as the hub tells of them; "forbidden" where it does not
		// bindings are those of the hub; forbidden means that the user may not list them.
		bindings  []*workv1alpha2.ResourceBinding
		forbidden bool
		releases  []*releasev1alpha1.Release
		works     []*ocmv1.ManifestWork
		want      []string
		without   string // text that is not printed
		err       bool
	}{
		"all is well": {ready: "True", want: []string{"ok    etcd", "ok    controllers", "All checks passed."}},
		"the store is silent": {ready: "True", readyz: "etcd",
			want: []string{"FAIL   etcd", "next: check the disk", "readiness: not ready", "/readyz?verbose"}, err: true},
		"the store rejects writes": {ready: "True", readyz: "store",
			want: []string{"FAIL   etcd", "etcd: reads work, writes are rejected", "readiness: not ready"}, err: true},
		"another check fails": {ready: "True", readyz: "shutdown",
			want: []string{"ok     etcd", "readiness: not ready"}, err: true},
		"the user may not ask for single checks": {ready: "True", readyz: "forbidden",
			want: []string{"ok     etcd", "UNKNOWN: you may not get /readyz/etcd; a ClusterRoleBinding to the ClusterRole " +
				"argosy:operator permits it", "readiness: not ready"}, err: true},
		"a brake is set": {ready: "True", brakes: []any{"kube-system"}, want: []string{"WARNINGS",
			"cluster eu: brake on eu: the hub writes and deletes nothing", "next: `argosy brake off -C eu` lets"},
			without: "-n shop"},
		"a brake is set in a namespace": {ready: "True", brakes: []any{"shop"}, want: []string{
			"brake on namespace shop of eu: ", "next: `argosy brake off -C eu -n shop` lets"}},
		"a cluster is silent": {ready: "True", silent: true,
			want: []string{`cluster us: cluster "us" is not reachable`, "next: `argosy why cluster us`", "<none>"}, err: true},
		"a cluster is not ready": {ready: "False",
			want: []string{"cluster eu: not ready for 5m", "ClusterNotReachable: no answer", "next: `argosy why cluster eu`"},
			err:  true},
		"controllers do not run": {ready: "True", stopped: true,
			want: []string{"FAIL   controllers", "not running, or still starting", "next: a hub that has just started"},
			err:  true},
		"a definition is gone": {ready: "True", gone: "works.work.karmada.io",
			want: []string{"FAIL   definitions",
				"definitions: missing or being deleted: works.work.karmada.io; nothing is deleted",
				"next: the hub recreates them"}, err: true},
		"Works were deleted": {ready: "True", kept: "True",
			want: []string{"cluster eu: WorksDeletedByOthers: 12 Works", "next: find out who deleted them"}, err: true},
		"Works were deleted, long ago": {ready: "True", kept: "False",
			want: []string{"ok    definitions", "All checks passed."}},
		"a cluster is cordoned": {ready: "True", taint: "cluster.karmada.io/unschedulable",
			want: []string{"WARNINGS", "cluster eu: not used for new workloads, because it has the taint cluster.karmada.io/unschedulable:NoSchedule", "No check failed."}},
		"a pod finds no node": {ready: "True", waiting: 1,
			want: []string{"cluster eu: 1 pod is unschedulable", "next: `argosy get pods -A -C eu`", "No check failed."}},
		"pods find no node": {ready: "True", waiting: 3,
			want: []string{"cluster eu: 3 pods are unschedulable", "No check failed."}},
		"pods do not run": {ready: "True", pods: `{"workloads": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web", "cluster": "eu", "pods": 3,
			"troubles": [{"pods": 2, "pod": "web-1", "reason": "ImagePullBackOff", "message": "Back-off pulling image \"nope:1\"", "container": "web"}]}], "more": 7}`,
			want: []string{"NEEDS ATTENTION",
				"shop        Deployment web   eu        2 of 3 pods: ImagePullBackOff: Back-off pulling image \"nope:1\" (container web)", "and 7 more",
				"next: `argosy why deployment web -n shop`",
				"No check of the hub failed; 1 problem of workloads: see NEEDS ATTENTION."}},
		"who may not be told of pods": {ready: "True", pods: "forbidden",
			want: []string{"ok    pods", "UNKNOWN: you may not get /argosy/pods; a ClusterRoleBinding to the ClusterRole " +
				"argosy:view permits it", "All checks passed."}},
		"a Job failed": {ready: "True", bindings: []*workv1alpha2.ResourceBinding{failedJob("eu")},
			want: []string{"NEEDS ATTENTION",
				"shop        Job load   eu        not healthy in eu: failed 1; DeadlineExceeded: Job was active longer than specified deadline",
				"next: `argosy why job load -n shop`", "No check of the hub failed; 1 problem of workloads: see NEEDS ATTENTION."}},
		"a Job has pods that do not run": {ready: "True", bindings: []*workv1alpha2.ResourceBinding{failedJob("eu")},
			pods: `{"workloads": [{"apiVersion": "batch/v1", "kind": "Job", "namespace": "shop", "name": "load", "cluster": "eu", "pods": 1,
			"troubles": [{"pods": 1, "pod": "load-a", "reason": "ImagePullBackOff"}]}]}`,
			want: []string{"Job load   eu        1 of 1 pod: ImagePullBackOff",
				"No check of the hub failed; 1 problem of workloads: see NEEDS ATTENTION."},
			without: "not healthy in eu"},
		"a failover waits for a user": {ready: "True", bindings: []*workv1alpha2.ResourceBinding{
			clitest.BoundDeployment("web", workv1alpha2.GracefulEvictionTask{FromCluster: "eu", Reason: "ApplicationFailure",
				Producer: "ResourceBindingApplicationFailoverController", PurgeMode: policyv1alpha1.PurgeModeNever,
				SuppressDeletion: new(true), CreationTimestamp: new(metav1.Now())})},
			want: []string{"FAILOVERS", "ApplicationFailure   KeptByPolicy", "No check of the hub failed; 1 problem"}},
		"a failover waits for its replacement": {ready: "True", bindings: []*workv1alpha2.ResourceBinding{
			clitest.BoundDeployment("web", workv1alpha2.GracefulEvictionTask{FromCluster: "eu", Reason: "ApplicationFailure",
				Producer: "ResourceBindingApplicationFailoverController", CreationTimestamp: new(metav1.Now())})},
			want: []string{"FAILOVERS", "ApplicationFailure   ReplacementNotHealthy", "No check of the hub failed; 1 problem"}},
		"a failover takes too long": {ready: "True", bindings: []*workv1alpha2.ResourceBinding{
			clitest.BoundDeployment("web", workv1alpha2.GracefulEvictionTask{FromCluster: "eu", Reason: "ApplicationFailure",
				Producer: "ResourceBindingApplicationFailoverController", GracePeriodSeconds: new(int32(60)),
				CreationTimestamp: new(metav1.NewTime(time.Now().Add(-time.Hour)))})},
			want: []string{"FAILOVERS", "ApplicationFailure   GracePeriodExceeded", "No check of the hub failed; 1 problem"}},
		"an application is about to leave": {ready: "True", silent: true, err: true,
			bindings: []*workv1alpha2.ResourceBinding{ailing()},
			want:     []string{"NEEDS ATTENTION", "FAILOVERS", "ApplicationFailure   Tolerated"}},
		"releases wait for people": {ready: "True", releases: []*releasev1alpha1.Release{
			releaseFor("a", releasev1alpha1.ReasonWaitingForApproval), releaseFor("b", releasev1alpha1.ReasonFleetHalted),
			releaseFor("c", releasev1alpha1.ReasonSoaking)},
			want: []string{"NEEDS ATTENTION", "Problem     shop        Release b   <none>    it waits: the message",
				"Attention   shop        Release a   <none>    it waits for approval: the message",
				"  next (b, User): undo that change of the template, or abort the release",
				"  next (a, Approver): `argosy release approve a -n shop`"},
			without: "Release c"},
		"a workload is not placed, an override fails, and a member refuses another": {ready: "True",
			bindings: []*workv1alpha2.ResourceBinding{
				withCondition("a", workv1alpha2.Scheduled, "0/2 clusters are available"),
				withCondition("b", workv1alpha2.WorksWritten, `cluster "eu": override o: no such path`), refusedIn("c", "eu")},
			want: []string{"Deployment a   <none>    not placed: 0/2 clusters are available",
				`Deployment b   eu        not applied in eu: WorksWritten: cluster "eu": override o: no such path`,
				"Deployment c   eu        not applied in eu: the object exists", "next: `argosy why deployment",
				"No check of the hub failed; 3 problems of workloads"}},
		"a ManifestWork is not applied": {ready: "True", works: []*ocmv1.ManifestWork{{
			TypeMeta:   metav1.TypeMeta{APIVersion: ocmv1.GroupVersion.String(), Kind: "ManifestWork"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "w"},
			Status: ocmv1.ManifestWorkStatus{Conditions: []metav1.Condition{{Type: ocmv1.Applied,
				Status: metav1.ConditionFalse, Message: "Failed to apply"}}}}},
			want: []string{"ManifestWork w   eu        not applied: Failed to apply", "next: `argosy why manifestwork w -n eu`"}},
		"who may not list releases": {ready: "True", forbidden: true,
			want: []string{"ok    releases", "you may not list resourcebindings.work.karmada.io, releases.release.argosy.io in all namespaces; a " +
				"ClusterRoleBinding to the ClusterRole argosy:view permits it", "All checks passed."}},
		"who may not list bindings": {ready: "True", forbidden: true,
			want: []string{"ok    workloads", "you may not list resourcebindings.work.karmada.io, releases.release.argosy.io in all namespaces; " +
				"a ClusterRoleBinding to the ClusterRole argosy:view permits it"}},
		"who may not list ManifestWorks": {ready: "True", forbidden: true, want: []string{"ok    manifestworks",
			"; you may not list manifestworks.work.open-cluster-management.io in all namespaces"}},
		"who may not list definitions": {ready: "True", forbidden: true, want: []string{"ok    definitions",
			"UNKNOWN: you may not list customresourcedefinitions.apiextensions.k8s.io; "}},
		"a cluster is not seen yet": {want: []string{"cluster eu: its status has not been collected yet"}, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			members := map[string]*membertest.Server{"eu": membertest.New(t)}
			if c.silent {
				members["us"] = nil
			}
			s := clitest.See(t, members)
			for name := range members {
				u := s.Api.Object(clitest.ClusterKind, "", name)
				if c.ready != "" {
					u.Object["status"] = map[string]any{"kubernetesVersion": "v1.36.3", "conditions": []any{map[string]any{
						"type": clusterv1alpha1.ClusterConditionReady, "status": string(c.ready), "reason": "ClusterNotReachable",
						"message":            "no answer",
						"lastTransitionTime": time.Now().Add(-5 * time.Minute).UTC().Format(time.RFC3339)}}}
				}
				if c.kept != "" {
					u.Object["status"].(map[string]any)["conditions"] = append(
						u.Object["status"].(map[string]any)["conditions"].([]any), map[string]any{
							"type": clusterv1alpha1.ClusterConditionWorksKept, "status": string(c.kept), "reason": "WorksDeletedByOthers",
							"message": "12 Works were deleted"})
				}
				if c.taint != "" {
					u.Object["spec"].(map[string]any)["taints"] = []any{map[string]any{"key": c.taint, "effect": "NoSchedule"}}
				}
				if c.brakes != nil {
					u.Object["status"].(map[string]any)["brakes"] = c.brakes
				}
				s.Api.Put(u)
			}
			s.ServeBindings()
			for _, b := range c.bindings {
				s.Api.Put(b)
			}
			for _, r := range c.releases {
				s.Api.Put(r)
			}
			for _, w := range c.works {
				s.Api.Put(w)
			}
			own, err := definition.Names()
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range own {
				if name != c.gone {
					d := &unstructured.Unstructured{}
					d.SetGroupVersionKind(definition.GVK)
					d.SetName(name)
					s.Api.Put(d)
				}
			}
			s.Api.Behave(func(w http.ResponseWriter, r *http.Request) bool {
				switch r.URL.Path {
				case "/readyz", "/readyz/etcd", "/readyz/store":
					switch {
					case c.readyz == "forbidden" && r.URL.Path != "/readyz":
						w.WriteHeader(http.StatusForbidden)
					case c.readyz != "" && (r.URL.Path == "/readyz" || r.URL.Path == "/readyz/"+c.readyz):
						w.WriteHeader(http.StatusInternalServerError)
					}
				case why.NodesPath:
					if c.stopped {
						w.Header().Set("Content-Type", "application/json")
						w.WriteHeader(http.StatusServiceUnavailable)
						fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":503,"reason":"ServiceUnavailable","message":"the scheduler does not run in this replica of the hub"}`)
					} else {
						w.Header().Set("Content-Type", "application/json")
						fmt.Fprintf(w, `{"nodes": [], "expected": [{"namespace": "shop", "parts": [], "waiting": [{"kind": "Deployment", "name": "web", "pods": %d}]}]}`, c.waiting)
					}
				case why.PodsPath:
					w.Header().Set("Content-Type", "application/json")
					switch c.pods {
					case "":
						fmt.Fprint(w, `{"workloads": []}`)
					case "forbidden":
						w.WriteHeader(http.StatusForbidden)
						fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":403,"reason":"Forbidden","message":"no"}`)
					default:
						fmt.Fprint(w, c.pods)
					}
				case "/apis/work.karmada.io/v1alpha2/resourcebindings", "/apis/release.argosy.io/v1alpha1/releases",
					"/apis/work.open-cluster-management.io/v1/manifestworks",
					"/apis/apiextensions.k8s.io/v1/customresourcedefinitions":
					if !c.forbidden {
						return false
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusForbidden)
					path := strings.Split(r.URL.Path, "/")
					fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":403,"reason":"Forbidden","message":"no","details":{"group":%q,"kind":%q}}`, path[2], path[4])
				default:
					return false
				}
				return true
			})
			out, _, err := s.Run(verb, "")
			if (c.taint != "" || c.waiting > 0 || strings.HasPrefix(c.pods, "{") || len(c.bindings)+len(c.releases) > 0) &&
				strings.Contains(out, "All checks passed") {
				t.Errorf("it says that all is well:\n%s", out)
			}
			if errors.As(err, new(unwell)) != c.err || err != nil && !c.err {
				t.Errorf("ended with %v", err)
			}
			if c.without != "" && strings.Contains(out, c.without) {
				t.Errorf("it prints %q:\n%s", c.without, out)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
			out, _, err = s.Run(verb, "", "-o", "json")
			var h health
			if wrong := json.Unmarshal([]byte(out), &h); wrong != nil || h.Healthy == c.err || len(h.Clusters) != len(members) ||
				errors.As(err, new(unwell)) != c.err {
				t.Errorf("as JSON: %v, %v, %s", wrong, err, out)
			}
		})
	}
}

func TestStatusWaitsForTheHubAndThenNamesWhatIsMissing(t *testing.T) {
	for args, waited := range map[string]bool{"": false, "--wait=20ms": true} {
		cmd := NewStatus(&hubcli.HubFlags{Kubeconfig: filepath.Join(t.TempDir(), "none")})
		var out, errOut bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&errOut)
		cmd.SetArgs(strings.Fields(args))
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		begin := time.Now()
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "kubeconfig of the hub") {
			t.Errorf("%q ends with %v", args, err)
		}
		if waited != strings.Contains(errOut.String(), "✗ Waiting until all checks pass") ||
			waited && time.Since(begin) < 20*time.Millisecond {
			t.Errorf("%q reports %q", args, errOut.String())
		}
	}
}

func TestStatusShowsFailovers(t *testing.T) {
	var out bytes.Buffer
	h := health{Healthy: true, Failovers: []failover.Move{
		{Kind: "Deployment", Namespace: "shop", Name: "web", From: "eu", Reason: "TaintUntolerated",
			WaitingFor: failover.NothingFits}}}
	if err := h.print(&out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	if want := "shop Deployment web eu <none> TaintUntolerated NothingFits <unknown>"; !strings.Contains(text, want) {
		t.Errorf("status prints %q, without %q", text, want)
	}
	if strings.Contains(text, "All is well") {
		t.Errorf("status says that all is well: %q", text)
	}
}
