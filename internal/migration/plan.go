package migration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
	"github.com/argosy-io/argosy/internal/core/source/migrate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/scope"
)

// live returns the object of a workload in a cluster; nil if there is none.
func (m *Migration) live(ctx context.Context, cluster string, w Workload) (*unstructured.Unstructured, error) {
	s, err := m.member(ctx, cluster)
	if err != nil {
		return nil, err
	}
	in, err := s.AnyVersion(w.GVK, w.Namespace)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("cluster %q does not serve %s: %w", cluster, w.GVK.GroupKind(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", cluster, err)
	}
	live, err := in.Get(ctx, w.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s in cluster %q: %w", w, cluster, err)
	}
	return live, nil
}

// autoscaler returns the autoscaler in a cluster that sets the replicas of a workload; empty for none.
func (m *Migration) autoscaler(ctx context.Context, cluster string, w Workload) (string, error) {
	if w.Namespace == "" {
		return "", nil
	}
	s, err := m.member(ctx, cluster)
	if err != nil {
		return "", err
	}
	for _, gk := range []schema.GroupKind{{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
		{Group: "keda.sh", Kind: "ScaledObject"}} {
		mapping, err := s.Mapper.RESTMapping(gk)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("cluster %q: %w", cluster, err)
		}
		list, err := s.Dynamic.Resource(mapping.Resource).Namespace(w.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", fmt.Errorf("list autoscalers in cluster %q: %w", cluster, err)
		}
		for i := range list.Items {
			target, ok := execute.TargetOf(&list.Items[i])
			if ok && target == (execute.Target{GroupKind: w.GVK.GroupKind(), Namespace: w.Namespace, Name: w.Name}) {
				return gk.Kind + " " + list.Items[i].GetName(), nil
			}
		}
	}
	return "", nil
}

// snapshot returns what a workload runs in a cluster.
func (m *Migration) snapshot(ctx context.Context, cluster string, w Workload,
	live *unstructured.Unstructured) (migrate.Snapshot, error) {
	scaler, err := m.autoscaler(ctx, cluster, w)
	if err != nil {
		return migrate.Snapshot{}, err
	}
	pods, err := m.pods(ctx, cluster, w, live)
	return migrate.Take(live, pods, scaler != ""), err
}

// pods returns the pods of a workload in a cluster; none for kinds without pods.
func (m *Migration) pods(ctx context.Context, cluster string, w Workload,
	live *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	raw := fields.Object(live.Object, "spec", "selector")
	if len(interpret.PodTemplatePaths(w.GVK.GroupKind())) == 0 || raw == nil {
		return nil, nil
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return nil, fmt.Errorf("read the selector of %s in cluster %q: %w", w, cluster, err)
	}
	by, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil, fmt.Errorf("read the selector of %s in cluster %q: %w", w, cluster, err)
	}
	s, err := m.member(ctx, cluster)
	if err != nil {
		return nil, err
	}
	list, err := s.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(w.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: by.String()})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s in cluster %q: %w", w, cluster, err)
	}
	return list.Items, nil
}

// policies returns all policies of the hub.
func (m *Migration) policies(ctx context.Context) ([]policyv1alpha1.Propagation, error) {
	all, err := scope.Propagations.List(ctx, m.Client)
	if err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	return all, nil
}

// Status is the state of the migration of a workload.
type Status struct {
	Object         string `json:"object"`
	migrate.Record `json:",inline"`
}

// Statuses returns the workloads that were migrated, sorted; of all namespaces if namespace is empty. Those that have
// neither a policy nor a template have the states that their Works show.
func (m *Migration) Statuses(ctx context.Context, namespace string) ([]Status, error) {
	known, records, err := m.recorded(ctx, namespace)
	if err != nil {
		return nil, err
	}
	all := []Status{}
	for i, w := range known {
		all = append(all, Status{w.String(), *records[i]})
	}
	left, err := m.leftovers(ctx, namespace, known)
	if apierrors.IsForbidden(err) {
		m.Progress("Workloads without a policy are not listed: %v\n", err)
	} else if err != nil {
		return nil, err
	}
	for _, l := range left {
		s := Status{Object: l.String()}
		reason := "its template was deleted on the hub, and no policy has its migration: `argosy migrate out` ends the " +
			"management"
		if l.unknown != nil {
			reason = l.unknown.Error()
		}
		for cluster, state := range l.states {
			s.Set(cluster, migrate.Cluster{State: state, Reason: reason})
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Object, b.Object) })
	return all, nil
}

