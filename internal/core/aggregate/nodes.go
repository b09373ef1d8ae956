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
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// The nodes of a Workflow are its steps, which Argo's CLI and UI show. They can be large, so Works and bindings omit
// them. The template gets them directly from the member's object.

// NodesOmitted: the status of a Workflow on the hub lacks some of its nodes. The message has the number and the reason.
//
//reference:condition status of a template
//reference:event Warning on binding and template
const NodesOmitted = "NodesOmitted"

const (
	// nodesLimit is the maximum size of a template's nodes as JSON.
	nodesLimit = 1 << 20
	// templateLimit is the maximum size of a template with nodes. etcd accepts 1.5 MiB per object.
	templateLimit = 1400 << 10
)

// nodeFields are the status fields with nodes, plain or compressed.
var nodeFields = []string{"nodes", "compressedNodes"}

// Nodes reports whether the kind has nodes, and the resource to read them from in a member.
func Nodes(gk schema.GroupKind) (schema.GroupVersionResource, bool) {
	resource := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "workflows"}
	return resource, kind.Lookup(gk).IsWorkflow()
}

// SameNodes reports whether two objects have the same nodes.
func SameNodes(a, b *unstructured.Unstructured) bool {
	was, is := fields.Object(a.Object, "status"), fields.Object(b.Object, "status")
	return equality.Semantic.DeepEqual(picked(was), picked(is)) &&
		fields.Text(was, offloaded) == fields.Text(is, offloaded)
}

// Sole returns the only final cluster of b; empty if there is none or several.
func Sole(b workv1alpha2.Binding) string {
	if all := clusters(b); len(all) == 1 {
		return all[0]
	}
	return ""
}

// WithNodes returns folded, the template with its aggregated status, plus the nodes from its only cluster. seen is the
// member's object. If it is nil, nodes in read (the current template) of the same run stay. The arguments are not
// modified, but may share memory with the result.
func WithNodes(read, folded, seen *unstructured.Unstructured, cluster string) *unstructured.Unstructured {
	status, was := fields.Object(folded.Object, "status"), fields.Object(read.Object, "status")
	if len(status) == 0 {
		return folded // no report for this template yet
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

// NodesSize returns the size of a template's nodes as JSON.
func NodesSize(template *unstructured.Unstructured) int {
	return bytesOf(picked(fields.Object(template.Object, "status")))
}

// Omitted returns the message about omitted nodes in a template's status; empty if none are omitted.
func Omitted(template *unstructured.Unstructured) string {
	for _, c := range fields.Objects(template.Object, "status", "conditions") {
		if fields.Text(c, "type") == NodesOmitted {
			return fields.Text(c, "message")
		}
	}
	return ""
}

// Turned reports whether a Workflow began or ended, or its message changed, in contrast to mere progress.
func Turned(was, is *unstructured.Unstructured) bool {
	return slices.ContainsFunc([]string{"phase", "startedAt", "finishedAt", "message"}, func(field string) bool {
		return !equality.Semantic.DeepEqual(fields.Value(was.Object, "status", field),
			fields.Value(is.Object, "status", field))
	})
}

// statusOfRun returns the status of the member's object if it was created from this template and is of the same run.
func statusOfRun(seen, template *unstructured.Unstructured, status map[string]any) map[string]any {
	if seen == nil || fields.Text(seen.Object, "metadata", "annotations",
		workv1alpha2.TemplateUIDAnnotation) != string(template.GetUID()) {
		return nil
	}
	now := fields.Object(seen.Object, "status")
	started := fields.Text(status, "startedAt")
	if started != "" && fields.Text(now, "startedAt") != started {
		return nil // the current report arrives through the Work
	}
	return now
}

// offloaded is the field with the version of nodes in the database of Argo's controller.
const offloaded = "offloadNodeStatusVersion"

// carried returns the nodes of the member's status that fit into the template, and the message about omitted ones. was
// is the current status of the template.
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

// picked returns the fields with nodes.
func picked(status map[string]any) map[string]any {
	nodes := map[string]any{}
	for _, field := range nodeFields {
		if v := status[field]; v != nil && v != "" {
			nodes[field] = v
		}
	}
	return nodes
}

// readable reports whether Argo's clients can read the nodes. One unreadable Workflow would hide all others in lists.
// Compressed nodes are unpacked only when a single Workflow is shown.
func readable(nodes map[string]any) bool {
	return fields.Reads[struct {
		Nodes           map[string]argoNode
		CompressedNodes string
	}](nodes)
}

// lean returns the nodes without inputs and outputs, which are most of a large Workflow. Compressed nodes cannot be
// reduced.
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

// withNodes returns a status with exactly these nodes, and with a condition if some are omitted.
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
		return templateLimit // it cannot be stored
	}
	return len(raw)
}
