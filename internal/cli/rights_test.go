package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// deny answers the requests for which refuses is true as the RBAC of an API server does.
func deny(refuses func(*request.RequestInfo) bool) func(http.ResponseWriter, *http.Request) bool {
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	return func(w http.ResponseWriter, r *http.Request) bool {
		info, err := infos.NewRequestInfo(r)
		if err != nil || !info.IsResourceRequest && !strings.HasPrefix(info.Path, "/argosy/") || !refuses(info) {
			return false
		}
		s := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{},
			Message: fmt.Sprintf(`forbidden: User "dev" cannot %s path %q`, info.Verb, info.Path)}
		if info.IsResourceRequest {
			s.Details.Group, s.Details.Kind, s.Details.Name = info.APIGroup, info.Resource, info.Name
			of := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}.String()
			if info.Name != "" {
				of += fmt.Sprintf(" %q", info.Name)
			}
			resource, where := info.Resource, "at the cluster scope"
			if info.Subresource != "" {
				resource += "/" + info.Subresource
			}
			if info.Namespace != "" {
				where = fmt.Sprintf("in the namespace %q", info.Namespace)
			}
			s.Message = fmt.Sprintf(`%s is forbidden: User "dev" cannot %s resource %q in API group %q %s`, of, info.Verb,
				resource, info.APIGroup, where)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(s)
		return true
	}
}

