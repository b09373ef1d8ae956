package peers

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// ocmDefinitions are the two kinds that the operator of klusterlets defines in a member.
const ocmDefinitions = `
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: appliedmanifestworks.work.open-cluster-management.io},
 spec: {group: work.open-cluster-management.io, scope: Cluster, names: {kind: AppliedManifestWork, plural: appliedmanifestworks},
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}},
   schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: clusterclaims.cluster.open-cluster-management.io},
 spec: {group: cluster.open-cluster-management.io, scope: Cluster, names: {kind: ClusterClaim, plural: clusterclaims},
  versions: [{name: v1alpha1, served: true, storage: true,
   schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: open-cluster-management-agent}}
`

const clusterGroup = "cluster.open-cluster-management.io/v1"

// klusterlet is a member whose agents are those of Open Cluster Management.
type klusterlet struct {
	*kit.Member
	kit.Cluster
	registration, work, bootstrap, dir string
}

func newKlusterlet(t *testing.T, name string) *klusterlet {
	t.Helper()
	return newKlusterletIn(t, sim.Member{Name: name, Nodes: 2, Bare: true})
}

func newKlusterletIn(t *testing.T, with sim.Member) *klusterlet {
	t.Helper()
	programs := kit.Peers(t, "klusterlet-registration", "klusterlet-work")
	m, c := fleet.StartMemberWith(t, with)
	c.Apply(t, ocmDefinitions)
	k := &klusterlet{Member: m, Cluster: c, registration: programs[0], work: programs[1],
		bootstrap: filepath.Join(t.TempDir(), "bootstrap"), dir: filepath.Join(t.TempDir(), "hub")}
	// The account and the namespace are the hub's own, see ocm-hub.md section 1.
	clients, err := kubernetes.NewForConfig(fleet.Hub.Config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := clients.CoreV1().ServiceAccounts("open-cluster-management").CreateToken(t.Context(),
		"agent-registration-bootstrap", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.Config{CurrentContext: "hub",
		Clusters: map[string]*clientcmdapi.Cluster{"hub": {Server: fleet.Hub.Config.Host,
			CertificateAuthorityData: fleet.Hub.Config.CAData, CertificateAuthority: fleet.Hub.Config.CAFile}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"bootstrap": {Token: token.Status.Token}},
		Contexts:  map[string]*clientcmdapi.Context{"hub": {Cluster: "hub", AuthInfo: "bootstrap"}}}
	if err := clientcmd.WriteToFile(config, k.bootstrap); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return k
}

// run runs one of the two agents, with the flags that its Deployment has.
func (k *klusterlet) run(t *testing.T, program string, args ...string) *kit.Process {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	return k.Member.Run(t, nil, program, append([]string{"agent", "--spoke-cluster-name=" + k.Member.Name,
		"--kubeconfig=" + k.Kubeconfig, "--spoke-kubeconfig=" + k.Kubeconfig, "--hub-kubeconfig-dir=" + k.dir,
		"--agent-id=agent", "--disable-leader-election", "--listen=" + address,
		"--namespace=open-cluster-management-agent"}, args...)...)
}

func (k *klusterlet) register(t *testing.T) *kit.Process {
	t.Helper()
	return k.run(t, k.registration, "--bootstrap-kubeconfig="+k.bootstrap, "--cluster-healthcheck-period=2s")
}

func (k *klusterlet) apply(t *testing.T) *kit.Process {
	t.Helper()
	return k.run(t, k.work, "--workload-source-driver=kube",
		"--workload-source-config="+filepath.Join(k.dir, "kubeconfig"), "--status-sync-interval=1s")
}

// accept approves the certificate request of a klusterlet and accepts its cluster, as `clusteradm accept` does.
func (k *klusterlet) accept(t *testing.T) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(fleet.Hub.Config)
	if err != nil {
		t.Fatal(err)
	}
	requests := clients.CertificatesV1().CertificateSigningRequests()
	kit.Eventually(t, "the klusterlet requests a certificate, and an administrator approves it", func() string {
		list, err := requests.List(t.Context(), metav1.ListOptions{
			LabelSelector: "open-cluster-management.io/cluster-name=" + k.Member.Name})
		if err != nil || len(list.Items) == 0 {
			return fmt.Sprintf("%d requests, %v", len(list.Items), err)
		}
		for i := range list.Items {
			csr := &list.Items[i]
			csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"})
			if _, err := requests.UpdateApproval(t.Context(), csr.Name, csr, metav1.UpdateOptions{}); err != nil {
				return err.Error()
			}
		}
		return ""
	})
	k.change(t, map[string]any{"hubAcceptsClient": true, "leaseDurationSeconds": int64(2)})
}

// change sets fields of the spec of its ManagedCluster.
func (k *klusterlet) change(t *testing.T, spec map[string]any) {
	t.Helper()
	fleet.Hub.Change(t, clusterGroup, "ManagedCluster", "", k.Member.Name, func(u *unstructured.Unstructured) {
		for field, value := range spec {
			_ = unstructured.SetNestedField(u.Object, value, "spec", field)
		}
	})
}

// condition returns "status reason" of a condition of its ManagedCluster.
func (k *klusterlet) condition(t *testing.T, kind string) string {
	t.Helper()
	u := fleet.Hub.Find(t, clusterGroup, "ManagedCluster", "", k.Member.Name)
	if u == nil {
		return "no ManagedCluster"
	}
	conditions, _ := kit.Field(u, "status", "conditions").([]any)
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == kind {
			return fmt.Sprint(c["status"], " ", c["reason"])
		}
	}
	return "no condition"
}

