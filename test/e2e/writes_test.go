package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// unplaced is a binding as a policy makes one, of a template that is not there.
func unplaced(ns, name, placement string) string {
	return `
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {namespace: ` + ns + `, name: ` + name + `, labels: {propagationpolicy.karmada.io/permanent-id: some-id}}
spec:
  resource: {apiVersion: v1, kind: ConfigMap, namespace: ` + ns + `, name: ` + name + `}
  placement: ` + placement
}

func TestBindingIsPlacedInOneWriteWithoutManagedFields(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	config := rest.CopyConfig(fleet.Hub.Config)
	config.Impersonate.UserName, config.Impersonate.Groups, config.UserAgent = user.APIServerUser,
		[]string{user.SystemPrivilegedGroup}, "argosy"
	hub, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("work.karmada.io/v1alpha2")
	list.SetKind("ResourceBindingList")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watcher, err := hub.Watch(ctx, list, client.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	next := func() *unstructured.Unstructured {
		t.Helper()
		event, ok := <-watcher.ResultChan()
		if !ok {
			t.Fatal("the watch ended")
		}
		return event.Object.(*unstructured.Unstructured)
	}
	state := func(b *unstructured.Unstructured) string {
		return fmt.Sprintf("generation %d, clusters %v, observed %v, managed %d", b.GetGeneration(),
			kit.Field(b, "spec", "clusters"),
			kit.Field(b, "status", "schedulerObservedGeneration"), len(b.GetManagedFields()))
	}

	if err := hub.Create(ctx, kit.Object(t, unplaced(ns, "b", "{clusterAffinity: {clusterNames: [m1]}}"))); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"generation 1, clusters <nil>, observed <nil>, managed 0",
		"generation 2, clusters [map[name:m1]], observed 2, managed 0",
	} {
		if got := state(next()); got != want {
			t.Errorf("it is at %s, want %s", got, want)
		}
	}

	// Somebody applies to it: from then on the record is kept, and the hub's writes go into it.
	applied := kit.Object(t, `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {namespace: `+ns+
		`, name: b, labels: {mine: "true"}}, spec: {placement: {clusterAffinity: {clusterNames: [m2]}}}}`)
	//lint:ignore SA1019 what is applied is untyped
	if err := hub.Patch(ctx, applied, client.Apply, client.FieldOwner("somebody"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "it has moved", func() string {
		b := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, "b")
		if got := fmt.Sprint(kit.Field(b, "spec", "clusters")); got != "[map[name:m2]]" ||
			fmt.Sprint(kit.Field(b, "status", "schedulerObservedGeneration")) != fmt.Sprint(b.GetGeneration()) {
			return state(b)
		}
		managers := map[string]bool{}
		for _, entry := range b.GetManagedFields() {
			managers[entry.Manager] = true
		}
		if !managers["somebody"] || !managers["argosy"] {
			return fmt.Sprintf("it is of %v", managers)
		}
		return ""
	})
}

func TestNewBindingIsCreatedWithItsPlacementConfirmed(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {namespace: `+ns+`, name: settings}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: settings}]
  placement: {clusterAffinity: {clusterNames: [m1]}}`)
	hub, err := client.NewWithWatch(fleet.Hub.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("work.karmada.io/v1alpha2")
	list.SetKind("ResourceBindingList")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watcher, err := hub.Watch(ctx, list, client.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	fleet.Hub.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+ns+`, name: settings}}`)
	event, ok := <-watcher.ResultChan()
	if !ok {
		t.Fatal("the watch ended")
	}
	b := event.Object.(*unstructured.Unstructured)
	if observed := fmt.Sprint(kit.Field(b, "status", "schedulerObservedGeneration")); b.GetGeneration() != 1 ||
		observed != "1" || fmt.Sprint(kit.Field(b, "spec", "clusters")) != "[map[name:m1]]" {
		t.Errorf("its first version is %v", b.Object)
	}
}

// Only the hub's own requests carry a status; see commit.Create.
func TestStatusInABindingOfAUserIsDropped(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	hub, err := client.New(fleet.Hub.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
		"metadata": map[string]any{"namespace": ns, "name": "forged"},
		"spec": map[string]any{"resource": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": ns,
			"name": "forged"}},
		"status": map[string]any{"schedulerObservedGeneration": int64(1), "conditions": []any{map[string]any{
			"type": "Scheduled", "status": "True", "reason": "Success", "message": "",
			"lastTransitionTime": "2026-01-01T00:00:00Z"}}},
	}}
	if err := hub.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if status := b.Object["status"]; status != nil && len(status.(map[string]any)) > 0 {
		t.Errorf("the status %v is stored", status)
	}
}
