package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/argosy-io/argosy/internal/controller"
	klusterletcontroller "github.com/argosy-io/argosy/internal/controller/klusterlet"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/test/kit"
)

func TestKlusterletsWaitUntilARestoreIsAnnounced(t *testing.T) {
	h := &Hub{}
	handler := h.limitAgents(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	const path = "/apis/work.open-cluster-management.io/v1/namespaces/eu/manifestworks"
	send := func(user string, groups ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{
			Subject: pkix.Name{CommonName: user, Organization: groups}}}}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	const eu, group = "system:open-cluster-management:eu:agent", "system:open-cluster-management:eu"
	// The group of all klusterlets is optional, see ocm-hub.md section 3.
	klusterlets := [][]string{{eu, group, klusterlet.Group}, {eu, group}, {eu, klusterlet.Group}}
	others := [][]string{{"admin", "system:masters"}, {eu}, {"eu", "open-cluster-management"}}
	for _, who := range klusterlets {
		if w := send(who[0], who[1:]...); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%q gets %d, Retry-After %q", who, w.Code, w.Header().Get("Retry-After"))
		}
	}
	for _, announced := range []bool{false, true} {
		h.announced.Store(announced)
		for _, who := range others {
			if w := send(who[0], who[1:]...); w.Code != http.StatusOK {
				t.Errorf("announced: %t, %q gets %d", announced, who, w.Code)
			}
		}
	}
	for _, who := range klusterlets {
		if w := send(who[0], who[1:]...); w.Code != http.StatusOK {
			t.Errorf("afterwards, %q gets %d", who, w.Code)
		}
	}
}

// The resources that a klusterlet uses, in the versions that it uses (ocm-hub.md section 1).
var (
	managedClusters = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1",
		Resource: "managedclusters"}
	manifestWorks = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1",
		Resource: "manifestworks"}
	addons = schema.GroupVersionResource{Group: "addon.open-cluster-management.io", Version: "v1beta1",
		Resource: "managedclusteraddons"}
	karmadaClusters = schema.GroupVersionResource{Group: "cluster.karmada.io", Version: "v1alpha1", Resource: "clusters"}
)

// runKlusterletControllers runs the controllers of ManagedClusters on a hub until the test ends.
func runKlusterletControllers(t *testing.T, c *rest.Config) {
	t.Helper()
	runControllers(t, c, func(ctx context.Context, mgr ctrl.Manager) error {
		own, err := definition.Names()
		if err != nil {
			return err
		}
		definitions, err := definition.New(ctx, mgr.GetCache(), mgr.GetAPIReader(), own)
		if err != nil {
			return err
		}
		return klusterletcontroller.Setup(mgr, klusterletcontroller.Options{Definitions: definitions})
	})
}

