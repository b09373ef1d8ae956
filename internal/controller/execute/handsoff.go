package execute

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/argosy-io/argosy/internal/core/execute"
)

const (
	// eventHandsOff: the annotation argosy.io/hands-off keeps the hub from writing or deleting the object of the Work, or
	// objects in the cluster.
	//
	//reference:event Warning on Work and Cluster
	eventHandsOff = "HandsOff"
	// eventHandsOffEnded: the annotation argosy.io/hands-off was removed from a namespace of the cluster.
	//
	//reference:event Normal on Cluster
	eventHandsOffEnded = "HandsOffEnded"
)

// brakeChanged reports that a namespace of a member got the annotation hands-off, or lost it. Then it queues the Works
// of the cluster, since the hub may write their objects again.
func (r *reconciler) brakeChanged(cluster, namespace string, on bool) {
	if cl, err := readCluster(context.Background(), r.client, cluster); err == nil {
		if on {
			r.reporter.events.Event(cl, corev1.EventTypeWarning, eventHandsOff, execute.Brake(namespace).Reason())
		} else {
			r.reporter.events.Event(cl, corev1.EventTypeNormal, eventHandsOffEnded, execute.Brake(namespace).Ended())
		}
	}
	if !on {
		r.triggers.retryAll(cluster)
	}
}
