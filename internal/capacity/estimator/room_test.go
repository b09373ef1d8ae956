package estimator

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// cluster serves Deployments.
func cluster(name string, mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{}
	c.Name, c.Spec.SyncMode = name, mode
	c.Status.APIEnablements = controllertest.Serves(controllertest.Deployment)
	return c
}

func TestOnlyCandidateClustersAreQueried(t *testing.T) {
	s := schedule.NewSnapshot([]*clusterv1alpha1.Cluster{
		cluster("a", clusterv1alpha1.Push), cluster("b", clusterv1alpha1.Pull), cluster("c", clusterv1alpha1.Push), {}})
	only := func(names ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	for name, c := range map[string]struct {
		placement *policyv1alpha1.Placement
		skipPull  bool
		want      string
	}{
		"no placement yet":        {nil, false, ""},
		"all that serve the kind": {&policyv1alpha1.Placement{}, false, "a b c"},
		"but those that pull":     {&policyv1alpha1.Placement{}, true, "a c"},
		"by the affinity": {&policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{
			ClusterNames: []string{"b", "c"}}}, false, "b c"},
		"by any of the terms, each once": {&policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "first", ClusterAffinity: only("c", "b")},
			{AffinityName: "second", ClusterAffinity: only("a", "b")}}}, false, "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			b := binding()
			b.BindingSpec().Placement = c.placement
			o := options(nil)
			o.SkipPull = c.skipPull
			got := connect(t, o).candidates(b, s)
			if slices.Sort(got); strings.Join(got, " ") != c.want {
				t.Errorf("asked are %q, want %q", got, c.want)
			}
			if b.BindingStatus().SchedulerObservedAffinityName != "" {
				t.Errorf("the binding was changed")
			}
		})
	}
}

func TestFleetUsesEstimators(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		peers := map[string]*peer{
			"m1": newPeerAt(t, membertest.Listen("192.0.2.1:10352"), later),
			"m2": newPeerAt(t, membertest.Listen("192.0.2.2:10352"), earlier),
		}
		h := controllertest.New(t)
		h.Join("m1", controllertest.Deployment)
		h.Join("m2", controllertest.Deployment)
		e := connect(t, options(peers))
		e.dial = append(e.dial, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return membertest.Dial(ctx, "tcp", address)
		}))
		var fleet *capacity.Fleet
		h.Run(func(ctx context.Context, mgr ctrl.Manager) (err error) {
			if fleet, err = capacity.NewFleet(ctx, mgr.GetCache()); err != nil {
				return err
			}
			e.Join(ctx, fleet)
			return nil
		})
		if err := fleet.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		placed := func() string {
			b := binding()
			b.BindingSpec().Replicas = 8
			b.BindingSpec().Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
				ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
				WeightPreference: &policyv1alpha1.ClusterPreferences{
					DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas}}}
			result, err := fleet.Schedule(b, fleet.Snapshot())
			if err != nil {
				return err.Error()
			}
			var out []string
			for _, c := range result.Clusters {
				out = append(out, fmt.Sprintf("%s:%d", c.Name, c.Replicas))
			}
			return strings.Join(out, " ")
		}
		peers["m1"].setAnswer(always(30))
		peers["m2"].setAnswer(always(10))
		if got := placed(); got != "m1:6 m2:2" {
			t.Errorf("by room for 30 and 10, 8 go to %s", got)
		}
		peers["m2"].setAnswer(always(0))
		if got := placed(); got != "m1:8" {
			t.Errorf("by room for 30 and none, 8 go to %s", got)
		}
		// Without an answer, what the fleet knows of m2 counts, which is that it has all the room that is asked for.
		peers["m1"].setAnswer(always(24))
		peers["m2"].setAnswer(fails(codes.Unavailable))
		if got := placed(); got != "m1:6 m2:2" {
			t.Errorf("by room for 24 and an unknown, 8 go to %s", got)
		}

		h.Gone(cluster("m2", clusterv1alpha1.Push))
		h.Eventually("m2 is asked no more", func() string {
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.remotes["m2"] != nil {
				return "there is a connection still"
			}
			return ""
		})
		if got := placed(); got != "m1:8" {
			t.Errorf("in the cluster that is left are %s", got)
		}
	})
}
