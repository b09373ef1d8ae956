package autoscale

import (
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

func TestTheLabelFollowsTheAutoscalersAndAUsersStays(t *testing.T) {
	const (
		label = "resourcetemplate.karmada.io/retain-replicas"
		ours  = `argosy.io/scaled-by: HorizontalPodAutoscaler web`
		user  = `kubectl.kubernetes.io/last-applied-configuration: '{"metadata": {"labels": {"` + label + `": "true"}}}'`
	)
	for name, c := range map[string]struct {
		metadata    string
		autoscalers []string
		label, by   string // afterwards; "-" without a label
	}{
		"no autoscaler": {"", nil, "-", ""},
		"an autoscaler": {"", []string{"HorizontalPodAutoscaler web"}, "true", "HorizontalPodAutoscaler web"},
		"two": {"", []string{"HorizontalPodAutoscaler a", "ScaledObject b"}, "true",
			"HorizontalPodAutoscaler a, ScaledObject b"},
		"it is gone": {`labels: {` + label + `: "true"}, annotations: {` + ours + `}`, nil, "-", ""},
		"it was replaced": {`labels: {` + label + `: "true"}, annotations: {` + ours + `}`,
			[]string{"ScaledObject b"}, "true", "ScaledObject b"},
		"the label was removed": {`annotations: {` + ours + `}`, []string{"HorizontalPodAutoscaler web"}, "true",
			"HorizontalPodAutoscaler web"},
		"a user's label": {`labels: {` + label + `: "true"}`, []string{"HorizontalPodAutoscaler web"}, "true",
			""},
		"a user's, without one": {`labels: {` + label + `: "true"}`, nil, "true", ""},
		"a user wants none": {`labels: {` + label + `: "false"}`, []string{"HorizontalPodAutoscaler web"},
			"false", ""},
		"a user wants none any more": {`labels: {` + label + `: "false"}, annotations: {` + ours + `}`,
			[]string{"HorizontalPodAutoscaler web"}, "false", ""},
		"a user applied it since": {`labels: {` + label + `: "true"}, annotations: {` + ours + `, ` + user + `}`, nil,
			"true", ""},
	} {
		template := coretest.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, `+
			c.metadata+`}}`)
		before := template.DeepCopy()
		got := Mark(template, c.autoscalers)
		is, has := got.GetLabels()[label]
		if !has {
			is = "-"
		}
		if by := got.GetAnnotations()["argosy.io/scaled-by"]; is != c.label || by != c.by {
			t.Errorf("%s: the label is %s, by %q; want %s by %q", name, is, by, c.label, c.by)
		}
		if again := Mark(got, c.autoscalers); again != got {
			t.Errorf("%s: it changes again", name)
		}
		if got != template && fmt.Sprint(before) != fmt.Sprint(template) {
			t.Errorf("%s: the template was changed in place", name)
		}
	}
}

func TestAutoscalersOfAWorkloadAreFound(t *testing.T) {
	const claimed = `, labels: {propagationpolicy.karmada.io/permanent-id: id}, annotations: {propagationpolicy.karmada.io/namespace: shop, propagationpolicy.karmada.io/name: p}`
	const clone = `apps.kruise.io/v1alpha1, kind: CloneSet`
	for name, c := range map[string]struct {
		kind, metadata, ref, workload string
		want                          string
	}{
		"by kind and name": {"autoscaling/v2, kind: HorizontalPodAutoscaler", claimed,
			"apiVersion: apps/v1, kind: Deployment, name: web", "apps/v1, kind: Deployment",
			"[HorizontalPodAutoscaler web]"},
		"in another version": {"autoscaling/v1, kind: HorizontalPodAutoscaler", claimed,
			"apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web", clone, "[HorizontalPodAutoscaler web]"},
		"of another kind": {"autoscaling/v2, kind: HorizontalPodAutoscaler", claimed,
			"apiVersion: apps/v1, kind: StatefulSet, name: web", "apps.kruise.io/v1beta1, kind: StatefulSet", "[]"},
		"of another name": {"autoscaling/v2, kind: HorizontalPodAutoscaler", claimed,
			"apiVersion: apps/v1, kind: Deployment, name: api", "apps/v1, kind: Deployment", "[]"},
		"no policy propagates it": {"autoscaling/v2, kind: HorizontalPodAutoscaler", "",
			"apiVersion: apps/v1, kind: Deployment, name: web", "apps/v1, kind: Deployment", "[]"},
		"it is being deleted": {"autoscaling/v2, kind: HorizontalPodAutoscaler",
			claimed + `, deletionTimestamp: "2027-01-01T00:00:00Z"`, "apiVersion: apps/v1, kind: Deployment, name: web",
			"apps/v1, kind: Deployment", "[]"},
		"KEDA's, which names no kind": {"keda.sh/v1alpha1, kind: ScaledObject", claimed, "name: web",
			"apps/v1, kind: Deployment", "[ScaledObject web]"},
		"KEDA's, of a CloneSet": {"keda.sh/v1alpha1, kind: ScaledObject", claimed,
			"apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web", clone, "[ScaledObject web]"},
		"another kind with the field": {"example.com/v1, kind: Scaler", claimed,
			"apiVersion: apps/v1, kind: Deployment, name: web", "apps/v1, kind: Deployment", "[]"},
		"no policy propagates the workload": {"autoscaling/v2, kind: HorizontalPodAutoscaler", claimed,
			"apiVersion: apps/v1, kind: Deployment, name: web", "", "[]"},
		"the workload does not scale": {"autoscaling/v2, kind: HorizontalPodAutoscaler", claimed,
			"apiVersion: batch/v1, kind: Job, name: web", "batch/v1, kind: Job", "[]"},
		"it names nothing": {"autoscaling/v2, kind: HorizontalPodAutoscaler", claimed, "",
			"apps/v1, kind: Deployment", "[]"},
		"its API version is malformed": {"autoscaling/v2, kind: HorizontalPodAutoscaler", claimed,
			"apiVersion: a/b/c, kind: Deployment, name: web", "apps/v1, kind: Deployment", "[]"},
	} {
		a := coretest.Object(t,
			`{apiVersion: `+c.kind+`, metadata: {name: web, namespace: shop`+c.metadata+
				`}, spec: {scaleTargetRef: {`+c.ref+`}}}`)
		w := coretest.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}`)
		if c.workload != "" {
			w = coretest.Object(t, `{apiVersion: `+c.workload+`, metadata: {name: web, namespace: shop`+claimed+`}}`)
		}
		if got := fmt.Sprint(Propagated(w, []*unstructured.Unstructured{a}, nil)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Members do not get an autoscaler with an invalid annotation. One that they have keeps scaling.
func TestAutoscalersWithInvalidAnnotationsDoNotScale(t *testing.T) {
	const claim = `propagationpolicy.karmada.io/namespace: shop, propagationpolicy.karmada.io/name: p`
	w := coretest.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, `+
		`labels: {propagationpolicy.karmada.io/permanent-id: id}, annotations: {`+claim+`}}}`)
	for _, kind := range []string{"autoscaling/v2, kind: HorizontalPodAutoscaler",
		"keda.sh/v1alpha1, kind: ScaledObject"} {
		for annotation, valid := range map[string]bool{
			"argosy.io/rollout-scope: Fleet": true, "argosy.io/rollout-scope: Cluster": true,
			"argosy.io/rollout-scope: Galaxy": false, "argosy.io/rollout-scope: ''": false,
			"argosy.io/rollout-order: Galaxy": false, "argosy.io/auto-halt: 'maybe'": false,
		} {
			a := coretest.Object(t, `{apiVersion: `+kind+`, metadata: {name: web, namespace: shop, `+
				`labels: {propagationpolicy.karmada.io/permanent-id: id}, annotations: {`+claim+`, `+annotation+
				`}}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`)
			who := a.GetKind() + " web"
			for recorded, want := range map[string]bool{"": valid, "Other web": valid, who: true} {
				got := Propagated(w, []*unstructured.Unstructured{a}, []string{recorded})
				if fmt.Sprint(got) != map[bool]string{true: "[" + who + "]", false: "[]"}[want] {
					t.Errorf("%s with %s, recorded is %q: %v", who, annotation, recorded, got)
				}
			}
		}
	}
}

func TestReplicasFollowThePodsOfEachCluster(t *testing.T) {
	const fresh = `"observedGeneration":3,"generation":3,"resourceTemplateGeneration":7`
	pods := func(all, updated int) string {
		return fmt.Sprintf(`{"replicas":%d,"updatedReplicas":%d,%s}`, all, updated, fresh)
	}
	const healthy, unknown = workv1alpha1.ResourceHealthy, workv1alpha1.ResourceUnknown
	type report struct {
		status string
		health workv1alpha1.ResourceHealth
	}
	for name, c := range map[string]struct {
		kind   string // default: Deployment
		a, b   report
		change func(b *workv1alpha2.ResourceBinding)
		lost   string
		want   map[string]int32 // nil while they are not known
	}{
		"scaled up and down": {"", report{pods(5, 5), healthy}, report{pods(1, 1), healthy}, nil, "",
			map[string]int32{"a": 5, "b": 1}},
		"a CloneSet at its partition": {"apps.kruise.io/v1alpha1 CloneSet", report{pods(5, 2), healthy}, report{pods(3,
			3), healthy}, nil, "",
			map[string]int32{"a": 5, "b": 3}},
		"an Advanced StatefulSet": {"apps.kruise.io/v1beta1 StatefulSet", report{pods(4, 4), healthy}, report{pods(3, 3),
			healthy}, nil, "",
			map[string]int32{"a": 4, "b": 3}},
		"a StatefulSet": {"apps/v1 StatefulSet", report{pods(4, 4), healthy}, report{pods(3, 3), healthy}, nil, "",
			map[string]int32{"a": 4, "b": 3}},
		"a kind that counts replicas alone": {"apps/v1 ReplicaSet", report{`{"replicas":4,` + fresh + `}`, healthy},
			report{pods(3, 3), healthy}, nil, "", map[string]int32{"a": 4, "b": 3}},
		"pods are being created": {"", report{pods(2, 2), unknown}, report{pods(3, 3), healthy}, nil, "",
			map[string]int32{"a": 3, "b": 3}},
		"more are wanted, some wait for room": {"", report{pods(9, 9), unknown}, report{pods(3, 3), healthy}, nil, "",
			map[string]int32{"a": 9, "b": 3}},
		"a rollout with a surge": {"", report{pods(4, 2), unknown}, report{pods(3, 3), healthy}, nil, "",
			map[string]int32{"a": 3, "b": 3}},
		"scaled to zero": {"", report{`{` + fresh + `}`, healthy}, report{pods(3, 3), healthy}, nil,
			"", map[string]int32{"a": 1, "b": 3}},
		"the change has not arrived in b": {"", report{pods(5, 5), healthy},
			report{`{"replicas":1,"updatedReplicas":1,"observedGeneration":3,"generation":3,"resourceTemplateGeneration":6}`, healthy}, nil, "", nil},
		"the change is not observed in b": {"", report{pods(5, 5), healthy},
			report{`{"replicas":1,"updatedReplicas":1,"observedGeneration":2,"generation":3,"resourceTemplateGeneration":7}`, healthy}, nil, "", nil},
		"b has not reported": {"", report{pods(5, 5), healthy}, report{"", unknown}, nil, "", nil},
		"b does not respond": {"", report{pods(5, 5), healthy}, report{"", unknown}, nil, "b", map[string]int32{"a": 5,
			"b": 3}},
		"it is not placed yet": {"", report{pods(5, 5), healthy}, report{pods(3, 3), healthy},
			func(b *workv1alpha2.ResourceBinding) { b.Generation++ }, "", nil},
		"duplicated": {"", report{pods(5, 5), healthy}, report{pods(3, 3), healthy}, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ReplicaScheduling.ReplicaSchedulingType = policyv1alpha1.ReplicaSchedulingTypeDuplicated
		}, "", nil},
		"a cluster without replicas": {"", report{pods(5, 5), healthy}, report{"", unknown},
			func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[1].Replicas = 0 }, "", map[string]int32{"a": 5}},
		"in no cluster": {"", report{}, report{}, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil }, "", nil},
		"no replicas":   {"", report{}, report{}, func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 0 }, "", nil},
	} {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 2}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}
		if c.kind != "" {
			if _, err := fmt.Sscan(c.kind, &b.Spec.Resource.APIVersion, &b.Spec.Resource.Kind); err != nil {
				t.Fatal(err)
			}
		}
		b.Spec.Replicas, b.Status.SchedulerObservedGeneration = 6, 2
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 3}, {Name: "b", Replicas: 3}}
		b.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
		for cluster, r := range map[string]report{"a": c.a, "b": c.b} {
			if r.status != "" {
				b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{
					ClusterName: cluster, Applied: true, Health: r.health, Status: &runtime.RawExtension{Raw: []byte(r.status)}})
			}
		}
		if c.change != nil {
			c.change(b)
		}
		got, ok := Followed(b, 7, func(cluster string) bool { return cluster == c.lost })
		if ok != (c.want != nil) || ok && !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %t, want %v", name, got, ok, c.want)
		}
	}
}
