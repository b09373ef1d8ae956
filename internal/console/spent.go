package console

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// spentName is the ConfigMap with the ids of used links and ended sessions, each with the time from which it may be
// forgotten. Only the hub writes it.
const spentName = "argosy-console-spent"

// spentAge is the maximum age of the cached ConfigMap: a session that was ended at another hub ends here within that
// time.
const spentAge = 5 * time.Second

// errSpent is returned for an id that was spent before.
var errSpent = errors.New("it was used before")

// spent records ids that are not valid anymore. All hubs of one etcd share it, so that a link opens one session.
type spent struct {
	maps corev1client.ConfigMapInterface
	now  func() time.Time

	mu   sync.Mutex
	ids  map[string]string
	read time.Time
}

// add spends an id until the time ends. It returns errSpent if the id was spent before; of two at the same time, one.
func (s *spent) add(ctx context.Context, id string, ends time.Time) error {
	for range 10 {
		m, err := s.maps.Get(ctx, spentName, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return fmt.Errorf("read the console's used links: %w", err)
		}
		if missing {
			m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: spentName}}
		}
		if _, found := m.Data[id]; found {
			return errSpent
		}
		kept := map[string]string{id: ends.UTC().Format(time.RFC3339)}
		for other, until := range m.Data {
			if t, err := time.Parse(time.RFC3339, until); err == nil && t.After(s.now()) {
				kept[other] = until
			}
		}
		m.Data = kept
		if missing {
			_, err = s.maps.Create(ctx, m, metav1.CreateOptions{})
		} else {
			_, err = s.maps.Update(ctx, m, metav1.UpdateOptions{})
		}
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("record a used link: %w", err)
		}
		s.mu.Lock()
		s.ids, s.read = kept, s.now()
		s.mu.Unlock()
		return nil
	}
	return errors.New("too many logins at the same time: try again")
}

// contains reports whether an id is spent. After an error, the caller must refuse.
func (s *spent) contains(ctx context.Context, id string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().Sub(s.read) > spentAge {
		m, err := s.maps.Get(ctx, spentName, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("read the console's ended sessions: %w", err)
		}
		s.ids, s.read = map[string]string{}, s.now()
		if err == nil {
			s.ids = m.Data
		}
	}
	_, found := s.ids[id]
	return found, nil
}