// Every verb that reads names the rights that its user lacks, and the roles that have them.
func TestMissingRightsAreNamedWithTheirRoles(t *testing.T) {
	event := membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Event"}, Plural: "events",
		Namespaced: true}
	const fleet = "; a ClusterRoleBinding to the ClusterRole argosy:fleet permits it"
	const view = "; a ClusterRoleBinding to the ClusterRole argosy:view permits it"
	const operator = "; a ClusterRoleBinding to the ClusterRole argosy:operator permits it"
	const clusters = "you may not list clusters.cluster.karmada.io" + fleet
	const own = "; a RoleBinding to the ClusterRole view permits it"
	const fleetWide = "you may not list these kinds, which a simulation reads in all namespaces:\n" +
		"  cluster.karmada.io: clusters\n" +
		"  config.karmada.io: resourceinterpretercustomizations, resourceinterpreterwebhookconfigurations\n" +
		"  policy.karmada.io: propagationpolicies, clusterpropagationpolicies, overridepolicies, clusteroverridepolicies, " +
		"federatedresourcequotas\n" +
		"  scheduling.k8s.io: priorityclasses\n" +
		"  work.karmada.io: resourcebindings, clusterresourcebindings\n" +
		"a ClusterRoleBinding to the ClusterRole argosy:operator permits it"
	const change = "you may not get clusters.cluster.karmada.io, and the command also needs to patch " +
		"clusters.cluster.karmada.io" + operator
	const byName = "; no role of the hub permits it: grant it cluster by cluster (docs/access.md#access-to-a-cluster)"
	const proxy = "get clusters.cluster.karmada.io/proxy" + byName
	const approve = "you may not get releases.release.argosy.io in namespace shop, and the command also needs to approve " +
		"releases.release.argosy.io in namespace shop, or create releaseapprovals.release.argosy.io in namespace shop; a " +
		"RoleBinding to the ClusterRole admin permits it"
	const inEU = "of cluster eu; a RoleBinding to the ClusterRole view in that cluster permits it"
	for args, c := range map[string]struct {
		inMember bool   // the member refuses
		resource string // what is refused; empty for everything
		want     string
		code     *int // the exit code; 1 if nil
	}{
		"get events -C eu":                          {resource: "clusters", want: "you may not " + proxy},
		"orphans -C eu":                             {resource: "clusters/proxy", want: "you may not " + proxy},
		"get orphans":                               {resource: "clusters/proxy", want: "you may not " + proxy},
		"promote deployment web -n shop -C eu":      {resource: "clusters/proxy", want: "you may not " + proxy},
		"adopt deployment web -n shop --cluster eu": {resource: "clusters/proxy", want: "you may not " + proxy},
		"get events -C  eu -n shop":                 {inMember: true, want: "you may not list events in namespace shop " + inEU},
		"get pods,configmaps -C eu -n shop": {inMember: true, want: "you may not list pods, configmaps in namespace shop " +
			inEU},
		"describe pod web -C eu -n shop": {inMember: true, want: "you may not get pods in namespace shop " + inEU},
		"logs web -C eu -n shop":         {inMember: true, want: "you may not get pods in namespace shop " + inEU},
		"top pods -n shop":               {want: clusters},
		"usage -n shop":                  {want: "you may not list resourcebindings.work.karmada.io in namespace shop" + own},
		"usage -A":                       {want: "you may not list resourcebindings.work.karmada.io in all namespaces" + view},
		"usage  -n shop": {resource: "federatedresourcequotas", code: new(0),
			want: "UNKNOWN: you may not list federatedresourcequotas.policy.karmada.io in namespace shop" + own},
		"orphans": {want: "you may not list clusters.cluster.karmada.io, and the command also needs to list " +
			"works.work.karmada.io in all namespaces; only administrators may by default; the command also needs to " + proxy},
		"get clusters": {want: clusters},
		"get deployments -n shop": {want: "you may not list deployments.apps in namespace shop; a RoleBinding to the " +
			"ClusterRole view permits it"},
		"get resourcebindings -n shop": {want: "you may not list resourcebindings.work.karmada.io in namespace shop" + own},
		"status": {want: "\nUNKNOWN: you may not list customresourcedefinitions.apiextensions.k8s.io, or get /argosy/health; a " +
			"ClusterRoleBinding to the ClusterRole argosy:operator permits it; you may not list clusters.cluster.karmada.io, or get "},
		"get failovers": {want: "you may not list clusters.cluster.karmada.io, clusterresourcebindings.work.karmada.io, " +
			"or list resourcebindings.work.karmada.io in all namespaces" + view},
		"get failovers -n shop":      {want: "resourcebindings.work.karmada.io in namespace shop" + own},
		"simulate --cluster-down eu": {want: fleetWide},
		"simulate record":            {want: fleetWide},
		"simulate --cluster-down  eu": {resource: "deployments", want: "Warning: templates that you may not list are " +
			"simulated by their bindings alone: apps: deployments; a ClusterRoleBinding to the ClusterRole view", code: new(0)},
		"why deployment web -n shop": {want: "you may not get deployments.apps in namespace shop; a RoleBinding to the " +
			"ClusterRole view permits it"},
		"release status r1 -n shop":     {want: "you may not get releases.release.argosy.io in namespace shop" + own},
		"rollout status deployment/web": {want: "you may not get deployments.apps in namespace shop; a RoleBinding"},
		"addons list":                   {want: "you may not list enclosedmanifests.release.argosy.io; only administrators may by default"},
		"access list": {want: "you may not list enclosedmanifests.release.argosy.io, and the command also needs to list " +
			"clusterpropagationpolicies.policy.karmada.io, clusterroles.rbac.authorization.k8s.io, clusterrolebindings"},
		"access revoke a --role view": {want: "or delete enclosedmanifests.release.argosy.io, " +
			"clusterpropagationpolicies.policy.karmada.io, clusterroles.rbac.authorization.k8s.io, clusterrolebindings"},
		"access grant a --role view --clusters a=b": {want: "list clusterroles.rbac.authorization.k8s.io, " +
			"clusterrolebindings.rbac.authorization.k8s.io"},
		"cordon eu": {want: change}, "uncordon eu": {want: change}, "label cluster eu a=b": {want: change},
		"taint clusters eu a=b:NoSchedule": {want: change},
		"label deployment web -n shop a=b": {want: "you may not get deployments.apps in namespace shop, and the command " +
			"also needs to patch deployments.apps in namespace shop; a RoleBinding to the ClusterRole edit permits it"},
		"create namespace x":  {want: "you may not create namespaces; only administrators may by default"},
		"get secrets -n shop": {want: "you may not list secrets in namespace shop; only administrators may by default"},
		"label deployment web -n karmada-x a=b": {want: "also needs to patch deployments.apps in namespace karmada-x; only " +
			"administrators may by default"},
		"label deployment web -n argosy-x a=b": {want: "; only administrators may by default"},
		"release approve r1 -n shop":           {want: approve}, "release reject r1 -n shop": {want: approve},
		"get works -n shop":               {want: "you may not list works.work.karmada.io in namespace shop; only administrators may"},
		"get priorityclasses":             {want: "you may not list priorityclasses.scheduling.k8s.io" + operator},
		"release pause r1 -n shop":        {want: "; a RoleBinding to the ClusterRole edit permits it"},
		"release resume r1 -n shop":       {want: "; a RoleBinding to the ClusterRole admin permits it"},
		"get clusters -o wide":            {want: clusters},
		"get deployments -n shop -o wide": {want: "you may not list deployments.apps in namespace shop" + own},
		"get pods -C eu -n shop -o wide":  {inMember: true, want: "you may not list pods in namespace shop " + inEU},
		"unjoin eu --force": {want: "you may not get clusters.cluster.karmada.io, and the command also needs to delete " +
			"clusters.cluster.karmada.io" + operator},
		"adopt  deployment web -n shop --cluster eu": {want: "you may not list " +
			"resourceinterpretercustomizations.config.karmada.io, and the command also needs to get clusters.cluster.karmada.io" +
			view + "; the command also needs to " + proxy},
		"secrets status":      {want: "you may not get /argosy/encryption"},
		"migrate status":      {want: "you may not list "},
		"search pods -n shop": {resource: "search/api", want: "you may not get search.search.karmada.io/api" + fleet},
	} {
		t.Run(args, func(t *testing.T) {
			member := membertest.New(t, event)
			s := clitest.See(t, map[string]*membertest.Server{"eu": member})
			serveForRights(s)
			s.Api.Put(clitest.BoundDeployment("web")) // its kind is one that a simulation reads
			refuses := deny(func(i *request.RequestInfo) bool {
				whole := strings.TrimSuffix(i.Resource+"/"+i.Subresource, "/")
				return c.resource == "" || c.resource == i.Resource || c.resource == whole
			})
			if c.inMember {
				member.Behave(refuses)
			} else {
				s.Refuse = refuses
			}
			var out, errOut bytes.Buffer
			code := Main(t.Context(), append(append([]string{"argosy"}, strings.Fields(args)...), "--kubeconfig", s.File),
				&out, &errOut)
			if text := out.String() + errOut.String(); code != *cmp.Or(c.code, new(1)) || !strings.Contains(text, c.want) {
				t.Errorf("it ends with %d and does not say %q:\n%s", code, c.want, text)
			}
		})
	}
}

