package fleet

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

var podsToDeletePath = []string{"spec", "scaleStrategy", "podsToDelete"}

// PodsAskedFor are the names in a CloneSet's podsToDelete that have to be looked for in the clusters, sorted: those that are
// not routed yet. Others' are none.
func PodsAskedFor(template *unstructured.Unstructured, existing map[string]*workv1alpha1.Work) ([]string, error) {
	if template.GroupVersionKind().GroupKind() != cloneSetKind {
		return nil, nil
	}
	names := texts(list(template.Object, podsToDeletePath...))
	for cluster, w := range existing {
		if len(names) == 0 {
			break
		}
		m, err := observe(Member{Cluster: cluster, Work: w})
		if err != nil {
			return nil, err
		}
		if m.before != nil && m.generation() == strconv.FormatInt(template.GetGeneration(), 10) {
			routed := texts(list(m.before.Object, podsToDeletePath...))
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(routed, name) })
		}
	}
	return unique(names), nil
}

// routePods sends each cluster the names of its own pods. A name that is nowhere, or in two clusters, is sent to none: a member
// refuses the whole update for it. One that was sent stays in the Work while the template names it, as the member's controller
// takes it off its list when the pod is gone.
func (f *fleet) routePods() {
	names := texts(list(f.Template.Object, podsToDeletePath...))
	if len(names) == 0 {
		return
	}
	own := make([][]any, len(f.members))
	var nowhere, twice []string
	for _, name := range names {
		var in []int
		gone := false
		for i, m := range f.members {
			if m.before != nil && slices.Contains(texts(list(m.before.Object, podsToDeletePath...)), name) {
				if m.generation() == strconv.FormatInt(f.Template.GetGeneration(), 10) {
					in = []int{i}
					break
				}
				gone = true // it was deleted for an earlier template
			}
			if slices.Contains(f.Pods[name], m.Cluster) {
				in = append(in, i)
			}
		}
		switch {
		case len(in) == 1:
			own[in[0]] = append(own[in[0]], name)
		case len(in) > 1:
			twice = append(twice, name)
		case !gone:
			nowhere = append(nowhere, name)
		}
	}
	for i, m := range f.members {
		if m.Base == nil {
			continue
		}
		if own[i] == nil {
			own[i] = []any{}
		}
		f.put(m, own[i], podsToDeletePath...)
	}
	var texts []string
	if len(nowhere) > 0 {
		texts = append(texts, strings.Join(nowhere, ", ")+" in no cluster that answers")
	}
	if len(twice) > 0 {
		texts = append(texts, strings.Join(twice, ", ")+" in several clusters")
	}
	if len(texts) > 0 {
		f.tell(PodNotFound, "pods named in spec.scaleStrategy.podsToDelete are not deleted: %s; remove the names, or delete the pods in their clusters", strings.Join(texts, "; "))
	}
}

// generation is that of the template that the Work was made from.
func (m *member) generation() string {
	return m.before.GetAnnotations()[workv1alpha2.TemplateGenerationAnnotation]
}

func texts(all []any) []string {
	var out []string
	for _, v := range all {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
