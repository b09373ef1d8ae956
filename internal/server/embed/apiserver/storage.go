package apiserver

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
)

// Stored is how a version of a custom kind is stored. The zero value is Kubernetes' own way.
type Stored struct {
	// Uncached sends reads and watches to etcd. Otherwise each version other than the stored one has its own watch cache,
	// into which every write is decoded and converted again, used or not.
	Uncached bool
	// Trusted skips pruning and defaulting of stored objects. Kubernetes does both on each read, in case the schema
	// changed. It is not needed for kinds whose defaults are set at the write and that are written again regularly.
	Trusted bool
	// Amend, if set, can change each object before it is stored, in the version of the request. An error rejects the
	// write.
	Amend func(context.Context, *unstructured.Unstructured) error
}

// encrypted replaces the transformers of resources.
type encrypted struct {
	generic.RESTOptionsGetter
	transform func(schema.GroupResource, value.Transformer) value.Transformer
}

func (e encrypted) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := e.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return o, err
	}
	c := *o.StorageConfig
	own := c.Transformer
	if own == nil {
		own = identity.NewEncryptCheckTransformer()
	}
	c.Transformer = e.transform(resource, own)
	o.StorageConfig = &c
	return o, nil
}

// restOptions applies Stored to custom kinds.
type restOptions struct {
	generic.RESTOptionsGetter
	stored func(schema.GroupVersionKind) Stored
	// uncached keeps a kind without a cache.
	uncached generic.StorageDecorator
}

func (r restOptions) GetRESTOptions(resource schema.GroupResource,
	example runtime.Object) (generic.RESTOptions, error) {
	o, err := r.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return o, err
	}
	own := o.Decorator
	// Only here the version is known: the caller requests the options without an example object.
	o.Decorator = func(c *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newObject, newList func() runtime.Object,
		attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface,
		factory.DestroyFunc, error) {
		kind := newObject().GetObjectKind().GroupVersionKind()
		how, decorate := r.stored(kind), own
		if how.Trusted {
			trusting := *c
			trusting.Codec = trusted{c.Codec, kind}
			c = &trusting
		}
		if how.Uncached {
			decorate = r.uncached
		}
		s, destroy, err := decorate(c, prefix, key, newObject, newList, attributes, triggers, indexers)
		if err == nil && how.Amend != nil {
			s = amending{s, how.Amend}
		}
		return s, destroy, err
	}
	return o, nil
}

// trusted decodes stored objects without pruning and defaulting.
type trusted struct {
	runtime.Codec
	kind schema.GroupVersionKind
}

func (t trusted) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		return t.Codec.Decode(data, defaults, into)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, nil, err
	}
	if object == nil {
		return nil, nil, errors.New("the stored object is null")
	}
	if object["apiVersion"] != t.kind.GroupVersion().String() || object["kind"] != t.kind.Kind {
		return t.Codec.Decode(data, defaults, into)
	}
	u.Object = object
	return u, &t.kind, nil
}

// amending changes objects before they are stored.
type amending struct {
	storage.Interface
	amend func(context.Context, *unstructured.Unstructured) error
}

func (a amending) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if err := a.amend(ctx, u); err != nil {
			return err
		}
	}
	return a.Interface.Create(ctx, key, obj, out, ttl)
}

func (a amending) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions,
	tryUpdate storage.UpdateFunc, cached runtime.Object) error {
	return a.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions,
		func(input runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
			output, ttl, err := tryUpdate(input, meta)
			if u, ok := output.(*unstructured.Unstructured); ok && err == nil {
				err = a.amend(ctx, u)
			}
			return output, ttl, err
		}, cached)
}