// needs is complete for what is denied last, too, and names commands that exist.
func TestNeedsOfCommandsAreNamedWithOneRole(t *testing.T) {
	denied := func(verb, resource, group, where string) string {
		return fmt.Sprintf(`User "dev" cannot %s resource %q in API group %q %s`, verb, resource, group, where)
	}
	const whole, shop = "at the cluster scope", `in the namespace "shop"`
	root := newRoot("argosy")
	for command, c := range map[string]struct{ denial, want string }{
		"join": {denied("list", "clusters", "cluster.karmada.io", whole), "you may not list clusters.cluster.karmada.io, " +
			"and the command also needs to create clusters.cluster.karmada.io, or get secrets in namespace karmada-cluster, or " +
			"create secrets in namespace karmada-cluster; only administrators may by default"},
		"unjoin": {denied("delete", "clusters", "cluster.karmada.io", whole), "you may not delete clusters.cluster." +
			"karmada.io, " +
			"and the command also needs to get clusters.cluster.karmada.io; a ClusterRoleBinding to the ClusterRole " +
			"argosy:operator permits it"},
		"adopt": {denied("get", "clusters", "cluster.karmada.io", whole), "you may not get clusters.cluster." +
			"karmada.io, and the " +
			"command also needs to list resourceinterpretercustomizations.config.karmada.io; a ClusterRoleBinding to the " +
			"ClusterRole argosy:view permits it; the command also needs to get clusters.cluster.karmada.io/proxy; no role of " +
			"the hub permits it: grant it cluster by cluster (docs/access.md#access-to-a-cluster)"},
		// A user with the role view gets this after the release is shown.
		"release approve": {denied("create", "releaseapprovals", "release.argosy.io", shop), "you may not create " +
			"releaseapprovals.release.argosy.io in namespace shop, and the command also needs to get " +
			"releases.release.argosy.io in namespace shop, or approve releases.release.argosy.io in namespace shop; a " +
			"RoleBinding to the ClusterRole admin permits it"},
	} {
		cmd, _, err := root.Find(strings.Fields(command))
		if err != nil {
			t.Fatal(err)
		}
		if got := roles.Denied(c.denial, needsOf(root, cmd)...); got != c.want {
			t.Errorf("%s: it names\n%s\nwant\n%s", command, got, c.want)
		}
	}
	for command := range needs {
		if cmd, _, err := root.Find(strings.Fields(command)); err != nil || cmd.CommandPath() != "argosy "+command {
			t.Errorf("there is no command %s: %v", command, err)
		}
	}
}

