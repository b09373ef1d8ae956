// Package tenure decides the ownership of member clusters: which hub may write to a member, and what a hub does that
// finds the stamp of another. Callers read and write the stamp, and measure the time since it changed.
package tenure

import (
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// The stamp is a Lease in the member. Only the hub and the member's administrators may write it.
const (
	Namespace = names.Clusters
	Name      = "argosy-hub"
)

const (
	// RenewPeriod is the interval between renewals of a stamp: one write per member.
	RenewPeriod = 30 * time.Second
	// Quiet is the time for which the stamp of another run of the same hub must be unchanged until that run counts as
	// ended. It is longer than RenewPeriod.
	Quiet = 45 * time.Second
	// Term is the time for which a hub counts as alive after its last renewal.
	Term = 2 * time.Minute
)

// Self is the hub that decides.
type Self struct {
	// Hub is its identity: the UID of the namespace kube-system in its store. Replicas with one store are one hub. A
	// restart or a restore keeps the identity. If it is empty, the hub uses no stamps.
	Hub string
	// Address of its API, for users.
	Address string
	// Run identifies this run of its controllers. Two simultaneous runs with one identity are a hub and a copy of its
	// store.
	Run string
	// Ended are runs before this one that are known to have ended; empty after a restore. They are several, because a run
	// that was killed early may not have stamped all members.
	Ended []string
}

// Stamp is the record in a member of the hub that manages it.
type Stamp struct {
	Hub     string
	Address string
	// Run is the run that renews it; empty if `join` wrote it and no run has claimed it yet.
	Run     string
	Since   time.Time
	Renewed time.Time
}

// Read returns the stamp in a Lease; nil for no Lease and for one without a holder.
func Read(l *coordinationv1.Lease) *Stamp {
	if l == nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return nil
	}
	s := &Stamp{Hub: *l.Spec.HolderIdentity, Address: l.Annotations[wellknown.HubAddressAnnotation],
		Run: l.Annotations[wellknown.HubRunAnnotation]}
	if l.Spec.AcquireTime != nil {
		s.Since = l.Spec.AcquireTime.UTC()
	}
	if l.Spec.RenewTime != nil {
		s.Renewed = l.Spec.RenewTime.UTC()
	}
	return s
}

// Write sets the stamp on a Lease, in place. Other fields stay.
func (s Stamp) Write(l *coordinationv1.Lease) {
	if was := Read(l); was != nil && was.Hub != s.Hub {
		var transitions int32
		if l.Spec.LeaseTransitions != nil {
			transitions = *l.Spec.LeaseTransitions
		}
		l.Spec.LeaseTransitions = new(transitions + 1)
	}
	l.Namespace, l.Name = Namespace, Name
	metav1.SetMetaDataLabel(&l.ObjectMeta, workv1alpha2.SystemLabel, "true")
	for key, value := range map[string]string{wellknown.HubAddressAnnotation: s.Address,
		wellknown.HubRunAnnotation: s.Run} {
		if value != "" {
			metav1.SetMetaDataAnnotation(&l.ObjectMeta, key, value)
		} else {
			delete(l.Annotations, key)
		}
	}
	l.Spec.HolderIdentity = &s.Hub
	l.Spec.LeaseDurationSeconds = new(int32(Term / time.Second))
	l.Spec.AcquireTime = &metav1.MicroTime{Time: s.Since}
	l.Spec.RenewTime = &metav1.MicroTime{Time: s.Renewed}
}

// Alive reports whether the hub of the stamp renewed it recently, by the reader's clock. A renewal in the future
// counts as alive, because either clock may be wrong.
func (s Stamp) Alive(now time.Time) bool { return now.Sub(s.Renewed) < Term }

// Holder returns the name of the stamp's hub for users.
func (s Stamp) Holder() string {
	if s.Address == "" {
		return "the hub " + s.Hub
	}
	return fmt.Sprintf("the hub at %s (%s)", s.Address, s.Hub)
}

