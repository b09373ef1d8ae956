// Package pki manages the keys and certificates of one Kubernetes control plane in a folder. It creates missing ones,
// renews expiring ones and reissues those with wrong addresses. It never replaces an authority that still signs, so
// clients that trust it keep working.
package pki

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	// LeafLife is the validity of a certificate.
	LeafLife = 365 * 24 * time.Hour
	// A certificate is renewed when less than this part of its life is left: four months of a leaf,
	// so that a hub restarted or left running as rarely as once a quarter never meets an expired one.
	renewPart = 3
	// backdate allows for clients with slow clocks.
	backdate = time.Hour
)

// Files are the paths of all files of a control plane. They are in one folder; keys have mode 0600.
type Files struct {
	// ClusterCA signs the serving certificate and all client certificates. Kubeconfigs trust it.
	ClusterCA, ClusterCAKey string
	// FrontProxyCA signs FrontProxy, with which the aggregator speaks for its users.
	FrontProxyCA, FrontProxyCAKey string
	FrontProxy, FrontProxyKey     string
	// Serving is the API server's certificate.
	Serving, ServingKey string
	// Admin is a client certificate in the group system:masters.
	Admin, AdminKey string
	// ServiceAccountKey signs service account tokens. OldServiceAccountKeys are earlier public keys, with which tokens are
	// still accepted.
	ServiceAccountKey, OldServiceAccountKeys string
	// Trust contains ClusterCA and the OldClusterCAs that it replaced: clients trust it, and client certificates are
	// verified with it. CrossCA is ClusterCA's key signed by the previous authority: it is in the serving certificate's
	// chain for clients that trust only the previous one.
	Trust, OldClusterCAs, CrossCA string
}

// FilesIn names the files in dir, whether they exist or not.
func FilesIn(dir string) Files {
	at := func(name string) string { return filepath.Join(dir, name) }
	return Files{
		ClusterCA: at("ca.crt"), ClusterCAKey: at("ca.key"),
		FrontProxyCA: at("front-proxy-ca.crt"), FrontProxyCAKey: at("front-proxy-ca.key"),
		FrontProxy: at("front-proxy-client.crt"), FrontProxyKey: at("front-proxy-client.key"),
		Serving: at("apiserver.crt"), ServingKey: at("apiserver.key"),
		Admin: at("admin.crt"), AdminKey: at("admin.key"),
		ServiceAccountKey: at("sa.key"), OldServiceAccountKeys: at("sa-old.pub"),
		Trust: at("ca-bundle.crt"), OldClusterCAs: at("ca-old.crt"), CrossCA: at("ca-cross.crt"),
	}
}

// Shared returns the names of the files that hubs on one etcd share. The optional ones exist after a rotation. Each hub
// creates its other files with these.
func Shared() (required, optional []string) {
	f := FilesIn("")
	return []string{f.ClusterCA, f.ClusterCAKey, f.FrontProxyCA, f.FrontProxyCAKey, f.ServiceAccountKey},
		[]string{f.OldClusterCAs, f.CrossCA, f.OldServiceAccountKeys}
}

// Ensure creates or renews files in dir, so that every certificate is valid at now and well beyond, and the serving
// certificate names hosts (IP addresses and DNS names). It returns the names of the changed files.
func Ensure(dir string, hosts []string, now time.Time) (files Files, changed []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Files{}, nil, fmt.Errorf("create the certificate folder: %w", err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return Files{}, nil, err
	}
	defer unlock()
	f := FilesIn(dir)
	e := ensurer{now: now}
	cluster := e.authority("argosy-ca", f.ClusterCA, f.ClusterCAKey)
	proxy := e.authority("argosy-front-proxy-ca", f.FrontProxyCA, f.FrontProxyCAKey)
	e.trust(f)
	e.leaf(cluster, f.Serving, f.ServingKey, serving(hosts), e.cross(cluster, f)...)
	e.leaf(cluster, f.Admin, f.AdminKey, client("argosy-admin", "system:masters"))
	e.leaf(proxy, f.FrontProxy, f.FrontProxyKey, client("front-proxy-client"))
	if e.err == nil {
		_, _ = e.key(f.ServiceAccountKey)
	}
	if e.err != nil {
		return Files{}, nil, e.err
	}
	return f, e.changed, nil
}

