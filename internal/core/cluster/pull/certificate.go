package pull

import (
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// Request is a request for a client certificate.
type Request struct {
	Signer string
	// User and Groups of the requester.
	User   string
	Groups []string
	// CommonName and Organizations are the user and the groups that the certificate is for.
	CommonName    string
	Organizations []string
	// AlternativeNames is true if the request has hosts, addresses or URIs.
	AlternativeNames bool
	Usages           []certificatesv1.KeyUsage
	// Key is the hash of the public key, as KeyHash returns it.
	Key string
	// RequesterKey is the hash of the key in the certificate of an agent that requests; empty for other requesters.
	RequesterKey string
}

// Token is the bootstrap token of a requester.
type Token struct {
	ID string
	// Cluster is the only cluster that the token can register; empty before its first use.
	Cluster string
	// Renews is true if an administrator created the token for Cluster, so that it also replaces the credentials of the
	// agent of a registered cluster.
	Renews bool
}

// Known has the hub's objects of the cluster in a request.
type Known struct {
	// Cluster is the registered cluster; nil if there is none.
	Cluster *clusterv1alpha1.Cluster
	// Secret is a Secret that the agent could read, without a registered cluster; empty for none. It may belong to another
	// cluster, whose spec refers to it.
	Secret string
	// Keys are the recorded keys of its agent; nil for none, and for those of an earlier version.
	Keys []string
}

// Verdict on a request.
type Verdict string

// The verdicts.
const (
	Ignore  Verdict = "Ignore" // it is for others to approve or deny
	Approve Verdict = "Approve"
	Deny    Verdict = "Deny"
)

// Decision is a verdict with its reason.
type Decision struct {
	Verdict Verdict
	// Message is the reason, with what to do after a denial.
	Message string
	// Bind is the cluster that the token of the requester is bound to before the approval; empty for none.
	Bind string
	// Record are the keys of the agent to record before the approval; nil to record none. RecordKeys keeps the last ones:
	// that of the requester is one of them.
	Record []string
}

// SubjectCluster returns the cluster whose agent a request is for; empty for none.
func (r Request) SubjectCluster() string {
	cluster, _ := ClusterOf(r.CommonName)
	return cluster
}

// fromToken and fromAgent report the kind of requester.
func (r Request) fromToken() bool {
	_, is := TokenID(r.User)
	return is && slices.Contains(r.Groups, TokenGroup)
}

func (r Request) fromAgent() bool {
	return strings.HasPrefix(r.User, userPrefix) && slices.Contains(r.Groups, Group)
}

// Judge decides about a request. known has the hub's objects of the cluster in the request. token is the requester's
// token, if any.
//
//	a token, for the registrar                              approve
//	a token, for a cluster that is not registered           approve, and bind the token to the cluster
//	a token that an administrator created for a registered
//	cluster in Pull mode                                     approve
//	an agent, for its own registered cluster                approve
//	a token or an agent, for anything else                  deny
//	any other user                                          ignore
func (r Request) Judge(known Known, token Token) Decision {
	cluster := known.Cluster
	deny := func(format string, args ...any) Decision {
		return Decision{Verdict: Deny, Message: fmt.Sprintf(format, args...)}
	}
	if r.Signer != certificatesv1.KubeAPIServerClientSignerName || !r.fromToken() && !r.fromAgent() {
		return Decision{Verdict: Ignore}
	}
	if why := r.malformed(); why != "" {
		return deny("%s", why)
	}
	if r.CommonName == Registrar {
		if !r.fromToken() {
			return deny("only a bootstrap token can request a certificate of %s", Registrar)
		}
		return Decision{Verdict: Approve, Message: "a bootstrap token registers a cluster"}
	}
	name, ok := ClusterOf(r.CommonName)
	if !ok {
		return deny("%q is not the user of an agent: the name of a cluster must be a DNS label of at most %d characters "+
			"that does not end with %s", r.CommonName, membership.NameLimit, impersonatorSuffix)
	}
	if r.fromAgent() {
		return r.judgeRenewal(name, known)
	}
	switch {
	case token.Cluster != "" && token.Cluster != name:
		return deny("token %s is for cluster %q and cannot register cluster %q: "+
			"create a token for each cluster with `argosy token create`", token.ID, token.Cluster, name)
	case cluster == nil && known.Secret != "":
		return deny("Secret %[1]s exists in namespace %[2]s of the hub, and the agent of cluster %[3]q could read it: choose "+
			"another name, or delete it with `kubectl delete secret %[1]s -n %[2]s` if no cluster needs it", known.Secret,
			names.Clusters, name)
	case cluster == nil:
		return Decision{Verdict: Approve, Message: fmt.Sprintf("token %s registers cluster %q", token.ID, name), Bind: name,
			Record: []string{r.Key}}
	case cluster.DeletionTimestamp != nil:
		return deny("cluster %q is being removed: register it again when `argosy get clusters` no longer lists it", name)
	case cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return deny("cluster %q is joined in Push mode: unjoin it first, or choose another name", name)
	case token.Renews && token.Cluster == name:
		return Decision{Verdict: Approve, Message: fmt.Sprintf(
			"token %s replaces the credentials of the agent of cluster %q", token.ID, name),
			Record: []string{r.Key}}
	}
	return deny("cluster %q is registered already: choose another name, or unregister it first. To replace the "+
		"credentials of its agent, create a token with `argosy token create --cluster-name %s`", name, name)
}

// judgeRenewal decides about the request of an agent.
func (r Request) judgeRenewal(name string, known Known) Decision {
	cluster := known.Cluster
	deny := func(format string, args ...any) Decision {
		return Decision{Verdict: Deny, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case r.User != User(name):
		return deny("%s cannot request a certificate of the agent of cluster %q", r.User, name)
	case cluster == nil || cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return deny("cluster %q is not registered in Pull mode: register it with `argosy register`", name)
	case cluster.DeletionTimestamp != nil:
		return deny("cluster %q is being removed", name)
	case known.Keys != nil && !slices.Contains(known.Keys, r.RequesterKey):
		return deny("%s", notCurrent(name))
	}
	approved := Decision{Verdict: Approve, Message: fmt.Sprintf("the agent of cluster %q renews its certificate", name)}
	if known.Keys != nil { // earlier versions recorded none: any certificate in the name is valid
		others := slices.DeleteFunc(slices.Clone(known.Keys), func(k string) bool {
			return k == r.RequesterKey || k == r.Key
		})
		approved.Record = append(others, r.RequesterKey)
		if r.Key != r.RequesterKey {
			approved.Record = append(approved.Record, r.Key)
		}
	}
	return approved
}

// malformed returns why no agent may have the certificate; empty if one may.
func (r Request) malformed() string {
	usages := slices.Clone(r.Usages)
	slices.Sort(usages)
	usages = slices.DeleteFunc(slices.Compact(usages), func(u certificatesv1.KeyUsage) bool {
		return u == certificatesv1.UsageKeyEncipherment
	})
	switch {
	case !slices.Equal(r.Organizations, []string{Group}):
		return fmt.Sprintf("the organization in a certificate of an agent must be %s, not %q", Group, r.Organizations)
	case r.AlternativeNames:
		return "a certificate of an agent cannot have alternative names"
	case !slices.Equal(usages, []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth,
		certificatesv1.UsageDigitalSignature}):
		return fmt.Sprintf("the usages of a certificate of an agent must be %s, %s and optionally %s, not %q",
			certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, r.Usages)
	}
	return ""
}