// runControllers runs controllers until the test ends.
func runControllers(t *testing.T, c *rest.Config, setup func(context.Context, ctrl.Manager) error) {
	t.Helper()
	scheme, err := controller.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	again := true
	mgr, err := ctrl.NewManager(c, ctrl.Options{Scheme: scheme, Controller: config.Controller{SkipNameValidation: &again},
		Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := setup(ctx, mgr); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("the controllers: %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// person is a user of the hub, with typed clients for kinds of Kubernetes and others for the rest.
type person struct {
	t    *testing.T
	kube *kubernetes.Clientset
	dynamic.Interface
}

func newPerson(t *testing.T, c *rest.Config) person {
	t.Helper()
	c = rest.CopyConfig(c)
	c.QPS = -1
	return person{t, kubernetes.NewForConfigOrDie(c), dynamic.NewForConfigOrDie(c)}
}

// patch sends a merge patch; subresource is empty for the object itself.
func (p person) patch(of dynamic.ResourceInterface, name string, patch map[string]any, subresource ...string) error {
	p.t.Helper()
	raw, err := json.Marshal(patch)
	if err != nil {
		p.t.Fatal(err)
	}
	_, err = of.Patch(p.t.Context(), name, types.MergePatchType, raw, metav1.PatchOptions{}, subresource...)
	return err
}

// accept sets whether the hub accepts a cluster, as `clusteradm accept` does (ocm-hub.md section 3).
func (p person) accept(cluster string, accepted bool) error {
	p.t.Helper()
	return p.patch(p.Resource(managedClusters), cluster, map[string]any{"spec": map[string]any{
		"hubAcceptsClient": accepted}})
}

// spoke is a client that behaves as the klusterlet of a cluster.
type spoke struct {
	person
	name  string
	admin person
	// anonymous connects to the hub without credentials.
	anonymous *rest.Config
}

// register creates the ManagedCluster of the cluster, with bootstrap credentials.
func (s *spoke) register() {
	s.t.Helper()
	clusters := s.Resource(managedClusters)
	// It asks for its ManagedCluster, and creates it if there is none: ocm-hub.md 2.2.
	if _, err := clusters.Get(s.t.Context(), s.name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.t.Fatalf("a klusterlet expects that its ManagedCluster is not found, and gets %v", err)
	}
	mc := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
		"metadata": map[string]any{"name": s.name,
			"annotations": map[string]any{"agent.open-cluster-management.io/test": "a"}},
		// hubAcceptsClient is always in the JSON: ocm-api.md section 4.
		"spec": map[string]any{"hubAcceptsClient": false, "managedClusterClientConfigs": []any{
			map[string]any{"url": "https://" + s.name + ".example.com:6443"}}}}}
	created, err := clusters.Create(s.t.Context(), mc, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	seconds, _, _ := unstructured.NestedInt64(created.Object, "spec", "leaseDurationSeconds")
	if set := created.GetLabels()["cluster.open-cluster-management.io/clusterset"]; set != "default" || seconds != 60 {
		s.t.Errorf("the hub stores the set %q and the interval %d", set, seconds)
	}
	// It watches this object by its name: ocm-and-peers.md 2.2, step 1.
	list, err := clusters.List(s.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + s.name})
	if err != nil || len(list.Items) != 1 {
		s.t.Errorf("a klusterlet lists its ManagedCluster: %v", err)
	}
}

// requestCertificate creates a certificate request for the klusterlet of a cluster (ocm-hub.md 2.3 and section 3), and
// returns its name and the private key.
func (s *spoke) requestCertificate(cluster string) (name string, key []byte) {
	s.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // an ECDSA key: ocm-and-peers.md 2.2, step 2
	if err != nil {
		s.t.Fatal(err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		s.t.Fatal(err)
	}
	group := klusterlet.GroupOf(cluster)
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: group + ":agent1", Organization: []string{group, klusterlet.Group}}}, private)
	if err != nil {
		s.t.Fatal(err)
	}
	csr, err := s.kube.CertificatesV1().CertificateSigningRequests().Create(s.t.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: cluster + "-",
				Labels: map[string]string{"open-cluster-management.io/cluster-name": cluster}},
			Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeAPIServerClientSignerName,
				Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}),
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature,
					certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return csr.Name, key
}

// connect waits until a request is signed, and uses the certificate from then on (ocm-and-peers.md 2.2, step 6). It
// finds the request by its label (ocm-hub.md 2.4), and returns the reason of the approval.
func (s *spoke) connect(request string, key []byte) (reason string) {
	s.t.Helper()
	kit.Eventually(s.t, "the hub signs the certificate of "+s.name, func() string {
		list, err := s.kube.CertificatesV1().CertificateSigningRequests().List(s.t.Context(),
			metav1.ListOptions{LabelSelector: "open-cluster-management.io/cluster-name=" + s.name})
		if err != nil {
			return err.Error()
		}
		for _, csr := range list.Items {
			if csr.Name != request || len(csr.Status.Certificate) == 0 {
				continue
			}
			reason = csr.Status.Conditions[0].Reason
			c := rest.CopyConfig(s.anonymous)
			c.CertData, c.KeyData = csr.Status.Certificate, key
			s.person = newPerson(s.t, c)
			return ""
		}
		return "it is not signed"
	})
	return reason
}

