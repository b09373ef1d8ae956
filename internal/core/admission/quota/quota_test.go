package quota

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// amounts parses "cpu=2 memory=1Gi".
func amounts(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for field := range strings.FieldsSeq(text) {
		name, quantity, _ := strings.Cut(field, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return list
}

// spec is one with replicas by cluster as "m1=2 m2=1", each of which requests some.
func spec(requests, clusters string) *workv1alpha2.ResourceBindingSpec {
	return &workv1alpha2.ResourceBindingSpec{Clusters: coretest.Targets(clusters),
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: amounts(requests)}}
}

func limited(name, overall string) policyv1alpha1.FederatedResourceQuota {
	return policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: policyv1alpha1.FederatedResourceQuotaSpec{Overall: amounts(overall)}}
}

func TestQuotasRefuseGrowthOnly(t *testing.T) {
	two := []policyv1alpha1.FederatedResourceQuota{limited("a", "cpu=4"), limited("b", "cpu=10 memory=2Gi")}
	for name, tc := range map[string]struct {
		quotas  []policyv1alpha1.FederatedResourceQuota
		others  string
		was, is *workv1alpha2.ResourceBindingSpec
		want    string
	}{
		"no quota":                {nil, "cpu=99", nil, spec("cpu=1", "m1=9"), ""},
		"a new binding that fits": {two, "cpu=2", nil, spec("cpu=1", "m1=2"), ""},
		"a new binding that does not": {two, "cpu=2", nil, spec("cpu=1", "m1=2 m2=1"),
			"FederatedResourceQuota(shop/a) exceeded for resource cpu: requested sum 5, limit 4."},
		"a new binding without clusters": {two, "cpu=99", nil, spec("cpu=1", ""), ""},
		"the other of two quotas": {two, "memory=1Gi", nil, spec("cpu=1 memory=1Gi", "m1=2"),
			"FederatedResourceQuota(shop/b) exceeded for resource memory: requested sum 3Gi, limit 2Gi."},
		"a resource without a limit": {two, "", nil, spec("example.com/gpu=9", "m1=9"), ""},
		"more replicas": {two, "cpu=2", spec("cpu=1", "m1=2"), spec("cpu=1", "m1=3"),
			"FederatedResourceQuota(shop/a) exceeded for resource cpu: requested sum 5, limit 4."},
		"larger requests": {two, "cpu=2", spec("cpu=1", "m1=2"), spec("cpu=1100m", "m1=2"),
			"FederatedResourceQuota(shop/a) exceeded for resource cpu: requested sum 4200m, limit 4."},
		"a move to another cluster":                  {two, "cpu=9", spec("cpu=1", "m1=2"), spec("cpu=1", "m2=2"), ""},
		"fewer replicas above the limit":             {two, "cpu=9", spec("cpu=1", "m1=3"), spec("cpu=1", "m1=2"), ""},
		"an unrelated change above the limit":        {two, "cpu=9", spec("cpu=1", "m1=3"), spec("cpu=1", "m1=3"), ""},
		"another resource grows above the limit":     {two, "cpu=9", spec("cpu=1", "m1=3"), spec("cpu=1 memory=1Mi", "m1=3"), ""},
		"a deletion of all clusters above the limit": {two, "cpu=9", spec("cpu=1", "m1=3"), spec("cpu=1", ""), ""},
		"clusters again after all were lost": {two, "cpu=9", spec("cpu=1", ""), spec("cpu=1", "m1=3"),
			"FederatedResourceQuota(shop/a) exceeded for resource cpu: requested sum 12, limit 4."},
		"a limit of nothing": {[]policyv1alpha1.FederatedResourceQuota{limited("none", "cpu=0")}, "", nil,
			spec("cpu=1", "m1=1"), "FederatedResourceQuota(shop/none) exceeded for resource cpu: requested sum 1, limit 0."},
	} {
		err := Check(tc.quotas, amounts(tc.others), tc.was, tc.is)
		var exceeded *ExceededError
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: refused: %v", name, err)
		case tc.want != "" && (!errors.As(err, &exceeded) || exceeded.Error() != tc.want):
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		case tc.want != "" && !propagate.Grows(tc.was, tc.is):
			t.Errorf("%s: it is refused and does not grow", name)
		}
	}
}

