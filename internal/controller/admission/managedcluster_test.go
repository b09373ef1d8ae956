package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
)

// managedCluster returns a ManagedCluster with a set and the fields of a spec.
func managedCluster(t *testing.T, name, set, spec string) *unstructured.Unstructured {
	t.Helper()
	mc := object(t, `{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: "`+name+
		`"}, spec: {`+spec+`}}`)
	if set != "" {
		mc.SetLabels(map[string]string{"cluster.open-cluster-management.io/clusterset": set})
	}
	return mc
}

const (
	denied   = "hubAcceptsClient: false, leaseDurationSeconds: 60"
	accepted = "hubAcceptsClient: true, leaseDurationSeconds: 60"
)

// operatorsHub returns a hub where user op has rights.
func operatorsHub(t *testing.T, rights []string, objects ...*unstructured.Unstructured) *hub {
	t.Helper()
	h := newHub(t, objects...)
	h.may = map[string]bool{}
	for _, r := range rights {
		h.may["op "+r] = true
	}
	return h
}

func TestAcceptanceNeedsItsRight(t *testing.T) {
	const refusal = `user "op" cannot update the HubAcceptsClient field`
	const accept, acceptUS = "update managedclusters/accept eu", "update managedclusters/accept us"
	const join = "create managedclustersets/join default"
	no, yes := managedCluster(t, "eu", "default", denied), managedCluster(t, "eu", "default", accepted)
	renewed := managedCluster(t, "eu", "default", "hubAcceptsClient: true, leaseDurationSeconds: 30")
	for story, tc := range map[string]struct {
		rights  []string
		is, was *unstructured.Unstructured
		want    string
	}{
		"a new cluster":                        {[]string{join}, yes, nil, refusal},
		"a cluster that waits":                 {[]string{join}, yes, no, refusal},
		"with the right for another cluster":   {[]string{join, acceptUS}, yes, no, refusal},
		"with the right to update the objects": {[]string{join, "update managedclusters "}, yes, no, refusal},
		"with the right":                       {[]string{join, accept}, yes, no, ""},
		"with the right, a new cluster":        {[]string{join, accept}, yes, nil, ""},
		"a new cluster that is not accepted":   {[]string{join}, no, nil, ""},
		"a denial":                             {nil, no, yes, ""},
		"another change":                       {nil, renewed, yes, ""},
	} {
		h := operatorsHub(t, tc.rights)
		if tc.want != "" {
			h.refuses("op", tc.is, tc.was, tc.want)
		} else if _, warnings, err := h.write("op", tc.is, tc.was); err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, warnings %q", story, err, warnings)
		}
	}
	if _, _, err := newHub(t).write(user.APIServerUser, yes, nil); err != nil {
		t.Errorf("the hub itself: %v", err)
	}
}

func TestClusterThatIsJoinedOtherwiseIsNotAccepted(t *testing.T) {
	c := object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: eu}, spec: {syncMode: Push}}`)
	no, yes := managedCluster(t, "eu", "default", denied), managedCluster(t, "eu", "default", accepted)
	for _, was := range []*unstructured.Unstructured{nil, no} {
		newHub(t, c).refuses("admin", yes, was, `cluster "eu" is joined without a klusterlet`)
	}
	c.SetAnnotations(map[string]string{"argosy.io/derived-from": "ManagedCluster"})
	if _, _, err := newHub(t, c).write("admin", yes, no); err != nil {
		t.Errorf("its own Cluster: %v", err)
	}
}

func TestLeavingClusterIsGuarded(t *testing.T) {
	h := newHub(t)
	agent := klusterlet.GroupOf("eu") + ":agent"
	h.users = map[string]*user.DefaultInfo{agent: {Name: agent, Groups: []string{klusterlet.GroupOf("eu")}}}
	was := managedCluster(t, "eu", "default", accepted)
	was.SetFinalizers([]string{"cluster.open-cluster-management.io/api-resource-cleanup"})
	was.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	is := was.DeepCopy()
	is.SetFinalizers(nil)
	h.refuses(agent, is, was, "an administrator sets the rest")
	if _, _, err := h.write("admin", is, was); err != nil {
		t.Errorf("an administrator: %v", err)
	}
	for _, kind := range []string{"ManagedCluster", "Cluster"} {
		was := was.DeepCopy()
		if kind == "Cluster" {
			was = object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: eu}, spec: {syncMode: Push}}`)
			was.SetFinalizers([]string{"a/b"})
			was.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		}
		is := was.DeepCopy()
		is.SetAnnotations(map[string]string{"argosy.io/derived-from": "Cluster"})
		h.refuses("admin", is, was, "only the hub writes it")
	}
}

