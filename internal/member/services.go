package member

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// GetThroughService sends a GET request to a Service of the member, through the member's API server and with the hub's
// own rights. The caller checks who may do so, and passes names without slashes and a path that no user wrote.
func (m *Member) GetThroughService(ctx context.Context, namespace, scheme, service, port, path string,
	query url.Values) (*http.Response, error) {
	c := m.conn()
	base, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return nil, err
	}
	at := service + ":" + port
	if scheme == "https" {
		at = "https:" + at
	}
	u := base.JoinPath("api", "v1", "namespaces", url.PathEscape(namespace), "services", url.PathEscape(at), "proxy",
		strings.TrimPrefix(path, "/"))
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	return c.http.Do(req)
}
