package apiserver

import (
	"reflect"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
)

// direct stores all kinds in an etcd of this process by direct calls. Kubernetes has a connection per kind: two
// goroutines, buffers, and each write and event is encoded, sent through a socket and decoded twice.
type direct struct {
	generic.RESTOptionsGetter
	shared *directEtcd
}

// directEtcd is shared by all kinds.
type directEtcd struct {
	// client returns a client with its own watch connection.
	client func() *clientv3.Client

	mu    sync.Mutex
	kinds int
	// ordinary is kept Kubernetes' own way, over a connection; with it come the compaction of the store and the metrics of
	// its size.
	ordinary storage.Interface
	close    factory.DestroyFunc
}

func (d direct) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := d.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return o, err
	}
	cached := reflect.ValueOf(o.Decorator).Pointer() != reflect.ValueOf(generic.UndecoratedStorage).Pointer()
	if o.Decorator = d.shared.uncached; cached {
		o.Decorator = d.shared.cached
	}
	return o, nil
}

// cached corresponds to genericregistry.StorageWithCacher.
func (d *directEtcd) cached(c *storagebackend.ConfigForResource, prefix string,
	key func(runtime.Object) (string, error), newObject, newList func() runtime.Object,
	attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface,
	factory.DestroyFunc, error) {
	raw, destroy, err := d.storage(c, newObject, newList, prefix)
	if err != nil {
		return nil, nil, err
	}
	front, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage: raw, Versioner: storage.APIObjectVersioner{}, GroupResource: c.GroupResource,
		EventsHistoryWindow: c.EventsHistoryWindow,
		ResourcePrefix:      prefix, KeyFunc: key, NewFunc: newObject, NewListFunc: newList, GetAttrsFunc: attributes,
		IndexerFuncs: triggers,
		Indexers:     indexers, Codec: c.Codec,
	})
	if err != nil {
		destroy()
		return nil, nil, err
	}
	both := cacher.NewCacheDelegator(front, raw)
	return both, sync.OnceFunc(func() {
		both.Stop()
		front.Stop()
		destroy()
	}), nil
}

// uncached corresponds to generic.UndecoratedStorage.
func (d *directEtcd) uncached(c *storagebackend.ConfigForResource, prefix string,
	_ func(runtime.Object) (string, error), newObject, newList func() runtime.Object,
	_ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
	return d.storage(c, newObject, newList, prefix)
}

// storage keeps one kind.
func (d *directEtcd) storage(c *storagebackend.ConfigForResource, newObject, newList func() runtime.Object,
	prefix string) (storage.Interface, factory.DestroyFunc, error) {
	if err := d.open(c); err != nil {
		return nil, nil, err
	}
	transformer := c.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	client := d.client()
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	both := &kubernetes.Client{Client: client}
	both.Kubernetes = both
	versioner := storage.APIObjectVersioner{}
	s, err := etcd3.New(both, d.ordinary, c.Codec, newObject, newList, c.Prefix, prefix, c.GroupResource, transformer,
		c.LeaseManagerConfig,
		etcd3.NewDefaultDecoder(c.Codec, versioner), versioner)
	if err != nil {
		_ = client.Close()
		d.done()
		return nil, nil, err
	}
	return s, sync.OnceFunc(func() {
		s.Close()
		_ = client.Close()
		d.done()
	}), nil
}

// open starts compaction of the store while kinds are stored in it.
func (d *directEtcd) open(c *storagebackend.ConfigForResource) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kinds == 0 {
		blank := func() runtime.Object { return &unstructured.Unstructured{} }
		if d.ordinary, d.close, err = factory.Create(*c, blank, blank, "/ordinary"); err != nil {
			return err
		}
	}
	d.kinds++
	return nil
}

func (d *directEtcd) done() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kinds--; d.kinds == 0 {
		d.close()
	}
}
