package member_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/member"
)

func newClock() *clocktesting.FakeClock { return clocktesting.NewFakeClock(metav1.Now().Time) }

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://from-kubeconfig:6443", certificate-authority-data: Q0E=}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
users: [{name: u, user: USER}]
`

func TestConfigRejectsLocalCredentialPlugins(t *testing.T) {
	with := func(user string) map[string][]byte {
		return map[string][]byte{"kubeconfig": []byte(strings.Replace(kubeconfig, "USER", user, 1))}
	}
	for name, tc := range map[string]struct {
		data  map[string][]byte
		spec  clusterv1alpha1.ClusterSpec
		host  string
		token string
		err   string
	}{
		"token": {data: map[string][]byte{"token": []byte("t"), "caBundle": []byte("CA")},
			spec: clusterv1alpha1.ClusterSpec{APIEndpoint: "https://a"}, host: "https://a", token: "t"},
		"a token outranks a kubeconfig": {data: map[string][]byte{"token": []byte("t"), "kubeconfig": []byte("x")},
			spec: clusterv1alpha1.ClusterSpec{APIEndpoint: "https://a"}, host: "https://a", token: "t"},
		"kubeconfig": {data: with(`{token: k}`), host: "https://from-kubeconfig:6443", token: "k"},
		"the endpoint of the spec holds": {data: with(`{token: k}`),
			spec: clusterv1alpha1.ClusterSpec{APIEndpoint: "https://a"}, host: "https://a", token: "k"},
		"nothing":              {err: "secret ns/s: missing key token"},
		"no endpoint":          {data: map[string][]byte{"token": []byte("t")}, err: "spec.apiEndpoint is empty"},
		"no kubeconfig at all": {data: map[string][]byte{"kubeconfig": []byte("{")}, err: "key kubeconfig"},
		"exec": {data: with(
			`{exec: {apiVersion: client.authentication.k8s.io/v1, command: rm, interactiveMode: Never}}`),
			err: "runs a program (exec)"},
		"auth provider": {data: with(`{auth-provider: {name: gcp}}`), err: "auth provider"},
		"impersonation": {data: with(`{token: k, as: admin}`), err: "uses impersonation"},
		"token file":    {data: with(`{tokenFile: /etc/passwd}`), err: "refers to files"},
		"key file": {data: with(`{client-certificate: a.crt, client-key: a.key}`),
			err: "refers to files"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: tc.data}
			config, err := member.Config(&clusterv1alpha1.Cluster{Spec: tc.spec}, secret)
			if tc.err != "" {
				if !errors.Is(err, member.ErrCredentials) || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want unusable credentials: %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != tc.host || config.BearerToken != tc.token {
				t.Errorf("got %s with token %q, want %s with %q", config.Host, config.BearerToken, tc.host, tc.token)
			}
		})
	}
}

func TestConfigCanSkipTLSVerification(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"token": []byte("t"), "caBundle": []byte("CA")}}
	config, err := member.Config(&clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{APIEndpoint: "https://a",
		InsecureSkipTLSVerification: true}}, secret)
	if err != nil || !config.Insecure || config.CAData != nil {
		t.Errorf("got %+v, %v; a CA beside insecure is refused by clients", config, err)
	}
}
