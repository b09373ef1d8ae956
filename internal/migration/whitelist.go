package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/core/source/migrate"
)

// Whitelist is the file of `argosy migrate`: the workloads to migrate, in their order.
type Whitelist struct {
	// Batches are weights over the items: 1, 2, 7 puts the first tenth of them into batch 1.
	Batches []int64 `json:"batches,omitempty"`
	// Soak is how long the pods of a batch are watched before it counts as verified.
	Soak    metav1.Duration `json:"soak,omitempty"`
	Items   []WhitelistItem `json:"items"`
	Exclude []WhitelistName `json:"exclude,omitempty"`
}

// WhitelistName names an object.
type WhitelistName struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// WhitelistItem is a workload, or those that a selector matches.
type WhitelistItem struct {
	WhitelistName `json:",inline"`
	Selector      *metav1.LabelSelector `json:"selector,omitempty"`
	Clusters      []string              `json:"clusters"`
	// Acknowledge are the tools and field managers that wrote the objects, and that the user stops from writing.
	Acknowledge []string `json:"acknowledge,omitempty"`
}

// ParseWhitelist reads and checks the file.
func ParseWhitelist(raw []byte) (*Whitelist, error) {
	w := &Whitelist{}
	if err := yaml.UnmarshalStrict(raw, w); err != nil {
		return nil, err
	}
	return w, w.validate()
}

func (w *Whitelist) validate() error {
	if len(w.Items) == 0 {
		return errors.New("it has no items")
	}
	for i, item := range w.Items {
		at := fmt.Sprintf("items[%d]", i)
		switch {
		case item.APIVersion == "" || item.Kind == "":
			return fmt.Errorf("%s: apiVersion and kind are required", at)
		case (item.Name == "") == (item.Selector == nil):
			return fmt.Errorf("%s: either name or selector is required", at)
		case len(item.Clusters) == 0:
			return fmt.Errorf("%s: clusters is required", at)
		}
		if err := CheckClusters(item.Clusters); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if err := CheckAcknowledged(item.Acknowledge); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	for _, weight := range w.Batches {
		if weight < 1 {
			return fmt.Errorf("batches: the weight %d is not positive", weight)
		}
	}
	if w.Soak.Duration < 0 {
		return errors.New("soak: it is negative")
	}
	return nil
}

// CheckClusters returns an error for a cluster that is named twice.
func CheckClusters(names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("clusters: %q is named twice", name)
		}
	}
	return nil
}

// CheckAcknowledged returns an error for a known tool by another name than its own: the conflict would stay.
func CheckAcknowledged(names []string) error {
	for _, name := range names {
		if name == "" {
			return errors.New("acknowledge: a name is empty")
		}
		if tool := migrate.ToolOf(name); tool != "" && tool != name {
			return fmt.Errorf("acknowledge: write %s instead of %q", tool, name)
		}
	}
	return nil
}

// SetScope removes the namespace of a cluster-scoped kind.
func (m *Migration) SetScope(w *Workload) error {
	mapping, err := m.Hub.Mapper.RESTMapping(w.GVK.GroupKind(), w.GVK.Version)
	if err != nil {
		return fmt.Errorf("the hub does not know %s: %w", w.GVK, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		w.Namespace = ""
	}
	return nil
}

// Expand returns the workloads of a whitelist. A selector is resolved in each cluster; an object that only some of them
// have is migrated in these.
func (m *Migration) Expand(ctx context.Context, list *Whitelist, namespace string) ([]Workload, error) {
	var all []Workload
	add := func(w Workload) error {
		for _, x := range list.Exclude {
			if x.Kind == w.GVK.Kind && (x.APIVersion == "" || x.APIVersion == w.GVK.GroupVersion().String()) &&
				x.Name == w.Name && (w.Namespace == "" || cmp.Or(x.Namespace, namespace) == w.Namespace) {
				return nil
			}
		}
		if slices.ContainsFunc(all, w.IsSame) {
			return fmt.Errorf("%s is in the file twice", w)
		}
		all = append(all, w)
		return nil
	}
	for _, item := range list.Items {
		w := Workload{GVK: schema.FromAPIVersionAndKind(item.APIVersion, item.Kind),
			Namespace: cmp.Or(item.Namespace, namespace), Name: item.Name, Clusters: item.Clusters,
			Acknowledged: item.Acknowledge}
		if err := m.SetScope(&w); err != nil {
			return nil, err
		}
		found := []Workload{w}
		if item.Selector != nil {
			var err error
			if found, err = m.selected(ctx, w, item.Selector); err != nil {
				return nil, err
			}
		}
		for _, w := range found {
			if err := add(w); err != nil {
				return nil, err
			}
		}
	}
	for i, batch := range migrate.Batches(len(all), list.Batches) {
		all[i].Batch = batch
	}
	return all, nil
}

// selected returns the workloads that a selector matches, each with the clusters that have it.
func (m *Migration) selected(ctx context.Context, of Workload, selector *metav1.LabelSelector) ([]Workload, error) {
	by, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	var all []Workload
	for _, cluster := range of.Clusters {
		api, err := m.member(ctx, cluster)
		if err != nil {
			return nil, err
		}
		in, err := api.Resource(of.GVK, of.Namespace)
		if err != nil {
			return nil, fmt.Errorf("cluster %q: %w", cluster, err)
		}
		list, err := in.List(ctx, metav1.ListOptions{LabelSelector: by.String()})
		if err != nil {
			return nil, fmt.Errorf("list %s in cluster %q: %w", of.GVK.Kind, cluster, err)
		}
		for _, u := range list.Items {
			w := of
			w.Name, w.Clusters = u.GetName(), []string{cluster}
			if i := slices.IndexFunc(all, w.IsSame); i >= 0 {
				all[i].Clusters = append(all[i].Clusters, cluster)
			} else {
				all = append(all, w)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no %s in namespace %q of clusters %s has the labels %s", of.GVK.Kind, of.Namespace,
			strings.Join(of.Clusters, ", "), by)
	}
	return all, nil
}
