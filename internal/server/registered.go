package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

// registered refuses requests of agents whose certificate is not of the current registration of their cluster, and
// reads of Secrets that are not theirs: RBAC knows only the name in a certificate. It ends their watches, too.
type registered struct {
	hub   proxy.HubReader
	roles rbacclient.ClusterRoleInterface
	// known are the ClusterRoles of agents, from the first call of follow on.
	known  cache.Store
	follow func()
	// open has an *openRequest for each request in progress.
	open sync.Map
}

// openRequest is a request of an agent in progress.
type openRequest struct {
	cluster, key string
	cancel       context.CancelFunc
}

// newRegistered watches the ClusterRoles of agents from the first request of an agent until done is closed.
func newRegistered(config *rest.Config, hub proxy.HubReader, done <-chan struct{}) (*registered, error) {
	c, err := rbacclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	g := &registered{hub: hub, roles: c.ClusterRoles()}
	informer := cache.NewSharedIndexInformer(cache.NewFilteredListWatchFromClient(c.RESTClient(), "clusterroles", "",
		func(o *metav1.ListOptions) { o.LabelSelector = workv1alpha2.SystemLabel + "=true" }), &rbacv1.ClusterRole{}, 0,
		cache.Indexers{})
	if _, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, is any) { g.changed(is.(*rbacv1.ClusterRole).Name, is.(*rbacv1.ClusterRole)) },
		DeleteFunc: func(gone any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(gone); err == nil {
				g.changed(name, nil)
			}
		}}); err != nil {
		return nil, err
	}
	g.known, g.follow = informer.GetStore(), sync.OnceFunc(func() { go informer.Run(done) })
	return g, nil
}

// changed ends the requests in progress whose certificates are no longer valid. role is the ClusterRole with that name,
// nil for none.
func (g *registered) changed(name string, role metav1.Object) {
	g.open.Range(func(o, _ any) bool {
		if r := o.(*openRequest); pull.RoleOf(r.cluster) == name && pull.CheckCertificate(r.cluster, role, r.key) != "" {
			r.cancel()
		}
		return true
	})
}

// handler refuses requests of agents, and leaves all else to next.
func (g *registered) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cluster, is := agentOf(r)
		caller, authenticated := request.UserFrom(r.Context())
		info, ok := request.RequestInfoFrom(r.Context())
		// Others may impersonate an agent. All agents may read one ConfigMap, which tells of a restore.
		if !is || !authenticated || caller.GetName() != pull.User(cluster) || !ok || !info.IsResourceRequest ||
			info.Resource == "configmaps" {
			next.ServeHTTP(w, r)
			return
		}
		g.follow()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		o := &openRequest{cluster: cluster, cancel: cancel,
			key: pull.KeyHash(r.TLS.PeerCertificates[0].RawSubjectPublicKeyInfo)}
		g.open.Store(o, nil)
		defer g.open.Delete(o)
		why, err := g.check(ctx, cluster, o.key, info)
		switch {
		case err != nil:
			apistatus.Write(w, err)
		case why != "":
			apistatus.Write(w, apierrors.NewForbidden(rbacv1.Resource(info.Resource), info.Name, errors.New(why)))
		default:
			next.ServeHTTP(w, r.WithContext(request.WithUser(ctx, withKey(caller, o.key))))
		}
	})
}

// withKey adds the key of an agent's certificate to its user: the API server stores it in certificate requests.
func withKey(agent user.Info, key string) user.Info {
	extra := maps.Clone(agent.GetExtra())
	if extra == nil {
		extra = map[string][]string{}
	}
	extra[wellknown.AgentKeyExtra] = []string{key}
	return &user.DefaultInfo{Name: agent.GetName(), UID: agent.GetUID(), Groups: agent.GetGroups(), Extra: extra}
}

// check returns why an agent must not send a request; empty if it may.
func (g *registered) check(ctx context.Context, cluster, key string, info *request.RequestInfo) (string, error) {
	var role metav1.Object
	if obj, exists, _ := g.known.GetByKey(pull.RoleOf(cluster)); exists {
		role = obj.(*rbacv1.ClusterRole)
	}
	if pull.CheckCertificate(cluster, role, key) != "" { // the watch may be behind
		current, err := g.roles.Get(ctx, pull.RoleOf(cluster), metav1.GetOptions{})
		if role = current; apierrors.IsNotFound(err) {
			role = nil
		} else if err != nil {
			return "", err
		}
		if why := pull.CheckCertificate(cluster, role, key); why != "" {
			return why, nil
		}
	}
	secret := info.APIGroup == "" && info.Resource == "secrets" && info.Verb == "get"
	if !secret && !pull.Pending(role) {
		return "", nil
	}
	hub, err := g.hub()
	if err != nil {
		return "", err
	}
	c := &clusterv1alpha1.Cluster{}
	switch err := hub.Get(ctx, client.ObjectKey{Name: cluster}, c); {
	case commit.Absent(err):
		c = nil // it is being registered
	case err != nil:
		return "", err
	case pull.CheckPulls(cluster, c) != "":
		return pull.CheckPulls(cluster, c), nil
	}
	if !secret {
		return "", nil
	}
	s := &corev1.Secret{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: names.Clusters, Name: info.Name}, s); err != nil {
		return "", err // also if there is none: a join may create it before the API server reads it
	}
	return pull.CheckSecretUse(cluster, s, c), nil
}
