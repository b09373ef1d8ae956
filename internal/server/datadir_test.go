package server

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// Root's commands would leave keys and a store that an installed hub cannot read.
func TestForeignDataFolderIsNotWritten(t *testing.T) {
	c := testConfig(t)
	if _, err := CreateKeys(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	const hub = 65532
	if os.Geteuid() == 0 { // else the folder has its owner, who is another than the caller below
		for _, dir := range []string{c.DataDir, c.pkiDir()} {
			if err := os.Chown(dir, hub, hub); err != nil {
				t.Fatal(err)
			}
		}
	}
	effectiveUser = func() int { return os.Geteuid() + 1 }
	t.Cleanup(func() { effectiveUser = os.Geteuid })
	before := shared(t, c)
	for verb, run := range map[string]func() error{
		"certificates renew":      func() error { _, err := RenewCertificates(c, nil, time.Now()); return err },
		"certificates forget-old": func() error { return ForgetOldCertificates(c, time.Now()) },
		"certificates create":     func() error { _, err := CreateKeys(c, time.Now()); return err },
		"certificates import":     func() error { _, err := ImportKeys(c, c.pkiDir()); return err },
		"restore":                 func() error { _, err := Restore(c, "hub.tar.gz", false); return err },
		"backup and defrag":       func() error { _, _, err := c.open(context.Background()); return err },
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), "belongs to the user") ||
			!strings.Contains(err.Error(), "sudo -u") {
			t.Errorf("%s by another user says %v", verb, err)
		}
	}
	if shared(t, c) != before {
		t.Error("something was written")
	}
}

// shared returns the content of the serving certificate and the master key.
func shared(t *testing.T, c Config) string {
	t.Helper()
	crt, err := os.ReadFile(c.pkiDir() + "/apiserver.crt")
	if err != nil {
		t.Fatal(err)
	}
	return string(crt) + readKey(t, c.pkiDir())
}
