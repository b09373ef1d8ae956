package member_test

import (
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/membertest"
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
			own   *member.Own
			reach map[string]bool
		}{
			"the hub": {nil, map[string]bool{"push": true, "pull": false, "other": false}},
			"an agent": {&member.Own{Cluster: "pull", Config: config},
				map[string]bool{"push": false, "pull": true, "other": false}},
		} {
			members := member.New(member.Options{Clusters: c, Secrets: c, Dial: membertest.Dial, Own: tc.own})
			for name, want := range tc.reach {
				m, err := members.Get(name)
				if got := err == nil; got != want || !want && !errors.Is(err, member.ErrElsewhere) {
					t.Errorf("%s reaches cluster %s: %v (%v)", who, name, got, err)
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

// A cluster that moves to Pull mode is left at once.
func TestHubForgetsAMemberInPullMode(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		members, _, c := joined(t, s, member.Options{})
		cluster := s.Cluster("m1")
		if err := c.Get(t.Context(), client.ObjectKey{Name: "m1"}, cluster); err != nil {
			t.Fatal(err)
		}
		cluster.Spec.SyncMode = clusterv1alpha1.Pull
		if err := c.Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		if _, err := members.Refresh(t.Context(), "m1"); !errors.Is(err, member.ErrElsewhere) || members.Known("m1") != nil {
			t.Errorf("the hub still knows the member: %v", err)
		}
	})
}
