package server

import (
	"fmt"
	"time"

	"github.com/argosy-io/argosy/internal/server/pki"
)

// Certificates are those of the configuration's hub, which need not run.
func Certificates(c Config, now time.Time) ([]pki.Certificate, error) {
	return pki.List(c.pkiDir(), now)
}

// RenewCertificates replaces what is named of the configuration's hub, or without names every certificate that is not an authority.
// It says whether a hub that runs must be started again for it.
func RenewCertificates(c Config, names []string, now time.Time) (restart bool, err error) {
	if len(names) == 0 {
		names = []string{"apiserver", "admin", "front-proxy"}
	}
	if _, err := pki.List(c.pkiDir(), now); err != nil {
		return false, fmt.Errorf("%w: name the folder with --data-dir or --pki-dir", err)
	}
	if err := pki.Renew(c.pkiDir(), names, now, pki.LeafLife); err != nil {
		return false, err
	}
	for _, name := range names {
		restart = restart || name == "ca" || name == "sa"
	}
	return restart, nil
}

// ForgetOldCertificates ends the trust in authorities and signing keys that were replaced.
func ForgetOldCertificates(c Config, now time.Time) error {
	if _, err := pki.List(c.pkiDir(), now); err != nil {
		return fmt.Errorf("%w: name the folder with --data-dir or --pki-dir", err)
	}
	return pki.ForgetOld(c.pkiDir(), now, pki.LeafLife)
}
