package proxy

import (
	"cmp"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// DefaultRequests is the default limit of concurrent requests to members. A stream takes about 100 KiB of memory.
const DefaultRequests = 10_000

// retryAfter is the Retry-After in seconds of a rejected request. Streams end by themselves after minutes.
const retryAfter = 5

// places limits the concurrent requests. Streams bypass the queues of the API server and have no timeout. Without a
// bound, one user, or one member, could use up the hub's memory.
type places struct {
	most int

	mu       sync.Mutex
	taken    int
	users    map[string]int
	clusters map[string]int
	shares   map[share]int
}

// share counts the requests of one user to one cluster.
type share struct{ user, cluster string }

func newPlaces(most int) *places {
	return &places{most: cmp.Or(most, DefaultRequests), users: map[string]int{}, clusters: map[string]int{},
		shares: map[share]int{}}
}

// take counts a request of the user to the cluster until leave is called, once. The error is an API error.
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

// add requires the lock.
func (p *places) add(user, cluster string, n int) {
	p.taken += n
	count(p.users, user, n)
	count(p.clusters, cluster, n)
	count(p.shares, share{user, cluster}, n)
}

// count adds n and deletes a key whose count is zero.
func count[K comparable](by map[K]int, key K, n int) {
	if by[key] += n; by[key] == 0 {
		delete(by, key)
	}
}
