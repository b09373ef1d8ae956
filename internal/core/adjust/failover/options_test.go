package failover

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// ofCluster is spec.failover of a policy that sets what happens when a cluster is lost.
func ofCluster(mode policyv1alpha1.PurgeMode) *policyv1alpha1.FailoverBehavior {
	return &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: mode}}
}

// tolerating returns a placement by room that tolerates lost clusters for some seconds; nil is for ever.
func tolerating(seconds *int64) policyv1alpha1.Placement {
	p := byRoom()
	for _, key := range []string{clusterv1alpha1.TaintNotReady, clusterv1alpha1.TaintUnreachable} {
		p.ClusterTolerations = append(p.ClusterTolerations, corev1.Toleration{Key: key,
			Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: seconds})
	}
	return p
}

// The hub moves workloads out of a lost cluster if neither its settings nor the policy nor the workload forbid it.
func TestLostClusterIsLeftByPolicySettingAndWorkload(t *testing.T) {
	settings := map[string]func(*Options){
		"default": func(*Options) {},
		"All":     func(o *Options) { o.AllBindings = true },
		"Policy":  func(o *Options) { o.AllBindings = false },
		"Off":     func(o *Options) { o.Off = true },
	}
	policies := map[string]struct {
		placement policyv1alpha1.Placement
		failover  *policyv1alpha1.FailoverBehavior
		// tolerates is the time for which the policy tolerates a lost cluster; keeps is true for the switch.
		tolerates time.Duration
		keeps     bool
	}{
		"no tolerations, no failover": {byRoom(), nil, 300 * time.Second, false},
		"its own tolerations":         {tolerating(new(int64(60))), nil, 60 * time.Second, false},
		"only application failover": {byRoom(), &policyv1alpha1.FailoverBehavior{
			Application: &policyv1alpha1.ApplicationFailoverBehavior{}}, 300 * time.Second, false},
		"failover.cluster":        {byRoom(), ofCluster(policyv1alpha1.PurgeModeGracefully), 300 * time.Second, false},
		"failover.cluster, empty": {byRoom(), ofCluster(""), 300 * time.Second, false},
		"purgeMode Directly":      {byRoom(), ofCluster(policyv1alpha1.PurgeModeDirectly), 300 * time.Second, true},
	}
	workloads := map[string]struct {
		template, status string
		want             string // once the cluster is no longer tolerated
	}{
		"plain": {"{kind: Deployment}", "{}", "web -a: b=1 c=1"},
		"unique-ordinals": { // core/workload/fleet gives the replacements other ordinals
			`{kind: StatefulSet, metadata: {annotations: {argosy.io/unique-ordinals: "true"}}}`, "{}", "web -a: b=1 c=1"},
		"volumes":  {"{kind: StatefulSet, spec: {volumeClaimTemplates: [{}]}}", "{}", "web !a PersistentVolumes"},
		"paused":   {"{kind: Deployment, spec: {paused: true}}", "{}", "web !a TemplatePaused"},
		"finished": {"{kind: Job}", complete, ""},
	}
	for setting, set := range settings {
		for policy, p := range policies {
			for workload, x := range workloads {
				t.Run(fmt.Sprintf("%s/%s/%s", setting, policy, workload), func(t *testing.T) {
					w := newWorld(t, "a", "b", "c")
					set(&w.in.Options)
					template := &unstructured.Unstructured{}
					if err := yaml.Unmarshal([]byte(x.template), &template.Object); err != nil {
						t.Fatal(err)
					}
					w.in.Facts = func(b workv1alpha2.Binding) (Facts, error) { return FactsOf(b, template, nil), nil }
					b := w.deployment("web", "a=2", p.placement)
					b.Spec.Failover = p.failover
					if template.GetKind() == "Job" {
						b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "Job"
					}
					w.reportsStatus(b, "a", x.status)
					w.lose("a")
					before, after := "web !a Tolerated", x.want
					moves := setting != "Off" && (setting != "Policy" || p.failover != nil && p.failover.Cluster != nil)
					switch {
					case !moves || x.want == "":
						before, after = "", ""
					case p.keeps:
						after = "web !a OldCopyNotDeleted"
					}
					w.pass(p.tolerates - time.Second)
					w.plans(before)
					w.pass(time.Second)
					w.plans(after)
				})
			}
		}
	}
}

