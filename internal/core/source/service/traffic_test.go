package service

import (
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/remedy"
)

// TestProvidersUnderTrafficControlGiveNoEndpoints: m1 and m2 provide a Service to m3. had are the clusters whose
// endpoints m3 has already.
func TestProvidersUnderTrafficControlGiveNoEndpoints(t *testing.T) {
	serves := func(live, listed bool, all ...Slice) Known {
		return Known{Slices: all, Listed: listed, Ready: live && listed, Live: live}
	}
	slice := sliceIn("web-abc", "10.0.0.1")
	for _, tc := range []struct {
		name       string
		m1, m2     Known
		controlled []string
		lost       []string
		had        string
		want       string // whose endpoints m3 gets
		kept, held string
	}{
		{"no action", serves(true, true, slice), serves(true, true, slice), nil, nil, "m1", "m1 m2", "", ""},
		{"m2 serves", serves(true, true, slice), serves(true, true, slice), []string{"m1"}, nil, "m1", "m2", "", ""},
		{"m1 is lost, and m2 serves", serves(false, true, slice), serves(true, true, slice), []string{"m1"},
			[]string{"m1"}, "m1", "m2", "", ""},
		{"both have the action", serves(true, true, slice), serves(true, true, slice), []string{"m1", "m2"}, nil, "m1",
			"m1 m2", "m1 m2", ""},
		{"m2 is not Ready", serves(true, true, slice), serves(false, true, slice), []string{"m1"}, nil, "", "m1 m2", "m1",
			""},
		{"m2 is lost", serves(true, true, slice), serves(true, true, slice), []string{"m1"}, []string{"m2"}, "", "m1",
			"m1", ""},
		{"m2 has no endpoints", serves(true, true, slice), serves(true, true), []string{"m1"}, nil, "", "m1", "m1", ""},
		{"m2 has not answered, m1 gives", serves(true, true, slice), serves(true, false), []string{"m1"}, nil, "m1", "m1",
			"", "m1"},
		{"m2 has not answered, m1 is out", serves(true, true, slice), serves(true, false), []string{"m1"}, nil, "", "",
			"", "m1"},
		{"m1 is not ready and not lost", serves(false, true, slice), serves(true, true, slice), []string{"m1"}, nil, "m1",
			"m1 m2", "", "m1"},
		{"m1 is not ready and not lost, and out", serves(false, true, slice), serves(true, true, slice), []string{"m1"}, nil,
			"", "m2", "", "m1"},
		{"only last known endpoints of m2, m1 gives", serves(true, true, slice), serves(true, false), []string{"m1"}, nil,
			"m1 m2", "m1 m2", "", "m1"},
		{"only last known endpoints of m2, m1 is out", serves(true, true, slice), serves(true, false), []string{"m1"}, nil,
			"m2", "m2", "", "m1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := CrossCluster(crossCluster(t, `{types: [CrossCluster], providerClusters: [{name: m1}, {name: m2}],
				consumerClusters: [{name: m3}]}`), []string{"m1", "m2", "m3"})
			services := map[string]*workv1alpha1.Work{}
			for _, c := range []string{"m1", "m2", "m3"} {
				services[c] = &workv1alpha1.Work{}
				answer(services[c], metav1.ConditionTrue, "")
			}
			var standing []*workv1alpha1.Work
			decide := func() Decision {
				d, err := Decide(x, standing, services, func() string { return "id" })
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			x.Providers = map[string]Known{}
			for _, c := range strings.Fields(tc.had) {
				x.Providers[c] = serves(true, true, slice)
			}
			standing = decide().Works
			x.Providers = map[string]Known{"m1": tc.m1, "m2": tc.m2}
			x.Controlled, x.Lost = map[string]bool{}, map[string]bool{}
			for _, c := range tc.controlled {
				x.Controlled[c] = true
			}
			for _, c := range tc.lost {
				x.Lost[c] = true
			}
			d := decide()
			var got []string
			for _, w := range d.Works {
				got = append(got, w.Annotations[ProvisionClusterAnnotation])
			}
			if strings.Join(got, " ") != tc.want || strings.Join(d.Traffic.Kept, " ") != tc.kept ||
				strings.Join(d.Traffic.Held, " ") != tc.held {
				t.Errorf("m3 gets the endpoints of %q, decided by %+v; want %q, kept %q, held %q", got, d.Traffic, tc.want,
					tc.kept, tc.held)
			}
		})
	}
}

// A Service of the same name that the hub did not send may belong to someone else.
func TestForeignServiceIsNoReplacement(t *testing.T) {
	x := Backend(&networkingv1alpha1.MultiClusterIngress{}, "web", nil)
	known := Known{Slices: []Slice{sliceIn("web-abc", "10.0.0.1")}, Listed: true, Ready: true, Live: true}
	x.Providers = map[string]Known{"m1": known, "m2": known}
	x.Controlled = map[string]bool{"m1": true}
	services := map[string]*workv1alpha1.Work{"m1": {}, "m2": {}}
	answer(services["m1"], metav1.ConditionTrue, "")
	answer(services["m2"], metav1.ConditionFalse, "the object exists already")
	if got := remedy.Decide(x.Candidates(services)); !slices.Equal(got.Kept, []string{"m1"}) {
		t.Errorf("m2 has a foreign Service: %+v", got)
	}
	delete(services, "m2")
	if got := remedy.Decide(x.Candidates(services)); !slices.Equal(got.Kept, []string{"m1"}) {
		t.Errorf("m2 gets no Service: %+v", got)
	}
	services["m2"] = &workv1alpha1.Work{}
	answer(services["m2"], metav1.ConditionTrue, "")
	if got := remedy.Decide(x.Candidates(services)); !slices.Equal(got.Blocked, []string{"m1"}) {
		t.Errorf("m2 has the Service: %+v", got)
	}
}

func TestBackendsOfAnIngress(t *testing.T) {
	to := func(service string) networkingv1.IngressBackend {
		return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: service}}
	}
	i := &networkingv1alpha1.MultiClusterIngress{}
	if got := Backends(i); len(got) > 0 {
		t.Errorf("an empty Ingress has %q", got)
	}
	i.Spec.DefaultBackend = new(to("z"))
	i.Spec.Rules = []networkingv1.IngressRule{{}, {IngressRuleValue: networkingv1.IngressRuleValue{
		HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Backend: to("b")}, {Backend: to("a")},
			{Backend: to("b")}, {}}}}}}
	if got := Backends(i); !slices.Equal(got, []string{"a", "b", "z"}) {
		t.Errorf("Services: %q", got)
	}
}
