package guides

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reaches waits until a member has, under a Service, the addresses of an app's pods in other members, and no others.
func (s *story) reaches(member, service, app string, others ...string) {
	s.waitUntil(member+" reaches "+app+" by "+service, func() string {
		var want, got []string
		for _, m := range others {
			var pods corev1.PodList
			if err := fleet.Members[m].List(s.t.Context(), &pods, client.InNamespace(s.ns),
				client.MatchingLabels{"app": app}); err != nil {
				s.fail("list pods of %s: %v", m, err)
			}
			for _, p := range pods.Items {
				if p.DeletionTimestamp == nil && p.Status.PodIP != "" {
					want = append(want, m+" "+p.Status.PodIP)
				}
			}
		}
		var list discoveryv1.EndpointSliceList
		if err := fleet.Members[member].List(s.t.Context(), &list, client.InNamespace(s.ns),
			client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
			s.fail("list endpoint slices of %s: %v", member, err)
		}
		for _, slice := range list.Items {
			from := slice.Annotations["endpointslice.karmada.io/provision-cluster"]
			for _, e := range slice.Endpoints {
				if from != "" {
					got = append(got, from+" "+e.Addresses[0])
				}
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if len(want) == 0 || !slices.Equal(want, got) {
			return fmt.Sprintf("pods have %v, it was told of %v", want, got)
		}
		return ""
	})
}

// agrees waits until conditions of an object of the hub are True.
func (s *story) agrees(u *unstructured.Unstructured, conditions ...string) {
	s.waitUntil(u.GetName()+" says "+strings.Join(conditions, ", "), func() string {
		list, _, _ := unstructured.NestedSlice(s.reread(u).Object, "status", "conditions")
		for _, want := range conditions {
			if !slices.ContainsFunc(list, func(c any) bool {
				return c.(map[string]any)["type"] == want && c.(map[string]any)["status"] == "True"
			}) {
				return fmt.Sprint(list)
			}
		}
		return ""
	})
}

// nginxService is the Service that the article's exports and MultiClusterServices are about and never shows.
func (s *story) nginxService(name string) *unstructured.Unstructured {
	return s.object(fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {selector: {app: nginx}, ports: [{name: http, port: 80, targetPort: 8080}]}}`, name))
}

// exported runs nginx in two members and exports it there, as the article says; the third imports it.
func (s *story) exported() {
	s.propagate(s.nginx("nginx", 2), "member1", "member2")
	s.propagate(s.apply(s.nginxService("nginx-svc")), "member1", "member2")
	s.apply(s.doc("S002", 793))
	s.apply(s.doc("S002", 769))
	s.apply(s.object(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: imported}, spec: {
		resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, name: nginx-svc}], placement: {clusterAffinity: {clusterNames: [member3]}}}}`))
	s.apply(s.doc("S002", 776)) // the page shows its status; the status is not applied
}
