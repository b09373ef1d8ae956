package why_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// paused is a cluster that is lost with too many others.
func paused(c *clusterv1alpha1.Cluster) {
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionFailoverPaused, Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonTooManyClustersLost, Message: "3 of 4 clusters were lost"})
}

// remedy returns a Remedy that takes a cluster out of traffic.
func remedy(name, cluster string) remedyv1alpha1.Remedy {
	return remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: remedyv1alpha1.RemedySpec{
		ClusterAffinity: &remedyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}},
		Actions:         []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl}}}
}

func TestMemberStories(t *testing.T) {
	for _, s := range []struct {
		name       string
		member     *clusterv1alpha1.Cluster
		given      func(c *clusterv1alpha1.Cluster) []workv1alpha2.Binding
		orphans    []string
		want, next string
	}{
		{name: "all is well", member: cluster("m1", cpus("4")),
			given: func(c *clusterv1alpha1.Cluster) []workv1alpha2.Binding {
				return []workv1alpha2.Binding{placedBinding(t, c, "web", ""),
					placedBinding(t, c, "api", "placement: {clusterAffinity: {clusterNames: [m2]}}")}
			}},
		{name: "silent", member: cluster("m1", silent, tainted("cluster.karmada.io/not-ready", corev1.TaintEffectNoSchedule)),
			want: "the cluster is not ready since 2026-01-01T00:00:00Z: ClusterNotReachable",
			next: "check that its API server is running",
			given: func(c *clusterv1alpha1.Cluster) []workv1alpha2.Binding {
				return []workv1alpha2.Binding{placedBinding(t, c, "web", "")}
			}},
		{name: "credentials refused", member: cluster("m1", func(c *clusterv1alpha1.Cluster) {
			meta.SetStatusCondition(&c.Status.Conditions, membership.Seen(membership.Probe{Code: 401}))
			c.Status.Conditions[1].LastTransitionTime = metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		}), want: "cluster is reachable but rejects the credentials", next: "fix what the message names",
			given: func(*clusterv1alpha1.Cluster) []workv1alpha2.Binding { return nil }},
		{name: "left by an earlier membership", member: cluster("m1"),
			orphans: []string{"Service shop/web", "Deployment shop/web"},
			want:    "2 objects of this hub without a Work, such as Deployment shop/web, Service shop/web",
			next:    "`argosy orphans -C m1` lists them",
			given:   func(*clusterv1alpha1.Cluster) []workv1alpha2.Binding { return nil }},
		{name: "tainted", member: cluster("m1", tainted("maintenance", corev1.TaintEffectNoSchedule)),
			want: "the scheduler excludes the cluster for 2 templates, such as Deployment.apps shop/api, Deployment.apps shop/web: it had untolerated taint", next: "tolerate {maintenance:NoSchedule}",
			given: func(c *clusterv1alpha1.Cluster) []workv1alpha2.Binding {
				there := placedBinding(t, c, "db", "placement: {clusterTolerations: [{key: maintenance, operator: Exists}]}")
				return []workv1alpha2.Binding{placedBinding(t, c, "web", ""), placedBinding(t, c, "api", ""), there}
			}},
		{name: "cordoned", member: cluster("m1", tainted("cluster.karmada.io/unschedulable", corev1.TaintEffectNoSchedule)),
			want:  "new workloads avoid the cluster: it has the taint cluster.karmada.io/unschedulable:NoSchedule",
			next:  "remove the taint",
			given: func(*clusterv1alpha1.Cluster) []workv1alpha2.Binding { return nil }},
		{name: "drained", member: cluster("m1", tainted("maintenance", corev1.TaintEffectNoExecute)),
			want:  "those that do not tolerate the taint leave it: it has the taint maintenance:NoExecute",
			next:  "remove the taint",
			given: func(*clusterv1alpha1.Cluster) []workv1alpha2.Binding { return nil }},
		{name: "with a brake",
			member: cluster("m1", func(c *clusterv1alpha1.Cluster) { c.Status.Brakes = []string{"kube-system"} }),
			want:   "brake on m1: the hub writes and deletes nothing", next: "`argosy brake off -C m1`",
			given: func(*clusterv1alpha1.Cluster) []workv1alpha2.Binding { return nil }},
		{name: "with a brake on a namespace",
			member: cluster("m1", func(c *clusterv1alpha1.Cluster) { c.Status.Brakes = []string{"shop"} }),
			want:   "brake on namespace shop of m1", next: "`argosy brake off -C m1 -n shop`",
			given: func(*clusterv1alpha1.Cluster) []workv1alpha2.Binding { return nil }},
		{name: "out of traffic", member: cluster("m1", func(c *clusterv1alpha1.Cluster) {
			c.Status.RemedyActions = []string{"TrafficControl"}
		}), want: "the cluster has the action TrafficControl of Remedy here, upkeep: MultiClusterServices",
			next: "change or delete the Remedy", given: func(*clusterv1alpha1.Cluster) []workv1alpha2.Binding { return nil }},
		{name: "lost with many others", member: cluster("m1", paused), want: "failover is paused: 3 of 4 clusters were lost",
			given: func(*clusterv1alpha1.Cluster) []workv1alpha2.Binding { return nil }},
		{name: "refused, sick and leaving", member: cluster("m1"),
			want: "1 template not applied, such as Deployment.apps shop/refused", next: "`argosy why deployment.apps refused -n shop` shows the member's response to the first",
			given: func(c *clusterv1alpha1.Cluster) []workv1alpha2.Binding {
				refused, sick, leaving := placedBinding(t, c, "refused", ""), placedBinding(t, c, "sick", ""), placedBinding(t, c,
					"leaving", "")
				refused.BindingStatus().AggregatedStatus[0].Applied,
					refused.BindingStatus().AggregatedStatus[0].AppliedMessage = false, "admission webhook denied it"
				sick.BindingStatus().AggregatedStatus[0].Health = workv1alpha1.ResourceUnhealthy
				leaving.BindingSpec().Clusters = nil
				leaving.BindingSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1",
					Producer: "TaintManager", Reason: "TaintUntolerated"}}
				return []workv1alpha2.Binding{refused, sick, leaving, placedBinding(t, c, "well", "")}
			}},
	} {
		t.Run(s.name, func(t *testing.T) {
			f := why.MemberFacts{Cluster: s.member, Bindings: s.given(s.member), Orphans: s.orphans,
				Remedies: []remedyv1alpha1.Remedy{remedy("upkeep", "m1"), remedy("here", "m1"), remedy("there", "m2")}}
			answer := why.ExplainMember(f)
			switch {
			case s.want == "" && len(answer.Findings) > 0:
				t.Errorf("all is well, and it finds %+v", answer.Findings)
			case s.want != "" && (len(answer.Findings) == 0 || !strings.Contains(answer.Findings[0].What, s.want) ||
				!strings.Contains(answer.Findings[0].Next, s.next)):
				t.Errorf("it finds %+v, want %s → %s", answer.Findings, s.want, s.next)
			}
			for _, f := range answer.Findings {
				checkNext(t, f.Next)
			}
			dice := rand.New(rand.NewPCG(1, 2))
			for range 5 {
				o := f
				o.Bindings, o.Orphans = shuffled(dice, f.Bindings), shuffled(dice, f.Orphans)
				o.Remedies = shuffled(dice, f.Remedies)
				if a, b := asJSON(t, answer), asJSON(t, why.ExplainMember(o)); cmp.Diff(a, b) != "" {
					t.Fatalf("in another order it says (-first +then):\n%s", cmp.Diff(a, b))
				}
			}
			var text bytes.Buffer
			if err := answer.Write(&text); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "members", strings.ReplaceAll(strings.ReplaceAll(s.name, ",", ""), " ", "-")+
				".txt"), text.String())
		})
	}
}

