package capacity

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/internal/scope"
)

// Limits of AddRefusals, which answers while a user waits: the members that it asks at the same time, the time for
// their answers, and the age of an event in an answer. Controllers that fail again and again try every 17 minutes.
const (
	maxAsked       = 20
	refusalTimeout = 2 * time.Second
	refusalAge     = 20 * time.Minute
)

// AddRefusals adds to the reports in all why the controller of a binding's template cannot create pods in clusters. It
// lists the events of a member once, if pods are missing there and the status does not have the reason. A member that
// is not ready, or does not answer, is left out.
func (f *Fleet) AddRefusals(ctx context.Context, b workv1alpha2.Binding, all []pods.Workload) []pods.Workload {
	spec, s := b.BindingSpec(), f.Snapshot()
	of := spec.Resource
	type asked struct {
		cluster        string
		missing, total int64
		why            string
	}
	var at []asked
	for _, item := range b.BindingStatus().AggregatedStatus {
		var status map[string]any
		if f.members == nil || !pods.HasPods(spec) || !item.Applied || item.Health == workv1alpha1.ResourceHealthy ||
			item.Status == nil || json.Unmarshal(item.Status.Raw, &status) != nil {
			continue
		}
		total := capacity.ReplicasIn(spec, spec.Clusters, item.ClusterName)
		gk := match.GroupKind(of.APIVersion, of.Kind)
		missing := pods.Missing(gk, status, total)
		if missing > 0 && interpret.Refusal(gk, status, true) == "" && len(at) < maxAsked &&
			!membership.KnownNotReady(s.Cluster(item.ClusterName)) {
			at = append(at, asked{item.ClusterName, missing, total, ""})
		}
	}
	if len(at) == 0 {
		return all
	}
	known, _ := f.templates(ctx, of.Namespace) // an error leaves only this template
	ctx, cancel := context.WithTimeout(ctx, refusalTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for i := range at {
		asking.Go(func() { at[i].why = f.refusal(ctx, at[i].cluster, of, known) })
	}
	asking.Wait()
	for _, a := range at {
		if a.why == "" {
			continue
		}
		i := slices.IndexFunc(all, func(w pods.Workload) bool {
			return w.Cluster == a.cluster && w.APIVersion == of.APIVersion && w.Kind == of.Kind && w.Name == of.Name
		})
		if i < 0 {
			i = len(all)
			all = append(all, pods.Workload{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name})
		}
		all[i].Report = all[i].WithRefusal(a.cluster, a.missing, a.total, a.why)
	}
	return all
}

// refusal returns the newest event of a member about pods of a template that could not be created; empty for none.
func (f *Fleet) refusal(ctx context.Context, cluster string, of workv1alpha2.ObjectReference,
	known templates) (message string) {
	m, err := f.members.Get(cluster)
	if err != nil {
		return ""
	}
	events, _ := m.Warnings(ctx, of.Namespace, pods.FailedCreate) // none if it does not answer
	newest := f.Clock.Now().Add(-refusalAge)
	for _, e := range events {
		about := capacity.Workload{Namespace: of.Namespace, Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name}
		candidates := append([]workv1alpha2.ObjectReference{of}, known.candidates(cluster, about)...)
		if pods.Owner(about, candidates) == 0 && !e.LastTimestamp.Time.Before(newest) {
			newest, message = e.LastTimestamp.Time, e.Message
		}
	}
	return message
}

// Troubled returns the templates with pod troubles in a namespace (all if empty), sorted by namespace, name, kind and
// cluster. It omits a member's own objects and clusters that are not Ready.
func (f *Fleet) Troubled(ctx context.Context, namespace string) ([]pods.Workload, error) {
	if f.members == nil {
		return nil, nil
	}
	// 1. Collect the troubles from members.
	type seen struct {
		cluster  string
		troubles []pods.Trouble
	}
	var all []seen
	s, now := f.Snapshot(), f.Clock.Now()
	for _, cluster := range s.Names() {
		m := f.members.Known(cluster)
		if m == nil || membership.KnownNotReady(s.Cluster(cluster)) {
			continue
		}
		if troubles := m.Troubles(namespace, now); len(troubles) > 0 {
			all = append(all, seen{cluster, troubles})
		}
	}
	if len(all) == 0 {
		return nil, nil
	}

	// 2. Find the templates by the bindings.
	known, err := f.templates(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var found []pods.Workload
	for _, member := range all {
		of := map[workv1alpha2.ObjectReference][]pods.Trouble{}
		for _, t := range member.troubles {
			candidates := known.candidates(member.cluster, t.Workload)
			if i := pods.Owner(t.Workload, candidates); i >= 0 {
				of[candidates[i]] = append(of[candidates[i]], t)
			}
		}
		for ref, troubles := range of {
			total := int64(0)
			f.state(member.cluster, func(m *capacity.ClusterState) {
				total = m.Pods(capacity.Workload{Namespace: ref.Namespace, Kind: ref.Kind, Name: ref.Name})
			})
			found = append(found, pods.Workload{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace,
				Name:   ref.Name,
				Report: pods.Summarize(member.cluster, total, troubles)})
		}
	}
	slices.SortFunc(found, func(a, b pods.Workload) int {
		return strings.Compare(strings.Join([]string{a.Namespace, a.Name, a.Kind, a.Cluster}, "\n"),
			strings.Join([]string{b.Namespace, b.Name, b.Kind, b.Cluster}, "\n"))
	})
	return found, nil
}

type place struct{ cluster, namespace, name string }

// templates are the templates with pods that clusters have.
type templates map[place][]workv1alpha2.ObjectReference

// candidates returns the templates that may have created a workload: those with its name, or with the part of it before
// a hyphen. Many workloads and templates in a namespace are so not compared each with each.
func (t templates) candidates(cluster string, of capacity.Workload) []workv1alpha2.ObjectReference {
	found := slices.Clone(t[place{cluster, of.Namespace, of.Name}])
	for i, c := range text.Cut(of.Name, validation.DNS1123SubdomainMaxLength) {
		if c == '-' {
			found = append(found, t[place{cluster, of.Namespace, of.Name[:i]}]...)
		}
	}
	return found
}

// templates returns those in a namespace (all if empty).
func (f *Fleet) templates(ctx context.Context, namespace string) (templates, error) {
	var in []client.ListOption
	if namespace != "" {
		in = append(in, client.InNamespace(namespace))
	}
	bindings, err := scope.Bindings.List(ctx, f.bindings, append(in, client.UnsafeDisableDeepCopy)...)
	if err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	found := templates{}
	for _, b := range bindings {
		if !pods.HasPods(b.BindingSpec()) {
			continue
		}
		applied := map[string]bool{}
		for _, item := range b.BindingStatus().AggregatedStatus {
			// A rejected update leaves the old object and its status. An object that was never applied has no status.
			applied[item.ClusterName] = item.Applied || item.Status != nil
		}
		for _, t := range dispatch.Targets(b) {
			if !applied[t.Name] {
				continue // an object with this name may be the member's own
			}
			at := place{t.Name, b.GetNamespace(), b.BindingSpec().Resource.Name}
			found[at] = append(found[at], b.BindingSpec().Resource)
		}
	}
	return found, nil
}
