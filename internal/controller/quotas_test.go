package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/object/names"
	coreschedule "github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/coretest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// quotas is a fleet of three members with a namespace shop, whose Deployments are divided between m1 and m2.
type quotas struct {
	*controllertest.Hub
	t       *testing.T
	members map[string]*membertest.Server
	policy  policyv1alpha1.Propagation
}

func newQuotas(t *testing.T, o Options) *quotas {
	w := &quotas{t: t}
	w.Hub, w.members = fleetWith(t, o, controllertest.Deployment, controllertest.ResourceQuota)
	w.policy = policy("shop", "apps/v1", "Deployment")
	w.policy.PropagationSpec().Placement = policyv1alpha1.Placement{
		ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1", "m2"}},
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted}}
	w.Make(w.policy)
	return w
}

// quota creates or changes a FederatedResourceQuota.
func (w *quotas) quota(name, overall, assignments string) {
	w.t.Helper()
	u := coretest.Object(w.t, "{apiVersion: policy.karmada.io/v1alpha1, kind: FederatedResourceQuota, metadata: {namespace: shop, name: "+
		name+"}, spec: {overall: {"+overall+"}, staticAssignments: ["+assignments+"]}}")
	if live := u.DeepCopy(); w.HasObject(live) {
		controllertest.Change(w.Hub, live, func(live *unstructured.Unstructured) { live.Object["spec"] = u.Object["spec"] })
		return
	}
	w.Make(u)
}

func (w *quotas) deployment(name string, replicas int, cpu string) *unstructured.Unstructured {
	return parsed(w.t, controllertest.Deployment, name, fmt.Sprintf(
		"replicas: %d, template: {spec: {containers: [{name: main, image: web, resources: {requests: {cpu: %q}}}]}}", replicas, cpu))
}

func (w *quotas) deploy(name string, replicas int, cpu string) {
	w.t.Helper()
	w.Make(claimed(w.deployment(name, replicas, cpu), w.policy))
}

// redeploy changes the replicas and requests of a Deployment.
func (w *quotas) redeploy(name string, replicas int, cpu string) {
	w.t.Helper()
	want := w.deployment(name, replicas, cpu)
	controllertest.Change(w.Hub, want.DeepCopy(), func(u *unstructured.Unstructured) {
		u.Object["spec"] = want.Object["spec"]
	})
}

func (w *quotas) binding(name string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-deployment"}}
	if !w.HasObject(b) {
		return nil
	}
	return b
}

// state is the replicas that the hub placed, those in the members, the reason of Scheduled, and the CPU that a quota
// counts.
func (w *quotas) state(name, quota string) string {
	b := w.binding(name)
	if b == nil {
		return "no binding"
	}
	placed, running := int32(0), int64(0)
	for _, t := range b.Spec.Clusters {
		placed += t.Replicas
	}
	for _, m := range w.members {
		if d := m.Object(controllertest.Deployment, "shop", name); d != nil {
			n, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
			running += n
		}
	}
	reason := "unscheduled"
	if c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled); c != nil {
		reason = c.Reason
	}
	return fmt.Sprintf("placed %d, running %d, %s, used %s", placed, running, reason, w.used(quota))
}

func (w *quotas) used(quota string) string {
	q := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: quota}}
	if !w.HasObject(q) {
		return "no quota"
	}
	return q.Status.OverallUsed.Cpu().String()
}

// works are the writes of Works since the last call of Quiet.
func (w *quotas) works() []string {
	w.t.Helper()
	return slices.DeleteFunc(w.Quiet(), func(s string) bool { return !strings.Contains(s, " works ") })
}

func (w *quotas) expect(name, quota, want string) {
	w.t.Helper()
	w.Eventually(name+": "+want, func() string {
		if got := w.state(name, quota); got != want {
			return got
		}
		return ""
	})
}

// stays is expect after everything has happened that happens.
func (w *quotas) stays(name, quota, want string) {
	w.t.Helper()
	w.Advance(3 * time.Second)
	w.Quiet()
	w.expect(name, quota, want)
}

