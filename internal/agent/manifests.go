package agent

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
)

// The objects of an agent in its member have the names of Karmada's, so that its tools find them.
const (
	// Name is the name of the Deployment, of the ClusterRole and of its binding.
	Name = "karmada-agent"
	// Account is the ServiceAccount of the agent.
	Account = "karmada-agent-sa"
	// SecretName is the Secret with the credentials for the hub.
	SecretName = "karmada-kubeconfig"
	// DefaultNamespace is the namespace of the agent.
	DefaultNamespace = "karmada-system"
)

// Deployed describes an agent that runs as a Deployment.
type Deployed struct {
	Cluster, Namespace, Image string
	// Kubeconfig is the kubeconfig of the agent for the hub.
	Kubeconfig []byte
}

// Manifests returns the objects that run an agent in a member, in the order in which they are applied.
func (d Deployed) Manifests() []client.Object {
	labels := map[string]string{workv1alpha2.SystemLabel: "true"}
	of := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	kind := func(version, kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: version, Kind: kind} }
	rbac := rbacv1.SchemeGroupVersion.String()
	namespace := &corev1.Namespace{TypeMeta: kind("v1", "Namespace"), ObjectMeta: of("", d.Namespace)}
	// So that unregister may delete it.
	namespace.Annotations = map[string]string{wellknown.CreatedAnnotation: "true"}
	return []client.Object{
		namespace,
		&corev1.ServiceAccount{TypeMeta: kind("v1", "ServiceAccount"), ObjectMeta: of(d.Namespace, Account)},
		&rbacv1.ClusterRole{TypeMeta: kind(rbac, "ClusterRole"), ObjectMeta: of("", Name), Rules: roles.Full()},
		&rbacv1.ClusterRoleBinding{TypeMeta: kind(rbac, "ClusterRoleBinding"), ObjectMeta: of("", Name),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: d.Namespace, Name: Account}}},
		&corev1.Secret{TypeMeta: kind("v1", "Secret"), ObjectMeta: of(d.Namespace, SecretName),
			Data: map[string][]byte{CredentialsKey: d.Kubeconfig}},
		d.deployment(labels),
	}
}

func (d Deployed) deployment(labels map[string]string) *appsv1.Deployment {
	selector := map[string]string{"app": Name}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector}, Spec: corev1.PodSpec{
		ServiceAccountName: Account,
		Containers: []corev1.Container{{
			Name:  "agent",
			Image: d.Image,
			Args: []string{"agent", "--cluster-name=" + d.Cluster,
				fmt.Sprintf("--credentials-secret=%s/%s", d.Namespace, SecretName)},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false),
				ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
	}}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Template: pod,
			Selector: &metav1.LabelSelector{MatchLabels: selector}},
	}
}

// ParseSecret splits NAMESPACE/NAME.
func ParseSecret(text string) (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("--credentials-secret %q is not of the form NAMESPACE/NAME", text)
	}
	return namespace, name, nil
}
