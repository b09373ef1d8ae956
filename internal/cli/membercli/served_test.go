package membercli

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// openAPI is what a server with CloneSets tells about them; the escape sequence would control a terminal.
const openAPI = `{"openapi": "3.0.0", "info": {"title": "x", "version": "1"},
"paths": {"/apis/apps.kruise.io/v1alpha1/namespaces/{namespace}/clonesets": {"get": {"x-kubernetes-action": "list",
	"x-kubernetes-group-version-kind": {"group": "apps.kruise.io", "version": "v1alpha1", "kind": "CloneSet"}}}},
"components": {"schemas": {"io.kruise.CloneSet": {"type": "object", "description": "A set of \u001b[31mclones",
	"properties": {"partition": {"type": "integer", "description": "how many stay"}},
	"x-kubernetes-group-version-kind": [{"group": "apps.kruise.io", "version": "v1alpha1", "kind": "CloneSet"}]}}}}`

func TestWhatAMemberServesIsShown(t *testing.T) {
	eu := membertest.New(t, kruiseSets)
	eu.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/openapi/v3":
			fmt.Fprint(w, `{"paths": {"apis/apps.kruise.io/v1alpha1": {"serverRelativeURL": "/openapi/v3/apis/apps.kruise.io/v1alpha1"}}}`)
		case "/openapi/v3/apis/apps.kruise.io/v1alpha1":
			fmt.Fprint(w, openAPI)
		default:
			return false
		}
		return true
	})
	verbs := map[string]func(*hubcli.HubFlags, genericiooptions.IOStreams) *cobra.Command{
		"api-versions": NewAPIVersions, "api-resources": NewAPIResources, "explain": NewExplain}
	s := clitest.See(t, map[string]*membertest.Server{"eu": eu, "down": nil})
	for _, c := range []struct {
		verb    string
		line    string
		want    string
		without string
		err     string
	}{
		{verb: "api-versions", line: "", want: "cluster.karmada.io/v1alpha1", without: "kruise"},
		{verb: "api-versions", line: "-C eu", want: "apps.kruise.io/v1alpha1", without: "karmada"},
		{verb: "api-versions", line: "-s members --cluster eu", want: "apps.kruise.io/v1alpha1"},
		{verb: "api-versions", line: "-C down", err: `cluster "down"`},
		{verb: "api-resources", line: "-o name", want: "clusters.cluster.karmada.io", without: "kruise"},
		{verb: "api-resources", line: "-o name -C eu", want: "clonesets.apps.kruise.io", without: "karmada"},
		{verb: "api-resources", line: "-o name --clusters eu", want: "clonesets.apps.kruise.io"},
		{verb: "api-resources", line: "-s karmada -C eu", err: "cannot be used together"},
		{verb: "explain", line: "cloneset -C eu", want: "how many stay", without: "\x1b"},
		{verb: "explain", line: "cloneset -C jp", err: `there is no cluster "jp"`},
	} {
		out, _, err := s.Run(verbs[c.verb], "", strings.Fields(c.line)...)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %s: %v, want %q", c.verb, c.line, err, c.err)
			}
		case err != nil || !strings.Contains(out, c.want) || c.without != "" && strings.Contains(out, c.without):
			t.Errorf("%s %s: %v\n%s\nwant %q and not %q", c.verb, c.line, err, out, c.want, c.without)
		}
	}
}
