package joincli

import (
	"cmp"
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

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/core/object/text"
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

// checkOwnership returns an error if another live hub manages the member, unless TakeOver is set. It prints warnings
// about a member that may be joined.
func (j *Join) checkOwnership(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := ownershipLease(ctx, j.Member)
	if err != nil {
		return nil, fmt.Errorf("read which hub manages cluster %q: %w", j.Name, err)
	}
	seen := tenure.Read(lease)
	refusal, note := tenure.Joinable(j.hubID, j.Name, seen, j.TakeOver, time.Now())
	if refusal != "" {
		return nil, errors.New(refusal)
	}
	if note != "" {
		fmt.Fprintln(j.Out, note)
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
	var warned []string
	for _, line := range found.lines(j.Name, j.Flags) {
		fmt.Fprintln(j.Out, line)
		warned = append(warned, strings.TrimPrefix(line, "warning: "))
	}
	if len(warned) > 0 {
		j.report("warning", strings.Join(warned, "; "))
	}
	return lease, nil
}

// leftovers are the traces in a member of those that managed it before. They are written there, so they are no proof.
type leftovers struct {
	// own are the names under which this hub joined the member. taken are accounts of names that other clusters of this
	// hub have.
	own, taken []string
	// others are objects of other hubs, former the names under which those joined the member.
	others, former []string
	// karmada are signs of a control plane of Karmada, which writes no lease.
	karmada []string
}

// lines describes them to the user who joins a cluster; flags give the cluster's kubeconfig.
func (l leftovers) lines(cluster, flags string) (out []string) {
	const listed = 5
	for i, name := range l.own {
		if i == listed {
			out = append(out, fmt.Sprintf("cluster(%s) has accounts of this hub of %d more names", cluster, len(l.own)-i))
			break
		}
		if name == cluster {
			out = append(out, fmt.Sprintf("cluster(%s) has accounts of this hub, which joined it under this name before: "+
				"they are used again, and their old tokens are revoked", cluster))
			continue
		}
		out = append(out, fmt.Sprintf("cluster(%s) has accounts of this hub, which joined it as %q before: "+
			"`argosy unjoin %s %s` removes them", cluster, name, name, flags))
	}
	if len(l.taken) > 0 {
		out = append(out, fmt.Sprintf("warning: cluster(%s) has service accounts of this hub under the names of its other clusters: %s; delete them there with kubectl", cluster, text.Names(l.taken, listed)))
	}
	if len(l.others) > 0 {
		out = append(out, fmt.Sprintf("warning: cluster(%s) has objects of another hub, which no longer claims it: %s; "+
			"`argosy unjoin NAME --cluster-kubeconfig FILE` with that hub removes its accounts; NAME, its name of the cluster, is %s",
			cluster, text.Names(l.others, listed), cmp.Or(text.Names(l.former, listed), "not known here")))
	}
	if len(l.karmada) > 0 {
		out = append(out, fmt.Sprintf("warning: %s: a Karmada control plane may manage cluster(%s). It does not respect the Lease by which hubs claim a cluster, so the two would overwrite each other's changes: unjoin the cluster there first",
			text.Names(l.karmada, listed), cluster))
	}
	return out
}

// earlier returns who managed the member before.
func (j *Join) earlier(ctx context.Context) (found leftovers, err error) {
	hubs, err := member.TokenHolders(ctx, j.Member, tenure.Namespace)
	if err != nil {
		return found, fmt.Errorf("cluster %q: %w", j.Name, err)
	}
	var accounts corev1.ServiceAccountList
	if err := j.Member.List(ctx, &accounts, client.InNamespace(tenure.Namespace)); err != nil {
		return found, fmt.Errorf("list the service accounts in %s of cluster %q: %w", tenure.Namespace, j.Name, err)
	}
	for _, a := range accounts.Items {
		name, is := strings.CutPrefix(a.Name, "karmada-")
		if !is || a.Name == hubcli.Impersonator || name == j.Name && j.again || ValidName(name) != nil {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(hubs[a.Name]), func(hub string) bool { return hub == j.hubID })
		switch own := len(others) < len(hubs[a.Name]); {
		case own && slices.ContainsFunc(j.fleet.Items, func(c clusterv1alpha1.Cluster) bool { return c.Name == name }):
			found.taken = append(found.taken, a.Namespace+"/"+a.Name)
		case own:
			found.own = append(found.own, name)
		case len(others) == 0 && name != j.Name: // that name exists if a hub that wrote no lease joined it before
			found.karmada = append(found.karmada, "service account "+a.Namespace+"/"+a.Name)
		}
		if len(others) > 0 {
			found.former = append(found.former, name)
			found.others = append(found.others, fmt.Sprintf("%s/%s of the hub %q", a.Namespace, a.Name,
				text.Names(others, 3)))
		}
	}
	var spaces corev1.NamespaceList
	if err := j.Member.List(ctx, &spaces, client.MatchingLabels{workv1alpha2.ManagedLabel: "true"}); err != nil {
		return found, fmt.Errorf("list the namespaces of cluster %q: %w", j.Name, err)
	}
	var foreign []string
	for _, ns := range spaces.Items {
		switch by := ns.Annotations[wellknown.HubAnnotation]; by {
		case "":
			foreign = append(foreign, ns.Name)
		case j.hubID:
		default:
			found.others = append(found.others, fmt.Sprintf("namespace %s of the hub %q", ns.Name, text.Cut(by, 64)))
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
func (j *Join) writeOwnership(ctx context.Context, lease *coordinationv1.Lease) error {
	if seen := tenure.Read(lease); seen != nil && seen.Hub == j.hubID {
		return nil // its run renews the lease
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	tenure.Stamp{Hub: j.hubID, Address: j.HubAddress, Since: now, Renewed: now}.Write(lease)
	write := j.Member.Update
	if lease.ResourceVersion == "" {
		write = func(ctx context.Context, obj client.Object, _ ...client.UpdateOption) error {
			return j.Member.Create(ctx, obj)
		}
	}
	err := write(ctx, lease)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("another hub took cluster %q at the same moment; join it again: %w", j.Name, err)
	}
	if err != nil {
		return fmt.Errorf("write %s/%s in cluster %q: %w", tenure.Namespace, tenure.Name, j.Name, err)
	}
	return nil
}
