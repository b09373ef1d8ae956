package commit_test

import (
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/argosy-io/argosy/internal/commit"
)

// stuck is the number of stuck queues in this process. Nothing ends them.
var stuck int

// If this test fails because no queue gets stuck, controller-runtime is fixed: remove commit.QueueStuck.
func TestQueueStuckFindsAStuckQueue(t *testing.T) {
	if stuck == 0 && commit.QueueStuck() {
		t.Fatal("a queue is stuck at the start")
	}
	for range 2000 {
		q := priorityqueue.New[int]("stuck")
		var workers sync.WaitGroup
		busy := make(chan struct{}, 1)
		for worker := range 20 {
			workers.Go(func() {
				for n := worker; ; n += 20 {
					q.Add(n)
					if _, _, shutdown := q.GetWithPriority(); shutdown {
						return
					}
					select {
					case busy <- struct{}{}:
					default:
					}
				}
			})
		}
		<-busy
		q.ShutDown()
		ended := make(chan struct{})
		go func() {
			workers.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			if !commit.QueueStuck() {
				t.Fatal("a queue is stuck, but QueueStuck is false")
			}
			stuck++
			return
		}
	}
	t.Fatal("no queue got stuck")
}
