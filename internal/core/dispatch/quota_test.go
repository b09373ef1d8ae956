package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
)

// In a namespace with a quota, clusters get no more than their binding has.
func TestWorksHaveNoMoreThanTheQuotaPermits(t *testing.T) {
	const (
		none       = "placement: {}, clusters: [{name: eu}]"
		duplicated = "placement: {}, replicas: %d, replicaRequirements: {resourceRequest: {cpu: %q}}, clusters: [{name: eu, replicas: %d}]"
		divided    = "placement: {replicaScheduling: {replicaSchedulingType: Divided}}, replicas: %d, " +
			"replicaRequirements: {resourceRequest: {cpu: %q}}, clusters: [{name: eu, replicas: %d}]"
		workflow = `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: web, namespace: shop}, spec: {entrypoint: a,
			templates: [{name: a, container: {image: web, resources: {requests: {cpu: "2"}}}}, {name: b, container: {image: web, resources: {requests: {cpu: "1"}}}}]}}`
		ray = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: web, namespace: shop}, spec: {
			headGroupSpec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}},
			workerGroupSpecs: [{groupName: w, replicas: 2, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}}}]}}`
		rayHas = "placement: {}, clusters: [{name: eu}], components: [{name: ray-head, replicas: 1, replicaRequirements: {resourceRequest: {cpu: %q}}}, " +
			"{name: w, replicas: %d, replicaRequirements: {resourceRequest: {cpu: %q}}}]"
	)
	web := func(replicas int, cpu string) string {
		return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: %d, "+
			"template: {spec: {containers: [{name: c, resources: {requests: {cpu: %q}}}]}}}}", replicas, cpu)
	}
	has := fmt.Sprintf
	for name, c := range map[string]struct {
		template, spec string
		// was is the template of the existing Work; empty for none.
		was string
		// sidecars is true if the requirements of the binding, of an earlier template, have those of a SidecarSet.
		sidecars bool
		// refused is true if the binding has the annotation that a quota refused the template.
		refused bool
		// want are the replicas and the CPU of the pods in the Work, or "all" for the template as it is.
		want string
	}{
		"permitted": {template: web(2, "1"), spec: has(duplicated, 2, "1", 2), want: "2 1"},
		"duplicated, more replicas": {template: web(3, "1"), spec: has(duplicated, 3, "1", 2),
			was: web(2, "1"), want: "2 1"},
		"duplicated, more replicas not read yet": {template: web(3, "1"), spec: has(duplicated, 2, "1", 2),
			was: web(2, "1"), want: "2 1"},
		"duplicated, more than no replicas": {template: web(9, "1"), spec: has(duplicated, 9, "1", 0),
			was: web(0, "1"), want: "0 1"},
		"duplicated, more and larger": {template: web(9, "9"), spec: has(duplicated, 2, "1", 2),
			was: web(2, "1"), want: "2 1"},
		"duplicated, larger": {template: web(2, "9"), spec: has(duplicated, 2, "1", 2),
			was: web(2, "1"), want: "2 1"},
		"divided, more replicas": {template: web(3, "1"), spec: has(divided, 3, "1", 2),
			was: web(2, "1"), want: "2 1"},
		"divided, more and larger": {template: web(9, "9"), spec: has(divided, 2, "1", 2),
			was: web(2, "1"), want: "2 1"},
		"larger, and nothing there": {template: web(2, "9"), spec: has(divided, 2, "1", 2), want: "none"},
		"smaller":                   {template: web(2, "1"), spec: has(divided, 2, "9", 2), was: web(2, "9"), want: "2 1"},
		"larger by less than a sidecar requests": {template: web(2, "2"), spec: has(divided, 2, "2", 2),
			was: web(2, "1"), sidecars: true, want: "2 1"},
		"refused because of a new sidecar": {template: web(2, "1"), spec: has(divided, 2, "1", 2),
			was: web(2, "500m"), refused: true, want: "2 500m"},
		"required by another alone": {template: web(2, "1"), spec: "requiredBy: [{name: other, clusters: [{name: eu}]}]",
			want: "2 1"},
		"a binding of a user": {template: web(2, "1"),
			spec: `replicaRequirements: {resourceRequest: {cpu: "1"}}, clusters: [{name: eu}]`,
			want: "2 1"},
		"components":             {template: ray, spec: has(rayHas, "1", 2, "2"), want: "all"},
		"components, fewer pods": {template: ray, spec: has(rayHas, "1", 3, "2"), want: "all"},
		"components, more pods":  {template: ray, spec: has(rayHas, "1", 1, "2"), was: ray, want: "none"},
		"components, larger":     {template: ray, spec: has(rayHas, "500m", 2, "2"), was: ray, want: "none"},
		"components, one larger, the other smaller": {template: ray, spec: has(rayHas, "500m", 2, "3"),
			want: "all"},
		"a run in one cluster": {template: workflow, spec: "placement: {replicaScheduling: {replicaSchedulingType: Divided}}, replicas: 1, " +
			`replicaRequirements: {resourceRequest: {cpu: "2"}}, clusters: [{name: eu, replicas: 1}]`, want: "all"},
		"a larger run in one cluster": {template: workflow, spec: "placement: {replicaScheduling: {replicaSchedulingType: Divided}}, replicas: 1, " +
			`replicaRequirements: {resourceRequest: {cpu: "1"}}, clusters: [{name: eu, replicas: 1}]`, want: "none"},
		"no pods": {template: configMap, spec: none, want: "all"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, c.template, "{"+c.spec+"}")
			i := interpret.New(tiers.WithoutUsers()...)
			if c.was != "" {
				before := input(t, c.was, "clusters: [{name: eu}]")
				in.Existing = map[string]*workv1alpha1.Work{"eu": dispatch.Works(context.Background(), before, i)[0].Work}
			}
			note := map[string]string{}
			if c.sidecars {
				note[wellknown.SidecarsAnnotation], note[wellknown.TemplateDigestAnnotation] = "logs", "earlier"
			}
			if c.refused {
				note[wellknown.QuotaRefusedAnnotation] = propagate.Digest(in.Template)
			}
			in.Binding.SetAnnotations(note)
			in.Limited = true
			results := dispatch.Works(context.Background(), in, i)
			got := "none"
			if len(results) > 0 {
				if results[0].Err != nil {
					t.Fatal(results[0].Err)
				}
				m := manifest(t, results[0].Work)
				got = "all"
				if m.GetKind() == "Deployment" {
					containers := fields.Value(m.Object, "spec", "template", "spec", "containers").([]any)
					got = fmt.Sprint(number(t, m, "spec", "replicas"), " ",
						fields.Value(containers[0].(map[string]any), "resources", "requests", "cpu"))
				}
			}
			if got != c.want {
				t.Errorf("the cluster gets %s, want %s", got, c.want)
			}
			in.Limited = false
			if all := dispatch.Works(context.Background(), in, i); len(all) == 0 ||
				slices.ContainsFunc(all, func(r dispatch.Result) bool { return r.Err != nil }) {
				t.Errorf("without a quota it gets %v", all)
			}
		})
	}
}

// Clusters keep what they have, and are never scaled to 0, if the interpreter of a kind is new, fails, or cannot set
// replicas.
func TestClustersKeepReplicasThatTheBindingLacks(t *testing.T) {
	const (
		read   = `replicaResource: {luaScript: "function GetReplicas(obj) return obj.spec.wagons, {resourceRequest = {cpu = '1'}} end"}`
		revise = `, replicaRevision: {luaScript: "function ReviseReplica(obj, n) obj.spec.wagons = n return obj end"}`
		fails  = `replicaResource: {luaScript: "function GetReplicas(obj) if obj.spec.bad then error('no') end return obj.spec.wagons, {resourceRequest = {cpu = '1'}} end"}`
		never  = `replicaResource: {luaScript: "function GetReplicas(obj) error('no') end"}`
		has    = "placement: {%s}, replicas: %d, replicaRequirements: {resourceRequest: {cpu: '1'}}, clusters: [%s]"
		split  = "replicaScheduling: {replicaSchedulingType: Divided}"
	)
	train := func(fields string) string {
		return "{apiVersion: example.com/v1, kind: Train, metadata: {name: web, namespace: shop}, spec: {" + fields + "}}"
	}
	for name, c := range map[string]struct {
		rules, template, was, spec string
		// want are the wagons in the Work, and free those without a quota.
		want, free string
	}{
		"the kind was not read before": {read + revise, "wagons: 2", "wagons: 2",
			"placement: {}, clusters: [{name: eu}]", "2", "2"},
		"not before, and changed": {read + revise, "wagons: 9", "wagons: 2",
			"placement: {}, clusters: [{name: eu}]", "2", "9"},
		"read, and the quota refuses": {read + revise, "wagons: 2", "wagons: 2",
			fmt.Sprintf(has, "", 2, "{name: eu}"), "2", "2"},
		"read, refused, and changed": {read + revise, "wagons: 9", "wagons: 2",
			fmt.Sprintf(has, "", 9, "{name: eu}"), "2", "9"},
		"divided, and the quota refuses": {read + revise, "wagons: 2", "wagons: 2",
			fmt.Sprintf(has, split, 2, "{name: eu}"), "2", "2"},
		"divided, not before": {read + revise, "wagons: 2", "wagons: 2",
			"placement: {" + split + "}, clusters: [{name: eu}]", "2", "2"},
		"divided, and this cluster gets none": {read + revise, "wagons: 2", "wagons: 2",
			fmt.Sprintf(has, split, 2, "{name: eu}, {name: us, replicas: 2}"), "0", "0"},
		"scaled up from 0": {read + revise, "wagons: 9", "wagons: 0",
			fmt.Sprintf(has, "", 9, "{name: eu}"), "0", "9"},
		"divided, scaled up from 0": {read + revise, "wagons: 9", "wagons: 0",
			fmt.Sprintf(has, split, 9, "{name: eu}"), "0", "0"},
		"nothing there": {read + revise, "wagons: 9", "", fmt.Sprintf(has, "", 9, "{name: eu}"), "0", "9"},
		"the interpreter fails on every object": {never + revise, "wagons: 2", "wagons: 2",
			"placement: {}, clusters: [{name: eu}]", "kept", "2"},
		"on the template": {fails + revise, "wagons: 9, bad: true", "wagons: 2",
			fmt.Sprintf(has, "", 2, "{name: eu, replicas: 2}"), "kept", "9"},
		"it cannot set replicas, refused": {read, "wagons: 9", "wagons: 2",
			fmt.Sprintf(has, "", 9, "{name: eu, replicas: 2}"), "kept", "9"},
		"cannot, divided, refused": {read, "wagons: 9", "wagons: 2",
			fmt.Sprintf(has, split, 9, "{name: eu, replicas: 2}"), "kept", "9"},
		"cannot, permitted": {read, "wagons: 9", "wagons: 2",
			fmt.Sprintf(has, "", 9, "{name: eu, replicas: 9}"), "9", "9"},
		"cannot, divided, permitted": {read, "wagons: 9", "wagons: 2",
			fmt.Sprintf(has, split, 9, "{name: eu, replicas: 4}, {name: us, replicas: 5}"), "9", "9"},
		"cannot, fewer": {read, "wagons: 1", "wagons: 2",
			fmt.Sprintf(has, "", 1, "{name: eu, replicas: 2}"), "1", "1"},
		"cannot, nothing there": {read, "wagons: 9", "", fmt.Sprintf(has, "", 9, "{name: eu, replicas: 2}"), "kept", "9"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := &configv1alpha1.ResourceInterpreterCustomization{}
			if err := yaml.Unmarshal([]byte("{metadata: {name: trains}, spec: {target: {apiVersion: example.com/v1, kind: Train}, "+
				"customizations: {"+c.rules+"}}}"), rules); err != nil {
				t.Fatal(err)
			}
			i := tiers.Offline([]*configv1alpha1.ResourceInterpreterCustomization{rules})
			in := input(t, train(c.template), "{"+c.spec+"}")
			if c.was != "" {
				before := input(t, train(c.was), "clusters: [{name: eu}]")
				in.Existing = map[string]*workv1alpha1.Work{"eu": dispatch.Works(t.Context(), before, i)[0].Work}
			}
			for limited, want := range map[bool]string{true: c.want, false: c.free} {
				in.Limited = limited
				got := "kept"
				for _, r := range dispatch.Works(t.Context(), in, i) {
					if r.Cluster != "eu" {
						continue
					}
					if r.Err != nil {
						t.Fatal(r.Err)
					}
					got = fmt.Sprint(number(t, manifest(t, r.Work), "spec", "wagons"))
				}
				if got != want {
					t.Errorf("with a quota %v, the cluster gets %s, want %s", limited, got, want)
				}
			}
		})
	}
}

// A template that the interpreter cannot read brings neither its pods nor its replicas to clusters.
func TestUnreadTemplateGrowsNothing(t *testing.T) {
	clones := func(replicas int, cpu string) string {
		return fmt.Sprintf("{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web, namespace: shop}, spec: "+
			"{replicas: %d, template: {spec: {containers: [{name: c, resources: {requests: {cpu: %s}}}]}}}}", replicas, cpu)
	}
	i := interpret.New(tiers.WithoutUsers()...)
	for spec, want := range map[string]int64{
		"placement: {}, replicas: 2, replicaRequirements: {resourceRequest: {cpu: '1'}}, clusters: [{name: eu, replicas: 2}]": 2,
		"placement: {}, clusters: [{name: eu}]": 2,
	} {
		in := input(t, clones(9, "[much]"), "{"+spec+"}")
		before := input(t, clones(2, "1"), "clusters: [{name: eu}]")
		in.Existing = map[string]*workv1alpha1.Work{"eu": dispatch.Works(t.Context(), before, i)[0].Work}
		in.Limited = true
		for _, r := range dispatch.Works(t.Context(), in, i) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if got := number(t, manifest(t, r.Work), "spec", "replicas"); got != want {
				t.Errorf("%s: the cluster gets %d replicas, want %d", spec, got, want)
			}
		}
	}
}
