package dispatch_test

import "testing"

func TestAnnotationHandsOffStaysOnWork(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.look()
	w := s.in.Existing["eu"].DeepCopy()
	w.Annotations["argosy.io/hands-off"] = "true"
	s.in.Existing["eu"] = w
	s.image("nginx:2")
	s.look()
	if got := s.in.Existing["eu"]; got.Generation == w.Generation || got.Annotations["argosy.io/hands-off"] != "true" {
		t.Errorf("after a change of the template, generation %d has the annotations %v", got.Generation, got.Annotations)
	}

	// A template cannot set it, on the Work or on the object.
	s.edit("true", "metadata", "annotations", "argosy.io/hands-off")
	s.look()
	us := s.in.Existing["us"]
	if us.Annotations["argosy.io/hands-off"] != "" || manifest(t, us).GetAnnotations()["argosy.io/hands-off"] != "" {
		t.Errorf("the annotation of the template is sent: %v, %v", us.Annotations, manifest(t, us).GetAnnotations())
	}
}