func TestWorkloadsOverTheQuotaAreNotPlaced(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuotas(t, Options{})
		w.quota("team", "cpu: 2, memory: 1Gi", "")
		w.deploy("web", 1, "1")
		w.expect("web", "team", "placed 1, running 1, Success, used 1")

		// A new workload gets no cluster. Both events have the words of Karmada's webhook.
		w.deploy("batch", 2, "1")
		w.stays("batch", "team", "placed 0, running 0, QuotaExceeded, used 1")
		const refusal = `admission webhook "resourcebinding.karmada.io" denied the request: FederatedResourceQuota(shop/team) exceeded for resource cpu: requested sum 3, limit 2`
		events := w.Events()
		for _, kind := range []string{"ResourceBinding", "Deployment"} {
			if !slices.ContainsFunc(events, func(e string) bool {
				return strings.HasPrefix(e, kind+" ScheduleBindingFailed: ") && strings.Contains(e, refusal)
			}) {
				t.Errorf("no event about the %s: %q", kind, events)
			}
		}
		c := meta.FindStatusCondition(w.binding("batch").Status.Conditions, workv1alpha2.Scheduled)
		if !strings.Contains(c.Message, "raise overall.cpu of FederatedResourceQuota team to 3") {
			t.Errorf("the condition says %q", c.Message)
		}
		if w.binding("batch").Spec.Clusters != nil {
			t.Errorf("it has the clusters %v", w.binding("batch").Spec.Clusters)
		}

		// Scaling up is blocked: the pods stay.
		w.redeploy("web", 3, "1")
		w.stays("web", "team", "placed 1, running 1, QuotaExceeded, used 1")
		// So are larger requests: the binding stays as it was.
		w.redeploy("web", 1, "1")
		w.expect("web", "team", "placed 1, running 1, Success, used 1")
		w.redeploy("web", 1, "3")
		w.stays("web", "team", "placed 1, running 1, Success, used 1")
		if got := w.binding("web").Spec.ReplicaRequirements.ResourceRequest.Cpu().String(); got != "1" {
			t.Errorf("the binding requests %s", got)
		}
		// Another reason to send the workload does not send the requests.
		w.Make(coretest.Object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: shop, name: labels},
			spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {sent: again}}]}}]}}`))
		w.Eventually("the clusters have the label, and the requests as before", func() string {
			for name, m := range w.members {
				d := m.Object(controllertest.Deployment, "shop", "web")
				if d != nil && (cpuOf(d) != 1 || d.GetLabels()["sent"] == "") {
					return fmt.Sprintf("in %s the pods request %d, labels %v", name, cpuOf(d), d.GetLabels())
				}
			}
			return ""
		})
		if !slices.ContainsFunc(w.Events(), func(e string) bool {
			return strings.HasPrefix(e, "Deployment ApplyPolicyFailed: ") &&
				strings.Contains(e, `admission webhook "resourcebinding.karmada.io" denied the request`)
		}) {
			t.Errorf("no event about the requests: %q", w.Events())
		}

		// A higher limit permits both: the binding that waits at once, the requests after a while.
		w.quota("team", "cpu: 5", "")
		w.expect("batch", "team", "placed 2, running 2, Success, used 3")
		w.Advance(time.Minute)
		w.stays("web", "team", "placed 1, running 1, Success, used 5")
		if d := cmp.Or(w.members["m1"].Object(controllertest.Deployment, "shop", "web"),
			w.members["m2"].Object(controllertest.Deployment, "shop", "web")); cpuOf(d) != 3 {
			t.Errorf("with the quota, the pods request %d", cpuOf(d))
		}

		// A deletion frees what another one waits for.
		w.deploy("late", 2, "1")
		w.stays("late", "team", "placed 0, running 0, QuotaExceeded, used 5")
		if err := w.Delete(t.Context(), w.deployment("batch", 2, "1")); err != nil {
			t.Fatal(err)
		}
		w.expect("late", "team", "placed 2, running 2, Success, used 5")
	})
}

// Each cluster of a duplicated workload has all replicas, and gets none that the quota refuses.
func TestADuplicatedWorkloadOverTheQuotaIsNotScaled(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuotas(t, Options{})
		controllertest.Change(w.Hub, w.policy, func(p policyv1alpha1.Propagation) {
			p.PropagationSpec().Placement.ReplicaScheduling = nil
		})
		w.quota("team", "cpu: 4", "")
		w.deploy("web", 1, "1")
		w.expect("web", "team", "placed 2, running 2, Success, used 2")
		w.redeploy("web", 3, "1")
		w.stays("web", "team", "placed 2, running 2, QuotaExceeded, used 2")
		w.Make(coretest.Object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: shop, name: labels},
			spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {sent: again}}]}}]}}`))
		w.stays("web", "team", "placed 2, running 2, QuotaExceeded, used 2")
		w.redeploy("web", 0, "1")
		w.expect("web", "team", "placed 0, running 0, Success, used 0")
		w.redeploy("web", 2, "1")
		w.expect("web", "team", "placed 4, running 4, Success, used 4")
		w.redeploy("web", 3, "1")
		w.stays("web", "team", "placed 4, running 4, QuotaExceeded, used 4")
		w.quota("team", "cpu: 6", "")
		w.expect("web", "team", "placed 6, running 6, Success, used 6")
	})
}

