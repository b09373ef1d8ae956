package pki

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// Certificate is one of a folder, or a key without a certificate.
type Certificate struct {
	// Name is the name of the certificate or key; File is its path.
	Name string `json:"name"`
	File string `json:"file"`
	For  string `json:"for"`
	// Subject and Issuer are empty for a key.
	Subject string `json:"subject,omitempty"`
	Issuer  string `json:"issuer,omitempty"`
	// Made is when it was created; Begins is earlier, to allow for clients with slow clocks.
	Made   time.Time  `json:"made"`
	Begins time.Time  `json:"begins"`
	Ends   *time.Time `json:"ends,omitempty"`
	// Renewed is the time from which the hub renews it; nil for never.
	Renewed *time.Time `json:"renewed,omitempty"`
	// Wrong is the reason why it cannot be used.
	Wrong string `json:"wrong,omitempty"`
}

// named returns the certificates and keys of a folder by name, with their purpose.
func named(f Files) []struct{ name, cert, key, purpose string } {
	return []struct{ name, cert, key, purpose string }{
		{"ca", f.ClusterCA, f.ClusterCAKey, "signs the serving certificate and client certificates"},
		{"apiserver", f.Serving, f.ServingKey, "serves the hub's API"},
		{"admin", f.Admin, f.AdminKey, "client certificate of admin.kubeconfig"},
		{"front-proxy-ca", f.FrontProxyCA, f.FrontProxyCAKey, "signs the front proxy's certificate"},
		{"front-proxy", f.FrontProxy, f.FrontProxyKey,
			"authenticates the hub to aggregated API servers as a proxy for users"},
		{"sa", "", f.ServiceAccountKey, "signs tokens of service accounts"},
	}
}

// List returns the certificates and keys in dir at the time now.
func List(dir string, now time.Time) ([]Certificate, error) {
	f := FilesIn(dir)
	if _, err := os.Stat(f.ClusterCA); err != nil {
		return nil, fmt.Errorf("%s is not a hub's certificate folder (%w)", dir, err)
	}
	var all []Certificate
	for _, n := range named(f) {
		c := Certificate{Name: n.name, File: n.cert, For: n.purpose}
		if n.cert == "" {
			c.File = n.key
			info, err := os.Stat(n.key)
			if err != nil {
				c.Wrong = err.Error()
			} else {
				c.Made, c.Begins = info.ModTime(), info.ModTime()
			}
			all = append(all, c)
			continue
		}
		if x := readCert(n.cert); x != nil {
			c.describe(x, now)
			c.Renewed = new(renewal(x))
			if key, err := readKey(n.key); err != nil {
				c.Wrong = fmt.Sprintf("its key cannot be read: %v", err)
			} else if !samePublic(x, key) {
				c.Wrong = "its key does not match"
			}
		} else {
			c.Wrong = "it is missing or damaged"
		}
		all = append(all, c)
	}
	for i, x := range readCerts(f.OldClusterCAs) {
		c := Certificate{Name: fmt.Sprintf("ca-old-%d", i+1), File: f.OldClusterCAs, For: "previous CA: still trusted"}
		c.describe(x, now)
		all = append(all, c)
	}
	if _, err := keyutil.PublicKeysFromFile(f.OldServiceAccountKeys); err == nil {
		if info, err := os.Stat(f.OldServiceAccountKeys); err == nil {
			all = append(all, Certificate{Name: "sa-old", File: f.OldServiceAccountKeys,
				For: "previous token keys: their tokens are still valid", Made: info.ModTime(), Begins: info.ModTime()})
		}
	}
	return all, nil
}

func (c *Certificate) describe(x *x509.Certificate, now time.Time) {
	c.Subject, c.Issuer, c.Begins, c.Ends = x.Subject.String(), x.Issuer.String(), x.NotBefore, &x.NotAfter
	c.Made = x.NotBefore.Add(min(backdate, x.NotAfter.Sub(x.NotBefore)/2))
	if now.After(x.NotAfter) {
		c.Wrong = "it has expired"
	}
}

// Renewable returns the names that Renew takes.
func Renewable() []string { return []string{"apiserver", "admin", "front-proxy", "ca", "sa"} }

