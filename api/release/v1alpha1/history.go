package v1alpha1

// RecordedFinalizer keeps a Release until the release history has its whole journal. Admission sets it, and the hub
// removes it from a release that is being deleted. Without a database, the hub removes it at once.
//
// On: Release. Written by: controller/admission, controller/history. Users may set it: no.
const RecordedFinalizer = "release.argosy.io/recorded"

// The condition type of a Release for the release history. See docs/release-history.md.
//
//reference:condition Release
const (
	// ReleaseRecorded: the release history stores the events of the release. A release continues without it.
	ReleaseRecorded = "Recorded"
)

// The reasons of Recorded.
//
//reference:reason Recorded of Release
const (
	// ReasonStored: the history has the journal up to status.recordedSeq, and accepts new entries.
	ReasonStored = "Stored"
	// ReasonDatabaseUnavailable: the database does not accept entries. The hub tries again.
	ReasonDatabaseUnavailable = "DatabaseUnavailable"
	// ReasonNoDatabase: the hub keeps no release history.
	ReasonNoDatabase = "NoDatabase"
	// ReasonBehind: the database responds, but lacks many entries of the journal.
	ReasonBehind = "Behind"
)
