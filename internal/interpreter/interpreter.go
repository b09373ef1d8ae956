// Package interpreter runs the hub's interpreter. It rebuilds the tiers when ResourceInterpreterCustomizations and
// ResourceInterpreterWebhookConfigurations change, calls the webhooks, and notifies subscribers about the affected
// kinds. core/workload/interpret decides what the tiers answer.
package interpreter

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/customization"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
)

// Options of the interpreter.
type Options struct {
	// Informers watch customizations and webhook configurations.
	Informers ctrlcache.Informers
	// Cached reads from the informers' cache. Live reads from the API server.
	Cached, Live client.Reader
	// Definitions reads and watches the definitions of kinds with customizations. Mapper finds them.
	Definitions dynamic.Interface
	Mapper      meta.RESTMapper
	// Schema returns the built-in schema of a kind without a definition on the hub, or nil.
	Schema func(schema.GroupVersionKind) *script.Schema
	// Convert converts an object to another version of its kind.
	Convert interpret.Convert
	// Events records events on templates for webhook answers that change nothing. nil disables them.
	Events record.EventRecorder
}

// Concerns reports whether a change may affect objects of a kind.
type Concerns func(schema.GroupKind) bool

// Interpreter is an interpret.Interpreter whose tiers follow the user's configuration. Calls never wait for a change to
// take effect.
type Interpreter struct {
	interpret.Interpreter
	options Options
	client  *caller
	slow    breakers

	customizations, webhooks live
	definitions              *definitions
	// dirty has a token if the configuration changed since the last rebuild.
	dirty chan struct{}

	mu          sync.Mutex
	subscribers []func(Concerns)
	// meaning is the configuration that the current tiers were built from.
	meaning meaning

	// recorded contains the events about results that changed nothing, so that each is recorded once.
	recorded commit.Dedup[answered]
}

var log = ctrl.Log.WithName("interpreter")

// New builds the tiers from the current configuration, so that no object is interpreted with tiers missing. Start
// watches for changes.
func New(ctx context.Context, o Options) (*Interpreter, error) {
	i := &Interpreter{options: o, client: newCaller(o.Live), definitions: newDefinitions(o), dirty: make(chan struct{}, 1)}
	if err := i.rebuild(ctx, o.Live); err != nil {
		return nil, err
	}
	sources := tiers.Sources(&i.customizations, &i.webhooks)
	for n := range sources {
		if sources[n].Name == tiers.Shipped {
			// The other tiers with scripts and webhooks are measured where they are built.
			shipped := &live{}
			shipped.set(measured{sources[n].Tier, tiers.Shipped})
			sources[n].Tier = shipped
		}
	}
	i.Interpreter = interpret.New(tiers.TiersOf(sources)...)
	for _, kind := range []client.Object{&configv1alpha1.ResourceInterpreterCustomization{},
		&configv1alpha1.ResourceInterpreterWebhookConfiguration{}} {
		informer, err := o.Informers.GetInformer(ctx, kind)
		if err == nil {
			_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(any) { i.touch() },
				UpdateFunc: func(any, any) { i.touch() },
				DeleteFunc: func(any) { i.touch() },
			})
		}
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return i, nil
}

// debounce is how long changes are collected, because many customizations may be applied at once.
const debounce = 20 * time.Millisecond

// Start implements manager.Runnable. It rebuilds the tiers after changes until ctx ends.
func (i *Interpreter) Start(ctx context.Context) error {
	defer i.client.close()
	i.definitions.start(ctx, i.touch)
	retry := time.NewTimer(0)
	retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-i.dirty:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(debounce):
			}
		case <-retry.C:
		}
		if err := i.rebuild(ctx, i.options.Cached); err != nil && ctx.Err() == nil {
			log.Error(err, "Could not read the interpreter configuration. The previous one stays in effect.")
			retry.Reset(time.Second)
		}
	}
}

// NeedLeaderElection returns false: standby replicas interpret objects too.
func (i *Interpreter) NeedLeaderElection() bool { return false }

// OnChange subscribes notify to changes. It is called after a change took effect and must not block.
func (i *Interpreter) OnChange(notify func(Concerns)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.subscribers = append(i.subscribers, notify)
}

func (i *Interpreter) touch() {
	select {
	case i.dirty <- struct{}{}:
	default:
	}
}

// rebuild builds the tiers from the configuration that r reads, and notifies subscribers about the affected kinds.
func (i *Interpreter) rebuild(ctx context.Context, r client.Reader) error {
	var customizations configv1alpha1.ResourceInterpreterCustomizationList
	if err := r.List(ctx, &customizations, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list customizations: %w", err)
	}
	var configurations configv1alpha1.ResourceInterpreterWebhookConfigurationList
	if err := r.List(ctx, &configurations, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list webhook configurations: %w", err)
	}
	known, err := i.definitions.lookUp(ctx, kindsOf(customizations.Items, configurations.Items))
	if err != nil {
		return err
	}
	next := newMeaning(customizations.Items, configurations.Items, known)

	i.mu.Lock()
	concerns, changed := i.meaning.changed(next)
	i.meaning = next
	subscribers := i.subscribers
	i.mu.Unlock()
	if !changed {
		return nil
	}
	rics := make([]*configv1alpha1.ResourceInterpreterCustomization, len(customizations.Items))
	for n := range customizations.Items {
		rics[n] = &customizations.Items[n]
	}
	hooks := make([]*configv1alpha1.ResourceInterpreterWebhookConfiguration, len(configurations.Items))
	for n := range configurations.Items {
		hooks[n] = &configurations.Items[n]
	}
	i.client.prune(hooks)
	i.slow.reset(concerns)
	i.recorded.ForgetIf(func(answered) bool { return true })
	convert := known.convert(i.options.Convert)
	customized := guarded{customization.New(rics,
		customization.Options{Schema: known.schema(i.options.Schema), Convert: convert, Below: tiers.Below()}), &i.slow}
	i.customizations.set(measured{customized, tiers.Customization})
	hooked := webhook.New(hooks, webhook.Options{Call: i.client.call, NewID: func() types.UID {
		return types.UID(uuid.NewString())
	}, Convert: convert, Unchanged: i.unchanged})
	i.webhooks.set(measured{hooked, tiers.Webhook})
	log.Info("Interpreter configuration changed", "customizations", len(rics), "webhookConfigurations", len(hooks))
	for _, notify := range subscribers {
		notify(concerns)
	}
	return nil
}

// live is a tier that can be replaced, with what it found so far.
type live struct {
	current atomic.Pointer[remembered]
}

type remembered struct {
	interpret.Tier
	found sync.Map // question → interpret.Implementation
}

// question identifies an operation for objects of a kind in a version.
type question struct {
	schema.GroupVersionKind
	operation configv1alpha1.InterpreterOperation
}

func (l *live) set(t interpret.Tier) { l.current.Store(&remembered{Tier: t}) }

// Find implements interpret.Tier.
func (l *live) Find(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) interpret.Implementation {
	current, key := l.current.Load(), question{kind, operation}
	if found, ok := current.found.Load(key); ok {
		return found.(interpret.Implementation)
	}
	found := current.Tier.Find(kind, operation)
	current.found.Store(key, found)
	return found
}
