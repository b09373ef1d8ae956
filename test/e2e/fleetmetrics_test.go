package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/top"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/argosy-io/argosy/test/kit"
)

// kubectlTop runs the code of kubectl top pods on the hub as a user, or as the administrator if the user is empty. It
// returns what it prints, and the warnings.
func kubectlTop(t *testing.T, user, ns string, args ...string) (out, warnings string, err error) {
	t.Helper()
	var printed, warned bytes.Buffer
	flags := genericclioptions.NewConfigFlags(false)
	file := fleet.Lab.Hub.Kubeconfig()
	flags.KubeConfig, flags.Namespace = &file, &ns
	flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.WarningHandler = rest.NewWarningWriter(&warned, rest.WarningWriterOptions{})
		c.Impersonate.UserName = user
		return c
	}
	o := &top.TopPodOptions{IOStreams: genericiooptions.IOStreams{Out: &printed, ErrOut: &warned},
		UseProtocolBuffers: true}
	cmd := top.NewCmdTopPod(cmdutil.NewFactory(flags), o, o.IOStreams)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if err := o.Complete(cmdutil.NewFactory(flags), cmd, nil); err != nil {
		return "", "", err
	}
	err = o.RunTopPod()
	return printed.String(), warned.String(), err
}

// kubectl top, which knows of no clusters, shows the pods of all, and each user those that they may read there.
func TestKubectlTopReadsTheFleet(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	loaded(t, "apps/v1", "Deployment", ns)
	row := regexp.MustCompile(`(?m)^shop-\S+ +100m +\d+Mi`)
	topped := func(what, user string, rows int, says string) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			for _, m := range []string{"m1", "m2"} {
				use(t, m, ns, "100m")
			}
			out, warnings, err := kubectlTop(t, user, ns, "-l", "app=shop")
			if err != nil || len(row.FindAllString(out, -1)) != rows || !strings.Contains(warnings, says) {
				return fmt.Sprintf("%v\n%s\n%s", err, out, warnings)
			}
			return ""
		})
	}
	topped("the administrator sees the pods of both clusters", "", 2, "")

	alice := "alice-" + ns
	asAlice := func() error {
		_, _, err := kubectlTop(t, alice, ns, "-l", "app=shop")
		return err
	}
	waitForbidden(t, "the hub refuses who has no role", asAlice,
		`cannot list resource "pods" in API group "metrics.k8s.io"`)
	binding := `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: alice, namespace: %[1]s}
subjects: [{kind: User, name: alice-%[1]s, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: %[2]s, name: %[3]s, apiGroup: rbac.authorization.k8s.io}`
	fleet.Hub.Apply(t, fmt.Sprintf(binding, ns, "ClusterRole", "view"))
	waitForbidden(t, "her role on the hub shows nothing of members", asAlice, "you may not get clusters/proxy there")
	letIn(t, ns, "metrics", "[m1]", fmt.Sprintf("[{kind: User, name: %s, apiGroup: rbac.authorization.k8s.io}]", alice))
	waitForbidden(t, "the member refuses her", asAlice,
		"clusters m1: you may not list pods.metrics.k8s.io in namespace "+ns)
	fleet.Members["m1"].Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: metrics, namespace: %[1]s}
rules: [{apiGroups: [metrics.k8s.io], resources: [pods], verbs: [get, list]}]
---`+binding, ns, "Role", "metrics"))
	topped("she sees the pods of the cluster that lets her", alice, 1, "you may not get clusters/proxy there")
	if _, _, err := kubectlTop(t, alice, "default"); !apierrors.IsForbidden(err) {
		t.Errorf("another namespace gives her %v", err)
	}
}
