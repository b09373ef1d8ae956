package core_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/service"
)

// words are what somebody writes who wants to reach elsewhere.
var words = []string{"", "web", "kube-system", "../bank/web", "web/../../bank", "karmada-es-us", "ClusterRoleBinding",
	"rbac.authorization.k8s.io/v1", "v1", "apps/v1", "system:masters", "*", "a,b", "{{.}}", "\x00"}

// Endpoints of other clusters and autoscalers have no template: the hub itself writes their objects in members.
// Whatever the user writes, these objects are of three kinds, in the user's namespace, and in the clusters of the
// user's object.
func TestGeneratedMemberObjectsStayInTheirNamespace(t *testing.T) {
	cases := 3000
	if testing.Short() {
		cases = 300
	}
	r := rand.New(rand.NewSource(5))
	word := func() string { return words[r.Intn(len(words))] }
	keys := func() map[string]string {
		return map[string]string{word(): word(), "work.karmada.io/name": word(), "karmada.io/managed": word(),
			"argosy.io/service-of": word(), "argosy.io/autoscaler-of": word()}
	}
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid", Labels: keys(), Annotations: keys(),
			Finalizers: []string{word()}}
	}
	ids := 0
	newID := func() string { ids++; return fmt.Sprint("id-", ids) }
	made := map[string]int{}
	holds := func(what string, asked any, works ...*workv1alpha1.Work) {
		t.Helper()
		for _, w := range works {
			if !slices.Contains([]string{"karmada-es-eu", "karmada-es-us"}, w.Namespace) {
				t.Fatalf("%s has a Work in %s: %+v", what, w.Namespace, asked)
			}
			m, err := execute.Manifest(w)
			if err != nil {
				t.Fatal(err)
			}
			kind := m.GetAPIVersion() + " " + m.GetKind()
			made[what+": "+kind]++
			allowed := slices.Contains([]string{"web", "derived-web"}, m.GetName())
			if kind == "discovery.k8s.io/v1 EndpointSlice" {
				allowed = strings.Contains(m.GetName(), "web-x7d2k")
			} else if kind != "v1 Service" && kind != "autoscaling/v2 HorizontalPodAutoscaler" {
				allowed = false
			}
			if !allowed || m.GetNamespace() != "shop" {
				t.Fatalf("%s makes a %s %s/%s: %+v", what, kind, m.GetNamespace(), m.GetName(), asked)
			}
			if kind == "v1 Service" {
				spec, _, _ := unstructured.NestedMap(m.Object, "spec")
				for _, exposed := range []string{"externalIPs", "externalName", "selector", "loadBalancerIP"} {
					if spec[exposed] != nil {
						t.Fatalf("%s makes a Service with %s: %+v", what, exposed, spec)
					}
				}
				if spec["type"] != "ClusterIP" {
					t.Fatalf("%s makes a Service of type %v", what, spec["type"])
				}
			}
			if !execute.Owns(w, m) || m.GetFinalizers() != nil || m.GetOwnerReferences() != nil || m.GetUID() != "" {
				t.Fatalf("%s marks what it makes as %v", what, m.Object["metadata"])
			}
			for key, value := range m.GetLabels() {
				if key == "karmada.io/managed" && value != "true" {
					t.Fatalf("%s makes what says %s=%s", what, key, value)
				}
			}
		}
	}
	clusters := []string{"eu", "us"}
	slice := service.Slice{Name: "web-x7d2k", AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}}
	exchanged := func(what string, asked any, x service.Exchange) {
		t.Helper()
		for provider := range x.Providers {
			x.Providers[provider] = service.Known{Listed: true, Slices: []service.Slice{slice}}
		}
		services := map[string]*workv1alpha1.Work{}
		for _, c := range clusters {
			services[c] = &workv1alpha1.Work{Status: workv1alpha1.WorkStatus{ManifestStatuses: make(
				[]workv1alpha1.ManifestStatus, 1),
				Conditions: []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}}}
			services[c].Namespace, services[c].Name = names.ExecutionSpace(c), x.ServiceWorkNames()[0]
		}
		d, err := service.Decide(x, nil, services, newID)
		if err != nil {
			return
		}
		holds(what, asked, d.Works...)
	}
	for range cases {
		i := &multiclusterv1alpha1.ServiceImport{ObjectMeta: meta()}
		i.Spec.Type, i.Spec.IPs = multiclusterv1alpha1.ServiceImportType(word()), []string{word()}
		i.Spec.Ports = []multiclusterv1alpha1.ServicePort{{Name: word(), Protocol: corev1.Protocol(word()),
			Port: int32(r.Intn(70000))}}
		exchanged("a ServiceImport", i, service.Import(i, clusters, clusters[:1+r.Intn(2)]))

		s := &networkingv1alpha1.MultiClusterService{ObjectMeta: meta()}
		s.Spec.Types = []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}
		s.Spec.ConsumerClusters = []networkingv1alpha1.ClusterSelector{{Name: word()}, {Name: "eu"}}
		s.Spec.ProviderClusters = []networkingv1alpha1.ClusterSelector{{Name: word()}, {Name: "us"}}
		exchanged("a MultiClusterService", s, service.CrossCluster(s, clusters))

		f := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: meta()}
		f.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: word(), Kind: word(), Name: word()}
		f.Spec.MaxReplicas = 5
		w, err := autoscale.Work(f, clusters[r.Intn(2)], autoscale.Share{Bounds: autoscale.Bounds{Min: 1, Max: 5}}, newID())
		if err != nil {
			t.Fatal(err)
		}
		holds("a FederatedHPA", f, w)
	}
	said, _ := json.Marshal(made)
	for _, want := range []string{"a ServiceImport: v1 Service", "a ServiceImport: discovery.k8s.io/v1 EndpointSlice",
		"a MultiClusterService: discovery.k8s.io/v1 EndpointSlice",
		"a FederatedHPA: autoscaling/v2 HorizontalPodAutoscaler"} {
		if made[want] == 0 {
			t.Errorf("nothing was made of %s: this test looks at too little (%s)", want, said)
		}
	}
}
