package search

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/apistatus"
)

const (
	// verdictAge is the maximum age of a verdict. With the interval of the checks in a watch, a right that was taken away
	// ends within 30 seconds.
	verdictAge = 15 * time.Second
	// unknownAge is that of a question which a member did not answer.
	unknownAge = 3 * time.Second
	// maxVerdicts bounds the cached verdicts, and askLimit the concurrent questions of a request.
	maxVerdicts = 50_000
	askLimit    = 16
	// askTimeout bounds the wait for all members, and oneTimeout that for one.
	askTimeout, oneTimeout = 5 * time.Second, 2 * time.Second
)

// verdict is the permission of a user to read in a cluster.
type verdict int

const (
	// denied: also the name of the cluster must stay hidden.
	denied verdict = iota
	// unknown: the user may send requests to the cluster, but the cluster did not say what it permits.
	unknown
	allowed
)

// Permits asks a member whether it permits a request of a user, as clusters/proxy would send it.
type Permits func(ctx context.Context, caller user.Info, cluster string,
	what authorizationv1.ResourceAttributes) (bool, error)

// rights decides what users may read. A user needs the right to get clusters/proxy of the cluster on the hub, and the
// right to the request in the member.
type rights struct {
	authorizer func() authorizer.Authorizer
	permits    Permits
	known      *cache.LRUExpireCache
}

// mayProxy reports whether the hub permits a verb on clusters/proxy of a cluster; with an empty name, of all clusters.
func (r *rights) mayProxy(ctx context.Context, u user.Info, verb, cluster string) bool {
	of := r.authorizer()
	if of == nil {
		return false // the API server starts: nothing is decided yet
	}
	decision, _, err := of.Authorize(ctx, authorizer.AttributesRecord{User: u, Verb: verb, APIVersion: "v1alpha1",
		APIGroup: clusterv1alpha1.GroupVersion.Group, Resource: "clusters", Subresource: "proxy", Name: cluster,
		ResourceRequest: true})
	return err == nil && decision == authorizer.DecisionAllow
}

// decide returns the verdicts of a user for a request in clusters. silent are clusters that do not respond: they are
// not asked.
func (r *rights) decide(ctx context.Context, u user.Info, clusters []string, silent map[string]bool,
	what authorizationv1.ResourceAttributes) map[string]verdict {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	verdicts := make([]verdict, len(clusters))
	var group errgroup.Group
	group.SetLimit(askLimit)
	who := identity(u)
	for i, cluster := range clusters {
		key := strings.Join([]string{who, cluster, what.Verb, what.Group, what.Version, what.Resource, what.Namespace,
			what.Name}, "\x00")
		if known, found := r.known.Get(key); found && !silent[cluster] {
			verdicts[i] = known.(verdict)
			continue
		}
		if !r.mayProxy(ctx, u, "get", cluster) {
			continue // denied
		}
		if verdicts[i] = unknown; silent[cluster] {
			continue
		}
		group.Go(func() error {
			one, done := context.WithTimeout(ctx, oneTimeout)
			defer done()
			permitted, err := r.permits(one, u, cluster, what)
			age := verdictAge
			switch {
			case err != nil:
				age = unknownAge
			case permitted:
				verdicts[i] = allowed
			default:
				verdicts[i] = denied
			}
			if caller.Err() == nil || err == nil {
				r.known.Add(key, verdicts[i], age)
			}
			return nil
		})
	}
	_ = group.Wait() // no error
	all := make(map[string]verdict, len(clusters))
	for i, cluster := range clusters {
		all[cluster] = verdicts[i]
	}
	return all
}

// refusal is the answer to a user who may not read a resource in any cluster.
func refusal(verb string, gr schema.GroupResource, namespace string) error {
	where := ""
	if namespace != "" {
		where = fmt.Sprintf(" in namespace %q", namespace)
	}
	return apistatus.Error(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(
		"you may not %s %s%s in any cluster; "+
			"this needs the right to get clusters/proxy of the cluster on the hub, and a role in the cluster that permits it",
		verb, gr, where))
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

// errNotListed is the state of a cache before the first list.
var errNotListed = errors.New("its objects are not listed yet")
