package agents

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
)

var eu = reconcile.Request{NamespacedName: types.NamespacedName{Name: "eu"}}

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func token(id string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id}}
}

func cluster(mode clusterv1alpha1.ClusterSyncMode, uid types.UID) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", UID: uid},
		Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
}

// request returns a request of a user for a certificate of the agent of cluster eu, and the key in it.
func request(t *testing.T, user string, groups ...string) (csr *certificatesv1.CertificateSigningRequest, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: pull.User("eu"), Organization: []string{pull.Group}}}, private)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}), Username: user, Groups: groups,
		SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	}}, pull.KeyHash(public)
}

// roleIn returns the ClusterRole of the agent of cluster eu; nil if there is none.
func roleIn(t *testing.T, c client.Client) *rbacv1.ClusterRole {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	err := c.Get(t.Context(), types.NamespacedName{Name: pull.RoleOf("eu")}, role)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return role
}

// A certificate has no rights after the Cluster in whose name it was issued, nor after another registration.
func TestCertificatesEndWithTheirRegistration(t *testing.T) {
	c := newClient(t, token("aaaaaa"), token("bbbbbb"), token("cccccc"))
	a, g := &approver{client: c, live: c}, &granter{client: c, live: c}
	key := "" // with which an agent requests
	approve := func(user string, groups ...string) string {
		t.Helper()
		csr, next := request(t, user, groups...)
		setRequesterKey(csr, key)
		decision, err := a.judge(t.Context(), csr)
		if err != nil || decision.Verdict != pull.Approve {
			t.Fatalf("the request of %s: %+v, %v", user, decision, err)
		}
		return next
	}
	keep := func() {
		t.Helper()
		if _, err := g.Reconcile(t.Context(), eu); err != nil {
			t.Fatal(err)
		}
	}
	valid := func(when string, keys []string, others ...string) {
		t.Helper()
		for _, key := range append(keys, others...) {
			if why := pull.CheckCertificate("eu", roleIn(t, c), key); (why == "") != slices.Contains(keys, key) {
				t.Errorf("%s: a certificate: %q", when, why)
			}
		}
	}
	create := func(uid types.UID) *clusterv1alpha1.Cluster {
		t.Helper()
		created := cluster(clusterv1alpha1.Pull, uid)
		if err := c.Create(t.Context(), created); err != nil {
			t.Fatal(err)
		}
		keep()
		return created
	}

	// 1. A token, then another one, registers the name. Its Cluster ends the registration.
	squatter := approve("system:bootstrap:aaaaaa", pull.TokenGroup)
	valid("a registration", []string{squatter})
	first := approve("system:bootstrap:bbbbbb", pull.TokenGroup)
	valid("another registration", []string{first}, squatter)
	if !pull.Pending(roleIn(t, c)) {
		t.Error("the agent could not create its Cluster")
	}
	current := create("1")
	if pull.Pending(roleIn(t, c)) {
		t.Error("the agent could create its Cluster again")
	}
	key = first
	renewed := approve(pull.User("eu"), pull.Group)
	if len(pull.Keys(roleIn(t, c))) != 2 {
		t.Errorf("the keys are %v", pull.Keys(roleIn(t, c)))
	}
	valid("a renewal", []string{first, renewed}, squatter)

	// 2. The Cluster is gone, but not its roles: as after a removal by force.
	if err := c.Delete(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	second := approve("system:bootstrap:cccccc", pull.TokenGroup)
	valid("a registration after a removal", []string{second}, squatter, first, renewed)
	if len(roleIn(t, c).OwnerReferences) > 0 {
		t.Error("the ClusterRole would be deleted with the former Cluster")
	}
	current = create("2")
	valid("the second Cluster", []string{second}, squatter, first, renewed)

	// The former certificates were not renewed meanwhile.
	for _, former := range []string{"", squatter, first, renewed} {
		csr, next := request(t, pull.User("eu"), pull.Group)
		setRequesterKey(csr, former)
		if decision, err := a.judge(t.Context(), csr); err != nil || decision.Verdict != pull.Deny {
			t.Errorf("the renewal of a former certificate: %+v, %v", decision, err)
		}
		valid("a denied renewal", []string{second}, next)
	}

	// 3. An administrator creates the next Cluster without a registration.
	if err := c.Delete(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	current = create("3")
	valid("a Cluster of an administrator", nil, squatter, first, renewed, second)

	// 4. A join in Push mode removes what is in its name.
	if err := c.Delete(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), cluster(clusterv1alpha1.Push, "4")); err != nil {
		t.Fatal(err)
	}
	keep()
	grants := pull.GrantsOf("eu")
	for _, obj := range grants.Objects() {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s of an agent is there: %v", obj, obj.GetName(), err)
		}
	}
}

