package validate

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
)

func TestMultiClusterServiceErrorsMatchKarmada(t *testing.T) {
	for _, c := range []struct{ name, service, spec, was, want string }{
		{"as in the guides", "web", `{types: [CrossCluster], ports: [{name: http, port: 80}], providerClusters: [{name: a}], consumerClusters: [{name: b}]}`, ``, ``},
		{"a name that no Service may have", "1web", `{types: [CrossCluster]}`, ``, `metadata.name: Invalid value: "1web"`},
		{"an unknown type", "web", `{types: [NodePort]}`, ``, `spec.types[0]: Invalid value: "NodePort": ExposureType Error`},
		{"two types", "web", `{types: [CrossCluster, LoadBalancer]}`, ``,
			`MultiClusterService types should not contain more than one type`},
		{"the same type twice", "web", `{types: [CrossCluster, CrossCluster]}`, ``, ``},
		{"another type", "web", `{types: [LoadBalancer]}`, `{types: [CrossCluster]}`,
			`MultiClusterService types are immutable`},
		{"another port", "web", `{types: [CrossCluster], ports: [{port: 80}]}`, `{types: [CrossCluster]}`, ``},
		{"a port out of range", "web", `{types: [CrossCluster], ports: [{port: 0}]}`, ``,
			`spec.ports[0].port: Invalid value: 0: must be between 1 and 65535`},
		{"a port twice", "web", `{types: [CrossCluster], ports: [{name: a, port: 1}, {name: a, port: 2}]}`, ``,
			`spec.ports[1].name: Duplicate value: "a"`},
		{"a port with a bad name", "web", `{types: [CrossCluster], ports: [{name: A_b, port: 1}]}`, ``,
			`spec.ports[0].name: Invalid value: "A_b"`},
		{"a cluster that cannot be", "web",
			`{types: [CrossCluster], providerClusters: [{name: A}], consumerClusters: [{name: ""}]}`, ``,
			`spec.providerClusters[0].name: Invalid value: "A"`},
		{"a cluster without a name", "web", `{types: [CrossCluster], consumerClusters: [{name: ""}]}`, ``,
			`spec.consumerClusters[0].name: Invalid value: ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := multiClusterService(t, c.service, c.spec)
			var was *networkingv1alpha1.MultiClusterService
			if c.was != "" {
				was = multiClusterService(t, c.service, c.was)
			}
			errs := MultiClusterService(s, was).ToAggregate()
			if c.want == "" && errs != nil || c.want != "" && (errs == nil || !strings.Contains(errs.Error(), c.want)) {
				t.Errorf("it says %v, want %q", errs, c.want)
			}
		})
	}
}

func TestMultiClusterServiceReportsUnsupportedFields(t *testing.T) {
	for spec, want := range map[string]string{
		`{types: [CrossCluster]}`: "",
		`{types: []}`:             "spec.types: without a type the object has no effect",
		`{types: [LoadBalancer]}`: "spec.types: LoadBalancer is left to a load balancer provider",
		`{types: [CrossCluster], range: {clusterNames: [a]}}`:                                     "spec.range: deprecated",
		`{types: [CrossCluster], serviceProvisionClusters: [a]}`:                                  "",
		`{types: [CrossCluster], serviceConsumptionClusters: [a], consumerClusters: [{name: b}]}`: "spec.serviceConsumptionClusters: has no effect when spec.consumerClusters",
	} {
		advice := strings.Join(MultiClusterServiceAdvice(multiClusterService(t, "web", spec)), "\n")
		if want == "" && advice != "" || !strings.HasPrefix(advice, want) {
			t.Errorf("%s: %q, want %q", spec, advice, want)
		}
	}
}

func multiClusterService(t *testing.T, name, spec string) *networkingv1alpha1.MultiClusterService {
	t.Helper()
	s := &networkingv1alpha1.MultiClusterService{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: "+name+"}\nspec: "+spec), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMultiClusterIngressesFollowTheRulesOfAnIngress(t *testing.T) {
	const backend = `backend: {service: {name: web, port: {number: 80}}}`
	rule := func(path string) string { return `{rules: [{host: a.example.com, http: {paths: [` + path + `]}}]}` }
	for _, c := range []struct{ name, spec, want string }{
		{"a rule", rule(`{path: /, pathType: Prefix, ` + backend + `}`), ``},
		{"a default backend by a port's name", `{defaultBackend: {service: {name: web, port: {name: http}}}}`, ``},
		{"a resource", `{defaultBackend: {resource: {kind: Bucket, name: b}}}`, ``},
		{"nothing", `{}`, "either `defaultBackend` or `rules` must be specified"},
		{"any host below a domain", `{rules: [{host: "*.example.com"}]}`, ``},
		{"an asterisk inside", `{rules: [{host: "a.*.com"}]}`, `spec.rules[0].host: Invalid value`},
		{"an address for a host", `{rules: [{host: "10.0.0.1"}]}`, `must be a DNS name, not an IP address`},
		{"no paths", `{rules: [{http: {paths: []}}]}`, `spec.rules[0].http.paths: Required value`},
		{"no type of path", rule(`{path: /, ` + backend + `}`), `pathType must be specified`},
		{"another type of path", rule(`{path: /, pathType: Regex, ` + backend + `}`), `pathType: Unsupported value: "Regex"`},
		{"a relative path", rule(`{path: a, pathType: Exact, ` + backend + `}`), `must be an absolute path`},
		{"a path that means another", rule(`{path: /a/../b, pathType: Prefix, ` + backend + `}`), `must not contain '/../'`},
		{"no path where the controller decides", rule(`{pathType: ImplementationSpecific, ` + backend + `}`), ``},
		{"no backend", rule(`{path: /, pathType: Prefix, backend: {}}`), `a service or a resource backend is required`},
		{"both backends", `{defaultBackend: {resource: {kind: B, name: b}, service: {name: web, port: {number: 80}}}}`,
			`cannot set both resource and service backends`},
		{"both ports", `{defaultBackend: {service: {name: web, port: {number: 80, name: http}}}}`,
			`cannot set both port name & port number`},
		{"no port", `{defaultBackend: {service: {name: web}}}`, `port name or number is required`},
		{"a bad port", `{defaultBackend: {service: {name: web, port: {number: 70000}}}}`, `must be between 1 and 65535`},
		{"no Service", `{defaultBackend: {service: {port: {number: 80}}}}`,
			`spec.defaultBackend.service.name: Required value`},
		{"a host of a certificate", `{defaultBackend: {service: {name: web, port: {number: 80}}}, tls: [{hosts: [A_b]}]}`,
			`spec.tls[0].hosts[0]: Invalid value: "A_b"`},
		{"a class", `{ingressClassName: A_b, defaultBackend: {service: {name: web, port: {number: 80}}}}`,
			`spec.ingressClassName: Invalid value`},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := &networkingv1alpha1.MultiClusterIngress{}
			if err := yaml.UnmarshalStrict([]byte("metadata: {name: web}\nspec: "+c.spec), i); err != nil {
				t.Fatal(err)
			}
			errs := MultiClusterIngress(i).ToAggregate()
			if c.want == "" && errs != nil || c.want != "" && (errs == nil || !strings.Contains(errs.Error(), c.want)) {
				t.Errorf("it says %v, want %q", errs, c.want)
			}
		})
	}
}
