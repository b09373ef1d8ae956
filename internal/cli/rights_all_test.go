package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// withoutRights are the commands that ask the hub for nothing, or that are run where the hub runs.
var withoutRights = strings.Fields("up config init deinit install uninstall kubeconfig console agent register unregister " +
	"backup defrag convert sim sim-member demo docs version options certificates token help completion explain " +
	"api-resources api-versions interpret orphans/delete restore/accept")

// A user with the role view in a namespace gets, from each command that is refused something, the right and the role
// that has it, or that only administrators have it.
func TestEachCommandNamesRightsThatViewersLack(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs each command")
	}
	web := clitest.WriteFile(t, t.TempDir(), "web.yaml",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {}}")
	member := clitest.WriteFile(t, t.TempDir(), "member.yaml", clitest.KubeconfigOf("http://127.0.0.1:1"))
	lines := []string{
		"join eu --cluster-kubeconfig " + member, "unjoin eu --force", "adopt deployment web -n shop --cluster eu",
		"promote deployment web -n shop -C eu", "migrate status", "migrate plan deployment web -n shop --cluster eu",
		"migrate in deployment web -n shop --cluster eu", "migrate out deployment web -n shop",
		"taint clusters eu a=b:NoSchedule", "cordon eu", "uncordon eu", "brake on -C eu", "brake off -C eu", "brake",
		"access list", "access grant devs --role view -C eu", "access revoke devs --role view",
		"addons list", "addons enable x -f " + web, "addons disable x", "rollout status deployment web -n shop",
		"rollout pause deployment web -n shop", "rollout undo deployment web -n shop", "release status r1 -n shop",
		"release pause r1 -n shop", "release approve r1 -n shop", "release plan deployment web -n shop",
		"release start deployment web -n shop --strategy s", "release history -n bank", "status", "orphans", "get orphans",
		"restore status", "get clusters", "get pods -n bank", "get failovers", "get secrets -n shop", "get nodes",
		"get pods -n shop -s members", "apply --validate=false -f " + web, "create namespace x", "create configmap x -n shop",
		"delete deployment web -n shop", "edit deployment web -n shop", "patch deployment web -n shop -p {}",
		"label cluster eu a=b", "label deployment web -n shop a=b", "annotate deployment web -n shop a=b",
		"describe deployment web -n bank", "logs web -n shop -C eu", "exec web -n shop -C eu -- date", "top pods -n shop",
		"usage -A",
		"attach web -n shop -C eu", "why deployment web -n bank", "why secret x -n shop", "why cluster eu",
		"simulate --cluster-down eu", "secrets status", "search pods",
	}
	tried := map[string]bool{}
	for _, line := range lines {
		tried[strings.Fields(line)[0]] = true
		t.Run(line, func(t *testing.T) {
			s := clitest.See(t, map[string]*membertest.Server{"eu": membertest.New(t)})
			serveForRights(s)
			s.Api.Put(&appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
			refuse := deny(func(i *request.RequestInfo) bool {
				reads := slices.Contains([]string{"get", "list", "watch"}, i.Verb)
				return !reads || i.Namespace != "shop" || slices.Contains([]string{"secrets", "works"}, i.Resource)
			})
			var refused atomic.Bool
			s.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
				denied := refuse(w, r)
				refused.Store(refused.Load() || denied)
				return denied
			}
			t.Setenv("EDITOR", "true")
			var out bytes.Buffer
			began := time.Now()
			code := Main(t.Context(), append([]string{"argosy", "--kubeconfig", s.File}, strings.Fields(line)...), &out, &out)
			text := out.String()
			t.Logf("it ends with %d after %s:\n%s", code, time.Since(began).Round(time.Second), text)
			named := strings.Contains(text, "you may not ") && (strings.Contains(text, "permits it") ||
				strings.Contains(text, "only administrators") || strings.Contains(text, "grant it cluster by cluster"))
			for _, said := range refusedFor(text) {
				t.Error(said)
			}
			if code != 0 && refused.Load() && !named || strings.Contains(text, `": unknown`) {
				t.Errorf("it does not name the right and the role")
			}
		})
	}
	root := newRoot(filepath.Base("argosy"))
	slices.SortFunc(root.Commands(), func(a, b *cobra.Command) int { return strings.Compare(a.Name(), b.Name()) })
	for _, cmd := range root.Commands() {
		if !tried[cmd.Name()] && !slices.Contains(withoutRights, cmd.Name()) {
			t.Errorf("%s is not tried by a user who may only view a namespace", cmd.Name())
		}
	}
}

