// Package web has the pages of the console: TypeScript in src, bundled by `make console` into dist, which is embedded.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed dist
var dist embed.FS

// file is one asset, compressed once at the start.
type file struct {
	plain, packed  []byte
	mediaType, tag string
}

// Handler serves the assets below prefix, and the page itself at every other address there, because the page reads its
// own address.
func Handler(prefix string) (http.Handler, error) {
	files := map[string]*file{}
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		plain, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
		_, err = z.Write(plain)
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			return err
		}
		sum := sha256.Sum256(plain)
		files[strings.TrimPrefix(name, "dist/")] = &file{plain: plain, packed: packed.Bytes(),
			mediaType: mime.TypeByExtension(path.Ext(name)), tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the console's pages: %w", err)
	}
	page := files["index.html"]
	if page == nil {
		return nil, fmt.Errorf("the console's pages are not built: run make console")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "use GET", http.StatusMethodNotAllowed)
			return
		}
		if r.URL.Path+"/" == prefix {
			http.Redirect(w, r, prefix, http.StatusPermanentRedirect)
			return
		}
		name := strings.TrimPrefix(r.URL.Path, prefix)
		f := files[name]
		if f == nil && strings.HasPrefix(name, "assets/") {
			http.NotFound(w, r)
			return
		}
		if f == nil {
			f = page
		}
		f.serve(w, r)
	}), nil
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.mediaType)
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache") // the browser asks whether its copy is current
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	content := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		content = f.packed
	}
	h.Set("Content-Length", fmt.Sprint(len(content)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(content) // fails only if the client is gone
	}
}

// policy is the content security policy of every response of the console.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Protect sets the headers of every response of the console.
func Protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
