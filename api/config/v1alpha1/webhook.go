package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceInterpreterWebhookConfiguration registers webhooks that interpret kinds.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpreterwebhookconfigurations,scope=Cluster,categories=karmada-io
type ResourceInterpreterWebhookConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Webhooks are called in this order.
	Webhooks []ResourceInterpreterWebhook `json:"webhooks"`
}

// ResourceInterpreterWebhookConfigurationList is a list of ResourceInterpreterWebhookConfiguration.
// +kubebuilder:object:root=true
type ResourceInterpreterWebhookConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceInterpreterWebhookConfiguration `json:"items"`
}

// ResourceInterpreterWebhook is a webhook that interprets kinds.
type ResourceInterpreterWebhook struct {
	// Name of the webhook. It must be fully qualified and unique, such as replicas.example.com.
	Name string `json:"name"`

	// ClientConfig is the address of the webhook: exactly one of url (https) and service.
	ClientConfig admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`

	// Rules are the kinds and operations for which the webhook is called.
	Rules []RuleWithOperations `json:"rules,omitempty"`

	// TimeoutSeconds is the timeout of a call in seconds, 1 to 30. Default: 10.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// InterpreterContextVersions are the versions that the webhook accepts. They must include v1alpha1.
	InterpreterContextVersions []string `json:"interpreterContextVersions"`
}

// RuleWithOperations are kinds with the operations on them.
type RuleWithOperations struct {
	// Operations for which the webhook is called. * means all, and must be alone.
	Operations []InterpreterOperation `json:"operations"`

	Rule `json:",inline"`
}

// InterpreterOperation is an operation of an interpreter, such as InterpretReplica.
type InterpreterOperation string

const (
	InterpreterOperationAll                 InterpreterOperation = "*"
	InterpreterOperationInterpretReplica    InterpreterOperation = "InterpretReplica"
	InterpreterOperationInterpretComponent  InterpreterOperation = "InterpretComponent"
	InterpreterOperationReviseReplica       InterpreterOperation = "ReviseReplica"
	InterpreterOperationRetain              InterpreterOperation = "Retain"
	InterpreterOperationAggregateStatus     InterpreterOperation = "AggregateStatus"
	InterpreterOperationInterpretStatus     InterpreterOperation = "InterpretStatus"
	InterpreterOperationInterpretHealth     InterpreterOperation = "InterpretHealth"
	InterpreterOperationInterpretDependency InterpreterOperation = "InterpretDependency"
)

// Rule selects kinds.
type Rule struct {
	// APIGroups of the kinds. * means all.
	APIGroups []string `json:"apiGroups"`

	// APIVersions of the kinds. * means all.
	APIVersions []string `json:"apiVersions"`

	// Kinds are the names of the kinds. * means all.
	Kinds []string `json:"kinds"`
}

// DependentObjectReference refers to objects that a template depends on, by name or by label.
type DependentObjectReference struct {
	// APIVersion of the object.
	APIVersion string `json:"apiVersion"`

	// Kind of the object.
	Kind string `json:"kind"`

	// Namespace of the object.
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name,omitempty"`

	// LabelSelector of the objects.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
