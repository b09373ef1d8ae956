package simulate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/service"
)

// controllers act on a hub at once. It has all data of its templates, which a recorded fleet has not.
type controllers struct{ *Fleet }

// create claims the templates that are being created, as admission does.
func (h controllers) create() {
	for r := range h.invented {
		d := propagate.Decide(propagate.Observed{Template: h.templates[r], Policies: slices.Collect(maps.Values(h.policies)),
			Creating: true, OverrideExists: h.overrideExists})
		if d.Claimed != nil && d.Preempted == nil {
			h.templates[r] = d.Claimed
		}
	}
}

func (h controllers) overrideExists(key types.NamespacedName) bool { return h.overrides[key] != nil }

// settle runs the controllers until they write nothing. It returns the templates that wait.
func (h controllers) settle(t *testing.T) map[ref]bool {
	t.Helper()
	for range 10 {
		wrote, waits := false, map[ref]bool{}
		for r := range h.templates {
			wrote = h.expose(t, r) || h.reconcile(t, r, waits) || wrote
		}
		if !wrote {
			return waits
		}
	}
	t.Fatal("the controllers never settle")
	return nil
}

// exposing returns the MultiClusterService that exposes a template; nil if none does.
func (h controllers) exposing(t *testing.T, r ref) *networkingv1alpha1.MultiClusterService {
	t.Helper()
	u := h.templates[ref{multiClusterService, r.Namespace, r.Name}]
	if u == nil || r.Kind != "Service" {
		return nil
	}
	s := &networkingv1alpha1.MultiClusterService{}
	if err := decode(u, s, true); err != nil {
		t.Fatal(err)
	}
	if !service.Exposes(s) {
		return nil
	}
	return s
}

// expose acts as the controller of MultiClusterServices.
func (h controllers) expose(t *testing.T, r ref) (wrote bool) {
	t.Helper()
	s := h.exposing(t, r)
	if s == nil {
		return false
	}
	key := types.NamespacedName{Namespace: r.Namespace, Name: r.Name + "-service"}
	template, b := h.templates[r], h.bindings[key]
	if claimed := service.Claim(template, s); claimed != nil {
		template, wrote = claimed, true
	}
	want, err := service.Binding(template, s, service.ClustersOf(s, sortedKeys(h.clusters)), b, "id")
	if err != nil {
		return false // the binding is deleted first
	}
	wrote = wrote || b == nil || !equality.Semantic.DeepEqual(b, want)
	h.templates[r], h.bindings[key] = template, want
	return wrote
}

// reconcile carries a decision out as controller/propagate does, write by write.
func (h controllers) reconcile(t *testing.T, r ref, waits map[ref]bool) (wrote bool) {
	t.Helper()
	existing, free, _ := propagate.Find(r.GroupKind, r.Namespace, r.Name,
		func(key types.NamespacedName) (workv1alpha2.Binding, error) { return h.bindings[key], nil })
	d := propagate.Decide(propagate.Observed{Template: h.templates[r], Binding: existing,
		Policies: slices.Collect(maps.Values(h.policies)),
		Exposed:  h.exposing(t, r) != nil, OverrideExists: h.overrideExists})
	waits[r] = len(d.MissingOverrides) > 0 || d.Pending != nil && existing == nil
	if d.Claimed != nil {
		h.templates[r], wrote = d.Claimed, true
	}
	want := d.Binding
	switch d.Action {
	case propagate.DeleteBinding:
		delete(h.bindings, types.NamespacedName{Namespace: r.Namespace, Name: existing.GetName()})
		return true
	case propagate.MakeBinding:
		var err error
		if want, err = propagate.Binding(h.templates[r], d.Policy, propagate.Meaning{ID: "id"}, existing); err != nil {
			t.Fatal(err)
		}
		if existing == nil {
			want.SetName(free)
		}
	}
	if want != nil && (existing == nil || !equality.Semantic.DeepEqual(existing, want)) {
		h.bindings[types.NamespacedName{Namespace: r.Namespace, Name: want.GetName()}], wrote = want, true
	}
	if d.Released != nil {
		h.templates[r], wrote = d.Released, true
	}
	return wrote
}

