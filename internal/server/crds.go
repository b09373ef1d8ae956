package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/api/argo"
	"github.com/argosy-io/argosy/api/crds"
	"github.com/argosy-io/argosy/api/kruise"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
)

// establishTimeout bounds how long a server takes to serve a definition. It is long, because a hub that ends has to do
// the same again: on a machine where many servers start at once, 30 seconds were not enough.
const establishTimeout = 3 * time.Minute

// convertPath is the URL path of the conversion webhook for the hub's own kinds.
const convertPath = "/argosy/convert"

// workloadKinds are the families of workload kinds that a hub can define, by their names in --workload-kinds.
var workloadKinds = []struct {
	name string
	crds func() ([]*apiextensionsv1.CustomResourceDefinition, error)
}{
	{"openkruise", kruise.Hub},
	{"argo", argo.CRDs},
}

// workloadCRDs returns the definitions of the families that are wanted.
func workloadCRDs(wanted func(family string) bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, family := range workloadKinds {
		if !wanted(family.name) {
			continue
		}
		crds, err := family.crds()
		if err != nil {
			return nil, fmt.Errorf("read the definitions of %s: %w", family.name, err)
		}
		all = append(all, crds...)
	}
	return all, nil
}

// installCRDs installs the definitions of our kinds, and returns when the server serves them. If all are up to date, it
// lists them and writes nothing.
func installCRDs(ctx context.Context, config *rest.Config) error {
	client, have, err := definitions(ctx, config)
	if err != nil {
		return err
	}
	want, err := crds.Definitions()
	if err != nil {
		return err
	}
	if err := installAll(ctx, client, have, want, len(want)); err != nil {
		return err
	}
	return waitServed(ctx, client.Discovery(), want)
}

// installWorkloadCRDs installs the definitions of workload kinds. It keeps definitions that are not needed any more,
// because deleting one deletes its objects. It does not change a definition that a user installed, for example of a
// newer OpenKruise.
func installWorkloadCRDs(ctx context.Context, config *rest.Config, wanted func(family string) bool) error {
	client, have, err := definitions(ctx, config)
	if err != nil {
		return err
	}
	want, err := workloadCRDs(wanted)
	if err != nil {
		return err
	}
	want = slices.DeleteFunc(want, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, wellknown.InstalledAnnotation, "true")
		current := have[crd.Name]
		return current != nil && current.Annotations[wellknown.InstalledAnnotation] != "true"
	})
	// Install one definition at a time: each costs the server a tenth of a second, in which its other requests wait.
	return installAll(ctx, client, have, want, 1)
}

// runDefinitions installs deleted definitions again, until ctx ends. It does not revert changed ones before the next
// start: two hubs of different versions on one store would overwrite each other.
func (h *Hub) runDefinitions(ctx context.Context) error {
	client, err := metadata.NewForConfig(h.Config())
	if err != nil {
		return fmt.Errorf("create a client for definitions: %w", err)
	}
	gone := make(chan struct{}, 1)
	look := func() {
		select {
		case gone <- struct{}{}:
		default:
		}
	}
	informer := metadatainformer.NewFilteredMetadataInformer(client,
		apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"),
		metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	// Only the name and the existence matter.
	_ = informer.SetTransform(func(obj any) (any, error) {
		if d, ok := obj.(*metav1.PartialObjectMetadata); ok {
			d.ManagedFields, d.Annotations, d.Labels = nil, nil, nil
		}
		return obj, nil
	})
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { look() }}); err != nil {
		return fmt.Errorf("watch definitions: %w", err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); informer.Run(ctx.Done()) }()
	defer func() { <-ended }()
	look()                                       // a definition may have been deleted before the watch
	wanted := func(string) bool { return false } // the start installs the others
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-gone:
		}
		err := restoreCRDs(ctx, h.Config(), wanted)
		wanted = h.config.defines
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "cannot recreate definitions; retrying", "in", retryPeriod)
			time.AfterFunc(retryPeriod, look)
		}
	}
}

// restoreCRDs installs missing definitions: our own, and those of enabled workload kinds.
func restoreCRDs(ctx context.Context, config *rest.Config, wanted func(family string) bool) error {
	client, have, err := definitions(ctx, config)
	if err != nil {
		return err
	}
	own, err := crds.Definitions()
	if err != nil {
		return err
	}
	missing := func(all []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
		return slices.DeleteFunc(all, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
			return have[crd.Name] != nil
		})
	}
	if own = missing(own); len(own) > 0 {
		for _, crd := range own {
			klog.InfoS("a definition of the hub was deleted: it is being recreated, and nothing is deleted in members until then", "definition", crd.Name)
		}
		if err := installAll(ctx, client, have, own, len(own)); err != nil {
			return err
		}
		if err := waitServed(ctx, client.Discovery(), own); err != nil {
			return err
		}
	}
	workloads, err := workloadCRDs(wanted)
	if err != nil {
		return err
	}
	workloads = missing(workloads)
	for _, crd := range workloads {
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, wellknown.InstalledAnnotation, "true")
	}
	return installAll(ctx, client, have, workloads, 1)
}