func TestClusterIsNotAcceptedInATerminatingNamespace(t *testing.T) {
	no, yes := managedCluster(t, "eu", "default", denied), managedCluster(t, "eu", "default", accepted)
	ns := object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: eu,
		labels: {open-cluster-management.io/cluster-name: eu}}}`)
	if _, warnings, err := newHub(t, ns).write("admin", yes, no); err != nil || len(warnings) > 0 {
		t.Errorf("its own namespace: %v, warnings %q", err, warnings)
	}
	foreign := ns.DeepCopy()
	foreign.SetLabels(nil)
	if _, warnings, err := newHub(t, foreign).write("admin", yes, no); err != nil || len(warnings) != 1 ||
		!strings.Contains(warnings[0], "namespace eu exists already") {
		t.Errorf("a namespace of others: %v, warnings %q", err, warnings)
	}
	ns.SetFinalizers([]string{"a/b"})
	ns.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	h := newHub(t, ns)
	for _, was := range []*unstructured.Unstructured{nil, no} {
		h.refuses("admin", yes, was, "namespace eu", "is being deleted: accept the cluster when the namespace is gone")
	}
	if _, _, err := h.write("admin", no, nil); err != nil {
		t.Errorf("a cluster that is not accepted: %v", err)
	}
}

func TestJoiningASetNeedsRightsOnBothSets(t *testing.T) {
	const joinDefault, joinProd = "create managedclustersets/join default", "create managedclustersets/join prod"
	refusal := func(set string) string {
		return fmt.Sprintf(`user "op" cannot move cluster "eu" into or out of the ManagedClusterSet %q: this needs `+
			"permission to create managedclustersets/join in cluster.open-cluster-management.io for that set", set)
	}
	none, def, prod := managedCluster(t, "eu", "", denied), managedCluster(t, "eu", "default", denied),
		managedCluster(t, "eu", "prod", denied)
	renewed := managedCluster(t, "eu", "prod", "hubAcceptsClient: false, leaseDurationSeconds: 30")
	for story, tc := range map[string]struct {
		rights  []string
		is, was *unstructured.Unstructured
		want    string // a refusal; otherwise the set that is stored
	}{
		"a new cluster without a set":               {nil, none, nil, refusal("default")},
		"a new cluster without a set, permitted":    {[]string{joinDefault}, none, nil, "default"},
		"a new cluster in a set":                    {[]string{joinDefault}, prod, nil, refusal("prod")},
		"a new cluster in a set, permitted":         {[]string{joinProd}, prod, nil, "prod"},
		"a move, without the right on the new set":  {[]string{joinDefault}, prod, def, refusal("prod")},
		"a move, without the right on the old set":  {[]string{joinProd}, prod, def, refusal("default")},
		"a move, permitted":                         {[]string{joinDefault, joinProd}, prod, def, "prod"},
		"the label removed":                         {[]string{joinDefault}, none, prod, refusal("prod")},
		"the label removed, permitted":              {[]string{joinDefault, joinProd}, none, prod, "default"},
		"the label of the default set removed":      {nil, none, def, "default"},
		"a cluster stored without a set":            {nil, none, none, "default"},
		"a change of something else without rights": {nil, renewed, prod, "prod"},
	} {
		h := operatorsHub(t, tc.rights)
		if strings.HasPrefix(tc.want, "user") {
			h.refuses("op", tc.is, tc.was, tc.want)
			continue
		}
		stored, _, err := h.write("op", tc.is, tc.was)
		if err != nil {
			t.Errorf("%s: %v", story, err)
		} else if set := stored.GetLabels()["cluster.open-cluster-management.io/clusterset"]; set != tc.want {
			t.Errorf("%s: the set is %q, want %q", story, set, tc.want)
		}
	}
	if _, _, err := operatorsHub(t, nil).write(user.APIServerUser, prod, def); err != nil {
		t.Errorf("the hub itself: %v", err)
	}
}

func TestBindingASetNeedsItsRight(t *testing.T) {
	binding := func(name, set string) *unstructured.Unstructured {
		return object(t, `{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding,
			metadata: {namespace: shop, name: `+name+`}, spec: {clusterSet: `+set+`}}`)
	}
	const name = "The ManagedClusterSetBinding must have the same name as the target ManagedClusterSet"
	const bind, bindDefault = "create managedclustersets/bind prod", "create managedclustersets/bind default"
	for story, tc := range map[string]struct {
		rights  []string
		is, was *unstructured.Unstructured
		want    string
	}{
		"without the right":        {nil, binding("prod", "prod"), nil, `user "op" is not allowed to bind cluster set "prod"`},
		"with that on another set": {[]string{bindDefault}, binding("prod", "prod"), nil, "not allowed to bind"},
		"with the right":           {[]string{bind}, binding("prod", "prod"), nil, ""},
		"under another name":       {[]string{bind}, binding("all", "prod"), nil, name},
		"another set in a stored one": {[]string{bind, bindDefault}, binding("prod", "default"), binding("prod", "prod"),
			name},
		"a label of a stored one": {nil, binding("prod", "prod"), binding("prod", "prod"), ""},
		"without a set":           {nil, binding("prod", `""`), nil, "spec.clusterSet"},
	} {
		h := operatorsHub(t, tc.rights)
		if tc.want != "" {
			h.refuses("op", tc.is, tc.was, tc.want)
		} else if _, _, err := h.write("op", tc.is, tc.was); err != nil {
			t.Errorf("%s: %v", story, err)
		}
	}
}

// Argo CD deploys where the PlacementDecisions in its namespace say, and the hub may write them everywhere.
func TestPublishingAPlacementNeedsItsRight(t *testing.T) {
	policy := func(annotation, priority string) *unstructured.Unstructured {
		return object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: web,
			annotations: {`+annotation+`}}, spec: {priority: `+priority+`, resourceSelectors: [
			{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}], placement: {clusterAffinity: {clusterNames: [eu]}}}}`)
	}
	inNamespace := func(annotation string) *unstructured.Unstructured {
		return object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: argocd,
			annotations: {`+annotation+`}}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}],
			placement: {clusterAffinity: {clusterNames: [eu]}}}}`)
	}
	const at, elsewhere = "argosy.io/placement-decision: argocd/web", "argosy.io/placement-decision: shop/web"
	const here, there = "create placements argocd", "create placements shop"
	const refusal = `user "op" may not create Placements in namespace "argocd"`
	for story, tc := range map[string]struct {
		rights  []string
		is, was *unstructured.Unstructured
		want    string
	}{
		"a new policy":                 {nil, policy(at, "1"), nil, refusal},
		"an existing policy":           {nil, policy(at, "1"), policy("", "1"), refusal},
		"with the right elsewhere":     {[]string{there}, policy(at, "1"), policy(elsewhere, "1"), refusal},
		"with the right":               {[]string{here}, policy(at, "1"), policy(elsewhere, "1"), ""},
		"other clusters":               {nil, policy(at, "2"), policy(at, "1"), refusal},
		"another annotation":           {nil, policy(at+", a: b", "1"), policy(at, "1"), ""},
		"a policy in the namespace":    {nil, inNamespace("argosy.io/placement-decision: web"), nil, refusal},
		"such a policy with the right": {[]string{here}, inNamespace("argosy.io/placement-decision: web"), nil, ""},
		"withdrawn":                    {nil, policy("", "1"), policy(at, "1"), ""},
		"without a namespace": {[]string{here}, policy("argosy.io/placement-decision: web", "1"), nil,
			"is not NAMESPACE/NAME"},
	} {
		t.Run(story, func(t *testing.T) {
			h := operatorsHub(t, tc.rights)
			h.mayCreateCPP = map[string]bool{"op": true, "owner": true}
			h.may["owner "+here], h.may["owner "+there] = true, true
			if tc.was != nil {
				var err error
				if tc.was, _, err = h.write("owner", tc.was, nil); err != nil {
					t.Fatal(err)
				}
				tc.is.SetLabels(tc.was.GetLabels())
				tc.is.SetFinalizers(tc.was.GetFinalizers())
			}
			if tc.want != "" {
				h.refuses("op", tc.is, tc.was, tc.want)
			} else if _, _, err := h.write("op", tc.is, tc.was); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestManagedClustersWithMistakesAreRefused(t *testing.T) {
	h := newHub(t)
	url := func(url string) string {
		return `managedClusterClientConfigs: [{url: "https://a.example.com"}, {url: "` + url + `"}], hubAcceptsClient: false`
	}
	refused := func(url string) string {
		return `admission webhook "managedclustervalidators.admission.cluster.open-cluster-management.io" denied the request: ` +
			`url "` + url + `" is invalid in client configs`
	}
	for _, tc := range []struct{ name, spec, want string }{
		{"eu", url("http://eu.example.com:6443"), refused("http://eu.example.com:6443")},
		{"eu", url("eu.example.com:6443"), refused("eu.example.com:6443")},
		{"eu", url("https://"), refused("https://")},
		{"eu", "hubAcceptsClient: false, leaseDurationSeconds: -1", "spec.leaseDurationSeconds: Invalid value: -1"},
		{strings.Repeat("a", 49), denied, "metadata.name: Forbidden"},
		{strings.Repeat("a", 49), denied, "must be a DNS label of at most 48 characters"},
		{"eu.west", denied, "must be a DNS label"},
		{"EU", denied, "must be a DNS label"},
		{"kube-system", denied, "because the hub uses it for its own objects: choose another name"},
		{"karmada-cluster", denied, "choose another name"},
		{"karmada-es-us", denied, "choose another name"},
		{"open-cluster-management", denied, "choose another name"},
		{"open-cluster-management-hub", denied, "choose another name"},
		{"managed-clusters", denied, "choose another name"},
	} {
		h.refusesAsWebhook("admin", managedCluster(t, tc.name, "", tc.spec), tc.want)
	}
	none := managedCluster(t, "eu", "", "")
	unstructured.RemoveNestedField(none.Object, "spec")
	h.refuses("admin", none, nil, "spec")
	if _, _, err := h.write("admin", managedCluster(t, strings.Repeat("a", 48), "", url("https://[::1]:6443")),
		nil); err != nil {
		t.Errorf("the longest name: %v", err)
	}
}

func TestLeaseOfAManagedClusterHasAnInterval(t *testing.T) {
	h := newHub(t)
	was := managedCluster(t, "eu", "default", "hubAcceptsClient: false, leaseDurationSeconds: 30")
	for spec, want := range map[string]int64{"hubAcceptsClient: false": 60,
		"hubAcceptsClient: false, leaseDurationSeconds: 0":  60,
		"hubAcceptsClient: false, leaseDurationSeconds: 10": 10} {
		for _, old := range []*unstructured.Unstructured{nil, was} {
			stored, _, err := h.write("admin", managedCluster(t, "eu", "", spec), old)
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := unstructured.NestedInt64(stored.Object, "spec", "leaseDurationSeconds"); got != want {
				t.Errorf("{%s}: the interval is %d, want %d", spec, got, want)
			}
		}
	}
}

func TestTheHubDatesTaints(t *testing.T) {
	const before, later = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"
	with := func(taints string) *unstructured.Unstructured {
		return managedCluster(t, "eu", "default", denied+", taints: ["+taints+"]")
	}
	taint := func(value, effect, added string) string {
		if added != "" {
			added = `, timeAdded: "` + added + `"`
		}
		return `{key: gpu, value: "` + value + `", effect: ` + effect + added + `}`
	}
	stored := with(taint("a", "NoSelect", before))
	const refusal = `It is not allowed to set TimeAdded of Taint "gpu".`
	const now = "now"
	for story, tc := range map[string]struct {
		is   *unstructured.Unstructured
		was  *unstructured.Unstructured
		want string // a refusal, a time, or now
	}{
		"a new cluster":                            {with(taint("a", "NoSelect", "")), nil, now},
		"a new cluster, dated by a client":         {with(taint("a", "NoSelect", before)), nil, now},
		"a new taint":                              {with(taint("a", "NoSelect", "")), with(""), now},
		"a new taint, dated by a client":           {with(taint("a", "NoSelect", later)), with(""), refusal},
		"the same taint":                           {with(taint("a", "NoSelect", before)), stored, before},
		"the same taint without its time":          {with(taint("a", "NoSelect", "")), stored, before},
		"the same taint, dated by a client":        {with(taint("a", "NoSelect", later)), stored, refusal},
		"another value":                            {with(taint("b", "NoSelect", before)), stored, now},
		"another value, dated by a client":         {with(taint("b", "NoSelect", later)), stored, refusal},
		"another effect":                           {with(taint("a", "NoSelectIfNew", before)), stored, now},
		"another effect without a time":            {with(taint("a", "NoSelectIfNew", "")), stored, now},
		"a stored taint without a time":            {with(taint("a", "NoSelect", "")), with(taint("a", "NoSelect", "")), now},
		"the hub, with the time of another object": {with(taint("a", "NoSelect", later)), stored, later},
	} {
		who := "admin"
		if strings.HasPrefix(story, "the hub") {
			who = user.APIServerUser
		}
		h := newHub(t)
		if tc.want == refusal {
			h.refuses(who, tc.is, tc.was, tc.want)
			continue
		}
		begin := time.Now().Truncate(time.Second)
		got, _, err := h.write(who, tc.is, tc.was)
		if err != nil {
			t.Errorf("%s: %v", story, err)
			continue
		}
		taints, _, _ := unstructured.NestedSlice(got.Object, "spec", "taints")
		added, _, _ := unstructured.NestedString(taints[0].(map[string]any), "timeAdded")
		at, err := time.Parse(time.RFC3339, added)
		if tc.want == now && (err != nil || at.Before(begin)) || tc.want != now && added != tc.want {
			t.Errorf("%s: the taint was added at %q, want %s", story, added, tc.want)
		}
	}
}

// A forged origin would decide which agent has rights in a cluster.
func TestOnlyTheHubWritesTheOriginOfAnObject(t *testing.T) {
	h := newHub(t)
	h.may = map[string]bool{user.APIServerUser + " create works karmada-es-eu": true,
		"admin create works karmada-es-eu": true}
	for _, plain := range []*unstructured.Unstructured{managedCluster(t, "eu", "default", denied),
		object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: eu},
			spec: {syncMode: Push, apiEndpoint: "https://127.0.0.1:6443"}}`),
		object(t, `{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: it, namespace: eu},
			spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}]}}}`)} {
		for _, key := range []string{"argosy.io/derived-from", "argosy.io/derived", "argosy.io/work"} {
			marked, other := plain.DeepCopy(), plain.DeepCopy()
			marked.SetAnnotations(map[string]string{key: "Cluster"})
			other.SetAnnotations(map[string]string{key: "ManagedCluster", "a": "b"})
			at := "metadata.annotations[" + key + "]: Forbidden: only the hub writes it"
			h.refuses("admin", marked, nil, at, "remove it")
			h.refuses("admin", marked, plain, at, "remove it")
			h.refuses("admin", other, marked, at, "keep its value")
			h.refuses("admin", plain, marked, at, "keep its value")
			labelled := marked.DeepCopy()
			labelled.SetAnnotations(map[string]string{key: "Cluster", "a": "b"})
			if _, _, err := h.write("admin", labelled, marked); err != nil {
				t.Errorf("%s: another annotation: %v", plain.GetKind(), err)
			}
			for _, was := range []*unstructured.Unstructured{nil, plain, other} {
				if _, _, err := h.write(user.APIServerUser, marked, was); err != nil {
					t.Errorf("%s: the hub itself: %v", plain.GetKind(), err)
				}
			}
		}
	}
}

