package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/argosy-io/argosy/internal/core/hub/roles"
)

// rightsAge is the maximum age of a cached verdict. Open pages check rights again at the same interval, so a user who
// loses a right stops seeing the objects within twice this time.
const rightsAge = 15 * time.Second

// rights caches verdicts of the API server's authorizer. If the authorizer cannot decide, the right is denied.
type rights struct {
	authorizer func() authorizer.Authorizer
	known      *cache.LRUExpireCache
}

// maxRights bounds the cached verdicts.
const maxRights = 20000

// right is a verb on a resource; an empty namespace or name is all of them.
type right struct{ verb, group, resource, subresource, namespace, name string }

func (r right) missing() *Missing {
	resource := r.resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	return &Missing{Missing: roles.Lack(r.verb, r.group, resource, r.namespace)}
}

func (r right) attributes(u user.Info) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{User: u, Verb: r.verb, APIGroup: r.group, APIVersion: "*", Resource: r.resource,
		Subresource: r.subresource, Namespace: r.namespace, Name: r.name, ResourceRequest: true}
}

// allows reports whether a user has a right.
func (r *rights) allows(ctx context.Context, u user.Info, want right) bool {
	return r.decide(ctx, u, strings.Join([]string{want.verb, want.group, want.resource, want.subresource, want.namespace,
		want.name}, "\x00"), want.attributes(u))
}

// allowsGet reports whether a user may get an address of the hub.
func (r *rights) allowsGet(ctx context.Context, u user.Info, path string) bool {
	return r.decide(ctx, u, path, authorizer.AttributesRecord{User: u, Verb: "get", Path: path})
}

// authorized reports whether a user has a right now. It does not use or change the cache, for callers with many
// questions that cache what follows from them. An error means that the authorizer cannot decide.
func (r *rights) authorized(ctx context.Context, attributes authorizer.AttributesRecord) (bool, error) {
	of := r.authorizer()
	if of == nil {
		return false, errors.New("the API server starts: rights are not known yet")
	}
	decision, _, err := of.Authorize(ctx, attributes)
	if err != nil {
		return false, fmt.Errorf("ask for the rights of the user: %w", err)
	}
	return decision == authorizer.DecisionAllow, nil
}

func (r *rights) decide(ctx context.Context, u user.Info, what string, attributes authorizer.AttributesRecord) bool {
	if r.authorizer() == nil {
		return false // the API server starts: nothing is decided yet
	}
	key := identity(u) + "\x01" + what
	if known, found := r.known.Get(key); found {
		return known == true
	}
	allowed, err := r.authorized(ctx, attributes)
	allowed = err == nil && allowed && ctx.Err() == nil
	if ctx.Err() == nil {
		r.known.Add(key, allowed, rightsAge)
	}
	return allowed
}

// identity returns a text that differs for users who may have different rights.
func identity(u user.Info) string {
	groups := slices.Clone(u.GetGroups())
	slices.Sort(groups)
	var extra []string
	for key, values := range u.GetExtra() {
		extra = append(extra, key+"\x03"+strings.Join(values, "\x04"))
	}
	slices.Sort(extra)
	return strings.Join([]string{u.GetName(), u.GetUID(), strings.Join(groups, "\x02"), strings.Join(extra, "\x02")},
		"\x05")
}
