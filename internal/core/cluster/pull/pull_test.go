package pull

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// csr returns a valid request of a token for the agent of a cluster.
func csr(cluster string) Request {
	return Request{Signer: certificatesv1.KubeAPIServerClientSignerName, User: "system:bootstrap:abcdef",
		Groups: []string{"system:bootstrappers", TokenGroup}, CommonName: User(cluster), Organizations: []string{Group},
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}}
}

// agentCSR returns a valid request of an agent for another certificate.
func agentCSR(by, cluster string) Request {
	r := csr(cluster)
	r.User, r.Groups = User(by), []string{Group, "system:authenticated"}
	return r
}

func registered(name string, mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode, ID: "id-" + name}}
}

func TestCertificateRequestsAreJudged(t *testing.T) {
	change := func(r Request, f func(*Request)) Request { f(&r); return r }
	leaving := registered("eu", clusterv1alpha1.Pull)
	leaving.DeletionTimestamp = &metav1.Time{}
	for story, tc := range map[string]struct {
		request Request
		cluster *clusterv1alpha1.Cluster
		token   Token
		want    Verdict
		bind    string
		message string
	}{
		"a new token registers a cluster": {csr("eu"), nil, Token{ID: "abcdef"}, Approve, "eu", `registers cluster "eu"`},
		"a registration is repeated before the Cluster exists": {csr("eu"), nil, Token{ID: "abcdef", Cluster: "eu"},
			Approve, "eu", ""},
		"a token is used for a second cluster": {csr("us"), nil, Token{ID: "abcdef", Cluster: "eu"}, Deny, "",
			`token abcdef is for cluster "eu" and cannot register cluster "us"`},
		"a cluster is registered twice": {csr("eu"), registered("eu", clusterv1alpha1.Pull), Token{ID: "abcdef"}, Deny, "",
			`cluster "eu" is registered already`},
		"the token that registered a cluster does not renew": {csr("eu"), registered("eu", clusterv1alpha1.Pull),
			Token{ID: "abcdef", Cluster: "eu"}, Deny, "", "argosy token create --cluster-name eu"},
		"an administrator's token renews the credentials of an agent": {csr("eu"),
			registered("eu", clusterv1alpha1.Pull), Token{ID: "abcdef", Cluster: "eu", Renews: true}, Approve, "",
			"replaces the credentials"},
		"such a token does not renew another's": {csr("us"), registered("us", clusterv1alpha1.Pull),
			Token{ID: "abcdef", Cluster: "eu", Renews: true}, Deny, "", `is for cluster "eu"`},
		"a cluster in Push mode": {csr("eu"), registered("eu", clusterv1alpha1.Push),
			Token{ID: "abcdef", Cluster: "eu", Renews: true}, Deny, "", "joined in Push mode"},
		"a cluster that leaves": {csr("eu"), leaving, Token{ID: "abcdef"}, Deny, "", "being removed"},
		"a token becomes a registrar": {change(csr("eu"), func(r *Request) { r.CommonName = Registrar }), nil,
			Token{ID: "abcdef"}, Approve, "", ""},
		"an agent becomes a registrar": {change(agentCSR("eu", "eu"), func(r *Request) { r.CommonName = Registrar }), nil,
			Token{}, Deny, "", "only a bootstrap token"},
		"an agent renews its certificate": {agentCSR("eu", "eu"), registered("eu", clusterv1alpha1.Pull), Token{}, Approve,
			"", "renews its certificate"},
		"an agent requests a certificate of another": {agentCSR("eu", "us"), registered("us", clusterv1alpha1.Pull), Token{},
			Deny, "", `system:karmada:agent:eu cannot request a certificate of the agent of cluster "us"`},
		"an agent of a removed cluster": {agentCSR("eu", "eu"), nil, Token{}, Deny, "", "not registered in Pull mode"},
		"a registrar requests a certificate": {change(agentCSR("eu", "eu"), func(r *Request) { r.User = Registrar }),
			registered("eu", clusterv1alpha1.Pull), Token{}, Deny, "", "cannot request"},
		"a name that is that of another cluster's Secret": {csr("eu-impersonator"), nil, Token{ID: "abcdef"}, Deny, "",
			"does not end with -impersonator"},
		"a name that no cluster can have": {csr("a.b"), nil, Token{ID: "abcdef"}, Deny, "", "must be a DNS label"},
		"another group": {change(csr("eu"), func(r *Request) { r.Organizations = []string{Group, "system:masters"} }), nil,
			Token{ID: "abcdef"}, Deny, "", "the organization"},
		"another user": {change(csr("eu"), func(r *Request) { r.CommonName = "admin" }), nil, Token{ID: "abcdef"}, Deny, "",
			"not the user of an agent"},
		"a server": {change(csr("eu"), func(r *Request) { r.AlternativeNames = true }), nil, Token{ID: "abcdef"}, Deny, "",
			"alternative names"},
		"other usages": {change(csr("eu"), func(r *Request) {
			r.Usages = append(r.Usages, certificatesv1.UsageServerAuth)
		}), nil, Token{ID: "abcdef"}, Deny, "", "usages"},
		"an RSA key": {change(csr("eu"), func(r *Request) {
			r.Usages = append(r.Usages, certificatesv1.UsageKeyEncipherment)
		}), nil, Token{ID: "abcdef"}, Approve, "eu", ""},
		"an administrator": {change(csr("eu"), func(r *Request) { r.User, r.Groups = "admin", nil }), nil, Token{}, Ignore,
			"", ""},
		"a token of another group": {change(csr("eu"), func(r *Request) { r.Groups = []string{"system:bootstrappers"} }),
			nil, Token{ID: "abcdef"}, Ignore, "", ""},
		"another signer": {change(csr("eu"), func(r *Request) { r.Signer = "example.com/mine" }), nil, Token{ID: "abcdef"},
			Ignore, "", ""},
	} {
		got := tc.request.Judge(Known{Cluster: tc.cluster}, tc.token)
		if got.Verdict != tc.want || got.Bind != tc.bind || !strings.Contains(got.Message, tc.message) {
			t.Errorf("%s: %+v, want %s of %q with %q", story, got, tc.want, tc.bind, tc.message)
		}
	}
}