// A cluster that is added while a change is refused gets the pods that the others have.
func TestRefusedRequestsDoNotReachANewCluster(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuotas(t, Options{})
		w.quota("team", "cpu: 2", "")
		w.deploy("web", 2, "1")
		w.expect("web", "team", "placed 2, running 2, Success, used 2")
		w.redeploy("web", 2, "9")
		w.stays("web", "team", "placed 2, running 2, Success, used 2")
		controllertest.Change(w.Hub, w.binding("web"), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}, {Name: "m3", Replicas: 1}}
		})
		controllertest.Change(w.Hub, w.policy, func(p policyv1alpha1.Propagation) {
			p.PropagationSpec().PreserveResourcesOnDeletion = new(true)
		})
		w.Advance(3 * time.Second)
		w.Quiet()
		for name, m := range w.members {
			if d := m.Object(controllertest.Deployment, "shop", "web"); d != nil && cpuOf(d) != 1 {
				t.Errorf("in %s the pods request %d", name, cpuOf(d))
			}
		}
		if w.binding("web").Spec.PreserveResourcesOnDeletion != nil {
			t.Error("a change of the policy does not wait")
		}
	})
}

func TestQuotaBelowTheUsageRefusesGrowthOnly(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuotas(t, Options{})
		w.deploy("web", 4, "1")
		w.expect("web", "team", "placed 4, running 4, Success, used no quota")
		w.quota("team", "cpu: 2", "")
		w.stays("web", "team", "placed 4, running 4, Success, used 4")
		w.redeploy("web", 3, "1")
		w.expect("web", "team", "placed 3, running 3, Success, used 3")
		controllertest.Change(w.Hub, w.deployment("web", 3, "1"), func(u *unstructured.Unstructured) {
			err := unstructured.SetNestedField(u.Object, "label", "spec", "template", "metadata", "labels", "some")
			if err != nil {
				t.Fatal(err)
			}
		})
		w.Eventually("an unrelated change is sent", func() string {
			for _, name := range []string{"m1", "m2"} {
				d := w.members[name].Object(controllertest.Deployment, "shop", "web")
				label, _, _ := unstructured.NestedString(d.Object, "spec", "template", "metadata", "labels", "some")
				if label == "" {
					return name + " lacks it"
				}
			}
			return ""
		})
		w.redeploy("web", 4, "1")
		w.stays("web", "team", "placed 3, running 3, QuotaExceeded, used 3")
		if err := w.Delete(t.Context(), &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "team"}}); err != nil {
			t.Fatal(err)
		}
		w.expect("web", "team", "placed 4, running 4, Success, used no quota")
	})
}