// undecided reports whether a request is neither approved nor denied.
func (s *spoke) undecided(request string) bool {
	s.t.Helper()
	csr, err := s.admin.kube.CertificatesV1().CertificateSigningRequests().Get(s.t.Context(), request,
		metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return len(csr.Status.Conditions) == 0 && len(csr.Status.Certificate) == 0
}

// approve makes the administrator approve a request, as `kubectl certificate approve` does (ocm-and-peers.md 2.2, step
// 3).
func (s *spoke) approve(request string) {
	s.t.Helper()
	requests := s.admin.kube.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Get(s.t.Context(), request, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubectlApprove"})
	if _, err := requests.UpdateApproval(s.t.Context(), request, csr, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// reportStatus patches the status of its ManagedCluster (ocm-and-peers.md 2.2, steps 6 and 9). The patch carries the
// UID and the resource version that the klusterlet knows (ocm-hub.md 2.6).
func (s *spoke) reportStatus(known *unstructured.Unstructured, available metav1.ConditionStatus) error {
	s.t.Helper()
	conditions, _, _ := unstructured.NestedSlice(known.Object, "status", "conditions")
	for kind, reason := range map[string]string{"ManagedClusterJoined": "ManagedClusterJoined",
		"ManagedClusterConditionAvailable": "ManagedClusterAvailable"} {
		conditions = slices.DeleteFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == kind })
		status := metav1.ConditionTrue
		if kind != "ManagedClusterJoined" {
			status = available
		}
		conditions = append(conditions, map[string]any{"type": kind, "status": status, "reason": reason, "message": "",
			"lastTransitionTime": metav1.Now()})
	}
	return s.patch(s.Resource(managedClusters), s.name, map[string]any{
		"metadata": map[string]any{"uid": known.GetUID(), "resourceVersion": known.GetResourceVersion()},
		"status": map[string]any{"conditions": conditions, "version": map[string]any{"kubernetes": "v1.36.0"},
			"allocatable": map[string]any{"cpu": "3"}, "capacity": map[string]any{"cpu": "4"},
			"clusterClaims": []any{map[string]any{"name": "region.open-cluster-management.io", "value": "kanto"}}},
	}, "status")
}

// report reports its state until the hub accepts the patch: a conflict is expected and retried (ocm-hub.md 2.6).
func (s *spoke) report(available metav1.ConditionStatus) {
	s.t.Helper()
	kit.Eventually(s.t, "the klusterlet reports its state", func() string {
		mc, err := s.Resource(managedClusters).Get(s.t.Context(), s.name, metav1.GetOptions{})
		if err == nil {
			err = s.reportStatus(mc, available)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// renew updates the Lease that the hub created. The klusterlet only reads and updates it (ocm-and-peers.md 2.2, step
// 7).
func (s *spoke) renew() error {
	s.t.Helper()
	leases := s.kube.CoordinationV1().Leases(s.name)
	lease, err := leases.Get(s.t.Context(), "managed-cluster-lease", metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.NowMicro()
	lease.Spec.RenewTime = &now
	_, err = leases.Update(s.t.Context(), lease, metav1.UpdateOptions{})
	return err
}

// setFinalizers replaces the list of finalizers of a ManifestWork (ocm-hub.md 2.6).
func (s *spoke) setFinalizers(work string, finalizers ...string) error {
	s.t.Helper()
	return s.patch(s.Resource(manifestWorks).Namespace(s.name), work, map[string]any{"metadata": map[string]any{
		"finalizers": finalizers}})
}

// awaitState waits until the hub has the ManagedCluster and the Cluster of the cluster as in want: "Accepted True
// HubClusterAdminAccepted, Available True, taints [], Ready True".
func (s *spoke) awaitState(want string) {
	s.t.Helper()
	kit.Eventually(s.t, s.name+" is "+want, func() string {
		mc, err := s.admin.Resource(managedClusters).Get(s.t.Context(), s.name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		c, err := s.admin.Resource(karmadaClusters).Get(s.t.Context(), s.name, metav1.GetOptions{})
		if err != nil {
			c = &unstructured.Unstructured{}
		}
		taints, _, _ := unstructured.NestedSlice(mc.Object, "spec", "taints")
		keys := []string{}
		for _, taint := range taints {
			keys = append(keys, taint.(map[string]any)["key"].(string))
		}
		accepted, reason := conditionIn(mc, "HubAcceptedManagedCluster")
		available, _ := conditionIn(mc, "ManagedClusterConditionAvailable")
		ready, _ := conditionIn(c, "Ready")
		if got := fmt.Sprintf("Accepted %s %s, Available %s, taints %v, Ready %s", accepted, reason, available, keys,
			ready); got != want {
			return got
		}
		return ""
	})
}

// conditionIn returns the status and the reason of a condition; empty for none.
func conditionIn(u *unstructured.Unstructured, kind string) (status, reason string) {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == kind {
			return c["status"].(string), c["reason"].(string)
		}
	}
	return "", ""
}

// refused fails if a request was not forbidden.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: %v, want a refusal", what, err)
	}
}

// permitted waits until a request is served: the authorizer follows the roles with a delay.
func permitted(t *testing.T, what string, request func() error) {
	t.Helper()
	kit.Eventually(t, what, func() string {
		if err := request(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// ends waits until a request is forbidden.
func ends(t *testing.T, what string, request func() error) {
	t.Helper()
	kit.Eventually(t, what+" ends", func() string {
		if err := request(); !apierrors.IsForbidden(err) {
			return fmt.Sprint("it is permitted, or fails: ", err)
		}
		return ""
	})
}

func manifestWork(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{"apiVersion": "v1",
			"kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "a"}}}}}}}
}

// newSpoke returns a klusterlet with a bootstrap token (ocm-hub.md section 1).
func newSpoke(t *testing.T, h *sharedHub, name string) *spoke {
	t.Helper()
	s := &spoke{name: name, admin: newPerson(t, h.adminConfig), anonymous: rest.AnonymousClientConfig(h.adminConfig)}
	const id, secret = "ocmhub", "0123456789abcdef"
	// The Secret that `clusteradm init` creates.
	_, err := h.admin.CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
			"usage-bootstrap-signing": "true", "auth-extra-groups": klusterlet.TokenGroup,
			"expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	c := rest.CopyConfig(s.anonymous)
	c.BearerToken = id + "." + secret
	s.person = newPerson(t, c)
	permitted(t, "the hub knows the token", func() error {
		_, err := s.Resource(managedClusters).List(t.Context(), metav1.ListOptions{})
		return err
	})
	return s
}

// A klusterlet goes from a bootstrap token to the end of its cluster. At each step it tries what it must not do.
func TestKlusterletFromBootstrapToDeletion(t *testing.T) {
	h := useSharedHub(t)
	runKlusterletControllers(t, h.Config())
	s := newSpoke(t, h, "tokyo")
	verifyClusterInfo(t, h, s)
	s.register()
	request, key := s.requestCertificate(s.name)
	verifyBootstrapRights(t, h, s, request)
	acceptTwice(t, h, s, request, key)
	s.report(metav1.ConditionTrue)
	s.awaitState("Accepted True HubClusterAdminAccepted, Available True, taints [], Ready True")
	other := acceptedCluster(t, s, "osaka")
	workAsKlusterlet(t, s, other)
	reachOut(t, s, other)
	renewCertificate(t, s, other)
	goSilent(t, s)
	denyAndAccept(t, s)
	deleteCluster(t, s)
	if err := s.admin.Resource(managedClusters).Delete(t.Context(), other, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	kit.Eventually(t, "the other cluster is gone", func() string {
		if _, err := s.admin.Resource(managedClusters).Get(t.Context(), other, metav1.GetOptions{}); !apierrors.IsNotFound(
			err) {
			return fmt.Sprint(err)
		}
		return ""
	})
}

// verifyClusterInfo reads what `clusteradm join` reads with the token, over a connection that it cannot verify: the CA
// and the address of the hub (ocm-hub.md section 1).
func verifyClusterInfo(t *testing.T, h *sharedHub, s *spoke) {
	t.Helper()
	c := &rest.Config{Host: h.URL(), BearerToken: "ocmhub.0123456789abcdef",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	info, err := kubernetes.NewForConfigOrDie(c).CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info",
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load([]byte(info.Data["kubeconfig"]))
	if err != nil || len(config.Clusters) != 1 {
		t.Fatalf("%v, %d clusters in\n%s", err, len(config.Clusters), info.Data["kubeconfig"])
	}
	for _, cluster := range config.Clusters {
		if cluster.Server != h.URL() || !x509.NewCertPool().AppendCertsFromPEM(cluster.CertificateAuthorityData) {
			t.Errorf("the hub is at %q, with the CA %q", cluster.Server, cluster.CertificateAuthorityData)
		}
	}
	_, err = s.kube.CoreV1().ConfigMaps("kube-public").List(t.Context(), metav1.ListOptions{})
	refused(t, "a token lists ConfigMaps", err)
}

// verifyBootstrapRights tries what bootstrap credentials must not do. They have no more than ocm-hub.md section 1
// lists.
func verifyBootstrapRights(t *testing.T, h *sharedHub, s *spoke, request string) {
	t.Helper()
	account, err := h.admin.CoreV1().ServiceAccounts(klusterlet.Agents).CreateToken(t.Context(),
		klusterlet.BootstrapAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := rest.CopyConfig(s.anonymous)
	c.BearerToken = account.Status.Token
	byAccount := newPerson(t, c)
	permitted(t, "the bootstrap account reads the ManagedCluster", func() error {
		_, err := byAccount.Resource(managedClusters).Get(t.Context(), s.name, metav1.GetOptions{})
		return err
	})
	for who, p := range map[string]person{"a token": s.person, "the account": byAccount} {
		for _, namespace := range []string{"kube-system", "karmada-cluster", klusterlet.Agents, s.name} {
			_, err := p.kube.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
			refused(t, who+" lists Secrets in "+namespace, err)
		}
		_, err = p.kube.CoreV1().ConfigMaps("karmada-system").Get(t.Context(), "a", metav1.GetOptions{})
		refused(t, who+" reads another ConfigMap", err)
		_, err := p.Resource(karmadaClusters).List(t.Context(), metav1.ListOptions{})
		refused(t, who+" lists Clusters", err)
		_, err = p.Resource(manifestWorks).Namespace(s.name).List(t.Context(), metav1.ListOptions{})
		refused(t, who+" lists ManifestWorks", err)
		_, err = p.kube.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		refused(t, who+" lists namespaces", err)
		refused(t, who+" accepts the cluster", p.accept(s.name, true))
		refused(t, who+" deletes the cluster", p.Resource(managedClusters).Delete(t.Context(), s.name,
			metav1.DeleteOptions{}))
		csr, err := p.kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), request, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "a"}}
		_, err = p.kube.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), request, csr,
			metav1.UpdateOptions{})
		refused(t, who+" approves the request", err)
		for what, change := range map[string]func(*unstructured.Unstructured){
			"accepted": func(mc *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(mc.Object, true, "spec", "hubAcceptsClient")
			},
			"in another set": func(mc *unstructured.Unstructured) {
				mc.SetLabels(map[string]string{"cluster.open-cluster-management.io/clusterset": "prod"})
			},
		} {
			mc := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
				"metadata": map[string]any{"name": "nagoya"}, "spec": map[string]any{"hubAcceptsClient": false}}}
			change(mc)
			_, err := p.Resource(managedClusters).Create(t.Context(), mc, metav1.CreateOptions{})
			refused(t, who+" creates a cluster that is "+what, err)
		}
	}
}

// acceptTwice approves the request and accepts the cluster, in this order: the klusterlet then holds a certificate
// without rights for a while (ocm-hub.md section 3).
func acceptTwice(t *testing.T, h *sharedHub, s *spoke, request string, key []byte) {
	t.Helper()
	if !s.undecided(request) {
		t.Error("a first request is decided without an administrator")
	}
	s.approve(request)
	s.connect(request, key)
	_, err := s.Resource(managedClusters).Get(t.Context(), s.name, metav1.GetOptions{})
	refused(t, "a klusterlet that is not accepted reads its ManagedCluster", err)
	_, err = s.Resource(managedClusters).List(t.Context(), metav1.ListOptions{})
	refused(t, "a klusterlet lists all ManagedClusters", err)

	// Operators may change the object, and do not have the right to accept.
	bind(t, h.admin, "klusterlet-operator", roles.Operator, "")
	as := rest.CopyConfig(h.adminConfig)
	as.Impersonate = rest.ImpersonationConfig{UserName: "klusterlet-operator", Groups: []string{"system:authenticated"}}
	operator := newPerson(t, as)
	permitted(t, "an operator labels the ManagedCluster", func() error {
		return operator.patch(operator.Resource(managedClusters), s.name, map[string]any{"metadata": map[string]any{
			"labels": map[string]any{"tier": "prod"}}})
	})
	err = operator.accept(s.name, true)
	refused(t, "an operator accepts the cluster", err)
	if err != nil && !strings.Contains(err.Error(),
		`user "klusterlet-operator" cannot update the HubAcceptsClient field`) { // ocm-hub.md section 7
		t.Errorf("the refusal is %v", err)
	}
	if err := s.admin.accept(s.name, true); err != nil {
		t.Fatal(err)
	}
	permitted(t, "the klusterlet reads its ManagedCluster", func() error {
		_, err := s.Resource(managedClusters).Get(t.Context(), s.name, metav1.GetOptions{})
		return err
	})
	s.awaitState("Accepted True HubClusterAdminAccepted, Available , " +
		"taints [cluster.open-cluster-management.io/unreachable], Ready Unknown")
	ns, err := h.admin.CoreV1().Namespaces().Get(t.Context(), s.name, metav1.GetOptions{})
	if err != nil || ns.Labels["open-cluster-management.io/cluster-name"] != s.name { // ocm-hub.md section 4
		t.Errorf("the namespace of the cluster: %v, labels %v", err, ns.Labels)
	}
}

// acceptedCluster registers and accepts another cluster, and returns its name.
func acceptedCluster(t *testing.T, s *spoke, name string) string {
	t.Helper()
	mc := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"hubAcceptsClient": true}}}
	if _, err := s.admin.Resource(managedClusters).Create(t.Context(), mc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	permitted(t, "the hub creates the Lease of the other cluster", func() error {
		_, err := s.admin.kube.CoordinationV1().Leases(name).Get(t.Context(), "managed-cluster-lease", metav1.GetOptions{})
		return err
	})
	return name
}

// workAsKlusterlet uses all rights of an accepted klusterlet, and tries to get more.
func workAsKlusterlet(t *testing.T, s *spoke, other string) {
	t.Helper()
	ctx := t.Context()
	permitted(t, "it renews its Lease", s.renew)
	// A patch with an old resource version is a conflict: ocm-hub.md 2.6.
	old, err := s.Resource(managedClusters).Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.report(metav1.ConditionTrue)
	old.SetResourceVersion("1")
	if err := s.reportStatus(old, metav1.ConditionTrue); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an old version: %v", err)
	}
	// It watches its add-ons, whether there are any or not, and records events: ocm-and-peers.md 2.2, steps 12 and 13.
	if _, err := s.Resource(addons).Namespace(s.name).List(ctx, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-", Namespace: s.name},
		EventTime: metav1.NowMicro(), ReportingController: "klusterlet-agent", ReportingInstance: "a", Action: "A",
		Reason: "A", Type: corev1.EventTypeNormal, Regarding: corev1.ObjectReference{Namespace: s.name}}
	if _, err := s.kube.EventsV1().Events(s.name).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}

	// The work agent lists ManifestWorks, adds its finalizer, and reports: ocm-and-peers.md 2.2, step 11.
	for _, namespace := range []string{s.name, other} {
		created, err := s.admin.Resource(manifestWorks).Namespace(namespace).Create(ctx, manifestWork(namespace, "w"),
			metav1.CreateOptions{})
		if err != nil || len(created.GetFinalizers()) > 0 { // ocm-hub.md section 10: the agent acts when its own is stored
			t.Fatalf("%v, finalizers %q", err, created.GetFinalizers())
		}
	}
	works := s.Resource(manifestWorks).Namespace(s.name)
	// The other one is the hub's, and asks which kinds the cluster serves.
	if list, err := works.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 2 {
		t.Errorf("a klusterlet lists its ManifestWorks: %v, %v", list, err)
	}
	if err := s.setFinalizers("w", "cluster.open-cluster-management.io/manifest-work-cleanup"); err != nil {
		t.Errorf("a klusterlet adds its finalizer: %v", err)
	}
	if err := s.patch(works, "w", map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": "Applied", "status": "True", "reason": "AppliedManifestWorkComplete", "message": "",
		"lastTransitionTime": metav1.Now()}}}}, "status"); err != nil {
		t.Errorf("a klusterlet reports that it applied: %v", err)
	}
	refused(t, "a klusterlet changes what it applies", s.patch(works, "w", map[string]any{"spec": map[string]any{
		"deleteOption": map[string]any{"propagationPolicy": "Orphan"}}}))
	refused(t, "a klusterlet deletes a ManifestWork", works.Delete(ctx, "w", metav1.DeleteOptions{}))
	_, err = works.Create(ctx, manifestWork(s.name, "x"), metav1.CreateOptions{})
	refused(t, "a klusterlet creates a ManifestWork", err)
	_, err = s.kube.CoreV1().Secrets(s.name).List(ctx, metav1.ListOptions{})
	refused(t, "a klusterlet lists Secrets of its namespace", err)
	_, err = s.kube.CoordinationV1().Leases(s.name).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	refused(t, "a klusterlet creates a Lease", err)
	_, err = s.Resource(karmadaClusters).List(ctx, metav1.ListOptions{})
	refused(t, "a klusterlet lists Clusters", err)
}

