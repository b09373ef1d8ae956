// Package finding has the severities of what is found about objects, for every reader.
package finding

// Severity is the importance of a finding.
type Severity string

// The severities, the reddest first.
const (
	Problem   Severity = "Problem"   // does not disappear by itself
	Attention Severity = "Attention" // works, but perhaps not as intended
	Waiting   Severity = "Waiting"   // in progress, or waiting as requested
)
