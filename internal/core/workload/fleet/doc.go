// Package fleet divides the numbers of a workload among its clusters: a partition of "90%" of nine pods in three
// clusters is one new pod, not three. It decides the manifest of each cluster. core/schedule decides the replicas of a
// cluster; core/override changes manifests afterwards.
//
// The package has no state: it reads the share of a cluster from the manifest of its Work, and the progress from the
// Work's status. So a restarted hub continues.
package fleet
