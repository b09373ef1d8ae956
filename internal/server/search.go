package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/member/tunnel"
	"github.com/argosy-io/argosy/internal/search"
	"github.com/argosy-io/argosy/internal/server/embed/tables"
)

// newSearch returns the caches of member objects, until the hub stops. They read nothing in a member before there is a
// ResourceRegistry or a search.
func newSearch(d Deps, hub proxy.HubReader, passes *proxy.Proxy, tunnels *tunnel.Tunnels) (*search.Engine, error) {
	ctx, stop := context.WithCancel(context.Background())
	go func() { <-d.Done; stop() }()
	cache, err := search.Cache(d.Config)
	if err != nil {
		return nil, fmt.Errorf("create the cache of search: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(d.Config)
	if err != nil {
		return nil, fmt.Errorf("create the client of search: %w", err)
	}
	go func() {
		served := func(ctx context.Context) (bool, error) {
			return kinds.RESTClient().Get().AbsPath("/apis/"+searchv1alpha1.GroupVersion.String()).Do(ctx).Error() == nil, nil
		}
		if wait.PollUntilContextCancel(ctx, time.Second, false, served) != nil {
			return // the hub stops
		}
		if err := cache.Start(ctx); err != nil {
			klog.ErrorS(err, "search cannot read the hub")
		}
	}()
	of := func() *member.Members {
		members := member.New(member.Options{Clusters: cache, Secrets: secrets{hub}, Tunnels: tunnels,
			Limits: d.Settings.Members.limits()})
		go func() { _ = members.Start(ctx) }() // it returns nil
		return members
	}
	e := search.New(ctx, search.Options{Hub: cache, Members: of(), Searching: of(),
		Memory: d.Settings.Members.SearchMemory.Value(), Authorizer: d.Authorizer, Permits: passes.Permits,
		Config: d.Config, Rows: tables.Row,
		Cluster: passes.Handler(http.NotFoundHandler())})
	go e.Run()
	return e, nil
}

// secrets reads with a client that is created later.
type secrets struct{ hub proxy.HubReader }

// Get implements client.Reader.
func (s secrets) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	r, err := s.hub()
	if err != nil {
		return err
	}
	return r.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (s secrets) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	r, err := s.hub()
	if err != nil {
		return err
	}
	return r.List(ctx, list, opts...)
}
