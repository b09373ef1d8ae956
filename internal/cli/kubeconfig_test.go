package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestAKubeconfigIsWrittenForItsOwnerAlone(t *testing.T) {
	data, to := t.TempDir(), filepath.Join(t.TempDir(), "hub.kubeconfig")
	admin := clientcmdapi.NewConfig()
	admin.Clusters["argosy"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:7443"}
	if err := clientcmd.WriteToFile(*admin, filepath.Join(data, "admin.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte("of before"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"argosy", "kubeconfig", "--data-dir", data, "--kubeconfig-out", to}, &out,
		&out); code != 0 {
		t.Fatal(out.String())
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v (%v), want mode 0600", info, err)
	}
	written, err := clientcmd.LoadFromFile(to)
	if err != nil || written.Clusters["argosy"] == nil {
		t.Errorf("it holds %v (%v)", written, err)
	}
	if !strings.Contains(out.String(), to) || strings.Contains(out.String(), "127.0.0.1") {
		t.Errorf("it says %s", out.String())
	}
}