// Renew replaces the named certificates and keys at the time now. A certificate also gets a new key. A new authority is
// also signed by the old one, which stays trusted until it expires, so no client is cut off. After a new signing key,
// tokens signed with the old one are still accepted. A running hub reads certificates by itself, and a new authority or
// signing key at its next start.
func Renew(dir string, names []string, now time.Time) error {
	for _, name := range names {
		if !slices.Contains(Renewable(), name) {
			return fmt.Errorf("%q cannot be renewed; use one of %s", name, strings.Join(Renewable(), ", "))
		}
	}
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	f := FilesIn(dir)
	e := ensurer{now: now}
	for _, name := range names {
		switch name {
		case "ca":
			e.replaceAuthority(f)
		case "sa":
			e.replaceSigningKey(f)
		}
	}
	// Renew the certificates of an authority after the authority.
	for _, n := range named(f) {
		switch rekey := slices.Contains(names, n.name); n.name {
		case "apiserver", "admin":
			if rekey || slices.Contains(names, "ca") {
				e.replaceLeaf(f, n.cert, n.key, rekey)
			}
		case "front-proxy":
			if rekey {
				e.replaceLeaf(f, n.cert, n.key, rekey)
			}
		}
	}
	return e.err
}

// ForgetOld ends the trust in authorities and signing keys that were replaced.
func ForgetOld(dir string, now time.Time) error {
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	f := FilesIn(dir)
	for _, file := range []string{f.OldClusterCAs, f.CrossCA, f.OldServiceAccountKeys} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	e := ensurer{now: now}
	e.trust(f)
	e.replaceLeaf(f, f.Serving, f.ServingKey, false)
	return e.err
}

// replaceAuthority creates a new authority. It writes the chain from the old one first.
func (e *ensurer) replaceAuthority(f Files) {
	if e.err != nil {
		return
	}
	was, err := readKey(f.ClusterCAKey)
	old := readCert(f.ClusterCA)
	if err != nil || old == nil {
		e.err = fmt.Errorf("cannot read the CA in %s: start the hub once, which reports what is wrong",
			filepath.Dir(f.ClusterCA))
		return
	}
	key, private, err := generateKey()
	if err != nil {
		e.err = err
		return
	}
	want := authority(fmt.Sprintf("argosy-ca@%d", e.now.UnixNano()))
	// The chains to earlier authorities stay, unless the user removed those authorities.
	e.issue(want, min(authorityLife, old.NotAfter.Sub(e.now)), old, key, was, f.CrossCA, e.cross(pair{old, was}, f)...)
	e.writeCerts(f.OldClusterCAs, append([]*x509.Certificate{old}, readCerts(f.OldClusterCAs)...)...)
	e.issue(want, authorityLife, &want, key, key, f.ClusterCA)
	e.write(f.ClusterCAKey, private, 0o600)
	e.trust(f)
}

// replaceLeaf issues a certificate again for the same names, with a new key if requested.
func (e *ensurer) replaceLeaf(f Files, certFile, keyFile string, rekey bool) {
	if e.err != nil {
		return
	}
	have := readCert(certFile)
	if have == nil {
		return // the hub creates it at its start
	}
	caFile, caKey := f.ClusterCA, f.ClusterCAKey
	if certFile == f.FrontProxy {
		caFile, caKey = f.FrontProxyCA, f.FrontProxyCAKey
	}
	key, err := readKey(caKey)
	ca := pair{readCert(caFile), key}
	if err != nil || ca.cert == nil {
		e.err = fmt.Errorf("cannot read the CA of %s", certFile)
		return
	}
	subject, err := readKey(keyFile)
	if rekey || err != nil {
		subject = e.newKey(keyFile)
	}
	var chain []*x509.Certificate
	if certFile == f.Serving {
		chain = e.cross(ca, f)
	}
	want := x509.Certificate{Subject: have.Subject, DNSNames: have.DNSNames, IPAddresses: have.IPAddresses,
		ExtKeyUsage: have.ExtKeyUsage}
	e.issue(want, LeafLife, ca.cert, subject, ca.key, certFile, chain...)
}

// replaceSigningKey creates a new key for tokens. It first adds the old key to those that verify tokens.
func (e *ensurer) replaceSigningKey(f Files) {
	if e.err != nil {
		return
	}
	was, err := readKey(f.ServiceAccountKey)
	if err != nil {
		e.err = fmt.Errorf("read the service account signing key: %w", err)
		return
	}
	der, err := x509.MarshalPKIXPublicKey(was.Public())
	if err != nil {
		e.err = err
		return
	}
	before, err := os.ReadFile(f.OldServiceAccountKeys)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.err = err
		return
	}
	e.write(f.OldServiceAccountKeys, append(pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: der}),
		before...), 0o644)
	e.newKey(f.ServiceAccountKey)
}
