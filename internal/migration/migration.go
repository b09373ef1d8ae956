// Package migration brings workloads that run in several clusters under the hub's management and back, as
// core/source/migrate decides. It reads and writes the hub and its members with the rights of the user, and keeps its
// state in the policy of each workload.
package migration

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
)

// API is the hub or a member, with access to objects of any kind.
type API struct {
	Dynamic dynamic.Interface
	Mapper  meta.RESTMapper
}

// Resource returns the client for objects of a kind; namespace is ignored for cluster-scoped kinds.
func (a API) Resource(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := a.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return a.Dynamic.Resource(mapping.Resource), nil
	}
	return a.Dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// AnyVersion is Resource, with another version of the kind if the API does not serve this one.
func (a API) AnyVersion(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	in, err := a.Resource(gvk, namespace)
	if !meta.IsNoMatchError(err) {
		return in, err
	}
	mapping, err := a.Mapper.RESTMapping(gvk.GroupKind())
	if err != nil {
		return nil, err
	}
	return a.Resource(mapping.GroupVersionKind, namespace)
}

// PreviewApply applies an object in a member as a dry run, as the hub would, and returns the result; nil if the member
// does not support that.
func (a API) PreviewApply(ctx context.Context, cluster string,
	desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	in, err := a.Resource(desired.GroupVersionKind(), desired.GetNamespace())
	if err != nil {
		return nil, err
	}
	after, err := in.Apply(ctx, desired.GetName(), desired, metav1.ApplyOptions{FieldManager: member.Manager, Force: true,
		DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "dry run") {
		return nil, nil // a webhook there does not support dry runs
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %q refuses what the hub would apply to %s: %w", cluster, NameOf(desired), err)
	}
	return after, nil
}

// PreviewTemplate returns a new template as the hub would store it.
func (a API) PreviewTemplate(ctx context.Context,
	template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	in, err := a.Resource(template.GroupVersionKind(), template.GetNamespace())
	if err != nil {
		return nil, err
	}
	stored, err := in.Create(ctx, template, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsNotFound(err) && template.GetNamespace() != "":
		return template, nil // its namespace is created with it, and no server has defaulted it yet
	case err != nil:
		return nil, fmt.Errorf("the hub refuses %s as a template: %w", NameOf(template), err)
	}
	return stored, nil
}

// Compare returns what would change if a member got the Work. scaled is true if an autoscaler there sets the replicas,
// which then stay. asked reports that the member itself answered.
func (a API) Compare(ctx context.Context, cluster string, work *workv1alpha1.Work, live *unstructured.Unstructured,
	meaning interpret.Interpreter, scaled bool) (report adopt.Report, asked bool, err error) {
	desired, err := adopt.Desired(ctx, work, live, meaning)
	if err != nil {
		return report, false, fmt.Errorf("determine which values cluster %q keeps in its %s: %w", cluster, NameOf(live),
			err)
	}
	if scaled {
		desired = execute.KeepScaled(desired, live)
	}
	after, err := a.PreviewApply(ctx, cluster, desired)
	if err != nil {
		return report, false, err
	}
	if asked = after != nil; !asked {
		after = desired
	}
	return adopt.Compare(live, after, asked), asked, nil
}

// CreateNamespace creates a namespace on the hub if it does not exist; none if the name is empty. A user who may not
// create namespaces gets no error here: the namespace may exist, and otherwise the next write fails.
func CreateNamespace(ctx context.Context, hub client.Client, name string) error {
	if name == "" {
		return nil
	}
	err := hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return fmt.Errorf("create namespace %s on the hub: %w", name, err)
}

// Interpreter returns an interpreter with the customizations of the hub, and without its webhooks.
func Interpreter(ctx context.Context, hub client.Reader) (interpret.Interpreter, error) {
	var list configv1alpha1.ResourceInterpreterCustomizationList
	if err := hub.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list customizations: %w", err)
	}
	return tiers.Offline(scope.Pointers(list.Items)), nil
}

// Workload is an object that runs in several clusters.
type Workload struct {
	GVK             schema.GroupVersionKind
	Namespace, Name string
	// Clusters in the order in which the hub takes them over.
	Clusters []string
	// Acknowledged are the tools and field managers that wrote the object, and that the user stops from writing.
	Acknowledged []string
	// Batch counts from 1. Workloads are sorted by it.
	Batch int
}

func (w Workload) String() string {
	return text.Object(w.GVK.Kind, w.Namespace, w.Name)
}

// IsSame reports whether the other is the same object.
func (w Workload) IsSame(other Workload) bool {
	return w.GVK.GroupKind() == other.GVK.GroupKind() && w.Namespace == other.Namespace && w.Name == other.Name
}

// Migration migrates workloads of one hub.
type Migration struct {
	Hub     API
	Client  client.Client // of the hub
	Meaning interpret.Interpreter
	// Dial returns the API of a member.
	Dial func(ctx context.Context, cluster string) (API, error)
	// Progress reports a step to the user.
	Progress func(format string, args ...any)
	// Soak is how long the pods of a batch are watched before they count as unchanged.
	Soak time.Duration
	// Force continues even if fields change, and pods are restarted.
	Force bool

	members map[string]API
	// seen is the record of each workload as it was read or written last, to notice other commands.
	seen map[string]string
}

// NameOf names an object for people.
func NameOf(u *unstructured.Unstructured) string {
	return text.Object(u.GetKind(), u.GetNamespace(), u.GetName())
}

// Shown returns a value on one line: a text as it is, and anything else as JSON.
func Shown(v any) string {
	if v == nil {
		return "nothing"
	}
	if s, ok := v.(string); ok {
		return s
	}
	return text.JSON(v)
}

// member returns the API of a member.
func (m *Migration) member(ctx context.Context, cluster string) (API, error) {
	if s, ok := m.members[cluster]; ok {
		return s, nil
	}
	s, err := m.Dial(ctx, cluster)
	if err != nil {
		return API{}, err
	}
	if m.members == nil {
		m.members = map[string]API{}
	}
	m.members[cluster] = s
	return s, nil
}