func TestAllQuotasOfANamespaceMustPermitAPlacement(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuotas(t, Options{})
		w.quota("large", "cpu: 9", "")
		w.quota("small", "cpu: 1", "")
		w.deploy("web", 2, "1")
		w.stays("web", "large", "placed 0, running 0, QuotaExceeded, used 0")
		w.quota("small", "cpu: 2", "")
		w.expect("web", "large", "placed 2, running 2, Success, used 2")
		w.stays("web", "small", "placed 2, running 2, Success, used 2")
	})
}

// Many workloads want the same rest of a quota at the same time.
func TestConcurrentPlacementsStayWithinTheQuota(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuotas(t, Options{Concurrency: 8})
		w.quota("team", "cpu: 5", "")
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() { w.deploy(fmt.Sprint("web", i), 1, "1") })
		}
		all.Wait()
		w.Quiet()
		w.Advance(3 * time.Second)
		w.Quiet()
		placed, refused := 0, 0
		for i := range 16 {
			switch state := w.state(fmt.Sprint("web", i), "team"); state {
			case "placed 1, running 1, Success, used 5":
				placed++
			case "placed 0, running 0, QuotaExceeded, used 5":
				refused++
			default:
				t.Errorf("web%d: %s", i, state)
			}
		}
		if placed != 5 || refused != 11 {
			t.Errorf("%d are placed, %d refused", placed, refused)
		}
	})
}

func TestQuotasAreOnlyCountedWithoutEnforcement(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuotas(t, Options{Scheduler: coreschedule.Settings{QuotasOff: true}})
		w.quota("team", "cpu: 1", "")
		w.deploy("web", 2, "1")
		w.expect("web", "team", "placed 2, running 2, Success, used 2")
	})
}

func TestStaticAssignmentsAreSentToTheirClusters(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuotas(t, Options{})
		hard := func(want string) {
			t.Helper()
			w.Eventually("the clusters have "+want, func() string {
				var got []string
				for _, name := range []string{"m1", "m2", "m3"} {
					if q := w.members[name].Object(controllertest.ResourceQuota, "shop", "team"); q != nil {
						cpu, _, _ := unstructured.NestedString(q.Object, "spec", "hard", "cpu")
						got = append(got, name+"="+cpu)
					}
				}
				if strings.Join(got, " ") != want {
					return strings.Join(got, " ")
				}
				return ""
			})
		}
		const (
			m1   = `{clusterName: m1, hard: {cpu: "1"}}`
			m2   = `{clusterName: m2, hard: {cpu: "2"}}`
			away = `{clusterName: m9, hard: {cpu: "1"}}`
		)
		w.quota("team", "cpu: 9", m1+", "+m2+", "+away)
		hard("m1=1 m2=2")

		// The status has what the clusters report.
		in := w.members["m1"].Object(controllertest.ResourceQuota, "shop", "team")
		in.Object["status"] = map[string]any{"hard": map[string]any{"cpu": "1"}, "used": map[string]any{"cpu": "250m"}}
		w.members["m1"].Put(in)
		q := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}}
		w.Eventually("the status has the usage in m1", func() string {
			w.HasObject(q)
			for _, c := range q.Status.AggregatedStatus {
				if c.ClusterName == "m1" && c.Hard.Cpu().String() == "1" && c.Used.Cpu().String() == "250m" {
					return ""
				}
			}
			return fmt.Sprint(q.Status.AggregatedStatus)
		})
		if q.Status.Overall.Cpu().String() != "9" {
			t.Errorf("the limits in effect are %v", q.Status.Overall)
		}
		// Nothing is written while nothing changes, also by the recounts.
		w.Advance(3 * time.Second)
		w.Quiet()
		w.Advance(11 * time.Minute)
		if wrote := slices.DeleteFunc(w.Quiet(), func(s string) bool {
			return !strings.Contains(s, "federatedresourcequotas") && !strings.Contains(s, " works ")
		}); len(wrote) > 0 {
			t.Errorf("without a change it wrote %v", wrote)
		}

		w.Join("m9", controllertest.Deployment, controllertest.ResourceQuota)
		w.Eventually("a cluster that joins has a Work", func() string {
			if !w.HasObject(work("m9")) {
				return "it has none"
			}
			return ""
		})
		w.quota("team", "cpu: 9", m2)
		hard("m2=2")
		if err := w.Delete(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		hard("")
		w.Eventually("no Work is left", func() string {
			for _, name := range []string{"m1", "m2", "m9"} {
				if w.HasObject(work(name)) {
					return name + " has one"
				}
			}
			return ""
		})
	})
}