// recorded returns the workloads with a record, in a namespace or, if it is empty, in all.
func (m *Migration) recorded(ctx context.Context, namespace string) (all []Workload, records []*migrate.Record,
	err error) {
	policies, err := m.policies(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range policies {
		w, r, err := workloadOf(p)
		if err != nil {
			return nil, nil, err
		}
		if r != nil && (namespace == "" || w.Namespace == namespace) {
			all, records = append(all, w), append(records, r)
		}
	}
	return all, records, nil
}

// workloadOf returns the workload that a policy migrates, and its record; nil if the policy is of no migration.
func workloadOf(p policyv1alpha1.Propagation) (Workload, *migrate.Record, error) {
	r, err := migrate.RecordOf(p)
	selectors := p.PropagationSpec().ResourceSelectors
	if err != nil || r == nil || len(selectors) == 0 {
		return Workload{}, nil, err
	}
	s := selectors[0]
	return Workload{GVK: schema.FromAPIVersionAndKind(s.APIVersion, s.Kind), Namespace: s.Namespace, Name: s.Name}, r, nil
}

// onHub is what the hub has of a workload.
type onHub struct {
	template *unstructured.Unstructured // nil for none
	policy   policyv1alpha1.Propagation // that of the migration, nil for none
	record   *migrate.Record            // of policy
	policies []policyv1alpha1.Propagation
	served   bool // the hub knows the kind
}

// readHub reads what the hub has of a workload. It sets the version of the workload to that of its policy.
func (m *Migration) readHub(ctx context.Context, w *Workload) (*onHub, error) {
	h := &onHub{}
	var err error
	if h.policies, err = m.policies(ctx); err != nil {
		return nil, err
	}
	for _, p := range h.policies {
		of, r, err := workloadOf(p)
		if err != nil {
			return nil, err
		}
		if r != nil && w.IsSame(of) {
			h.policy, h.record, w.GVK = p, r, of.GVK
		}
	}
	h.template, h.served, err = m.template(ctx, *w)
	return h, err
}

// errNotServed means that the hub has the definition of a kind, but does not serve the kind.
var errNotServed = errors.New("the hub does not serve")

// template reads the template of a workload; nil for none. served reports whether the hub knows the kind; if not, it
// has no template of it. It is errNotServed if the hub has the definition of the kind, but does not serve it.
func (m *Migration) template(ctx context.Context, w Workload) (t *unstructured.Unstructured, served bool, err error) {
	in, err := m.Hub.AnyVersion(w.GVK, w.Namespace)
	if meta.IsNoMatchError(err) {
		if defined, err := m.isDefined(ctx, w.GVK.GroupKind()); err != nil || !defined {
			return nil, false, err
		}
		return nil, false, fmt.Errorf("%w %s now, so it is unknown whether its template exists: check its "+
			"CustomResourceDefinition, and run the command again when it is established", errNotServed, w)
	}
	if err == nil {
		t, err = in.Get(ctx, w.Name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, true, fmt.Errorf("look for %s on the hub: %w", w, err)
	}
	return t, true, nil
}

// isDefined reports whether the hub has a CustomResourceDefinition of a kind.
func (m *Migration) isDefined(ctx context.Context, kind schema.GroupKind) (bool, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinitionList"})
	if err := m.Client.List(ctx, list); err != nil {
		return false, fmt.Errorf("look for the CustomResourceDefinition of %s, which the hub does not serve: %w", kind, err)
	}
	return slices.ContainsFunc(list.Items, func(crd unstructured.Unstructured) bool {
		return fields.Text(crd.Object, "spec", "group") == kind.Group &&
			fields.Text(crd.Object, "spec", "names", "kind") == kind.Kind
	}), nil
}

// state returns the state of a cluster; empty if it is in none.
func (h *onHub) state(cluster string) migrate.State {
	if h.record == nil {
		return ""
	}
	return h.record.Clusters[cluster].State
}

// Item is what a migration makes of a workload.
type Item struct {
	Object    string             `json:"object"`
	Batch     int                `json:"batch"`
	Conflicts []migrate.Conflict `json:"conflicts,omitempty"`
	Clusters  []Cluster          `json:"clusters,omitempty"`
	// Overrides are the rules for clusters that differ from the template.
	Overrides []policyv1alpha1.RuleWithCluster `json:"overrides,omitempty"`
	// Stopped is why the migration stopped at this workload.
	Stopped string `json:"stopped,omitempty"`

	workload Workload
	hub      *onHub
	joined   migrate.Joined
	record   *migrate.Record
}

// Cluster is what a migration makes of a workload in one cluster.
type Cluster struct {
	Name string `json:"name"`
	// State is that of the record, or Found.
	State    migrate.State `json:"state"`
	Replicas int64         `json:"replicas,omitempty"`
	// Autoscaler sets the replicas in the cluster, and continues to.
	Autoscaler string `json:"autoscaler,omitempty"`
	// HandsOff reports that the annotation argosy.io/hands-off of the object keeps the hub from writing it.
	HandsOff bool `json:"handsOff,omitempty"`
	// Writers are the field managers that wrote the object in the last 7 days, also those that are no conflict.
	Writers []migrate.Writer `json:"writers,omitempty"`
	// Asked reports that the member checked the result in a dry run.
	Asked        bool `json:"askedMember"`
	adopt.Report `json:",inline"`
}

// Found is the state of a cluster that is not migrated.
const Found migrate.State = "Found"

// Disturbs returns what would restart, replace or remove pods, for people.
func (i *Item) Disturbs() (lines []string) {
	for _, c := range i.Clusters {
		for _, d := range c.Disturbs {
			lines = append(lines, fmt.Sprintf("cluster %q: %s", c.Name, d))
		}
	}
	return lines
}

// useCommonVersion sets the version of a workload to one that the hub and all its clusters serve; it stays if there is
// none.
func (m *Migration) useCommonVersion(ctx context.Context, w *Workload) error {
	gk := w.GVK.GroupKind()
	mappings, err := m.Hub.Mapper.RESTMappings(gk)
	if meta.IsNoMatchError(err) {
		return unknownKind(w.GVK)
	}
	if err != nil {
		return fmt.Errorf("read the versions of %s on the hub: %w", gk, err)
	}
	versions := make([]string, 0, len(mappings))
	for _, mapping := range mappings {
		versions = append(versions, mapping.GroupVersionKind.Version)
	}
	if i := slices.Index(versions, w.GVK.Version); i > 0 {
		versions[0], versions[i] = versions[i], versions[0]
	}
	for _, cluster := range w.Clusters {
		s, err := m.member(ctx, cluster)
		if err != nil {
			return err
		}
		var failed error
		versions = slices.DeleteFunc(versions, func(version string) bool {
			_, err := s.Mapper.RESTMapping(gk, version)
			if err != nil && !meta.IsNoMatchError(err) {
				failed = err
			}
			return err != nil
		})
		if failed != nil {
			return fmt.Errorf("read the versions of %s in cluster %q: %w", gk, cluster, failed)
		}
	}
	if len(versions) > 0 {
		w.GVK.Version = versions[0]
	}
	return nil
}

func unknownKind(gvk schema.GroupVersionKind) error {
	return fmt.Errorf("the hub does not know %s: create its CustomResourceDefinition on the hub first", gvk)
}

// Plan reads a workload, and determines what its migration would write and change. It writes nothing.
func (m *Migration) Plan(ctx context.Context, w Workload) (*Item, error) {
	// 1. What the hub and the clusters have.
	h, err := m.readHub(ctx, &w)
	if err != nil {
		return nil, err
	}
	if !h.served {
		return nil, unknownKind(w.GVK)
	}
	m.note(w, h.policy)
	if h.record == nil {
		if err := m.useCommonVersion(ctx, &w); err != nil {
			return nil, err
		}
	}
	item := &Item{Object: w.String(), Batch: w.Batch, workload: w, hub: h}
	clusters, anyManaged := w.Clusters, false
	if h.record != nil {
		r := *h.record
		item.record, anyManaged = &r, len(r.Names(migrate.Verifying, migrate.Own)) > 0
		for _, cluster := range r.Names() {
			if !slices.Contains(clusters, cluster) {
				clusters = append(slices.Clip(clusters), cluster)
			}
		}
	}
	var joining []migrate.Copy
	now := time.Now()
	for _, cluster := range clusters {
		c := Cluster{Name: cluster, State: Found}
		if s := h.state(cluster); s != "" {
			c.State = s
		}
		if c.Autoscaler, err = m.autoscaler(ctx, cluster, w); err != nil {
			return nil, err
		}
		item.Clusters = append(item.Clusters, c)
		if IsManaged(c.State) || c.State == migrate.Leaving {
			continue
		}
		live, err := m.live(ctx, cluster, w)
		if err != nil {
			return nil, err
		}
		if live == nil {
			item.conflict(cluster, "it does not exist there: check its name and namespace, or leave out this cluster")
			continue
		}
		work, err := m.work(ctx, cluster, w)
		if err != nil {
			return nil, err
		}
		item.Conflicts = append(item.Conflicts,
			migrate.Conflicts(cluster, live, work != nil && execute.Owns(work, live), w.Acknowledged, now)...)
		found := &item.Clusters[len(item.Clusters)-1]
		found.HandsOff, found.Writers = execute.IsHandsOff(live), migrate.Writers(live, now)
		joining = append(joining, migrate.Copy{Cluster: cluster, Live: live})
	}
	switch {
	case h.record == nil && h.template != nil:
		item.conflict("", "the hub has a template of that name: use `argosy adopt`, or delete it with its policy first")
	case h.record != nil && h.template == nil && anyManaged:
		item.conflict("", "its template was deleted on the hub: take it out with `argosy migrate out`, and in again")
	case h.record != nil && len(h.record.Names(migrate.Leaving)) > 0:
		item.conflict("", "clusters %s are leaving: finish that with `argosy migrate out` first",
			strings.Join(h.record.Names(migrate.Leaving), ", "))
	}
	if len(item.Conflicts) > 0 || len(joining) == 0 {
		return item, nil
	}

	// 2. What the hub would have.
	var base *unstructured.Unstructured
	if anyManaged {
		base = h.template
	}
	divides, err := m.divides(ctx, joining[0].Live)
	if err != nil {
		return nil, err
	}
	if item.joined, err = migrate.Join(joining, base, divides); err != nil {
		item.conflict("", "%v", err)
		return item, nil
	}
	item.Overrides = item.joined.Rules
	item.record = item.nextRecord(anyManaged)
	for i := range item.Clusters {
		c := &item.Clusters[i]
		c.Replicas = item.record.Clusters[c.Name].Replicas
		if n := item.joined.Replicas[c.Name]; c.State == migrate.Shadow && c.Autoscaler == "" && n != c.Replicas {
			item.conflict(c.Name, "it was scaled from %d to %d replicas since it is in Shadow: take it out with "+
				"`argosy migrate out`, and in again", c.Replicas, n)
		}
	}
	if len(item.Conflicts) > 0 {
		return item, nil
	}
	return item, m.rehearse(ctx, item, joining)
}

// conflict adds a conflict; cluster is empty for one on the hub.
func (i *Item) conflict(cluster, format string, args ...any) {
	i.Conflicts = append(i.Conflicts, migrate.Conflict{Cluster: cluster, Reason: fmt.Sprintf(format, args...)})
}

// note remembers the record of a workload as it is on the hub.
func (m *Migration) note(w Workload, p policyv1alpha1.Propagation) {
	if m.seen == nil {
		m.seen = map[string]string{}
	}
	m.seen[w.String()] = migrate.TextOf(p)
}

// divides reports whether clusters share spec.replicas of a kind.
func (m *Migration) divides(ctx context.Context, live *unstructured.Unstructured) (bool, error) {
	replicas, _, _, err := m.Meaning.Replicas(ctx, live)
	if err != nil {
		return false, fmt.Errorf("read the replicas of %s: %w", NameOf(live), err)
	}
	n, set := fields.Whole(fields.Value(live.Object, "spec", "replicas"))
	return set && n == int64(replicas), nil
}

// nextRecord returns the record with the clusters that join, and the present replicas of those in Shadow. If the hub
// writes a cluster, replicas in Shadow stay: a change of weights would move replicas of that cluster.
func (i *Item) nextRecord(anyManaged bool) *migrate.Record {
	r := &migrate.Record{}
	if i.record != nil {
		*r = *i.record
	}
	for _, c := range i.Clusters {
		is := r.Clusters[c.Name]
		switch {
		case c.State == Found:
			is = migrate.Cluster{State: migrate.Shadow, Since: stamp(), Replicas: i.joined.Replicas[c.Name]}
		case c.State == migrate.Shadow && !anyManaged:
			is.Replicas = i.joined.Replicas[c.Name]
		default:
			continue
		}
		r.Set(c.Name, is)
	}
	return r
}

// stamp returns the present time for a record.
func stamp() string { return time.Now().UTC().Format(time.RFC3339) }

// rehearse determines what each cluster would make of its Work.
func (m *Migration) rehearse(ctx context.Context, item *Item, copies []migrate.Copy) error {
	template, err := m.previewTemplate(ctx, item)
	if err != nil {
		return err
	}
	policy := migrate.NewPolicy(template, item.record)
	if err := item.checkClaim(template, policy); err != nil {
		item.Conflicts = append(item.Conflicts, migrate.Conflict{Reason: err.Error()})
		return nil
	}
	if item.hub.policy == nil {
		preview, _ := policy.DeepCopyObject().(policyv1alpha1.Propagation)
		err := m.Client.Create(ctx, preview, client.DryRunAll)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			item.conflict("", "the hub refuses its policy: %v", err)
			return nil
		case err != nil && !apierrors.IsNotFound(err): // its namespace may not exist yet
			return fmt.Errorf("preview policy %s on the hub: %w", preview.GetName(), err)
		}
	}
	overrides, err := m.overridesWith(ctx, item)
	if err != nil {
		return err
	}
	var targets []adopt.Target
	for _, c := range copies {
		cluster := &clusterv1alpha1.Cluster{}
		if err := m.Client.Get(ctx, types.NamespacedName{Name: c.Cluster}, cluster); err != nil {
			return fmt.Errorf("read cluster %q: %w", c.Cluster, err)
		}
		n := item.record.Clusters[c.Cluster].Replicas
		if n > math.MaxInt32 {
			return fmt.Errorf("%s has %d replicas in cluster %q", item.Object, n, c.Cluster)
		}
		targets = append(targets, adopt.Target{Cluster: cluster, Replicas: int32(n)})
	}
	works, err := adopt.Works(ctx, template, policy, targets, overrides, m.Meaning)
	if err != nil {
		return fmt.Errorf("render what the hub would send: %w", err)
	}
	for i := range item.Clusters {
		c := &item.Clusters[i]
		at := slices.IndexFunc(copies, func(copied migrate.Copy) bool { return copied.Cluster == c.Name })
		if at < 0 {
			continue
		}
		work := works[c.Name]
		if work == nil {
			return fmt.Errorf("nothing would be sent to cluster %q", c.Name)
		}
		if c.Report, c.Asked, err = m.compare(ctx, c.Name, work, copies[at].Live, c.Autoscaler != ""); err != nil {
			return err
		}
	}
	return nil
}

// previewTemplate returns the template as the hub would store it.
func (m *Migration) previewTemplate(ctx context.Context, item *Item) (*unstructured.Unstructured, error) {
	if item.hub.template == nil {
		return m.Hub.PreviewTemplate(ctx, item.joined.Template)
	}
	in, err := m.Hub.Resource(item.workload.GVK, item.workload.Namespace)
	if err != nil {
		return nil, err
	}
	stored, err := item.update(ctx, in, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, fmt.Errorf("the hub refuses the template %s: %w", item.Object, err)
	}
	return stored, nil
}

// newTemplate returns the template to write: the one on the hub with the content of the joined one, and with the
// replicas of the record.
func (i *Item) newTemplate() *unstructured.Unstructured {
	there := i.hub.template
	if there == nil {
		return i.joined.Template.DeepCopy()
	}
	out := there.DeepCopy()
	if i.joined.Template == there {
		if i.joined.Divides {
			_ = unstructured.SetNestedField(out.Object, i.replicas(), "spec", "replicas") // spec is an object
		}
		return out
	}
	maps.DeleteFunc(out.Object, func(key string, _ any) bool { return key != "metadata" && key != "status" })
	content := i.joined.Template.DeepCopy().Object
	delete(content, "metadata")
	maps.Copy(out.Object, content)
	// Labels and annotations of the hub stay; those of a user who wrote the template do, too.
	for key, value := range i.joined.Template.GetLabels() {
		fields.SetLabel(out, key, value)
	}
	for key, value := range i.joined.Template.GetAnnotations() {
		fields.SetAnnotation(out, key, value)
	}
	return out
}

// refresh takes a newer version of the template, of which the hub has only written the metadata or the status. It
// reports whether that is all that changed.
func (i *Item) refresh(is *unstructured.Unstructured) bool {
	content := func(o *unstructured.Unstructured) map[string]any {
		all := maps.Clone(o.Object)
		delete(all, "metadata")
		delete(all, "status")
		return all
	}
	was := i.hub.template
	if is.GetUID() != was.GetUID() || !equality.Semantic.DeepEqual(content(is), content(was)) {
		return false
	}
	if i.joined.Template == was {
		i.joined.Template = is
	}
	i.hub.template = is
	return true
}

// replicas returns those that the template must have: what it has now, and those of clusters that join.
func (i *Item) replicas() int64 {
	n := fields.Number(i.hub.template.Object, "spec", "replicas")
	for name, c := range i.record.Clusters {
		if i.hub.state(name) == "" {
			n += c.Replicas
		}
	}
	return n
}

// checkClaim returns an error if another policy would claim the template.
func (i *Item) checkClaim(template *unstructured.Unstructured, policy policyv1alpha1.Propagation) error {
	if i.hub.record == nil && slices.ContainsFunc(i.hub.policies, func(p policyv1alpha1.Propagation) bool {
		return adopt.SamePolicy(p, policy)
	}) {
		return fmt.Errorf("the hub has a policy named %s, which `argosy migrate` did not create: delete it first",
			policy.GetName())
	}
	other, claims := adopt.Rival(template, policy, i.hub.policies)
	switch {
	case other == nil:
		return nil
	case claims:
		return fmt.Errorf("policy %s claims the template", text.Path(other.GetNamespace(), other.GetName()))
	}
	return fmt.Errorf("policy %s would claim the template: change its selectors first",
		text.Path(other.GetNamespace(), other.GetName()))
}

// newOverrides returns the override policy of a workload: the rules of clusters that the hub writes stay. before is the
// one that stands, nil for none.
func (i *Item) newOverrides(before policyv1alpha1.Override) policyv1alpha1.Override {
	var keep []string
	var rules []policyv1alpha1.RuleWithCluster
	if i.hub.record != nil {
		for _, name := range i.hub.record.Names() {
			if IsManaged(i.hub.state(name)) {
				keep = append(keep, name)
			}
		}
	}
	if before != nil {
		rules = before.OverrideSpec().OverrideRules
	}
	return migrate.NewOverrides(i.joined.Template, migrate.KeepRules(rules, i.joined.Rules, keep))
}

// overridesOf returns the override policy of a workload; nil for none.
func (m *Migration) overridesOf(ctx context.Context, w Workload) (policyv1alpha1.Override, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.GVK)
	u.SetNamespace(w.Namespace)
	u.SetName(w.Name)
	key := client.ObjectKeyFromObject(migrate.NewOverrides(u, nil))
	p, err := scope.Overrides.Get(ctx, m.Client, key)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read override policy %s: %w", key.Name, err)
	}
	return p, nil
}

