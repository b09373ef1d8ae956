package builtin

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// service reports a status only for load balancers.
func service() *interpret.Hooks {
	return &interpret.Hooks{
		Retain: retainService,
		Reflect: func(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
			if !balances(observed.Object) {
				return nil, nil
			}
			return reflectLoadBalancer(observed), nil
		},
		Health: judged(func(obj, status map[string]any) interpret.Health {
			if balances(obj) && !hasAddress(status) {
				return interpret.Progressing
			}
			return interpret.Healthy
		}),
		Aggregate: func(ctx context.Context, template *unstructured.Unstructured,
			items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			if !balances(template.Object) {
				return template, nil
			}
			return aggregateLoadBalancer(ctx, template, items)
		},
	}
}

func balances(service map[string]any) bool {
	return text(service, "spec", "type") == string(corev1.ServiceTypeLoadBalancer)
}

// hasAddress reports whether the status of a Service or Ingress has a load balancer address.
func hasAddress(status map[string]any) bool {
	return slices.ContainsFunc(objects(status, "loadBalancer", "ingress"), func(i map[string]any) bool {
		return text(i, "ip") != "" || text(i, "hostname") != ""
	})
}

func reflectLoadBalancer(observed *unstructured.Unstructured) map[string]any {
	lb, ok := field(observed.Object, "status", "loadBalancer").(map[string]any)
	if !ok {
		return nil
	}
	return map[string]any{"loadBalancer": runtime.DeepCopyJSON(lb)}
}

// aggregateLoadBalancer lists the addresses of all clusters, unique and sorted. Other status fields stay.
var aggregateLoadBalancer = ofReports(func(template *unstructured.Unstructured,
	rs []report) (*unstructured.Unstructured, error) {
	type address struct {
		entry map[string]any
		key   string
	}
	var all []address
	for _, r := range rs {
		for _, entry := range objects(r.status, "loadBalancer", "ingress") {
			raw, err := json.Marshal(entry)
			if err != nil {
				return nil, fmt.Errorf("compare addresses of cluster %q: %w", r.cluster, err)
			}
			all = append(all, address{runtime.DeepCopyJSON(entry), string(raw)})
		}
	}
	compare := func(a, b address) int {
		return cmp.Or(
			cmp.Compare(text(a.entry, "ip"), text(b.entry, "ip")),
			cmp.Compare(text(a.entry, "hostname"), text(b.entry, "hostname")),
			cmp.Compare(a.key, b.key),
		)
	}
	slices.SortFunc(all, compare)
	all = slices.CompactFunc(all, func(a, b address) bool { return a.key == b.key })

	status := map[string]any{}
	if was := interpret.WholeStatus(template); was != nil {
		status = was
	}
	lb := map[string]any{}
	if len(all) > 0 {
		ingress := make([]any, len(all))
		for i, a := range all {
			ingress[i] = a.entry
		}
		lb["ingress"] = ingress
	}
	status["loadBalancer"] = lb
	return settledNative(template, status), nil
})

// rolloutSelectors are the keys that Argo Rollouts and Kruise Rollouts add to a Service's selector in the member. The
// selector is an atomic map, so an apply without them would remove them.
var rolloutSelectors = []string{"rollouts-pod-template-hash", "pod-template-hash", "controller-revision-hash"}

// retainService keeps the addresses and ports that the member allocated, which are immutable or would be reallocated,
// and the keys that a rollout adds to the selector.
func retainService(_ context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	want, have := object(desired.Object, "spec"), object(observed.Object, "spec")
	kind := corev1.ServiceType(text(want, "type"))
	if want == nil || have == nil || kind == corev1.ServiceTypeExternalName {
		return desired, nil
	}
	retained := desired.DeepCopy()
	spec := object(retained.Object, "spec")
	if text(want, "clusterIP") == "" && text(have, "clusterIP") != "" {
		for _, f := range []string{"clusterIP", "clusterIPs"} {
			if v, ok := have[f]; ok {
				spec[f] = runtime.DeepCopyJSONValue(v)
			}
		}
	}
	if selector, ok := want["selector"].(map[string]any); ok {
		for _, key := range rolloutSelectors {
			if v, ok := field(have, "selector", key).(string); ok && selector[key] == nil {
				object(spec, "selector")[key] = v
			}
		}
	}
	for _, f := range []string{"ipFamilies", "ipFamilyPolicy"} {
		if v, ok := have[f]; ok && want[f] == nil {
			spec[f] = runtime.DeepCopyJSONValue(v)
		}
	}
	if kind == corev1.ServiceTypeLoadBalancer &&
		text(want, "externalTrafficPolicy") == string(corev1.ServiceExternalTrafficPolicyLocal) {
		if n := number(have, "healthCheckNodePort"); n != 0 {
			spec["healthCheckNodePort"] = n
		}
	}
	if kind == corev1.ServiceTypeNodePort || kind == corev1.ServiceTypeLoadBalancer {
		for _, p := range objects(spec, "ports") {
			if number(p, "nodePort") != 0 && !interpret.AllocatedNodePort(desired, p) {
				continue
			}
			for _, q := range objects(have, "ports") {
				if samePort(p, q) && number(q, "nodePort") != 0 {
					p["nodePort"] = number(q, "nodePort")
				}
			}
		}
	}
	return retained, nil
}

func samePort(a, b map[string]any) bool {
	protocol := func(p map[string]any) string { return cmp.Or(text(p, "protocol"), "TCP") }
	return number(a, "port") == number(b, "port") && protocol(a) == protocol(b)
}

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }
