package v1alpha1

// VerbReasonAnnotation is why a user skipped or retried a stage, or changed the state of a release, for people and the
// history. On: Release. Written by: users. Users may set it: yes.
const VerbReasonAnnotation = "argosy.io/release-reason"
