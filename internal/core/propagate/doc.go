// Package propagate decides which policy claims a template, and the content of its binding. Callers read templates and
// policies, write claims and bindings, and choose the clusters.
package propagate
