package member_test

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/tunnel"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestHubAndAgentActInDifferentClusters(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		push, pull, other := s.Cluster("push"), s.Cluster("pull"), s.Cluster("other")
		pull.Spec.SyncMode, other.Spec.SyncMode = clusterv1alpha1.Pull, clusterv1alpha1.Pull
		c := hub(push, pull, other, s.Secret("push"), s.Secret("pull"), s.Secret("other"))
		config, err := member.Config(push, s.Secret("push"))
		if err != nil {
			t.Fatal(err)
		}
		for who, tc := range map[string]struct {
			own *member.Own
			// reach has the clusters, with the error for those that are not reached.
			reach map[string]error
		}{
			"the hub": {nil,
				map[string]error{"push": nil, "pull": tunnel.ErrNotConnected, "other": tunnel.ErrNotConnected}},
			"an agent": {&member.Own{Cluster: "pull", Config: config},
				map[string]error{"push": member.ErrElsewhere, "pull": nil, "other": member.ErrElsewhere}},
		} {
			members := member.New(member.Options{Clusters: c, Secrets: c, Dial: membertest.Dial, Own: tc.own})
			for name, want := range tc.reach {
				m, err := members.Get(name)
				if !errors.Is(err, want) {
					t.Errorf("%s reaches cluster %s: %v, want %v", who, name, err, want)
				}
				if m != nil {
					if p := m.Probe(t.Context()); p.Code != 200 {
						t.Errorf("%s asks cluster %s: %+v", who, name, p)
					}
				}
				members.Forget(name)
			}
		}
	})
}

// setMode changes the mode of the cluster m1.
func setMode(t *testing.T, c client.Client, mode clusterv1alpha1.ClusterSyncMode) {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "m1"}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Spec.SyncMode = mode
	if err := c.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// Callers need no Refresh to notice a change to Pull mode: the hub must not act over its old connection.
func TestHubForgetsAMemberInPullMode(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		members, _, c := joined(t, s, member.Options{})
		if _, err := members.Get("m1"); err != nil {
			t.Fatal(err)
		}
		setMode(t, c, clusterv1alpha1.Pull)
		if _, err := members.Get("m1"); !errors.Is(err, tunnel.ErrNotConnected) || members.Known("m1") != nil {
			t.Errorf("the hub still knows the member: %v", err)
		}
		setMode(t, c, clusterv1alpha1.Push)
		if _, err := members.Get("m1"); err != nil {
			t.Errorf("after a change back to Push mode: %v", err)
		}
	})
}

func TestAgentStopsWhenItsClusterMovesToPushMode(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		cluster := s.Cluster("m1")
		config, err := member.Config(cluster, s.Secret("m1"))
		if err != nil {
			t.Fatal(err)
		}
		cluster.Spec.SyncMode = clusterv1alpha1.Pull
		c := hub(cluster)
		members := member.New(member.Options{Clusters: c, Dial: membertest.Dial,
			Own: &member.Own{Cluster: "m1", Config: config}})
		if _, err := members.Get("m1"); err != nil {
			t.Fatal(err)
		}
		setMode(t, c, clusterv1alpha1.Push)
		if _, err := members.Get("m1"); !errors.Is(err, member.ErrElsewhere) || members.Known("m1") != nil ||
			!strings.Contains(err.Error(), `cluster "m1" is in Push mode, in which the hub acts: remove this agent`) {
			t.Errorf("the agent still acts: %v", err)
		}
	})
}
