package klusterlet

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"

	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
)

// Request is a request for a client certificate.
type Request struct {
	// Cluster is the cluster in the label of the request.
	Cluster string
	// PEMType is the type of the PEM block of the request.
	Signer, PEMType string
	// CommonName and Organizations are the user and the groups that the certificate is for.
	CommonName           string
	Organizations, Units []string
	// User is the requester.
	User string
	// Addon is the add-on in the label of the request.
	Addon string
	// AlternativeNames is true if the request has hosts, addresses or URIs, other than that of its add-on.
	AlternativeNames bool
	Usages           []certificatesv1.KeyUsage
}

// authenticated is the group of all users. A request may name it.
const authenticated = "system:authenticated"

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
	case r.Addon != "":
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
	}
	return r.malformed()
}

// malformed returns what is wrong with a request of a klusterlet beside its subject.
func (r Request) malformed() string {
	switch {
	case r.AlternativeNames:
		return "a certificate of a klusterlet cannot have alternative names"
	case !slices.Contains(r.Usages, certificatesv1.UsageClientAuth) || slices.ContainsFunc(r.Usages, isOtherUsage):
		return fmt.Sprintf("the usages of a certificate of a klusterlet must be %s and optionally %s and %s, not %q",
			usages[0], usages[1], usages[2], r.Usages)
	}
	return ""
}

// MalformedAddon returns why a request is not one of the klusterlet of the cluster in its label, for an add-on whose
// certificates have the subject; empty if it is.
func (r Request) MalformedAddon(subject addonv1beta1.Subject) string {
	other := func(has, want []string) bool {
		return slices.ContainsFunc(has, func(s string) bool { return s != authenticated && !slices.Contains(want, s) })
	}
	cluster, _, ok := ClusterOf(r.User)
	switch {
	case !ok || cluster != r.Cluster:
		return fmt.Sprintf("%q is not the klusterlet of cluster %q", r.User, r.Cluster)
	case r.PEMType != pemType:
		return fmt.Sprintf("the type of its PEM block must be %s, not %q", pemType, r.PEMType)
	case r.CommonName != subject.Name:
		return fmt.Sprintf("the common name in a certificate of add-on %s must be %s, not %q", r.Addon, subject.Name,
			r.CommonName)
	case other(r.Organizations, subject.Groups) || len(subject.Groups) > 0 &&
		!slices.Contains(r.Organizations, subject.Groups[0]) || other(r.Units, subject.OrganizationUnits):
		return fmt.Sprintf("the organizations and units in a certificate of add-on %s must be among %q and %q, not %q and %q",
			r.Addon, subject.Groups, subject.OrganizationUnits, r.Organizations, r.Units)
	}
	return r.malformed()
}

func isOtherUsage(u certificatesv1.KeyUsage) bool { return !slices.Contains(usages, u) }

// Renews reports whether the requester is the user that the certificate is for. Only such requests are approved without
// an administrator, if they are not malformed and the requester may renew.
func (r Request) Renews() bool { return r.User != "" && r.User == r.CommonName }

// RequestOf returns the request in a CertificateSigningRequest with the label of a cluster; ok is false for others.
func RequestOf(csr *certificatesv1.CertificateSigningRequest) (request Request, ok bool) {
	cluster := csr.Labels[clusterv1.ClusterNameLabel]
	block, _ := pem.Decode(csr.Spec.Request)
	if cluster == "" || block == nil {
		return request, false
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return request, false
	}
	addon := csr.Labels[clusterv1.AddonNameLabel]
	hosts := slices.DeleteFunc(slices.Clone(parsed.DNSNames), func(host string) bool {
		return addon != "" && host == addon+".addon.open-cluster-management.io"
	})
	return Request{Cluster: cluster, Addon: addon, Signer: csr.Spec.SignerName, PEMType: block.Type,
		CommonName: parsed.Subject.CommonName, Organizations: parsed.Subject.Organization,
		Units: parsed.Subject.OrganizationalUnit, User: csr.Spec.Username,
		Usages:           csr.Spec.Usages,
		AlternativeNames: len(hosts)+len(parsed.EmailAddresses)+len(parsed.IPAddresses)+len(parsed.URIs) > 0,
	}, true
}

// MayRenew returns the question whether the requester has the right to renew certificates, which only accepted
// klusterlets have.
func MayRenew(csr *certificatesv1.CertificateSigningRequest) *authorizationv1.SubjectAccessReview {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range csr.Spec.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "renew", Group: RegisterGroup,
			Resource: "managedclusters", Subresource: "clientcertificates"}}}
}
