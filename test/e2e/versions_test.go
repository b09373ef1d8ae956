package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

const (
	oldKruise = "apps.kruise.io/v1alpha1"
	newKruise = "apps.kruise.io/v1beta1"
)

// strategy is the update strategy of a CloneSet as a version of it says; in a cluster where it is not there yet,
// nothing.
func strategy(t *testing.T, c kit.Cluster, apiVersion, ns, name string) map[string]any {
	t.Helper()
	m, _ := kit.Field(c.Find(t, apiVersion, "CloneSet", ns, name), "spec", "updateStrategy").(map[string]any)
	return m
}

// kruiseServed waits for the hub to define the kinds, which a new one does in the seconds after it is ready.
func kruiseServed(t *testing.T) {
	t.Helper()
	kit.Eventually(t, "the hub defines OpenKruise", func() string {
		u := fleet.Hub.Find(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "workloadspreads.apps.kruise.io")
		conditions, _ := kit.Field(u, "status", "conditions").([]any)
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
				return ""
			}
		}
		return "not yet"
	})
}

func TestAnObjectIsReadAndWrittenInEitherVersion(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	kruiseServed(t)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 2, "example.com/shop:1",
		"\n  updateStrategy: {type: InPlaceIfPossible, partition: 50%, paused: true}"))
	want := map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"podUpdatePolicy": "InPlaceIfPossible",
		"partition": "50%", "paused": true, "maxUnavailable": "20%", "maxSurge": int64(0),
		"inPlaceUpdateStrategy": map[string]any{}}}
	if diff := cmp.Diff(want, strategy(t, fleet.Hub, newKruise, ns, "shop")); diff != "" {
		t.Errorf("as v1beta1 (-want +got):\n%s", diff)
	}

	// A client of v1beta1 says what v1alpha1 cannot, one of v1alpha1 changes something else.
	fleet.Hub.Change(t, newKruise, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		set(t, u, "OnDelete", "spec", "updateStrategy", "type")
	})
	fleet.Hub.Change(t, oldKruise, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		set(t, u, int64(1), "spec", "updateStrategy", "partition")
	})
	want = map[string]any{"type": "OnDelete", "rollingUpdate": map[string]any{"podUpdatePolicy": "InPlaceIfPossible",
		"partition": int64(1), "paused": true, "maxUnavailable": "20%", "maxSurge": int64(0),
		"inPlaceUpdateStrategy": map[string]any{}}}
	if diff := cmp.Diff(want, strategy(t, fleet.Hub, newKruise, ns, "shop")); diff != "" {
		t.Errorf("after both wrote, as v1beta1 (-want +got):\n%s", diff)
	}
	old := map[string]any{"type": "InPlaceIfPossible", "partition": int64(1), "paused": true, "maxUnavailable": "20%",
		"maxSurge": int64(0), "inPlaceUpdateStrategy": map[string]any{}}
	if diff := cmp.Diff(old, strategy(t, fleet.Hub, oldKruise, ns, "shop")); diff != "" {
		t.Errorf("after both wrote, as v1alpha1 (-want +got):\n%s", diff)
	}
}

// A user who applies one version owns fields that have other names in the other version, and keeps owning them.
func TestServerSideApplyKnowsOwnersOverVersions(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	kruiseServed(t)
	ns := fleet.Namespace(t)
	apply := func(owner, text string) error {
		u := kit.Object(t, text)
		return fleet.Hub.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner))
	}
	full := cloneSet(ns, "shop", 2, "example.com/shop:1", "\n  updateStrategy: {type: InPlaceIfPossible, partition: 1}")
	if err := apply("release", full); err != nil {
		t.Fatal(err)
	}
	fleet.Hub.RemoveAtEnd(t, kit.Object(t, full))
	head := fmt.Sprintf("{apiVersion: %s, kind: CloneSet, metadata: {name: shop, namespace: %s}, spec: ", newKruise, ns)
	if err := apply("operator", head+"{updateStrategy: {rollingUpdate: {partition: 2}}}}"); err == nil ||
		!strings.Contains(err.Error(), `conflict with "release"`) {
		t.Errorf("a partition that another owns was taken over: %v", err)
	}
	if err := apply("operator", head+"{updateStrategy: {rollingUpdate: {maxSurge: 1}}}}"); err != nil {
		t.Error(err)
	}
	if err := apply("release", cloneSet(ns, "shop", 2, "example.com/shop:1",
		"\n  updateStrategy: {type: InPlaceIfPossible}")); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"type": "InPlaceIfPossible", "maxSurge": int64(1), "partition": int64(0),
		"maxUnavailable": "20%", "inPlaceUpdateStrategy": map[string]any{}}
	if diff := cmp.Diff(want, strategy(t, fleet.Hub, oldKruise, ns, "shop")); diff != "" {
		t.Errorf("what its owner dropped has its default, what another owns is there (-want +got):\n%s", diff)
	}
}

