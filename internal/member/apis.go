package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// ErrKindNotServed means that a member does not serve any version of a kind. The wrapping error names the member and
// the kind.
var ErrKindNotServed = errors.New("kind is not served")

// Mapping is the resource of a kind in a member.
type Mapping struct {
	Resource   schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// APIs are the resources that a member serves.
type APIs struct {
	Lists []*metav1.APIResourceList
	// Failed are the group versions that could not be listed, for example of an aggregated API that is down, with the
	// errors.
	Failed map[string]string
}

// apis are the resources that a member served at the last discovery over one connection.
type apis struct {
	// asking is locked during discovery, so that concurrent requests for an unknown kind cause only one.
	asking sync.Mutex
	tags   map[string]string // etag by path
	parts  map[string]APIs

	mu    sync.RWMutex
	all   APIs
	kinds map[schema.GroupKind][]Mapping // in the member's order of preference
	asked time.Time
}

// missPeriod is the minimal time between discoveries because of an unknown kind.
const missPeriod = 2 * time.Second

// Discover reads what the member serves. The member does not send unchanged parts again.
func (m *Member) Discover(ctx context.Context) (APIs, error) {
	c := m.conn()
	c.apis.asking.Lock()
	defer c.apis.asking.Unlock()
	return m.discover(ctx, c)
}

// Mapping returns the resource of a kind in the member: in the given version if it is served, otherwise in the
// preferred one. The error wraps ErrKindNotServed if the member serves none.
func (m *Member) Mapping(ctx context.Context, gvk schema.GroupVersionKind) (Mapping, error) {
	c := m.conn()
	mapping, ok, since := c.apis.find(gvk)
	if ok && mapping.Resource.Version == gvk.Version {
		return mapping, nil
	}
	// The kind, or this version of it, may be new.
	if m.o.Clock.Since(since) >= missPeriod {
		c.apis.asking.Lock()
		defer c.apis.asking.Unlock()
		if _, _, now := c.apis.find(gvk); now.Equal(since) {
			if _, err := m.discover(ctx, c); err != nil && !ok {
				return Mapping{}, err
			}
		}
		mapping, ok, _ = c.apis.find(gvk)
	}
	if !ok {
		return Mapping{}, fmt.Errorf("cluster %q does not serve the kind %s of %s; install its CustomResourceDefinition or API "+
			"there: %w", m.Name, gvk.Kind, gvk.GroupVersion(), ErrKindNotServed)
	}
	return mapping, nil
}

func (a *apis) find(gvk schema.GroupVersionKind) (mapping Mapping, ok bool, asked time.Time) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	served := a.kinds[gvk.GroupKind()]
	if len(served) == 0 {
		return Mapping{}, false, a.asked
	}
	if i := slices.IndexFunc(served, func(m Mapping) bool { return m.Resource.Version == gvk.Version }); i >= 0 {
		return served[i], true, a.asked
	}
	return served[0], true, a.asked
}

// discover must be called with asking locked.
func (m *Member) discover(ctx context.Context, c *connection) (APIs, error) {
	a := &c.apis
	changed := a.parts == nil
	parts, tags := map[string]APIs{}, map[string]string{}
	for _, path := range []string{"/api", "/apis"} {
		part, tag, err := c.aggregated(ctx, path, a.tags[path])
		if errors.Is(err, errNotAggregated) {
			all, err := c.unaggregated()
			if errors.Is(err, ErrLimit) {
				m.exceeds(discoverySubject, err)
			}
			if err != nil {
				return APIs{}, fmt.Errorf("discover what cluster %q serves: %w", m.Name, err)
			}
			if err := m.bound(all); err != nil {
				return APIs{}, err
			}
			a.set(m.o.Clock.Now(), all)
			return all, nil
		}
		if err != nil {
			return APIs{}, fmt.Errorf("discover what cluster %q serves: %w", m.Name, err)
		}
		if part == nil {
			parts[path], tags[path] = a.parts[path], a.tags[path]
			continue
		}
		changed = true
		parts[path], tags[path] = *part, tag
	}
	all := APIs{Lists: slices.Concat(parts["/api"].Lists, parts["/apis"].Lists), Failed: parts["/apis"].Failed}
	if err := m.bound(all); err != nil {
		return APIs{}, err
	}
	a.parts, a.tags = parts, tags
	if !changed {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked = m.o.Clock.Now()
		return a.all, nil
	}
	a.set(m.o.Clock.Now(), all)
	return all, nil
}

