package adopt_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

var object = coretest.Object

const cloneSet = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata:
  name: web
  namespace: shop
  uid: u-1
  resourceVersion: "9"
  generation: 4
  managedFields: [{manager: kubectl}]
  labels: {app: web}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", note: hi}
spec:
  replicas: 3
  revisionHistoryLimit: 10
  selector: {matchLabels: {app: web}}
  updateStrategy: {type: InPlaceIfPossible, partition: 0}
  template: {metadata: {labels: {app: web}}, spec: {dnsPolicy: ClusterFirst, containers: [{name: main, image: "nginx:1", imagePullPolicy: IfNotPresent}]}}
status: {replicas: 3}
`

// rehearse is what an adoption of live would change.
func rehearse(t *testing.T, live, template *unstructured.Unstructured,
	overrides ...policyv1alpha1.Override) adopt.Report {
	t.Helper()
	i := interpret.New(tiers.Below()...)
	template = template.DeepCopy()
	template.SetUID("hub")
	replicas, _, _, err := i.Replicas(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	works, err := adopt.Works(t.Context(), template, adopt.Policy(template, "p", "m1"),
		[]adopt.Target{{Cluster: cluster, Replicas: replicas}}, overrides, i)
	if err != nil {
		t.Fatal(err)
	}
	desired, err := adopt.Desired(t.Context(), works["m1"], live, i)
	if err != nil {
		t.Fatal(err)
	}
	return adopt.Compare(live, desired, false)
}

func TestAdoptedObjectIsUnchanged(t *testing.T) {
	for name, text := range map[string]string{
		"CloneSet": cloneSet,
		"one preserved by a fleet": strings.Replace(cloneSet, "labels: {app: web}\n  ann",
			"labels: {app: web, work.karmada.io/permanent-id: x}\n  ann", 1),
		"Deployment": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, annotations: {deployment.kubernetes.io/revision: "3"}},
			spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}}`,
		"Service": `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, nodePort: 30080}]}}`,
		"Argo Rollout": `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web, namespace: shop, annotations: {rollout.argoproj.io/revision: "2"}},
			spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}}`,
		"Workflow": `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: run, namespace: shop, labels: {workflows.argoproj.io/completed: "true", workflows.argoproj.io/phase: Succeeded}},
			spec: {entrypoint: main, ttlStrategy: {secondsAfterCompletion: 9}, templates: [{name: main, container: {image: x}}]}, status: {phase: Succeeded}}`,
		"claim": `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, annotations: {pv.kubernetes.io/bind-completed: "yes"}},
			spec: {volumeName: pv-1, resources: {requests: {storage: 1Gi}}}}`,
	} {
		live := object(t, text)
		if err := adopt.Obstacle(live); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r := rehearse(t, live, adopt.Template(live)); len(r.Differences)+len(r.Disturbs) > 0 {
			t.Errorf("%s would change: %+v", name, r)
		}
	}
}

func TestATemplateHasNothingOfItsMember(t *testing.T) {
	raw, err := yaml.Marshal(adopt.Template(object(t, cloneSet)).Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, not := range []string{"uid", "resourceVersion", "generation", "managedFields", "last-applied", "status"} {
		if strings.Contains(string(raw), not) {
			t.Errorf("%s is in it:\n%s", not, raw)
		}
	}
	if !strings.Contains(string(raw), "note: hi") || !strings.Contains(string(raw), "image: nginx:1") {
		t.Errorf("something of the user is not:\n%s", raw)
	}
	claim := adopt.Template(object(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d, namespace: s}, spec: {volumeName: pv-1}}"))
	if v, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName"); v != "" {
		t.Errorf("a claim would ask every cluster for the volume %s", v)
	}
	version := adopt.Template(object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c-1, namespace: s, annotations: {argosy.io/version-of: c}}}"))
	if len(version.GetAnnotations()) > 0 {
		t.Errorf("a hub would refuse the annotations %v", version.GetAnnotations())
	}
}

