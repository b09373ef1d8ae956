package member_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/member"
)

// FuzzKubeconfigs has whatever somebody puts into a member's secret be a client or unusable, and never have the hub run
// a program, read a file of its machine, or act as somebody else.
func FuzzKubeconfigs(f *testing.F) {
	for _, user := range []string{
		`{token: k}`, `{}`, `null`, `[]`, `{username: u, password: p}`,
		`{client-certificate-data: QQ==, client-key-data: QQ==}`,
		`{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [-c, id], interactiveMode: Never}}`,
		`{auth-provider: {name: oidc, config: {idp-issuer-url: "https://x"}}}`, `{auth-provider: {name: exec}}`,
		`{token: k, tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}`, `{tokenFile: ../../etc/shadow}`,
		`{client-certificate: /etc/a.crt, client-key: /etc/a.key}`, `{token: k, as: admin, as-groups: [system:masters]}`,
		`{token: k, as-user-extra: {a: [b]}}`,
		`{token: k, exec: null, EXEC: {command: sh}}`, `&a {token: *a}`,
	} {
		f.Add([]byte(strings.Replace(kubeconfig, "USER", user, 1)), "", "")
	}
	for _, cluster := range []string{
		`{server: "https://c", insecure-skip-tls-verify: true}`,
		`{server: "https://c", certificate-authority: /etc/ssl/ca.pem}`, `{server: "https://c", proxy-url: "socks5://p:1"}`,
		`{server: "https://c", proxy-url: "%zz"}`, `{server: "unix:///run/x.sock"}`, `{server: "file:///etc/passwd"}`,
		`{server: ""}`, `{server: "https://c", certificate-authority-data: bm9uZQ==, insecure-skip-tls-verify: true}`,
	} {
		text := strings.Replace(kubeconfig, `{server: "https://from-kubeconfig:6443", certificate-authority-data: Q0E=}`,
			cluster, 1)
		f.Add([]byte(strings.Replace(text, "USER", "{token: k}", 1)), "https://a", "http://proxy:3128")
	}
	for _, text := range []string{"", "{", "\x00", "a: &a [*a,*a]",
		`{"users":[{"name":"u","user":{"exec":{"command":"sh"}}}]}`, "apiVersion: v1\nkind: List", strings.Repeat("[", 10000),
		strings.Repeat("a: ", 1000)} {
		f.Add([]byte(text), "https://a", "::")
	}
	f.Fuzz(func(t *testing.T, text []byte, host, proxy string) {
		cluster := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{APIEndpoint: host, ProxyURL: proxy}}
		config, err := member.Config(cluster, &corev1.Secret{Data: map[string][]byte{member.KubeconfigKey: text}})
		if err != nil {
			if !errors.Is(err, member.ErrCredentials) {
				t.Errorf("refused as no unusable credentials: %v", err)
			}
			return
		}
		switch {
		case config.ExecProvider != nil, config.AuthProvider != nil, config.AuthConfigPersister != nil:
			t.Error("it runs something")
		case config.BearerTokenFile != "", config.CertFile != "", config.KeyFile != "", config.CAFile != "":
			t.Error("it reads a file")
		case config.Impersonate.UserName != "" || config.Impersonate.UID != "" || len(config.Impersonate.Groups) > 0 ||
			len(config.Impersonate.Extra) > 0:
			t.Error("it acts as somebody else")
		case config.Host == "":
			t.Error("it has no endpoint")
		}
	})
}
