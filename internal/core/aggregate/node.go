package aggregate

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// argoNode has the fields of a Workflow node with the types of Argo's clients. A field of another type makes them fail,
// also for the whole list of Workflows. They ignore unknown fields.
type argoNode struct {
	ID, Name, DisplayName, Type, TemplateName, TemplateScope, Phase, BoundaryID, Message, Progress string
	PodIP, HostNodeName, RestartingPodUID                                                          string
	TemplateRef                                                                                    *struct {
		Name, Template string
		ClusterScope   bool
	}
	StartedAt, FinishedAt      metav1.Time
	EstimatedDuration          int
	ResourcesDuration          map[string]int64
	Daemoned, TaskResultSynced *bool
	NodeFlag                   *struct{ Hooked, Retried bool }
	FailedPodRestarts          int32
	Children, OutboundNodes    []string
	MemoizationStatus          *argoMemoization
	SynchronizationStatus      *struct{ Waiting string }
	Inputs                     *struct {
		Parameters []argoParameter
		Artifacts  []argoArtifact
	}
	Outputs *struct {
		Parameters       []argoParameter
		Artifacts        []argoArtifact
		Result, ExitCode *string
	}
}

type argoMemoization struct {
	Hit            bool
	Key, CacheName string
}

// argoParameter has values of any type.
type argoParameter struct {
	Name, GlobalName string
	Enum             []any
	ValueFrom        *struct {
		Path, JSONPath, JQFilter, Event, Parameter, Expression string
		ConfigMapKeyRef                                        *corev1.ConfigMapKeySelector
		Supplied                                               *struct{}
	}
}

type argoArtifact struct {
	Name, Path, From, FromExpression, GlobalName, SubPath string
	Mode                                                  *int32
	ArchiveLogs                                           *bool
	Optional, RecurseMode, Deleted                        bool
	GCS, Azure, HDFS, HTTP, Raw, Git, Artifactory, Plugin *argoLocation
	S3                                                    *struct {
		argoLocation
		CreateBucketIfNotPresent *struct{ ObjectLocking bool }
	}
	OSS *struct {
		argoLocation
		CreateBucketIfNotPresent bool
	}
	Archive *struct {
		None, Zip *struct{}
		Tar       *struct{ CompressionLevel *int32 }
	}
	ArtifactGC *struct {
		Strategy, ServiceAccountName string
		PodMetadata                  *struct{ Labels, Annotations map[string]string }
	}
}

// argoLocation has the fields of all kinds of artifact locations. Fields with the same name have the same type.
type argoLocation struct {
	Key, Bucket, Endpoint, Region, RoleARN, Container, Blob, Path, URL, Data, HDFSUser, Repo, Revision, Branch,
	SecurityToken string
	Name, Configuration      string
	ConnectionTimeoutSeconds int32
	KrbUsername, KrbRealm, KrbServicePrincipalName,
	DataTransferProtection string
	Insecure, UseSDKCreds *bool
	Force, InsecureIgnoreHostKey, DisableSubmodules, SingleBranch,
	InsecureSkipTLS bool
	Depth             *uint64
	Addresses, Fetch  []string
	Headers           []struct{ Name, Value string }
	LifecycleRule     *struct{ MarkInfrequentAccessAfterDays, MarkDeletionAfterDays int32 }
	EncryptionOptions *struct {
		KmsKeyID, KmsEncryptionContext string
		EnableEncryption               bool
		ServerSideCustomerKeySecret    *corev1.SecretKeySelector
	}
	AccessKeySecret, SecretKeySecret, SessionTokenSecret, CASecret, ServiceAccountKeySecret,
	AccountKeySecret *corev1.SecretKeySelector
	UsernameSecret, PasswordSecret, SSHPrivateKeySecret, KrbCCacheSecret,
	KrbKeytabSecret *corev1.SecretKeySelector
	KrbConfigConfigMap *corev1.ConfigMapKeySelector
}
