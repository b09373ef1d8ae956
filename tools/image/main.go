// Command image makes Argosy's container image as an OCI layout, without a container runtime: from scratch, for several
// platforms, and of the same digest whenever the binaries and the date are the same.
package main

import (
	"archive/tar"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("image", flag.ContinueOnError)
	s := source{binaries: map[string]string{}}
	fs.Func("binary", "PLATFORM=FILE, such as linux/amd64=dist/argosy; repeatable", func(value string) error {
		platform, file, ok := strings.Cut(value, "=")
		if _, err := v1.ParsePlatform(platform); !ok || err != nil || strings.Count(platform, "/") != 1 {
			return errors.New("want PLATFORM=FILE, such as linux/amd64=dist/argosy")
		}
		s.binaries[platform] = file
		return nil
	})
	fs.StringVar(&s.version, "version", "", "version of the binaries, which is the image's tag")
	fs.StringVar(&s.commit, "commit", "", "commit of the binaries")
	date := fs.String("date", "", "date of that commit, in RFC 3339: that of everything in the image")
	dir := fs.String("output", "", "folder to write the OCI layout to; what is there is replaced")
	archive := fs.String("archive", "",
		"file to write the same to as a tar archive, such as podman load and skopeo take it")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var err error
	if s.date, err = time.Parse(time.RFC3339, *date); err != nil {
		return fmt.Errorf("--date: %w", err)
	}
	if *dir == "" || len(s.binaries) == 0 || s.version == "" {
		return errors.New("--output, --version and one --binary or more are required")
	}
	index, err := s.index()
	if err != nil {
		return err
	}
	if err := writeLayout(*dir, index, s.tag()); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s@%s in %s\n", repository+":"+s.tag(), digest, *dir)
	if *archive == "" {
		return nil
	}
	return pack(*dir, *archive, s.date)
}

// pack writes a folder to a tar archive whose bytes depend on nothing but the contents and the date.
func pack(dir, file string, date time.Time) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var paths []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(paths)
	w := tar.NewWriter(f)
	for _, path := range paths {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := add(w, entry{path: rel, mode: 0o644, source: path}, date); err != nil {
			return err
		}
	}
	return w.Close()
}
