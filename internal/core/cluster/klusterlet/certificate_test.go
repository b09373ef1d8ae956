package klusterlet

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// csr returns a valid first request of the klusterlet of a cluster.
func csr(cluster string) Request {
	return Request{Cluster: cluster, Signer: certificatesv1.KubeAPIServerClientSignerName, PEMType: "CERTIFICATE REQUEST",
		CommonName: GroupOf(cluster) + ":agent", Organizations: []string{GroupOf(cluster), Group},
		User: "system:bootstrap:abcdef", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature,
			certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}}
}

func TestOnlyRequestsOfKlusterletsAreWellFormed(t *testing.T) {
	const groups, name, usage = "the organizations", "the common name", "the usages"
	for story, tc := range map[string]struct {
		change func(*Request)
		want   string
	}{
		"the request of a klusterlet":     {func(*Request) {}, ""},
		"without the group of all":        {func(r *Request) { r.Organizations = r.Organizations[:1] }, ""},
		"the groups in another order":     {func(r *Request) { r.Organizations = []string{Group, GroupOf("eu")} }, ""},
		"client auth alone":               {func(r *Request) { r.Usages = []certificatesv1.KeyUsage{"client auth"} }, ""},
		"no label":                        {func(r *Request) { r.Cluster = "" }, "no label"},
		"the label of another cluster":    {func(r *Request) { r.Cluster = "us" }, groups},
		"an add-on":                       {func(r *Request) { r.Addon = "x" }, "is of an add-on"},
		"the signer of servers":           {func(r *Request) { r.Signer = certificatesv1.KubeletServingSignerName }, "the signer"},
		"no signer":                       {func(r *Request) { r.Signer = "" }, "the signer"},
		"a certificate":                   {func(r *Request) { r.PEMType = "CERTIFICATE" }, "PEM block"},
		"another PEM type":                {func(r *Request) { r.PEMType = "NEW CERTIFICATE REQUEST" }, "PEM block"},
		"the group of another cluster":    {func(r *Request) { r.Organizations = []string{GroupOf("us"), Group} }, groups},
		"the groups of two clusters":      {func(r *Request) { r.Organizations = append(r.Organizations, GroupOf("us")) }, groups},
		"administrators":                  {func(r *Request) { r.Organizations = append(r.Organizations, "system:masters") }, groups},
		"the group of all alone":          {func(r *Request) { r.Organizations = []string{Group} }, groups},
		"no group":                        {func(r *Request) { r.Organizations = nil }, groups},
		"the user of another cluster":     {func(r *Request) { r.CommonName = GroupOf("us") + ":agent" }, name},
		"a user without the agent's name": {func(r *Request) { r.CommonName = GroupOf("eu") }, name},
		"a user with an empty name":       {func(r *Request) { r.CommonName = GroupOf("eu") + ":" }, name},
		"a user of three parts":           {func(r *Request) { r.CommonName = GroupOf("eu") + ":agent:x" }, name},
		"a user without a cluster":        {func(r *Request) { r.CommonName = "system:admin" }, name},
		"hosts":                           {func(r *Request) { r.AlternativeNames = true }, "alternative names"},
		"a server": {func(r *Request) { r.Usages = append(r.Usages, certificatesv1.UsageServerAuth) },
			usage},
		"an authority": {func(r *Request) { r.Usages = append(r.Usages, certificatesv1.UsageCertSign) }, usage},
		"no client":    {func(r *Request) { r.Usages = r.Usages[:2] }, usage},
		"no usage":     {func(r *Request) { r.Usages = nil }, usage},
		// The group of its klusterlets is that of all.
		"a cluster with a reserved name": {func(r *Request) { *r = csr("managed-clusters") }, groups},
	} {
		r := csr("eu")
		tc.change(&r)
		if why := r.Malformed(); (why == "") != (tc.want == "") || !strings.Contains(why, tc.want) {
			t.Errorf("%s: %q, want %q", story, why, tc.want)
		}
	}
	unchanged := csr("eu")
	unchanged.Malformed()
	if unchanged.Organizations[0] != GroupOf("eu") || unchanged.Organizations[1] != Group {
		t.Errorf("the request became %+v", unchanged)
	}
}

func TestOnlyTheOwnCertificateIsRenewed(t *testing.T) {
	for user, want := range map[string]bool{
		GroupOf("eu") + ":agent":   true,
		GroupOf("eu") + ":agent-2": false, // another agent of the cluster
		GroupOf("us") + ":agent":   false,
		"system:bootstrap:abcdef":  false,
		"system:serviceaccount:open-cluster-management:agent-registration-bootstrap": false,
		"": false,
	} {
		r := csr("eu")
		if r.User = user; r.Renews() != want {
			t.Errorf("%q renews: %t, want %t", user, r.Renews(), want)
		}
	}
	if (Request{}).Renews() {
		t.Error("a request without a user renews")
	}
}
