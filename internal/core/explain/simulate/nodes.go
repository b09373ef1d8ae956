package simulate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Document is the kind of documents about clusters: nodes, pods, quotas. See docs/simulate.md.
var Document = schema.GroupVersionKind{Group: "simulate.argosy.io", Version: "v1alpha1", Kind: "Fleet"}

type DocumentCluster struct {
	Name string `json:"name"`
	// These fields define a cluster without a Cluster object.
	Labels   map[string]string `json:"labels,omitempty"`
	Provider string            `json:"provider,omitempty"`
	Region   string            `json:"region,omitempty"`
	Zones    []string          `json:"zones,omitempty"`
	Taints   []corev1.Taint    `json:"taints,omitempty"`
	// APIs are the kinds that it serves, as apps/v1/Deployment; by default all kinds of templates in the files.
	APIs []string `json:"apis,omitempty"`

	capacity.Record `json:",inline"`
}

// Scheduler configures a hub's scheduler and failover.
type Scheduler struct {
	// Name is the schedulerName of the policies that it places; empty for the default.
	Name string `json:"name,omitempty"`
	// Plugins are as in the hub's configuration, such as "*,-TaintToleration"; empty for all.
	Plugins string `json:"plugins,omitempty"`
	// KeepEmpty is --enable-empty-workload-propagation of the hub.
	KeepEmpty bool `json:"keepEmpty,omitempty"`
	// QuotasOff is --enforce-federated-quotas=false of the hub.
	QuotasOff bool `json:"quotasOff,omitempty"`
	// Failover are the hub's failover options; nil for the defaults.
	Failover *failover.Options `json:"failover,omitempty"`
}

// DocumentOf returns a document about these clusters, and how the scheduler is set, unless that is nil.
func DocumentOf(s *Scheduler, members ...DocumentCluster) (*unstructured.Unstructured, error) {
	fields := map[string]any{"apiVersion": Document.GroupVersion().String(), "kind": Document.Kind,
		"clusters": append([]DocumentCluster{}, members...)}
	if s != nil {
		fields["scheduler"] = s
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(raw)
}

// membersOf returns the clusters in a document, and its scheduler if it has one. The error joins all errors.
func membersOf(u *unstructured.Unstructured) ([]DocumentCluster, *Scheduler, error) {
	if gvk := u.GroupVersionKind(); gvk != Document {
		return nil, nil, fmt.Errorf("it is of %s, kind %s, and this version of Argosy reads %s, kind %s: "+
			"use the version that wrote it, or a newer one, or record the fleet again",
			u.GetAPIVersion(), gvk.Kind, Document.GroupVersion(), Document.Kind)
	}
	var errs []error
	amountsIn(u.Object, "", &errs)
	if len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return nil, nil, err
	}
	var document struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        any               `json:"metadata"`
		Scheduler       *Scheduler        `json:"scheduler"`
		Clusters        []json.RawMessage `json:"clusters"`
	}
	if err := strictly(raw, &document); err != nil {
		return nil, nil, err
	}
	if s := document.Scheduler; s != nil {
		if _, err := s.plugins(); err != nil {
			errs = append(errs, fmt.Errorf("scheduler: %w", err))
		}
	}
	var all []DocumentCluster
	for i, raw := range document.Clusters {
		var m DocumentCluster
		err := strictly(raw, &m)
		if err == nil && m.Name == "" {
			err = errors.New("set the name")
		}
		if wrong := validate.ClusterName(m.Name, field.NewPath("name")); err == nil && len(wrong) > 0 {
			err = wrong.ToAggregate()
		}
		if err == nil {
			_, err = capacity.ClusterStateOf(capacity.Record{Nodes: m.Nodes, Quotas: m.Quotas})
		}
		if err == nil {
			_, err = m.enablements()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("clusters[%d] (%s): %w", i, text.Cut(m.Name, 60), err))
			continue
		}
		all = append(all, m)
	}
	return all, document.Scheduler, errors.Join(errs...)
}

func (s *Scheduler) plugins() (schedule.Plugins, error) {
	return schedule.ParsePlugins(strings.FieldsFunc(s.Plugins, func(r rune) bool { return r == ',' }))
}

func strictly(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// amountsIn checks the quantities below v, because the decoder's error would not name the field.
func amountsIn(v any, path string, errs *[]error) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			at := strings.TrimPrefix(path+"."+key, ".")
			list, is := v[key].(map[string]any)
			if !is || !slices.Contains([]string{"allocatable", "requested", "requests", "left"}, key) {
				amountsIn(v[key], at, errs)
				continue
			}
			for _, name := range sortedKeys(list) {
				if _, err := resource.ParseQuantity(fmt.Sprint(list[name])); err != nil {
					*errs = append(*errs, fmt.Errorf("%s.%s: %q is no amount: write such as 500m, 16 or 64Gi", at, name,
						fmt.Sprint(list[name])))
				}
			}
		}
	case []any:
		for i := range v {
			amountsIn(v[i], fmt.Sprintf("%s[%d]", path, i), errs)
		}
	}
}

