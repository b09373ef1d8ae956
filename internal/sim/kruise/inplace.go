package kruise

import (
	"encoding/json"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

// inPlaceState is the part of the annotation that says an in-place update is under way, and what ran before it.
type inPlaceState struct {
	Revision              string                     `json:"revision"`
	UpdateTimestamp       string                     `json:"updateTimestamp"`
	LastContainerStatuses map[string]lastContainerID `json:"lastContainerStatuses"`
}

type lastContainerID struct {
	ImageID string `json:"imageID"`
}

// canUpdateInPlace reports whether a pod of one template can become one of the other while it runs: only images and
// the template's labels and annotations may differ.
func canUpdateInPlace(from, to *corev1.PodTemplateSpec) bool {
	if from == nil || to == nil || len(from.Spec.Containers) != len(to.Spec.Containers) {
		return false
	}
	from = from.DeepCopy()
	from.ObjectMeta = to.ObjectMeta
	for i := range from.Spec.Containers {
		from.Spec.Containers[i].Image = to.Spec.Containers[i].Image
	}
	return apiequality.Semantic.DeepEqual(from, to)
}

// updatedInPlace returns the pod as it is asked to become. What the template no longer has, the pod keeps.
func updatedInPlace(p *corev1.Pod, revision string, template *corev1.PodTemplateSpec,
	timestamp string) *corev1.Pod {
	state := inPlaceState{Revision: revision, UpdateTimestamp: timestamp,
		LastContainerStatuses: map[string]lastContainerID{}}
	images := imagesOf(template.Spec.Containers)
	out := p.DeepCopy()
	for i := range out.Spec.Containers {
		c := &out.Spec.Containers[i]
		image, ours := images[c.Name]
		if !ours || image == c.Image {
			continue
		}
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == c.Name {
				state.LastContainerStatuses[c.Name] = lastContainerID{s.ImageID}
			}
		}
		c.Image = image
	}
	out.Labels = labels.Merge(out.Labels, template.Labels)
	out.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	out.Annotations = labels.Merge(out.Annotations, template.Annotations)
	out.Annotations[inPlaceStateAnnotation] = text.JSON(state)
	return out
}

// inPlaceDone reports whether the pod waits for no more than InPlaceUpdateReady to be set again: every container that
// the update changed runs another image than before, or the one asked for.
func inPlaceDone(p *corev1.Pod) bool {
	annotation := p.Annotations[inPlaceStateAnnotation]
	gate := condition(p, inPlaceReady)
	if annotation == "" || gate == nil || gate.Status == corev1.ConditionTrue {
		return false
	}
	var state inPlaceState
	if json.Unmarshal([]byte(annotation), &state) != nil {
		return false
	}
	wanted := imagesOf(p.Spec.Containers)
	for name, last := range state.LastContainerStatuses {
		done := false
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == name {
				done = s.ImageID != last.ImageID || tagged(s.Image) == tagged(wanted[name])
			}
		}
		if !done {
			return false
		}
	}
	return true
}

// imagesOf returns the images of containers by their names.
func imagesOf(containers []corev1.Container) map[string]string {
	images := map[string]string{}
	for _, c := range containers {
		images[c.Name] = c.Image
	}
	return images
}

// tagged returns an image with the tag that it has if none is written.
func tagged(image string) string {
	if strings.Contains(image, ":") {
		return image
	}
	return image + ":latest"
}
