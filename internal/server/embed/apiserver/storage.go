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

// Stored is how a custom kind is kept, in one of its versions. The zero value is Kubernetes' own way.
type Stored struct {
	// Uncached has reads and watches go to etcd. A version that is served beside the stored one otherwise has a watch
	// cache of its own, into which every write is decoded, converted and kept a second time, asked for or not.
	Uncached bool
	// Trusted takes what was stored for what the schema wants. Kubernetes prunes and defaults whatever it reads, in case
	// the schema changed since; a kind that got its defaults as it was written, and that its writers keep writing, can do
	// without.
	Trusted bool
	// Amend, when set, is given each object before it is stored, in the version that it was written in. An error refuses
	// the write.
	Amend func(context.Context, *unstructured.Unstructured) error
}

// encrypted has resources kept by other transformers than Kubernetes would have.
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

// restOptions has each custom kind kept as it is to be.
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
	// The version is known here alone: the caller asks for the options without an example.
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

// trusted decodes what is stored in the wanted kind and version as it is.
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