// claims are who claims the templates and bindings of a fleet, what waits, and what bindings have of their policies.
func claims(f *Fleet, waits map[ref]bool) map[string]string {
	out := map[string]string{}
	for r, u := range f.templates {
		claim, _ := propagate.Claimed(u)
		out[r.String()] = fmt.Sprintf("claimed by %s, managed by %q, awaits a change: %t, waits: %t", claim,
			u.GetLabels()[policyv1alpha1.ClaimedByLabel], propagate.Waiting(u), waits[r])
	}
	for key, b := range f.bindings {
		claim, _ := propagate.Claimed(b)
		text := fmt.Sprintf("claimed by %s, managed by %q", claim, b.GetLabels()[workv1alpha2.BindingManagedByLabel])
		if spec := b.BindingSpec(); spec.Placement != nil {
			text += fmt.Sprintf(", to %v", spec.Placement.ClusterAffinity.ClusterNames)
			if s := spec.Suspension; s != nil && s.Dispatching != nil {
				text += fmt.Sprintf(", suspended: %t", *s.Dispatching)
			}
			text += fmt.Sprintf(", preserved: %t", spec.PreserveResourcesOnDeletion != nil)
		}
		out["binding "+key.String()] = text
	}
	return out
}

// event is something that users do to a hub. It has the same effect on each fleet.
type event struct {
	what  string
	apply func(t *testing.T, f *Fleet) (next *Fleet, touched map[ref]bool)
}

var historyKinds = []schema.GroupKind{{Kind: "ConfigMap"}, {Kind: "Secret"}, {Kind: "Service"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}}

// anyEvent is one by chance. number is unique.
func anyEvent(r *rand.Rand, number int) event {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	write := func(text string) event {
		return event{"apply" + text, func(t *testing.T, f *Fleet) (*Fleet, map[ref]bool) {
			next, touched, err := f.Apply(objects(t, text), "default")
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			return next, touched
		}}
	}
	remove := func(what string, from func(*Fleet)) event {
		return event{"delete " + what, func(_ *testing.T, f *Fleet) (*Fleet, map[ref]bool) {
			next := f.clone()
			next.invented = map[ref]bool{}
			from(next)
			return next, nil
		}}
	}
	gk := historyKinds[r.IntN(len(historyKinds))]
	template := ref{gk, "default", pick("a", "b")}
	apiVersion := "v1"
	if gk.Group != "" {
		template.Namespace, apiVersion = "", gk.Group+"/v1"
	}
	written := fmt.Sprintf("\napiVersion: %s\nkind: %s\nmetadata: {name: %s, labels: {app: %s%s}, annotations: {%s: %q}}\ndata: {value: %q}\n",
		apiVersion, gk.Kind, template.Name, pick("x", "y"),
		pick("", "", "", ", resourcetemplate.karmada.io/claimed-by: another"),
		wellknown.PauseManagementAnnotation, pick("", "", "true"), fmt.Sprint(r.IntN(3)))
	name := types.NamespacedName{Namespace: pick("", "default"), Name: pick("p", "q", "r")}
	scope := "Cluster"
	if name.Namespace != "" {
		scope = ""
	}
	switch r.IntN(14) {
	case 0, 1, 2, 3:
		return write(written)
	case 4:
		return remove(template.String(), func(f *Fleet) {
			delete(f.templates, template)
			if b, _, key := (&state{Fleet: f}).bindingFor(template); b != nil {
				delete(f.bindings, key)
			}
		})
	case 5:
		again := write(written)
		return event{"delete and " + again.what, func(t *testing.T, f *Fleet) (*Fleet, map[ref]bool) {
			f = f.clone()
			delete(f.templates, template)
			next, touched := again.apply(t, f)
			next.templates[template].SetUID(types.UID(fmt.Sprint("another ", number)))
			return next, touched
		}}
	case 6, 7, 8, 9:
		var selectors []string
		preemption, names := "Never", []string{"", "", ", name: a", ", labelSelector: {matchLabels: {app: x}}"}
		if r.IntN(2) == 0 {
			preemption, names = "Always", []string{", name: a", ", name: b"} // which preemption needs
		}
		for range 1 + r.IntN(2) {
			gk := historyKinds[r.IntN(len(historyKinds))]
			selectors = append(selectors, fmt.Sprintf("{apiVersion: %s, kind: %s%s}", strings.TrimPrefix(gk.Group+"/v1", "/"),
				gk.Kind,
				pick(names...)))
		}
		return write(fmt.Sprintf("\napiVersion: policy.karmada.io/v1alpha1\nkind: %sPropagationPolicy\nmetadata: {name: %s}\nspec: {resourceSelectors: [%s], placement: {clusterAffinity: {clusterNames: [%s]}}, priority: %d, preemption: %s%s%s%s}\n",
			scope, name.Name, strings.Join(selectors, ", "), pick("m1", "m2", "m3"), r.IntN(3), preemption,
			pick("", "", ", activationPreference: Lazy"), pick("", "", ", suspension: {dispatching: true}"),
			pick("", "", "", ", dependentOverrides: [o]")))
	case 10:
		return remove(scope+"PropagationPolicy "+name.String(), func(f *Fleet) { delete(f.policies, name) })
	case 11:
		return write(fmt.Sprintf("\napiVersion: policy.karmada.io/v1alpha1\nkind: %sOverridePolicy\nmetadata: {name: o}\nspec: {overrideRules: []}\n", scope))
	case 12:
		return remove(scope+"OverridePolicy o",
			func(f *Fleet) { delete(f.overrides, types.NamespacedName{Namespace: name.Namespace, Name: "o"}) })
	}
	return write(fmt.Sprintf("\napiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\nmetadata: {name: %s}\nspec: {types: [CrossCluster], consumerClusters: [{name: %s}], providerClusters: [{name: %s}]}\n",
		pick("a", "b"), pick("m1", "m2"), pick("m1", "m3")))
}

