package search

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// A watch has a goroutine and the connection of its user. A list holds the objects of its time in memory.
	maxWatches, maxWatchesOfUser = 2000, 200
	maxLists, maxListsOfUser     = 64, 8
)

// places bounds the concurrent requests.
type places struct {
	mu    sync.Mutex
	taken map[place]int
}

// place counts the watches or lists of a user; of all for an empty user.
type place struct {
	user  string
	watch bool
}

func newPlaces() *places { return &places{taken: map[place]int{}} }

// take counts a request of a user until leave is called. The error is an API error.
func (p *places) take(user string, watch bool) (leave func(), err error) {
	mine, all, what := maxListsOfUser, maxLists, "lists"
	if watch {
		mine, all, what = maxWatchesOfUser, maxWatches, "watches"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[place{user, watch}] >= mine || p.taken[place{"", watch}] >= all {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("too many %s of member clusters at the same time: "+
			"one user may have %d, and all users %d", what, mine, all), 2)
	}
	add := func(n int) {
		for _, key := range []place{{user, watch}, {"", watch}} {
			if p.taken[key] += n; p.taken[key] == 0 {
				delete(p.taken, key)
			}
		}
	}
	add(1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		add(-1)
	}, nil
}
