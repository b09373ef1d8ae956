package admission

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"
)

// givenKey is of the namespace in a request's body.
type givenKey struct{}

// bodyLimit is the size of a body that an API server takes; a longer one is refused behind us.
const bodyLimit = 3 << 20

// KeepNamespace lets admission see the namespace that the author of a SidecarSet wrote: the kind is cluster-scoped, so
// that the API server drops it before admission, without a word.
func KeepNamespace(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || !writesSidecarSet(r) {
			next.ServeHTTP(w, r)
			return
		}
		body := r.Body
		data, err := io.ReadAll(io.LimitReader(body, bodyLimit))
		// What came is passed on whatever it is, and so is the end of it: the refusal is the API server's.
		rest := io.Reader(body)
		if err != nil {
			rest = failing{err}
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(data), rest), body}
		if namespace := namespaceOf(data); namespace != "" {
			r = r.WithContext(context.WithValue(r.Context(), givenKey{}, namespace))
		}
		next.ServeHTTP(w, r)
	})
}

// writesSidecarSet reports whether the body of a request is a SidecarSet or a change of one; paths of subresources are
// longer.
func writesSidecarSet(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return false
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/apis/apps.kruise.io/")
	parts := strings.Split(path, "/")
	return ok && len(parts) >= 2 && len(parts) <= 3 && parts[1] == "sidecarsets"
}

// namespaceOf returns metadata.namespace of a JSON or YAML body; empty if it has none, or is no object.
func namespaceOf(body []byte) string {
	if !bytes.Contains(body, []byte("namespace")) {
		return ""
	}
	var object struct {
		Metadata struct {
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if yaml.Unmarshal(body, &object) != nil {
		return ""
	}
	return object.Metadata.Namespace
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// mutateSidecarSet passes the given namespace to the rewrite. The SidecarSet is stored without one.
func (o *objects) mutateSidecarSet(ctx context.Context, r request) error {
	given, _ := ctx.Value(givenKey{}).(string)
	r.obj.SetNamespace(given)
	defer r.obj.SetNamespace("")
	return r.normalise(ctx)
}
