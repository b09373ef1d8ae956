package admission

import (
	"fmt"
	"github.com/argosy-io/argosy/test/kit/membertest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A misspelt name selects nothing: a warning suggests the nearest name.
func TestMissingNamesInPolicyAreWarnedOf(t *testing.T) {
	const (
		own      = "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: shop}, spec: "
		cluster  = "{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: p}, spec: "
		override = "{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: p, namespace: shop}, spec: "
		sets     = "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]"
	)
	fleet := []string{
		"{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: member1}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: clonesets.apps.kruise.io}, spec: {group: apps.kruise.io, names: {kind: CloneSet}, versions: [{name: v1beta1, served: true}]}}",
	}
	for story, c := range map[string]struct {
		policy, as string
		hub        []string
		want       []string
	}{
		"what is there": {own + "{" + sets + ", placement: {clusterAffinity: {clusterNames: [member1]}}}}", "admin", fleet,
			nil},
		"a cluster with a dash": {own + "{" + sets + ", placement: {clusterAffinity: {clusterNames: [member-1]}}}}", "admin",
			fleet,
			[]string{`spec.placement.clusterAffinity.clusterNames[0]: no cluster is named "member-1"; did you mean member1?`}},
		"to one who may not list clusters, no name is told": {own + "{" + sets +
			", placement: {clusterAffinity: {clusterNames: [member-1]}}}}", "ann", fleet,
			[]string{`no cluster is named "member-1"; it has no effect until there is one`}},
		"each name once, wherever it is": {own + "{" + sets +
			", placement: {clusterAffinities: [{affinityName: a, clusterNames: [eu]}, {affinityName: b, exclude: [eu, us]}]}}}",
			"admin", fleet,
			[]string{`clusterAffinities[0].clusterNames[0]: no cluster is named "eu"; it has no effect`,
				`clusterAffinities[1].exclude[1]: no cluster is named "us"`}},
		"before the first cluster": {own + "{" + sets + ", placement: {clusterAffinity: {clusterNames: [member1]}}}}",
			"admin", fleet[1:], nil},
		"a kind of Kubernetes": {own + "{resourceSelectors: [{apiVersion: apps/v1, kind: Deploymnet, name: web}], placement: {}}}", "admin", fleet,
			[]string{`spec.resourceSelectors[0]: the hub serves no kind Deploymnet in apps/v1; did you mean Deployment?`}},
		"a kind that is defined": {own + "{resourceSelectors: [{apiVersion: apps.kruise.io/v1beta1, kind: ClonedSet, name: web}], placement: {}}}", "admin", fleet,
			[]string{`no kind ClonedSet in apps.kruise.io/v1beta1; did you mean CloneSet?`}},
		"a group": {own + "{resourceSelectors: [{apiVersion: app/v1, kind: Deployment, name: web}], placement: {}}}", "admin",
			fleet,
			[]string{`no kind Deployment in app/v1; did you mean Deployment in apps/v1?`}},
		"a kind of another group": {own +
			"{resourceSelectors: [{apiVersion: apps/v1, kind: Clonesets, name: web}], placement: {}}}", "admin", fleet,
			[]string{`no kind Clonesets in apps/v1; did you mean CloneSet in apps.kruise.io/v1beta1?`}},
		"a kind that was defined a moment ago": {own +
			"{resourceSelectors: [{apiVersion: example.com/v1, kind: Widget, name: web}], placement: {}}}", "admin",
			append([]string{"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {group: example.com, names: {kind: Widget}, versions: [{name: v1, served: true}]}}"}, fleet...), nil},
		"a kind in several selectors": {own +
			"{resourceSelectors: [{apiVersion: apps/v1, kind: Deploymnet, name: web}, {apiVersion: apps/v1, kind: Deploymnet, name: api}], placement: {}}}", "admin", fleet,
			[]string{`spec.resourceSelectors[0]: the hub serves no kind Deploymnet in apps/v1; did you mean Deployment?`}},
		"a kind that is to come": {own + "{resourceSelectors: [{apiVersion: example.com/v1, kind: Locomotive, name: web}], placement: {}}}", "admin", fleet,
			[]string{`no kind Locomotive in example.com/v1; it has no effect until there is one`}},
		"a namespace": {cluster + "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: shp}], placement: {}}}", "admin", fleet,
			[]string{`spec.resourceSelectors[0].namespace: the hub has no namespace "shp"; did you mean shop?`}},
		"whether a namespace is there is told to those who may see it": {cluster +
			"{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: shp}], placement: {}}}",
			"cpp-author", fleet, nil},
		"an override": {override + "{" + sets +
			", overrideRules: [{targetCluster: {clusterNames: [menber1]}, overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]}}", "admin", fleet,
			[]string{`spec.overrideRules[0].targetCluster.clusterNames[0]: no cluster is named "menber1"; did you mean member1?`}},
		"the clusters of a MultiClusterService": {"{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: web, namespace: shop}, spec: {types: [CrossCluster], providerClusters: [{name: member1}], consumerClusters: [{name: menber1}]}}", "admin", fleet,
			[]string{`spec.consumerClusters[0].name: no cluster is named "menber1"; did you mean member1?`}},
	} {
		t.Run(story, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				var objects []*unstructured.Unstructured
				for _, text := range c.hub {
					objects = append(objects, object(t, text))
				}
				h := newHub(t, objects...)
				h.mayCreateCPP["cpp-author"] = true
				stored, warnings, err := h.write(c.as, object(t, c.policy), nil)
				if err != nil || len(warnings) != len(c.want) {
					t.Fatalf("warned is %q, %v, want %q", warnings, err, c.want)
				}
				for i, want := range c.want {
					if !strings.Contains(warnings[i], want) {
						t.Errorf("warned is %q, want %q", warnings[i], want)
					}
				}
				if _, again, err := h.write(c.as, stored.DeepCopy(), stored); err != nil || len(again) > 0 {
					t.Errorf("warned again, of what did not change: %q, %v", again, err)
				}
			})
		})
	}
}

// A policy may have very many selectors, and each costs a look at what the hub serves.
func TestNumberOfCheckedKindsIsLimited(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		var selectors []string
		for i := range 2 * namedMost {
			selectors = append(selectors, fmt.Sprintf("{apiVersion: example.com/v1, kind: Kind%d}", i))
		}
		h := newHub(t)
		_, warnings, err := h.write("admin",
			object(t, "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: shop}, spec: {resourceSelectors: ["+strings.Join(selectors, ", ")+"], placement: {}}}"), nil)
		missing := 0
		for _, w := range warnings {
			if strings.Contains(w, "the hub serves no kind") {
				missing++
			}
		}
		if err != nil || missing != namedMost {
			t.Errorf("warned is of %d kinds, want %d: %v", missing, namedMost, err)
		}
	})
}
