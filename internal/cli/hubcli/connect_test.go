package hubcli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The hub's system user writes the file, and commands of root read it by default.
func TestTheKubeconfigOfAnInstalledHubRunsAndReadsNothing(t *testing.T) {
	for story, tc := range map[string]struct {
		change  func(*clientcmdapi.AuthInfo, *clientcmdapi.Cluster)
		refused string
	}{
		"as the hub writes it": {change: func(*clientcmdapi.AuthInfo, *clientcmdapi.Cluster) {}},
		"a command": {func(u *clientcmdapi.AuthInfo, _ *clientcmdapi.Cluster) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "/tmp/evil", APIVersion: "client.authentication.k8s.io/v1",
				InteractiveMode: "Never"}
		}, "command"},
		"an auth provider": {func(u *clientcmdapi.AuthInfo, _ *clientcmdapi.Cluster) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"}
		}, "auth provider"},
		"a token file": {func(u *clientcmdapi.AuthInfo,
			_ *clientcmdapi.Cluster) {
			u.TokenFile = "/etc/shadow"
		}, "files"},
		"a client key file": {func(u *clientcmdapi.AuthInfo, _ *clientcmdapi.Cluster) { u.ClientKey = "/root/key" },
			"files"},
		"an authority file": {func(_ *clientcmdapi.AuthInfo,
			c *clientcmdapi.Cluster) {
			c.CertificateAuthority = "/etc/shadow"
		}, "certificate authority file"},
		"a proxy": {func(_ *clientcmdapi.AuthInfo,
			c *clientcmdapi.Cluster) {
			c.ProxyURL = "http://evil.example.com"
		}, "proxy"},
		"a hub that is not verified": {func(_ *clientcmdapi.AuthInfo,
			c *clientcmdapi.Cluster) {
			c.InsecureSkipTLSVerify = true
		}, "verification"},
	} {
		t.Run(story, func(t *testing.T) {
			user := &clientcmdapi.AuthInfo{ClientCertificateData: []byte("crt"), ClientKeyData: []byte("key")}
			hub := &clientcmdapi.Cluster{Server: "https://127.0.0.1:7443", CertificateAuthorityData: []byte("ca")}
			tc.change(user, hub)
			written := clientcmdapi.NewConfig()
			written.AuthInfos["admin"], written.Clusters["argosy"] = user, hub
			written.Contexts["argosy"] = &clientcmdapi.Context{Cluster: "argosy", AuthInfo: "admin", Namespace: "shop"}
			written.CurrentContext = "argosy"
			file := filepath.Join(t.TempDir(), "admin.kubeconfig")
			if err := clientcmd.WriteToFile(*written, file); err != nil {
				t.Fatal(err)
			}
			read, err := installedAccess(file)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("it says %v, want it refused for %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.NewDefaultClientConfig(*read, nil).ClientConfig()
			if err != nil || config.Host != hub.Server || string(config.KeyData) != "key" || string(config.CAData) != "ca" {
				t.Errorf("the hub is reached by %+v (%v)", config, err)
			}
		})
	}
}

func TestInvalidKubeconfigIsRefusedInOneSentence(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, c := range map[string]struct{ file, want string }{
		"missing":     {filepath.Join(dir, "none"), "does not exist; give the kubeconfig file of the member"},
		"a directory": {dir, "is a directory; give the kubeconfig file of the member"},
		"not YAML":    {write("a", "a: b: c"), "is not a kubeconfig: its content is not valid; give the kubeconfig file"},
		"binary": {write("b", "\x7fELF\x00\x01"),
			"is not a kubeconfig: its content is not valid; give the kubeconfig file"},
		"another kind": {write("c", "{apiVersion: v1, kind: Pod}"), "is not a kubeconfig: its content is not valid; give"},
		"a wrong type": {write("d", "clusters: 3"), "is not a kubeconfig: its content is not valid; give"},
	} {
		_, err := (&MemberFlags{Kubeconfig: c.file}).Endpoint("eu")
		if want := "--cluster-kubeconfig " + c.file + " " + c.want; err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}
