// Package match decides which objects and clusters a user means: objects by group and kind and by resource selectors,
// clusters by affinity, labels and fields.
package match