// definitions returns the definitions on the server by name, and a client to change them.
func definitions(ctx context.Context,
	config *rest.Config) (apiextensions.Interface, map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("create a client for definitions: %w", err)
	}
	list, err := client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list definitions: %w", err)
	}
	have := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for i := range list.Items {
		have[list.Items[i].Name] = &list.Items[i]
	}
	return client, have, nil
}

// installAll installs the definitions that are missing or outdated, several in parallel, and returns when all are
// established.
func installAll(ctx context.Context, client apiextensions.Interface,
	have map[string]*apiextensionsv1.CustomResourceDefinition,
	want []*apiextensionsv1.CustomResourceDefinition, atOnce int) error {
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	var changed errgroup.Group
	changed.SetLimit(atOnce)
	for _, crd := range want {
		if crds.Converted(crd) {
			crd.Spec.Conversion = apiserver.ConvertedAt(convertPath)
		}
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
		current := have[crd.Name]
		if current != nil && upToDate(current, crd) && apiserver.Established(current) {
			continue
		}
		changed.Go(func() error {
			// A store that is busy while many servers start does not end the hub.
			busy := wait.Backoff{Duration: time.Second, Factor: 2, Steps: 5}
			if err := retry.OnError(busy, func(err error) bool {
				return ctx.Err() == nil && (apierrors.IsInternalError(err) || commit.Transient(err))
			}, func() error { return install(ctx, definitions, current, crd) }); err != nil {
				return fmt.Errorf("install definition %s: %w", crd.Name, err)
			}
			return waitEstablished(ctx, definitions, crd.Name)
		})
	}
	return changed.Wait()
}

// waitServed returns when discovery lists every served version of the definitions. A definition is listed a moment
// after it is established; until then, clients treat the kind as unknown.
func waitServed(ctx context.Context, server discovery.DiscoveryInterface,
	crds []*apiextensionsv1.CustomResourceDefinition) error {
	var missing string
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, establishTimeout, true,
		func(context.Context) (bool, error) {
			// The error may concern one group only; use the lists of the others.
			_, lists, err := server.ServerGroupsAndResources()
			listed := map[string]bool{}
			for _, list := range lists {
				for _, r := range list.APIResources {
					listed[list.GroupVersion+"/"+r.Name] = true
				}
			}
			for _, crd := range crds {
				for _, version := range crd.Spec.Versions {
					name := crd.Spec.Group + "/" + version.Name + "/" + crd.Spec.Names.Plural
					if version.Served && !listed[name] {
						missing = fmt.Sprintf("cannot list %s: %v", name, err)
						return false, nil
					}
				}
			}
			return true, nil
		})
	if err != nil {
		return fmt.Errorf("wait for the definitions to be served: %w: %s", err, missing)
	}
	return nil
}

// install creates or updates crd; current is the definition on the server, nil for none.
func install(ctx context.Context, definitions apiextensionsclient.CustomResourceDefinitionInterface, current,
	crd *apiextensionsv1.CustomResourceDefinition) error {
	if current == nil {
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		_, err := definitions.Create(ctx, crd, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // another replica installed it first
			return nil
		}
		return err
	}
	current = current.DeepCopy()
	if upToDate(current, crd) {
		// A stop came between creation and its being served. The server looks at a definition again when it changes, and not
		// when it starts.
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, wellknown.NudgedAnnotation, current.ResourceVersion)
	}
	current.Spec = crd.Spec
	for name, value := range crd.Labels {
		metav1.SetMetaDataLabel(&current.ObjectMeta, name, value)
	}
	for name, value := range crd.Annotations {
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, name, value)
	}
	_, err := definitions.Update(ctx, current, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		return err
	}
	// The server wrote a status in between, or another replica the same definition.
	if current, err = definitions.Get(ctx, crd.Name, metav1.GetOptions{}); err != nil {
		return err
	}
	if upToDate(current, crd) && apiserver.Established(current) {
		return nil
	}
	return install(ctx, definitions, current, crd)
}

// upToDate reports whether current has everything that want has. The server adds defaults to current.
func upToDate(current, want *apiextensionsv1.CustomResourceDefinition) bool {
	return apiequality.Semantic.DeepEqual(current.Spec, want.Spec) &&
		contains(current.Labels, want.Labels) && contains(current.Annotations, want.Annotations)
}

func contains(have, want map[string]string) bool {
	for name, value := range want {
		if v, ok := have[name]; !ok || v != value {
			return false
		}
	}
	return true
}

func waitEstablished(ctx context.Context, definitions apiextensionsclient.CustomResourceDefinitionInterface,
	name string) error {
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	_, err := apiserver.AwaitEstablished(ctx, definitions, name)
	return err
}
