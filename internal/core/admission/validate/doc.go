// Package validate defaults and validates our own kinds, in the words that users of Karmada know. It decides what may
// be stored; when it is asked, and how a refusal travels to the client, is left to controller/admission. What the
// schema of a kind says already is not said again.
package validate
