package autoscale

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

func TestEachClusterNeedsAReplica(t *testing.T) {
	few := spec()
	few.MaxReplicas = 2
	if _, _, err := Shares(few, holdings(map[string]int32{"a": 1, "b": 1, "c": 1}), nil, Window{}); err == nil ||
		!strings.Contains(err.Error(), "maxReplicas is 2, but the workload is in 3 clusters") {
		t.Errorf("three clusters for two replicas: %v", err)
	}
}

// holdings are clusters whose room is unknown.
func holdings(replicas map[string]int32) map[string]Holding {
	in := map[string]Holding{}
	for name, n := range replicas {
		in[name] = unknown(n)
	}
	return in
}

func TestSharesStayUntilBoundsOrClustersChange(t *testing.T) {
	f := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	f.Spec = *spec()
	f.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
		Name: "web"}
	f.Spec.MaxReplicas = 12
	works := map[string]*workv1alpha1.Work{}
	shares := func(replicas map[string]int32) map[string]Share {
		got, _, err := Shares(&f.Spec, holdings(replicas), works, Window{})
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range got {
			w, err := Work(f, name, s, "id")
			if err != nil {
				t.Fatal(err)
			}
			works[name] = w
		}
		return got
	}
	if got := shares(map[string]int32{"a": 2, "b": 1}); got["a"].Max != 8 || got["b"].Max != 4 {
		t.Fatalf("at first %v", got)
	}
	if got := shares(map[string]int32{"a": 2, "b": 4}); got["a"].Max != 8 || got["b"].Max != 4 {
		t.Errorf("the autoscaler of b scaled, and the shares became %v", got)
	}
	if got := shares(map[string]int32{"a": 2, "b": 4, "c": 6}); got["a"].Max != 2 || got["b"].Max != 4 ||
		got["c"].Max != 6 {
		t.Errorf("with another cluster %v", got)
	}
	f.Spec.MaxReplicas = 24
	if got := shares(map[string]int32{"a": 2, "b": 4, "c": 6}); got["a"].Max != 4 || got["c"].Max != 12 {
		t.Errorf("with another maximum %v", got)
	}
	if again, err := Work(f, "a", shares(map[string]int32{"a": 2, "b": 4, "c": 6})["a"], "id"); err != nil ||
		string(again.Spec.Workload.Manifests[0].Raw) != string(works["a"].Spec.Workload.Manifests[0].Raw) {
		t.Errorf("the same share makes another Work: %v", err)
	}

	// While they are frozen, other bounds change nothing, and other clusters share the same bounds.
	before := shares(map[string]int32{"a": 2, "b": 4, "c": 6})
	changed := f.Spec
	changed.MinReplicas, changed.MaxReplicas = nil, 60
	for _, c := range []struct {
		replicas map[string]int32
		want     map[string]Share
	}{{map[string]int32{"a": 9, "b": 1, "c": 1}, before}, {map[string]int32{"a": 3, "d": 9}, nil}} {
		got, _, err := Shares(Frozen(&changed, c.replicas, works), holdings(c.replicas), works, Window{Frozen: true})
		if err != nil {
			t.Fatal(err)
		}
		var most int32
		for _, s := range got {
			most += s.Max
		}
		if most != 24 || c.want != nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("frozen, with %v, the shares are %v", c.replicas, got)
		}
	}
	leaving := works["a"].DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{}
	for name, c := range map[string]struct {
		replicas map[string]int32
		works    map[string]*workv1alpha1.Work
	}{"without autoscalers": {map[string]int32{"a": 1}, nil}, "in other clusters": {map[string]int32{"x": 1}, works},
		"while one is deleted": {map[string]int32{"a": 1}, map[string]*workv1alpha1.Work{"a": leaving}}} {
		if got := Frozen(&changed, c.replicas, c.works); got.MaxReplicas != 60 {
			t.Errorf("%s, the frozen maximum is %d", name, got.MaxReplicas)
		}
	}

	// What the autoscalers make of it.
	made := shares(map[string]int32{"a": 2, "b": 4, "c": 6})
	report := func(cluster string, s autoscalingv2.HorizontalPodAutoscalerStatus) {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		works[cluster].Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: raw}}}
	}
	active := []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingActive, Status: "True"}}
	report("a", autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 2, DesiredReplicas: 4, Conditions: active})
	report("b", autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 4,
		Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingActive, Status: "False",
			Message: "no metrics"}}})
	current, desired, scaling := Sum(made, map[string]int32{"a": 2, "b": 4, "c": 6},
		map[string]*workv1alpha1.Work{"a": works["a"], "b": works["b"]})
	if current["a"] != 2 || desired["a"] != 4 || desired["b"] != 4 || desired["c"] != 6 {
		t.Errorf("current %v, desired %v", current, desired)
	}
	report("a", autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: math.MaxInt32, DesiredReplicas: math.MaxInt32,
		Conditions: active})
	if _, desired, _ := Sum(made, map[string]int32{"a": 2, "b": 4, "c": 6}, works); desired["a"] != made["a"].Max {
		t.Errorf("a wants %d, but its share ends at %d", desired["a"], made["a"].Max)
	}
	if got := Total(map[string]int32{"a": math.MaxInt32, "b": math.MaxInt32}); got != math.MaxInt32 {
		t.Errorf("all together are %d", got)
	}
	for _, want := range []string{"cluster b: no metrics", "cluster c: its autoscaler has no status yet"} {
		if !strings.Contains(scaling.Message, want) || scaling.Status != "True" {
			t.Errorf("%s %s, want %q in it", scaling.Status, scaling.Message, want)
		}
	}
}