// setRequesterKey sets the key of the certificate with which an agent sends a request, as the hub's server does.
func setRequesterKey(csr *certificatesv1.CertificateSigningRequest, key string) {
	csr.Spec.Extra = map[string]certificatesv1.ExtraValue{wellknown.AgentKeyExtra: {key}}
}

// Another registration may be under way, and its keys must stay.
func TestRenewalsRecordNothingInAnotherRole(t *testing.T) {
	known := pull.Known{Cluster: cluster(clusterv1alpha1.Pull, "1"), Keys: []string{"k"}}
	for story, keys := range map[string][]string{"there is none": nil, "another registration": {"other"},
		"the same": {"k"}} {
		c := newClient(t)
		if keys != nil {
			role := pull.GrantsOf("eu").ClusterRole
			pull.RecordKeys(&role, keys)
			if err := c.Create(t.Context(), &role); err != nil {
				t.Fatal(err)
			}
		}
		err := (&approver{client: c, live: c}).record(t.Context(), "eu", known, []string{"k", "next"})
		want := keys
		if story == "the same" {
			want = []string{"k", "next"}
		}
		var got []string
		if role := roleIn(t, c); role != nil {
			got = pull.Keys(role)
		}
		if (err == nil) != (story == "the same") || !slices.Equal(got, want) {
			t.Errorf("%s: %v, the keys are %q", story, err, got)
		}
	}
}

// Roles of earlier versions record no keys. Their agents keep their rights, and renew their certificates.
func TestAgentsOfEarlierVersionsKeepTheirRights(t *testing.T) {
	role := pull.GrantsOf("eu").ClusterRole
	role.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster",
		Name: "eu", UID: "1"}}
	c := newClient(t, cluster(clusterv1alpha1.Pull, "1"), &role)
	a, g := &approver{client: c, live: c}, &granter{client: c, live: c}
	if _, err := g.Reconcile(t.Context(), eu); err != nil {
		t.Fatal(err)
	}
	csr, key := request(t, pull.User("eu"), pull.Group)
	if decision, err := a.judge(t.Context(), csr); err != nil || decision.Verdict != pull.Approve {
		t.Fatalf("a renewal: %+v, %v", decision, err)
	}
	for _, k := range []string{"the first", key} {
		if why := pull.CheckCertificate("eu", roleIn(t, c), k); why != "" {
			t.Errorf("a certificate: %s", why)
		}
	}
	// An administrator's token starts the record.
	replacing := token("dddddd")
	replacing.Annotations = map[string]string{wellknown.TokenClusterAnnotation: "eu",
		wellknown.TokenRenewsAnnotation: "true"}
	if err := c.Create(t.Context(), replacing); err != nil {
		t.Fatal(err)
	}
	csr, replaced := request(t, "system:bootstrap:dddddd", pull.TokenGroup)
	if decision, err := a.judge(t.Context(), csr); err != nil || decision.Verdict != pull.Approve {
		t.Fatalf("a replacement: %+v, %v", decision, err)
	}
	for k, want := range map[string]bool{replaced: true, key: false, "the first": false} {
		if why := pull.CheckCertificate("eu", roleIn(t, c), k); (why == "") != want {
			t.Errorf("a certificate after a replacement: %q", why)
		}
	}
}

