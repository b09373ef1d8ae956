package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/test/kit"
)

// A definition takes all objects of its kind along, so it goes only where none is left that the hub did not send.
func TestDeletedDefinitionStaysInMembersUsingIt(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	const crds, kind, name, api = "apiextensions.k8s.io/v1", "CustomResourceDefinition", "trains.e2e.example.com",
		"e2e.example.com/v1"
	ns := fleet.Namespace(t)
	m1, m2 := fleet.Members["m1"], fleet.Members["m2"]
	train := func(name string) string {
		return fmt.Sprintf("{apiVersion: %s, kind: Train, metadata: {name: %s, namespace: %s}, spec: {cars: 2}}", api, name,
			ns)
	}
	fleet.Hub.Apply(t, propagation("", ns, "{resourceSelectors: [{apiVersion: "+crds+", kind: "+kind+", name: "+name+
		"}], placement: "+placedOn("m1", "m2")+"}"))
	fleet.Hub.Apply(t, definition("trains", "Train"))
	for _, c := range []kit.Cluster{fleet.Hub, m1, m2} {
		serves(t, c, "Train")
	}
	m1.RemoveAtEnd(t, m1.Find(t, crds, kind, "", name))
	fleet.Hub.Apply(t, policy(ns, "p", api, "Train", placedOn("m1", "m2")))
	fleet.Hub.Apply(t, train("ours"))
	kit.Eventually(t, "the hub's is in both", func() string { return applied(t, ns, "ours-train", "m1", "m2") })
	m1.Apply(t, train("theirs"))
	theirs := m1.Find(t, api, "Train", ns, "theirs").GetUID()

	fleet.Hub.Change(t, crds, kind, "", name, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{wellknown.ConfirmDeletionAnnotation: name})
	})
	fleet.Hub.Remove(t, crds, kind, "", name)
	kit.Eventually(t, "it goes where nothing of it is left, and is the member's where something is", func() string {
		if fleet.Hub.Find(t, crds, kind, "", name) != nil {
			return "the hub has it still"
		}
		if m2.Find(t, crds, kind, "", name) != nil {
			return "m2 has it still"
		}
		u := m1.Find(t, crds, kind, "", name)
		if u == nil || u.GetDeletionTimestamp() != nil {
			t.Fatal("m1 loses the definition of an object of its own")
		}
		for _, marks := range []map[string]string{u.GetLabels(), u.GetAnnotations()} {
			for key := range marks {
				if key != wellknown.ConfirmDeletionAnnotation &&
					(strings.Contains(key, "karmada.io/") || strings.Contains(key, "argosy.io/")) {
					return "m1's has the mark " + key
				}
			}
		}
		if m1.Find(t, api, "Train", ns, "ours") != nil {
			return "m1 has the hub's object still"
		}
		return ""
	})
	if now := m1.Find(t, api, "Train", ns, "theirs"); now == nil || now.GetUID() != theirs {
		t.Errorf("what m1 had of its own became %v", now)
	}
	for _, m := range []string{"m1", "m2"} {
		waitFor(t, "no Work is left behind", true, func() bool {
			return work(t, m, "Train", ns, "ours") == nil && work(t, m, kind, "", name) == nil
		})
	}
	kit.Eventually(t, "an event reports why it stays", func() string {
		messages := fleet.Hub.Messages(t, "Cluster", "", "m1", "DefinitionReleased")
		for _, message := range messages {
			if strings.Contains(message, name) && strings.Contains(message, ns+"/theirs") {
				return ""
			}
		}
		return fmt.Sprint(messages)
	})
}
