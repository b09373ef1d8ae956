package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/crds"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/commit"
	core "github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// asker asks the klusterlets of accepted clusters which kinds their clusters serve: those of the definitions on the
// hub.
type asker struct {
	base
	// own are the names of the hub's own definitions.
	own map[string]bool
}

func newAsker(b base) (*asker, error) {
	own, err := crds.Definitions()
	if err != nil {
		return nil, err
	}
	a := &asker{base: b, own: map[string]bool{}}
	for _, crd := range own {
		a.own[crd.Name] = true
	}
	return a, nil
}

func (a *asker) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	mc, err := a.managed(ctx, req.Name)
	if err != nil || mc == nil {
		return reconcile.Result{}, err
	}
	was, err := a.kindsWork(ctx, mc.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if mc.DeletionTimestamp != nil || !mc.Spec.HubAcceptsClient {
		return a.withdraw(ctx, mc, was)
	}
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := a.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list definitions: %w", err)
	}
	var names []string
	for i := range all.Items {
		if d := &all.Items[i]; !a.own[d.Name] && d.DeletionTimestamp == nil {
			names = append(names, d.Name)
		}
	}
	want := core.AskForKinds(mc.Name, names, was)
	if was != nil {
		_, err = commit.Update(ctx, a.client, was, want)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err = a.client.Create(ctx, want)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: lookAgain}, nil // the registrar creates the namespace
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, fmt.Errorf("ask the klusterlet of cluster %q for its kinds: %w", mc.Name, err)
	}
	return reconcile.Result{}, nil
}

// withdrawal bounds the time that an available klusterlet may take to clean up after the ManifestWork that asks for
// kinds. It keeps its own record of the ManifestWork for an hour if it does not see the deletion.
const withdrawal = 10 * time.Second

// withdraw deletes the ManifestWork that asks for kinds. Nothing was applied by it, so a klusterlet that is silent is
// not awaited.
func (a *asker) withdraw(ctx context.Context, mc *clusterv1.ManagedCluster, mw *ocmv1.ManifestWork) (reconcile.Result,
	error) {
	if mw == nil {
		return reconcile.Result{}, nil
	}
	if mw.DeletionTimestamp == nil { // the deletion causes an event
		return reconcile.Result{}, commit.Delete(ctx, a.client, mw)
	}
	left := withdrawal - a.Clock.Since(mw.DeletionTimestamp.Time)
	if left > 0 && meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ClusterAvailable) {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return reconcile.Result{}, commit.RemoveFinalizer(ctx, a.client, mw, ocmv1.ManifestWorkFinalizer)
}

// kindsWork returns the ManifestWork that asks for kinds; nil for none.
func (b *base) kindsWork(ctx context.Context, cluster string) (*ocmv1.ManifestWork, error) {
	mw := &ocmv1.ManifestWork{}
	err := b.client.Get(ctx, types.NamespacedName{Namespace: cluster, Name: core.KindsWork}, mw)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if _, ours := mw.Annotations[wellknown.WorkAnnotation]; err == nil && !ours {
		err = errors.New("it is not the hub's: rename or delete it")
	}
	if err != nil {
		return nil, fmt.Errorf("read ManifestWork %s/%s: %w", cluster, core.KindsWork, err)
	}
	return mw, nil
}

func clusterOfKinds(_ context.Context, mw client.Object) []reconcile.Request {
	if mw.GetName() != core.KindsWork {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: mw.GetNamespace()}}}
}

// stable matches the versions that each Kubernetes serves that has the kind.
var stable = regexp.MustCompile(`^v[0-9]+$`)

// kubernetes are the kinds of Kubernetes itself in stable versions. A klusterlet does not report which of them its
// cluster serves.
var kubernetes = func() (lists []*metav1.APIResourceList) {
	byVersion := map[string]*metav1.APIResourceList{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if !stable.MatchString(gvk.Version) || strings.HasSuffix(gvk.Kind, "List") ||
			strings.HasSuffix(gvk.Kind, "Options") || gvk.Kind == "WatchEvent" {
			continue
		}
		gv := gvk.GroupVersion().String()
		if byVersion[gv] == nil {
			byVersion[gv] = &metav1.APIResourceList{GroupVersion: gv}
			lists = append(lists, byVersion[gv])
		}
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		byVersion[gv].APIResources = append(byVersion[gv].APIResources,
			metav1.APIResource{Name: plural.Resource, Kind: gvk.Kind})
	}
	return append(lists, &metav1.APIResourceList{GroupVersion: apiextensionsv1.SchemeGroupVersion.String(),
		APIResources: []metav1.APIResource{{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}}})
}()

// setKinds sets the kinds of a Cluster to what its klusterlet reports. Before the first answer it sets nothing.
func (p *pairer) setKinds(c *clusterv1alpha1.Cluster, asked *ocmv1.ManifestWork) {
	lists, failed, known := core.Served(asked)
	if !known {
		return
	}
	c.Status.APIEnablements = membership.APIEnablements(append(lists, kubernetes...))
	current := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements)
	meta.SetStatusCondition(&c.Status.Conditions,
		membership.CompleteAPIEnablements(current, c.Status.APIEnablements, failed, p.Clock.Now()))
}