// Policies select clusters by their labels, and rights follow from them.
func TestKlusterletsSetOnlyAddressesOfTheirCluster(t *testing.T) {
	const own, token = "system:open-cluster-management:eu:agent", "system:bootstrap:abcdef"
	const account = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"
	const refusal = "a klusterlet may set only spec.managedClusterClientConfigs and annotations"
	const addressed = denied + `, managedClusterClientConfigs: [{url: "https://eu.example.com:6443"}]`
	h := newHub(t)
	h.users = map[string]*user.DefaultInfo{
		own:     {Name: own, Groups: []string{klusterlet.GroupOf("eu"), klusterlet.Group}},
		token:   {Name: token, Groups: []string{klusterlet.TokenGroup}},
		account: {Name: account, Groups: []string{"system:serviceaccounts"}},
	}
	h.may = map[string]bool{}
	for _, who := range []string{own, token, account} {
		h.may[who+" create managedclustersets/join default"] = true
	}
	plain, labelled := managedCluster(t, "eu", "", addressed), managedCluster(t, "eu", "", addressed)
	plain.SetAnnotations(map[string]string{"agent.open-cluster-management.io/a": "b"})
	labelled.SetLabels(map[string]string{"env": "prod"})
	tainted := managedCluster(t, "eu", "", addressed+", taints: [{key: a, effect: NoSelect}]")
	for _, who := range []string{token, account} {
		stored, _, err := h.write(who, plain, nil)
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		if _, _, err := h.write(own, stored, managedCluster(t, "eu", "default", denied)); err != nil {
			t.Errorf("a klusterlet sets its address: %v", err)
		}
		for _, other := range []*unstructured.Unstructured{labelled, tainted} {
			h.refuses(who, other, nil, refusal)
			h.refuses(own, other, stored, refusal)
		}
		if _, _, err := h.write("admin", labelled, stored); err != nil {
			t.Errorf("an administrator: %v", err)
		}
	}
}