func (k *klusterlet) expect(t *testing.T, kind, want string) {
	t.Helper()
	kit.Eventually(t, kind+" is "+want, func() string {
		if got := k.condition(t, kind); got != want {
			return got
		}
		return ""
	})
}

func TestKlusterletOfOpenClusterManagementIsAMember(t *testing.T) {
	k := newKlusterlet(t, "klusterlet")
	name := k.Member.Name
	registration := k.register(t)

	// 1. It registers, is accepted, and is a Cluster of the same name.
	k.accept(t)
	k.expect(t, "HubAcceptedManagedCluster", "True HubClusterAdminAccepted")
	k.expect(t, "ManagedClusterJoined", "True ManagedClusterJoined")
	k.expect(t, "ManagedClusterConditionAvailable", "True ManagedClusterAvailable")
	k.expect(t, "ManagedClusterConditionClockSynced", "True ManagedClusterClockSynced")
	ready(t, name, "True")
	c := &clusterv1alpha1.Cluster{}
	if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil || c.Spec.SyncMode != "Pull" ||
		!strings.HasPrefix(c.Status.KubernetesVersion, "v1.") {
		t.Errorf("the Cluster is %+v, %+v, %v", c.Spec, c.Status, err)
	}

	// 2. It applies a ManifestWork, reports it, and deletes its objects. Namespaces of the hub do not keep it.
	ns := fleet.Namespace(t)
	work := k.apply(t)
	fleet.Hub.Apply(t, fmt.Sprintf(`
{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: web, namespace: %s}, spec: {workload: {manifests: [
 {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}, data: {a: b}},
 {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 2, selector: {matchLabels: {app: web}},
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx}]}}}}]}}}`, name))
	kit.Eventually(t, "the klusterlet applies the ManifestWork", func() string {
		u := fleet.Hub.Find(t, "work.open-cluster-management.io/v1", "ManifestWork", name, "web")
		if text := fmt.Sprint(kit.Field(u, "status", "conditions")); !strings.Contains(text, "AppliedManifestWorkComplete") {
			return text
		}
		if k.Find(t, "apps/v1", "Deployment", "default", "web") == nil {
			return "the member has no Deployment"
		}
		return ""
	})

	// It creates the namespaces of its set, and applies what a ManifestWorkReplicaSet sends where a Placement chooses it.
	for _, u := range fleet.Hub.Apply(t, `
{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSet, metadata: {name: klusterlets}, spec: {
 managedNamespaces: [{name: of-the-set}], clusterSelector: {selectorType: LabelSelector, labelSelector: {matchExpressions: [
  {key: cluster.open-cluster-management.io/clusterset, operator: Exists}]}}}}
---
{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding, metadata: {name: klusterlets, namespace: `+ns+`},
 spec: {clusterSet: klusterlets}}
---
{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {name: all, namespace: `+ns+`}, spec: {predicates: [
 {requiredClusterSelector: {celSelector: {celExpressions: ["managedCluster.metadata.name == '`+name+`'"]}}}]}}`) {
		fleet.Hub.RemoveAtEnd(t, u)
	}
	const sets = "work.open-cluster-management.io/v1alpha1"
	fleet.Hub.Apply(t, `{apiVersion: `+sets+`, kind: ManifestWorkReplicaSet, metadata: {name: replicas, namespace: `+ns+`}, spec: {
 placementRefs: [{name: all}], cascadeDeletionPolicy: Foreground, manifestWorkTemplate: {workload: {manifests: [
  {apiVersion: v1, kind: ConfigMap, metadata: {name: replicas, namespace: of-the-set}, data: {a: b}}]},
  manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: replicas, namespace: of-the-set}, conditionRules: [
   {condition: Progressing, type: CEL, celExpressions: ["object.data.a != 'b'"]}]}]}}}`)
	kit.Eventually(t, "the klusterlet creates the namespace of its set", func() string {
		space := k.Find(t, "v1", "Namespace", "", "of-the-set")
		if space == nil || !strings.Contains(fmt.Sprint(space.GetLabels()), "clusterset.open-cluster-management.io/") {
			return fmt.Sprint(space)
		}
		mc := fleet.Hub.Find(t, clusterGroup, "ManagedCluster", "", name)
		if text := fmt.Sprint(kit.Field(mc, "status", "managedNamespaces")); !strings.Contains(text, "NamespaceAvailable") {
			return text
		}
		return ""
	})
	kit.Eventually(t, "the ManifestWorkReplicaSet is rolled out", func() string {
		text := fmt.Sprint(kit.Field(fleet.Hub.Find(t, sets, "ManifestWorkReplicaSet", ns, "replicas"), "status"))
		if !strings.Contains(text, "Complete") || k.Find(t, "v1", "ConfigMap", "of-the-set", "replicas") == nil {
			return text
		}
		return ""
	})
	fleet.Hub.Remove(t, sets, "ManifestWorkReplicaSet", ns, "replicas")
	kit.Eventually(t, "it takes its objects along", func() string {
		set, object := fleet.Hub.Find(t, sets, "ManifestWorkReplicaSet", ns, "replicas"),
			k.Find(t, "v1", "ConfigMap", "of-the-set", "replicas")
		if set != nil || object != nil {
			return fmt.Sprint(set, object)
		}
		return ""
	})

	// 3. A silent klusterlet is noticed after five intervals of its Lease, and when it is back.
	registration.Kill()
	k.expect(t, "ManagedClusterConditionAvailable", "Unknown ManagedClusterLeaseUpdateStopped")
	ready(t, name, "Unknown")
	registration = k.register(t)
	k.expect(t, "ManagedClusterConditionAvailable", "True ManagedClusterAvailable")
	ready(t, name, "True")

	// 4. A restart of the hub loses nothing, and takes no klusterlet for silent.
	fleet.Lab.Hub.Kill()
	if err := fleet.Lab.Hub.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.expect(t, "ManagedClusterConditionAvailable", "True ManagedClusterAvailable")
	ready(t, name, "True")

	// 5. A denied klusterlet lives on without rights, and an accepted one has them again.
	k.change(t, map[string]any{"hubAcceptsClient": false})
	ready(t, name, "False")
	k.change(t, map[string]any{"hubAcceptsClient": true})
	k.expect(t, "HubAcceptedManagedCluster", "True HubClusterAdminAccepted")
	ready(t, name, "True")
	if registration.Ended() || work.Ended() {
		t.Errorf("an agent ended:\n%s\n%s", registration.Output(), work.Output())
	}

	// 6. Deleted, it leaves nothing: its objects, then its ManifestWorks, its Cluster and its rights go.
	fleet.Hub.Remove(t, clusterGroup, "ManagedCluster", "", name)
	kit.Eventually(t, "the cluster has left", func() string {
		if u := fleet.Hub.Find(t, clusterGroup, "ManagedCluster", "", name); u != nil {
			return fmt.Sprint(u.GetFinalizers(), kit.Field(u, "status", "conditions"))
		}
		if err := fleet.Hub.Get(context.Background(), client.ObjectKey{Name: name}, c); !apierrors.IsNotFound(err) {
			return fmt.Sprint("the Cluster is there: ", err)
		}
		if u := k.Find(t, "apps/v1", "Deployment", "default", "web"); u != nil {
			return "the Deployment is in the member"
		}
		return ""
	})

	// `clusteradm unjoin` refuses while the klusterlet has a record of a ManifestWork.
	records := &unstructured.UnstructuredList{}
	records.SetAPIVersion("work.open-cluster-management.io/v1")
	records.SetKind("AppliedManifestWorkList")
	kit.Eventually(t, "the klusterlet has forgotten all ManifestWorks", func() string {
		if err := k.List(t.Context(), records); err != nil || len(records.Items) > 0 {
			return fmt.Sprint(err, records.Items)
		}
		return ""
	})
}
