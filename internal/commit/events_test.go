package commit

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func TestEventMessagesAreCut(t *testing.T) {
	fake := record.NewFakeRecorder(10)
	e := Events{EventRecorder: fake}
	long := strings.Repeat("é", 1<<20)
	e.Event(&corev1.Pod{}, corev1.EventTypeWarning, "R", long)
	e.Eventf(&corev1.Pod{}, corev1.EventTypeWarning, "R", "cluster %q: %s", "m1", long)
	e.RecordSuccess("R", long, &corev1.Pod{})
	e.Event(&corev1.Pod{}, corev1.EventTypeWarning, "R", "short")
	for range 3 {
		if message := <-fake.Events; len(message) > eventLimit+100 || !strings.HasSuffix(message, "é…") {
			t.Errorf("an event has %d bytes: %.60s", len(message), message)
		}
	}
	if message := <-fake.Events; message != "Warning R short" {
		t.Errorf("a short message is recorded as %q", message)
	}
}
