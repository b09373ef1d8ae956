package hubcli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

// maxError is the part of the body of an error that is read, in bytes.
const maxError = 1 << 20

// origin marks denials in errors of members, and drops details by which they would be the hub's. So a member cannot
// make a command recommend a role of the hub. cluster is empty for a client of the hub, which has members behind paths.
type origin struct {
	next    http.RoundTripper
	cluster string
}

// markOrigin makes a client mark what members deny.
func markOrigin(config *rest.Config, cluster string) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return origin{next, cluster} })
}

func (o origin) WrappedRoundTripper() http.RoundTripper { return o.next }

func (o origin) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(r)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	cluster, own := o.cluster, o.cluster == "" && resp.Header.Get("Content-Security-Policy") != "sandbox"
	if before, after, _ := strings.Cut(proxy.Path(" "), " "); cluster == "" {
		_, rest, _ := strings.Cut(r.URL.Path, before)
		name, _, member := strings.Cut(rest, after)
		// The hub's own answer lacks the policy that its proxy sets in those of members, but may quote one.
		if !member || own && resp.StatusCode == http.StatusForbidden {
			return resp, nil
		}
		cluster = name
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(withOrigin(body, cluster, own, resp.Header)))
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	return resp, nil
}

// withOrigin returns the body of an error of a member, or of the hub's own about one, with its denials marked: a Status
// in JSON, or text.
func withOrigin(body []byte, cluster string, own bool, header http.Header) []byte {
	decoded, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	status, ok := decoded.(*metav1.Status)
	if err != nil || !ok {
		return []byte(roles.InCluster(cluster, string(body)))
	}
	status.Message = roles.InCluster(cluster, status.Message)
	status.Reason = metav1.StatusReason(roles.InCluster(cluster, string(status.Reason)))
	if d := status.Details; d != nil {
		for i := range d.Causes {
			d.Causes[i].Message = roles.InCluster(cluster, d.Causes[i].Message)
			d.Causes[i].Field = roles.InCluster(cluster, d.Causes[i].Field)
		}
		d.Name, d.Kind = roles.InCluster(cluster, d.Name), roles.InCluster(cluster, d.Kind)
		if !own && d.Group == clusterv1alpha1.GroupVersion.Group {
			d.Group = ""
		}
	}
	text, err := json.Marshal(status)
	if err != nil {
		return nil
	}
	header.Set("Content-Type", "application/json")
	return text
}
