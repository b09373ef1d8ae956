package admission

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/argosy-io/argosy/test/kit/membertest"
)

// A check makes the hub send a Secret, reach members and run Jobs: its author needs the right to each.
func TestAuthorOfACheckNeedsItsRights(t *testing.T) {
	const url = `url: "https://a.example.com"`
	const service = `prometheus: {query: up, condition: result > 0, member: {namespace: monitoring, service: prometheus,
		port: "9090"`
	const job = `job: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a}]}}}}`
	for _, c := range []struct {
		name, spec string
		reads, may []string
		wrong      string
	}{
		{"nothing but an address", `webhook: {` + url + `}`, nil, nil, ""},
		{"a Secret for a webhook", `webhook: {` + url + `, secretRef: {name: key}}`, nil, nil,
			`spec.webhook.secretRef: you need permission to get secrets "key" in the namespace "shop"`},
		{"another Secret", `webhook: {` + url + `, secretRef: {name: key}}`, []string{"ann /secrets shop/other"}, nil,
			`get secrets "key"`},
		{"a Secret of another namespace", `webhook: {` + url + `, secretRef: {name: key}}`,
			[]string{"ann /secrets pay/key"}, nil, `get secrets "key"`},
		{"a Secret that the author may get", `webhook: {` + url + `, secretRef: {name: key}}`,
			[]string{"ann /secrets shop/key"}, nil, ""},
		{"a Secret for a Prometheus", `prometheus: {query: up, condition: result > 0, ` + url + `, secretRef: {name: key}}`,
			nil, nil, `spec.prometheus.secretRef: you need permission to get secrets "key"`},
		{"a Secret for an SLO", `slo: {objective: "99", good: "a[{{window}}]", total: "b[{{window}}]", ` + url +
			`, secretRef: {name: key}}`, nil, nil, `spec.slo.secretRef: you need permission to get secrets "key"`},
		{"all clusters", service + `}}`, []string{"ann cluster.karmada.io/clusters /eu"}, nil,
			`spec.prometheus.member: you need permission to get all clusters/proxy.cluster.karmada.io`},
		{"all clusters, with the right", service + `}}`, []string{"ann cluster.karmada.io/clusters /"}, nil, ""},
		{"one of two clusters", service + `, clusters: [eu, us]}}`, []string{"ann cluster.karmada.io/clusters /eu"}, nil,
			`get clusters/proxy.cluster.karmada.io "us"`},
		{"both clusters", service + `, clusters: [eu, us]}}`,
			[]string{"ann cluster.karmada.io/clusters /eu", "ann cluster.karmada.io/clusters /us"}, nil, ""},
		{"a Job", job, nil, []string{"ann create propagationpolicies shop"},
			`spec.job: you need permission to create jobs.batch in the namespace "shop"`},
		{"a Job that is not propagated", job, nil, []string{"ann create jobs shop"},
			`spec.job: you need permission to create propagationpolicies.policy.karmada.io`},
		{"a Job, with both rights", job, nil, []string{"ann create jobs shop", "ann create propagationpolicies shop"}, ""},
	} {
		membertest.Run(t, func(t *testing.T) {
			h := newHub(t)
			h.reads = map[string]bool{}
			h.may = map[string]bool{"admin create jobs shop": true, "admin create propagationpolicies shop": true}
			for _, right := range c.reads {
				h.reads[right] = true
			}
			for _, right := range c.may {
				h.may[right] = true
			}
			check := object(t, `{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseCheck,
				metadata: {name: c, namespace: shop}, spec: {`+c.spec+`}}`)
			_, _, err := h.write("ann", check, nil)
			switch {
			case c.wrong == "" && err != nil:
				t.Errorf("%s: %v", c.name, err)
			case c.wrong != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("%s: the error is %v, want %s", c.name, err, c.wrong)
			}
			if c.wrong == "" {
				return
			}
			// Whoever changes the check needs the rights too, and whoever leaves the spec does not.
			stored, _, err := h.write("admin", check, nil)
			if err != nil {
				t.Fatal(err)
			}
			labelled := stored.DeepCopy()
			labelled.SetLabels(map[string]string{"a": "b"})
			if _, _, err := h.write("ann", labelled, stored); err != nil {
				t.Errorf("%s: a label is refused: %v", c.name, err)
			}
			if _, _, err := h.write("ann", changed(t, stored, "45s", "spec", "interval"), stored); !apierrors.IsForbidden(err) {
				t.Errorf("%s: a change is not refused: %v", c.name, err)
			}
		})
	}
}

func TestTheSchemaWantsOneKindOfCheck(t *testing.T) {
	const prometheus = `prometheus: {query: up, condition: result > 0, url: "https://a.example.com"}`
	const webhook = `webhook: {url: "https://a.example.com"}`
	for spec, want := range map[string]string{
		prometheus: "", webhook: "",
		`interval: 10s`:                                  "exactly one of the fields in [prometheus webhook job slo] must be set",
		prometheus + `, ` + webhook:                      "exactly one of the fields in [prometheus webhook job slo] must be set",
		`prometheus: {query: up, condition: result > 0}`: "exactly one of the fields in [url member] must be set",
		`prometheus: {query: up, condition: result > 0, url: "https://a.example.com",
			member: {namespace: a, service: b, port: c}}`: "exactly one of the fields in [url member] must be set",
	} {
		check := object(t, `{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseCheck,
			metadata: {name: c, namespace: shop}, spec: {`+spec+`}}`)
		got := strings.Join(rulesOf(t, check, check), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: the rules say %q, want %q", spec, got, want)
		}
	}
}
