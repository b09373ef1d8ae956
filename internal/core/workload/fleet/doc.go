// Package fleet makes the numbers of a workload that runs in many clusters mean all of them: a partition of "90%" of
// nine pods in three clusters is one new pod, not three. It decides what each cluster's manifest says; how many
// replicas a cluster has is core/schedule's, what an override changes afterwards is core/override's.
//
// Nothing is remembered but in what is written anyway: the share that a cluster has is read back from the manifest of
// its Work, how far it got from the Work's status. So a hub that starts anew goes on where it was.
package fleet