// grant is a sentence with rights and the role that has them.
var grant = regexp.MustCompile(`((?:you may not|the command also needs to) [^;\n]*); a \w+ to the ClusterRole (\S+) permits it`)

// refusedFor returns the rights of a text that the roles that it names for them do not have.
func refusedFor(text string) (wrong []string) {
	for _, said := range grant.FindAllStringSubmatch(text, -1) {
		i := slices.IndexFunc(roles.ClusterRoles(), func(r rbacv1.ClusterRole) bool { return r.Name == said[2] })
		least := -1
		for _, phrase := range strings.Split(strings.NewReplacer("you may not ", "", "the command also needs to ", "",
			", and ", ", or ").Replace(said[1]), ", or ") {
			phrase, _, _ = strings.Cut(phrase, " in ")
			verb, objects, _ := strings.Cut(phrase, " ")
			for object := range strings.SplitSeq(objects, ", ") {
				object, part, divided := strings.Cut(object, "/")
				resource, group, _ := strings.Cut(object, ".")
				if divided && resource != "" {
					resource += "/" + part
				}
				if least = max(least, ofKubernetes(verb, resource)); i < 0 {
					continue // of Kubernetes, to which only rights on the hub's kinds are added
				}
				if !slices.ContainsFunc(roles.ClusterRoles()[i].Rules, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.Verbs, verb) && (slices.Contains(r.NonResourceURLs, "/"+part) && object == "" ||
						slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource))
				}) {
					wrong = append(wrong, fmt.Sprintf("%s may not %s %s %q", said[2], verb, resource, part))
				}
			}
		}
		if i < 0 && slices.Index(kubernetesRoles, said[2]) != least {
			wrong = append(wrong, fmt.Sprintf("%s is not the role with the fewest rights for: %s", said[2], said[1]))
		}
	}
	return wrong
}

// kubernetesRoles are the roles of a namespace, those with fewer rights first.
var kubernetesRoles = []string{"view", "edit", "admin"}

// ofKubernetes returns which of kubernetesRoles is the first with a right in a namespace; their number if none has it.
func ofKubernetes(verb, resource string) int {
	switch {
	case resource == "secrets":
		return len(kubernetesRoles)
	case slices.Contains([]string{"approve", "resume", "retry", "skip"}, verb), resource == "roles",
		resource == "rolebindings", resource == "releaseapprovals" && verb == "create":
		return 2
	case slices.Contains([]string{"get", "list", "watch"}, verb) && !strings.HasPrefix(resource, "pods/"),
		resource == "pods/log":
		return 0
	}
	return 1
}

func TestWrongRolesAreFound(t *testing.T) {
	const to = "; a ClusterRoleBinding to the ClusterRole argosy:fleet permits it"
	const own = "; a RoleBinding to the ClusterRole "
	const label = "you may not get deployments.apps in namespace shop, and the command also needs to patch deployments.apps " +
		"in namespace shop" + own
	for text, wrong := range map[string]int{
		"you may not list clusters.cluster.karmada.io" + to:                                                                  0,
		"you may not list clusters.cluster.karmada.io, and the command also needs to patch clusters.cluster.karmada.io" + to: 1,
		"you may not list clusters.cluster.karmada.io, secrets in all namespaces, or get /argosy/health" + to:                2,
		"you may not list pods in namespace shop" + own + "view permits it":                                                  0,
		"you may not list pods in namespace shop" + own + "edit permits it":                                                  1,
		"you may not list pods, secrets in namespace shop" + own + "admin permits it":                                        1,
		label + "view permits it": 1, label + "edit permits it": 0, label + "admin permits it": 1,
		"you may not approve releases.release.argosy.io in namespace shop" + own + "admin permits it": 0,
	} {
		if got := refusedFor(text); len(got) != wrong {
			t.Errorf("%s: %q, want %d", text, got, wrong)
		}
	}
}