// overridesWith returns all override policies of the hub, with the new one of the workload.
func (m *Migration) overridesWith(ctx context.Context, item *Item) ([]policyv1alpha1.Override, error) {
	before, err := m.overridesOf(ctx, item.workload)
	if err != nil {
		return nil, err
	}
	made := item.newOverrides(before)
	all, err := scope.Overrides.List(ctx, m.Client)
	if err != nil {
		return nil, fmt.Errorf("list override policies: %w", err)
	}
	all = slices.DeleteFunc(all, func(p policyv1alpha1.Override) bool {
		return p.GetNamespace() == made.GetNamespace() && p.GetName() == made.GetName()
	})
	return append(all, made), nil
}

// compare returns what would change if a cluster got the Work. asked reports that the cluster itself answered.
func (m *Migration) compare(ctx context.Context, cluster string, work *workv1alpha1.Work,
	live *unstructured.Unstructured, scaled bool) (report adopt.Report, asked bool, err error) {
	s, err := m.member(ctx, cluster)
	if err != nil {
		return report, false, err
	}
	manifest, err := execute.Manifest(work)
	if err != nil {
		return report, false, err
	}
	// The hub may send another version than the one that the user named.
	if gvk := manifest.GroupVersionKind(); gvk != live.GroupVersionKind() {
		w := Workload{GVK: gvk, Namespace: live.GetNamespace(), Name: live.GetName()}
		if live, err = m.live(ctx, cluster, w); err != nil {
			return report, false, err
		}
		if live == nil {
			return report, false, fmt.Errorf("%s is gone from cluster %q", w, cluster)
		}
	}
	return s.Compare(ctx, cluster, work, live, m.Meaning, scaled)
}

