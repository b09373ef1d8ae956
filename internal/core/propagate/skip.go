package propagate

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// controlPlane are the API groups that configure the hub itself.
var controlPlane = map[string]bool{
	"apps.karmada.io":        true,
	"autoscaling.karmada.io": true,
	"cluster.karmada.io":     true,
	"policy.karmada.io":      true,
	"work.karmada.io":        true,
	"config.karmada.io":      true,
	"remedy.karmada.io":      true,
	"search.karmada.io":      true,
	"events.k8s.io":          true,

	"addon.open-cluster-management.io":   true,
	"cluster.open-cluster-management.io": true,
	"work.open-cluster-management.io":    true,
}

// Propagable reports whether objects of a kind may be templates at all.
func Propagable(gk schema.GroupKind) bool {
	if gk.Group == releasev1alpha1.GroupVersion.Group && gk.Kind != releasev1alpha1.EnclosedManifestKind.Kind {
		return false
	}
	return !controlPlane[gk.Group] && !kind.Lookup(gk).MemberMade && gk != schema.GroupKind{Kind: "Event"} &&
		gk != multiclusterv1alpha1.ClusterProfileKind && gk != multiclusterv1alpha1.DecisionKind &&
		gk != schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}
}

// Exclusion is why an object is never a template, whatever policies select.
type Exclusion string

// The exclusions; the zero value is none.
const (
	// ExcludedKind: it configures the hub, or members create it themselves.
	ExcludedKind Exclusion = "its kind configures the hub, or members create such objects themselves"
	// ExcludedNamespace: it is in, or is, a namespace of Kubernetes or of the hub.
	ExcludedNamespace Exclusion = "each cluster has the namespaces of Kubernetes and of the hub for itself"
	// ExcludedOwn: every API server creates it in each namespace.
	ExcludedOwn Exclusion = "the API server of each cluster creates one of its own"
)

// ExclusionOf returns why t is never a template; empty if it may be one.
func ExclusionOf(t match.Template) Exclusion {
	gk := t.GroupKind()
	switch {
	case !Propagable(gk):
		return ExcludedKind
	case names.Reserved(t.Namespace), gk == schema.GroupKind{Kind: "Namespace"} && names.Reserved(t.Name):
		return ExcludedNamespace
	case gk == schema.GroupKind{Kind: "ConfigMap"} &&
		(t.Name == "extension-apiserver-authentication" || t.Name == "kube-root-ca.crt"):
		return ExcludedOwn
	}
	return ""
}

// Excluded reports whether t is never a template.
func Excluded(t match.Template) bool { return ExclusionOf(t) != "" }

// ManagedElsewhere reports whether another component propagates the template, so that policies do not apply.
func ManagedElsewhere(t match.Template) bool { return t.Labels[policyv1alpha1.ClaimedByLabel] != "" }
