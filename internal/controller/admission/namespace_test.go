package admission

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

func TestTheNamespaceOfASidecarSetIsKeptForAdmission(t *testing.T) {
	const path = "/apis/apps.kruise.io/v1beta1/sidecarsets"
	const given = `{"metadata":{"name":"x","namespace":"shop"}}`
	for _, c := range []struct{ name, method, path, body, want string }{
		{"created", "POST", path, given, "shop"},
		{"updated", "PUT", path + "/x", given, "shop"},
		{"applied in YAML", "PATCH", path + "/x", "metadata:\n  namespace: shop\n", "shop"},
		{"without one", "POST", path, `{"metadata":{"name":"x"},"spec":{"namespaceSelector":{}}}`, ""},
		{"a JSON patch", "PATCH", path + "/x", `[{"op":"add","path":"/metadata/namespace","value":"shop"}]`, ""},
		{"its status", "PUT", path + "/x/status", given, ""},
		{"another kind", "POST", "/apis/apps.kruise.io/v1beta1/namespaces/shop/clonesets", given, ""},
		{"read", "GET", path, given, ""},
		{"neither JSON nor YAML", "POST", path, "{namespace", ""},
		{"more than a server takes", "POST", path, given + strings.Repeat(" ", bodyLimit), "shop"},
	} {
		var kept, read string
		h := KeepNamespace(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			kept, _ = r.Context().Value(givenKey{}).(string)
			data, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			read = string(data)
		}))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if kept != c.want {
			t.Errorf("%s: the namespace is %q, want %q", c.name, kept, c.want)
		}
		if read != c.body {
			t.Errorf("%s: the server reads %d bytes of %d", c.name, len(read), len(c.body))
		}
	}
}

func TestTruncatedBodyIsPassedOn(t *testing.T) {
	broken := errors.New("broken")
	r := httptest.NewRequest("POST", "/apis/apps.kruise.io/v1beta1/sidecarsets",
		io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken)))
	KeepNamespace(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if data, err := io.ReadAll(r.Body); string(data) != "{" || !errors.Is(err, broken) {
			t.Errorf("read %q, %v", data, err)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
}