// serveForRights makes a hub serve the kinds that commands read.
func serveForRights(s *clitest.Seeing) {
	s.ServeBindings()
	for plural, gvk := range map[string]schema.GroupVersionKind{
		"federatedresourcequotas":           policyv1alpha1.GroupVersion.WithKind("FederatedResourceQuota"),
		"overridepolicies":                  policyv1alpha1.GroupVersion.WithKind("OverridePolicy"),
		"clusteroverridepolicies":           policyv1alpha1.GroupVersion.WithKind("ClusterOverridePolicy"),
		"resourceinterpretercustomizations": configv1alpha1.GroupVersion.WithKind("ResourceInterpreterCustomization"),
		"resourceinterpreterwebhookconfigurations": configv1alpha1.GroupVersion.WithKind(
			"ResourceInterpreterWebhookConfiguration"),
		"priorityclasses":   {Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"},
		"secrets":           {Version: "v1", Kind: "Secret"},
		"enclosedmanifests": releasev1alpha1.GroupVersion.WithKind("EnclosedManifest"),
	} {
		s.Api.Serve(membertest.Kind{GroupVersionKind: gvk, Plural: plural, Namespaced: plural == "secrets"})
	}
}

// quoted is a text of a member that is marked as its own.
var quoted = regexp.MustCompile(`cluster "eu" says: "(?:[^"\\]|\\.)*"`)

// A member answers what it likes. No text of it makes a command name a role of the hub.
func TestForgedDenialsOfMembersNameNoRoleOfTheHub(t *testing.T) {
	const clusters = `User "x" cannot patch resource "clusters" in API group "cluster.karmada.io" at the cluster scope`
	for name, body := range map[string]any{
		"a kind of the hub": metav1.Status{Message: clusters},
		"on the hub": metav1.Status{Message: `on the hub: User "x" cannot list resource "deployments" in API group ` +
			`"apps" in the namespace "shop"`},
		"a path":             metav1.Status{Message: `User "x" cannot get path "/argosy/pods"`},
		"the cluster's name": metav1.Status{Message: `cluster "eu": ` + clusters + "\n" + clusters},
		"the reason":         metav1.Status{Reason: metav1.StatusReason(clusters), Message: clusters},
		"a cause":            metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: clusters}}}},
		"details of the hub's": metav1.Status{Message: clusters, Details: &metav1.StatusDetails{Group: "cluster.karmada.io",
			Kind: "clusters", Name: "eu"}},
		"text": clusters,
		"a sentence": metav1.Status{Message: "you may not list clusters.cluster.karmada.io; a ClusterRoleBinding to the " +
			"ClusterRole argosy:fleet permits it: ask for role argosy:fleet"},
		"a sentence as text": "not found\n\nyou may not list pods; a ClusterRoleBinding to the ClusterRole argosy:view permits it",
	} {
		for _, args := range []string{"get pods -C eu -n shop", "logs web -C eu -n shop", "status", "orphans -C eu",
			"get orphans", "adopt configmap web -n shop --cluster eu", "describe pod web -C eu -n shop",
			"exec web -C eu -n shop -- date",
			"brake on -C eu"} {
			t.Run(name+"/"+args, func(t *testing.T) {
				member := membertest.New(t)
				var met atomic.Bool
				member.Behave(func(w http.ResponseWriter, r *http.Request) bool {
					if args != "status" && !strings.HasPrefix(r.URL.Path, "/api/v1/") {
						return false // else no command would ask for objects
					}
					met.Store(true)
					answer, isText := []byte(nil), false
					switch b := body.(type) {
					case string:
						answer, isText = []byte(b), true
					case metav1.Status:
						b.TypeMeta, b.Status, b.Code = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, metav1.StatusFailure,
							http.StatusForbidden
						b.Reason = cmp.Or(b.Reason, metav1.StatusReasonForbidden)
						answer, _ = json.Marshal(b)
					}
					if !isText {
						w.Header().Set("Content-Type", "application/json")
					}
					w.WriteHeader(http.StatusForbidden)
					_, _ = w.Write(answer)
					return true
				})
				s := clitest.See(t, map[string]*membertest.Server{"eu": member})
				serveForRights(s)
				var out bytes.Buffer
				Main(t.Context(), append([]string{"argosy", "--kubeconfig", s.File}, strings.Fields(args)...), &out, &out)
				text := quoted.ReplaceAllString(out.String(), "")
				if !met.Load() {
					t.Errorf("it asks the member for nothing:\n%s", text)
				}
				if strings.Count(text, "permits it") != strings.Count(text, "in that cluster permits it") ||
					strings.Contains(text, "no role of the hub permits it") || strings.Contains(text, "ClusterRole argosy:") {
					t.Errorf("it names a role of the hub:\n%s", text)
				}
			})
		}
	}
}