// The permissions of an agent name Secrets, so a new cluster must not get the name of an existing one.
func TestNewClusterGetsNoExistingSecret(t *testing.T) {
	known := Known{Secret: "eu"}
	for story, token := range map[string]Token{"any token": {ID: "abcdef"},
		"a token for that cluster": {ID: "abcdef", Cluster: "eu", Renews: true}} {
		if got := csr("eu").Judge(known, token); got.Verdict != Deny ||
			!strings.Contains(got.Message, "kubectl delete secret eu -n karmada-cluster") {
			t.Errorf("%s: %+v", story, got)
		}
	}
	known.Cluster = registered("eu", clusterv1alpha1.Pull)
	if got := agentCSR("eu", "eu").Judge(known, Token{}); got.Verdict != Approve {
		t.Errorf("the agent of a registered cluster: %+v", got)
	}
}

func TestAgentsCreateOnlyTheirOwnObjects(t *testing.T) {
	cluster := func(change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		c := registered("eu", clusterv1alpha1.Pull)
		change(c)
		return c
	}
	ref := func(namespace, name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: namespace, Name: name}
	}
	fleet := []clusterv1alpha1.Cluster{*registered("us", clusterv1alpha1.Push)}
	for story, tc := range map[string]struct{ why, want string }{
		"its lease": {CheckLease("eu", "karmada-cluster", "eu"), ""},
		"another's lease": {CheckLease("eu", "karmada-cluster", "us"),
			"only the Leases karmada-cluster/eu and karmada-system/karmada-agent-eu"},
		"the lease of Karmada's agent": {CheckLease("eu", "karmada-system", "karmada-agent-eu"), ""},
		"another agent's election":     {CheckLease("eu", "karmada-system", "karmada-agent-us"), "only the Leases"},
		"an election elsewhere":        {CheckLease("eu", "kube-system", "karmada-agent-eu"), "only the Leases"},
		"the hub's lease":              {CheckLease("eu", "karmada-system", "eu"), "only the Leases"},
		"its secret":                   {CheckSecret("eu", "karmada-cluster", "eu-impersonator", corev1.SecretTypeOpaque), ""},
		"another's secret":             {CheckSecret("eu", "karmada-cluster", "us", corev1.SecretTypeOpaque), "only the Opaque"},
		"a service account's": {CheckSecret("eu", "karmada-cluster", "eu", corev1.SecretTypeServiceAccountToken),
			"only"},
		"an execution space":         {CheckNamespace("karmada-es-eu"), ""},
		"the clusters' namespace":    {CheckNamespace("karmada-cluster"), ""},
		"the namespace of elections": {CheckNamespace("karmada-system"), ""},
		"another namespace":          {CheckNamespace("shop"), "only execution spaces"},
		"its cluster":                {CheckCluster("eu", cluster(func(*clusterv1alpha1.Cluster) {}), fleet), ""},
		"its cluster with secrets": {CheckCluster("eu", cluster(func(c *clusterv1alpha1.Cluster) {
			c.Spec.SecretRef = ref("karmada-cluster", "eu")
		}), fleet), ""},
		"another cluster": {CheckCluster("eu", registered("us", clusterv1alpha1.Pull), fleet),
			`cannot create cluster "us"`},
		"a cluster in Push mode": {CheckCluster("eu", registered("eu", clusterv1alpha1.Push), fleet), "only in Pull mode"},
		"another's secret in its cluster": {CheckCluster("eu", cluster(func(c *clusterv1alpha1.Cluster) {
			c.Spec.ImpersonatorSecretRef = ref("karmada-cluster", "us")
		}), fleet), "cannot refer to Secret karmada-cluster/us"},
		"a member under two names": {CheckCluster("eu", cluster(func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "id-us" }),
			fleet), `a member under the name "us" already`},
		"a cluster with annotations": {CheckCluster("eu", cluster(func(c *clusterv1alpha1.Cluster) {
			c.Annotations = map[string]string{"a": "b"}
		}), fleet), "without taints, labels, annotations"},
		"a cluster with labels": {CheckCluster("eu", cluster(func(c *clusterv1alpha1.Cluster) {
			c.Labels = map[string]string{"tier": "prod"}
		}), fleet), "without taints, labels"},
		"a cluster with taints": {CheckCluster("eu", cluster(func(c *clusterv1alpha1.Cluster) {
			c.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
		}), fleet), "without taints"},
		"a cluster with another finalizer": {CheckCluster("eu", cluster(func(c *clusterv1alpha1.Cluster) {
			c.Finalizers = []string{workv1alpha2.ClusterFinalizer, "a/b"}
		}), fleet), "without taints"},
		"a cluster with the hub's finalizer": {CheckCluster("eu", cluster(func(c *clusterv1alpha1.Cluster) {
			c.Finalizers = []string{workv1alpha2.ClusterFinalizer}
		}), fleet), ""},
	} {
		if tc.want == "" && tc.why != "" || !strings.Contains(tc.why, tc.want) {
			t.Errorf("%s: %q, want %q", story, tc.why, tc.want)
		}
	}
}