func TestNoClusterIsCreatedBesideAManagedCluster(t *testing.T) {
	cluster := object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: eu},
		spec: {syncMode: Push, apiEndpoint: "https://127.0.0.1:6443"}}`)
	mc := managedCluster(t, "eu", "default", denied)
	h := newHub(t, mc)
	h.refuses("admin", cluster, nil, `ManagedCluster "eu" exists: its klusterlet manages the cluster`,
		"Choose another name, or run `kubectl delete managedcluster eu` first")
	if _, _, err := h.write(user.APIServerUser, cluster, nil); err != nil {
		t.Errorf("the hub itself: %v", err)
	}
	if _, _, err := h.write("admin", cluster, cluster); err != nil {
		t.Errorf("a change of the Cluster: %v", err)
	}
	other := cluster.DeepCopy()
	other.SetName("us")
	if _, _, err := h.write("admin", other, nil); err != nil {
		t.Errorf("another name: %v", err)
	}
	mc.SetAnnotations(map[string]string{"argosy.io/derived-from": "Cluster"})
	if _, _, err := newHub(t, mc).write("admin", cluster, nil); err != nil {
		t.Errorf("what the hub made of a former Cluster: %v", err)
	}
}

// Its klusterlet would delete the objects, past the limits on deletions of Works.
func TestUsersDoNotDeleteAManifestWorkOfTheHub(t *testing.T) {
	const eu = "system:open-cluster-management:eu:agent"
	work := func(annotations map[string]string) *unstructured.Unstructured {
		mw := object(t, `{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: it, namespace: eu},
			spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}]}}}`)
		mw.SetAnnotations(annotations)
		return mw
	}
	h := newHub(t, object(t, `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: web-1,
		namespace: karmada-es-eu}, spec: {workload: {manifests: []}}}`))
	h.may = map[string]bool{user.APIServerUser + " delete works karmada-es-eu": true,
		"admin delete works karmada-es-eu": true}
	for story, tc := range map[string]struct {
		user    string
		deleted *unstructured.Unstructured
		want    string
	}{
		"a rendered one": {"admin", work(map[string]string{"argosy.io/work": "web-1"}),
			"the hub writes it from Work karmada-es-eu/web-1: delete the template or its policy, or the Work"},
		"the question for kinds": {"admin", work(map[string]string{"argosy.io/work": ""}), "which kinds the cluster serves"},
		"by the klusterlet":      {eu, work(map[string]string{"argosy.io/work": "web-1"}), "the hub writes it from Work"},
		"one whose Work is gone": {"admin", work(map[string]string{"argosy.io/work": "web-2"}), ""},
		"a user's own":           {"admin", work(nil), ""},
		"the hub itself":         {user.APIServerUser, work(map[string]string{"argosy.io/work": "web-1"}), ""},
	} {
		err := h.delete(tc.user, tc.deleted)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", story, err, tc.want)
		}
	}
}

// A changed manifest makes its klusterlet delete the former object.
func TestUsersDoNotChangeAManifestWorkOfTheHub(t *testing.T) {
	h := newHub(t)
	h.may = map[string]bool{"admin create works karmada-es-eu": true,
		user.APIServerUser + " create works karmada-es-eu": true}
	work := func(name, mark string) *unstructured.Unstructured {
		mw := object(t, `{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: it, namespace: eu},
			spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`, namespace: shop}}]}}}`)
		mw.SetAnnotations(map[string]string{mark: "web-1"})
		return mw
	}
	h.refuses("admin", work("b", "argosy.io/work"), work("a", "argosy.io/work"), "the hub writes it from a Work")
	for _, who := range []string{"admin", user.APIServerUser} {
		mark := map[string]string{"admin": "a.user/mark", user.APIServerUser: "argosy.io/work"}[who]
		if _, _, err := h.write(who, work("b", mark), work("a", mark)); err != nil {
			t.Errorf("%s changes %s: %v", who, mark, err)
		}
	}
}

