package proxy

import (
	"cmp"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// DefaultRequests are the most requests into members that are under way at once. A stream takes about 100 KiB of
// memory.
const DefaultRequests = 10_000

// retryAfter is how many seconds one who found no place is told to wait: streams end by themselves after minutes.
const retryAfter = 5

// places bound the requests under way. Streams are in no queue of the API server and have no end, so that one user
// could hold all of the hub's memory with them, and one member those of all who ask it.
type places struct {
	most int

	mu       sync.Mutex
	taken    int
	users    map[string]int
	clusters map[string]int
	shares   map[share]int
}

// share is what one user has of one cluster.
type share struct{ user, cluster string }

func newPlaces(most int) *places {
	return &places{most: cmp.Or(most, DefaultRequests), users: map[string]int{}, clusters: map[string]int{},
		shares: map[share]int{}}
}

// take has a request of the user into the cluster be under way until leave is called, once. The error is an API error.
func (p *places) take(user, cluster string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	half, quarter := p.most/2, p.most/4
	who := ""
	switch {
	case p.users[user] >= half:
		who = fmt.Sprintf("user %[2]q has %[1]d requests to clusters in flight, the maximum for one user", half, user)
	case p.shares[share{user, cluster}] >= quarter:
		who = fmt.Sprintf("user %[2]q has %[1]d requests to this cluster in flight, the maximum for one user in one cluster",
			quarter, user)
	case p.clusters[cluster] >= half:
		who = fmt.Sprintf("%d requests to this cluster are in flight, the maximum for one cluster", half)
	case p.taken >= p.most:
		who = fmt.Sprintf("%d requests to clusters are in flight, the maximum for this hub", p.most)
	}
	if who != "" {
		return nil, apierrors.NewTooManyRequests(
			fmt.Sprintf("cluster %q: %s, including watches and other streams: close some, or ask an administrator to raise --member-proxy-requests", cluster, who), retryAfter)
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
	count(p.shares, share{user, cluster}, n)
}

// count forgets whom it has nothing of.
func count[K comparable](by map[K]int, whose K, n int) {
	if by[whose] += n; by[whose] == 0 {
		delete(by, whose)
	}
}
