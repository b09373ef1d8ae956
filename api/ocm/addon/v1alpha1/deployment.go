package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddOnDeploymentConfig has the settings of the pods of add-ons.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=addondeploymentconfigs,scope=Namespaced
type AddOnDeploymentConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the settings.
	Spec AddOnDeploymentConfigSpec `json:"spec"`
}

// AddOnDeploymentConfigList is a list of AddOnDeploymentConfig.
// +kubebuilder:object:root=true
type AddOnDeploymentConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnDeploymentConfig `json:"items"`
}

// AddOnDeploymentConfigSpec has the settings of the pods of add-ons.
type AddOnDeploymentConfigSpec struct {
	// CustomizedVariables are the values of the variables in an AddOnTemplate, such as {{NAME}}.
	// +listType=map
	// +listMapKey=name
	CustomizedVariables []CustomizedVariable `json:"customizedVariables,omitempty"`

	// NodePlacement decides on which nodes the pods run.
	NodePlacement *NodePlacement `json:"nodePlacement,omitempty"`

	// Registries are mirrors of the images. The last one counts for an image that several have.
	Registries []ImageMirror `json:"registries,omitempty"`

	// ProxyConfig is the proxy that the containers use. It sets their environment variables HTTP_PROXY, HTTPS_PROXY and
	// NO_PROXY.
	ProxyConfig ProxyConfig `json:"proxyConfig,omitempty"`

	// AgentInstallNamespace is the namespace of the add-on in the cluster. If it is empty, the namespace of the
	// AddOnTemplate is used.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:default=open-cluster-management-agent-addon
	AgentInstallNamespace string `json:"agentInstallNamespace,omitempty"`

	// ResourceRequirements are the requests and limits of containers. The last one counts for a container that several
	// match.
	// +listType=map
	// +listMapKey=containerID
	ResourceRequirements []ContainerResourceRequirements `json:"resourceRequirements,omitempty"`
}

// CustomizedVariable is the value of a variable.
type CustomizedVariable struct {
	// Name of the variable: letters, digits and underscores, at most 255 characters.
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][_a-zA-Z0-9]*$`
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`

	// Value of the variable, at most 1024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Value string `json:"value"`
}

// NodePlacement decides on which nodes pods run.
type NodePlacement struct {
	// NodeSelector has the labels of the nodes.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations of the pods.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// ImageMirror is a mirror of images.
type ImageMirror struct {
	// Mirror is the registry or repository that replaces the source.
	Mirror string `json:"mirror"`

	// Source is the registry or repository that is replaced. If it is empty, the mirror replaces every registry.
	// +optional
	Source string `json:"source"`
}

// ProxyConfig is a proxy.
type ProxyConfig struct {
	// HTTPProxy is the address of the proxy for HTTP.
	HTTPProxy string `json:"httpProxy,omitempty"`

	// HTTPSProxy is the address of the proxy for HTTPS.
	HTTPSProxy string `json:"httpsProxy,omitempty"`

	// CABundle has the certificates of the authorities of the proxy, in PEM. The containers find them in a file.
	CABundle []byte `json:"caBundle,omitempty"`

	// NoProxy lists hosts and networks that are reached without the proxy, separated by commas.
	NoProxy string `json:"noProxy,omitempty"`
}

// ContainerResourceRequirements are the requests and limits of containers.
type ContainerResourceRequirements struct {
	// ContainerID is RESOURCE:NAME:CONTAINER, such as deployments:web:nginx. Each part is a regular expression or *.
	// +kubebuilder:validation:Pattern=`^(deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\*):.+:.+$`
	ContainerID string `json:"containerID"`

	// Resources are the requests and limits.
	Resources corev1.ResourceRequirements `json:"resources"`
}