// lock has one process at a time write into dir: a hub looks after it while a command renews.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the certificate folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the certificate folder %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil
}

func serving(hosts []string) x509.Certificate {
	t := x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range slices.Compact(slices.Sorted(slices.Values(hosts))) {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	return t
}

func client(name string, groups ...string) x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func authority(name string) x509.Certificate {
	return x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
	}
}

// ensurer runs steps in order until one fails.
type ensurer struct {
	now     time.Time
	changed []string
	err     error
}

type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// authority returns the CA in the two files. It renews an expiring one with the old key and name, so that certificates
// that it signed stay valid.
func (e *ensurer) authority(name, certFile, keyFile string) pair {
	if e.err != nil {
		return pair{}
	}
	key, err := e.key(keyFile)
	if err != nil {
		return pair{}
	}
	want := authority(name)
	have := readCert(certFile)
	if have != nil { // after a rotation it differs
		want.Subject = have.Subject
	}
	if have != nil && have.IsCA && samePublic(have, key) && e.fresh(have) {
		return pair{have, key}
	}
	return pair{e.issue(want, authorityLife, &want, key, key, certFile), key}
}

// trust writes the trusted authorities: the current one, and earlier ones that have not expired.
func (e *ensurer) trust(f Files) {
	if e.err != nil {
		return
	}
	all, err := cert.CertsFromFile(f.ClusterCA)
	if err != nil {
		e.err = err
		return
	}
	for _, c := range readCerts(f.OldClusterCAs) {
		if e.now.Before(c.NotAfter) {
			all = append(all, c)
		}
	}
	e.writeCerts(f.Trust, all...)
}

// cross returns the certificates that lead from a leaf of ca to the earlier authorities, the last first; nil if there
// was none, or it has expired.
func (e *ensurer) cross(ca pair, f Files) []*x509.Certificate {
	all := readCerts(f.CrossCA)
	if e.err != nil || len(all) == 0 || !samePublic(all[0], ca.key) {
		return nil
	}
	if i := slices.IndexFunc(all, func(c *x509.Certificate) bool { return !e.now.Before(c.NotAfter) }); i >= 0 {
		return all[:i]
	}
	return all
}

// leaf creates or renews a certificate signed by ca. The file also contains chain.
func (e *ensurer) leaf(ca pair, certFile, keyFile string, want x509.Certificate, chain ...*x509.Certificate) {
	if e.err != nil {
		return
	}
	key, err := e.key(keyFile)
	if err != nil {
		return
	}
	all := readCerts(certFile)
	if len(all) == 1+len(chain) && samePublic(all[0], key) && e.fresh(all[0]) && sameNames(all[0], &want) &&
		all[0].CheckSignatureFrom(ca.cert) == nil {
		return
	}
	e.issue(want, LeafLife, ca.cert, key, ca.key, certFile, chain...)
}

// issue writes and returns a certificate for subject's public key, signed by parent's.
func (e *ensurer) issue(want x509.Certificate, life time.Duration, parent *x509.Certificate, subject,
	signer crypto.Signer, file string, chain ...*x509.Certificate) *x509.Certificate {
	if e.err != nil {
		return nil
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		e.err = fmt.Errorf("choose a serial number: %w", err)
		return nil
	}
	want.SerialNumber = serial
	if !want.IsCA {
		want.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	}
	want.NotBefore, want.NotAfter = e.now.Add(-min(backdate, life)), e.now.Add(life)
	der, err := x509.CreateCertificate(rand.Reader, &want, parent, subject.Public(), signer)
	if err != nil {
		e.err = fmt.Errorf("sign %s: %w", filepath.Base(file), err)
		return nil
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		e.err = fmt.Errorf("parse %s: %w", filepath.Base(file), err)
		return nil
	}
	e.writeCerts(file, append([]*x509.Certificate{made}, chain...)...)
	return made
}

