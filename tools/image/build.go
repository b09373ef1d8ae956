package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	repository = "argosy"
	binaryPath = "usr/local/bin/argosy"
	dataDir    = "var/lib/argosy"
	// user exists on no machine, by the convention of images without a shell.
	user = 65532
)

// source is what an image is made of.
type source struct {
	// binaries are files by platform.
	binaries        map[string]string
	version, commit string
	date            time.Time
}

// tag is the version as a registry takes it.
func (s source) tag() string { return strings.ReplaceAll(s.version, "+", "-") }

// entry is a file of a layer, or a folder if it has neither data nor source.
type entry struct {
	path   string
	mode   int64
	owner  int
	data   []byte
	source string
}

// base is what is around the binary: whom it trusts, who it is, and folders that it may write to.
func base() ([]entry, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // it counts for some names or dates alone, which a file of certificates cannot say
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return []entry{
		{path: "etc/", mode: 0o755},
		{path: "etc/group", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:\nargosy:x:%d:\n", user)},
		{path: "etc/passwd", mode: 0o644,
			data: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nargosy:x:%d:%d:Argosy hub:/%s:/sbin/nologin\n", user, user,
				dataDir)},
		{path: "etc/ssl/", mode: 0o755},
		{path: "etc/ssl/certs/", mode: 0o755},
		{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: roots.Bytes()},
		{path: "tmp/", mode: 0o1777},
		{path: "usr/", mode: 0o755},
		{path: "usr/local/", mode: 0o755},
		{path: "usr/local/bin/", mode: 0o755},
		{path: "var/", mode: 0o755},
		{path: "var/lib/", mode: 0o755},
		{path: dataDir + "/", mode: 0o700, owner: user},
	}, nil
}

// layer has entries in their order, all of one date.
func layer(entries []entry, date time.Time) (v1.Layer, error) {
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() {
			t := tar.NewWriter(w)
			for _, e := range entries {
				if err := add(t, e, date); err != nil {
					w.CloseWithError(err)
					return
				}
			}
			w.CloseWithError(t.Close())
		}()
		return r, nil
	}, tarball.WithMediaType(types.OCILayer))
}

func add(t *tar.Writer, e entry, date time.Time) error {
	h := &tar.Header{Name: e.path, Mode: e.mode, Uid: e.owner, Gid: e.owner, ModTime: date, Format: tar.FormatPAX,
		Typeflag: tar.TypeReg, Size: int64(len(e.data))}
	var content io.Reader = bytes.NewReader(e.data)
	switch {
	case e.source != "":
		f, err := os.Open(e.source)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		h.Size, content = info.Size(), f
	case e.data == nil:
		h.Typeflag = tar.TypeDir
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(t, content)
	return err
}

// labels say where the image is from.
func (s source) labels() map[string]string {
	const page = "https://github.com/argosy-io/argosy"
	return map[string]string{
		"org.opencontainers.image.title":         "Argosy",
		"org.opencontainers.image.description":   "A hub that turns many Kubernetes clusters into one fleet",
		"org.opencontainers.image.url":           page,
		"org.opencontainers.image.source":        page,
		"org.opencontainers.image.documentation": page + "/blob/main/docs/install.md",
		"org.opencontainers.image.version":       s.version,
		"org.opencontainers.image.revision":      s.commit,
		"org.opencontainers.image.created":       s.date.UTC().Format(time.RFC3339),
	}
}

// image is that of one platform.
func (s source) image(platform v1.Platform, binary string, below v1.Layer) (v1.Image, error) {
	above, err := layer([]entry{{path: binaryPath, mode: 0o755, source: binary}}, s.date)
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", binary, err)
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: s.date}
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: below, MediaType: types.OCILayer,
			History: v1.History{Created: created, CreatedBy: "tools/image: certificates, user, folders"}},
		mutate.Addendum{Layer: above, MediaType: types.OCILayer,
			History: v1.History{Created: created, CreatedBy: "tools/image: /" + binaryPath}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant, config.Created = platform.OS, platform.Architecture, platform.Variant,
		created
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Entrypoint: []string{"/" + binaryPath},
		// On a machine the hub serves on the loopback address alone, and logs into its data folder; a container has to show
		// both.
		Cmd:          []string{"up", "--bind-address", "0.0.0.0", "--log-file", "-"},
		Env:          []string{"PATH=/usr/local/bin", "HOME=/" + dataDir, "XDG_DATA_HOME=/var/lib"},
		WorkingDir:   "/" + dataDir,
		ExposedPorts: map[string]struct{}{"7443/tcp": {}},
		Volumes:      map[string]struct{}{"/" + dataDir: {}},
		StopSignal:   "SIGTERM",
		Labels:       s.labels(),
	}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(img, s.labels()).(v1.Image), nil
}

// index has the images of all platforms.
func (s source) index() (v1.ImageIndex, error) {
	entries, err := base()
	if err != nil {
		return nil, err
	}
	below, err := layer(entries, s.date)
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, name := range slices.Sorted(maps.Keys(s.binaries)) {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return nil, err
		}
		img, err := s.image(*platform, s.binaries[name], below)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform, MediaType: types.OCIManifestSchema1}})
	}
	return mutate.Annotations(index, s.labels()).(v1.ImageIndex), nil
}

// writeLayout writes index as the one image of a layout, under its tag.
func writeLayout(dir string, index v1.ImageIndex, tag string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag,
		"io.containerd.image.name":          repository + ":" + tag,
	}))
}
