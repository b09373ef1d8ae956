package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// build makes the image of two small binaries, and returns the folder of its layout and its archive.
func build(t *testing.T) (dir, archive string) {
	t.Helper()
	at := t.TempDir()
	dir, archive = filepath.Join(at, "image"), filepath.Join(at, "image.tar")
	args := []string{"--version", "v1.2.3", "--commit", "0123456789ab", "--date", "2026-01-31T12:00:00Z", "--output", dir,
		"--archive", archive}
	for _, arch := range []string{"amd64", "arm64"} {
		binary := filepath.Join(at, arch)
		if err := os.WriteFile(binary, []byte("a binary for "+arch), 0o755); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--binary", "linux/"+arch+"="+binary)
	}
	var out bytes.Buffer
	if err := run(args, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "argosy:v1.2.3@sha256:") {
		t.Errorf("it says %q", out.String())
	}
	return dir, archive
}

// open reads a layout that build made and returns its one index.
func open(t *testing.T, dir string) v1.ImageIndex {
	t.Helper()
	return openTagged(t, dir, "v1.2.3")
}

// openTagged reads a layout with a tag and returns its one index.
func openTagged(t *testing.T, dir, want string) v1.ImageIndex {
	t.Helper()
	path, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	top, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	m, err := top.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatalf("the layout has %+v (%v), want one index", m, err)
	}
	if tag := m.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; tag != want {
		t.Errorf("its tag is %q, want %q", tag, want)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestTheImageIsWholeAndRunsAsNobodyOnBothPlatforms(t *testing.T) {
	dir, _ := build(t)
	index := open(t, dir)
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, d := range m.Manifests {
		platforms = append(platforms, d.Platform.String())
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.User != "65532:65532" || config.Architecture != d.Platform.Architecture || config.OS != "linux" {
			t.Errorf("%s: user %q, %s/%s", d.Platform, config.Config.User, config.OS, config.Architecture)
		}
		if !config.Created.Equal(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)) ||
			config.Config.Labels["org.opencontainers.image.revision"] != "0123456789ab" {
			t.Errorf("%s: made at %s with labels %v", d.Platform, config.Created, config.Config.Labels)
		}
		files := extract(t, img)
		if got := string(files["usr/local/bin/argosy"].data); got != "a binary for "+d.Platform.Architecture {
			t.Errorf("%s has the binary %q", d.Platform, got)
		}
		if h := files["usr/local/bin/argosy"].Header; h.Mode != 0o755 || h.Uid != 0 {
			t.Errorf("%s: the binary has mode %o and owner %d", d.Platform, h.Mode, h.Uid)
		}
		if h := files["var/lib/argosy"].Header; h == nil || h.Uid != 65532 || h.Mode != 0o700 {
			t.Errorf("%s: the data folder is %+v", d.Platform, h)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"].data) {
			t.Errorf("%s has no authorities", d.Platform)
		}
		if n := bytes.Count(files["etc/ssl/certs/ca-certificates.crt"].data, []byte("BEGIN CERTIFICATE")); n < 50 {
			t.Errorf("%s has %d authorities", d.Platform, n)
		}
	}
	if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("it is for %s", got)
	}
}

func TestTheSameSourceMakesTheSameImage(t *testing.T) {
	a, archiveA := build(t)
	b, archiveB := build(t)
	first, err := open(t, a).Digest()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := open(t, b).Digest(); err != nil || first != second {
		t.Errorf("%s and %s (%v)", first, second, err)
	}
	if sum(t, archiveA) != sum(t, archiveB) {
		t.Error("the archives differ")
	}
}

func TestAWrongCallIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--version", "v1", "--output", t.TempDir(), "--date", "2026-01-31T12:00:00Z"},
		{"--version", "v1", "--output", t.TempDir(), "--date", "yesterday", "--binary", "linux/amd64=x"},
		{"--version", "v1", "--output", t.TempDir(), "--date", "2026-01-31T12:00:00Z", "--binary", "x"},
		{"--version", "v1", "--output", t.TempDir(), "--date", "2026-01-31T12:00:00Z", "--binary", "linux/amd64=" +
			filepath.Join(t.TempDir(), "absent")},
	} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

type member struct {
	*tar.Header
	data []byte
}

// extract is the file system of an image.
func extract(t *testing.T, img v1.Image) map[string]member {
	t.Helper()
	r := mutate.Extract(img)
	defer r.Close()
	files := map[string]member{}
	for all := tar.NewReader(r); ; {
		h, err := all.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(all)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(h.Name, "/")] = member{h, data}
	}
}

func sum(t *testing.T, file string) [sha256.Size]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}