// reachOut tries to use the rights of a klusterlet in another cluster.
func reachOut(t *testing.T, s *spoke, other string) {
	t.Helper()
	ctx := t.Context()
	_, err := s.Resource(managedClusters).Get(ctx, other, metav1.GetOptions{})
	refused(t, "a klusterlet reads another ManagedCluster", err)
	refused(t, "a klusterlet reports for another cluster", s.patch(s.Resource(managedClusters), other,
		map[string]any{"status": map[string]any{"version": map[string]any{"kubernetes": "v1"}}}, "status"))
	_, err = s.Resource(manifestWorks).Namespace(other).List(ctx, metav1.ListOptions{})
	refused(t, "a klusterlet lists ManifestWorks of another cluster", err)
	refused(t, "a klusterlet changes a ManifestWork of another cluster", s.patch(
		s.Resource(manifestWorks).Namespace(other), "w",
		map[string]any{"metadata": map[string]any{"finalizers": []string{"a/b"}}}))
	_, err = s.kube.CoordinationV1().Leases(other).Get(ctx, "managed-cluster-lease", metav1.GetOptions{})
	refused(t, "a klusterlet reads the Lease of another cluster", err)
	_, err = s.Resource(addons).Namespace(other).List(ctx, metav1.ListOptions{})
	refused(t, "a klusterlet lists add-ons of another cluster", err)
	_, err = s.Resource(manifestWorks).List(ctx, metav1.ListOptions{})
	refused(t, "a klusterlet lists all ManifestWorks", err)
}

