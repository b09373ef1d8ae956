package server

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCertificatesForFurtherNamesEndToo(t *testing.T) {
	c := testConfig(t)
	if _, err := CreateKeys(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.pkiDir(), "apiserver.crt")
	c.KubeAPIServer.TLSSNICertKeys = []string{file + "," + filepath.Join(c.pkiDir(), "apiserver.key") + ":hub.example.com"}
	h := &Hub{config: c}
	ends := h.certificatesEnd(time.Now())
	if ends[file].IsZero() || !ends[file].Equal(ends["apiserver"]) {
		t.Errorf("the certificates end at %v, want that of --tls-sni-cert-key, %s, among them", ends, file)
	}
}

// The alert for backups that are too old compares with this time.
func TestFailedFirstBackupCoversNothing(t *testing.T) {
	c := testConfig(t)
	c.Backup.Interval = metav1.Duration{Duration: time.Hour}
	c.Backup.Dir = filepath.Join(t.TempDir(), "file", "backups")
	if err := os.WriteFile(filepath.Dir(c.Backup.Dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k := &keeper{config: &c}
	k.state.Revision = 7
	begin := time.Now()
	k.backedUp = begin.Add(-2 * time.Hour)
	k.backUp(t.Context())
	if k.failures != 1 || k.covered.Before(begin) {
		t.Fatalf("%v backups failed, and all until %s is covered, want 1 and the time of the look", k.failures, k.covered)
	}
	first := k.covered
	k.backedUp = begin.Add(-2 * time.Hour)
	k.backUp(t.Context())
	if k.failures != 2 || !k.covered.Equal(first) {
		t.Errorf("after another failure %s is covered, want %s still", k.covered, first)
	}
}