// placedBinding returns the binding of a Deployment of that name, placed in a fleet of one cluster if it may be, and
// well there.
func placedBinding(t *testing.T, c *clusterv1alpha1.Cluster, name, spec string) workv1alpha2.Binding {
	h := start(t, strings.NewReplacer("NAME", name, "NS", "shop").Replace(nameless), c)
	p := h.policy("shop", name, "{"+strings.TrimSuffix(
		"resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: "+name+"}], "+spec, ", ")+"}")
	h.claim(p)
	h.schedule()
	for _, target := range h.Binding.BindingSpec().Clusters {
		h.Binding.BindingStatus().AggregatedStatus = append(h.Binding.BindingStatus().AggregatedStatus,
			workv1alpha2.AggregatedStatusItem{ClusterName: target.Name, Applied: true, Health: workv1alpha1.ResourceHealthy})
	}
	return h.Binding
}

// Texts of members must not reach a terminal with escape sequences, or as lines of their own.
func TestAnswersHaveNoControlCharactersOfMembers(t *testing.T) {
	const evil = "denied \x1b[2J\u009b31m\x07\r\nfake\tHealthy"
	c := cluster("m1")
	b := placedBinding(t, c, "web", "")
	for _, message := range []func(){
		func() {
			item := &b.BindingStatus().AggregatedStatus[0]
			item.Applied, item.AppliedMessage = false, evil
		},
		func() { c.Status.Conditions[0].Message = evil },
	} {
		message()
		var out bytes.Buffer
		f := why.MemberFacts{Cluster: c, Bindings: []workv1alpha2.Binding{b}}
		if err := why.ExplainMember(f).Write(&out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "denied") || strings.ContainsAny(out.String(), "\x1b\u009b\x07\r\t") {
			t.Errorf("it writes %q", out.String())
		}
	}
	var out bytes.Buffer
	err := why.Answer{Findings: []why.Finding{{What: evil}}, Clusters: []why.Cluster{{Name: "m1", Why: evil}}, Only: "m1",
		Warnings: []why.Warning{{Message: evil}}}.Write(&out)
	if err != nil || strings.ContainsAny(out.String(), "\x1b\u009b\x07\r\t") ||
		!strings.Contains(out.String(), "denied [2J 31m fake Healthy") {
		t.Errorf("it writes %q, %v", out.String(), err)
	}
}