func TestASimulationClaimsAsTheControllersDo(t *testing.T) {
	rounds := uint64(300)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { testHistory(t, rand.New(rand.NewPCG(seed, 26))) })
	}
}

func testHistory(t *testing.T, r *rand.Rand) {
	h, story := controllers{load(t, three)}, []string{}
	for number := range 25 {
		e := anyEvent(r, number)
		story = append(story, e.what)
		recorded, err := Load(recordOf(t, h.Fleet), "default")
		if err != nil {
			t.Fatal(err)
		}
		next, touched := e.apply(t, recorded)
		s := newState(next, roomsOf(t, next), touched, time.Unix(1, 0))
		s.settle(t.Context())
		waits := map[ref]bool{}
		for r := range s.problems {
			waits[r] = true
		}

		h.Fleet, _ = e.apply(t, h.Fleet)
		h.create()
		if diff := cmp.Diff(claims(h.Fleet, h.settle(t)), claims(s.Fleet, waits)); diff != "" {
			t.Fatalf("the simulation differs (-controllers +simulation):\n%s\nafter:\n%s", diff, strings.Join(story, "\n"))
		}
	}
}

func TestLazyPolicyWaitsForLaterTemplates(t *testing.T) {
	labelled := "[{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {tier: x}}}]"
	lazy := strings.Replace(policy("lazy", labelled, equally), "spec: {", "spec: {activationPreference: Lazy, ", 1)
	with := func(tier string) string {
		return strings.Replace(deployment("web", 6), "app: web}", "app: web, tier: "+tier+"}", 1)
	}
	for name, before := range map[string]string{"created": "", "changed": with("y")} {
		r := run(t, load(t, three+lazy+before), Change{Objects: objects(t, with("x"))})
		if waits := strings.Contains(r.Workloads[0].Problem, "is Lazy"); waits != (name == "changed") {
			t.Errorf("the template is %s: %+v", name, r.Workloads[0])
		}
	}
}

func TestMultiClusterServicesAreReadWithTheirServices(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: Service\nmetadata: {name: web}\n",
		"apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\nmetadata: {name: web}\n",
	} {
		if kinds := Kinds(objects(t, text)); !slices.Contains(kinds, serviceKind) ||
			!slices.Contains(kinds, multiClusterService) {
			t.Errorf("%q: it reads %v", text, kinds)
		}
	}
}