// The hub would write it again, and nothing would be removed.
func TestUsersDeleteAClusterByItsSource(t *testing.T) {
	cluster := object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: eu}}`)
	mc := managedCluster(t, "eu", "default", accepted)
	derived := func(obj *unstructured.Unstructured, from string) *unstructured.Unstructured {
		obj = obj.DeepCopy()
		obj.SetAnnotations(map[string]string{"argosy.io/derived-from": from})
		return obj
	}
	for story, tc := range map[string]struct {
		user    string
		objects []*unstructured.Unstructured
		deleted *unstructured.Unstructured
		want    string
	}{
		"the Cluster of a klusterlet": {"admin", []*unstructured.Unstructured{mc}, derived(cluster, "ManagedCluster"),
			"the hub writes it from the ManagedCluster eu: to remove the cluster, run `kubectl delete managedcluster eu`"},
		"the ManagedCluster of a member": {"admin", []*unstructured.Unstructured{cluster}, derived(mc, "Cluster"),
			"the hub writes it from the Cluster eu: to remove the cluster, run `kubectl delete cluster eu`"},
		"a Cluster without its ManagedCluster": {"admin", nil, derived(cluster, "ManagedCluster"), ""},
		"a ManagedCluster without its Cluster": {"admin", nil, derived(mc, "Cluster"), ""},
		"a source":                             {"admin", []*unstructured.Unstructured{derived(mc, "Cluster")}, cluster, ""},
		"the hub itself": {user.APIServerUser, []*unstructured.Unstructured{mc}, derived(cluster, "ManagedCluster"),
			""},
	} {
		err := newHub(t, tc.objects...).delete(tc.user, tc.deleted)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", story, err, tc.want)
		}
	}
}

func TestKlusterletsWriteTheMetadataOfTheirManifestWorks(t *testing.T) {
	const eu, us = "system:open-cluster-management:eu:agent", "system:open-cluster-management:us:agent"
	const forged = "system:open-cluster-management:eu:other"
	work := func(data string) *unstructured.Unstructured {
		return object(t, `{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork,
			metadata: {name: it, namespace: eu}, spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap,
			metadata: {name: a, namespace: shop}, data: {a: "`+data+`"}}]}}}`)
	}
	derived := object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: eu,
		annotations: {argosy.io/derived-from: ManagedCluster}}}`)
	for story, objects := range map[string][]*unstructured.Unstructured{
		"its Cluster is written":         {managedCluster(t, "eu", "default", accepted), derived},
		"its Cluster is not written yet": {managedCluster(t, "eu", "default", accepted)},
	} {
		h := newHub(t, objects...)
		h.users = map[string]*user.DefaultInfo{
			eu:     {Name: eu, Groups: []string{klusterlet.GroupOf("eu"), klusterlet.Group}},
			us:     {Name: us, Groups: []string{klusterlet.GroupOf("us"), klusterlet.Group}},
			forged: {Name: forged, Groups: []string{"system:authenticated"}},
		}
		stored, warnings, err := h.write("admin", work("1"), nil)
		if err != nil || len(warnings) > 0 || len(stored.GetFinalizers()) > 0 {
			t.Fatalf("%s: %v, warnings %q, finalizers %q", story, err, warnings, stored.GetFinalizers())
		}
		finalized := stored.DeepCopy()
		finalized.SetFinalizers([]string{"cluster.open-cluster-management.io/manifest-work-cleanup"})
		if _, _, err := h.write(eu, finalized, stored); err != nil {
			t.Errorf("%s: the klusterlet adds its finalizer: %v", story, err)
		}
		const refusal = " may change only the metadata and the status of ManifestWorks in namespace "
		h.refuses(eu, work("2"), stored, `the klusterlet of cluster "eu"`+refusal+"eu")
		h.refuses(eu, work("2"), nil, `the klusterlet of cluster "eu"`+refusal+"eu")
		h.refuses(us, finalized, stored, `the klusterlet of cluster "us"`+refusal+"us")
		h.refuses(us, work("2"), stored, `the klusterlet of cluster "us"`+refusal+"us")
		h.refuses(forged, work("2"), stored, "permission to create works.work.karmada.io in the namespace karmada-es-eu")
		h.refuses("user", work("2"), stored, "permission to create works.work.karmada.io in the namespace karmada-es-eu")
		if err := h.delete(eu, stored); err == nil {
			t.Errorf("%s: the klusterlet deletes a ManifestWork", story)
		}
	}

	// Without a klusterlet, the hub applies them.
	own := managedCluster(t, "eu", "default", accepted)
	own.SetAnnotations(map[string]string{"argosy.io/derived-from": "Cluster"})
	plain := object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: eu}}`)
	for story, objects := range map[string][]*unstructured.Unstructured{"a member": {own, plain}, "a former member": {own},
		"no cluster": nil} {
		stored, _, err := newHub(t, objects...).write("admin", work("1"), nil)
		if err != nil || !slices.Contains(stored.GetFinalizers(),
			"cluster.open-cluster-management.io/manifest-work-cleanup") {
			t.Errorf("%s: %v, finalizers %q", story, err, stored.GetFinalizers())
		}
	}
}
