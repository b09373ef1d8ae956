package search

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// objects are what filters select from, by cluster.
const objects = `
eu: {kind: Pod, metadata: {name: web-1, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z", labels: {app: web, pod-template-hash: abc},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, controller: true, uid: u}]},
  spec: {nodeName: n1, containers: [{name: web, image: "docker.io/library/nginx:1.28"}]},
  status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{restartCount: 7}]}}
---
us: {kind: Pod, metadata: {name: web-2, namespace: shop, creationTimestamp: "2026-01-03T00:00:00Z", labels: {app: web},
  ownerReferences: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web, controller: true, uid: u}]},
  spec: {containers: [{name: web, image: "registry:5000/nginx@sha256:0123"}], hostNetwork: true, initContainers: [{name: i, image: busybox}]},
  status: {phase: Pending}}
---
us: {kind: Deployment, metadata: {name: web, namespace: bank, creationTimestamp: "2026-01-02T00:00:00Z"},
  spec: {replicas: 2, template: {spec: {containers: [{name: web, image: nginx}]}}}, status: {readyReplicas: 1}}
---
eu: {kind: ConfigMap, metadata: {name: settings, namespace: shop, creationTimestamp: "2026-01-04T00:00:00Z"}, data: {nodeName: n1}}
`

func entries(t *testing.T) (all []*entry) {
	t.Helper()
	for text := range strings.SplitSeq(objects, "---\n") {
		var one map[string]map[string]any
		if err := yaml.Unmarshal([]byte(text), &one); err != nil {
			t.Fatal(err)
		}
		for cluster, object := range one {
			raw, _ := yaml.Marshal(object)
			json, _ := yaml.YAMLToJSON(raw)
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(append([]byte(`{"apiVersion":"v1",`), json[1:]...)); err != nil {
				t.Fatal(err)
			}
			e, err := newEntry(cluster, u)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
	}
	return all
}

func TestFiltersSelectObjects(t *testing.T) {
	all := entries(t)
	now := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	for query, want := range map[string]string{
		"": "web-1 web-2 web settings", "labelSelector=app=web": "web-1 web-2",
		"image=nginx": "web-1 web-2 web", "image=nginx:1.28": "web-1", "image=library/nginx:1.28": "web-1",
		"image=nginx:1.2": "", "image=ginx": "", "image=busybox": "web-2", "image=registry:5000/nginx": "web-2",
		"image=nginx@sha256:0123": "web-2",
		"ready=true":              "web-1", "ready=false": "web-2 web",
		"owner=CloneSet/web": "web-2", "owner=replicaset/web-abc": "web-1", "owner=deployment/web": "web-1",
		"minAge=72h": "web-1 web", "maxAge=48h": "web-2 settings", "minAge=48h&maxAge=72h": "web-2 web",
		"fieldSelector=metadata.name=web":        "web",
		"fieldSelector=spec.nodeName=n1":         "web-1",
		"fieldSelector=status.phase!=Running":    "web-2 web settings",
		"fieldSelector=spec.replicas=2":          "web",
		"fieldSelector=spec.hostNetwork=true":    "web-2",
		"fieldSelector=data.nodeName=n1":         "settings",
		"filter=cluster == 'us'":                 "web-2 web",
		"filter=object.spec.replicas > 1.5":      "web",
		"filter=has(object.data)":                "settings",
		"orderBy=age":                            "web-1 web web-2 settings",
		"orderBy=-age":                           "settings web-2 web web-1",
		"orderBy=name":                           "settings web web-1 web-2",
		"filter=object.metadata.name.size() < 4": "web",
		"filter=object.status.containerStatuses.exists(c, c.restartCount > 5)": "web-1",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		f, err := newFilter(values, now)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		var found []*entry
		for _, e := range all {
			passes, err := f.passes(t.Context(), e)
			if err != nil {
				t.Errorf("%s: %v", query, err)
			}
			if passes {
				found = append(found, e)
			}
		}
		if f.order != nil {
			f.sort(found)
		}
		names := []string{}
		for _, e := range found {
			names = append(names, e.name)
		}
		if !slices.Equal(names, strings.Fields(want)) {
			t.Errorf("%s selects %q, want %q", query, names, want)
		}
	}
	for _, query := range []string{"labelSelector=a in", "fieldSelector=a", "ready=perhaps", "minAge=old", "orderBy=size",
		"filter=1", "filter=object.", "filter=cluster.replace('', cluster) == ''",
		"filter=" + strings.Repeat("x", filterLength+1)} {
		values, _ := url.ParseQuery(query)
		if _, err := newFilter(values, now); err == nil {
			t.Errorf("%.40s is accepted", query)
		}
	}
}

// A search ends with its request, and an expression has a bounded cost.
func TestFilterEndsWithItsRequest(t *testing.T) {
	s := newStore(podResource, "Pod")
	for i := range 2 * checkEvery {
		e := *entries(t)[0]
		e.name += strings.Repeat("x", i)
		s.put(&e, &e, false)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	f, err := newFilter(url.Values{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := collect(gone, s.state(), "", nil, map[string]uint64{"eu": 1}, f, 0); !errors.Is(err,
		context.Canceled) {
		t.Errorf("the search of a client that is gone ends with %v", err)
	}
	costly := "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, a+b+c+d+e > 0)))))"
	if f, err = newFilter(url.Values{ParamFilter: {costly}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if passes, err := f.passes(t.Context(), entries(t)[0]); passes || err != nil || f.failures != 1 ||
		!strings.Contains(f.failed.Error(), "cost limit") {
		t.Errorf("a costly expression gives %v, %v, %v", passes, err, f.failed)
	}
}

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
