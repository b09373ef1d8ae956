package pki

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

func pool(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	all, err := cert.CertsFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := x509.NewCertPool()
	for _, c := range all {
		p.AddCert(c)
	}
	return p
}

// trusted returns why a client with these roots does not trust the chain in file.
func trusted(t *testing.T, roots *x509.CertPool, file string, use x509.ExtKeyUsage, now time.Time) error {
	t.Helper()
	all, err := cert.CertsFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	between := x509.NewCertPool()
	for _, c := range all[1:] {
		between.AddCert(c)
	}
	_, err = all[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{use}})
	return err
}

func TestRenewedCertificateHasANewMatchingKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	f, _ := ensure(t, dir, names, epoch)
	later := epoch.Add(time.Hour)
	for name, pair := range map[string][2]string{"apiserver": {f.Serving, f.ServingKey}, "admin": {f.Admin, f.AdminKey},
		"front-proxy": {f.FrontProxy, f.FrontProxyKey}} {
		before, err := os.ReadFile(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := Renew(dir, []string{name}, later); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(pair[1])
		if err != nil || string(before) == string(after) {
			t.Errorf("%s has its old key, %v", name, err)
		}
		if _, err := tls.LoadX509KeyPair(pair[0], pair[1]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(pair[1]); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the key has %v, %v", name, info.Mode(), err)
		}
	}
	if _, changed := ensure(t, dir, names, later); len(changed) > 0 {
		t.Errorf("the hub makes %v again", changed)
	}
}

func TestNewCAKeepsClientsConnected(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	f, _ := ensure(t, dir, names, epoch)
	oldRoots, oldAdmin := pool(t, f.Trust), filepath.Join(t.TempDir(), "admin.crt")
	data, err := os.ReadFile(f.Admin)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(oldAdmin, data, 0o600); err != nil {
		t.Fatal(err)
	}
	later := epoch.Add(time.Hour)
	if err := Renew(dir, []string{"ca"}, later); err != nil {
		t.Fatal(err)
	}
	if _, changed := ensure(t, dir, names, later); len(changed) > 0 {
		t.Errorf("the hub makes %v again", changed)
	}
	check := func(oldCounts bool) {
		t.Helper()
		for what, err := range map[string]error{
			"who trusts the old authority alone, of the server": trusted(t, oldRoots, f.Serving, x509.ExtKeyUsageServerAuth,
				later),
			"the server, of the old administrator": trusted(t, pool(t, f.Trust), oldAdmin,
				x509.ExtKeyUsageClientAuth, later),
		} {
			if (err == nil) != oldCounts {
				t.Errorf("%s: %v, want trust %v", what, err, oldCounts)
			}
		}
		for what, err := range map[string]error{
			"who trusts the new authority, of the server": trusted(t, pool(t, f.ClusterCA), f.Serving,
				x509.ExtKeyUsageServerAuth, later),
			"the server, of the new administrator": trusted(t, pool(t, f.ClusterCA), f.Admin, x509.ExtKeyUsageClientAuth,
				later),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	check(true)
	if err := ForgetOld(dir, later); err != nil {
		t.Fatal(err)
	}
	ensure(t, dir, names, later)
	check(false)
}

// Who was given a kubeconfig before the first of two replacements trusts the first authority alone.
func TestTwoCAReplacementsKeepClientsConnected(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	f, _ := ensure(t, dir, names, epoch)
	first, later := pool(t, f.Trust), epoch.Add(time.Hour)
	for range 3 {
		if err := Renew(dir, []string{"ca"}, later); err != nil {
			t.Fatal(err)
		}
		if err := trusted(t, first, f.Serving, x509.ExtKeyUsageServerAuth, later); err != nil {
			t.Fatalf("who trusts the first authority alone, of the server: %v", err)
		}
		later = later.Add(time.Hour)
	}
	if _, changed := ensure(t, dir, names, later); len(changed) > 0 {
		t.Errorf("the hub makes %v again", changed)
	}
	all, err := cert.CertsFromFile(f.Trust)
	if err != nil || len(all) != 4 {
		t.Errorf("%d authorities are trusted, %v", len(all), err)
	}
	if err := ForgetOld(dir, later); err != nil {
		t.Fatal(err)
	}
	if err := trusted(t, first, f.Serving, x509.ExtKeyUsageServerAuth, later); err == nil {
		t.Error("after all was forgotten the server still leads to the first authority")
	}
}

func TestTokensOfAnOldKeyCountUntilItIsForgotten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	f, _ := ensure(t, dir, names, epoch)
	was, err := readKey(f.ServiceAccountKey)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Renew(dir, []string{"sa"}, epoch); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := keyutil.PublicKeysFromFile(f.OldServiceAccountKeys)
	if err != nil || len(keys) != 2 || !was.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(keys[1]) {
		t.Errorf("old keys are %v, %v", keys, err)
	}
	now, err := readKey(f.ServiceAccountKey)
	if err != nil || was.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(now.Public()) {
		t.Errorf("the key is the old one, %v", err)
	}
	if err := ForgetOld(dir, epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.OldServiceAccountKeys); !os.IsNotExist(err) {
		t.Errorf("old keys are still there: %v", err)
	}
}

func TestCertificateListNamesProblems(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if _, err := List(dir, epoch); err == nil {
		t.Error("a folder without certificates is listed")
	}
	f, _ := ensure(t, dir, names, epoch)
	if err := os.WriteFile(f.Admin, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	all, err := List(dir, epoch.Add(2*LeafLife))
	if err != nil || len(all) != 6 {
		t.Fatalf("%v, %v", all, err)
	}
	want := map[string]string{"ca": "", "apiserver": "it has expired", "admin": "it is missing or damaged",
		"front-proxy-ca": "", "front-proxy": "it has expired", "sa": ""}
	for _, c := range all {
		if w, ok := want[c.Name]; !ok || c.Wrong != w {
			t.Errorf("%s is %q, want %q", c.Name, c.Wrong, w)
		}
	}
	if err := Renew(dir, []string{"nobody"}, epoch); err == nil {
		t.Error("an unknown name is renewed")
	}
}
