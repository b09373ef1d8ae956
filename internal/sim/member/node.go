package member

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/internal/sim/kruise"
)

// node returns the n-th node of a member, ready from the start. kubeletPort is the port of its kubelet.
func node(m sim.Member, n int, kubeletPort int32, now metav1.Time) (*corev1.Node, error) {
	name := fmt.Sprintf("%s-node-%d", m.Name, n)
	has := corev1.ResourceList{}
	for resourceName, amount := range map[corev1.ResourceName]string{
		corev1.ResourceCPU:              m.NodeCPU,
		corev1.ResourceMemory:           m.NodeMemory,
		corev1.ResourcePods:             m.NodePods,
		corev1.ResourceEphemeralStorage: "1Ti",
	} {
		q, err := resource.ParseQuantity(amount)
		if err != nil {
			return nil, fmt.Errorf("%s of a node, %q: %w", resourceName, amount, err)
		}
		has[resourceName] = q
	}
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
		"type":                 "kwok",
	}
	if m.Region != "" {
		labels[corev1.LabelTopologyRegion] = m.Region
	}
	zone := m.Zone
	if len(m.Zones) > 0 {
		zone = m.Zones[n%len(m.Zones)]
	}
	if zone != "" {
		labels[corev1.LabelTopologyZone] = zone
	}
	out := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Status: corev1.NodeStatus{
			Phase:       corev1.NodeRunning,
			Capacity:    has,
			Allocatable: has,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				Message:           "kubelet is posting ready status",
				LastHeartbeatTime: now, LastTransitionTime: now,
			}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: kubeletHost}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{
				KubeletEndpoint: corev1.DaemonEndpoint{Port: kubeletPort}},
			NodeInfo: corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: "fake",
				ContainerRuntimeVersion: "sim"},
		},
	}
	if m.Provider != "" {
		out.Spec.ProviderID = m.Provider + "://" + name
	}
	return out, nil
}

// furnish makes what a cluster comes with: nodes, a class of storage, the namespace of OpenKruise. What is there
// already stays, except where nodes have their kubelet.
func furnish(ctx context.Context, client kubernetes.Interface, m sim.Member, kubeletPort int32) error {
	for n := range m.Nodes {
		obj, err := node(m, n, kubeletPort, metav1.Now())
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Nodes().Create(ctx, obj, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = client.CoreV1().Nodes().Patch(ctx, obj.Name, types.StrategicMergePatchType, fmt.Appendf(nil,
				`{"status":{"addresses":[{"type":%q,"address":%q}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`,
				corev1.NodeInternalDNS, kubeletHost, kubeletPort), metav1.PatchOptions{}, "status")
		}
		if err != nil {
			return fmt.Errorf("make node %s: %w", obj.Name, err)
		}
	}
	made := func(what string, err error) error {
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		return fmt.Errorf("make %s: %w", what, err)
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kruise.SystemNamespace}}
	_, err := client.CoreV1().Namespaces().Create(ctx, system, metav1.CreateOptions{})
	if err := made("namespace "+system.Name, err); err != nil {
		return err
	}
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: storageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: provisioner,
	}
	_, err = client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	return made("the storage class", err)
}
