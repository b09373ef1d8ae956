package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/search"
	"github.com/argosy-io/argosy/internal/sim"
)

// searchMembers are the clusters whose objects are searched.
const searchMembers = 2

var searchedResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// searching measures searches over o.Searched objects in two clusters, and the memory of the hub for them. Most of its
// three minutes are the creation of the objects.
func searching(ctx context.Context, o Options) ([]Row, error) {
	if o.Searched == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	o.Say("search: starting a hub and %d members", searchMembers)
	lo := lab.Options{Binary: o.Binary, Dir: o.Dir + "/search", HubArgs: o.HubArgs}
	for i := range searchMembers {
		lo.Members = append(lo.Members, sim.Member{Name: fmt.Sprintf("member%d", i+1), Nodes: 1, Bare: true})
	}
	l, err := lab.Start(ctx, lo)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Stop() }() // the figures are taken
	f, err := newFleet(l)
	if err != nil {
		return nil, err
	}
	hub, err := discovery.NewDiscoveryClientForConfig(f.config)
	if err != nil {
		return nil, err
	}
	s := &searchBench{fleet: f, hub: hub}
	o.Say("search: creating %d ConfigMaps", o.Searched)
	if err := s.create(ctx, o); err != nil {
		return nil, err
	}
	return s.measure(ctx, o)
}

type searchBench struct {
	*fleet
	hub *discovery.DiscoveryClient
}

// searchedText makes an object about as large as a small pod.
var searchedText = strings.Repeat("0123456789abcdef", 100)

func (s *searchBench) create(ctx context.Context, o Options) error {
	return runParallel(o.Searched, o.Workers, func(i int) error {
		u := object(searchedResource, "ConfigMap", fmt.Sprintf("object-%06d", i),
			map[string]any{"data": map[string]any{"text": searchedText}})
		u.SetLabels(map[string]string{"app": fmt.Sprintf("app-%d", i/100)})
		member := s.members[i%searchMembers].Resource(searchedResource).Namespace("default")
		_, err := member.Create(ctx, u, metav1.CreateOptions{})
		return err
	})
}

func (s *searchBench) measure(ctx context.Context, o Options) ([]Row, error) {
	before, err := s.heap(ctx)
	if err != nil {
		return nil, err
	}
	registry := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "search.karmada.io/v1alpha1",
		"kind": "ResourceRegistry", "metadata": map[string]any{"name": "bench"}, "spec": map[string]any{
			"targetCluster": map[string]any{}, "resourceSelectors": []any{
				map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default"}}}}}
	registries := schema.GroupVersionResource{Group: "search.karmada.io", Version: "v1alpha1",
		Resource: "resourceregistries"}
	began := time.Now()
	if _, err := s.fleet.hub.Resource(registries).Create(ctx, registry, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	for {
		cached, err := s.metric(ctx, "argosy_search_cached_objects")
		if err != nil {
			return nil, err
		}
		if cached >= float64(o.Searched) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%.0f of %d objects are cached: %w", cached, o.Searched, ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
	}
	rows := []Row{{Work: fmt.Sprintf("search: %d objects of %d clusters cached after", o.Searched, searchMembers),
		Unit: "s", Value: time.Since(began).Seconds()}}
	for _, q := range []struct {
		what, key, value string
		must             float64
	}{
		{"first answer, by label", "labelSelector", "app=app-0", 200},
		{"by a field", "fieldSelector", "metadata.name=object-000000", 200},
		{"the 20 oldest", search.ParamOrderBy, "age", 200},
		{"by an expression, which reads each object", search.ParamFilter, `object.metadata.name.endsWith("0")`, 0},
	} {
		o.Say("search: %s", q.what)
		began := time.Now()
		n, err := s.search(ctx, url.Values{q.key: {q.value}, "limit": {"20"}})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.what, err)
		}
		if n == 0 {
			return nil, fmt.Errorf("%s: no object was found", q.what)
		}
		rows = append(rows, Row{Work: "… " + q.what, Unit: "ms", Value: float64(time.Since(began).Microseconds()) / 1000,
			Must: q.must})
	}
	after, err := s.heap(ctx)
	if err != nil {
		return nil, err
	}
	size, err := s.objectSize(ctx)
	if err != nil {
		return nil, err
	}
	return append(rows, Row{Work: fmt.Sprintf("… memory of an object beside its %d bytes of JSON", size), Unit: "kB",
		Value: (after-before)/1000/float64(o.Searched) - float64(size)/1000, Must: 2}), nil
}

// search returns the number of objects in the answer.
func (s *searchBench) search(ctx context.Context, params url.Values) (int, error) {
	r := s.hub.RESTClient().Get().AbsPath(search.CachePath + "/api/v1/configmaps")
	for key, values := range params {
		r.Param(key, values[0])
	}
	raw, err := r.DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	err = json.Unmarshal(raw, &list)
	return len(list.Items), err
}

// objectSize returns the bytes of an object's JSON in a member, without its managed fields.
func (s *searchBench) objectSize(ctx context.Context) (int, error) {
	u, err := s.members[0].Resource(searchedResource).Namespace("default").Get(ctx, "object-000000", metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	u.SetManagedFields(nil)
	raw, err := json.Marshal(u.Object)
	return len(raw), err
}

// heap returns the bytes of live objects in the hub: a heap profile with gc=1 collects garbage first.
func (s *searchBench) heap(ctx context.Context) (float64, error) {
	if _, err := s.hub.RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx); err != nil {
		return 0, fmt.Errorf("collect garbage in the hub: %w", err)
	}
	return s.metric(ctx, "go_memstats_heap_alloc_bytes")
}

// metric returns the sum of the samples of a metric of the hub; 0 if there is none.
func (s *searchBench) metric(ctx context.Context, name string) (sum float64, err error) {
	raw, err := s.hub.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		sample, value, _ := strings.Cut(lines.Text(), " ")
		if family, _, _ := strings.Cut(sample, "{"); family != name {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", name, err)
		}
		sum += n
	}
	return sum, nil
}
