package estimator

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct{ addresses, cluster, want string }{
		{"", "berlin", "karmada-scheduler-estimator-berlin.karmada-system.svc.cluster.local:10352"},
		{"berlin=10.0.0.1:10352", "berlin", "10.0.0.1:10352"},
		{"berlin=10.0.0.1:10352", "tokyo", "karmada-scheduler-estimator-tokyo.karmada-system.svc.cluster.local:10352"},
		{"berlin=10.0.0.1:1 *={cluster}.example.com:2", "berlin", "10.0.0.1:1"},
		{"berlin=10.0.0.1:1 *={cluster}.example.com:2", "tokyo", "tokyo.example.com:2"},
		{"six=[fd00::1]:10352", "six", "[fd00::1]:10352"},
	} {
		o := options(nil)
		o.Addresses = strings.Fields(c.addresses)
		known, err := o.addresses()
		if got := o.address(known, c.cluster); err != nil || got != c.want {
			t.Errorf("%q: the estimator of %s is at %s, %v; want %s", c.addresses, c.cluster, got, err, c.want)
		}
	}
}

func TestInvalidOptionsHaveHelpfulErrors(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"--scheduler-estimator-timeout 0s: give more than 0": func(o *Options) { o.Timeout = 0 },
		"--scheduler-estimator-port 70000 is not between":    func(o *Options) { o.Port = 70000 },
		"--scheduler-estimator-service-prefix and":           func(o *Options) { o.ServicePrefix = "" },
		"belong together": func(o *Options) { o.CAFile, o.KeyFile = "ca", "key" },
		"--scheduler-estimator-cert-file without --scheduler-estimator-ca-file": func(o *Options) {
			o.CertFile,
				o.KeyFile = "cert", "key"
		},
		`"berlin" is not CLUSTER=HOST:PORT, such as berlin=10.0.0.1:10352`: func(o *Options) {
			o.Addresses = []string{
				"berlin"}
		},
		`"berlin=10.0.0.1" is not CLUSTER=HOST:PORT`: func(o *Options) {
			o.Addresses = []string{
				"berlin=10.0.0.1"}
		},
		`"berlin=:10352" is not CLUSTER=HOST:PORT`: func(o *Options) {
			o.Addresses = []string{
				"berlin=:10352"}
		},
		`port "0" is not between 1 and 65535`: func(o *Options) {
			o.Addresses = []string{
				"berlin=a:0"}
		},
		"put {cluster} into the host": func(o *Options) {
			o.Addresses = []string{
				"*=a:1"}
		},
		`gives cluster "a" two addresses, b:1 and c:1`: func(o *Options) {
			o.Addresses = []string{
				"a=b:1", "a=c:1"}
		},
		"read the authority of estimators: open /nowhere":                    func(o *Options) { o.CAFile = "/nowhere" },
		"read the authority of estimators: /dev/null has no PEM certificate": func(o *Options) { o.CAFile = "/dev/null" },
		"read the client certificate for estimators: open /nowhere: no such file": func(o *Options) {
			o.InsecureSkipVerify,
				o.CertFile, o.KeyFile = true, "/nowhere", "/nowhere"
		},
	} {
		o := options(nil)
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool(), file: filepath.Join(t.TempDir(), "ca.crt")}
	var der []byte
	a.key, der = a.sign(&x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	a.write(a.file, "CERTIFICATE", der)
	return a
}

// sign returns a certificate signed by the authority, or its own.
func (a *authority) sign(template *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return key, der
}

// pair writes the files of a certificate and key for 127.0.0.1 or a client.
func (a *authority) pair(name string) (cert, key string) {
	a.t.Helper()
	private, der := a.sign(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	dir := a.t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	a.write(cert, "CERTIFICATE", der)
	a.write(key, "EC PRIVATE KEY", encoded)
	return cert, key
}

func (a *authority) write(file, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func TestBothSidesAreVerified(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	serverCert, serverKey := ours.pair("estimator")
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	p := newPeer(t, later, grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{pair},
		ClientCAs:    ours.pool, ClientAuth: tls.RequireAndVerifyClientCert})))
	for name, c := range map[string]struct {
		change func(*Options)
		want   string // of the error, none if it answers
	}{
		"both are known": {func(o *Options) { o.CAFile = ours.file; o.CertFile, o.KeyFile = ours.pair("hub") },
			""},
		"the estimator is not verified": {func(o *Options) {
			o.InsecureSkipVerify = true
			o.CertFile,
				o.KeyFile = ours.pair("hub")
		}, ""},
		"the estimator is not known": {func(o *Options) {
			o.CAFile = theirs.file
			o.CertFile,
				o.KeyFile = ours.pair("hub")
		}, "certificate signed by unknown authority"},
		"the hub is not known": {func(o *Options) {
			o.CAFile = ours.file
			o.CertFile,
				o.KeyFile = theirs.pair("hub")
		}, "code = Unavailable"},
		"no certificate of the hub": {func(o *Options) { o.CAFile = ours.file }, "code = Unavailable"},
		"not encrypted":             {func(*Options) {}, "code = Unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(map[string]*peer{"m1": p})
			c.change(&o)
			n, err := connect(t, o).MaxAvailableReplicas(context.Background(), "m1", nil)
			switch {
			case c.want == "" && (err != nil || n != 7):
				t.Errorf("the answer is %d, %v", n, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the answer is %d, error %v; want %q", n, err, c.want)
			}
		})
	}
}