// work is the Work of the quota team in a cluster, by the name that Karmada gives it.
func work(cluster string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(controllertest.Works.GroupVersionKind)
	u.SetNamespace("karmada-es-" + cluster)
	u.SetName(names.Work("ResourceQuota", "team", "shop"))
	return u
}

// A binding that was written counts until the cache shows it, and no longer when it is gone.
// Karmada's suite waits for an event of each.
func TestFirstSuccessesOfAQuotaAreEvents(t *testing.T) {
	for level, want := range map[commit.SuccessEvents]int{commit.SuccessEventsNone: 0, commit.SuccessEventsDefault: 1,
		commit.SuccessEventsAll: 1} {
		t.Run(string(level), func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newQuotas(t, Options{Successes: level})
				w.quota("team", "cpu: 5", "{clusterName: m1, hard: {cpu: 2}}")
				var in *unstructured.Unstructured
				w.Eventually("the cluster has the quota", func() string {
					if in = w.members["m1"].Object(controllertest.ResourceQuota, "shop", "team"); in == nil {
						return "it has none"
					}
					return ""
				})
				in.Object["status"] = map[string]any{"hard": map[string]any{"cpu": "2"}, "used": map[string]any{"cpu": "1"}}
				w.members["m1"].Put(in)
				w.Advance(3 * time.Second)
				w.Quiet()
				for _, reason := range []string{"SyncWorkSucceed", "CollectOverallStatusSucceed", "AggregateStatusSucceed"} {
					if got := countEvents(w.Hub)["FederatedResourceQuota "+reason]; got != want {
						t.Errorf("%d events %s, want %d", got, reason, want)
					}
				}
			})
		})
	}
}

func TestDeletedWorkloadFreesTheQuotaAtOnce(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuotas(t, Options{})
		w.quota("team", "cpu: 1", "")
		w.deploy("web", 1, "1")
		w.expect("web", "team", "placed 1, running 1, Success, used 1")
		w.deploy("late", 1, "1")
		w.expect("late", "team", "placed 0, running 0, QuotaExceeded, used 1")
		if err := w.Delete(t.Context(), w.deployment("web", 1, "1")); err != nil {
			t.Fatal(err)
		}
		w.Advance(5 * time.Second)
		w.expect("late", "team", "placed 1, running 1, Success, used 1")
	})
}

