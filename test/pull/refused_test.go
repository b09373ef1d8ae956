package pull

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/member/tunnel"
	"github.com/argosy-io/argosy/test/kit"
)

const (
	registrar = "system:karmada:agent:rbac-generator"
	agents    = "system:karmada:agents"
)

// agentConfig returns the client configuration that the agent of a member has for the hub.
func agentConfig(t *testing.T, member kit.Cluster) *rest.Config {
	t.Helper()
	secret := &corev1.Secret{}
	if err := member.Get(t.Context(), client.ObjectKey{Namespace: "karmada-system", Name: "karmada-kubeconfig"},
		secret); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["karmada-kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// tokenConfig returns the client configuration of a new bootstrap token.
func tokenConfig(t *testing.T, flags ...string) *rest.Config {
	t.Helper()
	config := rest.AnonymousClientConfig(fleet.Hub.Config)
	config.BearerToken = strings.Fields(argosy(t, append([]string{"token", "create"}, flags...)...))[0]
	return config
}

// requestCertificate requests a certificate for a user. It returns a client configuration of that user, or the reason
// of the refusal.
func requestCertificate(t *testing.T, as *rest.Config, user string, groups ...string) (*rest.Config, string) {
	t.Helper()
	return requestOther(t, as, func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
		r.Subject = pkix.Name{CommonName: user, Organization: groups}
	})
}

// requestOther is requestCertificate for a request that change completes.
func requestOther(t *testing.T, as *rest.Config,
	change func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec)) (*rest.Config, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	request, spec := &x509.CertificateRequest{}, certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}}
	change(request, &spec)
	raw, err := x509.CreateCertificateRequest(rand.Reader, request, key)
	if err != nil {
		t.Fatal(err)
	}
	spec.Request = pem.EncodeToMemory(&pem.Block{Type: cert.CertificateRequestBlockType, Bytes: raw})
	c, err := kubernetes.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}
	requests := c.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return nil, err.Error()
	}
	why := ""
	kit.Eventually(t, "the hub decides about the request", func() string {
		if csr, err = requests.Get(t.Context(), csr.Name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		for _, condition := range csr.Status.Conditions {
			if condition.Type == certificatesv1.CertificateDenied {
				why = condition.Message
				return ""
			}
		}
		if len(csr.Status.Certificate) == 0 {
			return "it is undecided"
		}
		return ""
	})
	if why != "" {
		kit.Eventually(t, "an event has the reason", func() string {
			if events := fleet.Hub.Messages(t, "CertificateSigningRequest", "", csr.Name,
				"AgentDenied"); !slices.Contains(events,
				why) {
				return fmt.Sprintf("the events are %q", events)
			}
			return ""
		})
		return nil, why
	}
	config := rest.AnonymousClientConfig(fleet.Hub.Config)
	config.CertData, config.KeyData = csr.Status.Certificate, keyPEM
	return config, ""
}

// permitted returns what a user may do among all resources and verbs, as "verb resource.group", to objects of a name in
// a namespace, or, without one, to objects in no namespace.
func permitted(t *testing.T, as *rest.Config, namespace, name string) map[string]bool {
	t.Helper()
	c, err := kubernetes.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}
	hub, err := discovery.NewDiscoveryClientForConfig(fleet.Hub.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := hub.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	ask := func(verb, group, resource, sub string) {
		what := verb + " " + strings.TrimSuffix(resource+"/"+sub, "/") + "." + group
		if _, asked := all[what]; asked {
			return
		}
		review, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource,
					Subresource: sub, Namespace: namespace, Name: name}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all[what] = review.Status.Allowed
	}
	for verb, resources := range map[string][]string{
		"impersonate": {"users.", "groups.", "serviceaccounts.", "uids.authentication.k8s.io",
			"userextras.authentication.k8s.io"},
		"bind":     {"roles." + rbacv1.GroupName, "clusterroles." + rbacv1.GroupName},
		"escalate": {"roles." + rbacv1.GroupName, "clusterroles." + rbacv1.GroupName},
		"approve":  {"signers.certificates.k8s.io"},
		"sign":     {"signers.certificates.k8s.io"},
		"attest":   {"signers.certificates.k8s.io"},
		"*":        {"*.*", "secrets.", "clusters.cluster.karmada.io"},
	} {
		for _, r := range resources {
			resource, group, _ := strings.Cut(r, ".")
			ask(verb, group, resource, "")
		}
	}
	for _, list := range lists {
		group, _, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			group = ""
		}
		for _, resource := range list.APIResources {
			base, sub, _ := strings.Cut(resource.Name, "/")
			if resource.Namespaced == (namespace == "") {
				continue
			}
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
				ask(verb, group, base, sub)
			}
		}
	}
	maps.DeleteFunc(all, func(what string, allowed bool) bool {
		// All users may ask what they may do.
		return !allowed || strings.HasPrefix(what, "create self")
	})
	return all
}