func TestPermissionsNameNoOtherCluster(t *testing.T) {
	g := GrantsOf("eu")
	named := func(rules []rbacv1.PolicyRule, resource, verb string) (all []string, granted bool) {
		for _, r := range rules {
			if slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb) {
				return r.ResourceNames, true
			}
		}
		return nil, false
	}
	for _, resource := range []string{"clusters", "clusters/status"} {
		if names, granted := named(g.ClusterRole.Rules, resource, "get"); !granted || !slices.Equal(names, []string{"eu"}) {
			t.Errorf("%s can be read by the names %q", resource, names)
		}
	}
	if names, granted := named(g.ClusterRole.Rules, "clusters/tunnel", "create"); !granted ||
		!slices.Equal(names, []string{"eu"}) {
		t.Errorf("clusters are connected by the names %q", names)
	}
	// What people decided about a Cluster would go with it.
	for _, verb := range []string{"delete", "deletecollection", "patch", "*"} {
		if _, granted := named(g.ClusterRole.Rules, "clusters", verb); granted {
			t.Errorf("an agent may %s Clusters", verb)
		}
	}
	for _, r := range g.ClusterRole.Rules {
		if slices.Contains(r.Resources, "secrets") || slices.Contains(r.Resources, "works") ||
			slices.Contains(r.Resources, "*") || slices.Contains(r.Verbs, "*") || slices.Contains(r.APIGroups, "*") {
			t.Errorf("a rule for all namespaces: %+v", r)
		}
	}
	for i, role := range g.Roles {
		cluster, ok := GrantedCluster(role.Name)
		if !ok || cluster != "eu" || g.RoleBindings[i].RoleRef.Name != role.Name ||
			g.RoleBindings[i].Subjects[0].Name != "system:karmada:agent:eu" {
			t.Errorf("role %s and binding %+v", role.Name, g.RoleBindings[i])
		}
		if role.Namespace != "karmada-es-eu" && role.Namespace != "karmada-cluster" && role.Namespace != "karmada-system" {
			t.Errorf("role %s in namespace %s", role.Name, role.Namespace)
		}
		if role.Namespace != "karmada-system" {
			continue
		}
		for _, r := range role.Rules { // the hub's own objects are there
			if !slices.Equal(r.Resources, []string{"leases"}) ||
				!slices.Equal(r.Verbs, []string{"create"}) && !slices.Equal(r.ResourceNames, []string{"karmada-agent-eu"}) {
				t.Errorf("a rule in karmada-system: %+v", r)
			}
		}
	}
	for _, other := range []string{"cluster-admin", "system:karmada:a.b:agent", "system:karmada:eu:other",
		"system:karmada:rbac-generator:agent"} {
		if cluster, ok := GrantedCluster(other); ok {
			t.Errorf("%s is the role of the agent of cluster %q", other, cluster)
		}
	}
}

