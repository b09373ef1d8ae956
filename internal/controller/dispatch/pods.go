package dispatch

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/member"
)

// Pods finds pods in members.
type Pods interface {
	// Owned is true if the cluster has a pod of that name that an object of that kind and name controls, or any if these
	// are empty.
	Owned(ctx context.Context, cluster, namespace, pod, kind, owner string) (bool, error)
}

// PodsOf queries the members: templates rarely name pods, and watching all pods for it would be expensive.
func PodsOf(members *member.Members) Pods { return asking{members} }

type asking struct{ members *member.Members }

func (a asking) Owned(ctx context.Context, cluster, namespace, pod, kind, owner string) (bool, error) {
	m, err := a.members.Get(cluster)
	if err != nil {
		return false, err
	}
	u, err := m.Get(ctx, corev1.SchemeGroupVersion.WithKind("Pod"), namespace, pod)
	if err != nil || u == nil || u.GetDeletionTimestamp() != nil {
		return false, err
	}
	if kind == "" && owner == "" {
		return true, nil
	}
	c := metav1.GetControllerOf(u)
	return c != nil && c.Kind == kind && c.Name == owner, nil
}

// pods returns the clusters of the pods that the template names and that are not routed yet; nil if it names none. A
// name that no cluster has is missing from the result if a cluster did not respond.
func (r *reconciler) pods(ctx context.Context, in dispatch.Input) (map[string][]string, error) {
	names, err := fleet.PodsAskedFor(in.Template, in.Existing)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	if r.Pods == nil {
		nowhere := map[string][]string{}
		for _, name := range names {
			nowhere[name] = []string{}
		}
		return nowhere, nil
	}
	kind, owner := fleet.PodOwner(in.Template)
	found, silent := map[string][]string{}, false
	for _, target := range dispatch.Targets(in.Binding) {
		for _, name := range names {
			there, err := r.Pods.Owned(ctx, target.Name, in.Template.GetNamespace(), name, kind, owner)
			if err != nil {
				ctrl.LoggerFrom(ctx).Info("cannot look up a pod that a template refers to", "cluster", target.Name, "pod", name,
					"cause", err.Error())
				silent = true
				break
			}
			if there {
				found[name] = append(found[name], target.Name)
			}
		}
	}
	if !silent {
		for _, name := range names {
			found[name] = append([]string{}, found[name]...) // none, too, is an answer
		}
	}
	return found, nil
}

// forgetPods removes the pods that clusters have deleted from the template's list, in one write when none of them
// exists any more. Names that a user adds again later match no pod and stay.
func (r *reconciler) forgetPods(ctx context.Context, in dispatch.Input) error {
	sent, err := fleet.PodsSent(in.Template, in.Existing)
	if err != nil || len(sent) == 0 || r.Pods == nil {
		return err
	}
	for _, clusters := range in.Pods {
		if len(clusters) > 0 {
			return nil // it was not sent yet
		}
	}
	var gone []string
	kind, owner := fleet.PodOwner(in.Template)
	for cluster, names := range sent {
		for _, name := range names {
			// A cluster that does not respond is asked again when it reports.
			if there, err := r.Pods.Owned(ctx, cluster, in.Template.GetNamespace(), name, kind, owner); err != nil || there {
				return nil
			}
		}
		gone = append(gone, names...)
	}
	_, err = r.Templates.Update(ctx, fleet.WithoutPods(in.Template, gone))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
