package guides

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// edit sets a field of an object of an article; a number in the path is an index.
func (s *story) edit(u *unstructured.Unstructured, value any, path ...string) {
	var at any = u.Object
	for i, key := range path {
		last := i == len(path)-1
		switch in := at.(type) {
		case map[string]any:
			if last {
				in[key] = value
			} else if in[key] == nil {
				in[key] = map[string]any{}
			}
			at = in[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n >= len(in) {
				s.fail("%s has no %s", strings.Join(path, "."), key)
			}
			if last {
				in[n] = value
			}
			at = in[n]
		default:
			s.fail("%s is %T at %s", strings.Join(path, "."), at, key)
		}
	}
}

// list is a field that is a list of objects.
func (s *story) list(u *unstructured.Unstructured, path ...string) []map[string]any {
	if u == nil {
		s.fail("there is no object")
	}
	all, _, err := unstructured.NestedSlice(u.Object, path...)
	if err != nil || len(all) == 0 {
		s.fail("%s of %s: %v, %v", strings.Join(path, "."), u.GetName(), all, err)
	}
	var out []map[string]any
	for _, item := range all {
		out = append(out, item.(map[string]any))
	}
	return out
}

// replicasOf sets the replicas of a UnitedDeployment and of its subsets.
func (s *story) replicasOf(o map[string]any, all int64, subsets ...int64) {
	set(o, all, "spec", "replicas")
	list := s.list(&unstructured.Unstructured{Object: o}, "spec", "topology", "subsets")
	var items []any
	for i := range list {
		list[i]["replicas"] = subsets[i]
		items = append(items, list[i])
	}
	set(o, items, "spec", "topology", "subsets")
}

// propagate creates a policy that sends a template to members, divided among them if there are several.
func (s *story) propagate(u *unstructured.Unstructured, members ...string) {
	kind, scope := "PropagationPolicy", "metadata: {name: to-"+u.GetName()+"}"
	if u.GetNamespace() == "" {
		kind = "ClusterPropagationPolicy"
	}
	s.apply(s.object(fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: %s, %s, spec: {
		resourceSelectors: [{apiVersion: %s, kind: %s, name: %s}],
		placement: {clusterAffinity: {clusterNames: [%s]}, replicaScheduling: {replicaSchedulingType: Divided}}}}`,
		kind, scope, u.GetAPIVersion(), u.GetKind(), u.GetName(), strings.Join(members, ", "))))
}

// createAs creates an object as another user, who receives the warnings.
func (s *story) createAs(user string, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u.SetName(u.GetName() + "-" + user)
	err := s.listening(user).Create(s.t.Context(), u, client.FieldValidation("Strict"))
	return u, err
}

// waitForEvent waits for an event of an object that contains text.
func (s *story) waitForEvent(name, text string) string {
	var wantText string
	s.waitUntil("an event of "+name+" says "+text, func() string {
		if wantText = s.event(name, text); wantText == "" {
			return "none does"
		}
		return ""
	})
	return wantText
}

// event is the message of one of an object that says text; empty for none.
func (s *story) event(name, text string) string {
	var all corev1.EventList
	if err := fleet.Hub.List(context.WithoutCancel(s.t.Context()), &all, client.InNamespace(s.ns)); err != nil {
		s.fail("list events: %v", err)
	}
	i := slices.IndexFunc(all.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.Name == name && strings.Contains(e.Message, text)
	})
	if i < 0 {
		return ""
	}
	return all.Items[i].Message
}