// A user may create events in a namespace, and a member answers what it likes: neither adds a line to the answer.
func TestForgedTextsAddNoLines(t *testing.T) {
	const forged = "denied \x1b[2J\u009b31m\x07\r\n✗ forged\n  → forged\tremedy"
	type answer interface{ Write(io.Writer) error }
	placed := func(change func(h *hub)) func() (answer, []why.Finding) {
		return func() (answer, []why.Finding) {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+"}"))
			change(h)
			a := explain(h.Facts)
			for _, w := range a.Warnings {
				a.Findings = append(a.Findings, why.Finding{What: w.Object + w.Reason + w.Message})
			}
			for _, c := range a.Clusters {
				if a, known := a.ForCluster(c.Name); known && c.State.Bad() {
					return a, a.Findings
				}
			}
			return a, a.Findings
		}
	}
	for name, given := range map[string]func() (answer, []why.Finding){
		"an event": placed(func(h *hub) {
			h.Warnings = []why.Warning{{Object: "Deployment shop/web", Reason: "Failed", Message: forged},
				{Object: forged, Reason: "Failed", Message: "m"}, {Object: "Deployment shop/web", Reason: forged, Message: "m"}}
		}),
		"an event without a binding": func() (answer, []why.Finding) {
			h := start(t, deployment, fleet()...)
			propagate.Claim(h.Template, h.policy("shop", "web", "{"+ofDeployments+"}"))
			h.Warnings = []why.Warning{{Object: "Deployment shop/web", Reason: workv1alpha2.EventApplyPolicyFailed,
				Message: forged}}
			a := explain(h.Facts)
			return a, a.Findings
		},
		"a member that refuses": placed(func(h *hub) { h.refuses("m1", workv1alpha1.ReasonRejected, forged) }),
		"a cluster that is not ready": placed(func(h *hub) {
			silent(h.Clusters[0])
			membership.Readiness(h.Clusters[0]).Message = forged
		}),
		"the cluster itself": func() (answer, []why.Finding) {
			c := cluster("m1", silent)
			membership.Readiness(c).Message = forged
			a := why.ExplainMember(why.MemberFacts{Cluster: c})
			return a, a.Findings
		},
		"a ManifestWork": func() (answer, []why.Finding) {
			mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "m1", Name: "shop", Generation: 1,
				DeletionTimestamp: &metav1.Time{}}}
			mw.Status.Conditions = []metav1.Condition{{Type: ocmv1.Deleting, Status: metav1.ConditionTrue, Message: forged}}
			a := why.ExplainManifestWork(why.ManifestWorkFacts{ManifestWork: mw})
			return a, a.Findings
		},
	} {
		a, findings := given()
		var out bytes.Buffer
		if err := a.Write(&out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "denied") || strings.ContainsAny(out.String(), "\x1b\u009b\x07\r\t") ||
			strings.Contains(out.String(), "\n✗ forged") || strings.Contains(out.String(), "\n  → forged") {
			t.Errorf("%s: it writes %q", name, out.String())
		}
		for _, f := range findings {
			if strings.ContainsAny(f.What+f.Next, "\x1b\u009b\x07\r\n\t") {
				t.Errorf("%s: the finding is %q", name, f)
			}
		}
	}
}