func TestAMultiClusterServicePlacesItsService(t *testing.T) {
	const exposure = `
apiVersion: networking.karmada.io/v1alpha1
kind: MultiClusterService
metadata: {name: web, namespace: default}
spec: {types: [CrossCluster], providerClusters: [{name: m1}], consumerClusters: [{name: m2}]}
---
`
	serving := strings.ReplaceAll(three, "{name: secrets, kind: Secret}",
		"{name: secrets, kind: Secret}, {name: services, kind: Service}")
	fleet := load(t, serving+policy("services", "[{apiVersion: v1, kind: Service}]",
		"{clusterAffinity: {clusterNames: [m3]}}")+
		"\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {selector: {app: web}}\n---\n")
	where := func(p Placed) string { return p.Policy + " in " + shares(p) }
	r := run(t, fleet, Change{Objects: objects(t, exposure)})
	if len(r.Workloads) != 1 || len(r.Warnings) != 0 {
		t.Fatalf("%+v, %q", r.Workloads, r.Warnings)
	}
	if got := where(r.Workloads[0].Before) + " → " +
		where(r.Workloads[0].After); got != "PropagationPolicy default/services in m3 →  in m1 m2" {
		t.Errorf("the Service goes from %s", got)
	}
	r = run(t, fleet, Change{Objects: objects(t, strings.Replace(exposure, "CrossCluster", "LoadBalancer", 1))})
	if w := r.Workloads[0]; w.Changed() {
		t.Errorf("a load balancer moves the Service: %+v", w)
	}
}

func TestScalingDownIgnoresTheFormerPin(t *testing.T) {
	clones := policy("clones", "[{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}]", equally) +
		strings.Replace(manifest("apps.kruise.io/v1alpha1", "CloneSet", "c", 6), "replicas: 6",
			"replicas: 6\n  scaleStrategy: {podsToDelete: [c-a]}", 1)
	recorded := settled(t, three+clones)
	for _, o := range recorded {
		if o.GetKind() == "ResourceBinding" {
			o.SetAnnotations(joined(o.GetAnnotations(),
				map[string]string{wellknown.PinnedScaleDownAnnotation: `{"from":6,"to":4,"clusters":{"m1":2}}`}))
		}
	}
	fleet, err := Load(recorded, "default")
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, fleet, Change{Scale: []Scale{scale(t, "cloneset/c=4")}})
	for _, c := range r.Workloads[0].After.Clusters {
		if c.Replicas == 0 {
			t.Errorf("the pin of an earlier change empties %s: %+v", c.Name, r.Workloads[0].After)
		}
	}
	if !slices.ContainsFunc(r.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "CloneSet default/c: the template determines the pods that leave")
	}) {
		t.Errorf("it warns %q", r.Warnings)
	}
}

func TestJoinedClusterIsRecordedForAutoscalersOfMembers(t *testing.T) {
	recorded := settled(t, cluster("m1", 10, "")+cluster("m2", 10, "")+policy("shop", "", equally)+deployment("web", 6))
	for _, o := range recorded {
		if o.GetKind() == "ResourceBinding" {
			o.SetAnnotations(joined(o.GetAnnotations(),
				map[string]string{wellknown.ScaledByMembersAnnotation: `{"m1":3,"m2":3}`}))
		}
	}
	fleet, err := Load(recorded, "default")
	if err != nil {
		t.Fatal(err)
	}
	fleet, touched, err := fleet.Apply(objects(t, cluster("m3", 10, "")+deployment("web", 9)), "default")
	if err != nil {
		t.Fatal(err)
	}
	s := newState(fleet, roomsOf(t, fleet), touched, time.Unix(1, 0))
	s.settle(t.Context())
	for _, b := range s.bindings {
		if got := b.GetAnnotations()[wellknown.ScaledByMembersAnnotation]; !strings.Contains(got, "m3") {
			t.Errorf("the binding is in %v, and records %s", b.BindingSpec().Clusters, got)
		}
	}
}
