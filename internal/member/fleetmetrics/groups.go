package fleetmetrics

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	custommetrics "k8s.io/metrics/pkg/apis/custom_metrics"
	"k8s.io/metrics/pkg/apis/metrics"
)

// groups are how discovery lists what is served. Custom metrics are not listed by name: clients that query one know it.
var groups = []apidiscoveryv2.APIGroupDiscovery{
	{ObjectMeta: metav1.ObjectMeta{Name: metrics.GroupName},
		Versions: []apidiscoveryv2.APIVersionDiscovery{version("v1beta1",
			resource("nodes", "NodeMetrics", apidiscoveryv2.ScopeCluster),
			resource("pods", "PodMetrics", apidiscoveryv2.ScopeNamespace))}},
	{ObjectMeta: metav1.ObjectMeta{Name: custommetrics.GroupName},
		Versions: []apidiscoveryv2.APIVersionDiscovery{version("v1beta2"), version("v1beta1")}},
}

func version(name string, resources ...apidiscoveryv2.APIResourceDiscovery) apidiscoveryv2.APIVersionDiscovery {
	return apidiscoveryv2.APIVersionDiscovery{Version: name, Resources: resources,
		Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
}

// Groups returns the names of the API groups that are served.
func Groups() (names []string) {
	for _, g := range groups {
		names = append(names, g.Name)
	}
	return names
}

func resource(name, kind string, scope apidiscoveryv2.ResourceScope) apidiscoveryv2.APIResourceDiscovery {
	return apidiscoveryv2.APIResourceDiscovery{Resource: name, Scope: scope, Verbs: []string{"get", "list"},
		ResponseKind: &metav1.GroupVersionKind{Group: metrics.GroupName, Version: "v1beta1", Kind: kind}}
}

// groupOf returns the group and the version in a path of the API, if they are served. The version is empty for the path
// of the group itself.
func groupOf(path string) (group apidiscoveryv2.APIGroupDiscovery, version string, is bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 2 || parts[0] != "apis" {
		return group, "", false
	}
	i := slices.IndexFunc(groups, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == parts[1] })
	if i < 0 {
		return group, "", false
	}
	if len(parts) > 2 {
		version = parts[2]
	}
	return groups[i], version, version == "" || slices.ContainsFunc(groups[i].Versions,
		func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == version })
}

// writeDiscovery answers a request for a group, or for one of its versions, of a client that does not read the
// aggregated form.
func writeDiscovery(w http.ResponseWriter, group apidiscoveryv2.APIGroupDiscovery, version string) {
	if version == "" {
		all := metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: group.Name}
		for _, v := range group.Versions {
			all.Versions = append(all.Versions, metav1.GroupVersionForDiscovery{GroupVersion: group.Name + "/" + v.Version,
				Version: v.Version})
		}
		all.PreferredVersion = all.Versions[0]
		writeJSON(w, all)
		return
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: group.Name + "/" + version, APIResources: []metav1.APIResource{}}
	for _, v := range group.Versions {
		for _, r := range v.Resources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.Resource, Kind: r.ResponseKind.Kind,
				Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace, Verbs: metav1.Verbs(r.Verbs)})
		}
	}
	writeJSON(w, list)
}

// registeredAge is the maximum age of what is known of APIServices.
const registeredAge = 5 * time.Second

// registered knows which groups have an APIService on the hub, such as that of Karmada's metrics adapter: its server
// answers instead. It asks when somebody else asks, and at most once in registeredAge.
type registered struct {
	hub       *rest.Config
	discovery func() aggregated.ResourceManager

	mu sync.Mutex
	at time.Time
	by map[string]bool
}

// update returns the groups that an APIService serves, and lists the others in discovery.
func (r *registered) update(ctx context.Context) (map[string]bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) < registeredAge {
		return r.by, nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(r.hub)
	if err != nil {
		return nil, err
	}
	by := map[string]bool{}
	for _, group := range groups {
		for _, v := range group.Versions {
			err := client.RESTClient().Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices",
				v.Version+"."+group.Name).Do(ctx).Error()
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
			by[group.Name] = by[group.Name] || err == nil
		}
	}
	r.at, r.by = time.Now(), by
	if lists := r.discovery(); lists != nil {
		for _, group := range groups {
			if by[group.Name] {
				lists.RemoveGroup(group.Name)
				continue
			}
			for _, version := range group.Versions {
				lists.AddGroupVersion(group.Name, version)
			}
		}
	}
	return by, nil
}
