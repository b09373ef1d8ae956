package migrate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
)

// Conflict is why a workload is not migrated as it is now. Nothing of the workload is written then.
type Conflict struct {
	// Cluster is empty if the conflict is on the hub.
	Cluster string `json:"cluster,omitempty"`
	// Manager is the tool that manages the object, such as Helm, or the field manager that wrote it recently; empty for
	// other reasons. A user can acknowledge it.
	Manager string `json:"manager,omitempty"`
	// LastWrite is when Manager wrote the object; nil if that was more than 7 days ago.
	LastWrite *metav1.Time `json:"lastWrite,omitempty"`
	Reason    string       `json:"reason"`
}

func (c Conflict) String() string {
	if c.Cluster == "" {
		return c.Reason
	}
	return fmt.Sprintf("cluster %q: %s", c.Cluster, c.Reason)
}

// masters are the tools that manage objects of a cluster, with the labels and annotations by which they mark them, and
// their field managers. A key that ends in / is a prefix.
var masters = []struct {
	name, tool string
	keys       []string
	managers   []string
}{
	{"Helm", "Helm", []string{"meta.helm.sh/"}, []string{"helm"}},
	{"ArgoCD", "Argo CD", []string{"argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance"},
		[]string{"argocd", "argocd-controller", "argocd-application-controller"}},
	{"Flux", "Flux", []string{"kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/"},
		[]string{"flux", "kustomize-controller", "helm-controller"}},
}

// managedByHelm is the label by which Helm marks an object besides its annotations.
const managedByHelm = "app.kubernetes.io/managed-by"

// Managers returns the names of known tools. Users can acknowledge these, and any field manager.
func Managers() []string {
	var names []string
	for _, m := range masters {
		names = append(names, m.name)
	}
	return names
}

// ToolOf returns the name of the known tool that a field manager, or another spelling of its name, stands for; empty
// for none.
func ToolOf(manager string) string {
	for _, m := range masters {
		if strings.EqualFold(m.name, manager) || slices.Contains(m.managers, strings.ToLower(manager)) {
			return m.name
		}
	}
	return ""
}

// marksOf returns the labels and annotations by which the tool marks an object, sorted.
func marksOf(keys []string, obj *unstructured.Unstructured) []string {
	var found []string
	for _, m := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
		for key := range m {
			if slices.ContainsFunc(keys, func(k string) bool {
				return key == k || strings.HasSuffix(k, "/") && strings.HasPrefix(key, k)
			}) {
				found = append(found, key)
			}
		}
	}
	slices.Sort(found)
	return found
}

// Conflicts returns why the object of a cluster is not migrated. ours reports that the object is managed by the Work of
// this migration. acknowledged are the names of tools and field managers that the user stops from writing. now decides
// which writes are recent.
func Conflicts(cluster string, live *unstructured.Unstructured, ours bool, acknowledged []string,
	now time.Time) []Conflict {
	var all []Conflict
	free := live
	if ours {
		free = execute.Released(live)
	}
	if err := adopt.Obstacle(free); err != nil {
		all = append(all, Conflict{Cluster: cluster, Reason: err.Error()})
	}
	all = append(all, otherMasters(cluster, live, acknowledged, now)...)
	if reason := underWay(live); reason != "" {
		all = append(all, Conflict{Cluster: cluster, Reason: reason})
	}
	return all
}

