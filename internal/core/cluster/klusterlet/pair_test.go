package klusterlet

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	"github.com/argosy-io/argosy/api/wellknown"
)

func taintNames(c *clusterv1alpha1.Cluster) (all []string) {
	for _, t := range c.Spec.Taints {
		all = append(all, t.Key+":"+string(t.Effect)+"="+t.Value)
	}
	return all
}

func managedTaintNames(mc *clusterv1.ManagedCluster) (all []string) {
	for _, t := range mc.Spec.Taints {
		all = append(all, t.Key+":"+string(t.Effect)+"="+t.Value)
	}
	return all
}

func TestClusterFollowsItsManagedCluster(t *testing.T) {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", Labels: map[string]string{"tier": "gold",
		clusterv1.ClusterSetLabel: "prod", clusterv1.AddonLabelPrefix + "x": "available"}}}
	mc.Spec.HubAcceptsClient = true
	mc.Spec.Taints = []clusterv1.Taint{{Key: "a", Value: "1", Effect: clusterv1.NoSelect},
		{Key: "b", Effect: clusterv1.NoSelectIfNew}, {Key: "a", Value: "2", Effect: clusterv1.NoSelectIfNew},
		{Key: "c", Effect: clusterv1.PreferNoSelect}, {Key: "d", Value: "no label value", Effect: clusterv1.NoSelect},
		{Key: clusterv1.TaintUnreachable, Effect: clusterv1.NoSelect}}
	mc.Status.Version.Kubernetes = "v1.36.0"
	mc.Status.Allocatable = clusterv1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	mc.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: claimPlatform, Value: "aws"},
		{Name: claimRegion, Value: "no label value"}, {Name: claimRegion, Value: "eu-west-1"}, {Name: "other", Value: "x"}}
	c := ClusterFrom(mc, nil, now)
	if !Manages(c) || c.Spec.SyncMode != clusterv1alpha1.Pull || c.Spec.Provider != "aws" ||
		c.Spec.Region != "eu-west-1" ||
		c.Status.KubernetesVersion != "v1.36.0" || c.Status.ResourceSummary.Allocatable.Cpu().String() != "4" {
		t.Errorf("%+v, %+v", c.Spec, c.Status)
	}
	if want := map[string]string{"tier": "gold", clusterv1.ClusterSetLabel: "prod"}; !maps.Equal(c.Labels, want) {
		t.Errorf("the labels are %v", c.Labels)
	}
	if got := taintNames(c); !slices.Equal(got, []string{"a:NoSchedule=1", "b:NoSchedule="}) {
		t.Errorf("the taints are %v", got)
	}

	// Users have labels and taints of their own on the Cluster. They stay when those of the ManagedCluster go.
	c.Labels["mine"] = "yes"
	c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "mine", Effect: corev1.TaintEffectNoExecute},
		corev1.Taint{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule})
	c.Spec.Region = "eu-west-2"
	mc.Labels, mc.Spec.Taints, mc.Status.Allocatable = nil, mc.Spec.Taints[1:2], nil
	next := ClusterFrom(mc, c, now)
	if want := map[string]string{"mine": "yes"}; !maps.Equal(next.Labels, want) {
		t.Errorf("the labels are then %v", next.Labels)
	}
	if got := taintNames(next); !slices.Equal(got, []string{"b:NoSchedule=", "mine:NoExecute=",
		clusterv1alpha1.TaintNotReady + ":NoSchedule="}) || next.Spec.Region != "eu-west-2" {
		t.Errorf("the taints are then %v, the region %s", got, next.Spec.Region)
	}
	if again := ClusterFrom(mc, next, now.Add(1)); !equality.Semantic.DeepEqual(again, next) {
		t.Errorf("it does not settle: %s", cmp.Diff(next, again))
	}
}

func TestReadyOfAClusterFollowsAvailable(t *testing.T) {
	for story, tc := range map[string]struct {
		denied    bool
		available metav1.ConditionStatus
		want      string
	}{
		"available":     {false, metav1.ConditionTrue, "True ClusterReady"},
		"unavailable":   {false, metav1.ConditionFalse, "False ClusterNotReachable"},
		"silent":        {false, metav1.ConditionUnknown, "Unknown ClusterStatusUnknown"},
		"never heard":   {false, "", "Unknown ClusterStatusNeverUpdated"},
		"denied":        {true, metav1.ConditionTrue, "False ClusterNotReady"},
		"denied before": {true, "", "False ClusterNotReady"},
	} {
		mc := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: !tc.denied}}
		if tc.available != "" {
			mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterAvailable, Status: tc.available}}
		}
		ready := meta.FindStatusCondition(ClusterFrom(mc, nil, now).Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		if got := string(ready.Status) + " " + ready.Reason; got != tc.want || ready.Message == "" {
			t.Errorf("%s: %s (%s), want %s", story, got, ready.Message, tc.want)
		}
	}
}