// addMembers adds a document. Cluster objects may be added separately.
func (f *Fleet) addMembers(o Object, sources map[string]string) error {
	members, scheduler, err := membersOf(o.Unstructured)
	if err != nil {
		return err
	}
	if scheduler != nil {
		f.scheduler.Name, f.scheduler.KeepEmpty = cmp.Or(scheduler.Name, f.scheduler.Name), scheduler.KeepEmpty
		f.scheduler.QuotasOff = scheduler.QuotasOff
		f.scheduler.Plugins, _ = scheduler.plugins() // checked when it was read
		if scheduler.Failover != nil {
			f.failover = *scheduler.Failover
		}
	}
	var errs []error
	for i := range members {
		m := &members[i]
		if at, twice := sources[m.Name]; twice {
			errs = append(errs, fmt.Errorf("cluster %q is in %s already: keep one of the two, or give it another name", m.Name,
				at))
			continue
		}
		sources[m.Name] = o.Source
		f.members[m.Name] = m
	}
	return errors.Join(errs...)
}

// makeClusters creates the clusters that have no Cluster object.
func (f *Fleet) makeClusters(sources map[string]string) error {
	var errs []error
	for _, name := range sortedKeys(sources) {
		m := f.members[name]
		if f.clusters[name] != nil {
			if m.describes() {
				errs = append(errs, fmt.Errorf(
					"%s: cluster %q: there is a Cluster of that name: set its labels, region, zones, provider, taints and APIs there",
					sources[name], name))
			}
			continue
		}
		c := &clusterv1alpha1.Cluster{}
		c.Name, c.Labels = m.Name, m.Labels
		c.Spec = clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, Provider: m.Provider, Region: m.Region,
			Zones: m.Zones, Taints: m.Taints}
		for _, of := range []string{clusterv1alpha1.ClusterConditionReady,
			clusterv1alpha1.ClusterConditionCompleteAPIEnablements} {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: of, Status: metav1.ConditionTrue})
		}
		c.Status.APIEnablements, _ = m.enablements() // checked when it was read
		f.clusters[name], f.made[name] = c, len(m.APIs) == 0
	}
	return errors.Join(errs...)
}

func (m *DocumentCluster) describes() bool {
	return len(m.Labels)+len(m.Zones)+len(m.Taints)+len(m.APIs) > 0 || m.Provider != "" || m.Region != ""
}

func (m *DocumentCluster) enablements() ([]clusterv1alpha1.APIEnablement, error) {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, api := range m.APIs {
		at := strings.LastIndex(api, "/")
		gv, err := schema.ParseGroupVersion(api[:max(0, at)])
		if err != nil || at < 1 || gv.Version == "" || at == len(api)-1 {
			return nil, fmt.Errorf("apis: %q: write it as apps/v1/Deployment, or v1/ConfigMap", api)
		}
		kinds[gv.WithKind(api[at+1:])] = true
	}
	return served(kinds), nil
}

// served returns the kinds as API enablements of a cluster.
func served(kinds map[schema.GroupVersionKind]bool) []clusterv1alpha1.APIEnablement {
	byGroup := map[string]*clusterv1alpha1.APIEnablement{}
	for _, gvk := range slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	}) {
		gv := gvk.GroupVersion().String()
		if byGroup[gv] == nil {
			byGroup[gv] = &clusterv1alpha1.APIEnablement{GroupVersion: gv}
		}
		byGroup[gv].Resources = append(byGroup[gv].Resources, clusterv1alpha1.APIResource{Name: strings.ToLower(gvk.Kind) +
			"s", Kind: gvk.Kind})
	}
	var all []clusterv1alpha1.APIEnablement
	for _, gv := range sortedKeys(byGroup) {
		all = append(all, *byGroup[gv])
	}
	return all
}

// seenClusters returns the clusters as the scheduler sees them. Those that were made up without APIs serve all that
// there are templates of. Those in Pull mode report what runs there.
func (f *Fleet) seenClusters(r rooms) []*clusterv1alpha1.Cluster {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, u := range f.templates {
		kinds[u.GroupVersionKind()] = true
	}
	all := served(kinds)
	var out []*clusterv1alpha1.Cluster
	for name, c := range f.clusters {
		if f.made[name] {
			c = c.DeepCopy()
			c.Status.APIEnablements = all
		}
		if free := r.free[name]; free != nil && r.pulls[name] {
			c = c.DeepCopy()
			c.ResourceVersion = "" // it is another version
			summary := c.Status.ResourceSummary
			summary.Allocating, summary.Allocated = nil, corev1.ResourceList{}
			for resource, n := range capacity.AmountsOf(summary.Allocatable) {
				summary.Allocated[resource] = capacity.Quantity(resource, n-free[resource])
			}
		}
		out = append(out, c)
	}
	return out
}
