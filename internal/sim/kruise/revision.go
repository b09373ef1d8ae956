package kruise

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
)

// revisionData returns a template as a ControllerRevision stores it: a patch of the set.
func revisionData(u *unstructured.Unstructured) ([]byte, error) {
	template, _, err := unstructured.NestedMap(u.Object, "spec", "template")
	if err != nil {
		return nil, err
	}
	template["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
}

// templateOf reads a template back.
func templateOf(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var stored struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &stored); err != nil {
		return nil, fmt.Errorf("read revision %s: %w", r.Name, err)
	}
	return &stored.Spec.Template, nil
}

// newRevision names the revision of data after its content; collisions tells apart contents of the same hash.
func newRevision(u *unstructured.Unstructured, data []byte, number int64,
	collisions *int32) *appsv1.ControllerRevision {
	h := fnv.New32a()
	h.Write(data)
	if collisions != nil {
		fmt.Fprint(h, *collisions)
	}
	hash := rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
	labels, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
	if labels == nil {
		labels = map[string]string{}
	}
	labels["controller.kubernetes.io/hash"] = hash
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            u.GetName() + "-" + hash,
			Namespace:       u.GetNamespace(),
			Labels:          labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(u, u.GroupVersionKind())},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}
}

// history returns what becomes of the revisions of a set whose template is data: the one that holds it already, the
// number that it gets so that it is the newest, and those beyond the limit that no pod uses.
func history(revisions []*appsv1.ControllerRevision, data []byte, inUse map[string]bool,
	limit int32) (same *appsv1.ControllerRevision, number int64, surplus []*appsv1.ControllerRevision) {
	revisions = slices.Clone(revisions)
	slices.SortFunc(revisions, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	number = 1
	for _, r := range revisions {
		if bytes.Equal(r.Data.Raw, data) {
			same = r
		} else {
			number = r.Revision + 1
		}
	}
	var unused []*appsv1.ControllerRevision
	for _, r := range revisions {
		if r != same && !inUse[r.Name] {
			unused = append(unused, r)
		}
	}
	if n := len(unused) - int(limit); n > 0 {
		surplus = unused[:n]
	}
	return same, number, surplus
}

func setRevision(p *corev1.Pod, revision string) {
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
}
