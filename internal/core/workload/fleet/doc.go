// Package fleet divides the numbers of a workload among its clusters: a partition of "90%" of nine pods in three
// clusters is one new pod, not three. It decides the manifest of each cluster. core/schedule decides the replicas of a
// cluster; core/override changes manifests afterwards.
//
// Nothing is remembered but in what is written anyway: the share that a cluster has is read back from the manifest of
// its Work, how far it got from the Work's status. So a hub that starts anew goes on where it was.
package fleet