// bound rejects a discovery that is larger than that of any real cluster, because it stays in memory and goes into the
// Cluster's status.
func (m *Member) bound(all APIs) error {
	kinds, chars := 0, 0
	for _, list := range all.Lists {
		kinds += 1 + len(list.APIResources)
		chars += membership.Written(list.GroupVersion)
		for i := range list.APIResources {
			chars += membership.Written(list.APIResources[i].Name) + membership.Written(list.APIResources[i].Kind)
		}
	}
	for gv, why := range all.Failed {
		kinds++
		chars += membership.Written(gv) + membership.Written(why)
	}
	if kinds <= kindLimit && chars <= kindNameLimit {
		m.exceeds(discoverySubject, nil)
		return nil
	}
	err := fmt.Errorf("discover what cluster %q serves: %w", m.Name, &limitError{
		fmt.Sprintf("it serves %d resources, with %d characters in their names; the hub supports %d and %d", kinds, chars,
			kindLimit, kindNameLimit),
		"delete unused CustomResourceDefinitions there"})
	m.exceeds(discoverySubject, err)
	return err
}

const discoverySubject = "discovery"

func (a *apis) set(now time.Time, all APIs) {
	kinds := map[schema.GroupKind][]Mapping{}
	for _, list := range all.Lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // a group with such a name cannot be requested
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue
			}
			gk := gv.WithKind(r.Kind).GroupKind()
			kinds[gk] = append(kinds[gk], Mapping{Resource: gv.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced})
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all, a.kinds, a.asked = all, kinds, now
}

// errNotAggregated means that a member is too old for aggregated discovery.
var errNotAggregated = errors.New("no aggregated discovery")

// aggregated reads one half of the discovery; nil if it is still that of the tag.
func (c *connection) aggregated(ctx context.Context, path, tag string) (*APIs, string, error) {
	header := http.Header{"Accept": {discovery.AcceptV2}}
	if tag != "" {
		header.Set("If-None-Match", tag)
	}
	resp, err := c.get(ctx, path, header)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && tag != "":
		return nil, tag, nil
	case resp.StatusCode == http.StatusNotAcceptable,
		resp.StatusCode == http.StatusOK && !strings.Contains(resp.Header.Get("Content-Type"), "as=APIGroupDiscoveryList"):
		return nil, "", errNotAggregated
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, "", fmt.Errorf("GET %s: %w", path, apierrors.NewUnauthorized(resp.Status))
	case resp.StatusCode != http.StatusOK:
		return nil, "", fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	var groups apidiscoveryv2.APIGroupDiscoveryList
	if err := json.NewDecoder(resp.Body).Decode(&groups); err != nil {
		return nil, "", fmt.Errorf("GET %s: %w", path, err)
	}
	_, byVersion, failed := discovery.SplitGroupsAndResources(groups)
	part := &APIs{Failed: map[string]string{}}
	for _, group := range groups.Items {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			if list := byVersion[gv]; list != nil {
				part.Lists = append(part.Lists, list)
			}
		}
	}
	for gv, err := range failed {
		part.Failed[gv.String()] = err.Error()
	}
	return part, resp.Header.Get("Etag"), nil
}

// versionsLimit bounds how many group versions are discovered one by one, in parallel. A member may name any number.
const versionsLimit = 1_000

// known is a discovery client that has the groups already.
type known struct {
	discovery.DiscoveryInterface
	groups *metav1.APIGroupList
}

func (k known) ServerGroups() (*metav1.APIGroupList, error) { return k.groups, nil }

// unaggregated discovers each group version on its own, as members before Kubernetes 1.30 require.
func (c *connection) unaggregated() (APIs, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, c.http)
	if err != nil {
		return APIs{}, err
	}
	groups, err := client.ServerGroups()
	if err != nil {
		return APIs{}, err
	}
	versions := 0
	for _, group := range groups.Groups {
		versions += len(group.Versions)
	}
	if versions > versionsLimit {
		return APIs{}, fmt.Errorf("it serves %d group versions: %w", versions, ErrLimit)
	}
	return apisOf(discovery.ServerGroupsAndResources(known{client, groups}))
}

// apisOf returns the result of a discovery, which may have failed in part.
func apisOf(_ []*metav1.APIGroup, lists []*metav1.APIResourceList, err error) (APIs, error) {
	all := APIs{Lists: lists, Failed: map[string]string{}}
	var partial *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &partial) {
		for gv, err := range partial.Groups {
			all.Failed[gv.String()] = err.Error()
		}
		return all, nil
	}
	return all, err
}
