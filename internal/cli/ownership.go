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

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/member"
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
	if seen != nil && seen.Hub != j.hubID {
		return lease, nil
	}
	found, err := j.earlier(ctx)
	if err != nil {
		return nil, err
	}
	if seen != nil {
		found.karmada = nil
	}
	for _, line := range found.lines(j.name, j.flags) {
		fmt.Fprintln(j.out, line)
	}
	return lease, nil
}

// leftovers are the traces in a member of those that managed it before.
type leftovers struct {
	// own are the names under which this hub joined the member; others are accounts of other hubs.
	own, others []string
	// karmada are signs of a control plane of Karmada, which writes no lease.
	karmada []string
}

// lines describes them to the user who joins a cluster; flags give the cluster's kubeconfig.
func (l leftovers) lines(cluster, flags string) (out []string) {
	for _, name := range l.own {
		if name == cluster {
			out = append(out, fmt.Sprintf("cluster(%s) has accounts of this hub, which joined it under this name before: "+
				"they are used again, and their old tokens are revoked", cluster))
			continue
		}
		out = append(out, fmt.Sprintf("cluster(%s) has accounts of this hub, which joined it as %q before: "+
			"`argosy unjoin %s %s` removes them", cluster, name, name, flags))
	}
	if len(l.others) > 0 {
		out = append(out, fmt.Sprintf("warning: cluster(%[1]s) has objects of another hub, which no longer claims it: %[2]s; "+
			"`argosy unjoin %[1]s --cluster-kubeconfig FILE` with that hub removes its accounts", cluster, strings.Join(l.others, ", ")))
	}
	if len(l.karmada) > 0 {
		out = append(out, fmt.Sprintf("warning: %s: a Karmada control plane may manage cluster(%s). It does not respect the Lease by which hubs claim a cluster, so the two would overwrite each other's changes: unjoin the cluster there first",
			strings.Join(l.karmada, ", "), cluster))
	}
	return out
}

// earlier returns who managed the member before.
func (j *join) earlier(ctx context.Context) (found leftovers, err error) {
	hubs, err := member.TokenHolders(ctx, j.member, tenure.Namespace)
	if err != nil {
		return found, fmt.Errorf("cluster %q: %w", j.name, err)
	}
	var accounts corev1.ServiceAccountList
	if err := j.member.List(ctx, &accounts, client.InNamespace(tenure.Namespace)); err != nil {
		return found, fmt.Errorf("list the service accounts in %s of cluster %q: %w", tenure.Namespace, j.name, err)
	}
	for _, a := range accounts.Items {
		name, is := strings.CutPrefix(a.Name, "karmada-")
		switch own := slices.Contains(hubs[a.Name], j.hubID); {
		case !is || a.Name == impersonator || name == j.name && j.again:
		case own:
			found.own = append(found.own, name)
		case name == j.name: // it exists if a hub that wrote no lease joined the cluster before
		case len(hubs[a.Name]) > 0:
			found.others = append(found.others, fmt.Sprintf("%s/%s of the hub %s", a.Namespace, a.Name,
				strings.Join(hubs[a.Name], ", ")))
		default:
			found.karmada = append(found.karmada, "service account "+a.Namespace+"/"+a.Name)
		}
	}
	var spaces corev1.NamespaceList
	if err := j.member.List(ctx, &spaces, client.MatchingLabels{workv1alpha2.ManagedLabel: "true"}); err != nil {
		return found, fmt.Errorf("list the namespaces of cluster %q: %w", j.name, err)
	}
	var foreign []string
	for _, ns := range spaces.Items {
		switch by := ns.Annotations[wellknown.HubAnnotation]; by {
		case "":
			foreign = append(foreign, ns.Name)
		case j.hubID:
		default:
			found.others = append(found.others, fmt.Sprintf("namespace %s of the hub %s", ns.Name, by))
		}
	}
	if n := len(foreign); n > 0 && !j.again {
		found.karmada = append(found.karmada, fmt.Sprintf("%d namespaces labelled %s=true, such as %s", n,
			workv1alpha2.ManagedLabel, foreign[0]))
	}
	slices.Sort(found.karmada)
	return found, nil
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