func TestAdoptionWithPodRestartIsRefused(t *testing.T) {
	live := object(t, cloneSet)
	for name, c := range map[string]struct {
		template  func(map[string]any)
		overrides []policyv1alpha1.Override
		disturbs  string // of the reason; empty for none
		differs   string // the paths
	}{
		"a template with another image": {
			template: func(spec map[string]any) {
				containers := fields.Value(spec, "template", "spec", "containers").([]any)
				containers[0].(map[string]any)["image"] = "nginx:2"
			},
			disturbs: "recreated", differs: "spec.template.spec.containers.0.image",
		},
		"an override of the hub": {
			overrides: []policyv1alpha1.Override{&policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{
				Name: "registry"}, Spec: policyv1alpha1.OverrideSpec{
				OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
					ImageOverrider: []policyv1alpha1.ImageOverrider{{Component: policyv1alpha1.Registry,
						Operator: policyv1alpha1.OverriderOpAdd, Value: "registry.example"}},
				}}}}}},
			disturbs: "recreated", differs: "spec.template.spec.containers.0.image",
		},
		"fewer replicas": {template: func(spec map[string]any) { spec["replicas"] = int64(2) }, disturbs: "removed",
			differs: "spec.replicas"},
		"more replicas": {template: func(spec map[string]any) { spec["replicas"] = int64(4) }, differs: "spec.replicas"},
		"another partition": {template: func(spec map[string]any) {
			spec["updateStrategy"].(map[string]any)["partition"] = int64(2)
		}, disturbs: "limit the replacement of pods", differs: "spec.updateStrategy.partition"},
		"what no pod feels": {template: func(spec map[string]any) { spec["revisionHistoryLimit"] = int64(3) },
			differs: "spec.revisionHistoryLimit"},
		"what is left open": {template: func(spec map[string]any) { delete(spec, "revisionHistoryLimit") }},
		"another selector": {template: func(spec map[string]any) {
			spec["selector"] = map[string]any{"matchLabels": map[string]any{"app": "x"}}
		}, differs: "metadata.annotations.argosy.io/immutable-fields"},
		"a new label on pods": {template: func(spec map[string]any) {
			spec["template"].(map[string]any)["metadata"] = map[string]any{"labels": map[string]any{"app": "web", "new": "x"}}
		}, disturbs: "recreated", differs: "spec.template.metadata.labels.new"},
	} {
		t.Run(name, func(t *testing.T) {
			template := adopt.Template(live)
			if c.template != nil {
				c.template(template.Object["spec"].(map[string]any))
			}
			r := rehearse(t, live, template, c.overrides...)
			var paths []string
			for _, d := range r.Differences {
				paths = append(paths, d.Path)
			}
			if got := strings.Join(paths, ","); got != c.differs {
				t.Errorf("differences: %q, not %q", got, c.differs)
			}
			if got := strings.Join(r.Disturbs, "\n"); (got == "") != (c.disturbs == "") || !strings.Contains(got, c.disturbs) {
				t.Errorf("disturbs: %q, not %q", got, c.disturbs)
			}
		})
	}
}

// The member itself knows what it would make of an apply: what is gone shows in its answer alone.
func TestRemovedFieldIsADifference(t *testing.T) {
	live := object(t, cloneSet)
	after := live.DeepCopy()
	after.SetLabels(map[string]string{"app": "web", "karmada.io/managed": "true"})
	if r := adopt.Compare(live, after, true); len(r.Differences) > 0 {
		t.Errorf("marks are no difference: %+v", r)
	}
	unstructured.RemoveNestedField(after.Object, "spec", "template", "spec", "dnsPolicy")
	if r := adopt.Compare(live, after, true); len(r.Disturbs) != 1 || r.Differences[0].Have != "ClusterFirst" {
		t.Errorf("%+v", r)
	}
	if r := adopt.Compare(live, after, false); len(r.Differences) > 0 {
		t.Errorf("what an apply leaves open stays: %+v", r)
	}
}

func TestSomeObjectsCannotBeAdoptedAtAll(t *testing.T) {
	for want, metadata := range map[string]string{
		"being deleted":                  "deletionTimestamp: 2026-01-01T00:00:00Z",
		"CloneSet web is its controller": "ownerReferences: [{apiVersion: v1, kind: CloneSet, name: web, uid: u, controller: true}]",
		"karmada-es-eu/w":                "labels: {karmada.io/managed: 'true'}, annotations: {work.karmada.io/namespace: karmada-es-eu, work.karmada.io/name: w}",
		"Kruise Rollout":                 "annotations: {rollouts.kruise.io/in-progressing: '{}'}",
	} {
		u := object(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x, namespace: shop, "+metadata+
			"}}")
		if err := adopt.Obstacle(u); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", metadata, err)
		}
	}
	// What controllers of a member make, with the labels of a managed Service copied or not.
	const owner = "ownerReferences: [{apiVersion: v1, kind: Owner, name: web, uid: u, controller: true}]"
	for what, metadata := range map[string]string{
		"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, ": owner + ", labels: {karmada.io/managed: 'true'}",
		"{apiVersion: v1, kind: Endpoints, ":                      "labels: {endpoints.kubernetes.io/managed-by: endpoint-controller}",
		"{kind: Endpoints, apiVersion: v1, ":                      "annotations: {endpoints.kubernetes.io/last-change-trigger-time: '2026'}",
		"{apiVersion: apps/v1, kind: ReplicaSet, ":                owner,
		"{apiVersion: apps/v1, kind: ControllerRevision, ":        owner,
		"{apiVersion: v1, kind: Pod, ":                            owner,
		"{apiVersion: coordination.k8s.io/v1, kind: Lease, ":      "labels: {}",
	} {
		if err := adopt.Obstacle(object(t, what+"metadata: {name: web, namespace: shop, "+metadata+"}}")); err == nil {
			t.Errorf("%s can be adopted", what)
		}
	}
	if err := adopt.Obstacle(object(t,
		"{apiVersion: v1, kind: Endpoints, metadata: {name: db, namespace: shop}}")); err != nil {
		t.Errorf("Endpoints of a user: %v", err)
	}
	if err := adopt.Obstacle(object(t,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: shop}}")); err == nil {
		t.Error("what every cluster has would be sent to one")
	}
}