func TestAgentSeesOnlyItsOwnCluster(t *testing.T) {
	kit.Long(t)
	m, member := fleet.StartMember(t, "p3")
	register(t, m, "p3")
	config := agentConfig(t, member)
	kit.Eventually(t, "the hub keeps the permissions", func() string {
		role := &rbacv1.ClusterRole{}
		err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: "system:karmada:p3:agent"}, role)
		if err != nil || len(role.OwnerReferences) != 1 {
			return fmt.Sprintf("owners %v (%v)", role.OwnerReferences, err)
		}
		return ""
	})

	// 1. Every verb on every resource of others is refused, except for what all agents need.
	general := []string{"create certificatesigningrequests.certificates.k8s.io",
		"get certificatesigningrequests.certificates.k8s.io", "create clusters.cluster.karmada.io"}
	for _, resource := range []string{"resourceinterpretercustomizations", "resourceinterpreterwebhookconfigurations"} {
		for _, verb := range []string{"get", "list", "watch"} {
			general = append(general, verb+" "+resource+".config.karmada.io")
		}
	}
	for _, tc := range []struct {
		namespace, name string
		allowed         []string
	}{
		{"", "push", general},
		{"default", "other", nil},
		{"kube-system", "other", nil},
		{"karmada-es-push", "other", nil},
		{"karmada-cluster", "push", []string{"create secrets.", "create leases.coordination.k8s.io"}},
	} {
		got := slices.Sorted(maps.Keys(permitted(t, config, tc.namespace, tc.name)))
		want := slices.Sorted(slices.Values(tc.allowed))
		if !slices.Equal(got, want) {
			t.Errorf("in namespace %q, to the name %q, the agent may %q, want %q", tc.namespace, tc.name, got, want)
		}
	}
	c, err := kit.Connect("the agent", config)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/", "/logs", "/configz",
		"/apis/cluster.karmada.io/v1alpha1/clusters/push/proxy/api/v1/namespaces",
		"/apis/cluster.karmada.io/v1alpha1/clusters/p3/proxy/api/v1/namespaces",
		"/api/v1/namespaces/karmada-cluster/secrets/push", "/api/v1/namespaces/karmada-cluster/secrets?limit=1",
		"/apis/work.karmada.io/v1alpha1/works", "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-push/works",
		"/apis/cluster.karmada.io/v1alpha1/clusters/push",
		"/apis/cluster.karmada.io/v1alpha1/clusters?fieldSelector=metadata.name%3Dpush",
		"/apis/certificates.k8s.io/v1/certificatesigningrequests"} {
		request := raw.Discovery().RESTClient().Get().RequestURI(path)
		if _, err := request.DoRaw(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("the agent gets %s: %v", path, err)
		}
	}
	connect := func(cluster string) error {
		return raw.Discovery().RESTClient().Post().AbsPath(tunnel.Path(cluster)).Do(t.Context()).Error()
	}
	if err := connect("push"); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), `resource "clusters/tunnel"`) {
		t.Errorf("the agent connects another cluster: %v", err)
	}
	if err := connect("p3"); !apierrors.IsBadRequest(err) {
		t.Errorf("the agent connects its cluster without an upgrade: %v", err)
	}

	// 2. What RBAC cannot limit is refused by admission, with a reason.
	other := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	for want, obj := range map[string]client.Object{
		`cannot create cluster "p9"`: &clusterv1alpha1.Cluster{ObjectMeta: other("", "p9"),
			Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}},
		"only the Leases karmada-cluster/p3": &coordinationv1.Lease{ObjectMeta: other("karmada-cluster", "push2")},
		"only the Opaque Secrets p3":         &corev1.Secret{ObjectMeta: other("karmada-cluster", "push2")},
		"only the Opaque Secrets p3 and p3-imper": &corev1.Secret{ObjectMeta: other("karmada-cluster", "p3"),
			Type: corev1.SecretTypeBasicAuth, StringData: map[string]string{"username": "a", "password": "b"}},
	} {
		if err := c.Create(t.Context(), obj); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("create %T %s: %v, want %q", obj, obj.GetName(), err, want)
		}
	}
	if _, why := requestCertificate(t, config, "system:karmada:agent:push", agents); !strings.Contains(why,
		`cannot request a certificate of the agent of cluster "push"`) {
		t.Errorf("a certificate for another cluster: %q", why)
	}
	if _, why := requestCertificate(t, config, registrar, agents); !strings.Contains(why, "only a bootstrap token") {
		t.Errorf("a certificate of a registrar: %q", why)
	}

	for want, change := range map[string]func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec){
		"the organization": func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.Subject.Organization = []string{agents, "system:bootstrappers"}
		},
		`use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed`: func(
			r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.Subject.Organization = []string{agents, "system:masters"}
		},
		"cannot have alternative names": func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.DNSNames = []string{"kubernetes.default.svc"}
		},
		"the usages of a certificate": func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = append(s.Usages, certificatesv1.UsageServerAuth)
		},
	} {
		for who, as := range map[string]*rest.Config{"an agent": config, "a token": tokenConfig(t)} {
			issued, why := requestOther(t, as,
				func(r *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
					r.Subject = pkix.Name{CommonName: "system:karmada:agent:p3", Organization: []string{agents}}
					change(r, s)
				})
			if issued != nil || !strings.Contains(why, want) {
				t.Errorf("%s requests a certificate that must be refused: %q, want %q", who, why, want)
			}
		}
	}

	// 3. It sees its own cluster. A list of all clusters, which Karmada's agents request, has only that.
	var clusters clusterv1alpha1.ClusterList
	if err := c.List(t.Context(), &clusters); err != nil || len(clusters.Items) != 1 || clusters.Items[0].Name != "p3" {
		t.Errorf("the list of clusters has %d items: %v", len(clusters.Items), err)
	}
	var services corev1.ServiceList
	if err := c.List(t.Context(), &services); err != nil || len(services.Items) != 0 {
		t.Errorf("the list of Services has %d items: %v", len(services.Items), err)
	}
	if err := c.List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("the list of Secrets: %v", err)
	}
	own := &clusterv1alpha1.Cluster{ObjectMeta: other("", "p3")}
	if err := c.Status().Patch(t.Context(), own, client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"remedyActions":["TrafficControl"]}}`))); err != nil || len(own.Status.RemedyActions) > 0 {
		t.Errorf("the agent writes the actions of Remedies: %v, %q", err, own.Status.RemedyActions)
	}
	if renewed, why := requestCertificate(t, config, "system:karmada:agent:p3", agents); renewed == nil {
		t.Errorf("the agent cannot renew its certificate: %s", why)
	}
}

// The Secrets of the hub for clusters in Push mode must not be those of a new cluster in Pull mode.
func TestNewClusterCannotReadTheSecretsOfAnother(t *testing.T) {
	kit.Long(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "p14"}}
	fleet.Hub.RemoveAtEnd(t, secret)
	if err := fleet.Hub.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string]string{"p14": "Secret p14 exists in namespace karmada-cluster",
		"push-impersonator": "does not end with -impersonator", "push": "joined in Push mode"} {
		issued, why := requestCertificate(t, tokenConfig(t), "system:karmada:agent:"+cluster, agents)
		if issued != nil || !strings.Contains(why, want) {
			t.Errorf("a certificate for cluster %s: %q, want %q", cluster, why, want)
		}
	}
}

// Tokens of other groups, and those that only sign, get no certificate.
func TestTokensOfOthersCannotRegister(t *testing.T) {
	kit.Long(t)
	for story, flags := range map[string][]string{"another group": {"--groups", "system:bootstrappers:others"},
		"no authentication": {"--usages", "signing"}} {
		c, err := kubernetes.NewForConfig(tokenConfig(t, flags...))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.CertificatesV1().CertificateSigningRequests().Create(t.Context(),
			&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}},
			metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: %v", story, err)
		}
	}
	refused(t, []string{"--groups"}, "token", "create", "--groups", "system:bootstrappers:x,system:masters")
}

func TestRegistrarGrantsOnlyThePermissionsOfAgents(t *testing.T) {
	kit.Long(t)
	config, why := requestCertificate(t, tokenConfig(t), registrar, agents)
	if config == nil {
		t.Fatal(why)
	}
	chain, err := cert.ParseCertsPEM(config.CertData)
	if err != nil || time.Until(chain[0].NotAfter) > 11*time.Minute {
		t.Errorf("the certificate is valid until %s (%v)", chain[0].NotAfter, err)
	}
	c, err := kit.Connect("the registrar", config)
	if err != nil {
		t.Fatal(err)
	}
	all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	me := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: registrar}}
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta("", "mine"), Rules: all},
		&rbacv1.ClusterRole{ObjectMeta: meta("", "system:karmada:push:agent"), Rules: all},
		&rbacv1.Role{ObjectMeta: meta("kube-system", "system:karmada:p4:agent-work"), Rules: all},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "mine"), Subjects: me,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}},
		&corev1.Namespace{ObjectMeta: meta("", "mine")},
		&corev1.Secret{ObjectMeta: meta("kube-system", "mine")},
	} {
		if err := c.Create(t.Context(), obj); !apierrors.IsForbidden(err) {
			t.Errorf("the registrar creates %T %s: %v", obj, obj.GetName(), err)
		}
	}
	// What it may create gets the hub's content, and gives no certificate a permission.
	role := &rbacv1.ClusterRole{ObjectMeta: meta("", "system:karmada:p4:agent"), Rules: all}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "system:karmada:p4:agent"), Subjects: me,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}
	for _, obj := range []client.Object{role, binding} {
		fleet.Hub.RemoveAtEnd(t, obj)
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	if len(role.Rules) < 2 || slices.Contains(role.Rules[0].Verbs, "*") ||
		binding.Subjects[0].Name != "system:karmada:agent:p4" || binding.RoleRef.Name != "system:karmada:p4:agent" {
		t.Errorf("the registrar created %+v and %+v", role.Rules, binding)
	}
}

func TestRegistrationsWithMistakesAreRefusedWithTheReason(t *testing.T) {
	kit.Long(t)
	m, _ := fleet.StartMember(t, "p5")
	args := registerArgs(t, m, "p5")
	changed := func(args []string, flag, value string) []string {
		args = slices.Clone(args)
		args[slices.Index(args, flag)+1] = value
		return append(args, "--discovery-timeout", "8s")
	}
	token := args[slices.Index(args, "--token")+1]
	id, _, _ := strings.Cut(token, ".")

	// 1. Wrong, unknown, deleted and expired tokens, and a server that is not the hub.
	refused(t, []string{"does not match the signature"}, changed(args, "--token", id+".0000000000000000")...)
	refused(t, []string{"does not know token zzzzzz"}, changed(args, "--token", "zzzzzz.0000000000000000")...)
	refused(t, []string{"malformed"}, changed(args, "--token", "secret")...)
	refused(t, []string{"is not the hub"}, changed(args, "--discovery-token-ca-cert-hash", "sha256:00")...)
	refused(t, []string{`cluster name "a.b"`}, changed(args, "--cluster-name", "a.b")...)
	expires := registerArgs(t, m, "p5", "--ttl", "2s")
	kit.Eventually(t, "the token expires", func() string {
		return tokenExists(t, expires[slices.Index(expires, "--token")+1])
	})
	kit.Eventually(t, "an expired token is refused", func() string {
		out, err := fleet.Argosy(t.Context(), append(expires, "--discovery-timeout", "2s")...)
		if err == nil || !strings.Contains(out, "does not know token") {
			return out
		}
		return ""
	})
	if clusterOf(t, "p5").Name != "" {
		t.Fatal("a refused registration created the cluster")
	}

	// 2. A name in Push mode, a token for another cluster, and a cluster that is registered already.
	refused(t, []string{`the name "push" belongs to another cluster`}, changed(args, "--cluster-name", "push")...)
	register(t, m, "p5")
	refused(t, []string{`cluster "p5" is registered already`}, registerArgs(t, m, "p5")...)
	other, _ := fleet.StartMember(t, "p6")
	used := registerArgs(t, other, "p6")
	argosy(t, used...)
	removeAtEnd(t, "p6")
	third, _ := fleet.StartMember(t, "p7")
	reused := changed(changed(used, "--cluster-name", "p7"), "--cluster-kubeconfig", third.Kubeconfig)
	refused(t, []string{`is for cluster "p6" and cannot register cluster "p7"`}, reused...)
	refused(t, []string{`registered it as "p5"`}, registerArgs(t, m, "p8")...)
	refused(t, []string{`the name "p5" belongs to another cluster`},
		registerArgs(t, third, "p5", "--cluster-name", "p5")...)

	// 3. An administrator's token replaces the credentials of an agent.
	argosy(t, registerArgs(t, m, "p5", "--cluster-name", "p5")...)
}

func tokenExists(t *testing.T, token string) string {
	t.Helper()
	id, _, _ := strings.Cut(token, ".")
	err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "bootstrap-token-" + id},
		&corev1.Secret{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	return fmt.Sprintf("it is there (%v)", err)
}

// An agent with a certificate of another hub ends with the reason, which is also in the log of this hub.
func TestAgentOfAnotherFleetIsRefused(t *testing.T) {
	kit.Long(t)
	m, member := fleet.StartMember(t, "p10")
	register(t, m, "p10")
	mine, err := clientcmd.LoadFromFile(m.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	user := mine.AuthInfos[mine.Contexts[mine.CurrentContext].AuthInfo]
	secret := &corev1.Secret{}
	if err := member.Get(t.Context(), client.ObjectKey{Namespace: "karmada-system", Name: "karmada-kubeconfig"},
		secret); err != nil {
		t.Fatal(err)
	}
	hub, err := clientcmd.Load(secret.Data["karmada-kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	hub.AuthInfos[hub.Contexts[hub.CurrentContext].AuthInfo] = user
	if secret.Data["karmada-kubeconfig"], err = clientcmd.Write(*hub); err != nil {
		t.Fatal(err)
	}
	if err := member.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(fleet.Lab.Hub.Dir, "data", "argosy.log")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	startAgent(t, m, "p10").Ends(t, "rejects the certificate of the agent")
	kit.Eventually(t, "the hub logs the reason", func() string {
		after, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(strings.TrimPrefix(string(after), string(before))) {
			if strings.Contains(line, "Unable to authenticate the request") &&
				strings.Contains(line, "certificate signed by unknown authority") {
				return ""
			}
		}
		return "it does not"
	})
}