func TestManagedClusterFollowsItsCluster(t *testing.T) {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", Labels: map[string]string{"tier": "gold",
		clusterv1.ClusterSetLabel: "prod", clusterv1.AddonLabelPrefix + "x": "available"}}}
	c.Spec = clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, ID: "id", APIEndpoint: "https://eu:6443",
		Provider: "aws", Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule},
			{Key: "b", Value: "1", Effect: corev1.TaintEffectNoExecute}, {Key: "c", Effect: corev1.TaintEffectPreferNoSchedule},
			{Key: clusterv1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoExecute}}}
	c.Status.KubernetesVersion = "v1.36.0"
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}}
	mc := ManagedFrom(c, nil, now)
	if !Derived(mc) || !mc.Spec.HubAcceptsClient || mc.Spec.ManagedClusterClientConfigs[0].URL != "https://eu:6443" ||
		!maps.Equal(mc.Labels, map[string]string{"tier": "gold"}) || len(mc.Status.ClusterClaims) != 3 {
		t.Errorf("%+v", mc)
	}
	if got := managedTaintNames(mc); !slices.Equal(got, []string{"a:NoSelectIfNew=", "b:NoSelect=1",
		"c:PreferNoSelect="}) {
		t.Errorf("the taints are %v", got)
	}
	if !meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ClusterAvailable) ||
		!meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.Joined) {
		t.Errorf("the conditions are %+v", mc.Status.Conditions)
	}

	mc.Labels[clusterv1.ClusterSetLabel] = "default" // an administrator's
	mc.Spec.Taints = append(mc.Spec.Taints, clusterv1.Taint{Key: "mine", Effect: clusterv1.NoSelect})
	c.Spec.Taints, c.Spec.APIEndpoint = []corev1.Taint{{Key: "b", Value: "2", Effect: corev1.TaintEffectNoExecute}}, ""
	c.Status.Conditions[0].Status = metav1.ConditionUnknown
	next := ManagedFrom(c, mc, now)
	if got := managedTaintNames(next); !slices.Equal(got, []string{"mine:NoSelect=", "b:NoSelect=2",
		clusterv1.TaintUnreachable + ":NoSelect="}) {
		t.Errorf("the taints are then %v", got)
	}
	if next.Labels[clusterv1.ClusterSetLabel] != "default" || len(next.Spec.ManagedClusterClientConfigs) > 0 ||
		!meta.IsStatusConditionPresentAndEqual(next.Status.Conditions, clusterv1.ClusterAvailable, metav1.ConditionUnknown) {
		t.Errorf("it is then %+v", next)
	}
	if again := ManagedFrom(c, next, now.Add(1)); !equality.Semantic.DeepEqual(again, next) {
		t.Errorf("it does not settle: %s", cmp.Diff(next, again))
	}
}

func TestKlusterletsWriteOnlyTheirAddresses(t *testing.T) {
	stored := func() *clusterv1.ManagedCluster {
		mc := managed(60)
		mc.Labels = map[string]string{clusterv1.ClusterSetLabel: clusterv1.DefaultSet}
		return mc
	}
	for story, tc := range map[string]struct {
		change  func(*clusterv1.ManagedCluster)
		refused bool
	}{
		"its address": {func(mc *clusterv1.ManagedCluster) {
			mc.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://eu"}}
		}, false},
		"an annotation of its own": {func(mc *clusterv1.ManagedCluster) {
			mc.Annotations = map[string]string{agentPrefix + "x": "y"}
		}, false},
		"an annotation of the hub": {func(mc *clusterv1.ManagedCluster) {
			mc.Annotations = map[string]string{wellknown.ForceRemovalAnnotation: "true"}
		}, true},
		"a label":       {func(mc *clusterv1.ManagedCluster) { mc.Labels["tier"] = "gold" }, true},
		"another set":   {func(mc *clusterv1.ManagedCluster) { mc.Labels[clusterv1.ClusterSetLabel] = "prod" }, true},
		"a taint":       {func(mc *clusterv1.ManagedCluster) { mc.Spec.Taints = []clusterv1.Taint{{Key: "a"}} }, true},
		"acceptance":    {func(mc *clusterv1.ManagedCluster) { mc.Spec.HubAcceptsClient = !mc.Spec.HubAcceptsClient }, true},
		"a finalizer":   {func(mc *clusterv1.ManagedCluster) { mc.Finalizers = []string{"a/b"} }, true},
		"another lease": {func(mc *clusterv1.ManagedCluster) { mc.Spec.LeaseDurationSeconds = 1 }, true},
	} {
		is := stored()
		tc.change(is)
		if why := CheckChange(is, stored()); strings.Contains(why, "administrator") != tc.refused {
			t.Errorf("a change of %s: %q", story, why)
		}
		if story == "another lease" || story == "acceptance" {
			continue // a new one has an interval, and others check who accepts it
		}
		if why := CheckChange(is, nil); (why != "") != tc.refused {
			t.Errorf("a new one with %s: %q", story, why)
		}
	}
	for user, want := range map[string]bool{
		"system:serviceaccount:open-cluster-management:agent-registration-bootstrap": true,
		"system:serviceaccount:shop:agent-registration-bootstrap":                    false, "admin": false} {
		if Registers(user, nil) != want {
			t.Errorf("%s registers klusterlets: %t", user, !want)
		}
	}
	if !Registers("system:bootstrap:ocmhub", []string{TokenGroup}) {
		t.Error("a bootstrap token does not register klusterlets")
	}
}

func TestManifestWorksAreAppliedByOne(t *testing.T) {
	push, pulled := &clusterv1alpha1.Cluster{}, ClusterFrom(&clusterv1.ManagedCluster{}, nil, now)
	own, written := &clusterv1.ManagedCluster{}, ManagedFrom(push, nil, now)
	for story, tc := range map[string]struct {
		c    *clusterv1alpha1.Cluster
		mc   *clusterv1.ManagedCluster
		want bool
	}{
		"no cluster":                             {nil, nil, false},
		"a klusterlet that is not accepted":      {nil, own, true},
		"a ManagedCluster whose Cluster left":    {nil, written, false},
		"a Cluster of Karmada":                   {push, written, false},
		"that, beside one that was not accepted": {push, own, false},
		"a Cluster with a klusterlet":            {pulled, own, true},
		"that, without its ManagedCluster":       {pulled, nil, true},
	} {
		if got := AppliesWorks(tc.c, tc.mc); got != tc.want {
			t.Errorf("%s: a klusterlet applies its ManifestWorks: %t", story, got)
		}
	}
}