func TestRivalIsThePolicyThatClaimsTheTemplate(t *testing.T) {
	template := object(t, cloneSet)
	planned := adopt.Policy(template, "planned", "m1")
	policy := func(name string, priority int32) policyv1alpha1.Propagation {
		p := adopt.Policy(template, name, "m1")
		p.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: name})
		p.PropagationSpec().Priority = &priority
		return p
	}
	lower, higher, standing := policy("lower", -1), policy("higher", 1), policy("planned", 0)
	spec := func(p policyv1alpha1.Propagation, change func(*policyv1alpha1.PropagationSpec)) policyv1alpha1.Propagation {
		p = p.DeepCopyObject().(policyv1alpha1.Propagation)
		change(p.PropagationSpec())
		return p
	}
	preempts := spec(higher, func(s *policyv1alpha1.PropagationSpec) { s.Preemption = policyv1alpha1.PreemptAlways })
	lazy := spec(higher, func(s *policyv1alpha1.PropagationSpec) {
		s.ActivationPreference = policyv1alpha1.LazyActivation
	})
	waits := spec(higher, func(s *policyv1alpha1.PropagationSpec) { s.DependentOverrides = []string{"none"} })
	foreign := spec(higher, func(s *policyv1alpha1.PropagationSpec) { s.SchedulerName = "other" })
	suspended := spec(higher, func(s *policyv1alpha1.PropagationSpec) {
		s.Suspension = &policyv1alpha1.Suspension{Dispatching: new(true)}
	})
	label := spec(policy("label", 0), func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "" })
	unrelated := spec(lower, func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "other" })
	leaving := higher.DeepCopyObject().(policyv1alpha1.Propagation)
	leaving.SetDeletionTimestamp(&metav1.Time{})
	cluster := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "cluster",
		Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "cluster"}},
		Spec: *preempts.PropagationSpec()}
	for name, c := range map[string]struct {
		by       policyv1alpha1.Propagation
		policies []policyv1alpha1.Propagation
		rival    string
		claims   bool
	}{
		"no other policy":                                          {},
		"a policy of lower priority":                               {policies: []policyv1alpha1.Propagation{lower}},
		"a policy of higher priority":                              {policies: []policyv1alpha1.Propagation{lower, higher}, rival: "higher"},
		"the same policy exists":                                   {policies: []policyv1alpha1.Propagation{standing}},
		"a policy has claimed it":                                  {lower, []policyv1alpha1.Propagation{higher, lower}, "lower", true},
		"the same policy has claimed it":                           {by: standing, policies: []policyv1alpha1.Propagation{standing}},
		"its policy is deleted meanwhile":                          {by: lower},
		"a cluster policy never comes before one in the namespace": {policies: []policyv1alpha1.Propagation{cluster}},
		"a cluster policy has claimed it, and nothing preempts it": {cluster, []policyv1alpha1.Propagation{cluster},
			"cluster", true},
		"a policy that selects less closely":        {policies: []policyv1alpha1.Propagation{label}},
		"a Lazy policy claims as others do":         {policies: []policyv1alpha1.Propagation{lazy}, rival: "higher"},
		"a policy waits for override policies":      {policies: []policyv1alpha1.Propagation{waits}, rival: "higher"},
		"another scheduler places what it claims":   {policies: []policyv1alpha1.Propagation{foreign}, rival: "higher"},
		"a suspended policy claims as others do":    {policies: []policyv1alpha1.Propagation{suspended}, rival: "higher"},
		"a policy that is being deleted":            {policies: []policyv1alpha1.Propagation{leaving}},
		"a claim of a policy that is being deleted": {by: higher, policies: []policyv1alpha1.Propagation{leaving}},
		"a claim of a policy that no longer selects it": {by: lower,
			policies: []policyv1alpha1.Propagation{unrelated}},
		"the same policy has claimed it, and a higher priority alone takes nothing": {by: standing,
			policies: []policyv1alpha1.Propagation{standing, higher}},
		"the same policy has claimed it, and another preempts it": {standing,
			[]policyv1alpha1.Propagation{standing, preempts}, "higher", false},
		"a policy has claimed it, and another preempts that one": {lower,
			[]policyv1alpha1.Propagation{lower, preempts}, "higher", false},
	} {
		claimed := template.DeepCopy()
		if c.by != nil {
			propagate.Claim(claimed, c.by)
		}
		got := ""
		rival, claims := adopt.Rival(claimed, planned, c.policies)
		if rival != nil {
			got = rival.GetName()
		}
		if got != c.rival || claims != c.claims {
			t.Errorf("%s: the rival is %q, claims %t; want %q, %t", name, got, claims, c.rival, c.claims)
		}
	}
}
