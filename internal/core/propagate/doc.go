// Package propagate decides which policy claims a template, and what the binding that follows looks like.
// Reading templates and policies, writing claims and bindings, and choosing the clusters are left to others.
package propagate