// key returns the ECDSA key in file; it creates a missing file. A file without a key is an error: replacing it would
// lock out all clients that trust it.
func (e *ensurer) key(file string) (crypto.Signer, error) {
	key, err := readKey(file)
	if errors.Is(err, fs.ErrNotExist) {
		key = e.newKey(file)
	} else if err != nil && e.err == nil {
		e.err = fmt.Errorf("key %s: %w", file, err)
	}
	return key, e.err
}

// generateKey returns a new key, also in PEM.
func generateKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	return key, data, err
}

// newKey writes a new key into file, and returns it.
func (e *ensurer) newKey(file string) crypto.Signer {
	key, data, err := generateKey()
	if err != nil {
		e.err = cmp.Or(e.err, fmt.Errorf("key %s: %w", file, err))
	}
	e.write(file, data, 0o600)
	return key
}

func (e *ensurer) writeCerts(file string, certs ...*x509.Certificate) {
	data, err := cert.EncodeCertificates(certs...)
	e.err = cmp.Or(e.err, err)
	e.write(file, data, 0o644)
}

// write does nothing if the file has the content already, or an earlier step failed.
func (e *ensurer) write(file string, data []byte, mode fs.FileMode) {
	if have, err := os.ReadFile(file); e.err != nil || err == nil && bytes.Equal(have, data) {
		return
	}
	if e.err = WriteFile(file, data, mode); e.err == nil {
		e.changed = append(e.changed, filepath.Base(file))
	}
}

// renewal returns from when a certificate is renewed.
func renewal(c *x509.Certificate) time.Time {
	return c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / renewPart)
}

// fresh reports whether c needs no renewal yet.
func (e *ensurer) fresh(c *x509.Certificate) bool {
	return !e.now.Before(c.NotBefore) && e.now.Before(renewal(c))
}

func readCert(file string) *x509.Certificate {
	if all := readCerts(file); len(all) > 0 {
		return all[0]
	}
	return nil
}

// readCerts returns none of a file that is missing or damaged.
func readCerts(file string) []*x509.Certificate {
	all, _ := cert.CertsFromFile(file)
	return all
}

func readKey(file string) (crypto.Signer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("not a signing key")
	}
	return signer, nil
}

func samePublic(c *x509.Certificate, key crypto.Signer) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(c.PublicKey)
}

func sameNames(have, want *x509.Certificate) bool {
	return have.Subject.CommonName == want.Subject.CommonName &&
		slices.Equal(have.Subject.Organization, want.Subject.Organization) &&
		slices.Equal(have.DNSNames, want.DNSNames) &&
		slices.EqualFunc(have.IPAddresses, want.IPAddresses, net.IP.Equal)
}

// WriteFile replaces file atomically: a reader, or a start after a crash, finds the old or the new content. It does
// nothing if the file has the content already.
func WriteFile(file string, data []byte, mode fs.FileMode) error {
	if have, err := os.ReadFile(file); err == nil && bytes.Equal(have, data) {
		return os.Chmod(file, mode)
	}
	return Replace(file, bytes.NewReader(data), mode)
}

// Replace replaces the content of file with from atomically. Open handles keep the old file.
func Replace(file string, from io.Reader, mode fs.FileMode) error {
	t, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer os.Remove(t.Name())
	_, err = io.Copy(t, from)
	if err == nil {
		err = t.Chmod(mode)
	}
	if err == nil {
		err = t.Sync()
	}
	if closeErr := t.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(t.Name(), file)
	}
	if err == nil {
		err = SyncFolder(filepath.Dir(file)) // otherwise the old file may be back after a power loss
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

// SyncFolder writes a folder's entries to the disk.
func SyncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
