package proxy

import (
	"cmp"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// DefaultRequests are the most requests into members that are under way at once. A stream takes about 100 KiB of memory.
const DefaultRequests = 10_000

// retryAfter is how many seconds one who found no place is told to wait: streams end by themselves after minutes.
const retryAfter = 5

// places bound the requests under way. Streams are in no queue of the API server and have no end, so that one user could hold all of
// the hub's memory with them, and one member those of all who ask it.
type places struct {
	most int

	mu       sync.Mutex
	taken    int
	users    map[string]int
	clusters map[string]int
}

func newPlaces(most int) *places {
	return &places{most: cmp.Or(most, DefaultRequests), users: map[string]int{}, clusters: map[string]int{}}
}

// take has a request of the user into the cluster be under way until leave is called, once. The error is an API error.
func (p *places) take(user, cluster string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	half := p.most / 2
	who := ""
	switch {
	case p.users[user] >= half:
		who = fmt.Sprintf("%d requests of user %q into clusters are under way, the most that one user may have", half, user)
	case p.clusters[cluster] >= half:
		who = fmt.Sprintf("%d requests into this cluster are under way, the most that one cluster may have", half)
	case p.taken >= p.most:
		who = fmt.Sprintf("%d requests into clusters are under way, the most that this hub has at once", p.most)
	}
	if who != "" {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("cluster %q: %s, watches and other streams among them: end some, or have an administrator raise --member-proxy-requests", cluster, who), retryAfter)
	}
	p.add(user, cluster, 1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.add(user, cluster, -1)
	}, nil
}

// add is called with the lock held.
func (p *places) add(user, cluster string, n int) {
	p.taken += n
	count(p.users, user, n)
	count(p.clusters, cluster, n)
}

// count forgets whom it has nothing of.
func count(by map[string]int, name string, n int) {
	if by[name] += n; by[name] == 0 {
		delete(by, name)
	}
}