func TestWhatNeverRunsTwiceStaysInALostCluster(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.deployment("web", "a=2", byRoom()).Spec.Failover = ofCluster(policyv1alpha1.PurgeModeDirectly)
	w.deployment("tolerant", "a=2", tolerating(nil)).Spec.Failover = nil
	w.lose("a")
	w.pass(24 * time.Hour)
	w.execute(w.plans("web !a OldCopyNotDeleted"))
	w.back("a")
	w.execute(w.plans(""))
	if got := targetsText(w.bindings[0].Spec.Clusters); got != "a=2" {
		t.Errorf("it is in %s, want a=2", got)
	}
}

// What a policy does not place follows others, or stays.
func TestOnlyWhatAPolicyPlacesLeavesALostCluster(t *testing.T) {
	for name, change := range map[string]func(*workv1alpha2.ResourceBinding){
		"a dependency":                func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil },
		"its policy was deleted":      func(b *workv1alpha2.ResourceBinding) { b.Labels = nil },
		"another scheduler":           func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "other" },
		"its scheduling is suspended": func(b *workv1alpha2.ResourceBinding) { suspend(b).Scheduling = new(true) },
		"without clusters":            func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil },
		"it is being deleted": func(b *workv1alpha2.ResourceBinding) {
			b.DeletionTimestamp = b.Status.LastScheduledTime
		},
	} {
		w := newWorld(t, "a", "b")
		b := w.deployment("web", "a=2", byRoom())
		b.Spec.Failover = nil
		change(b)
		w.lose("a")
		w.pass(time.Hour)
		if got := planText(w.plan()); got != "" {
			t.Errorf("%s: planned %q, want nothing", name, got)
		}
	}
}

func suspend(b *workv1alpha2.ResourceBinding) *workv1alpha2.Suspension {
	b.Spec.Suspension = &workv1alpha2.Suspension{}
	return b.Spec.Suspension
}

// The policy asks for a copy in every cluster: no user has to act when one of them is lost.
func TestCopyThatRunsEverywhereWaitsForNobody(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	pinned := duplicated()
	pinned.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}
	for _, b := range []*workv1alpha2.ResourceBinding{w.configMap("config", "a b c", duplicated()),
		w.deployment("web", "a=2 b=2 c=2", duplicated()), w.deployment("scaled-to-zero", "a=0", byRoom()),
		w.configMap("pinned", "a", pinned)} {
		b.Spec.Failover, b.Labels = nil, map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: b.Name}
	}
	w.lose("a")
	w.pass(time.Hour)
	for _, waiting := range w.plan().Waiting {
		if needs := waiting.Code.NeedsUser(); needs != (waiting.Binding.Name == "pinned") {
			t.Errorf("%s waits for %s, for which a user has to act: %v", waiting.Binding.Name, waiting.Code, needs)
		}
	}
}

func TestComponentsInALostClusterWaitForAUser(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	b := w.deployment("web", "a b", equally())
	b.Spec.Components = []workv1alpha2.Component{{Name: "manager", Replicas: 1}, {Name: "worker", Replicas: 2}}
	for i := range b.Spec.Clusters {
		b.Spec.Clusters[i].Components = []workv1alpha2.TargetComponent{{Name: "manager", Replicas: 1},
			{Name: "worker", Replicas: 2}}
	}
	w.lose("a")
	w.pass(time.Hour)
	waiting := w.plan().Waiting
	if len(waiting) != 1 || waiting[0].Code != NothingFits {
		t.Errorf("it waits for %+v", waiting)
	}
}

// A cluster that another hub has taken over runs its workloads. So may one whose credentials were deleted on the hub.
func TestOnlyClustersThatAreLostAreLeft(t *testing.T) {
	for reason, want := range map[string]string{
		clusterv1alpha1.ReasonClusterNotReachable:    "web -a: b=2",
		clusterv1alpha1.ReasonClusterNotReady:        "web -a: b=2",
		clusterv1alpha1.ReasonStatusCollectionFailed: "",
		clusterv1alpha1.ReasonHeldByAnotherHub:       "",
	} {
		for _, rule := range []*policyv1alpha1.FailoverBehavior{nil, ofCluster(policyv1alpha1.PurgeModeGracefully)} {
			w := newWorld(t, "a", "b")
			w.deployment("web", "a=2", byRoom()).Spec.Failover = rule
			w.lose("a")
			membership.Readiness(w.cluster("a")).Reason = reason
			w.pass(time.Hour)
			w.plans(want)
			w.taint("a", "maintenance")
			w.plans("web -a: b=2")
		}
	}
}
