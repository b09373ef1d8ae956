package operatecli

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/server"
	"github.com/argosy-io/argosy/test/kit/clitest"
)

func TestSecretEncryptionStatusNeedsRights(t *testing.T) {
	s := clitest.See(t, nil)
	const why = `forbidden: User "ann" cannot get path "/argosy/encryption"`
	s.Api.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != server.EncryptionPath {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":403,"reason":"Forbidden","message":%q}`,
			why)
		return true
	})
	for _, args := range []string{"status", "rotate-key", "rewrite"} {
		verb := func(hub *hubcli.HubFlags, _ genericiooptions.IOStreams) *cobra.Command { return NewSecrets(hub) }
		if _, _, err := s.Run(verb, "", args); err == nil ||
			!strings.Contains(err.Error(), "ask the hub how it encrypts secrets: "+why) {
			t.Errorf("secrets %s ends with %v", args, err)
		}
	}
}