func TestAPolicyMeansEveryVersion(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	kruiseServed(t)
	for policyVersion, template := range map[string]func(ns string) string{
		newKruise: func(ns string) string {
			return cloneSet(ns, "shop", 2, "example.com/shop:1", "\n  updateStrategy: {type: InPlaceIfPossible, partition: 1}")
		},
		oldKruise: func(ns string) string {
			return strings.Replace(cloneSet(ns, "shop", 2, "example.com/shop:1",
				"\n  updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 1}}"),
				oldKruise, newKruise, 1)
		},
	} {
		ns := fleet.Namespace(t)
		fleet.Hub.Apply(t, policy(ns, "p", policyVersion, "CloneSet", placedOn("m1")))
		fleet.Hub.Apply(t, template(ns))
		// m1 has OpenKruise 1.8, which knows v1alpha1 alone.
		kit.Eventually(t, "a policy for "+policyVersion, func() string {
			want := map[string]any{"type": "InPlaceIfPossible", "partition": int64(1)}
			got := strategy(t, fleet.Members["m1"], oldKruise, ns, "shop")
			for field := range got {
				if want[field] == nil {
					delete(got, field) // the member's defaults
				}
			}
			return cmp.Diff(want, got)
		})
	}
}

// Blocks of guides, word for word where it matters, to a server that refuses unknown fields.
func TestHubAcceptsOpenKruiseExamplesOfGuides(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	kruiseServed(t)
	ns := fleet.Namespace(t)
	const pod = `{metadata: {labels: {app: a}}, spec: {containers: [{name: app, image: "app:1"}]}}`
	for name, tc := range map[string]struct {
		text string
		path []string
		want any
	}{
		"pools and a bare pod": {
			fmt.Sprintf(`{apiVersion: %s, kind: UnitedDeployment, metadata: {name: pools, namespace: %s}, spec: {replicas: 2, selector: {matchLabels: {app: a}}, template: %s, topology: {pools: [{name: default, replicas: 2}]}}}`, oldKruise, ns, pod),
			[]string{"spec", "topology", "subsets"}, []any{map[string]any{"name": "default", "replicas": int64(2)}},
		},
		"a strategy of v1beta1 without a selector": {
			fmt.Sprintf(`{apiVersion: %s, kind: CloneSet, metadata: {name: strategy, namespace: %s}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: null}, template: %s}}`, oldKruise, ns, pod),
			[]string{"spec", "updateStrategy", "type"}, "ReCreate",
		},
		"a StatefulSet without a selector": {
			fmt.Sprintf(`{apiVersion: %s, kind: StatefulSet, metadata: {name: labels, namespace: %s}, spec: {replicas: 3, podManagementPolicy: OrderedReady, serviceName: s, template: %s}}`, newKruise, ns, pod),
			[]string{"spec", "selector", "matchLabels", "app"}, "a",
		},
		"a revision by its name": {
			fmt.Sprintf(`{apiVersion: %s, kind: SidecarSet, metadata: {name: %s}, spec: {selector: {matchLabels: {app: a}}, containers: [{name: s, image: "s:1", command: [sleep, "3600"]}], injectionStrategy: {revision: v1, policy: Always}}}`, oldKruise, ns),
			[]string{"spec", "injectionStrategy", "revision"}, map[string]any{"customVersion": "v1", "policy": "Always"},
		},
	} {
		got := fleet.Hub.Apply(t, tc.text)[0]
		if diff := cmp.Diff(tc.want, kit.Field(got, tc.path...)); diff != "" {
			t.Errorf("%s, at %s (-want +got):\n%s", name, strings.Join(tc.path, "."), diff)
		}
	}
	typo := kit.Object(t, fmt.Sprintf(
		`{apiVersion: %s, kind: CloneSet, metadata: {name: typo, namespace: %s}, spec: {replica: 3, selector: {}, template: %s}}`, newKruise, ns, pod))
	if err := fleet.Hub.Create(t.Context(), typo, client.FieldValidation("Strict")); err == nil ||
		!strings.Contains(err.Error(), `unknown field "spec.replica"`) {
		t.Errorf("a typo was answered by %v", err)
	}
}

