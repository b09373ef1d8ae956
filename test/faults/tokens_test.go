package faults

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/argosy-io/argosy/internal/core/cluster/credential"
	"github.com/argosy-io/argosy/test/kit"
)

// The story of a token that had leaked, and of the cluster that was joined again to be rid of it: the leaked one was
// good for ever.
func TestATokenOfAMemberEndsAndIsRevoked(t *testing.T) {
	kit.Long(t)
	file := fleet.Fleet.Members()[0].Kubeconfig
	admin, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	member, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	hubConfig, err := fleet.Lab.Hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	hub, err := kubernetes.NewForConfig(hubConfig)
	if err != nil {
		t.Fatal(err)
	}
	secret := func(name string) *corev1.Secret {
		t.Helper()
		s, err := hub.CoreV1().Secrets("karmada-cluster").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	has := func() string { return string(secret("f1").Data["token"]) }
	// answer is what the member says to who has a token.
	answer := func(token string) int {
		c, err := kubernetes.NewForConfig(&rest.Config{Host: admin.Host, BearerToken: token,
			TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData, CAFile: admin.CAFile, Insecure: admin.Insecure}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{},
			metav1.CreateOptions{})
		switch {
		case err == nil:
			return http.StatusOK
		case apierrors.IsUnauthorized(err):
			return http.StatusUnauthorized
		}
		t.Fatal(err)
		return 0
	}
	refused := func(what, token string) {
		t.Helper()
		kit.Eventually(t, "the member refuses "+what, func() string {
			return expect(fmt.Sprint(answer(token)), fmt.Sprint(http.StatusUnauthorized))
		})
	}

	// 1. Both tokens end, and go with a Secret of their own.
	for _, name := range []string{"f1", "f1-impersonator"} {
		is, ok := credential.Read(string(secret(name).Data["token"]))
		if !ok || is.Endless() || is.Secret == "" || time.Until(is.Expires) > credential.Life+time.Hour {
			t.Fatalf("the token of %s is %+v", name, is)
		}
	}

	// 2. Joined again, the cluster refuses the old one.
	was := has()
	if code := answer(was); code != http.StatusOK {
		t.Fatalf("the member answers %d to the token in use", code)
	}
	if out, err := fleet.Lab.Argosy(t.Context(), "join", "f1", "--cluster-kubeconfig", file); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	is := has()
	if is == was || answer(is) != http.StatusOK {
		t.Fatal("joining again made no new token that is good")
	}
	refused("the token from before it was joined again", was)

	// 3. A token that never ends, as other tools hand the hub, is replaced by the hub, and revoked.
	const account = "karmada-f1"
	endless := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: account,
		Annotations: map[string]string{corev1.ServiceAccountNameKey: account}}, Type: corev1.SecretTypeServiceAccountToken}
	if _, err := member.CoreV1().Secrets("karmada-cluster").Create(t.Context(), endless,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = member.CoreV1().Secrets("karmada-cluster").Delete(context.Background(), account, metav1.DeleteOptions{})
	})
	var given string
	kit.Eventually(t, "the member issues a token that never ends", func() string {
		s, err := member.CoreV1().Secrets("karmada-cluster").Get(t.Context(), account, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if given = string(s.Data["token"]); given == "" {
			return "it has none yet"
		}
		return ""
	})
	s := secret("f1")
	s.Data["token"] = []byte(given)
	if _, err := hub.CoreV1().Secrets("karmada-cluster").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the hub has another token", func() string {
		now, ok := credential.Read(has())
		if !ok || now.Endless() {
			return "it has the one that never ends"
		}
		return ""
	})
	refused("the token that never ends", given)
	ready(t, fleet.Hub, "f1", "ClusterReady")
	kit.Eventually(t, "an event tells of the new token", func() string {
		if len(fleet.Hub.Messages(t, "Cluster", "", "f1", "MemberTokenRotated")) == 0 {
			return "none does"
		}
		return ""
	})
}