func TestListsOfKarmadasAgentsAreNarrowed(t *testing.T) {
	const clusters, services = "/apis/cluster.karmada.io/v1alpha1/clusters", "/api/v1/services"
	for path, want := range map[string]string{
		clusters: clusters + "?fieldSelector=metadata.name%3Deu&watch=true",
		clusters + "?fieldSelector=metadata.name%3Dus": "",
		clusters + "/us":                       "",
		services:                               "/api/v1/namespaces/karmada-es-eu/services?watch=true",
		"/api/v1/namespaces/shop/services":     "",
		"/apis/work.karmada.io/v1alpha1/works": "",
	} {
		u, err := url.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		query := u.Query()
		query.Set("watch", "true")
		got, changed := Narrow("eu", u.Path, query)
		if changed != (want != "") || changed && got+"?"+query.Encode() != want {
			t.Errorf("%s becomes %s?%s, want %q", path, got, query.Encode(), want)
		}
	}
}

func TestAgentChangesOnlyHowItsClusterIsReached(t *testing.T) {
	was := registered("eu", clusterv1alpha1.Pull)
	was.Labels = map[string]string{"tier": "test"}
	was.Spec.Taints = []corev1.Taint{{Key: "closed", Effect: corev1.TaintEffectNoSchedule}}
	own := &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "eu"}
	const only = "may change only the address"
	for story, tc := range map[string]struct {
		change func(*clusterv1alpha1.Cluster)
		want   string
	}{
		"nothing": {func(*clusterv1alpha1.Cluster) {}, ""},
		"its address": {func(c *clusterv1alpha1.Cluster) {
			c.Spec.APIEndpoint, c.Spec.ProxyURL = "https://eu:6443", "http://p"
		}, ""},
		"its secrets": {func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = own }, ""},
		"its place":   {func(c *clusterv1alpha1.Cluster) { c.Spec.Region, c.Spec.Zones = "west", []string{"a"} }, ""},
		"another cluster's secret": {func(c *clusterv1alpha1.Cluster) {
			c.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "us"}
		}, "cannot refer to Secret karmada-cluster/us"},
		"its taints":      {func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil }, only},
		"its labels":      {func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"tier": "prod"} }, only},
		"its annotations": {func(c *clusterv1alpha1.Cluster) { c.Annotations = map[string]string{"a": "b"} }, only},
		"its finalizers":  {func(c *clusterv1alpha1.Cluster) { c.Finalizers = []string{"a/b"} }, only},
		"its owners":      {func(c *clusterv1alpha1.Cluster) { c.OwnerReferences = []metav1.OwnerReference{{Name: "a"}} }, only},
		"its id":          {func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "id-us" }, only},
		"its sync mode":   {func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push }, only},
		"its models": {func(c *clusterv1alpha1.Cluster) {
			c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{{Grade: 1}}
		}, only},
		"its proxy header": {func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyHeader = map[string]string{"a": "b"} }, only},
	} {
		is := was.DeepCopy()
		is.ResourceVersion, is.Generation = "2", 2
		tc.change(is)
		if why := CheckUpdate("eu", was, is); tc.want == "" && why != "" || !strings.Contains(why, tc.want) {
			t.Errorf("the agent changes %s: %q, want %q", story, why, tc.want)
		}
	}
	if why := CheckUpdate("us", was, was.DeepCopy()); !strings.Contains(why, only) {
		t.Errorf("another agent: %q", why)
	}
	push := registered("eu", clusterv1alpha1.Push)
	if why := CheckUpdate("eu", push, push.DeepCopy()); !strings.Contains(why, only) {
		t.Errorf("a Cluster in Push mode: %q", why)
	}
}

func TestAgentSetsRegionOnlyWhereItIsEmpty(t *testing.T) {
	was, is := registered("eu", clusterv1alpha1.Pull), registered("eu", clusterv1alpha1.Pull)
	is.Spec.Region, is.Spec.Zones, is.Spec.Provider = "west", []string{"a"}, "p"
	if KeepPlace(was, is); is.Spec.Region != "west" || is.Spec.Zones[0] != "a" || is.Spec.Provider != "p" {
		t.Errorf("an empty place becomes %+v", is.Spec)
	}
	was.Spec.Region, was.Spec.Zones, was.Spec.Provider = "east", []string{"b"}, "q"
	if !KeepPlace(was, is) || is.Spec.Region != "east" || is.Spec.Zones[0] != "b" || is.Spec.Provider != "q" {
		t.Errorf("a user's place becomes %+v", is.Spec)
	}
	if KeepPlace(was, is) {
		t.Error("an unchanged place is restored")
	}
}
