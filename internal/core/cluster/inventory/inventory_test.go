package inventory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
)

var (
	at    = Access{Server: "https://hub:7443/eu", Authorities: []byte("PEM")}
	start = time.Date(2026, 12, 3, 12, 0, 0, 0, time.UTC)
)

func cluster(ready *metav1.Condition) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", UID: "1",
		Labels: map[string]string{"env": "prod"}}}
	c.Status.KubernetesVersion = "v1.36.3"
	if ready != nil {
		ready.Type = clusterv1alpha1.ClusterConditionReady
		c.Status.Conditions = []metav1.Condition{*ready}
	}
	return c
}

func claims(pairs ...string) *clusterv1.ManagedCluster {
	mc := &clusterv1.ManagedCluster{}
	for i := 0; i < len(pairs); i += 2 {
		mc.Status.ClusterClaims = append(mc.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: pairs[i],
			Value: pairs[i+1]})
	}
	return mc
}

// The rows of section 1 of sig-multicluster.md that a cluster manager fills.
func TestProfileOfACluster(t *testing.T) {
	p := Profile("fleet", cluster(&metav1.Condition{Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "ok"}),
		claims("region.open-cluster-management.io", "eu-1", "id.k8s.io", "abc", "id.k8s.io", "twice", "empty", "", "long",
			strings.Repeat("x", valueLimit+1), "wide", strings.Repeat("é", valueLimit)), nil, at, start)
	if p.Namespace != "fleet" || p.Name != "eu" || p.Spec.ClusterManager.Name != "argosy" ||
		p.Labels["x-k8s.io/cluster-manager"] != "argosy" || p.Labels["env"] != "prod" ||
		p.Status.Version.Kubernetes != "v1.36.3" || metav1.GetControllerOf(p).UID != "1" {
		t.Errorf("the ClusterProfile is %+v", p)
	}
	var properties []string
	for _, property := range p.Status.Properties {
		properties = append(properties, property.Name+"="+property.Value)
	}
	if got := strings.Join(properties, " "); got != "id.k8s.io=abc region.open-cluster-management.io=eu-1 wide="+
		strings.Repeat("é", valueLimit) {
		t.Errorf("the properties are %q", got)
	}
	provider := p.Status.AccessProviders[0]
	if provider.Name != "argosy" || string(provider.Cluster.CertificateAuthorityData) != "PEM" ||
		provider.Cluster.Server != "https://hub:7443/eu" ||
		fmt.Sprint(provider.Cluster.Extensions[0].Name, " ", string(provider.Cluster.Extensions[0].Extension.Raw)) !=
			`client.authentication.k8s.io/exec {"cluster":"eu"}` {
		t.Errorf("the access provider is %+v", provider)
	}
}

func TestConditionsOfAProfile(t *testing.T) {
	leaving := cluster(&metav1.Condition{Status: metav1.ConditionTrue, Reason: "ClusterReady"})
	leaving.DeletionTimestamp = &metav1.Time{Time: start}
	for story, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster
		want    string
	}{
		"a new cluster": {cluster(nil), "Unknown ClusterStatusNeverUpdated, True Registered"},
		"a ready one": {cluster(&metav1.Condition{Status: metav1.ConditionTrue, Reason: "ClusterReady"}),
			"True ClusterReady, True Registered"},
		"a lost one": {cluster(&metav1.Condition{Status: metav1.ConditionFalse, Reason: "ClusterNotReachable"}),
			"False ClusterNotReachable, True Registered"},
		"a condition without a reason, as Karmada permits": {cluster(&metav1.Condition{Status: metav1.ConditionTrue}),
			"True True, True Registered"},
		"one that leaves": {leaving, "True ClusterReady, False Leaving"},
	} {
		p := Profile("fleet", tc.cluster, nil, nil, at, start)
		var texts []string
		for _, kind := range []string{"ControlPlaneHealthy", "Joined"} {
			c := meta.FindStatusCondition(p.Status.Conditions, kind)
			texts = append(texts, fmt.Sprint(c.Status, " ", c.Reason))
		}
		if got := strings.Join(texts, ", "); got != tc.want {
			t.Errorf("%s: %q, want %q", story, got, tc.want)
		}
	}
}

// A cluster that stays as it is causes no write, and what changes keeps the times of the rest.
func TestProfileOfAnUnchangedClusterStaysTheSame(t *testing.T) {
	ready := &metav1.Condition{Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "ok"}
	mc := claims("a", "1", "b", "2")
	was := Profile("fleet", cluster(ready), mc, nil, at, start)
	if is := Profile("fleet", cluster(ready), mc, was, at, start.Add(time.Hour)); !equality.Semantic.DeepEqual(was, is) {
		t.Errorf("it was %+v, and is %+v", was, is)
	}
	if is := Profile("fleet", cluster(ready), nil, was, at, start.Add(time.Hour)); !equality.Semantic.DeepEqual(was, is) {
		t.Errorf("without a ManagedCluster, it is %+v", is)
	}
	is := Profile("fleet", cluster(&metav1.Condition{Status: metav1.ConditionUnknown, Reason: "Silent"}),
		claims("a", "1", "b", "3"), was, at, start.Add(time.Hour))
	for got, want := range map[time.Time]time.Time{
		is.Status.Properties[0].LastObservedTime.UTC():   start,
		is.Status.Properties[1].LastObservedTime.UTC():   start.Add(time.Hour),
		is.Status.Conditions[1].LastTransitionTime.UTC(): start,
	} {
		if !got.Equal(want) {
			t.Errorf("a time is %s, want %s", got, want)
		}
	}
	// What a user added does not stay.
	was.Labels["mine"], was.Status.CredentialProviders = "x", []multiclusterv1alpha1.AccessProvider{{Name: "other"}}
	if is := Profile("fleet", cluster(ready), mc, was, at, start); is.Labels["mine"] != "" ||
		len(is.Status.CredentialProviders) > 0 {
		t.Errorf("a change of a user stays: %+v", is)
	}
}
