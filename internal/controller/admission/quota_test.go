package admission

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
)

const quotaOfShop = `{apiVersion: policy.karmada.io/v1alpha1, kind: FederatedResourceQuota, metadata: {name: team, namespace: shop},
	spec: {overall: {cpu: "4"}}, status: {overall: {cpu: "4"}, overallUsed: {cpu: "3"}}}`

// placedBinding is one in a cluster with replicas that request one CPU each.
func placedBinding(t *testing.T, name, replicas string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: `+name+`, namespace: shop},
		spec: {resource: {apiVersion: apps/v1, kind: Deployment, name: `+name+`, namespace: shop},
		replicaRequirements: {resourceRequest: {cpu: "1"}}, clusters: [{name: m1, replicas: `+replicas+`}]}}`)
}

func TestBindingsOverAQuotaAreRefused(t *testing.T) {
	hub := newHub(t, object(t, quotaOfShop), placedBinding(t, "a", "2"), placedBinding(t, "b", "1"))
	_, _, err := hub.write("admin", placedBinding(t, "c", "2"), nil)
	if err == nil || apierrors.ReasonForError(err) != "QuotaExceeded" || !strings.Contains(err.Error(),
		"FederatedResourceQuota(shop/team) exceeded for resource cpu: requested sum 5, limit 4.") {
		t.Errorf("a new binding over the quota: %v", err)
	}
	old := object(t, `{apiVersion: work.karmada.io/v1alpha1, kind: ResourceBinding, metadata: {name: c, namespace: shop},
		spec: {resource: {apiVersion: apps/v1, kind: Deployment, name: c, namespace: shop, resourcePerReplicas: {cpu: "2"}}, clusters: [{name: m1, replicas: 1}]}}`)
	hub.refuses("admin", old, nil, "requested sum 5")
	hub.refuses("admin", placedBinding(t, "b", "3"), placedBinding(t, "b", "1"), "requested sum 5")
	for name, write := range map[string][2]*unstructured.Unstructured{
		"a new one that fits":       {placedBinding(t, "c", "1")},
		"growth up to the limit":    {placedBinding(t, "b", "2"), placedBinding(t, "b", "1")},
		"shrinking above the limit": {placedBinding(t, "b", "8"), placedBinding(t, "b", "9")},
	} {
		if _, _, err := hub.write("admin", write[0], write[1]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The hub's controllers check before they write, and the quotas may be off.
	if _, _, err := hub.write(user.APIServerUser, placedBinding(t, "c", "9"), nil); err != nil {
		t.Errorf("the hub itself: %v", err)
	}
	off := newHubWith(t, Options{QuotasOff: true}, object(t, quotaOfShop))
	if _, _, err := off.write("admin", placedBinding(t, "c", "9"), nil); err != nil {
		t.Errorf("without enforcement: %v", err)
	}
}

func TestTemplatesOverAQuotaAreWarnedAbout(t *testing.T) {
	policy := object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: shop,
		labels: {propagationpolicy.karmada.io/permanent-id: some}},
		spec: {resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, namespace: shop, name: web}]}}`)
	workload := func(name, replicas string) *unstructured.Unstructured {
		return object(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: `+name+`, namespace: shop},
			spec: {replicas: `+replicas+`, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
			spec: {containers: [{name: c, image: web, resources: {requests: {cpu: "1"}}}]}}}}`)
	}
	const warned = "limits cpu to 4, and 3 is in use: this asks for at least 2 more"
	advice := func(h *hub, u string, obj, old *unstructured.Unstructured) (*unstructured.Unstructured, string) {
		t.Helper()
		stored, warnings, err := h.write(u, obj, old)
		if err != nil {
			t.Fatal(err)
		}
		return stored, strings.Join(warnings, "\n")
	}
	hub := newHub(t, object(t, quotaOfShop), policy)
	stored, text := advice(hub, "admin", workload("web", "2"), nil)
	if !strings.Contains(text, warned) {
		t.Errorf("a new workload: %q", text)
	}
	next := workload("web", "4")
	next.SetLabels(stored.GetLabels())
	next.SetAnnotations(stored.GetAnnotations())
	if _, text = advice(hub, "admin", next, stored); !strings.Contains(text, warned) {
		t.Errorf("more replicas: %q", text)
	}
	if _, text = advice(hub, "admin", stored, next); strings.Contains(text, "FederatedResourceQuota") {
		t.Errorf("fewer replicas: %q", text)
	}
	if _, text = advice(hub, "admin", workload("unclaimed", "9"), nil); strings.Contains(text, "FederatedResourceQuota") {
		t.Errorf("a workload without a policy: %q", text)
	}
	if _, text = advice(hub, user.APIServerUser, workload("web", "9"), nil); text != "" {
		t.Errorf("the hub itself: %q", text)
	}
	off := newHubWith(t, Options{QuotasOff: true}, object(t, quotaOfShop), policy)
	if _, text = advice(off, "admin", workload("web", "9"), nil); strings.Contains(text, "FederatedResourceQuota") {
		t.Errorf("without enforcement: %q", text)
	}
}

func TestQuotasAreValidatedWithAdvice(t *testing.T) {
	hub := newHub(t, placedBinding(t, "a", "3"))
	quota := func(overall, assigned string) *unstructured.Unstructured {
		return object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: FederatedResourceQuota, metadata: {name: team, namespace: shop},
			spec: {overall: {`+overall+`}, staticAssignments: [{clusterName: m1, hard: {`+assigned+`}}]}}`)
	}
	hub.refuses("admin", quota(`cpu: "1"`, `cpu: "2"`), nil, "spec.overall[cpu]", "overall is less than assignments")
	hub.refuses("admin", quota(`bananas: "1"`, ``), nil, "must be a standard resource for quota")
	stored, warnings, err := hub.write("admin", quota(`cpu: "2"`, `cpu: "2"`), nil)
	if text := strings.Join(warnings, "\n"); err != nil || !strings.Contains(text, "namespace shop uses 3") ||
		!strings.Contains(text, "there is no cluster m1") {
		t.Errorf("warned %q (%v)", text, err)
	}
	if _, warnings, err := hub.write("admin", stored, stored); err != nil || len(warnings) > 0 {
		t.Errorf("the same again is warned about: %q (%v)", warnings, err)
	}
}
