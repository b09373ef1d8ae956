// Package companion finds the objects that point at a workload and are of use only where it runs, such as a
// PodDisruptionBudget. A companion follows its workload to the same clusters. A HorizontalPodAutoscaler is no
// companion: it would set in members the replicas that the hub divides.
package companion