func TestRefusalIsKarmadas(t *testing.T) {
	err := Check([]policyv1alpha1.FederatedResourceQuota{limited("a", "cpu=1")}, amounts("cpu=500m"), nil,
		spec("cpu=1", "m1=1"))
	const want = `admission webhook "resourcebinding.karmada.io" denied the request: FederatedResourceQuota(shop/a) exceeded for resource cpu: requested sum 1500m, limit 1.`
	if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Message != want || Denied(err).Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if reason := apierrors.ReasonForError(err); reason != "QuotaExceeded" || !apierrors.IsForbidden(err) {
		t.Errorf("the API server answers %s, forbidden %v", reason, apierrors.IsForbidden(err))
	}
	var exceeded *ExceededError
	errors.As(err, &exceeded)
	for _, figure := range []string{"needs 1 ", "use 500m of 1", "overall.cpu", "to 1500m"} {
		if help := exceeded.Help(); !strings.Contains(help, figure) {
			t.Errorf("%q lacks %q", help, figure)
		}
	}
}

func TestRaisedLimitsAndFreedResourcesEase(t *testing.T) {
	state := func(overall, used string) *policyv1alpha1.FederatedResourceQuota {
		q := limited("a", overall)
		q.Status.OverallUsed = amounts(used)
		return &q
	}
	for name, tc := range map[string]struct {
		was, is *policyv1alpha1.FederatedResourceQuota
		want    bool
	}{
		"nothing":             {state("cpu=1", "cpu=1"), state("cpu=1", "cpu=1"), false},
		"a lower limit":       {state("cpu=2", "cpu=1"), state("cpu=1", "cpu=1"), false},
		"a new limit":         {state("cpu=2", ""), state("cpu=2 memory=1", ""), false},
		"more is used":        {state("cpu=2", "cpu=1"), state("cpu=2", "cpu=2"), false},
		"a higher limit":      {state("cpu=1", "cpu=1"), state("cpu=2", "cpu=1"), true},
		"a limit is gone":     {state("cpu=1 memory=1", ""), state("memory=1", ""), true},
		"less is used":        {state("cpu=2", "cpu=2"), state("cpu=2", "cpu=1"), true},
		"nothing is used now": {state("cpu=2", "cpu=2"), state("cpu=2", ""), true},
	} {
		if got := Eases(tc.was, tc.is); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTemplateAdviceHasTheFigures(t *testing.T) {
	q := limited("team", "cpu=4 memory=1Gi")
	q.Status.OverallUsed = amounts("cpu=3")
	quotas := []policyv1alpha1.FederatedResourceQuota{q}
	for name, tc := range map[string]struct {
		was, is string
		want    []string
	}{
		"fits":              {"", "cpu=1", nil},
		"shrinks":           {"cpu=3", "cpu=2", nil},
		"moves within":      {"cpu=3", "cpu=4", nil},
		"grows too much":    {"cpu=3", "cpu=5", []string{"team", "shop", "limits cpu to 4", "3 is in use", "2 more"}},
		"a new one":         {"", "memory=2Gi", []string{"limits memory to 1Gi", "0 is in use", "2Gi more"}},
		"no quota resource": {"", "example.com/gpu=9", nil},
	} {
		got := strings.Join(TemplateAdvice(quotas, amounts(tc.was), amounts(tc.is)), "\n")
		if (got == "") != (tc.want == nil) {
			t.Errorf("%s: %q", name, got)
		}
		for _, figure := range tc.want {
			if !strings.Contains(got, figure) {
				t.Errorf("%s: %q lacks %q", name, got, figure)
			}
		}
	}
}

func ids() func() string {
	n := 0
	return func() string { n++; return fmt.Sprint("id-", n) }
}

func TestStaticAssignmentsBecomeWorks(t *testing.T) {
	q := limited("team", "cpu=9")
	q.Spec.StaticAssignments = []policyv1alpha1.StaticClusterAssignment{
		{ClusterName: "m1", Hard: amounts("cpu=2")}, {ClusterName: "away", Hard: amounts("cpu=3")},
		{ClusterName: "m1", Hard: amounts("cpu=4")}, {ClusterName: "m2", Hard: amounts("cpu=1")}}
	here := func(cluster string) bool { return cluster != "away" }
	want, gone, err := Works(&q, nil, here, ids())
	if err != nil || len(want) != 2 || len(gone) != 0 {
		t.Fatalf("got %v, deletes %v: %v", want, gone, err)
	}
	w := want[0]
	if w.Namespace != "karmada-es-m1" || w.Name != "team-74b45895c8" && !strings.HasPrefix(w.Name, "team-") {
		t.Errorf("the Work is %s/%s", w.Namespace, w.Name)
	}
	if w.Labels["federatedresourcequota.karmada.io/namespace"] != "shop" ||
		w.Labels["federatedresourcequota.karmada.io/name"] != "team" {
		t.Errorf("its labels are %v", w.Labels)
	}
	m, err := execute.Manifest(w)
	if err != nil {
		t.Fatal(err)
	}
	if hard, _ := json.Marshal(m.Object["spec"]); m.GetKind() != "ResourceQuota" || m.GetName() != "team" ||
		m.GetNamespace() != "shop" || string(hard) != `{"hard":{"cpu":"2"}}` {
		t.Errorf("it brings %v", m.Object)
	}

	// The next time, the Works keep their ids and names, and those of other clusters go.
	q.Spec.StaticAssignments = q.Spec.StaticAssignments[:1]
	want[0].Name = "team-longer"
	again, gone, err := Works(&q, want, here, ids())
	if err != nil || len(again) != 1 || again[0].Name != "team-longer" ||
		again[0].Labels[workv1alpha2.WorkPermanentIDLabel] != "id-1" {
		t.Errorf("the next time it is %v (%v)", again, err)
	}
	if len(gone) != 1 || gone[0].Namespace != "karmada-es-m2" {
		t.Errorf("it deletes %v", gone)
	}
}

func TestStatusHasUsageOfNamespaceAndClusters(t *testing.T) {
	q := limited("team", "cpu=9 memory=1Gi")
	reporting := func(cluster, status string, applied metav1.ConditionStatus) *workv1alpha1.Work {
		w := execute.NewWork(cluster, "team", "")
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: applied}}
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(status)}}}
		return w
	}
	ending := reporting("m6", `{}`, "True")
	ending.DeletionTimestamp = new(metav1.Now())
	silent := execute.NewWork("m7", "team", "")
	silent.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: "True"}}
	got := Status(&q, amounts("cpu=3 example.com/gpu=1"), []*workv1alpha1.Work{
		reporting("m2", `{"hard":{"cpu":"2"},"used":{"cpu":"1500m"}}`, "True"),
		reporting("m1", `{"hard":{"cpu":"1"},"used":{"cpu":"0"}}`, "True"),
		reporting("m3", `{}`, "False"), reporting("m4", `[]`, "True"), ending, silent})
	want := policyv1alpha1.FederatedResourceQuotaStatus{
		Overall: amounts("cpu=9 memory=1Gi"), OverallUsed: amounts("cpu=3"),
		AggregatedStatus: []policyv1alpha1.ClusterQuotaStatus{
			{ClusterName: "m1", ResourceQuotaStatus: corev1.ResourceQuotaStatus{Hard: amounts("cpu=1"), Used: amounts("cpu=0")}},
			{ClusterName: "m2", ResourceQuotaStatus: corev1.ResourceQuotaStatus{Hard: amounts("cpu=2"),
				Used: amounts("cpu=1500m")}}}}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
