package klusterlet

import (
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Request is a request for a client certificate.
type Request struct {
	// Cluster is the cluster in the label of the request.
	Cluster string
	// PEMType is the type of the PEM block of the request.
	Signer, PEMType string
	// CommonName and Organizations are the user and the groups that the certificate is for.
	CommonName    string
	Organizations []string
	// User is the requester.
	User string
	// Addon is true if the request has the label of an add-on.
	Addon bool
	// AlternativeNames is true if the request has hosts, addresses or URIs.
	AlternativeNames bool
	Usages           []certificatesv1.KeyUsage
}

// pemType is the type of the PEM block of a certificate request.
const pemType = "CERTIFICATE REQUEST"

// usages are those that a certificate of a klusterlet may have. It must have client auth.
var usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature,
	certificatesv1.UsageKeyEncipherment}

// Malformed returns why a request is not one of the klusterlet of the cluster in its label; empty if it is.
func (r Request) Malformed() string {
	group := GroupOf(r.Cluster)
	groups := slices.DeleteFunc(slices.Clone(r.Organizations), func(o string) bool { return o == Group })
	slices.Sort(groups)
	cluster, _, ok := ClusterOf(r.CommonName)
	switch {
	case r.Cluster == "":
		return "it has no label with the name of its cluster"
	case r.Addon:
		return "it is of an add-on"
	case r.Signer != certificatesv1.KubeAPIServerClientSignerName:
		return fmt.Sprintf("the signer of a certificate of a klusterlet must be %s, not %q",
			certificatesv1.KubeAPIServerClientSignerName, r.Signer)
	case r.PEMType != pemType:
		return fmt.Sprintf("the type of its PEM block must be %s, not %q", pemType, r.PEMType)
	case !slices.Equal(slices.Compact(groups), []string{group}):
		return fmt.Sprintf("the organizations in a certificate of the klusterlet of cluster %q must be %s and optionally %s, "+
			"not %q", r.Cluster, group, Group, r.Organizations)
	case !ok || cluster != r.Cluster:
		return fmt.Sprintf("the common name in a certificate of the klusterlet of cluster %q must be %s:AGENT, not %q",
			r.Cluster, group, r.CommonName)
	case r.AlternativeNames:
		return "a certificate of a klusterlet cannot have alternative names"
	case !slices.Contains(r.Usages, certificatesv1.UsageClientAuth) || slices.ContainsFunc(r.Usages, isOtherUsage):
		return fmt.Sprintf("the usages of a certificate of a klusterlet must be %s and optionally %s and %s, not %q",
			usages[0], usages[1], usages[2], r.Usages)
	}
	return ""
}

func isOtherUsage(u certificatesv1.KeyUsage) bool { return !slices.Contains(usages, u) }

// Renews reports whether the requester is the user that the certificate is for. Only such requests are approved without
// an administrator, if they are not malformed and the requester may renew.
func (r Request) Renews() bool { return r.User != "" && r.User == r.CommonName }
