package v1alpha1

// RecordedFinalizer keeps a Release until the release history has all of its journal. Admission sets it, and the hub
// removes it from a release that is being deleted. Without a database, the hub removes it at once.
//
// On: Release. Written by: controller/admission, controller/history. Users may set it: no.
const RecordedFinalizer = "release.argosy.io/recorded"

// The condition type of a Release that is about the release history. See docs/release-history.md.
//
//reference:condition Release
const (
	// ReleaseRecorded: the release history takes what happens in the release. A release continues without it.
	ReleaseRecorded = "Recorded"
)

// The reasons of Recorded.
//
//reference:reason Recorded of Release
const (
	// ReasonStored: the history has the journal up to status.recordedSeq, and takes the rest.
	ReasonStored = "Stored"
	// ReasonDatabaseUnavailable: the database does not take what happens. The hub tries again.
	ReasonDatabaseUnavailable = "DatabaseUnavailable"
	// ReasonNoDatabase: the hub keeps no release history.
	ReasonNoDatabase = "NoDatabase"
	// ReasonBehind: the database answers, but the journal has many entries that it does not have yet.
	ReasonBehind = "Behind"
)