// A member of the newest release, which serves v1beta1 alone, beside those of 1.8, which serve v1alpha1.
func TestEachMemberGetsAServedVersion(t *testing.T) {
	kit.Long(t)
	kruiseServed(t)
	m, member := ownMember(t, sim.Member{Name: "newest", Nodes: 2, OpenKruise: "1.10", StoredVersionsOnly: true})
	joined(t, m)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", oldKruise, "CloneSet", placedOn("m1", "newest")))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 2, "example.com/shop:1",
		"\n  updateStrategy: {type: InPlaceIfPossible, partition: 1}"))
	kit.Eventually(t, "m1 has it as v1alpha1, the other as v1beta1", func() string {
		switch {
		case strategy(t, fleet.Members["m1"], oldKruise, ns, "shop")["type"] != "InPlaceIfPossible":
			return "not in m1"
		case kit.Field(member.Find(t, newKruise, "CloneSet", ns, "shop"), "spec", "updateStrategy", "rollingUpdate",
			"podUpdatePolicy") != "InPlaceIfPossible":
			return "not in the newest"
		}
		return ""
	})

	// Fields that only v1beta1 has reach members that serve it; for the others the author gets a warning event.
	fleet.Hub.Change(t, newKruise, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		set(t, u, "OnDelete", "spec", "updateStrategy", "type")
	})
	kit.Eventually(t, "the member that can takes it", func() string {
		return cmp.Diff("OnDelete", strategy(t, member, newKruise, ns, "shop")["type"])
	})
	const why = `for cluster "m1": the cluster serves apps.kruise.io/v1alpha1: CloneSet of apps.kruise.io/v1alpha1 has no spec.updateStrategy.type`
	kit.Eventually(t, "an event reports the other", func() string {
		for _, messages := range fleet.Hub.Messages(t, "CloneSet", ns, "shop", workv1alpha2.EventSyncWorkFailed) {
			if strings.Contains(messages, why) {
				return ""
			}
		}
		return "no event says " + why
	})

	kit.Eventually(t, "the binding says so too", func() string {
		c := meta.FindStatusCondition(binding(t, ns, "shop-cloneset").Status.Conditions, workv1alpha2.VersionServed)
		if c == nil || c.Status != metav1.ConditionFalse ||
			!strings.Contains(c.Message, `cluster "m1": CloneSet of apps.kruise.io/v1alpha1 has no spec.updateStrategy.type`) {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	fleet.Hub.Change(t, newKruise, "CloneSet", ns, "shop", func(u *unstructured.Unstructured) {
		set(t, u, "RollingUpdate", "spec", "updateStrategy", "type")
		set(t, u, "yes", "metadata", "labels", "again")
	})
	kit.Eventually(t, "what both can say goes to both again", func() string {
		if got := kit.Field(fleet.Members["m1"].Find(t, oldKruise, "CloneSet", ns, "shop"), "metadata", "labels",
			"again"); got != "yes" {
			return fmt.Sprint("m1 has the label ", got)
		}
		if !meta.IsStatusConditionTrue(binding(t, ns, "shop-cloneset").Status.Conditions, workv1alpha2.VersionServed) {
			return "the condition is not true"
		}
		return ""
	})

	// The fleet's versions are there to be seen.
	kit.Eventually(t, "argosy get clusters tells versions", func() string {
		ctx, cancel := context.WithTimeout(t.Context(), kit.Timeout)
		defer cancel()
		out, err := fleet.Argosy(ctx, "get", "clusters", "-o", "wide")
		if err != nil {
			return fmt.Sprint(err, out)
		}
		seen := map[string]string{}
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 0 {
				seen[f[0]] = f[len(f)-1]
			}
		}
		if seen["NAME"] != "KRUISE" || seen["m1"] != "v1alpha1" || seen["newest"] != "v1beta1" {
			return "shown: " + out
		}
		return ""
	})
	for name, status := range map[string]string{"m1": "False", "newest": "True"} {
		kit.Eventually(t, name+" has the condition", func() string {
			for _, c := range clusterOf(t, name).Status.Conditions {
				if c.Type == "CurrentOpenKruise" {
					return cmp.Diff(status, string(c.Status))
				}
			}
			return "it has none"
		})
	}
}

func set(t *testing.T, u *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}