// otherMasters returns a conflict for each tool that manages an object, and for each field manager that wrote it
// recently, without the acknowledged ones. A write with kubectl is no conflict.
func otherMasters(cluster string, live *unstructured.Unstructured, acknowledged []string, now time.Time) []Conflict {
	var all, others []Conflict
	lastWrites := map[string]*metav1.Time{} // of tools
	for _, w := range Writers(live, now) {
		tool := ToolOf(w.Manager)
		switch {
		case tool != "":
			if last := lastWrites[tool]; last == nil || last.Before(&w.LastWrite) {
				lastWrites[tool] = &w.LastWrite
			}
		case !ByHand(w.Manager) && !slices.Contains(acknowledged, w.Manager):
			others = append(others, Conflict{Cluster: cluster, Manager: w.Manager, LastWrite: &w.LastWrite, Reason: fmt.Sprintf(
				"%q wrote it at %s and would overwrite the hub's changes: stop it from writing, then acknowledge %[1]q",
				w.Manager, inUTC(w.LastWrite))})
		}
	}
	for _, m := range masters {
		signs := marksOf(m.keys, live)
		if m.name == "Helm" && live.GetLabels()[managedByHelm] == "Helm" {
			signs = append(signs, managedByHelm)
		}
		last := lastWrites[m.name]
		if last != nil {
			signs = append(signs, "last write at "+inUTC(*last))
		}
		if len(signs) > 0 && !slices.Contains(acknowledged, m.name) {
			all = append(all, Conflict{Cluster: cluster, Manager: m.name, LastWrite: last, Reason: fmt.Sprintf(
				"%s manages it (%s) and would overwrite the hub's changes: remove it from %[1]s, then acknowledge %[3]s",
				m.tool, strings.Join(signs, ", "), m.name)})
		}
	}
	return append(all, others...)
}

// inUTC returns a time for people.
func inUTC(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }

// underWay returns why the pods of an object are not all of its last template; empty if they are. The hub would not
// know which revision to keep.
func underWay(live *unstructured.Unstructured) string {
	status := fields.Object(live.Object, "status")
	_, counts := fields.Whole(status["updatedReplicas"])
	counts = counts || kind.Facts(live).Counters.Updated == "updatedReplicas" // 0 is left out
	current, update := fields.Text(status, "currentRevision"), fields.Text(status, "updateRevision")
	switch {
	case fields.Yes(live.Object, "spec", "paused"), fields.Yes(live.Object, "spec", "updateStrategy", "paused"),
		fields.Yes(live.Object, "spec", "updateStrategy", "rollingUpdate", "paused"):
		return "its rollout is paused: resume it, and migrate it when the rollout has ended"
	case fields.Number(status, "observedGeneration") > 0 &&
		fields.Number(status, "observedGeneration") < live.GetGeneration():
		return "its controller has not processed its last change: wait, and migrate it then"
	case counts && fields.Number(status, "updatedReplicas") < fields.Number(status, "replicas"),
		current != "" && update != "" && current != update,
		fields.Number(status, "updatedNumberScheduled") < fields.Number(status, "currentNumberScheduled"):
		return "a rollout is in progress: migrate it when the rollout has ended"
	}
	return ""
}

// withoutMasters removes the marks of other tools from a template. They stay in the member: the hub neither sets nor
// removes them.
func withoutMasters(template *unstructured.Unstructured) {
	labels, annotations := template.GetLabels(), template.GetAnnotations()
	for _, m := range masters {
		for _, key := range marksOf(m.keys, template) {
			delete(labels, key)
			delete(annotations, key)
		}
	}
	if labels[managedByHelm] == "Helm" {
		delete(labels, managedByHelm)
	}
	// A template without any has no empty maps.
	for field, m := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		if len(m) == 0 {
			unstructured.RemoveNestedField(template.Object, "metadata", field)
		}
	}
	if len(labels) > 0 {
		template.SetLabels(labels)
	}
	if len(annotations) > 0 {
		template.SetAnnotations(annotations)
	}
}

// Marked reports whether an object has labels or annotations of the hub.
func Marked(live *unstructured.Unstructured) bool {
	free := execute.Released(live)
	return live.GetLabels()[workv1alpha2.ManagedLabel] != "" || !maps.Equal(free.GetLabels(), live.GetLabels()) ||
		!maps.Equal(free.GetAnnotations(), live.GetAnnotations())
}

// errNoCopies is a workload without an object in any cluster.
var errNoCopies = errors.New("no cluster has it")
