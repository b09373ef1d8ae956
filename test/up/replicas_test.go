package up

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/test/kit"
)

// store is an etcd outside of any hub.
func store(t *testing.T) string {
	t.Helper()
	s, err := etcd.Start(t.Context(), etcd.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s.Endpoint
}

func TestTwoHubsOnOneStoreServeBothAndWorkOneAtATime(t *testing.T) {
	kit.Long(t)
	servers := store(t)
	a, b := newHub(t), newHub(t)
	start(t, a, "--etcd-servers", servers)
	first := connect(t, "a", a)
	leader := leads(t, first, "")
	pki := filepath.Join(t.TempDir(), "pki") // b's machine has a copy of a's keys
	if err := os.CopyFS(pki, os.DirFS(filepath.Join(a.Dir, "data", "pki"))); err != nil {
		t.Fatal(err)
	}
	start(t, b, "--etcd-servers", servers, "--pki-dir", pki)
	second := connect(t, "b", b)

	// Both serve one and the same, and take each other's users for who they are.
	for _, pair := range [][2]kit.Cluster{{first, second}, {second, first}} {
		config := rest.AnonymousClientConfig(pair[1].Config)
		config.BearerToken = token(t, pair[0])
		if who := whoIs(t, config); who != "system:serviceaccount:kube-system:default" {
			t.Errorf("with a token of %s one is %q at %s", pair[0].Name, who, pair[1].Name)
		}
		config = rest.CopyConfig(pair[1].Config)
		config.CertData, config.KeyData = pair[0].Config.CertData, pair[0].Config.KeyData
		if who := whoIs(t, config); who != "argosy-admin" {
			t.Errorf("with a certificate of %s one is %q at %s", pair[0].Name, who, pair[1].Name)
		}
	}
	first.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shared}")
	second.Apply(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: shared}
spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [nobody]}}}`)
	works := func(through kit.Cluster, name string) {
		t.Helper()
		through.Apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: shared}")
		for _, c := range []kit.Cluster{first, second} {
			if c.Client == nil {
				continue
			}
			kit.Eventually(t, "a binding, seen from "+c.Name, func() string {
				u := c.Find(t, "work.karmada.io/v1alpha1", "ResourceBinding", "shared", name+"-configmap")
				if !strings.Contains(fmt.Sprint(kit.Field(u, "status", "conditions")), "NoClusterFit") {
					return fmt.Sprint(u)
				}
				return ""
			})
		}
	}
	works(first, "through-a")
	works(second, "through-b")
	if now := holder(t, second); now != leader {
		t.Errorf("%s leads, want %s to go on", now, leader)
	}
	if gotText := log(t, b); strings.Contains(gotText, "this replica is now the leader\"") {
		t.Error("both lead")
	}

	// The leader dies, and the other one takes over.
	a.Kill()
	first.Client = nil
	leader = leads(t, second, leader)
	works(second, "after-death")

	// It comes back and stands by; the leader is stopped, and hands over.
	start(t, a, "--etcd-servers", servers)
	first = connect(t, "a", a)
	works(first, "come-back")
	if now := holder(t, first); now != leader {
		t.Errorf("%s leads, want %s to go on", now, leader)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	second.Client = nil
	leads(t, first, leader)
	works(first, "after-stop")
	start(t, b, "--etcd-servers", servers, "--pki-dir", pki) // for the objects that the test removes through it
	second = connect(t, "b", b)
}

// token is one of kube-system's default service account, by the hub that c reaches.
func token(t *testing.T, c kit.Cluster) string {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	accounts := clients.CoreV1().ServiceAccounts("kube-system")
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	review, err := accounts.CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Token
}

// whoIs is the user that a hub takes a client for.
func whoIs(t *testing.T, config *rest.Config) string {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err.Error()
	}
	return review.Status.UserInfo.Username
}

// holder is the identity of the replica that leads.
func holder(t *testing.T, c kit.Cluster) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "karmada-system", Name: "argosy"},
		lease); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// leads waits until somebody else than before leads.
func leads(t *testing.T, c kit.Cluster, before string) (now string) {
	t.Helper()
	kit.Eventually(t, "another one leads", func() string {
		if now = holder(t, c); now == "" || now == before {
			return "it is still " + now
		}
		return ""
	})
	return now
}

func log(t *testing.T, h *lab.Hub) string {
	t.Helper()
	b, err := os.ReadFile(h.Dir + "/data/argosy.log")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
