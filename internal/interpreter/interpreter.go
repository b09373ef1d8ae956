// Package interpreter is the hub's interpreter: its tiers follow the ResourceInterpreterCustomizations and
// ResourceInterpreterWebhookConfigurations as they change. What tiers answer is decided in core/interpret; here they
// are made anew and swapped, webhooks are reached, and whoever asked to be told learns which kinds mean something else
// now.
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
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/interpret/customization"
	"github.com/argosy-io/argosy/internal/core/interpret/script"
	"github.com/argosy-io/argosy/internal/core/interpret/tiers"
	"github.com/argosy-io/argosy/internal/core/interpret/webhook"
)

// Options of the interpreter.
type Options struct {
	// Informers tell of customizations and webhook configurations.
	Informers ctrlcache.Informers
	// Cached reads what the informers know, Live reads the hub itself.
	Cached, Live client.Reader
	// Definitions reads and watches the definitions of the kinds that customizations are about; Mapper finds them.
	Definitions dynamic.Interface
	Mapper      meta.RESTMapper
	// Schema is what is known of a kind that has no definition on the hub; nil where nothing is.
	Schema func(schema.GroupVersionKind) *script.Schema
	// Convert brings an object to another version of its kind.
	Convert interpret.Convert
	// Events tells templates of answers that are hardly meant; nil for nobody.
	Events record.EventRecorder
}

// Concerns says whether objects of a kind may mean something else than before.
type Concerns func(schema.GroupKind) bool

// Interpreter is an interpret.Interpreter whose tiers follow what users say. Asking it never waits for a change to be
// taken in.
type Interpreter struct {
	interpret.Interpreter
	options Options
	client  *caller
	slow    breakers

	customizations, webhooks live
	definitions              *definitions
	// dirty holds at most one token: something changed.
	dirty chan struct{}

	mu   sync.Mutex
	tell []func(Concerns)
	// meaning is what the current tiers were made of.
	meaning meaning

	// told are the answers that change nothing, of which a template was told.
	told commit.Dedup[answered]
}

var log = ctrl.Log.WithName("interpreter")

// New reads what there is, so that nothing is interpreted by less than all tiers, and follows changes once it is
// started.
func New(ctx context.Context, o Options) (*Interpreter, error) {
	i := &Interpreter{options: o, client: newCaller(o.Live), definitions: newDefinitions(o), dirty: make(chan struct{}, 1)}
	if err := i.rebuild(ctx, o.Live); err != nil {
		return nil, err
	}
	i.Interpreter = interpret.New(tiersOf(tiers.Sources(&i.customizations, &i.webhooks))...)
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

func tiersOf(sources []interpret.Source) []interpret.Tier {
	all := make([]interpret.Tier, len(sources))
	for n, s := range sources {
		all[n] = s.Tier
	}
	return all
}

// settle is how long changes are gathered: a folder of customizations that is applied comes one by one.
const settle = 20 * time.Millisecond

// Start implements manager.Runnable: it takes changes in, until ctx ends.
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
			case <-time.After(settle):
			}
		case <-retry.C:
		}
		if err := i.rebuild(ctx, i.options.Cached); err != nil && ctx.Err() == nil {
			log.Error(err, "read the customizations; the previous ones stay in effect")
			retry.Reset(time.Second)
		}
	}
}

// NeedLeaderElection lets a replica that stands by know what kinds mean.
func (i *Interpreter) NeedLeaderElection() bool { return false }

// OnChange calls tell for each change from now on, when it has taken effect. tell must not wait for anything.
func (i *Interpreter) OnChange(tell func(Concerns)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tell = append(i.tell, tell)
}

func (i *Interpreter) touch() {
	select {
	case i.dirty <- struct{}{}:
	default:
	}
}

// rebuild makes the tiers of what the reader knows now, and tells of the kinds that this changes.
func (i *Interpreter) rebuild(ctx context.Context, r client.Reader) error {
	var customizations configv1alpha1.ResourceInterpreterCustomizationList
	if err := r.List(ctx, &customizations, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list customizations: %w", err)
	}
	var configurations configv1alpha1.ResourceInterpreterWebhookConfigurationList
	if err := r.List(ctx, &configurations, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list webhook configurations: %w", err)
	}
	known, err := i.definitions.of(ctx, kindsOf(customizations.Items, configurations.Items))
	if err != nil {
		return err
	}
	next := newMeaning(customizations.Items, configurations.Items, known)

	i.mu.Lock()
	concerns, changed := i.meaning.changed(next)
	i.meaning = next
	tell := i.tell
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
	i.client.keep(hooks)
	i.slow.forget(concerns)
	i.told.ForgetIf(func(answered) bool { return true })
	convert := known.convert(i.options.Convert)
	i.customizations.set(&guarded{tier: customization.New(rics,
		customization.Options{Schema: known.schema(i.options.Schema), Convert: convert, Below: tiers.Below()}),
		breakers: &i.slow})
	i.webhooks.set(webhook.New(hooks, webhook.Options{Call: i.client.call, NewID: func() types.UID {
		return types.UID(uuid.NewString())
	}, Convert: convert, Unchanged: i.unchanged}))
	log.Info("follows what users say of kinds", "customizations", len(rics), "webhookConfigurations", len(hooks))
	for _, t := range tell {
		t(concerns)
	}
	return nil
}

// live is a tier that is another one from time to time.
type live struct {
	tier atomic.Pointer[interpret.Tier]
}

func (l *live) set(t interpret.Tier) { l.tier.Store(&t) }

// Hooks implements interpret.Tier.
func (l *live) Hooks(kind schema.GroupKind) *interpret.Hooks { return (*l.tier.Load()).Hooks(kind) }

// HooksOf implements interpret.Versioned.
func (l *live) HooksOf(kind schema.GroupVersionKind) *interpret.Hooks {
	return interpret.HooksOf(*l.tier.Load(), kind)
}

// By implements interpret.Namer.
func (l *live) By(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) []string {
	if n, ok := (*l.tier.Load()).(interpret.Namer); ok {
		return n.By(kind, operation)
	}
	return nil
}