// renewCertificate renews the certificate as the klusterlet itself, which the hub approves (ocm-hub.md section 3). It
// does not approve one for another cluster.
func renewCertificate(t *testing.T, s *spoke, other string) {
	t.Helper()
	foreign, _ := s.requestCertificate(other)
	request, key := s.requestCertificate(s.name)
	if reason := s.connect(request, key); reason != "AutoApprovedByHubCSRApprovingController" {
		t.Errorf("the renewal is approved because of %s", reason)
	}
	if !s.undecided(foreign) {
		t.Error("a klusterlet gets a certificate of another cluster")
	}
	if _, err := s.Resource(managedClusters).Get(t.Context(), s.name, metav1.GetOptions{}); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
}

// goSilent stops the renewals of the Lease for five intervals (ocm-hub.md section 5), and starts them again.
func goSilent(t *testing.T, s *spoke) {
	t.Helper()
	if err := s.admin.patch(s.admin.Resource(managedClusters), s.name, map[string]any{"spec": map[string]any{
		"leaseDurationSeconds": 1}}); err != nil {
		t.Fatal(err)
	}
	s.awaitState("Accepted True HubClusterAdminAccepted, Available Unknown, " +
		"taints [cluster.open-cluster-management.io/unreachable], Ready Unknown")
	if err := s.admin.patch(s.admin.Resource(managedClusters), s.name, map[string]any{"spec": map[string]any{
		"leaseDurationSeconds": 0}}); err != nil { // it comes back as 60: ocm-hub.md section 7
		t.Fatal(err)
	}
	permitted(t, "it renews its Lease", s.renew)
	s.report(metav1.ConditionFalse) // the klusterlet reports the recovery, not the hub: ocm-hub.md section 5
	s.awaitState("Accepted True HubClusterAdminAccepted, Available False, " +
		"taints [cluster.open-cluster-management.io/unavailable], Ready False")
	s.report(metav1.ConditionTrue)
	s.awaitState("Accepted True HubClusterAdminAccepted, Available True, taints [], Ready True")
}

