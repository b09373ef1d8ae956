package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
)

// ownershipLease returns the lease in a member that records its hub; an empty one if there is none.
func ownershipLease(ctx context.Context, member client.Reader) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := member.Get(ctx, types.NamespacedName{Namespace: tenure.Namespace, Name: tenure.Name}, lease)
	if apierrors.IsNotFound(err) {
		return &coordinationv1.Lease{}, nil
	}
	return lease, err
}

// checkOwnership returns an error if another live hub manages the member, unless takeOver is set. It prints warnings
// about a member that may be joined.
func (j *join) checkOwnership(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := ownershipLease(ctx, j.member)
	if err != nil {
		return nil, fmt.Errorf("read which hub manages cluster %q: %w", j.name, err)
	}
	seen := tenure.Read(lease)
	refusal, note := tenure.Joinable(j.hubID, j.name, seen, j.takeOver, time.Now())
	if refusal != "" {
		return nil, errors.New(refusal)
	}
	if note != "" {
		fmt.Fprintln(j.out, note)
	}
	if seen == nil {
		if signs, err := j.karmada(ctx); err != nil {
			return nil, err
		} else if signs != "" {
			fmt.Fprintf(j.out, "warning: %s: a Karmada control plane may manage cluster(%s). It does not respect the Lease by which hubs claim a cluster, so the two would overwrite each other's changes: unjoin the cluster there first\n", signs, j.name)
		}
	}
	return lease, nil
}

// karmada returns the sign that a control plane of Karmada, which writes no lease, manages a member; empty if there is
// none.
func (j *join) karmada(ctx context.Context) (string, error) {
	var signs []string
	var accounts corev1.ServiceAccountList
	if err := j.member.List(ctx, &accounts, client.InNamespace(tenure.Namespace)); err != nil {
		return "", fmt.Errorf("list the service accounts in %s of cluster %q: %w", tenure.Namespace, j.name, err)
	}
	for _, a := range accounts.Items {
		// Its own account exists if a hub that wrote no lease joined the cluster before.
		if strings.HasPrefix(a.Name, "karmada-") && a.Name != "karmada-"+j.name && a.Name != impersonator {
			signs = append(signs, "service account "+a.Namespace+"/"+a.Name)
		}
	}
	var spaces corev1.NamespaceList
	if err := j.member.List(ctx, &spaces, client.MatchingLabels{workv1alpha2.ManagedLabel: "true"}); err != nil {
		return "", fmt.Errorf("list the namespaces of cluster %q: %w", j.name, err)
	}
	if n := len(spaces.Items); n > 0 && !j.again {
		signs = append(signs, fmt.Sprintf("%d namespaces labelled %s=true, such as %s", n, workv1alpha2.ManagedLabel,
			spaces.Items[0].Name))
	}
	slices.Sort(signs)
	return strings.Join(signs, ", "), nil
}

// writeOwnership writes the hub's lease into the member. The hub renews it as soon as it knows the cluster.
func (j *join) writeOwnership(ctx context.Context, lease *coordinationv1.Lease) error {
	if seen := tenure.Read(lease); seen != nil && seen.Hub == j.hubID {
		return nil // its run renews the lease
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	tenure.Stamp{Hub: j.hubID, Address: j.hubAddress, Since: now, Renewed: now}.Write(lease)
	write := j.member.Update
	if lease.ResourceVersion == "" {
		write = func(ctx context.Context, obj client.Object, _ ...client.UpdateOption) error {
			return j.member.Create(ctx, obj)
		}
	}
	err := write(ctx, lease)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("another hub took cluster %q at the same moment; join it again: %w", j.name, err)
	}
	if err != nil {
		return fmt.Errorf("write %s/%s in cluster %q: %w", tenure.Namespace, tenure.Name, j.name, err)
	}
	return nil
}
