// Package kruise simulates OpenKruise in a member cluster: it makes the pods of CloneSets and Advanced StatefulSets,
// updates them in place or anew, and reports every status field as the real manager does.
//
// The decisions are pure functions of what was observed (cloneset.go, statefulset.go); controller.go carries them out.
// What the webhooks of the real manager write and refuse is in admission.go, for a plugin of the API server.
//
// Not simulated: adoption of orphans, lifecycle hooks and the states between them, priority and scatter strategies,
// in-place changes other than images, template labels and annotations, grace periods, image pre-download, resizing of
// claims, ordinals.start (its feature gate is off by default), and every other kind of OpenKruise.
package kruise
