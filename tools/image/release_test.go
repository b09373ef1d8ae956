package main

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/validate"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// The files are those of make release in the folder ARGOSY_DIST: make release-test writes it.
func TestAReleaseIsComplete(t *testing.T) {
	dist, version := os.Getenv("ARGOSY_DIST"), os.Getenv("ARGOSY_VERSION")
	if dist == "" {
		t.Skip("ARGOSY_DIST names no folder of a release: run make release-test")
	}
	charts, err := filepath.Glob(filepath.Join(dist, "argosy-*.tgz"))
	if err != nil || len(charts) != 1 {
		t.Fatalf("the charts are %v (%v), want one", charts, err)
	}
	platforms := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	want := []string{"SHA256SUMS", "argosy-image.tar", filepath.Base(charts[0])}
	for arch := range platforms {
		want = append(want, "argosy-linux-"+arch, "argosy-linux-"+arch+".cdx.json")
	}
	var files []string
	all, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if !f.IsDir() {
			files = append(files, f.Name())
		}
	}
	if slices.Sort(want); !slices.Equal(files, want) {
		t.Errorf("the files are %v, want %v", files, want)
	}

	t.Run("checksums", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
		cmd.Dir = dist
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		var named []string
		for line := range strings.Lines(text(t, dist, "SHA256SUMS")) {
			named = append(named, strings.Fields(line)[1])
		}
		others := slices.DeleteFunc(slices.Clone(want), func(f string) bool { return f == "SHA256SUMS" })
		if !slices.Equal(named, others) {
			t.Errorf("it has the sums of %v, want %v", named, others)
		}
	})

	for arch, machine := range platforms {
		name := "argosy-linux-" + arch
		t.Run(name, func(t *testing.T) {
			binary, err := elf.Open(filepath.Join(dist, name))
			if err != nil {
				t.Fatal(err)
			}
			defer binary.Close()
			if libraries, err := binary.ImportedLibraries(); binary.Machine != machine || err != nil || len(libraries) > 0 {
				t.Errorf("it is for %v and needs the libraries %v (%v)", binary.Machine, libraries, err)
			}
			if runtime.GOOS == "linux" && runtime.GOARCH == arch {
				out, err := exec.CommandContext(t.Context(), filepath.Join(dist, name), "--version").Output()
				if err != nil || !strings.Contains(string(out), version) {
					t.Errorf("its version is %q (%v), want %s", out, err, version)
				}
			}
			var sbom struct {
				BOMFormat, SpecVersion string
				Metadata               struct {
					Component struct{ Name, Version string }
				}
				Components []struct{ Name, Version, PURL string }
			}
			if err := json.Unmarshal([]byte(text(t, dist, name+".cdx.json")), &sbom); err != nil {
				t.Fatal(err)
			}
			c := sbom.Metadata.Component
			if sbom.BOMFormat != "CycloneDX" || sbom.SpecVersion == "" {
				t.Errorf("its SBOM has the format %q %q", sbom.BOMFormat, sbom.SpecVersion)
			}
			if !strings.HasSuffix(c.Name, "argosy") || c.Version != version {
				t.Errorf("its SBOM is of %+v, want version %s", c, version)
			}
			for _, module := range []string{"k8s.io/kubernetes", "std"} {
				if !slices.ContainsFunc(sbom.Components, func(c struct{ Name, Version, PURL string }) bool {
					return c.Name == module && c.Version != "" && strings.HasPrefix(c.PURL, "pkg:golang/")
				}) {
					t.Errorf("its SBOM lacks %s", module)
				}
			}
		})
	}

	t.Run("image", func(t *testing.T) {
		index := openTagged(t, filepath.Join(dist, "image"), strings.ReplaceAll(version, "+", "-"))
		if err := validate.Index(index); err != nil {
			t.Fatal(err)
		}
		m, err := index.IndexManifest()
		if err != nil || len(m.Manifests) != len(platforms) {
			t.Fatalf("it has %+v (%v)", m, err)
		}
		for _, d := range m.Manifests {
			img, err := index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			config, err := img.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if user, _, _ := strings.Cut(config.Config.User, ":"); user == "" || user == "0" || user == "root" {
				t.Errorf("%s runs as user %q", d.Platform, config.Config.User)
			}
			for path, f := range extract(t, img) {
				switch {
				case path == "usr/local/bin/argosy":
					if sha256.Sum256(f.data) != sum(t, filepath.Join(dist, "argosy-linux-"+d.Platform.Architecture)) {
						t.Errorf("%s has another binary than the release", d.Platform)
					}
				case f.Mode&0o111 != 0 && !f.FileInfo().IsDir():
					t.Errorf("%s has another program: %s", d.Platform, path)
				}
			}
		}
	})

	t.Run("chart", func(t *testing.T) {
		c, err := loader.Load(charts[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil || c.Metadata.AppVersion != version {
			t.Errorf("it is for argosy %s, want %s (%v)", c.Metadata.AppVersion, version, err)
		}
	})
}

func text(t *testing.T, dir, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