// work returns the Work of a workload for a cluster; nil for none.
func (m *Migration) work(ctx context.Context, cluster string, w Workload) (*workv1alpha1.Work, error) {
	b, _, err := scope.BindingFor(ctx, m.Client, w.GVK.GroupKind(), w.Namespace, w.Name)
	if err != nil {
		return nil, fmt.Errorf("read the binding of %s: %w", w, err)
	}
	if b == nil {
		return nil, nil
	}
	work, err := scope.WorkFor(ctx, m.Client, b, cluster)
	if err != nil {
		return nil, fmt.Errorf("read the Work of %s for cluster %q: %w", w, cluster, err)
	}
	return work, nil
}

// Details describes the conflicts, overrides and changes of an item, one per line, for people.
func (i *Item) Details() (lines []string) {
	for _, c := range i.Conflicts {
		lines = append(lines, "conflict: "+c.String())
	}
	for _, r := range i.Overrides {
		lines = append(lines, fmt.Sprintf("override for %s: %s", strings.Join(r.TargetCluster.ClusterNames, ", "),
			Shown(r.Overriders)))
	}
	for _, c := range i.Clusters {
		for _, d := range c.Differences {
			lines = append(lines, fmt.Sprintf("cluster %q: %s: %s → %s", c.Name, d.Path, Shown(d.Have), Shown(d.Want)))
		}
		if c.HandsOff {
			lines = append(lines, fmt.Sprintf("cluster %q: the object has the annotation %s: the hub can take it to Shadow, "+
				"and to Own when it is removed", c.Name, wellknown.HandsOffAnnotation))
		}
		for _, w := range c.Writers {
			if migrate.ByHand(w.Manager) && !slices.Contains(i.workload.Acknowledged, w.Manager) {
				lines = append(lines, fmt.Sprintf("cluster %q: %q wrote it at %s: after the migration, change the template on the hub "+
					"instead", c.Name, w.Manager, w.LastWrite.UTC().Format(time.RFC3339)))
			}
		}
		if !c.Asked && c.State == Found && len(i.Conflicts) == 0 {
			lines = append(lines, fmt.Sprintf("cluster %q does not support a dry run for it, so only the applied fields are compared",
				c.Name))
		}
	}
	return append(lines, i.Disturbs()...)
}

// IsManaged reports whether the hub applies the workload in a cluster of this state.
func IsManaged(s migrate.State) bool { return s == migrate.Verifying || s == migrate.Own }