// Verdict is the permission of a hub in a member.
type Verdict string

// The verdicts.
const (
	Own   Verdict = "Own"   // this hub manages the member and writes there
	Claim Verdict = "Claim" // no other hub manages it: this hub writes after it has claimed the member
	Yield Verdict = "Yield" // another hub manages the member: this hub writes nothing
)

// Decision is a Verdict, and its reason.
type Decision struct {
	Verdict Verdict
	// Stamp is the stamp to write: for Claim before any other write, for Own when it is due; nil for none.
	Stamp *Stamp
	// Message is set with Yield: the managing hub and what to do. It is the same until something changes.
	Message string
}

// Decide returns what the hub may do in a member. seen is the member's stamp, nil for none. unchanged is the time
// since its last change by the caller's clock. now is only written, because clocks of two machines may differ.
//
//	no stamp, or ours without a run (join wrote it)     claim
//	ours, of this run                                   hold, renew
//	ours, of a run that ended before this one           claim
//	ours, of another run                                yield until it was quiet for long, then claim
//	another hub's, alive or not                         yield: only a user's join takes a member over
func (s Self) Decide(member string, seen *Stamp, unchanged time.Duration, now time.Time) Decision {
	mine := Stamp{Hub: s.Hub, Address: s.Address, Run: s.Run, Since: now.UTC().Truncate(time.Microsecond),
		Renewed: now.UTC().Truncate(time.Microsecond)}
	switch {
	case s.Hub == "":
		return Decision{Verdict: Own}
	case seen == nil:
		return Decision{Verdict: Claim, Stamp: &mine}
	case seen.Hub != s.Hub:
		return Decision{Verdict: Yield, Message: fmt.Sprintf(
			"the cluster is managed by %s since %s; this hub only reads from it. "+
				"To take it over, run `argosy join %s --take-over --cluster-kubeconfig FILE`; to leave it to that hub, run `argosy unjoin %s`, which deletes nothing there",
			seen.Holder(), seen.Since.Format(time.RFC3339), member, member)}
	}
	mine.Since = seen.Since
	switch {
	case seen.Run == s.Run:
		// Use this process's own clock: a step of the system clock must neither stop renewals nor multiply them.
		if unchanged >= RenewPeriod || seen.Address != s.Address {
			return Decision{Verdict: Own, Stamp: &mine}
		}
		return Decision{Verdict: Own}
	case seen.Run == "", slices.Contains(s.Ended, seen.Run), unchanged >= Quiet:
		return Decision{Verdict: Claim, Stamp: &mine}
	}
	return Decision{Verdict: Yield, Message: fmt.Sprintf(
		"another process with this hub's identity manages the cluster: %s, run %s; this one only reads from it. "+
			"If that process has ended, such as before a restore, this one continues %s after its last lease renewal; if it is still running, one of the two runs on a copy of the other's store, "+
			"and must be stopped", seen.Holder(), seen.Run, Quiet)}
}

// Joinable returns why a hub of that identity must not join a member; empty if it may. note is a hint for a user who
// may.
func Joinable(hub, member string, seen *Stamp, takeOver bool, now time.Time) (refusal, note string) {
	switch {
	case seen == nil || seen.Hub == hub:
		return "", ""
	case takeOver:
		return "", fmt.Sprintf("cluster(%s) was managed by %s since %s; that hub no longer writes there", member,
			seen.Holder(), seen.Since.Format(time.RFC3339))
	case seen.Alive(now):
		return fmt.Sprintf("cluster %q is a member of another hub: %s manages it since %s and last renewed its lease at %s; unjoin it there, or take it over with --take-over: "+
			"that hub then stops writing there, and its objects stay", member, seen.Holder(), seen.Since.Format(time.RFC3339),
			seen.Renewed.Format(time.RFC3339)), ""
	}
	return "", fmt.Sprintf("cluster(%s) was managed by %s, which last renewed its lease at %s", member, seen.Holder(),
		seen.Renewed.Format(time.RFC3339))
}
