package server

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/argosy-io/argosy/internal/server/pki"
)

func TestRestartKeepsUserSettingsInTheKubeconfig(t *testing.T) {
	dir := t.TempDir()
	files := pki.Files{Trust: filepath.Join(dir, "ca.crt"), Admin: filepath.Join(dir, "admin.crt"),
		AdminKey: filepath.Join(dir, "admin.key")}
	for _, file := range []string{files.Trust, files.Admin, files.AdminKey} {
		if err := os.WriteFile(file, []byte(filepath.Base(file)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "admin.kubeconfig")
	start := func(url string) *clientcmdapi.Config {
		t.Helper()
		if err := writeKubeconfig(file, url, "", files); err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.LoadFromFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	save := func(config *clientcmdapi.Config) {
		t.Helper()
		if err := clientcmd.WriteToFile(*config, file); err != nil {
			t.Fatal(err)
		}
	}

	config := start("https://127.0.0.1:6443")
	if config.CurrentContext != contextName {
		t.Errorf("the first start makes context %q current, want %q", config.CurrentContext, contextName)
	}

	if c := config.Contexts["karmada"]; c == nil || c.Cluster != contextName {
		t.Errorf("the context karmada is %+v", c)
	}
	config.Contexts["karmada"] = &clientcmdapi.Context{Cluster: "another", AuthInfo: "ann"}

	// What `kubectl config set-context --current --namespace=shop`, set-credentials and use-context write.
	config.Contexts[contextName].Namespace = "shop"
	config.Contexts[karmadaContext].Namespace = "cart"
	config.AuthInfos["ann"] = &clientcmdapi.AuthInfo{Token: "hers"}
	config.Contexts["ann"] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: "ann", Namespace: "web"}
	config.CurrentContext = "ann"
	save(config)

	config = start("https://127.0.0.1:7443")
	for name, namespace := range map[string]string{contextName: "shop", karmadaContext: "cart", "ann": "web"} {
		if c := config.Contexts[name]; c == nil || c.Namespace != namespace {
			t.Errorf("context %s is %+v after a restart, want the namespace %q", name, c, namespace)
		}
	}
	if c := config.Contexts["karmada"]; c.Cluster != "another" {
		t.Errorf("a user's context karmada became %+v", c)
	}
	if config.AuthInfos["ann"] == nil || config.AuthInfos["ann"].Token != "hers" {
		t.Errorf("the users after a restart are %v: ann's token is gone", slices.Sorted(maps.Keys(config.AuthInfos)))
	}
	if config.CurrentContext != "ann" {
		t.Errorf("the current context after a restart is %q, want the user's choice, ann", config.CurrentContext)
	}
	if got := config.Clusters[contextName].Server; got != "https://127.0.0.1:7443" {
		t.Errorf("the hub's address is %q, want the new one", got)
	}

	// A current context that is not there would have every command fail.
	delete(config.Contexts, "ann")
	save(config)
	if config = start("https://127.0.0.1:7443"); config.CurrentContext != contextName {
		t.Errorf("the current context is %q, of which there is none; want %q", config.CurrentContext, contextName)
	}
}
