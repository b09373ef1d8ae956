package aggregate

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/fields"
)

// The nodes of a Workflow are its steps, by which Argo's CLI and UI show what runs. They grow with the Workflow, so
// that Works and bindings do not have them: the template takes them from the member's object itself.

// NodesOmitted: the status of a Workflow on the hub lacks some of its nodes. The message has the number and the reason.
//
//reference:condition status of a template
const NodesOmitted = "NodesOmitted"

const (
	// nodesLimit is the most bytes of nodes, as JSON, that a template has.
	nodesLimit = 1 << 20
	// templateLimit is the most bytes of a template with them: etcd takes 1.5 MiB as one object.
	templateLimit = 1400 << 10
)

// nodeFields are the fields of a status that have the nodes: as they are, or compressed.
var nodeFields = []string{"nodes", "compressedNodes"}

// Nodes says whether the status of the kind has nodes, and the resource that they are read from in a member.
func Nodes(kind schema.GroupKind) (schema.GroupVersionResource, bool) {
	resource := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "workflows"}
	return resource, kind == schema.GroupKind{Group: resource.Group, Kind: "Workflow"}
}

// SameNodes says whether two objects of a kind with nodes have the same ones.
func SameNodes(a, b *unstructured.Unstructured) bool {
	was, is := fields.Object(a.Object, "status"), fields.Object(b.Object, "status")
	return equality.Semantic.DeepEqual(picked(was), picked(is)) &&
		fields.Text(was, offloaded) == fields.Text(is, offloaded)
}

// Sole is the only cluster that holds a Work of b when all is done; empty if there is none, or several.
func Sole(b workv1alpha2.Binding) string {
	if all := clusters(b); len(all) == 1 {
		return all[0]
	}
	return ""
}

// WithNodes is folded, the template with what a fold made of its status, with the nodes that it has in the only cluster
// that runs it. seen is the object there; nil while it is not known, and then the nodes stay that read, the template as
// it is, has of the same run. Nothing given is changed, and some of it is shared.
func WithNodes(read, folded, seen *unstructured.Unstructured, cluster string) *unstructured.Unstructured {
	status, was := fields.Object(folded.Object, "status"), fields.Object(read.Object, "status")
	if len(status) == 0 {
		return folded // nobody has answered for this template
	}
	nodes, omitted := map[string]any{}, ""
	switch now := statusOfRun(seen, read, status); {
	case now != nil:
		nodes, omitted = carried(now, was, folded, cluster)
	case fields.Text(was, "startedAt") == fields.Text(status, "startedAt"):
		nodes, omitted = picked(was), Omitted(read)
	}
	want := &unstructured.Unstructured{Object: maps.Clone(folded.Object)}
	want.Object["status"] = withNodes(status, nodes, omitted)
	return want
}

// NodesSize is how many bytes of JSON the nodes of a template have.
func NodesSize(template *unstructured.Unstructured) int {
	return bytesOf(picked(fields.Object(template.Object, "status")))
}

// Omitted is what a template's status says of the nodes that it lacks; empty if it lacks none.
func Omitted(template *unstructured.Unstructured) string {
	for _, c := range fields.Objects(template.Object, "status", "conditions") {
		if fields.Text(c, "type") == NodesOmitted {
			return fields.Text(c, "message")
		}
	}
	return ""
}

// Turned says whether the status of a Workflow says more than that it gets on: that it began, ended, or why.
func Turned(was, is *unstructured.Unstructured) bool {
	return slices.ContainsFunc([]string{"phase", "startedAt", "finishedAt", "message"}, func(field string) bool {
		return !equality.Semantic.DeepEqual(fields.At(was.Object, "status", field), fields.At(is.Object, "status", field))
	})
}

