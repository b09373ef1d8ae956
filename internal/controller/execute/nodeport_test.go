package execute

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// allocate makes m1 treat node ports as an API server does where 30080 is taken: it refuses that one, and allocates
// 31000 where a port has none.
func (w *world) allocate() {
	w.m1.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/services") {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Contains(body, []byte(`"nodePort":30080`)) {
			body = bytes.ReplaceAll(body, []byte(`"port":80`), []byte(`"port":80,"nodePort":31000`))
			r.Body = io.NopCloser(bytes.NewReader(body))
			return false
		}
		status := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "front", field.ErrorList{field.Invalid(
			field.NewPath("spec", "ports").Index(0).Child("nodePort"), 30080, "provided port is already allocated")}).Status()
		status.APIVersion, status.Kind = "v1", "Status"
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(int(status.Code))
		_ = json.NewEncoder(rw).Encode(status)
		return true
	})
}

func TestTakenNodePortIsReplacedIfTheHubAllocatedIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		owned    string // fields that a user owns
		replaced bool
	}{
		"the hub allocated it": {`"f:type": {}`, true},
		"a user wrote it":      {`"f:ports": {}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				w.m1.Serve(controllertest.Service)
				w.allocate()
				service := &unstructured.Unstructured{}
				if err := service.UnmarshalJSON([]byte(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front",
					"namespace": "shop", "managedFields": [{"fieldsV1": {"f:spec": {` + c.owned + `}}}]},
					"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}}`)); err != nil {
					t.Fatal(err)
				}
				interpret.Prune(service)
				work := w.work(service)
				if !c.replaced {
					if c := w.condition(work, "Applied", "False"); !strings.Contains(c.Message, "already allocated") {
						t.Errorf("the reason is %q", c.Message)
					}
					return
				}
				w.applied(work)
				got := w.m1.Object(controllertest.Service, "shop", "front")
				ports, _, _ := unstructured.NestedSlice(got.Object, "spec", "ports")
				if len(ports) != 1 || ports[0].(map[string]any)["nodePort"] != int64(31000) {
					t.Errorf("the member has the ports %v", ports)
				}
			})
		})
	}
}
