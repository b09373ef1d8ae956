package member_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

var endpointSlice = membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1",
	Kind: "EndpointSlice"}, Plural: "endpointslices", Namespaced: true}

func TestOnlyRequestedServicesAreWatched(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t, endpointSlice)
		put := func(namespace, name, service, from string, addresses ...string) {
			e := &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
					Labels: map[string]string{discoveryv1.LabelServiceName: service}},
				AddressType: discoveryv1.AddressTypeIPv4}
			if from != "" {
				e.Annotations = map[string]string{"endpointslice.karmada.io/provision-cluster": from}
			}
			for _, a := range addresses {
				e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
			}
			s.Put(e)
		}
		put("shop", "web-a", "web", "", "10.0.0.1")
		put("shop", "m2-web-b", "web", "m2", "10.2.0.1") // which a hub brought
		put("shop", "db-a", "db", "", "10.0.0.7")
		put("other", "web-a", "web", "", "10.0.0.8")

		c := hub(s.Cluster("m1"), s.Secret("m1"))
		members := member.New(member.Options{Clusters: c, Secrets: c, Dial: membertest.Dial})
		messages := make(chan types.NamespacedName, 100)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = members.Start(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
		m, err := members.Get("m1")
		if err != nil {
			t.Fatal(err)
		}
		// somebody else has used the member before
		members.OnEndpoints(func(_ string, service types.NamespacedName) { messages <- service })

		web := types.NamespacedName{Namespace: "shop", Name: "web"}
		if slices.ContainsFunc(s.Requests(""), func(r string) bool { return strings.Contains(r, "endpointslices") }) {
			t.Error("the member was asked before anybody wanted to know")
		}
		// heard waits until a change of a Service is reported. Each change is reported once, after the store has it.
		heard := func(want types.NamespacedName) {
			t.Helper()
			select {
			case of := <-messages:
				if of != want {
					t.Errorf("an event reports %s, want %s", of, want)
				}
			case <-time.After(time.Minute):
				t.Fatalf("it is not told of %s", want)
			}
		}
		knows := func(want ...string) {
			t.Helper()
			all, listed := m.EndpointSlices(web)
			var got []string
			for _, slice := range all {
				for _, e := range slice.Endpoints {
					got = append(got, slice.Name+" "+e.Addresses[0])
				}
			}
			slices.Sort(got)
			if !listed || !slices.Equal(got, want) {
				t.Errorf("known are %v, listed %v; want %v", got, listed, want)
			}
		}
		m.EndpointSlices(web)
		heard(web)
		knows("web-a 10.0.0.1")
		put("shop", "web-a", "web", "", "10.0.0.1", "10.0.0.2")
		heard(web)
		knows("web-a 10.0.0.1", "web-a 10.0.0.2")

		// Silence takes nothing away, and what it hid comes after it.
		s.Down(true)
		put("shop", "web-c", "web", "", "10.0.0.3")
		knows("web-a 10.0.0.1", "web-a 10.0.0.2")
		s.Down(false)
		heard(web)
		knows("web-a 10.0.0.1", "web-a 10.0.0.2", "web-c 10.0.0.3")
		s.Remove(endpointSlice, "shop", "web-a")
		heard(web)
		knows("web-c 10.0.0.3")

		// After the watch is stopped, nothing is reported. A new watch has the current slices.
		m.StopEndpointSlices(web)
		put("shop", "web-c", "web", "", "10.0.0.4")
		db := types.NamespacedName{Namespace: "shop", Name: "db"}
		m.EndpointSlices(db)
		heard(db) // and not of web
		m.EndpointSlices(web)
		heard(web)
		knows("web-c 10.0.0.4")
	})
}