// statusOfRun is the status of the member's object, if it was made from this template and is of the run that status
// tells of.
func statusOfRun(seen, template *unstructured.Unstructured, status map[string]any) map[string]any {
	if seen == nil || fields.Text(seen.Object, "metadata", "annotations",
		workv1alpha2.TemplateUIDAnnotation) != string(template.GetUID()) {
		return nil
	}
	now := fields.Object(seen.Object, "status")
	started := fields.Text(status, "startedAt")
	if started != "" && fields.Text(now, "startedAt") != started {
		return nil // what the member says now comes by its Work
	}
	return now
}

// offloaded is the field that names the version of nodes that Argo's controller keeps in its database.
const offloaded = "offloadNodeStatusVersion"

// carried are the nodes of the member's status as they fit into the template, and what is left out. was is the
// template's status as it is.
func carried(now, was map[string]any, folded *unstructured.Unstructured,
	cluster string) (nodes map[string]any, omitted string) {
	nodes = picked(now)
	switch {
	case len(nodes) == 0 && fields.Text(now, offloaded) != "":
		return nil, fmt.Sprintf("Argo's controller in cluster %q stores the nodes in its database, which the hub cannot read; view the Workflow in that cluster", cluster)
	case len(nodes) == 0:
		return nil, ""
	case !readable(nodes):
		return nil, fmt.Sprintf("the nodes in cluster %q are not in the format of Argo's controller", cluster)
	case equality.Semantic.DeepEqual(nodes, picked(was)):
		return nodes, ""
	}
	bare := maps.Clone(folded.Object)
	bare["status"] = withNodes(fields.Object(folded.Object, "status"), nil, "")
	room := min(nodesLimit, templateLimit-bytesOf(bare))
	if bytesOf(nodes) <= room {
		return nodes, ""
	}
	const much = "the nodes in cluster %q are larger than the hub stores (1 MiB, or less with a large template): "
	if nodes = lean(nodes); bytesOf(nodes) <= room {
		return nodes, fmt.Sprintf(much+"their inputs and outputs are omitted", cluster)
	}
	return nil, fmt.Sprintf(much+"they are omitted; view the Workflow in that cluster", cluster)
}

// picked are the fields of a status that have nodes.
func picked(status map[string]any) map[string]any {
	nodes := map[string]any{}
	for _, field := range nodeFields {
		if v := status[field]; v != nil && v != "" {
			nodes[field] = v
		}
	}
	return nodes
}

// readable says whether Argo's clients can read the nodes: one Workflow that they cannot read hides all others from
// them. What is compressed they unpack when they show that one Workflow.
func readable(nodes map[string]any) bool {
	return fields.Reads[struct {
		Nodes           map[string]argoNode
		CompressedNodes string
	}](nodes)
}

// lean are the nodes without what their steps were given and gave, which is most of a large Workflow. What was
// compressed stays whole: without a part it could not be read.
func lean(nodes map[string]any) map[string]any {
	all, ok := nodes["nodes"].(map[string]any)
	if !ok {
		return nodes
	}
	short := make(map[string]any, len(all))
	for id, node := range all {
		short[id] = node
		if n, is := node.(map[string]any); is {
			n = maps.Clone(n)
			delete(n, "inputs")
			delete(n, "outputs")
			short[id] = n
		}
	}
	nodes = maps.Clone(nodes)
	nodes["nodes"] = short
	return nodes
}

// withNodes is a status with these nodes and no others, and with a condition for those that are left out.
func withNodes(status, nodes map[string]any, omitted string) map[string]any {
	out := maps.Clone(status)
	for _, field := range nodeFields {
		delete(out, field)
	}
	maps.Copy(out, nodes)
	conditions := slices.DeleteFunc(slices.Clone(fields.List(status, "conditions")), func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == NodesOmitted
	})
	if omitted != "" {
		conditions = append(conditions, map[string]any{"type": NodesOmitted, "status": "True", "message": omitted})
	}
	if delete(out, "conditions"); len(conditions) > 0 {
		out["conditions"] = conditions
	}
	return out
}

func bytesOf(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		return templateLimit // it cannot be sent either
	}
	return len(raw)
}