// A ResourceQuota of the quota's name that belongs to a cluster, or to a template of the hub, stays as it is.
func TestOtherResourceQuotaOfTheNameStays(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuotas(t, Options{})
		own := func(name string) *unstructured.Unstructured {
			return coretest.Object(t, `{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: shop, name: `+name+
				`}, spec: {hard: {cpu: "7"}}}`)
		}
		w.members["m1"].Put(own("team"))
		w.quota("team", "cpu: 9", `{clusterName: m1, hard: {cpu: "1"}}, {clusterName: m2, hard: {cpu: "1"}}`)
		w.Eventually("m2 has the ResourceQuota", func() string {
			if w.members["m2"].Object(controllertest.ResourceQuota, "shop", "team") == nil {
				return "it has none"
			}
			return ""
		})
		if err := w.Delete(t.Context(), &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "team"}}); err != nil {
			t.Fatal(err)
		}
		w.Eventually("m2 has it no longer", func() string {
			if w.members["m2"].Object(controllertest.ResourceQuota, "shop", "team") != nil {
				return "it has it"
			}
			return ""
		})
		w.Quiet()
		limit := func(name string) string {
			q := w.members["m1"].Object(controllertest.ResourceQuota, "shop", name)
			if q == nil {
				return "none"
			}
			cpu, _, _ := unstructured.NestedString(q.Object, "spec", "hard", "cpu")
			return cpu
		}
		if limit("team") != "7" {
			t.Errorf("m1 limits cpu to %s", limit("team"))
		}

		// A template of the hub has the name, with a Work in m1.
		p := policy("shop", "v1", "ResourceQuota")
		p.SetName("quotas")
		p.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "other-id"})
		p.PropagationSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}
		w.Make(p)
		w.Make(claimed(own("other"), p))
		w.Eventually("m1 has that of the template", func() string {
			if w.members["m1"].Object(controllertest.ResourceQuota, "shop", "other") == nil {
				return "it has none"
			}
			return ""
		})
		w.quota("other", "cpu: 9", `{clusterName: m1, hard: {cpu: "1"}}, {clusterName: m2, hard: {cpu: "1"}}`)
		w.Eventually("m2 has the other one, and an event names m1", func() string {
			if w.members["m2"].Object(controllertest.ResourceQuota, "shop", "other") == nil {
				return "m2 has none"
			}
			if events := w.Events(); !slices.ContainsFunc(events, func(e string) bool {
				return strings.HasPrefix(e, `FederatedResourceQuota SyncWorkFailed: send the ResourceQuota to cluster "m1"`)
			}) {
				return fmt.Sprint(events)
			}
			return ""
		})
		// The template may also come later; then it decides.
		w.quota("later", "cpu: 9", `{clusterName: m1, hard: {cpu: "1"}}`)
		w.Quiet()
		if w.members["m1"].Object(controllertest.ResourceQuota, "shop", "later") == nil {
			t.Error("m1 has no ResourceQuota of the quota")
		}
		w.Make(claimed(own("later"), p))
		w.Advance(time.Minute)
		if wrote := w.Quiet(); len(wrote) > 60 {
			t.Errorf("two controllers write in turns: %v", wrote)
		}
		w.Advance(time.Minute)
		if wrote := w.works(); len(wrote) > 0 {
			t.Errorf("later it wrote %v", wrote)
		}
		if err := w.Delete(t.Context(), &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "later"}}); err != nil {
			t.Fatal(err)
		}
		if wrote := w.works(); len(wrote) > 0 {
			t.Errorf("after the deletion of the quota it wrote %v", wrote)
		}
		for _, name := range []string{"other", "later"} {
			if limit(name) != "7" {
				t.Errorf("in m1, %s limits cpu to %s", name, limit(name))
			}
		}
	})
}

// The scheduler reserves room for a placement before it is written. What a quota refuses keeps none from others.
func TestRefusedPlacementReservesNoRoom(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, 1)
		total := int64(0)
		for _, m := range w.members {
			for _, cpu := range m.cpu {
				total += cpu
			}
		}
		w.write(coretest.Object(t, fmt.Sprintf("{apiVersion: policy.karmada.io/v1alpha1, kind: FederatedResourceQuota, "+
			"metadata: {namespace: shop, name: q}, spec: {overall: {cpu: %d}}}", total-1)))
		w.write(coretest.Object(t, "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: shop, name: p}, "+
			"spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {clusterAffinity: {clusterNames: [m1, m2, m3]}, "+
			"replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}}}"))
		for _, name := range []string{"a", "b"} {
			replicas := map[string]int64{"a": total, "b": 1}[name]
			w.write(coretest.Object(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: %s}, spec: {replicas: %d, selector: {}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: web, resources: {requests: {cpu: "1"}}}]}}}}`,
				name, replicas)))
			w.Quiet()
		}
		if got := w.placed()["Deployment shop/a"]; !strings.HasSuffix(got, " to []") {
			t.Errorf("a is placed: %s", got)
		}
		if got := w.placed()["Deployment shop/b"]; !strings.Contains(got, " 1 []}") {
			t.Errorf("b is not placed: %s", got)
		}
	})
}
