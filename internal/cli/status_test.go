package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/member/membertest"
	"github.com/argosy-io/argosy/internal/why"
)

func TestStatusCallsAClusterSlowThatDoesNotAnswerInTime(t *testing.T) {
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

func TestStatusSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	t.Parallel()
	verb := func(hub *hubFlags, _ genericiooptions.IOStreams) *cobra.Command { return newStatus(hub) }
	for name, c := range map[string]struct {
		readyz  string // what fails there
		silent  bool   // one of the clusters
		ready   metav1.ConditionStatus
		stopped bool   // the controllers
		gone    string // one of the hub's definitions
		kept    metav1.ConditionStatus
		taint   string // of the cluster, by key
		waiting int    // pods of it without a node
		pods    string // templates with pods in trouble, as the hub tells of them; "forbidden" where it does not
		want    []string
		err     bool
	}{
		"all is well": {ready: "True", want: []string{"ok    etcd", "ok    controllers", "All checks passed."}},
		"the store is silent": {ready: "True", readyz: "etcd",
			want: []string{"FAIL   etcd", "next: check the disk", "readiness: failing: etcd"}, err: true},
		"a cluster is silent": {ready: "True", silent: true,
			want: []string{`cluster us: cluster "us" is not reachable`, "next: argosy why cluster us", "<none>"}, err: true},
		"a cluster is not ready": {ready: "False",
			want: []string{"cluster eu: not ready for 5m", "ClusterNotReachable: no answer", "next: argosy why cluster eu"},
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
			want: []string{"cluster eu: 1 pod is unschedulable", "next: argosy get pods -A -C eu", "No check failed."}},
		"pods find no node": {ready: "True", waiting: 3,
			want: []string{"cluster eu: 3 pods are unschedulable", "No check failed."}},
		"pods do not run": {ready: "True", pods: `{"workloads": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web", "cluster": "eu", "pods": 3,
			"troubles": [{"pods": 2, "pod": "web-1", "reason": "ImagePullBackOff", "message": "Back-off pulling image \"nope:1\"", "container": "web"}]}], "more": 7}`,
			want: []string{"WORKLOADS WITH UNHEALTHY PODS",
				"shop        Deployment web   eu        2 of 3 pods: ImagePullBackOff: Back-off pulling image \"nope:1\" (container web)", "and 7 more",
				"next: argosy why deployment web -n shop", "No check failed."}},
		"who may not be told of pods": {ready: "True", pods: "forbidden",
			want: []string{"ok    pods", "unknown: this user may not get /argosy/pods", "All checks passed."}},
		"a cluster is not seen yet": {want: []string{"cluster eu: its status has not been collected yet"}, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			members := map[string]*membertest.Server{"eu": membertest.New(t)}
			if c.silent {
				members["us"] = nil
			}
			s := see(t, members)
			for name := range members {
				u := s.api.Object(clusterKind, "", name)
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
				s.api.Put(u)
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
					s.api.Put(d)
				}
			}
			s.api.Behave(func(w http.ResponseWriter, r *http.Request) bool {
				switch r.URL.Path {
				case "/readyz":
					if c.readyz != "" {
						w.WriteHeader(http.StatusInternalServerError)
					}
					for _, check := range []string{"ping", "etcd"} {
						if check == c.readyz {
							fmt.Fprintf(w, "[-]%s failed: reason withheld\n", check)
						} else {
							fmt.Fprintf(w, "[+]%s ok\n", check)
						}
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
				default:
					return false
				}
				return true
			})
			out, _, err := s.run(verb, "")
			if (c.taint != "" || c.waiting > 0 || strings.HasPrefix(c.pods, "{")) && strings.Contains(out, "All checks passed") {
				t.Errorf("it says that all is well:\n%s", out)
			}
			if errors.As(err, new(unwell)) != c.err || err != nil && !c.err {
				t.Errorf("ended with %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
			out, _, err = s.run(verb, "", "-o", "json")
			var h health
			if wrong := json.Unmarshal([]byte(out), &h); wrong != nil || h.Healthy == c.err || len(h.Clusters) != len(members) ||
				errors.As(err, new(unwell)) != c.err {
				t.Errorf("as JSON: %v, %v, %s", wrong, err, out)
			}
		})
	}
}
