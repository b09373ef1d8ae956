package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/util/certificate"

	"github.com/argosy-io/argosy/internal/core/cluster/pull"
)

// expiryCheck is the interval of checks whether the certificate has expired.
const expiryCheck = time.Minute

// rotation renews the agent's certificate before it expires. It is a manager.Runnable of the leader. It fails when the
// certificate expired, because nothing works without one.
type rotation struct {
	cluster     string
	credentials *credentials
	hub         kubernetes.Interface
}

// Start implements manager.Runnable.
func (r *rotation) Start(ctx context.Context) error {
	current, _ := r.credentials.Current() // never fails
	lifetime := current.Leaf.NotAfter.Sub(current.Leaf.NotBefore).Round(time.Second)
	m, err := certificate.NewManager(&certificate.Config{
		Name:                         "agent",
		Ctx:                          &ctx,
		SignerName:                   certificatesv1.KubeAPIServerClientSignerName,
		GetTemplate:                  func() *x509.CertificateRequest { return certificateSubject(pull.User(r.cluster)) },
		GetUsages:                    certificate.DefaultKubeletClientGetUsages,
		RequestedCertificateLifetime: &lifetime,
		CertificateStore:             r.credentials,
		ClientsetFn: func(*tls.Certificate) (kubernetes.Interface, error) {
			return ownRequests{r.hub}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("create the certificate manager: %w", err)
	}
	m.Start()
	defer m.Stop()
	tick := time.NewTicker(expiryCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := r.credentials.expired(r.cluster, time.Now()); err != nil {
				return err
			}
		}
	}
}

// ownRequests is a client that reads a certificate request by its name where the certificate manager lists and watches:
// an agent may not see the requests of others.
type ownRequests struct{ kubernetes.Interface }

// IsWatchListSemanticsUnSupported makes client-go list before it watches.
func (o ownRequests) IsWatchListSemanticsUnSupported() bool { return true }

// CertificatesV1 implements kubernetes.Interface.
func (o ownRequests) CertificatesV1() certificatesclient.CertificatesV1Interface {
	return ownCertificates{o.Interface.CertificatesV1()}
}

type ownCertificates struct {
	certificatesclient.CertificatesV1Interface
}

func (o ownCertificates) CertificateSigningRequests() certificatesclient.CertificateSigningRequestInterface {
	return ownSigningRequests{o.CertificatesV1Interface.CertificateSigningRequests()}
}

type ownSigningRequests struct {
	certificatesclient.CertificateSigningRequestInterface
}

// List returns the request whose name is in the field selector.
func (o ownSigningRequests) List(ctx context.Context,
	options metav1.ListOptions) (*certificatesv1.CertificateSigningRequestList, error) {
	csr, err := o.selected(ctx, options)
	if err != nil {
		return nil, err
	}
	return &certificatesv1.CertificateSigningRequestList{ListMeta: metav1.ListMeta{ResourceVersion: csr.ResourceVersion},
		Items: []certificatesv1.CertificateSigningRequest{*csr}}, nil
}

// Watch reads the request whose name is in the field selector until it changes.
func (o ownSigningRequests) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events := watch.NewRaceFreeFake()
	go func() {
		tick := time.NewTicker(pollPeriod)
		defer tick.Stop()
		version := options.ResourceVersion
		for !events.IsStopped() {
			select {
			case <-ctx.Done():
				events.Stop()
				return
			case <-tick.C:
			}
			if csr, err := o.selected(ctx, options); err == nil && csr.ResourceVersion != version {
				version = csr.ResourceVersion
				events.Modify(csr)
			}
		}
	}()
	return events, nil
}

func (o ownSigningRequests) selected(ctx context.Context,
	options metav1.ListOptions) (*certificatesv1.CertificateSigningRequest, error) {
	selector, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return nil, err
	}
	name, exact := selector.RequiresExactMatch("metadata.name")
	if !exact {
		return nil, fmt.Errorf("an agent cannot list certificate requests")
	}
	return o.Get(ctx, name, metav1.GetOptions{})
}
