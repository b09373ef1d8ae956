package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

func TestConfigurationOfTheInventory(t *testing.T) {
	for story, tc := range map[string]struct {
		config InventoryConfig
		wrong  string
	}{
		"the default":            {InventoryConfig{Namespace: "argosy-inventory"}, ""},
		"decisions":              {InventoryConfig{Namespace: "fleet", Decisions: true}, ""},
		"none":                   {InventoryConfig{}, ""},
		"decisions without it":   {InventoryConfig{Decisions: true}, "inventory.decisions refers to ClusterProfiles"},
		"no name of a namespace": {InventoryConfig{Namespace: "A b"}, "is not the name of a namespace"},
		"no URL":                 {InventoryConfig{Server: "hub:7443"}, "inventory.server must be a URL"},
	} {
		if err := tc.config.validate(); (err == nil) != (tc.wrong == "") || err != nil &&
			!strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: %v, want %q", story, err, tc.wrong)
		}
	}
}

// Behind a load balancer with a certificate of another authority, ClusterProfiles have that authority.
func TestAuthoritiesOfTheInventory(t *testing.T) {
	h := &Hub{}
	file := filepath.Join(t.TempDir(), "ca.pem")
	h.config.Inventory.CertificateAuthority = file
	if _, err := h.inventory(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file that is missing: %v", err)
	}
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.inventory(); err == nil || !strings.Contains(err.Error(), "--inventory-certificate-authority") {
		t.Errorf("a file without a certificate: %v", err)
	}
	authority, _, err := cert.GenerateSelfSignedCertKey("hub.example.com", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := h.inventory()
	if err != nil {
		t.Fatal(err)
	}
	if got := o.Access("eu"); string(got.Authorities) != string(authority) {
		t.Errorf("the authorities are %q", got.Authorities)
	}
}
