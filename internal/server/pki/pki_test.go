package pki

import (
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	names = []string{"10.0.0.1", "hub.example.com"}
)

func ensure(t *testing.T, dir string, hosts []string, now time.Time) (Files, []string) {
	t.Helper()
	files, changed, err := Ensure(dir, hosts, now)
	if err != nil {
		t.Fatal(err)
	}
	return files, changed
}

// verify checks the serving certificate as a client would that trusted ca when it got its kubeconfig.
func verify(t *testing.T, ca, leaf *x509.Certificate, host string, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		t.Errorf("at %v: %v", now, err)
	}
}

func TestASecondEnsureChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	_, made := ensure(t, dir, names, epoch)
	if len(made) != 12 {
		t.Errorf("made %v", made)
	}
	if _, changed := ensure(t, dir, []string{names[1], names[0], names[0]}, epoch.Add(24*time.Hour)); len(changed) > 0 {
		t.Errorf("changed %v without a reason", changed)
	}
}

func TestKeysArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	ensure(t, dir, names, epoch)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 && (d.IsDir() || strings.HasSuffix(path, ".key")) {
			t.Errorf("%s has mode %o", path, mode)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A hub that runs, or is started now and then, for twelve years: no certificate is ever expired, keys of authorities
// stay, and a client that trusts the first authority's key is served to the end of that certificate's life.
func TestCertificatesAreRenewedBeforeTheyExpire(t *testing.T) {
	dir := t.TempDir()
	files, _ := ensure(t, dir, names, epoch)
	first, caKey := readCert(files.ClusterCA), read(t, files.ClusterCAKey)
	renewed := map[string]int{}
	for now := epoch; now.Before(epoch.AddDate(12, 0, 0)); now = now.AddDate(0, 3, 0) {
		_, changed := ensure(t, dir, names, now)
		for _, file := range changed {
			renewed[file]++
		}
		// Until the next look, three months on, everything must hold.
		for _, at := range []time.Time{now, now.AddDate(0, 3, 0)} {
			for _, file := range []string{files.Serving, files.Admin} {
				verify(t, readCert(files.ClusterCA), readCert(file), "", at)
			}
			verify(t, readCert(files.FrontProxyCA), readCert(files.FrontProxy), "", at)
			if at.Before(first.NotAfter) {
				verify(t, first, readCert(files.Serving), "hub.example.com", at)
			}
		}
	}
	if read(t, files.ClusterCAKey) != caKey {
		t.Error("the authority's key was replaced: nobody trusts the new one")
	}
	for file, least := range map[string]int{"ca.crt": 1, "front-proxy-ca.crt": 1, "apiserver.crt": 12, "admin.crt": 12,
		"front-proxy-client.crt": 12} {
		if renewed[file] < least || renewed[file] > 4*least {
			t.Errorf("%s was renewed %d times in twelve years", file, renewed[file])
		}
	}
	for file := range renewed {
		if strings.HasSuffix(file, ".key") {
			t.Errorf("%s was replaced", file)
		}
	}
}

func TestTheServingCertificateFollowsTheAddresses(t *testing.T) {
	dir := t.TempDir()
	files, _ := ensure(t, dir, names, epoch)
	_, changed := ensure(t, dir, append(names, "192.168.7.7"), epoch)
	if !slices.Equal(changed, []string{"apiserver.crt"}) {
		t.Errorf("changed %v", changed)
	}
	verify(t, readCert(files.ClusterCA), readCert(files.Serving), "192.168.7.7", epoch)
}

func TestLostOrDamagedFilesAreRecreatedExceptKeys(t *testing.T) {
	dir := t.TempDir()
	files, _ := ensure(t, dir, names, epoch)
	if err := os.WriteFile(files.Admin, []byte("half a cert"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(files.Serving); err != nil {
		t.Fatal(err)
	}
	if _, changed := ensure(t, dir, names, epoch); !slices.Equal(changed, []string{"apiserver.crt", "admin.crt"}) {
		t.Errorf("changed %v", changed)
	}
	if err := os.WriteFile(files.ClusterCAKey, []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Ensure(dir, names, epoch); err == nil || !strings.Contains(err.Error(), "ca.key") {
		t.Errorf("a damaged authority key gave %v", err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