// The agent beside a klusterlet connects its cluster, and has no other right. Only a token of an administrator for this
// cluster registers one.
func TestAgentsBesideAKlusterletOnlyConnectTheirCluster(t *testing.T) {
	managed := cluster(clusterv1alpha1.Pull, "1")
	managed.Annotations = map[string]string{wellknown.DerivedFromAnnotation: "ManagedCluster"}
	renews := token("bbbbbb")
	renews.Annotations = map[string]string{wellknown.TokenClusterAnnotation: "eu", wellknown.TokenRenewsAnnotation: "true"}
	c := newClient(t, token("aaaaaa"), renews)
	a, g := &approver{client: c, live: c}, &granter{client: c, live: c}
	judge := func(user string, want pull.Verdict) string {
		t.Helper()
		csr, key := request(t, user, pull.TokenGroup)
		if decision, err := a.judge(t.Context(), csr); err != nil || decision.Verdict != want {
			t.Fatalf("the request of %s: %+v, %v, want %s", user, decision, err, want)
		}
		return key
	}

	// A token registers the name before the ManagedCluster is accepted, with all that its agent needs.
	squatter := judge("system:bootstrap:aaaaaa", pull.Approve)
	former := pull.GrantsOf("eu")
	for _, obj := range former.InNamespaces() {
		if err := c.Create(t.Context(), obj.(client.Object)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Create(t.Context(), managed); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Reconcile(t.Context(), eu); err != nil {
		t.Fatal(err)
	}
	judge("system:bootstrap:aaaaaa", pull.Deny)
	key := judge("system:bootstrap:bbbbbb", pull.Approve)
	for k, want := range map[string]bool{squatter: false, key: true} {
		if why := pull.CheckCertificate("eu", roleIn(t, c), k); (why == "") != want {
			t.Errorf("a certificate: %q, valid: %t", why, want)
		}
	}
	for _, obj := range former.InNamespaces() {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj.(client.Object)); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is there: %v", obj, obj.GetName(), err)
		}
	}
	role, binding := roleIn(t, c), pull.TunnelGrantsOf("eu").ClusterRoleBinding
	if !slices.ContainsFunc(role.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == "1" }) {
		t.Errorf("the owners of the ClusterRole are %v", role.OwnerReferences)
	}
	var may []string
	for _, r := range role.Rules {
		may = append(may, fmt.Sprintf("%v%v%v", r.Verbs, r.Resources, r.ResourceNames))
	}
	want := []string{"[get][clusters][eu]", "[create][clusters/tunnel][eu]",
		"[create get][certificatesigningrequests][]", "[get][namespaces][kube-system]"}
	if !slices.Equal(may, want) {
		t.Errorf("the agent may %q, want %q", may, want)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(&binding), &binding); err != nil {
		t.Error(err)
	}

	// An administrator ends the access of the agent, and registers it again.
	if err := c.Delete(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	again := judge("system:bootstrap:bbbbbb", pull.Approve)
	if _, err := g.Reconcile(t.Context(), eu); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]bool{key: false, again: true} {
		if why := pull.CheckCertificate("eu", roleIn(t, c), k); (why == "") != want {
			t.Errorf("a certificate after the second registration: %q, valid: %t", why, want)
		}
	}
}

// A klusterlet can register the name after the request was judged: the token must not get the rights of an agent then.
func TestRegistrationsEndWhenTheNameIsTaken(t *testing.T) {
	managed := cluster(clusterv1alpha1.Pull, "1")
	managed.Annotations = map[string]string{wellknown.DerivedFromAnnotation: "ManagedCluster"}
	for story, taken := range map[string]*clusterv1alpha1.Cluster{"a klusterlet": managed,
		"another agent": cluster(clusterv1alpha1.Pull, "1"), "a join": cluster(clusterv1alpha1.Push, "1")} {
		c := newClient(t, taken)
		err := (&approver{client: c, live: c}).record(t.Context(), "eu", pull.Known{}, []string{"k"})
		if role := roleIn(t, c); err == nil || role != nil {
			t.Errorf("%s: %v, the role is %v", story, err, role)
		}
	}
}