// denyAndAccept denies the cluster. Its klusterlet keeps the rights on ManifestWorks while there are some, and can then
// only read its ManagedCluster (ocm-hub.md section 4).
func denyAndAccept(t *testing.T, s *spoke) {
	t.Helper()
	works := s.Resource(manifestWorks).Namespace(s.name)
	list := func() error { _, err := works.List(t.Context(), metav1.ListOptions{}); return err }
	if err := s.admin.accept(s.name, false); err != nil {
		t.Fatal(err)
	}
	ends(t, "the right to renew the Lease", s.renew)
	if err := list(); err != nil {
		t.Errorf("a denied klusterlet with ManifestWorks lists them: %v", err)
	}
	if err := s.admin.Resource(manifestWorks).Namespace(s.name).Delete(t.Context(), "w",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.setFinalizers("w"); err != nil {
		t.Errorf("a denied klusterlet cleans up: %v", err)
	}
	ends(t, "the right to read ManifestWorks", list)
	s.awaitState("Accepted False HubClusterAdminDenied, Available True, taints [], Ready False")
	mc, err := s.Resource(managedClusters).Get(t.Context(), s.name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("a denied klusterlet reads its ManagedCluster: %v", err)
	}
	refused(t, "a denied klusterlet reports its state", s.reportStatus(mc, metav1.ConditionTrue))
	refused(t, "a denied klusterlet accepts itself", s.accept(s.name, true))
	if err := s.admin.accept(s.name, true); err != nil {
		t.Fatal(err)
	}
	permitted(t, "it is accepted again", s.renew)
	permitted(t, "it lists ManifestWorks again", list)
}

// deleteCluster deletes the ManagedCluster: its ManifestWorks go first, then its rights; its namespace stays
// (ocm-hub.md section 4).
func deleteCluster(t *testing.T, s *spoke) {
	t.Helper()
	works := s.admin.Resource(manifestWorks).Namespace(s.name)
	if _, err := works.Create(t.Context(), manifestWork(s.name, "last"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.setFinalizers("last", "cluster.open-cluster-management.io/manifest-work-cleanup"); err != nil {
		t.Fatal(err)
	}
	if err := s.admin.Resource(managedClusters).Delete(t.Context(), s.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the hub counts what remains", func() string {
		mc, err := s.admin.Resource(managedClusters).Get(t.Context(), s.name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		raw, _ := json.Marshal(mc.Object["status"])
		if !strings.Contains(string(raw), "The resource manifestworks is remaning, the remaining count is 1") {
			return string(raw)
		}
		return ""
	})
	permitted(t, "the klusterlet cleans up", func() error { return s.setFinalizers("last") })
	kit.Eventually(t, "the cluster is gone", func() string {
		for _, of := range []schema.GroupVersionResource{managedClusters, karmadaClusters} {
			if _, err := s.admin.Resource(of).Get(t.Context(), s.name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("%s: %v", of.Resource, err)
			}
		}
		return ""
	})
	if _, err := s.admin.kube.CoreV1().Namespaces().Get(t.Context(), s.name, metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace of the cluster: %v", err)
	}
	for what, request := range map[string]func() error{
		"the right to read the ManagedCluster": func() error {
			_, err := s.Resource(managedClusters).Get(t.Context(), s.name, metav1.GetOptions{})
			return err
		},
		"the right to renew the Lease": s.renew,
		"the right to list ManifestWorks": func() error {
			_, err := s.Resource(manifestWorks).Namespace(s.name).List(t.Context(), metav1.ListOptions{})
			return err
		},
	} {
		ends(t, what, request)
	}
}

// `clusteradm init` writes the role of bootstrap credentials with more rules. The next start of the hub removes them.
func TestBootstrapRoleHasOnlyTheRulesOfTheHub(t *testing.T) {
	h := useSharedHub(t)
	client := kubernetes.NewForConfigOrDie(h.Config())
	name := klusterlet.StaticGrants().ClusterRole.Name
	before, err := client.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wide := before.DeepCopy()
	wide.Rules = append(wide.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"},
		Verbs: []string{"get"}})
	if _, err := client.RbacV1().ClusterRoles().Update(t.Context(), wide, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := grantKlusterlets(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	after, err := client.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || !equality.Semantic.DeepEqual(before.Rules, after.Rules) {
		t.Errorf("the rules are %v, %v, want %v", after.Rules, err, before.Rules)
	}
}
